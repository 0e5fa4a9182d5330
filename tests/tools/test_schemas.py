"""Laws of schemas: what a model is told is what is accepted, and checking is bounded."""

import inspect
from collections.abc import Mapping
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from palaver.errors import InvalidInput
from palaver.messages import canonical_json, thaw
from palaver.tools import CallContext, Function
from palaver.tools.function import SchemaWarning
from palaver.tools.schemas import require_checkable, violations
from palaver.tools.signature import InvalidArgumentsError
from tests.tools.calling import run
from tests.tools.kinds import JSON, TYPES, near


def taking(kind: Any, *, required: bool = True) -> Function:  # noqa: ANN401 - a type form
    """Return a tool with one parameter of a type."""

    def take(**given: Any) -> dict[str, Any]:  # noqa: ANN401 - the values as they were bound
        return given

    default = inspect.Parameter.empty if required else None
    parameter = inspect.Parameter("value", inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)
    take.__signature__ = inspect.Signature([parameter])  # type: ignore[attr-defined]
    return Function.from_callable(take)


@given(st.data())
def test_types_accept_what_the_schema_accepts(data: st.DataObject) -> None:
    """For any type and any JSON value: a value that fits the declared schema makes a call."""
    function = taking(data.draw(TYPES, label="type"), required=data.draw(st.booleans()))
    schema = thaw(function.parameters)
    value = data.draw(near(schema["properties"]["value"]), label="value")
    assert function.binding is not None
    try:
        function.binding.call({"value": value}, CallContext())
    except InvalidArgumentsError as error:
        assert error.faults  # noqa: PT017 - it may refuse only what does not fit, and has reasons
        assert violations(schema, {"value": value})


@given(st.data())
def test_verdicts_are_those_of_jsonschema(data: st.DataObject) -> None:
    """Our bounded keywords change no verdict of the reference implementation."""
    schema = thaw(taking(data.draw(TYPES, label="type")).parameters)
    value = data.draw(st.one_of(near(schema), JSON), label="value")
    assert (not violations(schema, value)) == jsonschema.Draft202012Validator(schema).is_valid(value)


@given(st.data())
def test_closing_objects_admits_nothing_new(data: st.DataObject) -> None:
    """A value that fits what is declared fits what Pydantic wrote; `Optional[X]`, declared as X, is narrower too."""
    kind = data.draw(TYPES, label="type")
    ours = thaw(taking(kind).parameters)
    value = data.draw(near(ours["properties"]["value"]), label="value")
    if not violations(ours, {"value": value}):
        assert jsonschema.Draft202012Validator(TypeAdapter(kind).json_schema()).is_valid(value)


@given(TYPES)
def test_a_declaration_is_its_own_copy(kind: Any) -> None:  # noqa: ANN401 - a type form
    """A declaration is canonical JSON, and changing the copy handed out changes nothing."""
    function = taking(kind)
    before = canonical_json(function.parameters)
    function.to_tool()["function"]["parameters"]["properties"].clear()
    assert canonical_json(function.parameters) == before


@given(JSON, JSON)
def test_checking_never_raises(schema: Any, value: Any) -> None:  # noqa: ANN401 - JSON
    """Whatever stands where a schema should, and whatever value: there is a verdict, in words."""
    for violation in violations(schema if isinstance(schema, Mapping) else {"type": schema}, value):
        assert str(violation)


HOSTILE = "a" * 60 + "!"
BOMB: dict[str, Any] = {
    "$ref": "#/$defs/d0",
    "$defs": {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)} | {"d40": {}},
}


@pytest.mark.filterwarnings("ignore::palaver.tools.function.SchemaWarning")
def test_a_hostile_schema_freezes_nothing() -> None:
    """A pattern that backtracks, references that double, a loop and an address: each check ends (within a test's time-out)."""
    cases: list[Any] = [
        ({"properties": {"a": {"pattern": "^(a+)+$"}}}, {"a": HOSTILE}),
        ({"patternProperties": {"^(a+)+$": False}, "additionalProperties": False}, {HOSTILE: 1}),
        ({"patternProperties": {"^(a+)+$": True}, "unevaluatedProperties": False}, {HOSTILE: 1}),
        (BOMB, {}),
        ({"$ref": "#"}, {}),
        ({"$ref": "https://192.0.2.1/nobody.json"}, {}),
    ]
    for schema, value in cases:
        violations(schema, value)
        declared = Function("t", parameters={"type": "object", **schema}, function=lambda **_given: "ran")
        assert run(declared, **value if isinstance(value, dict) else {}).ending in {"done", "arguments"}


def test_patterns_without_linear_time_check_nothing() -> None:
    """Look-around and back-references have no linear-time engine: a tool's pattern with one allows everything, and a warning says so."""
    assert violations({"pattern": r"(a)\1"}, "ab") == []
    with pytest.warns(SchemaWarning, match=r"'t' are not checked for the pattern '\(\?=x\)a'") as warned:
        Function("t", parameters={"type": "object", "properties": {"x": {"type": "string", "pattern": "(?=x)a"}}})
    assert [warning.filename for warning in warned] == [__file__]
    assert [str(each) for each in violations({"pattern": "^b"}, "ab")] == ["'ab' does not match '^b'"]


def test_uncheckable_schema_is_refused() -> None:
    """A format is never obeyed in part: what is malformed or unsupported is refused when it is made."""
    cases: list[Any] = [
        ({"unevaluatedProperties": False}, "unevaluatedProperties"),
        ({"properties": {"a": {"$dynamicRef": "#x"}}}, "dynamicRef"),
        ({"items": {"$ref": "#/$defs/none"}}, "matches nothing"),
        ({"$ref": "https://example.org/other.json"}, "matches nothing"),
        ({"anyOf": [{"type": "text"}]}, "not a JSON schema"),
        ({"pattern": "("}, "not a JSON schema|linear"),
        ({"patternProperties": {"(?=a)b": {}}}, "linear"),
        ({"required": "name"}, "not a JSON schema"),
    ]
    for schema, why in cases:
        with pytest.raises(InvalidInput, match=why):
            require_checkable(schema)


def test_names_and_values_are_not_keywords() -> None:
    """A property called `pattern` and an enumeration that holds `$ref` are data."""
    require_checkable({"properties": {"pattern": {"type": "string"}}, "enum": [{"$ref": "nowhere"}]})
