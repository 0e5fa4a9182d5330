"""JSON schemas as formats: what they permit is what the draft says, and what cannot be judged is refused."""

import importlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.errors import InvalidPrompt, ParseError
from palaver.prompts import Format
from palaver.prompts.schema import examine

jsonschema: Any = importlib.import_module(
    "jsonschema"
)  # of the development environment: the oracle, never a dependency

NAMES = st.sampled_from(["a", "b", "c", "dd"])
ATOMS = (
    st.none()
    | st.booleans()
    | st.integers(-4, 4)
    | st.sampled_from([0.5, 1.0, 2.5, -3.0])
    | st.text(alphabet="abd1", max_size=3)
)
VALUES = st.recursive(
    ATOMS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
TYPES = st.sampled_from(["object", "array", "string", "number", "integer", "boolean", "null"])
COUNTS = st.integers(0, 3)
BOUNDS = st.integers(-3, 3) | st.sampled_from([0.5, 2.0])
LEAVES = st.booleans() | st.fixed_dictionaries(
    {},
    optional={
        "type": TYPES | st.lists(TYPES, min_size=1, max_size=2, unique=True),
        "enum": st.lists(ATOMS, min_size=1, max_size=3),
        "const": ATOMS,
        "minimum": BOUNDS,
        "exclusiveMaximum": BOUNDS,
        "multipleOf": st.sampled_from([1, 2, 0.5]),
        "minLength": COUNTS,
        "maxLength": COUNTS,
        "pattern": st.sampled_from(["^a", "b$", "1"]),
        "maxItems": COUNTS,
        "minProperties": COUNTS,
        "uniqueItems": st.booleans(),
        "required": st.lists(NAMES, max_size=2, unique=True),
    },
)
REFERENCES = st.sampled_from([{"$ref": "#/$defs/one"}, {"$ref": "#/$defs/two"}])


def _grown(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    some, named = st.lists(inner, min_size=1, max_size=3), st.dictionaries(NAMES, inner, max_size=3)
    return st.fixed_dictionaries(
        {},
        optional={
            "properties": named,
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "d"]), inner, max_size=2),
            "additionalProperties": inner,
            "items": inner,
            "prefixItems": some,
            "anyOf": some,
            "oneOf": some,
            "allOf": some,
            "not": inner,
        },
    )


@given(value=VALUES, schema=st.recursive(LEAVES | REFERENCES, _grown, max_leaves=8), one=LEAVES, two=LEAVES)
def test_an_answer_is_refused_where_the_reference_implementation_refuses_it(
    value: object, schema: object, one: object, two: object
) -> None:
    """Whether an answer holds to a schema is what the reference implementation of the draft says of it."""
    whole = {"type": "object", "properties": {"it": schema}, "$defs": {"one": one, "two": two}}
    answer = {"it": value}
    made = Format(whole)
    if jsonschema.Draft202012Validator(whole).is_valid(answer):
        assert made.read(json.dumps(answer)) == answer
    else:
        with pytest.raises(ParseError):
            made.read(json.dumps(answer))


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"unevaluatedProperties": False}, "unevaluatedProperties"),
        ({"properties": {"a": {"if": {}}}}, r"properties\.a\.if"),
        ({"properties": {"a": {"$dynamicRef": "#x"}}}, r"properties\.a\.\$dynamicRef"),
        ({"items": {"$ref": "#/$defs/none"}}, "leads nowhere"),
        ({"$ref": "https://example.org/other.json"}, "leads nowhere"),
        ({"$ref": 3}, r"\$ref"),
        ({"anyOf": [{"type": "text"}]}, r"anyOf\[0\]\.type"),
        ({"pattern": "("}, "pattern"),
        ({"patternProperties": {"(": {}}}, "patternProperties"),
        ({"minimum": "3"}, "minimum"),
        ({"multipleOf": 0}, "multipleOf"),
        ({"required": "name"}, "required"),
        ({"properties": []}, "properties"),
        ({"items": 3}, "items is a int"),
        ({"anyOf": {}}, "anyOf"),
        ({"maxItems": -1}, "maxItems"),
    ],
)
def test_what_cannot_be_judged_is_refused_when_the_schema_is_made(schema: dict[str, Any], place: str) -> None:
    """A schema is never obeyed in part: what is malformed, elsewhere or beyond us is named with its place."""
    with pytest.raises(InvalidPrompt, match=place):
        examine(schema)
    with pytest.raises(InvalidPrompt):
        Format(schema)


def test_an_answer_nested_beyond_measure_is_refused_not_a_crash() -> None:
    """A schema that holds itself, and an answer a thousand levels deep: a refusal that names the reason."""
    schema = {"type": "object", "properties": {"in": {"$ref": "#"}}, "additionalProperties": False}
    deep = '{"in":' * 900 + "{}" + "}" * 900
    with pytest.raises(ParseError, match="nested too deep"):
        Format(schema).read(deep)
