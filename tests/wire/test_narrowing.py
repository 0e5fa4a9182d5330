"""Answer schemas in the dialects of providers: what is said, what is told, and what cannot be."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.messages import canonical_json
from palaver.prompts import Format
from palaver.tools.schemas import violations
from palaver.wire.check.answers import held
from palaver.wire.narrowing import AnswerDialect, narrowed
from palaver.wire.profiles import Answers
from palaver.wire.violations import Place

DIALECTS: tuple[AnswerDialect, ...] = ("openai", "anthropic", "gemini")

NAMES = st.sampled_from(["a", "b", "c"])
ATOMS = st.none() | st.booleans() | st.integers(-2, 3) | st.sampled_from([0.5, "a", "ab", "", "2026-01-02"])
VALUES = st.recursive(
    ATOMS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=6
)
LEAVES = st.one_of(
    st.fixed_dictionaries(
        {"type": st.just("string")}, optional={"minLength": st.integers(0, 2), "pattern": st.just("^a")}
    ),
    st.fixed_dictionaries({"type": st.sampled_from(["integer", "number"])}, optional={"minimum": st.integers(0, 2)}),
    st.fixed_dictionaries({"type": st.sampled_from(["boolean", "null"])}),
    st.fixed_dictionaries({"enum": st.lists(ATOMS, min_size=1, max_size=3)}),
    st.fixed_dictionaries({"const": ATOMS}),
    st.just({"$ref": "#/$defs/one"}),
    st.just({"$ref": "#/$defs/one", "description": "beside"}),
    st.just({"type": ["string", "null"], "default": None}),
)


def _grown(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    some = st.lists(inner, min_size=1, max_size=2)
    return st.one_of(
        _objects(inner),
        st.fixed_dictionaries(
            {"type": st.just("array"), "items": inner},
            optional={"minItems": st.integers(0, 2), "maxItems": st.integers(2, 3), "uniqueItems": st.booleans()},
        ),
        st.fixed_dictionaries({"anyOf": some}),
        st.fixed_dictionaries({"oneOf": some}),
        st.fixed_dictionaries({"allOf": some}),
    )


def _objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Any objects, and for the stricter dialects those that are closed and require most of their members."""
    properties = st.dictionaries(NAMES, inner, max_size=3)
    any_of_them = st.fixed_dictionaries(
        {"type": st.just("object"), "properties": properties},
        optional={
            "required": st.lists(NAMES, max_size=3, unique=True),
            "additionalProperties": st.booleans() | inner,
            "minProperties": st.integers(0, 1),
        },
    )
    return any_of_them | properties.map(
        lambda members: {
            "type": "object",
            "properties": members,
            "required": sorted(members),
            "additionalProperties": False,
        }
    )


@st.composite
def answers(draw: st.DrawFn, schema: dict[str, Any], root: dict[str, Any], depth: int = 0) -> Any:  # noqa: ANN401 - a JSON value
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
        return _object(draw, schema, root, depth)
    if kind == "array":
        least = max(schema.get("minItems", 0), 0)
        most = min(schema.get("maxItems", least + 2), least + 2)
        return [
            draw(answers(schema["items"], root, depth + 1)) for _ in range(draw(st.integers(least, max(least, most))))
        ]
    plain = {"string": st.sampled_from(["", "a", "ab"]), "boolean": st.booleans(), "null": st.none()}
    return draw(plain.get(kind, st.integers(0, 3)))


def _object(draw: st.DrawFn, schema: dict[str, Any], root: dict[str, Any], depth: int) -> dict[str, Any]:
    required = schema.get("required", [])
    names = [name for name in schema["properties"] if name in required or (depth < 3 and draw(st.booleans()))]
    return {name: draw(answers(schema["properties"][name], root, depth + 1)) for name in names}


SCHEMAS = st.recursive(LEAVES, _grown, max_leaves=6)
ROOTS = st.builds(
    lambda root, one: {**root, "$defs": {"one": one}}, _objects(SCHEMAS), LEAVES.filter(lambda leaf: "$ref" not in leaf)
)


@pytest.mark.parametrize("dialect", DIALECTS)
@given(schema=ROOTS, data=st.data())
def test_whoever_holds_to_the_narrowed_schema_holds_to_the_whole(
    dialect: AnswerDialect, schema: dict[str, Any], data: st.DataObject
) -> None:
    """A dialect never lets a model say what the schema forbids, but for the words that are told instead."""
    found = narrowed(Format(schema).schema, dialect)
    if found.obstacle or found.told or _cases(schema):
        return
    answer = data.draw(answers(found.schema, found.schema))
    if not violations(found.schema, answer):
        assert not violations(schema, answer)


def _cases(part: object) -> bool:
    """Tell whether exactly one of several forms is asked for somewhere: no dialect has a word for that."""
    if isinstance(part, dict):
        return "oneOf" in part or any(map(_cases, part.values()))
    return isinstance(part, list) and any(map(_cases, part))


@pytest.mark.parametrize("dialect", DIALECTS)
@given(schema=ROOTS)
def test_what_is_narrowed_is_taken(dialect: AnswerDialect, schema: dict[str, Any]) -> None:
    """What a dialect is said to have the validator of its provider takes; the schema given is not touched."""
    made = Format(schema).schema
    before = dict(made)
    found = narrowed(made, dialect)
    if not found.obstacle:
        rules = Answers(dialect=dialect, native=True)
        assert [str(fault) for fault in held(Place(found.schema), rules)] == []
    assert made == before


@pytest.mark.parametrize("dialect", DIALECTS)
@given(schema=ROOTS)
def test_the_order_of_members_does_not_change_the_bytes(dialect: AnswerDialect, schema: dict[str, Any]) -> None:
    """A schema that a store gave back, its members sorted, is narrowed to the same canonical bytes: recorded calls are reproduced."""
    made = Format(schema).schema
    stored = json.loads(canonical_json(made))
    one, other = narrowed(made, dialect), narrowed(stored, dialect)
    assert bool(one.obstacle) is bool(other.obstacle)
    assert canonical_json(one.schema) == canonical_json(other.schema)
    assert one.obstacle or sorted(one.told) == sorted(other.told)


PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "description": "The full name."},
        "age": {"type": "integer", "minimum": 0},
        "email": {"anyOf": [{"type": "string", "format": "email"}, {"type": "null"}], "default": None},
        "kind": {"enum": ["a", "b"], "default": "a"},
    },
    "required": ["name", "age"],
}


def test_what_a_dialect_lacks_is_told_in_the_description() -> None:
    """Lengths and bounds that cannot be said stand in the description; so do defaults, but not that null is one."""
    chat = narrowed(PERSON, "openai")
    assert chat.schema["properties"]["name"]["description"] == "The full name. (minLength 1)"
    assert chat.schema["properties"]["age"] == {"type": "integer", "minimum": 0}
    assert chat.schema["properties"]["kind"]["description"] == '(default "a")'
    assert "description" not in chat.schema["properties"]["email"]
    assert chat.told == ["properties.name.minLength"]
    claude = narrowed(PERSON, "anthropic")
    assert claude.schema["properties"]["age"]["description"] == "(minimum 0)"
    assert claude.told == ["properties.name.minLength", "properties.age.minimum"]


def test_openai_asks_for_every_member_where_null_or_a_default_says_the_same() -> None:
    """Members that may be null or have a default are required; the others keep a schema from being strict."""
    found = narrowed(PERSON, "openai")
    assert found.schema["required"] == ["name", "age", "email", "kind"]
    assert found.required == ["properties.email", "properties.kind"]
    assert narrowed(PERSON, "anthropic").schema["required"] == ["name", "age"]
    loose = {"type": "object", "properties": {"nick": {"type": "string"}}, "additionalProperties": False}
    assert narrowed(loose, "openai").obstacle == "properties.nick may be left out"
    assert narrowed(loose, "anthropic").obstacle == ""


@pytest.mark.parametrize(
    ("part", "openai", "anthropic", "gemini"),
    [
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "may have members", "may have members", ""),
        ({"type": "object"}, "may have members", "may have members", ""),
        ({}, "may be anything", "may be anything", ""),
        ({"type": "array"}, "may be anything", "may be anything", ""),
        ({"type": "array", "prefixItems": [{"type": "string"}]}, "by its place", "by its place", ""),
        ({"allOf": [{"type": "string"}, {"minLength": 1}]}, "made of several", "made of several", "made of several"),
        ({"allOf": [{"type": "string"}], "description": "one"}, "", "", ""),
        ({"oneOf": [{"type": "string"}, {"type": "null"}], "discriminator": {"propertyName": "x"}}, "", "", ""),
        ({"$ref": "#/properties/it"}, "no definition", "no definition", "no definition"),
    ],
)
def test_what_a_dialect_cannot_say(part: dict[str, Any], openai: str, anthropic: str, gemini: str) -> None:
    """Each obstacle is told with its place; what the dialect can say has none."""
    schema = {"type": "object", "properties": {"it": part}, "required": ["it"], "additionalProperties": False}
    for dialect, why in zip(DIALECTS, (openai, anthropic, gemini), strict=True):
        obstacle = narrowed(schema, dialect).obstacle
        assert bool(obstacle) is bool(why)
        assert why in obstacle


def test_schemas_that_hold_themselves() -> None:
    """OpenAI takes a circle anywhere, Gemini where it may be left out, Anthropic nowhere; one beside words stays a reference."""
    node: dict[str, Any] = {
        "type": "object",
        "properties": {"next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}], "default": None}},
        "additionalProperties": False,
    }
    root = {"type": "object", "properties": {"head": {"$ref": "#/$defs/Node", "description": "x"}}, "required": ["head"], "additionalProperties": False, "$defs": {"Node": node}}  # fmt: skip
    assert narrowed(root, "openai").schema["properties"]["head"] == {"$ref": "#/$defs/Node"}
    assert narrowed(root, "gemini").obstacle == ""
    assert narrowed(root, "anthropic").obstacle == "it holds itself"
    node["required"] = ["next"]
    assert narrowed(root, "gemini").obstacle.startswith("it holds itself in $defs.Node.properties.next")


def test_definitions_that_are_not_used_are_left_out_and_old_ones_renamed() -> None:
    """Only what is referred to goes out, under the word of today; words beside a reference are put into its place."""
    name = {"type": "string"}
    root = {
        "type": "object",
        "properties": {"a": {"$ref": "#/definitions/Name"}, "b": {"$ref": "#/definitions/Name", "description": "x"}},
        "required": ["a", "b"],
        "additionalProperties": False,
        "definitions": {"Name": name, "Unused": name},
    }
    schema = narrowed(root, "anthropic").schema
    assert schema["$defs"] == {"Name": name}
    assert schema["properties"] == {"a": {"$ref": "#/$defs/Name"}, "b": {"type": "string", "description": "x"}}


def test_gemini_lists_strings_and_numbers_only() -> None:
    """A constant is an enumeration of one; truth values cannot be listed and are told."""
    root = {
        "type": "object",
        "properties": {"a": {"const": "x"}, "b": {"type": "boolean", "const": True}},
        "required": ["a", "b"],
    }
    found = narrowed(root, "gemini")
    assert found.schema["properties"]["a"] == {"enum": ["x"]}
    assert found.schema["properties"]["b"] == {"type": "boolean", "description": "(const true)"}
    assert found.told == ["properties.b.const"]


def test_depth_and_size_have_limits() -> None:
    """OpenAI compiles ten levels and five thousand members."""
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(11):
        deep = {"type": "object", "properties": {"in": deep}, "required": ["in"], "additionalProperties": False}
    assert "nested deeper than 10" in narrowed(deep, "openai").obstacle
    assert narrowed(deep, "anthropic").obstacle == ""
    names = [f"m{number}" for number in range(5001)]
    wide = {"type": "object", "properties": {name: {"type": "null"} for name in names}, "additionalProperties": False}
    assert narrowed(wide, "openai").obstacle == "it has more than 5000 members"
