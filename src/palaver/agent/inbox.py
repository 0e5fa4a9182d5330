"""What is written beside a turn while somebody has it in hand, and messages that arrive then: each kept at once, and delivered once."""

from __future__ import annotations

from collections.abc import Mapping

from palaver.agent.turn import DELIVERED
from palaver.ids import DialogId
from palaver.log import Entry, Handle, draft
from palaver.log.entries import MessageEntry
from palaver.messages import FrozenDict, Message
from palaver.store import Store
from palaver.store.keeping import keeping

__all__ = ["beside", "deliveries"]


def beside(store: Store, dialog_id: DialogId, entry: Entry) -> Handle:
    """Write an entry beside the turn. No dialog's object is touched: another thread may be using it."""
    ready, payloads = draft(entry)
    with keeping(store, payloads.values()):
        return Handle(dialog_id, store.annotate(dialog_id, ready).seq)


def deliveries(inbox: Mapping[int, Message], dialog_id: DialogId) -> tuple[MessageEntry, ...]:
    """Give the entries that make messages of the inbox part of the conversation, oldest first."""
    return tuple(MessageEntry(message=_delivered(inbox[seq], seq, dialog_id)) for seq in sorted(inbox))


def _delivered(message: Message, seq: int, dialog_id: DialogId) -> Message:
    metadata = FrozenDict({**message.metadata, DELIVERED: seq, "dialog_id": dialog_id})
    return message.model_copy(update={"metadata": metadata})
