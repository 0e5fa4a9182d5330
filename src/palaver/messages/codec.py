"""Messages as canonical bytes, payloads apart.

Canonical means: UTF-8 JSON with keys sorted by code point, no spaces, no escapes that are not needed, floats in their shortest
form, and no NaN. Fields that have their default are left out. The same message gives the same bytes, on any machine.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from palaver.errors import InvalidMessage, StoreDamaged
from palaver.ids import BlobId
from palaver.messages.blocks import AudioContent, ImageContent, ToolResultContent
from palaver.messages.media import Media
from palaver.messages.message import Message, default_modality, default_name
from palaver.messages.normalize import Change
from palaver.messages.roles import SPEAKER_OF_ROLE
from palaver.messages.value import Value, invalid_message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

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
        return _ENCODER.encode(value).encode()
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


def _stored(value: Any) -> Any:  # noqa: ANN401 - called by the JSON writer for whatever it does not know
    """Give the stored form of a message, block, medium or change."""
    if isinstance(value, Value):
        return _stored_fields(value)
    if isinstance(value, Change):
        return _stored_change(value)
    raise TypeError(f"a {type(value).__name__} has no place in it")


def _stored_fields(value: Value) -> dict[str, Any]:
    """Give the fields that differ from their default, those that are derived, and those of later versions."""
    kind = type(value)
    defaults = _DEFAULTS.get(kind) or _learn_defaults(kind)
    fields = {
        name: field for name, field in value.__dict__.items() if name not in defaults or field != defaults[name]
    }
    if isinstance(value, Message):
        _drop_derived(value, fields)
    elif isinstance(value, Media):
        fields.pop("data", None)
    elif "raw_args" in fields and "args" in fields and "error" not in fields:
        del fields["args"]
    if value.__pydantic_extra__:
        fields |= value.__pydantic_extra__
    return fields


_DEFAULTS: dict[type[Value], dict[str, Any]] = {}


def _learn_defaults(kind: type[Value]) -> dict[str, Any]:
    """Collect the defaults of a class once; what tells classes apart, and what is made fresh, is always stored."""
    found = {
        name: field.default
        for name, field in kind.model_fields.items()
        if name not in {"type", "role"} and field.default_factory is None and not field.is_required()
    }
    return _DEFAULTS.setdefault(kind, found)


def _drop_derived(message: Message, fields: dict[str, Any]) -> None:
    """Leave out what decoding derives again."""
    if message.name == default_name(message.role, message.contents):
        fields.pop("name", None)
    if message.speaker is SPEAKER_OF_ROLE[message.role]:
        fields.pop("speaker", None)
    if message.modality is default_modality(message.contents):
        fields.pop("modality", None)
    else:
        fields["modality"] = message.modality
    if message.speaker is not SPEAKER_OF_ROLE[message.role]:
        fields["speaker"] = message.speaker


def _stored_change(change: Change) -> dict[str, Any]:
    stored: dict[str, Any] = {"place": change.place, "kind": change.kind}
    if change.runs:
        stored["runs"] = change.runs
    if change.original:
        stored["original"] = change.original
    return stored


_ENCODER = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"), check_circular=False, default=_stored
)
