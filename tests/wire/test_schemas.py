"""Schemas of tools and answers in each provider's dialect: what is kept, what is told, and what cannot be said."""

import json
from typing import Any, get_args

from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from palaver.messages import canonical_json
from palaver.prompts import Format
from palaver.wire.check.place import Place
from palaver.wire.check.rules import held, parameters
from palaver.wire.schemas import in_dialect, narrowed, not_strict
from palaver.wire.table import Dialect
from tests.wire.any_views import tool_specs

DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
TEXT = {"type": "string"}
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
        assert [str(fault) for fault in held(Place(one.schema), dialect)] == []
    assert bool(one.obstacle) is bool(other.obstacle)
    assert canonical_json(one.schema) == canonical_json(other.schema)


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


def test_missing_words_are_told_in_the_description() -> None:
    """Lengths, bounds and defaults that cannot be said stand in the description; members with a default are required."""
    chat = narrowed(PERSON, "openai")
    assert chat.schema["properties"]["name"]["description"] == "The full name. (minLength 1)"
    assert chat.schema["properties"]["kind"]["description"] == '(default "a")'
    assert "description" not in chat.schema["properties"]["email"]
    assert (chat.told, chat.required) == (["properties.name.minLength"], ["properties.email", "properties.kind"])
    claude = narrowed(PERSON, "anthropic")
    assert claude.schema["properties"]["age"]["description"] == "(minimum 0)"
    assert (claude.schema["required"], claude.told) == (
        ["name", "age"],
        ["properties.name.minLength", "properties.age.minimum"],
    )


def test_obstacles_of_a_dialect() -> None:
    """An obstacle says what a dialect cannot promise; what it can say has none."""
    cases: list[tuple[dict[str, Any], str, str, str]] = [
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "may have members", "may have members", ""),
        ({}, "may be anything", "may be anything", ""),
        ({"type": "array", "prefixItems": [TEXT]}, "by its place", "by its place", ""),
        ({"allOf": [TEXT, {"minLength": 1}]}, "made of several", "made of several", "made of several"),
        ({"allOf": [TEXT], "description": "one"}, "", "", ""),
        ({"oneOf": [TEXT, {"type": "null"}], "discriminator": {"propertyName": "x"}}, "", "", ""),
        ({"$ref": "#/properties/it"}, "no definition", "no definition", "no definition"),
        ({"$ref": "#/$defs/Node"}, "", "it holds itself", "it holds itself"),
    ]
    for part, openai, anthropic, gemini in cases:
        node = {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}
        closed = {"type": "object", "required": ["it"], "additionalProperties": False}
        schema = {**closed, "properties": {"it": part}, "$defs": {"Node": {**closed, "properties": {"it": node}}}}
        for dialect, why in zip(("openai", "anthropic", "gemini"), (openai, anthropic, gemini), strict=True):
            obstacle = narrowed(schema, dialect).obstacle  # type: ignore[arg-type] # one of three
            assert bool(obstacle) is bool(why)
            assert why in obstacle


def test_definitions_go_where_they_are_used() -> None:
    """Only what is referred to goes out, under today's word; words beside a reference replace it."""
    root = {
        "type": "object",
        "properties": {"a": {"$ref": "#/definitions/Name"}, "b": {"$ref": "#/definitions/Name", "description": "x"}},
        "required": ["a", "b"],
        "additionalProperties": False,
        "definitions": {"Name": TEXT, "Unused": TEXT},
    }
    schema = narrowed(root, "anthropic").schema
    assert schema["$defs"] == {"Name": TEXT}
    assert schema["properties"] == {"a": {"$ref": "#/$defs/Name"}, "b": {"type": "string", "description": "x"}}


def test_depth_has_a_limit() -> None:
    """OpenAI compiles ten levels."""
    deep: dict[str, Any] = TEXT
    for _ in range(11):
        deep = {"type": "object", "properties": {"in": deep}, "required": ["in"], "additionalProperties": False}
    assert "nested deeper than 10" in narrowed(deep, "openai").obstacle
    assert narrowed(deep, "anthropic").obstacle == ""


# --- tools -------------------------------------------------------------------------------------------------------------


def of(inside: dict[str, Any], **more: Any) -> dict[str, Any]:  # noqa: ANN401 - any keywords
    """Make an object schema with one property, `a`."""
    return {"type": "object", "properties": {"a": inside}, **more}


@given(dialect=st.sampled_from(tuple(DIALECTS)), spec=tool_specs())
def test_tool_schema_in_its_dialect_stays(dialect: Dialect, spec: Any) -> None:  # noqa: ANN401 - a tool
    """Translating twice changes nothing more, and the validator accepts the result."""
    once, _ = in_dialect(spec.parameters, dialect)
    assert in_dialect(once, dialect) == (once, [])
    assert [str(fault) for fault in parameters(Place(once), dialect)] == []


def test_tool_schema_for_gemini() -> None:
    """Words that Gemini lacks are told in the description and named; nothing keeps a tool from being declared."""
    cases: list[tuple[dict[str, Any], dict[str, Any], list[str]]] = [
        ({"type": ["string", "null"]}, {"type": ["string", "null"]}, []),
        ({"const": "x"}, {"enum": ["x"]}, []),
        ({"oneOf": [TEXT, {"type": "null"}]}, {"anyOf": [TEXT, {"type": "null"}]}, []),
        ({"allOf": [TEXT, {"maxItems": 3}]}, {"type": "string", "maxItems": 3}, [""]),
        ({"$ref": "#/$defs/T"}, {"$ref": "#/$defs/T"}, []),
        ({"$ref": "#/$defs/none"}, {}, [""]),
        ({"$ref": "#/$defs/Tree"}, {"type": "object", "properties": {}}, [""]),
        ({"type": "array"}, {"type": "array", "items": {}}, []),
        (
            {"type": "integer", "exclusiveMinimum": 1},
            {"type": "integer", "description": "(exclusiveMinimum 1)"},
            [".exclusiveMinimum"],
        ),
    ]
    for given_schema, said, lost in cases:
        tree = {"type": "object", "properties": {"left": {"$ref": "#/$defs/Tree"}}}
        out, found = in_dialect(of(given_schema, **{"$defs": {"T": TEXT, "Tree": tree}}), "gemini")
        assert out["properties"]["a"] == said
        assert found == [f"properties.a{what}" for what in lost]


def test_cases_at_the_top_become_properties() -> None:
    """No provider accepts cases at the top: the properties of all are there, and the report says what is lost."""
    for dialect in DIALECTS:
        cases = [{"properties": {"path": TEXT}, "required": ["path"]}, {"$ref": "#/$defs/Url"}]
        out, lost = in_dialect({"anyOf": cases, "$defs": {"Url": {"properties": {"url": TEXT}}}}, dialect)
        assert (set(out["properties"]), "anyOf" in out) == ({"path", "url"}, False)
        assert [what.partition(" ")[0] for what in lost] == ["anyOf"]


def test_tool_without_object_schema_gets_an_empty_one() -> None:
    """A tool takes an object: any other schema is replaced by one without properties, and reported."""
    for dialect in DIALECTS:
        cases: list[dict[str, Any]] = [{"type": "string"}, {"type": ["object", "null"]}, {"type": 3}]
        for schema in cases:
            out, lost = in_dialect(schema, dialect)
            assert (out.get("properties", {}), out["type"]) == ({}, "object")
            assert lost


def test_older_drafts_are_read() -> None:
    """`required: true`, boolean limits and lists of items of older drafts are left out, each named."""
    old = {"type": "array", "required": True, "exclusiveMinimum": True, "items": [TEXT]}
    out, lost = in_dialect(of(old), "anthropic")
    assert out["properties"]["a"] == {"type": "array", "items": {}}
    assert len(lost) == 3


def test_strict_needs_a_closed_complete_schema() -> None:
    """OpenAI's strict mode wants closed objects and no optional member, in the depths too."""
    cases: list[tuple[dict[str, Any], str]] = [
        (of(TEXT, required=["a"], additionalProperties=False), ""),
        (of(TEXT, required=["a"]), "an object in it is open"),
        (of(TEXT, additionalProperties=False), "may be left out"),
        (of({"type": "string", "default": "x"}, required=["a"], additionalProperties=False), "a word in it"),
        (of({"type": "array", "items": {"type": "object"}}, required=["a"], additionalProperties=False), "any name"),
    ]
    for schema, why in cases:
        found = not_strict(schema)
        assert bool(found) is bool(why)
        assert why in found
