"""What is replaced where values enter, and how it is recorded."""

import datetime as dt
import enum
import json
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import PurePosixPath

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
    decode,
    encode,
    freeze,
    restore,
    thaw,
)
from tests.messages import strategies as some


def test_surrogates_and_nuls_are_replaced_and_recorded() -> None:
    """D15: one code point for one, as runs, in every string of a block; a surrogate pair is one character and stays."""
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
        Change("contents[1].args.\ufffdkey", "key", original='"\\u0000key"'),
        Change("contents[1].args.\ufffdkey.b c", "surrogate", ((0, 1, 0xDFFF),)),
    )
    assert Message(content="\U0001f600").normalized == ()
    assert Message(role="assistant", tool_calls=[{"name": "f", "arguments": '{"a":"\\ud83d\\ude00"}'}]).normalized == ()


def test_changes_in_results_are_seen_from_the_message() -> None:
    """The place leads through the result's blocks; a copy with a new value has nothing to report about the old one."""
    result = ToolResultContent("c1", [TextContent("\0"), TextContent("fine")])
    (change,) = Message(role="tool", contents=[result]).normalized
    assert (change.place, change.kind) == ("contents[0].content[0].content", "nul")
    message = Message(content="x", name="n\0", error="e\0")
    assert {change.root for change in message.model_copy(update={"name": "m"}).normalized} == {"error"}


@given(some.dirty_json())
def test_frozen_values_are_json(value: object) -> None:
    """Whatever goes in, what comes out is equal after a JSON round trip, and freezing it again changes nothing."""
    frozen = freeze(value, "here", [])
    assert json.loads(canonical_json(frozen)) == json.loads(json.dumps(frozen)) == frozen
    again: list[Change] = []
    assert freeze(thaw(frozen), "here", again) == frozen
    assert again == []


@given(some.json_objects())
def test_json_is_frozen_unchanged(value: dict[str, object]) -> None:
    """What needs no change gets none: equal, unreported, and thawing returns plain containers."""
    found: list[Change] = []
    assert freeze(value, "here", found) == value == thaw(FrozenDict(value))
    assert found == []


@given(st.lists(some.dirty_texts(2), unique=True, max_size=6))
def test_keys_stay_apart_once_cleaned(keys: list[str]) -> None:
    """No item of a mapping is lost, and every key can be restored."""
    found: list[Change] = []
    frozen = freeze(dict.fromkeys(keys, 1), "", found)
    kept = {change.place: json.loads(change.original) for change in found}
    assert [kept.get(key, key) for key in frozen] == keys


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
    """An object that cannot be looked at."""

    def __str__(self) -> str:
        """Refuse."""
        raise RuntimeError("no")


def test_r18_what_is_not_json_is_replaced() -> None:
    """A tool may return anything; what represents it is stored, and the replacement recorded."""
    cases: list[tuple[object, object, str | None]] = [
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
    ]
    for value, expected, kind in cases:
        found: list[Change] = []
        assert freeze({"it": value}, "", found) == {"it": expected}
        assert {change.kind for change in found} == ({kind} if kind else set())
        assert all(change.place.startswith("it") for change in found)


def test_values_nested_too_deeply_are_refused() -> None:
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


def test_a_frozen_mapping_is_clean() -> None:
    """The type itself promises it: plain containers inside are frozen, what is not JSON is refused."""
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


def test_r10_values_are_copied_from_the_caller() -> None:
    """A caller's dict that changes later changes no message."""
    metadata = {"tags": ["a"]}
    message = Message.from_dict({"content": "x", "metadata": metadata, "later": metadata})
    metadata["tags"].append("b")
    assert message.metadata == {"tags": ["a"]}
    assert message.model_extra == {"later": {"tags": ["a"]}}


def test_law_2_cleaned_arguments_are_recorded_once() -> None:
    """A model that escapes half a pair in its JSON cannot brick the session (claude-code 68325); storing changes nothing."""
    raw = '{"b": "echo 현\\ud99c", "a": "\\u0000", "n": 1e999}'
    message: Message = AssistantMessage(contents=(ToolCallContent(id="c", name="s", args=raw),))
    again = message
    for _ in range(3):
        again = decode(encode(again)[0])
        assert again == message
    (call,) = again.tool_calls()
    assert call.arguments == raw
    assert call.args == {"b": "echo 현\ufffd", "a": "\ufffd", "n": None}
    assert [change.place for change in call.changes] == ["args.b", "args.a", "args.n"]
    assert restore(call.args["b"], call.changes[:1]) == "echo 현\ud99c"


def test_escaped_nuls_and_surrogates_are_found() -> None:
    """Bytes that escape what must be replaced are cleaned when they are read, or refused by the JSON reader."""
    for spelt in ["\\u0000", "\\ud800", "\\uDFFF"]:
        body = (
            f'{{"role":"user","contents":[{{"type":"text","content":"a{spelt}"}}],"id":"m","timestamp":1.0}}'.encode()
        )
        try:
            message = decode(body)
        except InvalidMessage:
            assert "d" in spelt.lower()
            return
        assert message.text_content() == "a\ufffd"
        assert message.normalized
