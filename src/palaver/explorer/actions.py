"""The actions: what the page does to a session where the user lets it write, by the functions of the command line.

Each writes entries of the log, which is never changed: a label and a pin are taken back by another entry; a fork and a decision stay.
"""

from __future__ import annotations

from getpass import getuser
from typing import Any

from palaver.agent import Decision, decide
from palaver.agent.approvals import waiting_calls
from palaver.browsing import actions
from palaver.errors import Conflict, InvalidInput, NotFound
from palaver.explorer.answers import dialog_of
from palaver.explorer.api import Answer, Endpoint, Explored
from palaver.log import Handle
from palaver.session import Dialog
from palaver.store.connect import find_session

_LABEL = 200
"""Characters of a label, at most."""


def fork(source: Explored, dialog: str, handle: str) -> Answer:
    """Fork a dialog after an entry, and return the new dialog."""
    opened = dialog_of(source, dialog)
    return {"dialog": opened.fork(at=_entry(opened, handle)).dialog_id}


def label(source: Explored, dialog: str, handle: str, label: str) -> Answer:
    """Label an entry; an empty label removes the one that is there. Return the label before, empty for none."""
    if len(label) > _LABEL:
        raise InvalidInput(f"A label has at most {_LABEL} characters; this one has {len(label):,}.")
    opened = dialog_of(source, dialog)
    place = _entry(opened, handle)
    before = opened.session.labels.get(place, "")
    opened.marks.label(place, label or None)
    return {"before": before}


def pin(source: Explored, dialog: str, handle: str) -> Answer:
    """Keep an entry in every view of a dialog."""
    opened = dialog_of(source, dialog)
    actions.pin(opened, _entry(opened, handle))
    return {}


def unpin(source: Explored, dialog: str, handle: str) -> Answer:
    """Take a pin back."""
    opened = dialog_of(source, dialog)
    actions.pin(opened, _entry(opened, handle), undo=True)
    return {}


def _entry(dialog: Dialog, handle: str) -> Handle:
    return dialog.session.place(handle)._replace(block=None)


def approve(source: Explored, dialog: str, call: str) -> Answer:
    """Approve a call that waits for a person."""
    return _decided(source, dialog, call, Decision(decision="approve", by=getuser()))


def deny(source: Explored, dialog: str, call: str, reason: str = "") -> Answer:
    """Refuse a call that waits for a person."""
    return _decided(source, dialog, call, Decision(decision="deny", by=getuser(), reason=reason))


def _decided(source: Explored, dialog: str, call: str, decision: Decision) -> Answer:
    """Record a decision about a call that has none.

    Raises:
        Conflict: The call was decided or answered meanwhile.
    """
    opened = dialog_of(source, dialog)
    try:
        place = decide(opened, call, decision, replace=False)
    except NotFound as missing:
        why = f"Call {call} does not wait for a decision: it has begun, has a result, or waited too long."
        raise Conflict(opened.dialog_id, why=why, hint="Read the session again to see what became of it.") from missing
    return {"handle": str(place)}


def waiting_in(source: Explored, session: str) -> Answer:
    """Return the calls of a session that wait for a decision, as `palaver approve` lists them."""
    rows: list[Any] = [
        actions.waiting_row(call)
        for call in waiting_calls(source.store, find_session(source.store, session).record.session_id)
    ]
    return {"rows": rows}


ACTIONS: tuple[Endpoint, ...] = (
    Endpoint("/api/dialogs/{dialog}/fork", fork, "POST"),
    Endpoint("/api/dialogs/{dialog}/label", label, "POST"),
    Endpoint("/api/dialogs/{dialog}/pin", pin, "POST"),
    Endpoint("/api/dialogs/{dialog}/unpin", unpin, "POST"),
    Endpoint("/api/dialogs/{dialog}/approve", approve, "POST"),
    Endpoint("/api/dialogs/{dialog}/deny", deny, "POST"),
)
"""All that the page may do. Each function is called with the source, whose store can be written, and the texts of the request's JSON."""

ASKED: tuple[Endpoint, ...] = (Endpoint("/api/sessions/{session}/waiting", waiting_in),)
"""What the page asks only to act."""
