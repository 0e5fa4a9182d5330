"""Entries beside a running turn, and messages that arrive during it: stored at once, delivered once."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext

from palaver.agent.turn import DELIVERED
from palaver.errors import InvalidInput
from palaver.ids import DialogId
from palaver.log import Entry, Handle, draft
from palaver.log.entries import MessageEntry
from palaver.messages import FrozenDict, Message
from palaver.store.protocol import Store

__all__ = ["BUSY", "Busy", "annotate", "deliveries", "require_no_transaction"]


def annotate(store: Store, dialog_id: DialogId, entry: Entry) -> Handle:
    """Write an entry beside the turn and return its handle. It uses no dialog object, because another thread may be using one."""
    ready, payloads = draft(entry)
    with store.transaction() if payloads else nullcontext():
        for payload in payloads.values():
            store.put_blob(payload)
        return Handle(dialog_id, store.annotate(dialog_id, ready).seq)


def deliveries(inbox: Mapping[int, Message], dialog_id: DialogId) -> tuple[MessageEntry, ...]:
    """Return the entries that make messages of the inbox part of the conversation, oldest first."""
    return tuple(MessageEntry(message=_delivered(inbox[seq], seq, dialog_id)) for seq in sorted(inbox))


def _delivered(message: Message, seq: int, dialog_id: DialogId) -> Message:
    metadata = FrozenDict({**message.metadata, DELIVERED: seq, "dialog_id": dialog_id})
    return message.model_copy(update={"metadata": metadata})


def require_no_transaction(store: Store) -> None:
    """Raise if this thread is inside a transaction of the store: a turn works in several threads, and each of its steps is durable."""
    if store.in_transaction:
        raise InvalidInput(
            "A turn cannot run inside a transaction of its store.", hint="Put the transaction around writes alone."
        )


class Busy:
    """The dialogs that have a turn running in this process: one in each, whichever agents and objects there are for it."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._dialogs: set[DialogId] = set()

    def __contains__(self, dialog_id: object) -> bool:
        return dialog_id in self._dialogs

    @contextmanager
    def turn(self, store: Store, dialog_id: DialogId) -> Iterator[None]:
        """Reserve a dialog for a turn.

        Raises:
            InvalidInput: A turn of it is running, or this thread is inside a transaction.
        """
        require_no_transaction(store)
        with self.lock:
            if dialog_id in self._dialogs:
                raise InvalidInput(
                    "This process is already answering in this dialog.",
                    hint="receive() a message for the running turn, or fork the dialog.",
                )
            self._dialogs.add(dialog_id)
        try:
            yield
        finally:
            with self.lock:
                self._dialogs.discard(dialog_id)


BUSY = Busy()
"""Those of this process."""
