"""What the edge changes, how it says so, and what it leaves alone."""

import datetime as dt
import enum
import json
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from palaver.errors import InvalidMessage
from palaver.messages import (
    AssistantMessage,
    Change,
    FrozenDict,
    FrozenList,
    Message,
    TextContent,
    ToolCallContent,
    ToolResultContent,
    canonical_json,
    clean_text,
    decode,
    encode,
    freeze,
    restore,
    thaw,
)
from palaver.testing import strategies as some


def test_a_lone_surrogate_and_a_nul_become_replacement_characters_and_are_reported() -> None:
    """The demand's bricked sessions: one code point for one, runs instead of single offsets, in every string of a block."""
    message = Message(
        role="assistant",
        content="a\ud800\ud800b\0\udc00",
        tool_calls=[{"id": "c\0", "name": "f", "arguments": {"path": ["x\0y"], "\0key": {"b c": "\udfff"}}}],
        name="n\0",
    )
    assert message.content == "a\ufffd\ufffdb\ufffd\ufffd"
    assert message.tool_calls()[0].args == {"path": ["x\ufffdy"], "\ufffdkey": {"b c": "\ufffd"}}
    assert message.normalized == (
        Change("name", "nul", ((1, 1, 0),)),
        Change("contents[0].content", "surrogate", ((1, 2, 0xD800), (5, 1, 0xDC00))),
        Change("contents[0].content", "nul", ((4, 1, 0),)),
        Change("contents[1].id", "nul", ((1, 1, 0),)),
        Change("contents[1].args.path[0]", "nul", ((1, 1, 0),)),
        Change('contents[1].args["\ufffdkey"]', "key", ((0, 1, 0),)),
        Change('contents[1].args["\ufffdkey"]["b c"]', "surrogate", ((0, 1, 0xDFFF),)),
    )


def test_a_surrogate_pair_is_one_character_and_stays() -> None:
    """Only lone surrogates are foreign to UTF-8; what a pair meant arrives as one character and is kept."""
    assert Message(content="\U0001f600").normalized == ()
    assert Message(role="assistant", tool_calls=[{"name": "f", "arguments": '{"a":"\\ud83d\\ude00"}'}]).normalized == ()


def test_changes_inside_results_are_seen_from_the_message() -> None:
    """The place leads through the result's blocks; a block alone knows the place within itself."""
    result = ToolResultContent("c1", [TextContent("\0"), TextContent("fine")])
    inner = result.content[0]
    assert isinstance(inner, TextContent)
    assert inner.changes == (Change("content", "nul", ((0, 1, 0),)),)
    (change,) = Message(role="tool", contents=[result]).normalized
    assert (change.place, change.kind) == ("contents[0].content[0].content", "nul")


def test_a_changed_string_that_is_replaced_is_no_longer_reported() -> None:
    """A copy with a new name has nothing to report about the old one."""
    message = Message(content="x", name="n\0", error="e\0")
    assert {change.root for change in message.model_copy(update={"name": "m"}).normalized} == {"error"}


@given(some.dirty_texts(100))
def test_restoring_undoes_cleaning(text: str) -> None:
    """restore(clean_text(x)) == x, and a clean text has nothing to restore."""
    found: list[Change] = []
    clean = clean_text(text, "here", found)
    assert restore(clean, found) == text
    assert (not found) == (clean == text)


@given(some.dirty_json())
def test_freezing_gives_json_that_any_reader_reads_back(value: object) -> None:
    """Whatever goes in, what comes out is JSON, equal after a round trip, and frozen once is frozen for good."""
    found: list[Change] = []
    frozen = freeze(value, "here", found)
    assert json.loads(canonical_json(frozen)) == frozen
    assert json.loads(json.dumps(frozen)) == frozen
    again: list[Change] = []
    assert freeze(thaw(frozen), "here", again) == frozen
    assert again == []


@given(some.json_objects())
def test_json_is_frozen_as_it_is(value: dict[str, object]) -> None:
    """What needs no change gets none: equal, unreported, and thawing gives plain containers."""
    found: list[Change] = []
    assert freeze(value, "here", found) == value == thaw(FrozenDict(value))
    assert found == []


@given(st.lists(some.dirty_texts(2), unique=True, max_size=6))
def test_keys_that_look_the_same_once_cleaned_stay_apart(keys: list[str]) -> None:
    """No entry of a mapping is lost, and every key can be restored."""
    found: list[Change] = []
    frozen = freeze(dict.fromkeys(keys, 1), "", found)
    assert len(frozen) == len(keys)
    kept = {change.place: change for change in found}
    back = []
    for key in frozen:
        place = key if key.isidentifier() else '["' + key.replace("\\", "\\\\").replace('"', '\\"') + '"]'
        back.append(restore(key, [kept[place]] if place in kept else []))
    assert back == keys


class Colour(enum.Enum):
    """Somebody's enum."""

    RED = "red"


@dataclass
class Point:
    """Somebody's dataclass."""

    x: int
    y: float


class Model(BaseModel):
    """Somebody's model."""

    when: dt.date


class Hostile:
    """An object that will not be looked at."""

    def __str__(self) -> str:
        """Refuse."""
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("value", "expected", "kind"),
    [
        (float("nan"), None, "nonfinite"),
        (float("-inf"), None, "nonfinite"),
        (10**5000, hex(10**5000), "object"),
        (b"\x00\xff", "AP8=", "object"),
        ({3, 1}, [1, 3], "object"),
        (Point(1, 2.5), {"x": 1, "y": 2.5}, "object"),
        (Model(when=dt.date(2026, 1, 2)), {"when": "2026-01-02"}, "object"),
        (dt.datetime(2026, 1, 2, tzinfo=dt.UTC), "2026-01-02T00:00:00+00:00", "object"),
        (PurePosixPath("a/b"), "a/b", "object"),
        (Hostile(), "<Hostile>", "object"),
        (int, "<class 'int'>", "object"),
        ({1: "a", False: "b", None: "c"}, {"1": "a", "false": "b", "null": "c"}, "key"),
        (Colour.RED, "red", None),
        (OrderedDict(b=1, a=(1, 2)), {"b": 1, "a": [1, 2]}, None),
    ],
    ids=range(14),
)
def test_what_json_cannot_say_is_replaced_by_what_it_can(value: object, expected: object, kind: str | None) -> None:
    """R18: a tool may return anything; what stands for it is stored, and that it does is recorded."""
    found: list[Change] = []
    assert freeze({"it": value}, "", found) == {"it": expected}
    assert {change.kind for change in found} == ({kind} if kind else set())
    assert all(change.place.startswith("it") for change in found)


def test_values_nested_too_deeply_are_refused_before_a_reader_chokes_on_them() -> None:
    """The limit lies below that of JSON readers, so that whatever is stored can be read; cycles end there too."""
    deep: list[object] = []
    for _ in range(95):
        deep = [deep]
    kept = Message(content="x", metadata={"deep": deep})
    assert Message.from_dict(kept.to_dict()) == kept
    with pytest.raises(InvalidMessage, match="levels deep"):
        Message(content="x", metadata={"deep": [[deep]]})
    deep.append(deep)
    with pytest.raises(InvalidMessage, match="levels deep"):
        Message(content="x", metadata={"cycle": deep})


def test_a_frozen_mapping_is_clean_whoever_makes_it() -> None:
    """The type itself promises it: plain containers inside are frozen, what is no JSON is refused."""
    inner: list[int] = [1]
    made = FrozenDict({"a": inner, "b": {"c": (2,)}})
    inner.append(2)
    assert made == {"a": [1], "b": {"c": [2]}}
    assert isinstance(made["b"], FrozenDict)
    assert isinstance(made["a"], FrozenList)
    assert FrozenList([{"a": []}])[0]["a"] == []
    for bad in ({"a": "\0"}, {"a": float("nan")}, {1: 2}, {"a": b""}):
        with pytest.raises(InvalidMessage, match="no place in JSON"):
            FrozenDict(bad)  # type: ignore[arg-type]


def test_what_a_program_passes_is_copied_never_kept() -> None:
    """R10: a caller's dict that changes later changes no message."""
    metadata = {"tags": ["a"]}
    more: dict[str, Any] = {"later": metadata}
    message = Message(content="x", metadata=metadata, **more)
    metadata["tags"].append("b")
    assert message.metadata == {"tags": ["a"]}
    assert message.model_extra == {"later": {"tags": ["a"]}}


def test_arguments_of_a_model_are_normalised_too_and_the_raw_text_kept() -> None:
    r"""A model that writes \ud800 inside its JSON cannot brick the session (claude-code 68325)."""
    raw = '{"path": "\\ud800", "n": 1e999}'
    call = ToolCallContent("c1", "f", args=raw)
    assert call.args == {"path": "\ufffd", "n": None}
    assert {(change.place, change.kind) for change in call.changes} == {
        ("args.path", "surrogate"),
        ("args.n", "nonfinite"),
    }
    assert call.arguments == raw


def test_law_2_arguments_that_escape_a_surrogate_are_recorded_once() -> None:
    """A call whose text escapes half a pair and a NUL says so once, however often it is stored and loaded; the text is kept as it was."""
    raw = '{"b": "echo 현\\ud99c", "a": "\\u0000"}'
    message: Message = AssistantMessage(contents=(ToolCallContent(id="c", name="s", args=raw),))
    again = message
    for _ in range(3):
        again = decode(encode(again)[0])
        assert again == message
    (call,) = again.tool_calls()
    assert call.arguments == raw
    assert [change.place for change in call.changes] == ["args.b", "args.a"]
    assert restore(call.args["b"], call.changes[:1]) == "echo 현\ud99c"
