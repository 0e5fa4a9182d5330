"""What a dialog is given, made into messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from palaver.errors import MediaUnavailable
from palaver.ids import BlobId, DialogId
from palaver.messages import Content, FrozenDict, Message, Role, ToolMessage, media_of
from palaver.store.protocol import Store

__all__ = ["as_mapping", "said", "stamped"]


def said(
    dialog_id: DialogId,
    content: str | tuple[Content, ...],
    name: str | None,
    metadata: Mapping[str, Any] | None,
    role: Role | str,
) -> Message:
    """Make a message that bears its dialog's id; without a name the role's default is taken."""
    kept = {**as_mapping(metadata, "metadata"), "dialog_id": dialog_id}
    return Message(role=role, content=content, name=name or "", metadata=kept)


def as_mapping(value: Mapping[str, Any] | None, name: str) -> Mapping[str, Any]:
    """Give an optional mapping as one.

    Raises:
        TypeError: It is something else.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} is a mapping, not a {type(value).__name__}.")
    return value


def stamped(message: Message, dialog_id: DialogId, store: Store) -> Sequence[Message]:
    """Give a message as a dialog stores it: with the dialog's id in its metadata, and one message for each result of a tool.

    Raises:
        TypeError: It is no message.
        MediaUnavailable: It refers to media whose bytes neither it nor the store has.
    """
    _require_message(message)
    for media in media_of(message):
        if media.data is None and not media.url and not store.has_blob(BlobId(media.digest)):
            raise MediaUnavailable(f"Neither the message nor the store has the bytes of {media.digest}.")
    parts = message.split() if isinstance(message, ToolMessage) else (message,)
    return [_stamped(part, dialog_id) for part in parts]


def _require_message(message: object) -> None:
    if not isinstance(message, Message):
        raise TypeError(f"A dialog holds messages, not a {type(message).__name__}: use put_text() for a text.")


def _stamped(message: Message, dialog_id: DialogId) -> Message:
    if message.metadata.get("dialog_id") == dialog_id:
        return message
    metadata = FrozenDict({**message.metadata, "dialog_id": dialog_id})
    return BaseModel.model_copy(message, update={"metadata": metadata})  # past validation: all of it was valid before
