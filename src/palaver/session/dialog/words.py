"""What a dialog is given, made into messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from palaver.errors import MediaUnavailable
from palaver.ids import BlobId, DialogId, new_message_id, now
from palaver.messages import Content, FrozenDict, Message, Role, ToolMessage, media_of
from palaver.messages.normalize import is_clean
from palaver.messages.stored import read_stored
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
    given = as_mapping(metadata, "metadata")
    mere = isinstance(content, str) and not (name or given)
    plain = _plain(dialog_id, str(content), role) if mere else None
    return plain or Message(role=role, content=content, name=name or "", metadata={**given, "dialog_id": dialog_id})


_SPEAKERS = frozenset({Role.SYSTEM, Role.USER, Role.ASSISTANT})


def _plain(dialog_id: DialogId, text: str, role: Role | str) -> Message | None:
    """Make the message of a mere text, which is nearly every one that is put: spelt as it will be stored, it need not be validated.

    That is a quarter of what an append costs beside the disk. None where validation has something to do.
    """
    if role not in _SPEAKERS or not text or not is_clean(text):
        return None
    block = {"type": "text", "content": text}
    metadata = {"dialog_id": dialog_id}
    return read_stored(
        {"role": str(role), "contents": [block], "id": new_message_id(), "timestamp": now(), "metadata": metadata}
    )


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
