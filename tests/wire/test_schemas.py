"""Schemas of tools and answers in each provider's dialect: what is kept, what is told, and what cannot be said."""

import json
from collections.abc import Mapping
from typing import Any, get_args

from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from palaver.messages import canonical_json
from palaver.prompts import Format
from palaver.wire.place import Spot
from palaver.wire.rules import held, parameters
from palaver.wire.schemas import in_dialect, narrowed
from palaver.wire.table import Dialect
from tests.wire.any_views import tool_specs

DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
NAMES = st.sampled_from(["a", "b", "c"])
ATOMS = st.none() | st.booleans() | st.integers(-2, 3) | st.sampled_from([0.5, "a", "ab", "", "2026-01-02"])
LEAVES = st.one_of(
    st.fixed_dictionaries(
        {"type": st.just("string")}, optional={"minLength": st.integers(0, 2), "pattern": st.just("^a")}
    ),
    st.fixed_dictionaries({"type": st.sampled_from(["integer", "number"])}, optional={"minimum": st.integers(0, 2)}),
    st.fixed_dictionaries({"type": st.sampled_from(["boolean", "null"])}),
    st.fixed_dictionaries({"enum": st.lists(ATOMS, min_size=1, max_size=3)}),
    st.fixed_dictionaries({"const": ATOMS}),
    st.sampled_from([{"$ref": "#/$defs/one"}, {"$ref": "#/$defs/one", "description": "beside"}]),
    st.just({"type": ["string", "null"], "default": None}),
)


def _grown(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    some = st.lists(inner, min_size=1, max_size=2)
    arrays = st.fixed_dictionaries(
        {"type": st.just("array"), "items": inner},
        optional={"minItems": st.integers(0, 2), "uniqueItems": st.booleans()},
    )
    cases = [st.fixed_dictionaries({word: some}) for word in ("anyOf", "oneOf", "allOf")]
    return st.one_of(_objects(inner), arrays, *cases)


def _objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Any objects, and for the stricter dialects closed ones that require all their members."""
    members = st.dictionaries(NAMES, inner, max_size=3)
    loose = st.fixed_dictionaries(
        {"type": st.just("object"), "properties": members},
        optional={
            "required": st.lists(NAMES, max_size=3, unique=True),
            "additionalProperties": st.booleans() | inner,
        },
    )
    closed = {"type": "object", "additionalProperties": False}
    return loose | members.map(lambda each: {**closed, "properties": each, "required": sorted(each)})


ROOTS = st.builds(
    lambda root, one: {**root, "$defs": {"one": one}},
    _objects(st.recursive(LEAVES, _grown, max_leaves=6)),
    LEAVES.filter(lambda leaf: "$ref" not in leaf),
)


@st.composite
def answers(draw: st.DrawFn, schema: dict[str, Any], root: dict[str, Any], depth: int = 0) -> Any:  # noqa: ANN401 - JSON
    """An answer of a model that is held to a schema in a dialect."""
    if "$ref" in schema:
        return draw(answers(root["$defs"][schema["$ref"].rpartition("/")[2]], root, depth))
    if "anyOf" in schema:
        return draw(answers(draw(st.sampled_from(schema["anyOf"])), root, depth))
    if "enum" in schema or "const" in schema:
        return draw(st.sampled_from(schema.get("enum") or [schema.get("const")]))
    kinds = schema.get("type", "null")
    kind = draw(st.sampled_from(kinds)) if isinstance(kinds, list) else kinds
    if kind == "object":
        required = schema.get("required", [])
        names = [each for each in schema["properties"] if each in required or (depth < 3 and draw(st.booleans()))]
        return {name: draw(answers(schema["properties"][name], root, depth + 1)) for name in names}
    if kind == "array":
        least = schema.get("minItems", 0)
        return [draw(answers(schema["items"], root, depth + 1)) for _ in range(draw(st.integers(least, least + 2)))]
    plain = {"string": st.sampled_from(["", "a", "ab"]), "boolean": st.booleans(), "null": st.none()}
    return draw(plain.get(kind, st.integers(0, 3)))


def says_one_of(part: object) -> bool:
    """Return whether exactly one of several forms is asked for somewhere: no dialect has a word for that."""
    inside = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    return (isinstance(part, dict) and "oneOf" in part) or any(map(says_one_of, inside))


# --- answers -----------------------------------------------------------------------------------------------------------


@given(dialect=st.sampled_from(tuple(DIALECTS)), schema=ROOTS, data=st.data())
def test_narrowed_answer_fits_the_whole_schema(dialect: Dialect, schema: dict[str, Any], data: st.DataObject) -> None:
    """A dialect never lets a model say what the schema forbids, but for the words that are told instead."""
    found = narrowed(Format(schema).schema, dialect)
    if found.obstacle or found.told or says_one_of(schema):
        return
    answer = data.draw(answers(found.schema, found.schema))
    if Draft202012Validator(found.schema).is_valid(answer):
        assert Draft202012Validator(schema).is_valid(answer)


@given(dialect=st.sampled_from(tuple(DIALECTS)), schema=ROOTS)
def test_narrowed_schema_passes_the_validator(dialect: Dialect, schema: dict[str, Any]) -> None:
    """The validator accepts a narrowed schema; a store's order of members changes no byte of it."""
    made = Format(schema).schema
    one, other = narrowed(made, dialect), narrowed(json.loads(canonical_json(made)), dialect)
    if not one.obstacle:
        assert [str(fault) for fault in held(Spot(one.schema), dialect)] == []
    assert bool(one.obstacle) is bool(other.obstacle)
    assert canonical_json(one.schema) == canonical_json(other.schema)


# --- tools -------------------------------------------------------------------------------------------------------------


@given(dialect=st.sampled_from(tuple(DIALECTS)), spec=tool_specs())
def test_tool_schema_in_its_dialect_stays(dialect: Dialect, spec: Any) -> None:  # noqa: ANN401 - a tool
    """Translating twice changes nothing more, and the validator accepts the result."""
    once, _ = in_dialect(spec.parameters, dialect)
    assert in_dialect(once, dialect) == (once, [])
    assert [str(fault) for fault in parameters(Spot(once), dialect)] == []


GEMINI: Mapping[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "types": ({"type": ["string", "null"]}, {"type": ["string", "null"]}, []),
    "constant": ({"const": "x"}, {"enum": ["x"]}, []),
    "truth value": ({"type": "boolean", "const": True}, {"type": "boolean", "description": "(const true)"}, [".const"]),
    "one of": (
        {"oneOf": [{"type": "string"}, {"type": "null"}]},
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
        [],
    ),
    "all of": ({"allOf": [{"type": "string"}, {"maxItems": 3}]}, {"type": "string", "maxItems": 3}, [""]),
    "default": ({"type": "string", "default": "x"}, {"type": "string", "description": '(default "x")'}, []),
    "words": (
        {"type": "string", "description": "A name.", "minLength": 1, "pattern": "^a"},
        {"type": "string", "description": 'A name. (minLength 1, pattern "^a")'},
        [".minLength", ".pattern"],
    ),
    "bounds": (
        {"type": "integer", "minimum": 0, "exclusiveMaximum": 9},
        {"type": "integer", "minimum": 0, "description": "(exclusiveMaximum 9)"},
        [".exclusiveMaximum"],
    ),
    "array": (
        {"type": "array", "uniqueItems": True},
        {"type": "array", "items": {}, "description": "(uniqueItems true)"},
        [".uniqueItems"],
    ),
    "places": (
        {"type": "array", "prefixItems": [{"type": "null"}]},
        {"type": "array", "prefixItems": [{"type": "null"}]},
        [],
    ),
    "open": (
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "object", "properties": {}, "additionalProperties": {"type": "integer"}},
        [],
    ),
    "pattern of names": (
        {"type": "object", "patternProperties": {"^a": {}}},
        {
            "type": "object",
            "properties": {},
            "additionalProperties": True,
            "description": '(patternProperties {"^a":{}})',
        },
        [".patternProperties"],
    ),
    "reference": ({"$ref": "#/$defs/T"}, {"$ref": "#/$defs/T"}, []),
    "words beside it": ({"$ref": "#/$defs/T", "title": "A"}, {"type": "string", "title": "A"}, []),
    "nowhere": ({"$ref": "#/$defs/none"}, {}, [""]),
    "circle": ({"$ref": "#/$defs/Tree"}, {"type": "object", "properties": {}}, [""]),
}


def test_tool_schemas_of_gemini() -> None:
    """What Gemini lacks stands in the description and is reported by its place; nothing keeps a tool from being declared."""
    tree = {"type": "object", "properties": {"left": {"$ref": "#/$defs/Tree"}}}
    for name, (part, said, lost) in GEMINI.items():
        whole = {"type": "object", "properties": {"a": part}, "$defs": {"T": {"type": "string"}, "Tree": tree}}
        used = {"$defs": {"T": {"type": "string"}}} if "$ref" in said else {}
        assert in_dialect(whole, "gemini") == (
            {"type": "object", "properties": {"a": said}, **used},
            [f"properties.a{what}" for what in lost],
        ), name
