"""The laws of messages, over any message."""

import copy
import json
import pickle
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError

from palaver.errors import InvalidInput
from palaver.ids import BlobId
from palaver.messages import (
    Message,
    canonical_json,
    decode,
    encode,
    from_anthropic_dict,
    from_chat_dict,
    hydrate,
    is_plain,
    media_of,
    read_stored,
    restore,
)
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


CHANGES: dict[type, dict[str, tuple[object, ...]]] = {
    dict: {
        "__setitem__": ("a", 1),
        "__delitem__": ("a",),
        "__ior__": ({"a": 1},),
        "update": ({"a": 1},),
        "setdefault": ("a", 1),
        "pop": ("a",),
        "popitem": (),
        "clear": (),
    },
    list: {
        "__setitem__": (0, 1),
        "__delitem__": (0,),
        "__iadd__": ([1],),
        "__imul__": (2,),
        "append": (1,),
        "extend": ([1],),
        "insert": (0, 1),
        "pop": (),
        "remove": (1,),
        "reverse": (),
        "sort": (),
        "clear": (),
    },
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
    """R29, R335: fields, mappings, lists and extras inside a message refuse every change."""
    before = encode(message)[0]
    for thing in everything_in(message):
        assert type(thing) not in {dict, list, set}
        if isinstance(thing, BaseModel):
            with pytest.raises(ValidationError):
                thing.type = "other"  # type: ignore[attr-defined]
        kind = dict if isinstance(thing, dict) else list if isinstance(thing, list) else type(thing)
        for method, arguments in CHANGES.get(kind, {}).items():
            with pytest.raises(TypeError, match="cannot change"):
                getattr(thing, method)(*arguments)
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
        found = read_stored(fields)
    except InvalidInput:
        return
    assert decode(encode(found)[0]) == found
    if not wrong:
        assert found == read_stored(fields, plain=False) == message


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
def test_c1_a_copy_replaces_only_what_was_said(message: Message, text: str) -> None:
    """Content is replaced through a copy; thinking and calls stay, and derived fields follow."""
    copied = message.model_copy(update={"content": text})
    assert type(copied) is type(message)
    assert (copied.role, copied.id) == (message.role, message.id)
    assert (copied.thinking(), copied.tool_calls()) == (message.thinking(), message.tool_calls())
    assert copied.content == text
    assert decode(encode(copied)[0]) == copied
