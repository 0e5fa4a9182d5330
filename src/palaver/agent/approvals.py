"""Writes that any process may make during a turn: messages that arrive, and decisions about calls that need approval.

Both are entries of the log, stored at once. Nothing waits in memory, so the process that made a call may have ended.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from palaver.agent.turn import ABANDON, TurnState, read_turn, subagent_dialog
from palaver.errors import Ambiguous, InvalidInput, NotFound
from palaver.ids import DialogId, SessionId
from palaver.log import Entry, Handle, draft
from palaver.log.entries import Approval
from palaver.messages import ToolCallContent
from palaver.session import Dialog
from palaver.store.protocol import Store

# --- messages -----------------------------------------------------------------------------------------------------------


def annotate(store: Store, dialog_id: DialogId, entry: Entry) -> Handle:
    """Write an entry outside the turn and return its handle. Do not use a dialog object: another thread may be using it."""
    ready, payloads = draft(entry)
    # in one transaction, so that no sweep removes the payloads before the entry names them
    with store.transaction() if payloads else nullcontext():
        for payload in payloads.values():
            store.put_blob(store.node(dialog_id).session_id, payload)
        return Handle(dialog_id, store.annotate(dialog_id, ready).seq)


# --- decisions ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A person's decision about a call.

    Attributes:
        decision: `approve`, `deny` or `edit`.
        by: Who decided, or empty.
        reason: Why, for the model; may be empty.
        arguments: The arguments to use instead; only for `edit`, which requires them.
    """

    decision: Literal["approve", "deny", "edit"] = "approve"
    by: str = ""
    reason: str = ""
    arguments: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        """Check the decision: an unknown one must never let a call run.

        Raises:
            InvalidInput: `decision` is unknown, or `arguments` do not match it.
        """
        if self.decision not in {"approve", "deny", "edit"}:
            raise InvalidInput(f"There is no decision {self.decision!r}.", hint="Use approve, deny or edit.")
        if (self.decision == "edit") is not isinstance(self.arguments, Mapping):
            raise InvalidInput(
                f"The decision {self.decision!r} has the arguments {self.arguments!r}.",
                hint="Pass arguments only with edit: a mapping with all arguments of the call.",
            )

    def entry(self, call_id: str) -> Approval:
        """Return the entry that records it."""
        return Approval(
            call_id=call_id,
            decision=self.decision,
            by=self.by,
            reason=self.reason or None,
            arguments=None if self.arguments is None else dict(self.arguments),
        )


Verdict: TypeAlias = bool | Decision | None
"""True runs a call, False refuses it, a Decision can add a reason, and None leaves it to somebody else."""

Approver: TypeAlias = Callable[[ToolCallContent], Verdict | Awaitable[Verdict]]
"""A function, plain or async, that decides about a call at once."""


def open_calls(dialog: Dialog) -> tuple[ToolCallContent, ...]:
    """Return the calls of a dialog's turn and its sub-agents' turns that have not begun and have neither a result nor a decision."""
    waiting = _not_begun(dialog.store, dialog.session_id, dialog.dialog_id)
    return tuple(call for _, turn, call in waiting if call.id not in turn.decisions)


def decided_calls(store: Store, dialog_id: DialogId) -> tuple[ToolCallContent, ...]:
    """Return the calls of a dialog's turn and its sub-agents' turns that have not begun and are decided."""
    waiting = _not_begun(store, store.node(dialog_id).session_id, dialog_id)
    return tuple(call for _, turn, call in waiting if call.id in turn.decisions)


def decide(dialog: Dialog, call_id: str, decision: Decision) -> Handle:
    """Record a decision in the dialog whose call waits, and return its handle. The newest decision counts.

    Args:
        dialog: The dialog of the call, or an ancestor of it, opened by any process.
        call_id: The id of the call from `open_calls`.
        decision: The decision.

    Raises:
        NotFound: Neither the dialog's newest answer nor its sub-agents' have this call, or the call has begun or has a result.
        Ambiguous: Calls of several dialogs that wait have this id: some providers number the calls of each answer anew.
    """
    waiting = tuple(_not_begun(dialog.store, dialog.session_id, dialog.dialog_id))
    named = [(place, call_id in turn.decisions) for place, turn, call in waiting if call.id == call_id]
    places = [place for place, decided in named if not decided] or [place for place, _ in named]
    if not places:
        raise NotFound(call_id, what="open call", close=[call.id for _, _, call in waiting])
    if len(places) > 1:
        raise Ambiguous(call_id, places, hint="Decide in the dialog of the call: decide(session.dialog(ID), ...).")
    return annotate(dialog.store, places[0], decision.entry(call_id))


def abandon(dialog: Dialog) -> None:
    """Record that the conversation goes on without the calls of a dialog and its sub-agents that wait for a decision."""
    # read whole before the writes
    waiting = tuple(_not_begun(dialog.store, dialog.session_id, dialog.dialog_id))
    turn = read_turn(dialog.store, dialog.dialog_id)
    # a sub-agent that can continue reports to its call; without its tool the call is given up
    begun = ((dialog.dialog_id, turn, call) for call in turn.pending if call.id in turn.awaited & set(turn.started))
    with dialog.store.transaction():
        for place, state, call in (*waiting, *begun):
            if call.id not in state.decisions:
                annotate(dialog.store, place, Approval(call_id=call.id, decision=ABANDON))


def _not_begun(
    store: Store, session_id: SessionId, dialog_id: DialogId
) -> Iterator[tuple[DialogId, TurnState, ToolCallContent]]:
    """Yield the calls of a dialog's turn that have not begun, then those of the sub-agents that work on its other calls."""
    turn = read_turn(store, dialog_id)
    # only a call that began has a sub-agent, so most dialogs read no tree
    begun = [call.id for call in turn.pending if call.id in turn.started]
    yield from ((dialog_id, turn, call) for call in turn.pending if call.id not in begun)
    nodes = store.nodes(session_id) if begun else ()
    for child in (subagent_dialog(nodes, dialog_id, turn.task(call_id)) for call_id in begun):
        if child is not None:
            yield from _not_begun(store, session_id, child)
