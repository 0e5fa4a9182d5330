"""Whether a dialog has something to do: what a program with many sessions asks before it opens an agent."""

from __future__ import annotations

from enum import StrEnum

from palaver.agent.approvals import decided_calls
from palaver.agent.turn import TurnState, read_turn
from palaver.ids import DialogId
from palaver.messages import Role
from palaver.session.recent import Recent
from palaver.store.protocol import Store

_MARKS = frozenset({"cancelled", "inbox", "approval", "turn_started"})
"""Kinds of which the newest says whether a cancellation still counts."""


class Attention(StrEnum):
    """What a dialog needs."""

    WORK = "work"
    """An agent: a message has no answer, a process died in a turn, or a call that waited is decided."""
    PERSON = "person"
    """A decision about a call."""
    STOPPED = "stopped"
    """Nothing, until somebody asks for it: its turn failed or was interrupted."""
    NONE = "none"
    """Nothing."""


def attention(store: Store, dialog_id: DialogId, recent: Recent | None = None) -> Attention:
    """Return what a dialog needs. It costs a few statements, however long the dialog is.

    Args:
        store: The store.
        dialog_id: The dialog.
        recent: The newest entries of the dialog, if it is open: what they say need not be read.

    Raises:
        StoreDamaged: An entry of the newest turn cannot be read.
    """
    log = recent or store
    if _cancelled(log, dialog_id):
        return Attention.NONE
    turn = read_turn(log, dialog_id)
    if turn.began < 0:
        return Attention.WORK if turn.inbox or _asked(log, dialog_id) else Attention.NONE
    if turn.over:
        return Attention.NONE
    return Attention.WORK if turn.open else _stopped(store, dialog_id, turn)


def needs_work(store: Store, dialog_id: DialogId) -> bool:
    """Return whether an agent has something to do in a dialog: a message has no answer, a process died in a turn, or a call that waited is decided.

    A turn that failed or was interrupted is not continued unasked: somebody says something, or calls `respond()`.
    """
    return attention(store, dialog_id) is Attention.WORK


def _stopped(store: Store, dialog_id: DialogId, turn: TurnState) -> Attention:
    """Return what a turn needs that ended without its answer."""
    if turn.outcome == "waiting" and turn.pending:
        return Attention.WORK if decided_calls(store, dialog_id) else Attention.PERSON
    return Attention.WORK if turn.inbox or turn.overtaken else Attention.STOPPED


def _cancelled(log: Store | Recent, dialog_id: DialogId) -> bool:
    """Return whether a cancellation is newer than all that was said and decided, and than the newest turn's beginning."""
    newest = next(log.latest_of_kind(dialog_id, _MARKS), None)
    if newest is None or newest.kind != "cancelled":
        return False
    return all(header.role != Role.USER.value for header in log.headers(dialog_id, newest.seq))


def _asked(log: Store | Recent, dialog_id: DialogId) -> bool:
    """Return whether the newest message of a dialog is the user's or a tool's: then an answer follows. `read_turn` saw no turn after it."""
    last = log.last(dialog_id)
    for seq in range(last.turn_head, -1, -1):
        header = log.header(dialog_id, seq)
        if header.kind == "message":
            return header.role in {Role.USER.value, Role.TOOL.value}
    return False
