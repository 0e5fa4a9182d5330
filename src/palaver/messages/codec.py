"""Messages to canonical bytes, payloads apart, and back.

Fields with their default, and those that are derived from others, are left out. The same message gives the same bytes on any machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json

from palaver.errors import InvalidMessage, StoreDamaged
from palaver.ids import BlobId
from palaver.messages.blocks import MediaBlock, ToolResultContent
from palaver.messages.frozen import STORED, is_plain
from palaver.messages.media import Media
from palaver.messages.message import Message, media_of, payloads
from palaver.messages.value import canonical_json, digest, own_error


def encode(message: Message) -> tuple[bytes, Mapping[BlobId, bytes]]:
    """Return the stored form of a message, and the payloads it refers to as far as they are in memory."""
    return canonical_json(message), payloads(message)


def decode(body: bytes | str) -> Message:
    """Read the stored form of a message; its media refer to their payloads.

    Raises:
        InvalidMessage: It is not the stored form of a message.
    """
    try:
        fields = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise InvalidMessage(f"An encoded message is JSON, and this is not: {error}.") from error
    plain = is_plain(body if isinstance(body, bytes) else body.encode())
    try:
        return Message.model_validate(fields, context=STORED if plain else None)
    except ValidationError as error:
        raise own_error("message", error) from error


def hydrate(message: Message, load: Callable[[str], bytes]) -> Message:
    """Return the message with the bytes of its media in memory, loading the missing ones by their digest.

    Raises:
        StoreDamaged: Loaded bytes have another digest.
    """
    if all(media.data is not None or media.url for media in media_of(message)):
        return message
    return message.model_copy(update={"contents": tuple(_hydrated(block, load) for block in message.contents)})


def _hydrated(block: Any, load: Callable[[str], bytes]) -> Any:  # noqa: ANN401 - any block
    if isinstance(block, MediaBlock):
        return block.with_media(_loaded(media, load) for media in block.media)
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
