"""Entries and bytes: what was written is read back, also what a newer version wrote."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from palaver.errors import InvalidInput
from palaver.ids import DialogId
from palaver.log import (
    Compaction,
    Custom,
    Derived,
    Entry,
    Handle,
    Inbox,
    Instructions,
    MessageEntry,
    Run,
    Section,
    Source,
    UnknownEntry,
    decode_entry,
    draft,
    next_header,
)
from palaver.messages import (
    AssistantMessage,
    CustomMessage,
    ImageContent,
    Media,
    Message,
    Speaker,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolResultContent,
    UserMessage,
)

_DIALOG = DialogId("0123456789abcdef0123456789abcdef")
_ENTRIES: list[Entry] = [
    MessageEntry(message=UserMessage.text("hi")),
    MessageEntry(message=UserMessage.text("hi"), source=Source(format="pi", record="x", ordinal=3)),
    MessageEntry(message=AssistantMessage(contents=())),
    Inbox(message=UserMessage.text("later")),
    Instructions(sections=(Section(name="a", text="b"),)),
    Custom(custom_type="x", data={"deep": [1, {"a": None}]}),
    Compaction(base=4, pieces=(Derived(text="s"), Run(dialog=_DIALOG, start=0, stop=2)), policy="p"),
]


def test_law_2_what_was_written_is_read() -> None:
    """Law 2: decoding what was encoded returns the value, and encoding that returns the bytes."""
    for entry in _ENTRIES:
        body = draft(entry)[0].body
        assert decode_entry(body) == entry
        assert draft(decode_entry(body))[0].body == body, entry


_DAMAGE: list[dict[str, object]] = [{}, {"at": 10**400}, {"at": "x"}, {"at": None}, {"novel": 1}, {"source": {"a": 3}}]
_SOURCES: list[object] = [None, {"format": "pi"}, {"format": "pi", "record": "x", "ordinal": 2}, {"record": "x"}, 7]


def test_law_2_message_entries_are_read_as_validated() -> None:
    """Law 2: reading a message entry gives what validation gives, or its error."""
    written = json.loads(draft(MessageEntry(message=UserMessage.text("hi")))[0].body)
    for source, damage in product(_SOURCES, _DAMAGE):
        raw = written | {"source": source} | damage
        body = json.dumps(raw).encode()
        try:
            expected = MessageEntry.model_validate(raw)
        except ValidationError:
            with pytest.raises(InvalidInput) as refused:
                decode_entry(body)
            assert isinstance(refused.value.__cause__, ValidationError), raw
            continue
        found = decode_entry(body)
        assert found == expected, raw
        assert (repr(found), found.model_fields_set) == (repr(expected), expected.model_fields_set), raw
        assert found.model_dump() == expected.model_dump(), raw


_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"))  # what a store of any version can hold
_NAMES = _TEXT.filter(lambda name: name and name not in {*UnknownEntry.model_fields})


@given(st.dictionaries(_NAMES, st.one_of(st.none(), st.integers(), _TEXT, st.lists(st.booleans())), max_size=4))
def test_law_2_unknown_kind_keeps_every_field(extra: dict[str, object]) -> None:
    """Law 2: an entry of a kind from a newer version is read, and written back with every field it had."""
    raw = {**extra, "kind": "from_the_future", "at": 1.5}
    entry = decode_entry(json.dumps(raw).encode())

    assert isinstance(entry, UnknownEntry)
    assert json.loads(draft(entry)[0].body) == raw


def test_law_2_unknown_field_of_a_known_kind_is_kept() -> None:
    """Law 2: a field that a newer version added to a known kind survives."""
    body = b'{"at":1.0,"custom_type":"x","kind":"custom","novel":{"a":null},"void":null}'

    assert draft(decode_entry(body))[0].body == body


def test_bytes_that_are_not_an_entry_are_refused() -> None:
    """Damaged bytes are a typed error, never half an entry."""
    for bad in (b"", b"\xff\xfe", b"[]", b"3", b'{"no":"kind"}', b'{"kind":3}'):
        with pytest.raises(InvalidInput):
            decode_entry(bad)


@given(st.integers(0, 10**9), st.none() | st.integers(0, 10**5))
def test_printed_handle_is_read_back(seq: int, block: int | None) -> None:
    """The printed form names the same place, with the first 12 digits of the dialog; any other text is a typed error."""
    read = Handle.parse(str(Handle(_DIALOG, seq, block)))

    assert (read.seq, read.block) == (seq, block)
    assert read.dialog == _DIALOG[:12]
    for bad in ("", "x", "abcdef", "abcdef:", "abcdef:1:", "ABCDEF:1", "abcdef:-1", "../etc:1", "abcdef:1:2:3"):
        with pytest.raises(InvalidInput):
            Handle.parse(bad)


def test_no_string_of_an_entry_poisons_the_log() -> None:
    """D15: lone surrogates, NULs and numbers that are not finite are replaced where they enter; nothing raises later."""
    entry = Custom.model_validate({"custom_type": "x\ud800", "data": {"k\0": ["\udfff"]}, "novel": {"a": "\ud800"}})
    assert decode_entry(draft(entry)[0].body) == entry
    draft(entry)[0].body.decode("utf-8", "strict")
    read = decode_entry(b'{"at":1.0,"custom_type":"x\\ud800","data":[NaN],"kind":"custom"}')
    assert isinstance(read, Custom)
    assert (read.custom_type, read.data) == ("x\ufffd", [None])


_EXACT: tuple[Any, ...] = (
    *(None, True, 0, -0.0, 1e300, 10**400, "", "\0", "\ud800", "a\udfff\0b", "ä€😀", [], {}, [[[]]]),
    {"z": 1, "a": {"\0": "\ud800", "": [None]}, "m": 2.50},
)


def test_raw_json_comes_back_as_it_went_in() -> None:
    """Law 2: a value kept with `exact` comes back equal after the log: NUL, lone surrogates, numbers, and keys in their order."""
    for value in _EXACT:
        read = decode_entry(draft(Custom.exact("x", value))[0].body)
        assert isinstance(read, Custom)
        assert json.dumps(read.value) == json.dumps(value)
        assert draft(read)[0].body == draft(Custom.exact("x", value, at=read.at))[0].body
    assert Custom(custom_type="x", data=[1]).value == [1]


@pytest.mark.parametrize("value", [float("nan"), [float("inf")], (1,), {1: 2}, {"a": object()}, b"", "\ud83d\ude00"])
def test_raw_json_that_would_change_is_refused(value: object) -> None:
    """What JSON cannot say, or gives back as something else, raises InvalidInput."""
    with pytest.raises(InvalidInput):
        Custom.exact("x", value)
    for raw in ("", "{", "[NaN]", '"ä"', "Infinity"):
        with pytest.raises(ValidationError):
            Custom(custom_type="x", raw=raw)


def test_law_3_values_of_an_entry_cannot_be_changed() -> None:
    """Law 3: data handed out by an entry is read-only all the way down."""
    entry = Custom(custom_type="x", data={"deep": [1]})

    with pytest.raises(TypeError):
        entry.data["deep"].append(2)
    with pytest.raises(ValidationError):
        entry.custom_type = "y"  # type: ignore[misc]


_SHAPES: list[tuple[Message, str, str]] = [
    (UserMessage.text(" \n"), "", ""),
    (UserMessage(contents=(TextContent("OBSERVATION"),), speaker=Speaker.TOOL), "t", "tool"),
    (UserMessage(contents=(ToolResultContent(id="a", content="ok"), TextContent(""), TextContent("b"))), "r.t", ""),
    (AssistantMessage(contents=(ThinkingContent("hm"), TextContent("yes"), ToolCallContent(id="a"))), "htc", ""),
    (AssistantMessage(contents=(ThinkingContent(), TextContent(" "))), "", ""),
    (AssistantMessage(contents=(), error="overloaded"), "!", ""),
    (UserMessage(contents=(ImageContent(images=(Media(url="https://example.org/a.png"),)),)), "m", ""),
    (CustomMessage(custom_type="x", content="seen", in_context=True), "t", ""),
    (CustomMessage(custom_type="x", content="unseen"), "", ""),
]


def test_draft_has_the_shape_and_the_speaker() -> None:
    """One letter for each block, nothing for a message that views do not show; who speaks where it is not the role's default."""
    for message, letters, speaker in _SHAPES:
        ready = draft(MessageEntry(message=message))[0]
        assert (ready.blocks, ready.speaker) == (letters, speaker), message
        assert next_header(ready)[-3:-1] == (speaker, letters), message
