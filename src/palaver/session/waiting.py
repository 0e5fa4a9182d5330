"""What waits in a dialog: messages for the next request to the model, and calls for a decision or for their result."""

from __future__ import annotations

from collections.abc import Iterator

from palaver.ids import DialogId
from palaver.log import decode_entry
from palaver.log.entries import Approval, Inbox, MessageEntry, TurnEnded
from palaver.messages import Message
from palaver.session.recent import Recent
from palaver.store.protocol import Store
from palaver.view.exchange import WAITING

DELIVERED = "palaver.inbox"
"""The metadata key with which a delivered message names its inbox entry, by number in its dialog."""

UNDECIDED = "This tool call waits for a decision."
"""What people read of a call that a person has not decided about."""


def undelivered(store: Store | Recent, dialog_id: DialogId, since: int = 0) -> Iterator[tuple[int, Message]]:
    """Yield the messages of the inbox, from an entry on, that are not part of the conversation yet, oldest first, with the numbers of their entries.

    If none arrived, nothing else is read.
    """
    seqs = [header.seq for header in store.latest_of_kind(dialog_id, "inbox", since)][::-1]
    entries = ((seq, decode_entry(store.body(dialog_id, seq))) for seq in seqs)
    arrived = {seq: entry.message for seq, entry in entries if isinstance(entry, Inbox) and not entry.erased}
    if not arrived:
        return
    roles = {message.role.value for message in arrived.values()}
    later = store.headers(dialog_id, seqs[0])
    said = [header.seq for header in later if header.kind == "message" and header.role in roles]
    copies = (decode_entry(store.body(dialog_id, seq)) for seq in said)
    delivered = {entry.message.metadata.get(DELIVERED) for entry in copies if isinstance(entry, MessageEntry)}
    yield from ((seq, message) for seq, message in arrived.items() if seq not in delivered)


def what_for(store: Store, dialog_id: DialogId, call_id: str) -> str:
    """Return what an open call of a dialog waits for, as a sentence for people: `UNDECIDED` or `WAITING`."""
    ended = next(store.latest_of_kind(dialog_id, "turn_ended"), None)
    if ended is None or store.last(dialog_id).open_turn >= 0:
        return WAITING
    decisions = store.latest_of_kind(dialog_id, "approval", ended.seq)
    outcome, *decided = (decode_entry(store.body(dialog_id, header.seq)) for header in (ended, *decisions))
    undecided = not any(isinstance(entry, Approval) and entry.call_id == call_id for entry in decided)
    return UNDECIDED if undecided and isinstance(outcome, TurnEnded) and outcome.outcome == "waiting" else WAITING
