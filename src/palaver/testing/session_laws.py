"""Laws of a whole session, each as one function: what was written is read as it was, what was sent is given back, what was left out is found."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from palaver.errors import InfeasibleBudget
from palaver.ids import DialogId
from palaver.log import decode_entry, draft
from palaver.session import Dialog, Session
from palaver.store import Store
from palaver.view import View
from palaver.wire import Request, units

__all__ = ["Sent", "goes_on", "hold_bodies", "hold_handles", "hold_infeasible", "hold_sent"]


class Sent(NamedTuple):
    """A request that was recorded before it was sent.

    Attributes:
        dialog: The dialog that it was made for.
        seq: The number of the entry that records it.
        data: Its bytes.
    """

    dialog: DialogId
    seq: int
    data: bytes


def hold_bodies(store: Store, session: Session) -> None:
    """Law 2: every entry of a session gives, read and written again, the bytes that are stored."""
    for node in store.nodes(session.session_id):
        for seq, body in store.bodies(node.dialog_id):
            assert draft(decode_entry(body))[0].body == body, (
                f"entry {node.dialog_id[:12]}:{seq} is written otherwise than it was"
            )


def hold_sent(session: Session, sent: Iterable[Sent]) -> None:
    """Law 6: every call that was recorded is given back to the byte."""
    wanted = {(one.dialog, one.seq): one.data for one in sent}
    for dialog in session.dialogs:
        for call in dialog.invocations:
            data = wanted.get((call.handle.dialog, call.handle.seq))
            if call.handle.dialog == dialog.dialog_id and data is not None:
                assert call.request().data == data, f"call {call.handle} is not given back"
                del wanted[call.handle.dialog, call.handle.seq]
    assert not wanted, f"calls that nobody finds: {sorted(wanted)}"


def hold_handles(view: View, dialogs: Iterable[Dialog]) -> None:
    """Law 9: every handle of what a view leaves out is recalled, from every dialog of the session, and is the same."""
    handles = [str(handle) for omission in view.omissions for handle in omission.handles()]
    first: dict[str, object] = {}
    for dialog in dialogs:
        for handle in handles:
            found = dialog.recall(handle)
            assert first.setdefault(handle, found) == found, f"{handle} is not the same from every branch"


def hold_infeasible(error: InfeasibleBudget) -> None:
    """Law 8: a budget that cannot hold what must be sent says what that is, and it adds up."""
    assert error.needed == sum(error.breakdown.values()) > error.budget


def goes_on(before: Request, after: Request) -> bool:
    """Law 7: tell whether a request goes on from an earlier one."""
    earlier = units(before)
    return units(after)[: len(earlier)] == earlier
