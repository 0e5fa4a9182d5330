"""The laws of messages, over any message."""

import copy
import datetime as dt
import json
import pickle
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError

from palaver.errors import InvalidInput, InvalidMessage
from palaver.ids import BlobId
from palaver.messages import (
    AssistantMessage,
    Message,
    Replaced,
    ToolCallContent,
    canonical_json,
    decode,
    encode,
    freeze,
    from_anthropic_dict,
    from_chat_dict,
    hydrate,
    is_plain,
    media_of,
    restore,
    thaw,
)
from palaver.messages.value import Stored
from tests.messages import strategies as some

FIELDS = sorted({*Message.model_fields, "content", "tool_calls", "function_calls", "tool_call_id", "summary", "static"})


@given(some.messages())
def test_law_2_decoding_returns_what_was_encoded(message: Message) -> None:
    """decode(encode(x)) == x with unknown fields; bytes come back as bytes; the stored form is canonical JSON."""
    body, payloads = encode(message)
    again = decode(body)
    assert again == message
    assert type(again) is type(message)
    assert again.model_extra == message.model_extra
    assert encode(again)[0] == body == canonical_json(message)
    assert set(payloads) == {media.digest for media in media_of(message) if media.data is not None}
    assert json.dumps(json.loads(body), sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() == body


@given(some.messages())
def test_law_2_dicts_return_the_message(message: Message) -> None:
    """R18, R205: from_dict(to_dict(x)) == x through real JSON, media with their bytes."""
    fields = json.loads(json.dumps(message.to_dict()))
    again = Message.from_dict(fields)
    assert again == message
    assert [media.data for media in media_of(again)] == [media.data for media in media_of(message)]
    assert set(type(message).model_fields) <= set(fields)


@given(some.messages())
def test_hydrate_loads_every_payload(message: Message) -> None:
    """hydrate(decode(body), payloads) has the bytes the message had; a missing payload raises the loader's error."""
    body, payloads = encode(message)
    if any(not media.url and media.digest not in payloads for media in media_of(message)):
        with pytest.raises(KeyError):
            hydrate(decode(body), lambda digest: payloads[BlobId(digest)])
        return
    again = hydrate(decode(body), lambda digest: payloads[BlobId(digest)])
    expected = [None if media.url else payloads[BlobId(media.digest)] for media in media_of(message)]
    assert [media.data for media in media_of(again)] == expected
    assert again == message


class Holder(BaseModel):
    """Somebody's model with messages in it."""

    one: Message
    many: tuple[Message, ...] = ()


@given(some.messages())
def test_every_way_in_returns_the_same_message(message: Message) -> None:
    """DESIGN decision 1: model_validate, JSON, fields, copies and pickles keep class and value."""
    ways = [
        Message.model_validate(message),
        Message.model_validate(message.model_dump()),
        Message.model_validate_json(message.model_dump_json()),
        type(message).model_validate(message.model_dump()),
        TypeAdapter(Message).validate_python(message.model_dump()),
        Holder.model_validate_json(Holder(one=message, many=(message,)).model_dump_json()).many[0],
        copy.copy(message),
        copy.deepcopy(message),
        message.model_copy(deep=True),
        message.model_copy(update={"error": message.error}),
        pickle.loads(pickle.dumps(message)),  # noqa: S301 - our own bytes
    ]
    assert all(type(again) is type(message) for again in ways)
    assert all(again == message for again in ways)
    assert {hash(again) for again in ways} == {hash(message)}
    other = message.model_copy(update={"error": message.error + "!"})
    assert encode(other)[0] != encode(message)[0]


CHANGES: dict[type, str] = {
    dict: "__setitem__ __delitem__ __ior__ update setdefault pop popitem clear",
    list: "__setitem__ __delitem__ __iadd__ __imul__ append extend insert pop remove reverse sort clear",
}


def everything_in(value: object) -> Iterator[object]:
    """List a value and all it hands out, down to the last string."""
    yield value
    parts: Any = value if isinstance(value, list | tuple) else ()
    if isinstance(value, BaseModel):
        parts = [*(getattr(value, name) for name in type(value).model_fields), value.model_extra]
    elif isinstance(value, Mapping):
        parts = [*value.keys(), *value.values()]
    for part in parts:
        yield from everything_in(part)


@given(some.messages())
def test_law_3_nothing_handed_out_can_change(message: Message) -> None:
    """D11, R29, R335: fields, mappings, lists and extras inside a message refuse every change."""
    before = encode(message)[0]
    for thing in everything_in(message):
        assert type(thing) not in {dict, list, set}
        if isinstance(thing, BaseModel):
            with pytest.raises(ValidationError):
                thing.type = "other"  # type: ignore[attr-defined]
        kind = dict if isinstance(thing, dict) else list if isinstance(thing, list) else type(thing)
        for method in CHANGES.get(kind, "").split():
            with pytest.raises(TypeError, match="cannot change"):
                getattr(thing, method)()
    message.to_dict().clear()
    if isinstance(message.content, list):
        message.content.append({})
    assert encode(message)[0] == before


@given(
    st.dictionaries(st.sampled_from(FIELDS) | some.dirty_texts(8), some.dirty_json(), max_size=6),
    st.sampled_from(["user", "tool", "assistant", "custom", 3, None]),
)
def test_any_fields_are_a_message_or_refused(fields: dict[str, Any], role: object) -> None:
    """Input of any kind returns a message fit to be stored, or raises InvalidInput; never another exception."""
    for read in (Message.from_dict, from_chat_dict, from_anthropic_dict, lambda given: Message(**given)):
        try:
            message = read({**fields, "role": role})
        except InvalidInput:
            continue
        assert decode(encode(message)[0]) == message


_MOSTLY = st.sampled_from(["type", "content", "role", "id", "args", "name", "usage", "timestamp", "contents", "model"])


@given(some.messages(), st.lists(st.tuples(_MOSTLY, some.dirty_json()), max_size=3), st.booleans())
def test_stored_fields_read_as_validation_reads_them(
    message: Message, wrong: list[tuple[str, Any]], within: bool
) -> None:
    """The short way for clean fields returns what full validation returns, damaged ones included, or refuses."""
    fields = json.loads(encode(message)[0])
    place = fields["contents"][0] if within and fields.get("contents") else fields
    place |= dict(wrong)
    try:
        body = json.dumps(fields, allow_nan=False).encode()
    except (TypeError, ValueError):
        return
    fields = json.loads(body)
    if not is_plain(body) or "id" not in fields or "timestamp" not in fields:
        return
    try:
        found = decode(body)
    except InvalidInput:
        return
    assert decode(encode(found)[0]) == found
    if not wrong:
        assert found == Message.from_dict(fields) == message


@given(some.chat_dicts())
def test_no_key_of_a_chat_dict_is_lost(given_dict: dict[str, Any]) -> None:
    """Every key is a field, a block, or an extra under its own name or ``source_`` and its name."""
    message = from_chat_dict(given_dict)
    for key in set(given_dict) - {"role", "content", "name", "tool_calls", "tool_call_id"}:
        assert key in message.model_extra or f"source_{key}" in message.model_extra
    said = given_dict.get("content")
    if isinstance(said, str):
        assert restored(message, message.content, "content") == said
    calls = given_dict.get("tool_calls") or []
    for call, source in zip(message.tool_calls(), calls, strict=True):
        where = f"contents[{message.contents.index(call)}]"
        raw = restored(message, call.arguments, f"{where}.raw_args")
        assert raw == source["function"]["arguments"] or call.changes
    assert decode(encode(message)[0]) == message


def restored(message: Message, text: object, place: str) -> str:
    """Undo what was replaced in one string of a message."""
    assert isinstance(text, str)
    return restore(text, [change for change in message.normalized if change.place.endswith(place)])


@given(some.dirty_texts(100))
def test_cleaning_can_be_undone_everywhere(text: str) -> None:
    """One code point for one; restore() returns the original of text, arguments and metadata from ``normalized``."""
    message = Message(
        role="assistant",
        content=text,
        tool_calls=[{"id": text, "name": "f", "arguments": {"a": [text]}}],
        metadata={"b": {"c": text}},
        name=text or "n",
    )
    (call,) = message.tool_calls()
    assert len(message.text_content()) == len(text)
    message.text_content().encode()
    for found, place in (
        (message.content, "contents[0].content"),
        (call.id, "contents[1].id"),
        (call.args["a"][0], "contents[1].args.a[0]"),
        (message.metadata["b"]["c"], "metadata.b.c"),
    ):
        assert "\0" not in str(found)
        assert restored(message, found, place) == text
    assert decode(encode(message)[0]).normalized == message.normalized


@given(some.messages(), some.clean_texts())
def test_a_copy_replaces_only_what_was_said(message: Message, text: str) -> None:
    """C1: content is replaced through a copy; thinking and calls stay, and derived fields follow."""
    copied = message.model_copy(update={"content": text})
    assert type(copied) is type(message)
    assert (copied.role, copied.id) == (message.role, message.id)
    assert (copied.thinking(), copied.tool_calls()) == (message.thinking(), message.tool_calls())
    assert copied.content == text
    assert decode(encode(copied)[0]) == copied


# --- what is replaced where values enter, and how it is recorded ---------------------------------------------------------


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
        Replaced("name", "nul", ((1, 1, 0),)),
        Replaced("contents[0].content", "surrogate", ((1, 2, 0xD800), (5, 1, 0xDC00))),
        Replaced("contents[0].content", "nul", ((4, 1, 0),)),
        Replaced("contents[1].id", "nul", ((1, 1, 0),)),
        Replaced("contents[1].args.path[0]", "nul", ((1, 1, 0),)),
        Replaced("contents[1].args.\ufffdkey", "key", original='"\\u0000key"'),
        Replaced("contents[1].args.\ufffdkey.b c", "surrogate", ((0, 1, 0xDFFF),)),
    )
    assert Message(content="\U0001f600").normalized == ()
    assert Message(role="assistant", tool_calls=[{"name": "f", "arguments": '{"a":"\\ud83d\\ude00"}'}]).normalized == ()


@given(some.dirty_json())
def test_frozen_values_are_json(value: object) -> None:
    """Whatever goes in, what comes out is equal after a JSON round trip, and freezing it again changes nothing."""
    frozen = freeze(value, "here", [])
    assert json.loads(canonical_json(frozen)) == json.loads(json.dumps(frozen)) == frozen
    again: list[Replaced] = []
    assert freeze(thaw(frozen), "here", again) == frozen
    assert again == []


@given(st.lists(some.dirty_texts(2), unique=True, max_size=6))
def test_keys_stay_apart_once_cleaned(keys: list[str]) -> None:
    """No item of a mapping is lost, and every key can be restored as JSON reads it: a pair of surrogates is one character."""
    found: list[Replaced] = []
    frozen = freeze(dict.fromkeys(keys, 1), "", found)
    kept = {change.place: json.loads(change.original) for change in found}
    assert [kept.get(key, key) for key in frozen] == [json.loads(json.dumps(key)) for key in keys]


@dataclass
class Point:
    """Somebody's dataclass."""

    x: int
    y: float


class Hostile:
    """An object that cannot be looked at."""

    def __str__(self) -> str:
        """Refuse."""
        raise RuntimeError("no")


def test_what_is_not_json_is_replaced() -> None:
    """R18: a tool may return anything; what represents it is stored, and the replacement recorded."""
    cases: list[tuple[object, object, str | None]] = [
        (float("nan"), None, "nonfinite"),
        (10**5000, hex(10**5000), "object"),
        (b"\x00\xff", "AP8=", "object"),
        ({3, 1}, [1, 3], "object"),
        (Point(1, 2.5), {"x": 1, "y": 2.5}, "object"),
        (dt.datetime(2026, 1, 2, tzinfo=dt.UTC), "2026-01-02T00:00:00+00:00", "object"),
        (Hostile(), "<Hostile>", "object"),
        ({1: "a", False: "b", None: "c"}, {"1": "a", "false": "b", "null": "c"}, "key"),
        (OrderedDict(b=1, a=(1, 2)), {"b": 1, "a": [1, 2]}, None),
    ]
    for value, expected, kind in cases:
        found: list[Replaced] = []
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


def test_values_are_copied_from_the_caller() -> None:
    """R10: a caller's dict that changes later changes no message."""
    metadata = {"tags": ["a"]}
    message = Message.from_dict({"content": "x", "metadata": metadata, "later": metadata})
    metadata["tags"].append("b")
    assert message.metadata == {"tags": ["a"]}
    assert message.model_extra == {"later": {"tags": ["a"]}}
    with pytest.raises(TypeError, match="cannot change"):
        decode(encode(message)[0]).model_extra["later"]["tags"].append("b")


def test_unknown_fields_have_a_type_in_any_module() -> None:
    """Before release 2.13, pydantic reads a type that is a string in the module of each subclass, where its names are missing."""
    assert not isinstance(Stored.__annotations__["__pydantic_extra__"], str)


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
