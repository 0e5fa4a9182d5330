"""Messages as canonical bytes, payloads apart.

Canonical means: UTF-8 JSON with keys sorted by code point, no spaces, no escapes that are not needed, floats in their shortest
form, and no NaN. Fields that have their default are left out. The same message gives the same bytes, on any machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from functools import cache, lru_cache
from math import isfinite
from typing import Any

from pydantic import ValidationError
from pydantic_core import to_json

from palaver.errors import InvalidMessage, StoreDamaged
from palaver.ids import BlobId
from palaver.messages.blocks import AudioContent, ImageContent, ToolCallContent, ToolResultContent
from palaver.messages.frozen import EMPTY
from palaver.messages.media import Media
from palaver.messages.message import Message, default_modality, default_name
from palaver.messages.normalize import Change
from palaver.messages.roles import SPEAKER_OF_ROLE
from palaver.messages.value import Value, invalid_message

__all__ = ["canonical_json", "decode", "digest", "encode", "hydrate", "media_of"]


def digest(data: bytes) -> str:
    """Give the SHA-256 of bytes as 64 hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def canonical_json(value: Any) -> bytes:  # noqa: ANN401 - any JSON value
    """Write a value as canonical bytes; messages, blocks and media in it in their stored form.

    Raises:
        InvalidMessage: Something in it has no place in JSON.
    """
    try:
        return _write(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidMessage(f"This cannot be written as JSON: {error}.") from error


def encode(message: Message) -> tuple[bytes, Mapping[BlobId, bytes]]:
    """Give the stored form of a message, and the payloads it refers to as far as they are in memory."""
    payloads = {BlobId(media.digest): media.data for media in media_of(message) if media.data is not None}
    return canonical_json(message), payloads


def decode(body: bytes | str) -> Message:
    """Read the stored form of a message; its media refer to their payloads.

    Raises:
        InvalidMessage: It is none.
    """
    try:
        return Message.model_validate_json(body)
    except ValidationError as error:
        raise invalid_message("encoded message", error) from error


def media_of(message: Message) -> Iterator[Media]:
    """Give the media of a message in order, those inside tool results included."""
    for block in message.contents:
        yield from _media_in(block)


def hydrate(message: Message, load: Callable[[str], bytes]) -> Message:
    """Give the message with the bytes of its media in memory, loading those that are not by their digest.

    Raises:
        StoreDamaged: What was loaded has another digest.
    """
    if all(media.data is not None or media.url for media in media_of(message)):
        return message
    return message.model_copy(update={"contents": tuple(_hydrated(block, load) for block in message.contents)})


def _media_in(block: Any) -> Iterator[Media]:  # noqa: ANN401 - any block
    if isinstance(block, ImageContent):
        yield from block.images
    elif isinstance(block, AudioContent):
        yield from block.audio
    elif isinstance(block, ToolResultContent) and isinstance(block.content, tuple):
        for part in block.content:
            yield from _media_in(part)


def _hydrated(block: Any, load: Callable[[str], bytes]) -> Any:  # noqa: ANN401 - any block
    if isinstance(block, ImageContent):
        return block.model_copy(update={"images": tuple(_loaded(media, load) for media in block.images)})
    if isinstance(block, AudioContent):
        return block.model_copy(update={"audio": tuple(_loaded(media, load) for media in block.audio)})
    if isinstance(block, ToolResultContent) and isinstance(block.content, tuple):
        return block.model_copy(update={"content": tuple(_hydrated(part, load) for part in block.content)})
    return block


def _loaded(media: Media, load: Callable[[str], bytes]) -> Media:
    if media.data is not None or media.url:
        return media
    data = load(media.digest)
    if digest(data) != media.digest:
        raise StoreDamaged(f"blob {media.digest}", f"its {len(data)} bytes have the digest {digest(data)}")
    return media.model_copy(update={"data": data})


def _write(value: Any) -> bytes:  # noqa: ANN401 - any JSON value
    kind = type(value)
    return (_WRITERS.get(kind) or _writer(kind))(value)


def _writer(kind: type) -> Callable[[Any], bytes]:
    """Find how values of a type are written, by what the type derives from, and remember it."""
    for base, writer in (
        (Message, _write_message),
        (ToolCallContent, _write_call),
        (Value, _write_value),
        (dict, _write_mapping),
        (list, _write_sequence),
        (tuple, _write_sequence),
        (Enum, _write_enum),
        (str, _write_subclass(str)),
        (int, _write_subclass(int)),
        (float, _write_subclass(float)),
    ):
        if issubclass(kind, base):
            return _WRITERS.setdefault(kind, writer)
    raise TypeError(f"a {kind.__name__} has no place in it")


def _write_subclass(base: type) -> Callable[[Any], bytes]:
    return lambda value: _write(base(value))


def _write_enum(value: Enum) -> bytes:
    return _write(value.value)


def _write_float(value: float) -> bytes:
    if not isfinite(value):
        raise ValueError(f"{value} is not finite")
    return repr(value).encode()


def _write_sequence(value: Iterable[Any]) -> bytes:
    return b"[" + b",".join([_write(item) for item in value]) + b"]"


def _write_mapping(value: Mapping[str, Any]) -> bytes:
    return b"{" + b",".join([_key(name) + _write(value[name]) for name in sorted(value)]) + b"}"


@lru_cache(maxsize=4096)  # field names, and those of tools' arguments, come again and again
def _key(name: str) -> bytes:
    if not isinstance(name, str):
        raise TypeError(f"a key is a string, not a {type(name).__name__}")
    return to_json(str(name)) + b":"


def _write_change(change: Change) -> bytes:
    fields = {"kind": change.kind, "original": change.original, "place": change.place, "runs": change.runs}
    return _write_mapping({name: field for name, field in fields.items() if field})


def _write_value(value: Value, omit: Mapping[str, Any] = EMPTY) -> bytes:
    """Write the fields that differ from their default and from ``omit``, and those of later versions, sorted by name."""
    fields = value.__dict__
    stored = [
        (name, key, fields[name])
        for name, key, default in _plan(type(value))
        if fields[name] is not default and fields[name] != default
    ]
    if omit:
        stored = [item for item in stored if item[0] not in omit or item[2] != omit[item[0]]]
    if value.__pydantic_extra__:
        stored = sorted([*stored, *((name, _key(name), field) for name, field in value.__pydantic_extra__.items())])
    return b"{" + b",".join([key + _write(field) for _, key, field in stored]) + b"}"


def _write_message(message: Message) -> bytes:
    """Leave out what decoding derives again."""
    role, contents = message.role, message.contents
    derived = {
        "name": default_name(role, contents),
        "modality": default_modality(contents),
        "speaker": SPEAKER_OF_ROLE[role],
    }
    return _write_value(message, derived)


def _write_call(call: ToolCallContent) -> bytes:
    """Leave out arguments that decoding reads again from their text."""
    return _write_value(call, {"args": call.args} if call.raw_args is not None and call.error is None else EMPTY)


@cache
def _plan(kind: type[Value]) -> tuple[tuple[str, bytes, Any], ...]:
    """Lay down once in which order the fields of a class are written, and which values are left out."""
    plan = []
    for name, field in sorted(kind.model_fields.items()):
        always = name in _ALWAYS or field.is_required() or field.default_factory is not None
        if not (kind is Media and name == "data"):
            plan.append((name, _key(name), object() if always else field.default))
    return tuple(plan)


_ALWAYS = frozenset({"type", "role", "name", "modality", "speaker", "contents"})
_WRITERS: dict[type, Callable[[Any], bytes]] = {
    str: to_json,
    type(None): lambda _: b"null",
    bool: lambda value: b"true" if value else b"false",
    int: lambda value: b"%d" % value,
    float: _write_float,
    Change: _write_change,
}
