"""What callers say, made into messages as a dialog stores them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from palaver.errors import InvalidMessage, MissingFile
from palaver.ids import BlobId, DialogId
from palaver.messages import Content, FrozenDict, Media, Message, Role, ToolMessage, media_of
from palaver.messages.media import sniff
from palaver.store.protocol import Store

__all__ = ["mapping", "media_from", "message_of", "stamped"]


def message_of(
    dialog_id: DialogId,
    content: str | tuple[Content, ...],
    name: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    role: Role | str = Role.USER,
) -> Message:
    """Return a message that bears its dialog's id; the name defaults to that of the role."""
    kept = {**mapping(metadata, "metadata"), "dialog_id": dialog_id}
    return Message(role=role, content=content, name=name or "", metadata=kept)


def mapping(value: Mapping[str, Any] | None, name: str) -> Mapping[str, Any]:
    """Return an optional mapping, empty for None.

    Raises:
        TypeError: It is something else.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} is a mapping, not a {type(value).__name__}.")
    return value


def stamped(message: object, dialog_id: DialogId, store: Store) -> Sequence[Message]:
    """Return a message as a dialog stores it: with the dialog's id in its metadata, and one message for each result of a tool.

    Raises:
        TypeError: It is not a message.
        MissingFile: It refers to media whose bytes neither it nor the store has.
    """
    if not isinstance(message, Message):
        raise TypeError(
            f"A dialog holds messages, not a {type(message).__name__}: use put_text() for a text, Message(**fields) for a dict."
        )
    for media in media_of(message):
        if media.data is None and not media.url and not store.has_blob(BlobId(media.digest)):
            raise MissingFile(media.digest, what="media payload", hint="Neither the message nor the store has it.")
    parts = message.split() if isinstance(message, ToolMessage) else (message,)
    return [_stamped(part, dialog_id) for part in parts]


def _stamped(message: Message, dialog_id: DialogId) -> Message:
    if message.metadata.get("dialog_id") == dialog_id:
        return message
    metadata = FrozenDict({**message.metadata, "dialog_id": dialog_id})
    return BaseModel.model_copy(message, update={"metadata": metadata})  # valid before, so valid now


def media_from(image: object) -> Media:
    """Return the media value of a path, bytes, base64, a `data:` or `http(s):` address, or a Pillow image.

    A string that is the base64 of an image is that image, even where a file has such a name. Any other string that is not an address names
    a file.

    Raises:
        MissingFile: A string or path names no file.
        InvalidMessage: It is not an image that palaver knows.
    """
    if not isinstance(image, str) or image.startswith(("http://", "https://")) or image[:5].lower() == "data:":
        return Media.of(image)
    decoded = _decoded(image)
    if decoded and sniff(decoded, "image") is not None:
        return Media.from_bytes(decoded)
    if decoded and not Path(image).exists():
        raise InvalidMessage(f"{image[:40]!r} is not a file, and as base64 it is not an image that palaver knows.")
    return Media.from_file(image)


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        return b""
