"""The laws of messages, over any message."""

import copy
import json
import pickle
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError

from palaver.errors import InvalidInput
from palaver.ids import BlobId
from palaver.messages import (
    Change,
    Message,
    canonical_json,
    decode,
    encode,
    from_anthropic_dict,
    from_chat_dict,
    hydrate,
    media_of,
    restore,
)
from palaver.messages.normalize import ADDED
from palaver.testing import strategies as some

FIELDS = sorted({*Message.model_fields, "content", "tool_calls", "function_calls", "tool_call_id", "summary", "static"})


@given(some.messages())
def test_law_2_decoding_gives_back_what_was_encoded(message: Message) -> None:
    """decode(encode(x)) == x, whatever fields it has, those of later versions among them."""
    body, payloads = encode(message)
    again = decode(body)
    assert again == message
    assert type(again) is type(message)
    assert again.model_extra == message.model_extra
    assert set(payloads) == {media.digest for media in media_of(message) if media.data is not None}


@given(some.messages())
def test_hydrating_brings_back_every_byte(message: Message) -> None:
    """hydrate(decode(body), payloads) has the bytes the message had; what no payload is kept for fails by the loader's error."""
    body, payloads = encode(message)
    kept = all(media.url or media.digest in payloads for media in media_of(message))
    if not kept:
        with pytest.raises(KeyError):
            hydrate(decode(body), lambda digest: payloads[BlobId(digest)])
        return
    again = hydrate(decode(body), lambda digest: payloads[BlobId(digest)])
    assert [media.data for media in media_of(again)] == [
        None if media.url else payloads[BlobId(media.digest)] for media in media_of(message)
    ]
    assert again == message


@given(some.messages())
def test_law_2_encoding_what_was_decoded_gives_the_same_bytes(message: Message) -> None:
    """encode(decode(b)) == b for bytes we wrote: bodies can be compared and hashed."""
    body, _ = encode(message)
    assert encode(decode(body))[0] == body


@given(some.messages())
def test_the_stored_form_is_canonical_json(message: Message) -> None:
    """Keys are sorted, no spaces, UTF-8, and any JSON reader agrees with ours."""
    body, _ = encode(message)
    assert json.dumps(json.loads(body), sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() == body


@given(some.messages())
def test_a_dict_of_every_field_gives_the_message_back(message: Message) -> None:
    """R18: from_dict(to_dict(x)) == x through real JSON, media with their bytes."""
    fields = json.loads(json.dumps(message.to_dict()))
    again = Message.from_dict(fields)
    assert again == message
    assert [media.data for media in media_of(again)] == [media.data for media in media_of(message)]
    assert set(type(message).model_fields) <= set(fields)


class Holder(BaseModel):
    """Somebody's model with messages in it."""

    one: Message
    many: tuple[Message, ...] = ()


@given(some.messages())
def test_every_way_in_gives_the_same_member_of_the_family(message: Message) -> None:
    """DESIGN decision 1: model_validate, JSON, fields, copies and pickles keep class and value."""
    ways = [
        Message.model_validate(message),
        Message.model_validate(message.model_dump()),
        Message.model_validate_json(message.model_dump_json()),
        type(message).model_validate(message.model_dump()),
        TypeAdapter(Message).validate_python(message.model_dump()),
        Holder(one=message).one,
        Holder.model_validate_json(Holder(one=message, many=(message,)).model_dump_json()).many[0],
        copy.copy(message),
        copy.deepcopy(message),
        message.model_copy(),
        message.model_copy(deep=True),
        message.model_copy(update={"error": message.error}),
        pickle.loads(pickle.dumps(message)),  # noqa: S301 - our own bytes
    ]
    assert all(type(again) is type(message) for again in ways)
    assert all(again == message for again in ways)
    assert {hash(again) for again in ways} == {hash(message)}


CHANGES: dict[type, tuple[tuple[str, tuple[object, ...]], ...]] = {
    dict: (
        ("__setitem__", ("a", 1)),
        ("__delitem__", ("a",)),
        ("__ior__", ({"a": 1},)),
        ("update", ({"a": 1},)),
        ("setdefault", ("a", 1)),
        ("pop", ("a",)),
        ("popitem", ()),
        ("clear", ()),
    ),
    list: (
        ("__setitem__", (0, 1)),
        ("__delitem__", (0,)),
        ("__iadd__", ([1],)),
        ("__imul__", (2,)),
        ("append", (1,)),
        ("extend", ([1],)),
        ("insert", (0, 1)),
        ("pop", ()),
        ("remove", (1,)),
        ("reverse", ()),
        ("sort", ()),
        ("clear", ()),
    ),
}


def _json_kind(thing: object) -> type:
    return dict if isinstance(thing, dict) else list if isinstance(thing, list) else type(thing)


def everything_in(value: object) -> list[object]:
    """List a value and all it hands out, down to the last string."""
    found = [value]
    if isinstance(value, BaseModel):
        parts: list[object] = [getattr(value, name) for name in type(value).model_fields]
        parts += list((value.model_extra or {}).values())
    elif isinstance(value, Mapping):
        parts = [*value.keys(), *value.values()]
    elif isinstance(value, list | tuple):
        parts = list(value)
    else:
        parts = []
    for part in parts:
        found += everything_in(part)
    return found


@given(some.messages())
def test_law_3_nothing_handed_out_can_be_changed(message: Message) -> None:
    """Fields, mappings, lists and extras inside a message refuse every change."""
    before = encode(message)[0]
    for thing in everything_in(message):
        assert type(thing) not in {dict, list, set}
        if isinstance(thing, BaseModel):
            with pytest.raises(ValidationError):
                thing.type = "other"  # type: ignore[attr-defined]
            assert thing.model_extra is not None
            with pytest.raises(TypeError):
                thing.model_extra["later"] = 1
        for method, given_arguments in CHANGES.get(_json_kind(thing), ()):
            with pytest.raises(TypeError, match="cannot change"):
                getattr(thing, method)(*given_arguments)
    message.to_dict().clear()
    if isinstance(message.content, list):
        message.content.append({})
    message.model_fields_set.clear()
    assert encode(message)[0] == before


@given(
    st.dictionaries(st.sampled_from(FIELDS) | some.dirty_texts(8), some.dirty_json(), max_size=6),
    st.sampled_from(["user", "tool", "assistant", "custom", 3, None]),
)
def test_any_fields_are_a_message_or_refused(fields: dict[str, Any], role: object) -> None:
    """Input of any kind gives a message fit to be stored, or an InvalidInput; never another exception, never a bad body."""
    for read in (Message.from_dict, from_chat_dict, from_anthropic_dict, lambda given: Message(**given)):
        try:
            message = read({**fields, "role": role})
        except InvalidInput:
            continue
        assert decode(encode(message)[0]) == message


@given(some.chat_dicts())
def test_any_chat_dict_is_read_and_nothing_of_it_is_lost(given_dict: dict[str, Any]) -> None:
    """Every key is a field, a block, or an extra under its own name or ``source_`` and its name."""
    message = from_chat_dict(given_dict)
    extra = message.model_extra
    assert extra is not None
    for key in set(given_dict) - {"role", "content", "name", "tool_calls", "tool_call_id"}:
        assert key in extra or f"source_{key}" in extra
    said = given_dict.get("content")
    if isinstance(said, str):
        assert restored(message, message.content, "content") == said
    calls = given_dict.get("tool_calls") or []
    assert len(message.tool_calls()) == len(calls)
    for call, source in zip(message.tool_calls(), calls, strict=True):
        where = f"contents[{message.contents.index(call)}]"
        raw = restored(message, call.arguments, f"{where}.raw_args")
        assert raw == source["function"]["arguments"] or call.changes
        assert restored(message, call.id, f"{where}.id") == source["id"] or call.changes
    assert decode(encode(message)[0]) == message


def restored(message: Message, text: object, place_ends: str) -> str:
    """Undo what the edge changed in one string of a message."""
    assert isinstance(text, str)
    return restore(text, [change for change in message.normalized if change.place.endswith(place_ends)])


def place_of(path: list[str | int]) -> str:
    """Spell a path as changes spell places."""
    spelt = ""
    for step in path:
        if isinstance(step, int):
            spelt += f"[{step}]"
        elif step.isidentifier():
            spelt += f".{step}" if spelt else step
        else:
            spelt += '["' + step.replace("\\", "\\\\").replace('"', '\\"') + '"]'
    return spelt


def undone(value: object, changes: tuple[Change, ...], path: list[str | int]) -> object:
    """Undo all changes of strings and keys inside a JSON value."""
    here = [change for change in changes if change.place == place_of(path)]
    if isinstance(value, str):
        return restore(value, [change for change in here if change.kind != "key"])
    if isinstance(value, dict):
        return {
            restore(key, [c for c in changes if c.kind == "key" and c.place == place_of([*path, key])]): undone(
                item, changes, [*path, key]
            )
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [undone(item, changes, [*path, index]) for index, item in enumerate(value)]
    return value


DIRTY = st.recursive(
    st.integers() | some.dirty_texts(6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(some.dirty_texts(6), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(some.dirty_texts(6), DIRTY, max_size=3), some.dirty_texts())
def test_what_the_edge_changed_can_be_undone(args: dict[str, Any], text: str) -> None:
    """restore() gives every string and key back from ``normalized``, in text, arguments and metadata alike."""
    message = Message(
        role="assistant",
        content=text,
        tool_calls=[{"id": text, "name": "f", "arguments": args}],
        metadata=args,
        name=text or "n",
    )
    (call,) = message.tool_calls()
    assert undone(message.content, message.normalized, ["contents", 0, "content"]) == text
    assert undone(message.metadata, message.normalized, ["metadata"]) == args
    assert undone(call.args, message.normalized, ["contents", 1, "args"]) == args
    assert undone(call.id, message.normalized, ["contents", 1, "id"]) == text
    assert undone(message.name, message.normalized, ["name"]) == (text or "n")
    assert decode(encode(message)[0]).normalized == message.normalized


@given(some.dirty_texts(200))
def test_normalising_replaces_one_for_one_and_leaves_the_rest(text: str) -> None:
    """Length stays, clean characters stay, what is replaced becomes U+FFFD, and the result can be stored and sent."""
    message = Message(role="user", content=text)
    clean = message.text_content()
    assert len(clean) == len(text)
    assert all(new in {old, "\ufffd"} for new, old in zip(clean, text, strict=True))
    assert "\0" not in clean
    clean.encode()
    runs = [run for change in message.normalized for run in change.runs]
    assert sum(count for _, count, _ in runs) == sum(new != old for new, old in zip(clean, text, strict=True))
    assert all(code != ADDED for _, _, code in runs)


@given(some.messages(), some.clean_texts())
def test_a_copy_with_new_content_keeps_class_role_calls_and_thinking(message: Message, text: str) -> None:
    """C1: content is replaced through a copy; what was not said stays, and derived fields follow."""
    copied = message.model_copy(update={"content": text})
    assert type(copied) is type(message)
    assert copied.role == message.role
    assert copied.id == message.id
    assert copied.thinking() == message.thinking()
    assert copied.tool_calls() == message.tool_calls()
    assert copied.content == text
    assert decode(encode(copied)[0]) == copied


@given(some.messages())
def test_messages_with_equal_bytes_are_equal_and_the_other_way_round(message: Message) -> None:
    """Canonical bytes identify a value."""
    other = message.model_copy(update={"error": message.error + "!"})
    assert encode(other)[0] != encode(message)[0]
    assert canonical_json(message) == encode(message)[0]
