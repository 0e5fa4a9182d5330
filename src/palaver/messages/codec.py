"""Messages as canonical bytes, payloads apart, and back.

Fields that have their default, and those that are derived from others, are left out. The same message gives the same bytes, on
any machine; :mod:`palaver.messages.canonical` says how they are spelt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic_core import from_json

from palaver.errors import InvalidMessage, StoreDamaged
from palaver.ids import BlobId
from palaver.messages.blocks import AudioContent, ImageContent, TextContent, ToolCallContent, ToolResultContent
from palaver.messages.canonical import canonical_json, digest
from palaver.messages.message import Message
from palaver.messages.stored import is_plain, read_stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from palaver.messages.media import Media

__all__ = ["decode", "encode", "hydrate", "media_of"]


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
        fields = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise InvalidMessage(f"An encoded message is JSON, and this is not: {error}.") from error
    if not isinstance(fields, dict):
        raise InvalidMessage(f"An encoded message is a JSON object, not a {type(fields).__name__}.")
    plain = is_plain(body if isinstance(body, bytes) else body.encode())  # what is no UTF-8 was refused above
    return (read_stored(fields) if plain else None) or Message(**fields)


def media_of(message: Message) -> Iterator[Media]:
    """Give the media of a message in order, those inside tool results included."""
    for block in message.contents:
        if not isinstance(block, TextContent | ToolCallContent):  # what nearly every message consists of holds none
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
