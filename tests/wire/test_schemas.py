"""Tool schemas in each provider's dialect."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.testing.view_strategies import tool_specs
from palaver.wire.schemas import in_dialect, not_strict

DIALECTS = ("draft-2020-12", "subset", "openapi")
TEXT = {"type": "string"}
NAMES = st.one_of(
    st.sampled_from(["type", "items", "enum", "$ref", "properties", "allOf"]), st.text(min_size=1, max_size=5)
)


def of(inside: dict[str, Any], **more: Any) -> dict[str, Any]:  # noqa: ANN401 - any keywords
    """Make an object schema with one property, `a`."""
    return {"type": "object", "properties": {"a": inside}, **more}


@pytest.mark.parametrize("dialect", DIALECTS)
@given(spec=tool_specs())
def test_a_schema_in_its_dialect_stays_as_it_is(dialect: str, spec: Any) -> None:  # noqa: ANN401 - a tool
    """Translating is idempotent: what came out is said whole the second time."""
    once, _ = in_dialect(spec.parameters, dialect)
    again, lost = in_dialect(once, dialect)
    assert again == once
    assert lost == []


@pytest.mark.parametrize("dialect", DIALECTS)
@given(names=st.lists(NAMES, max_size=4, unique=True))
def test_a_common_schema_is_the_same_in_every_dialect(dialect: str, names: list[str]) -> None:
    """Objects of texts, numbers and lists, with descriptions, need no translation, whatever their properties are called."""
    kinds: list[dict[str, Any]] = [
        TEXT,
        {"type": "integer", "minimum": 0},
        {"type": "array", "items": TEXT},
        {"type": "object", "properties": {"x": TEXT}},
    ]
    inside = {name: {**kinds[index], "description": "d"} for index, name in enumerate(names)}
    schema = {"type": "object", "properties": inside, **({"required": names[:1]} if names else {})}
    out, lost = in_dialect(schema, dialect)
    assert lost == []
    assert out.get("properties", {}) == inside


@pytest.mark.parametrize(
    ("given_schema", "said", "lost"),
    [
        pytest.param({"type": ["string", "null"]}, {"type": "string", "nullable": True}, [], id="null among types"),
        pytest.param({"const": "x"}, {"type": "string", "enum": ["x"]}, [], id="const"),
        pytest.param(
            {"enum": ["a", None]}, {"type": "string", "enum": ["a"], "nullable": True}, [], id="null among values"
        ),
        pytest.param({"type": "integer", "enum": [1, 2]}, {"type": "integer"}, ["enum"], id="numbers listed"),
        pytest.param(
            {"oneOf": [TEXT, {"type": "null"}]}, {"type": "string", "nullable": True}, [], id="one case or null"
        ),
        pytest.param({"oneOf": [TEXT, {"type": "integer"}]}, {"anyOf": [TEXT, {"type": "integer"}]}, [], id="cases"),
        pytest.param(
            {"allOf": [{"type": "string"}, {"maxLength": 3}]}, {"type": "string", "maxLength": 3}, [], id="all of"
        ),
        pytest.param({"$ref": "#/$defs/T"}, TEXT, [], id="reference"),
        pytest.param(
            {"$ref": "#/$defs/none"},
            TEXT,
            ["$ref to #/$defs/none", "a type: none is said, and text is taken"],
            id="dangling",
        ),
        pytest.param({"type": "string", "format": "uri"}, TEXT, ["format"], id="format"),
        pytest.param(
            {"type": "string", "format": "date-time"}, {"type": "string", "format": "date-time"}, [], id="known format"
        ),
        pytest.param({"type": "array"}, {"type": "array", "items": TEXT}, [], id="items"),
        pytest.param(
            {"type": "object", "patternProperties": {"x": TEXT}},
            {"type": "object"},
            ["patternProperties"],
            id="patterns",
        ),
        pytest.param(
            {"type": "integer", "exclusiveMinimum": 1}, {"type": "integer"}, ["exclusiveMinimum"], id="exclusive"
        ),
        pytest.param({}, TEXT, ["a type: none is said, and text is taken"], id="nothing said"),
    ],
)
def test_geminis_dialect(given_schema: dict[str, Any], said: dict[str, Any], lost: list[str]) -> None:
    """What Gemini has no word for is said another way where that loses nothing, and otherwise named."""
    out, found = in_dialect(of(given_schema, **{"$defs": {"T": TEXT}}), "openapi")
    assert out["properties"]["a"] == said
    assert found == [f"properties.a.{what}" for what in lost]


def test_a_schema_that_refers_to_itself_ends() -> None:
    """A tree of trees is spelt out once; below it stands any object, and the report names the place."""
    tree = {"type": "object", "properties": {"left": {"$ref": "#/$defs/Tree"}}}
    out, lost = in_dialect(
        {"type": "object", "properties": {"root": {"$ref": "#/$defs/Tree"}}, "$defs": {"Tree": tree}}, "openapi"
    )
    assert out["properties"]["root"] == {"type": "object", "properties": {"left": {"type": "object"}}}
    assert lost == ["properties.root.properties.left.$ref to itself"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_cases_at_the_top_become_properties_of_one_object(dialect: str) -> None:
    """No provider takes cases at the top: the properties of all of them are there, and the report says what is not said any more."""
    cases = [{"properties": {"path": TEXT}, "required": ["path"]}, {"$ref": "#/$defs/Url"}]
    out, lost = in_dialect({"anyOf": cases, "$defs": {"Url": {"properties": {"url": TEXT}}}}, dialect)
    assert set(out["properties"]) == {"path", "url"}
    assert "anyOf" not in out
    assert [what.partition(" ")[0] for what in lost] == ["anyOf"]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("schema", [{"type": "string"}, {"type": ["object", "null"]}, {"type": 3}])
def test_what_is_no_object_schema_becomes_an_empty_one(dialect: str, schema: dict[str, Any]) -> None:
    """A tool takes an object: any other schema is replaced by one without properties, and reported."""
    out, lost = in_dialect(schema, dialect)
    assert out.get("properties", {}) == {}
    assert out["type"] == "object"
    assert lost


def test_older_drafts_are_read() -> None:
    """`required: true`, boolean limits and lists of items of older drafts are left out, each named."""
    out, lost = in_dialect(
        of({"type": "array", "required": True, "exclusiveMinimum": True, "items": [TEXT]}), "draft-2020-12"
    )
    assert out["properties"]["a"] == {"type": "array", "items": {}}
    assert len(lost) == 3


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (of(TEXT, required=["a"], additionalProperties=False), ""),
        (of(TEXT, required=["a"]), "an object in it is open"),
        (of(TEXT, additionalProperties=False), "a property in it is optional"),
        (of({"oneOf": [TEXT]}, required=["a"], additionalProperties=False), "it uses oneOf"),
        (
            of({"type": "array", "items": {"type": "object"}}, required=["a"], additionalProperties=False),
            "an object in it is open",
        ),
    ],
)
def test_strict_is_asked_for_where_the_schema_permits_it(schema: dict[str, Any], why: str) -> None:
    """OpenAI's strict mode wants closed objects and no optional property, in the depths too."""
    assert not_strict(schema) == why
