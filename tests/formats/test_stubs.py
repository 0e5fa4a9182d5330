"""Tools that a recording does not declare are reconstructed from its calls."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from palaver.formats.fields import items, mapping, moment, number, objects, text
from palaver.formats.stubs import Stubs, no_instructions

ARGUMENTS = st.dictionaries(
    st.sampled_from(["a", "b", "c"]),
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.lists(st.integers())
    | st.just({"x": 1}),
)
KINDS: dict[str, Any] = {
    "null": lambda v: v is None,
    "boolean": lambda v: isinstance(v, bool),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": lambda v: isinstance(v, int | float) and not isinstance(v, bool),
    "string": lambda v: isinstance(v, str),
    "array": lambda v: isinstance(v, list),
    "object": lambda v: isinstance(v, dict),
}


def accepts(schema: Any, args: dict[str, Any]) -> bool:  # noqa: ANN401 - a JSON schema
    """Judge arguments by the part of JSON schema that stubs use."""
    kinds = {
        name: [found["type"]] if isinstance(found["type"], str) else found["type"]
        for name, found in schema["properties"].items()
    }
    typed = all(any(KINDS[kind](value) for kind in kinds[name]) for name, value in args.items())
    return typed and all(name in args for name in schema.get("required", ()))


@given(st.lists(ARGUMENTS, min_size=1, max_size=6))
def test_a_stub_accepts_every_call_it_was_made_from(calls: list[dict[str, Any]]) -> None:
    """Whatever the calls had, the schema allows; what all of them had, it requires."""
    stubs = Stubs()
    for args in calls:
        stubs.see("tool", args)
    toolset = stubs.toolset(0.0)
    assert toolset is not None
    (tool,) = toolset.tools
    assert tool.stub
    assert all(accepts(tool.parameters, args) for args in calls)
    assert set(tool.parameters.get("required", ())) == set.intersection(*(set(args) for args in calls))


def test_a_declaration_in_the_recording_is_no_stub() -> None:
    """A tool that the recording declares keeps its own schema; only the others are reported."""
    stubs = Stubs()
    stubs.see("known", {"a": 1})
    stubs.see("other", "no object")
    stubs.see("", {})
    stubs.declare({"name": "known", "description": "Knows.", "parameters": {"type": "object", "properties": {"a": {}}}})
    stubs.declare({"name": "never called"})
    toolset = stubs.toolset(3.0)
    assert toolset is not None
    assert [(tool.name, tool.stub) for tool in toolset.tools] == [
        ("known", False),
        ("other", True),
        ("never called", False),
    ]
    assert [(loss.code, loss.severity) for loss in stubs.losses("whole file")] == [("stub", "note")]
    assert Stubs().toolset(0.0) is None
    assert list(Stubs().losses("whole file")) == []


def test_what_a_recording_never_holds_is_a_note() -> None:
    """That the instructions are not in the recording is worth knowing; nothing was lost by the import."""
    assert no_instructions("whole file").severity == "note"


def test_fields_of_the_wrong_kind_are_as_good_as_none() -> None:
    """Reading a field never raises, and never gives what the rest of the program cannot hold."""
    record = {
        "s": "a\ud800",
        "n": 3.7,
        "b": True,
        "m": {"x": 1},
        "l": [1, {"y": 2}],
        "huge": 1e300,
        "nan": float("nan"),
    }
    assert (text(record, "s"), text(record, "n"), text(record, "none")) == ("a\ufffd", "", "")
    assert (
        number(record, "n"),
        number(record, "b"),
        number(record, "huge"),
        number(record, "nan"),
        number(record, "s"),
    ) == (3, 0, 0, 0, 0)
    assert (mapping(record, "m"), mapping(record, "l")) == ({"x": 1}, {})
    assert (items(record, "l"), items(record, "m"), objects(record, "l")) == ([1, {"y": 2}], (), [{"y": 2}])


def test_times_are_read_in_all_their_forms() -> None:
    """ISO 8601 with and without an offset, seconds, milliseconds; anything else is no time."""
    assert (
        moment("2026-01-02T03:04:05Z")
        == moment("2026-01-02T04:04:05+01:00")
        == moment("2026-01-02T03:04:05")
        == 1767323045.0
    )
    assert moment(1767323045) == moment(1767323045000) == 1767323045.0
    odd: tuple[object, ...] = ("yesterday", None, True, -1, 1e300, float("nan"), {}, "9999-99-99")
    assert [moment(value) for value in odd] == [0.0] * 8
