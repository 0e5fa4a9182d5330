"""Laws of schemas: what a model is told is what is taken."""

import inspect
from typing import Any

import jsonschema  # type: ignore[import-untyped] # its stubs are a package of their own
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from palaver.messages import canonical_json, thaw
from palaver.tools import CallContext, Function
from palaver.tools.binding import UnfitArgumentsError
from palaver.tools.judging import expected, faults, fits, shown
from palaver.tools.mending import mended
from tests.tools.kinds import JSON, TYPES, near


def taking(kind: Any, *, required: bool = True) -> Function:  # noqa: ANN401 - a type form
    """Make a tool with one parameter of a type."""

    def take(**given: Any) -> dict[str, Any]:  # noqa: ANN401 - the values as they were bound
        return given

    parameter = inspect.Parameter(
        "value", inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=inspect.Parameter.empty if required else None
    )
    take.__signature__ = inspect.Signature([parameter])  # type: ignore[attr-defined]
    return Function.from_callable(take)


@given(st.data())
def test_validation_takes_exactly_what_the_schema_says(data: st.DataObject) -> None:
    """For any type and any JSON value: the declared schema takes it if and only if the call can be made."""
    function = taking(data.draw(TYPES, label="type"))
    schema = thaw(function.parameters)
    value = data.draw(near(schema["properties"]["value"]), label="value")
    assert function.binding is not None
    try:
        function.binding.call({"value": value}, CallContext())
    except UnfitArgumentsError:
        taken = False
    else:
        taken = True
    if fits(schema, {"value": value}):
        assert taken
    else:
        assert not taken or _ignores_what_the_schema_closes(schema, value)


def _ignores_what_the_schema_closes(schema: Any, value: Any) -> bool:  # noqa: ANN401 - a schema, and JSON
    """Tell whether nothing but the closing of objects stands in the way, which Pydantic leaves open and we close on purpose."""

    def open_up(part: Any) -> Any:  # noqa: ANN401 - any part of a schema
        if isinstance(part, dict):
            return {
                word: open_up(each) for word, each in part.items() if (word, each) != ("additionalProperties", False)
            }
        return [open_up(each) for each in part] if isinstance(part, list) else part

    return fits(open_up(schema), {"value": value})


@given(st.data())
def test_values_are_judged_as_others_judge_them(data: st.DataObject) -> None:
    """For any such schema and value, our verdict is that of the `jsonschema` package."""
    schema = thaw(taking(data.draw(TYPES, label="type"), required=data.draw(st.booleans())).parameters)
    value = data.draw(st.one_of(near(schema), JSON), label="value")
    theirs = jsonschema.Draft202012Validator(schema).is_valid(value)
    assert fits(schema, value) == theirs


@given(st.data())
def test_pydantic_reads_the_schema_it_wrote(data: st.DataObject) -> None:
    """What tidying changes of Pydantic's schema leaves out no value that fitted, but for the closing of objects."""
    kind = data.draw(TYPES, label="type")
    written = TypeAdapter(kind).json_schema()
    ours = thaw(taking(kind).parameters)["properties"]["value"]
    value = data.draw(near(ours), label="value")
    if fits(ours, value):
        assert jsonschema.Draft202012Validator(written).is_valid(value)


@given(st.data())
def test_mending_only_helps(data: st.DataObject) -> None:
    """What fits is left as it is; there is never more wrong than before, and mending again changes nothing."""
    schema = thaw(taking(data.draw(TYPES), required=data.draw(st.booleans())).parameters)
    value = data.draw(
        st.dictionaries(st.sampled_from(["value", "other"]), near(schema["properties"]["value"]), max_size=2)
    )
    better = mended(schema, value)
    if fits(schema, value):
        assert better is value
    assert len(list(faults(schema, better))) <= len(list(faults(schema, value)))
    assert mended(schema, better) == better


@given(TYPES)
def test_a_schema_is_json_and_its_own_copy(kind: Any) -> None:  # noqa: ANN401 - a type form
    """A declaration is canonical JSON, and changing the copy handed out changes nothing."""
    function = taking(kind)
    before = canonical_json(function.parameters)
    function.to_tool()["function"]["parameters"]["properties"].clear()
    assert canonical_json(function.parameters) == before
    assert len(expected(function.parameters)) > 0


@given(JSON, JSON)
def test_judging_never_raises(schema: Any, value: Any) -> None:  # noqa: ANN401 - JSON
    """Whatever stands where a schema should, and whatever value: there is a verdict, in words."""
    given_schema = schema if isinstance(schema, dict | bool) else {"type": schema}
    for fault in faults(given_schema, value):
        assert str(fault)
    assert shown(value)
