"""Actions: what people do to a session besides talking, as the command line and the explorer do it. All else in this package only reads."""

from __future__ import annotations

from typing import Any, TypedDict

from palaver.agent.approvals import WaitingCall
from palaver.errors import InvalidInput
from palaver.ids import DialogId, SessionId
from palaver.log import Handle
from palaver.messages import thaw
from palaver.session import Dialog, Session
from palaver.session.marks import holders


def holding(session: Session, place: Handle) -> Dialog:
    """Return the dialog that a mark is made in: the main one if it has the entry, else the entry's own."""
    own = holders(session.store, session.session_id, place._replace(block=None))
    return session.root if session.root.dialog_id in own else session.dialog(place.dialog)


def pin(dialog: Dialog, place: Handle, *, undo: bool = False) -> None:
    """Pin an entry in every view of a dialog, or take that back; one that is pinned stays so.

    Raises:
        InvalidInput: No view shows the entry, or it is not pinned.
    """
    pinned, kind = place in dialog.marks.pins, dialog.store.header(place.dialog, place.seq).kind
    if undo and not pinned:
        raise InvalidInput(f"{place} is not pinned.", hint="`palaver branch pin SESSION` lists what is.")
    if not undo and kind not in {"message", "branch_summary"}:
        raise InvalidInput(f"{place} is not a message (its kind is {kind}): no view shows it.")
    if undo or not pinned:
        dialog.marks.pin(place, pinned=not undo)


class WaitingRow(TypedDict):
    """A call that waits for a person; `since` and `until` are seconds since 1970, UTC."""

    call: str
    tool: str
    arguments: dict[str, Any]
    session: SessionId
    name: str
    dialog: DialogId
    since: float
    until: float | None


def waiting_row(waiting: WaitingCall) -> WaitingRow:
    """Return a call that waits for a person as JSON values."""
    return {
        "call": waiting.call.id,
        "tool": waiting.call.name,
        "arguments": thaw(waiting.call.args),
        "session": waiting.session.session_id,
        "name": waiting.session.name,
        "dialog": waiting.dialog_id,
        "since": waiting.since,
        "until": waiting.deadline,
    }
