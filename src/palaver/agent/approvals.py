"""Writes that any process may make during a turn: messages that arrive, and decisions about calls that need approval.

Both are entries of the log, stored at once. Nothing waits in memory, so the process that made a call may have ended.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from palaver.agent.turn import ABANDON, TurnState, read_turn, subagent_dialog
from palaver.errors import Ambiguous, Conflict, InvalidInput, NotFound
from palaver.ids import DialogId, SessionId
from palaver.log import Entry, Handle, decode_entry, draft
from palaver.log.entries import Approval
from palaver.messages import ToolCallContent
from palaver.session import Dialog
from palaver.store.protocol import SessionRecord, Store

EXPIRED = "Nobody decided in time."
"""The reason of the refusal of a call that waited too long."""

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
        always: Whether it decides the later calls of the same tool in the session, too; not for `edit`. The newest such decision counts.
    """

    decision: Literal["approve", "deny", "edit"] = "approve"
    by: str = ""
    reason: str = ""
    arguments: Mapping[str, Any] | None = None
    always: bool = False

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
        if self.always and self.decision == "edit":
            raise InvalidInput("An edit decides one call.", hint="Pass always with approve or deny.")

    def entry(self, call: ToolCallContent) -> Approval:
        """Return the entry that records it."""
        return Approval(
            call_id=call.id,
            always=call.name if self.always else None,
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
    """Return the calls of a dialog's turn and its sub-agents' turns that have not begun and no longer need a person."""
    session_id = store.node(dialog_id).session_id
    waiting = _not_begun(store, session_id, dialog_id)
    return tuple(
        call for _, turn, call in waiting if call.id in turn.decisions or _without_person(store, session_id, turn, call)
    )


def standing(store: Store, session_id: SessionId, tool: str) -> Approval | None:
    """Return the newest decision about all calls of a tool in a session, or None."""
    newest: Approval | None = None
    for node in store.nodes(session_id):
        for header in store.latest_of_kind(node.dialog_id, "approval"):
            entry = decode_entry(store.body(node.dialog_id, header.seq))
            if isinstance(entry, Approval) and entry.always == tool:
                newest = entry if newest is None or entry.at > newest.at else newest
                break
    return newest


def _without_person(store: Store, session_id: SessionId, turn: TurnState, call: ToolCallContent) -> Approval | None:
    """Return the decision about a waiting call that needs no person: a standing one, or the refusal of an expired call."""
    if call.id not in turn.awaited:
        return None
    if turn.expired:
        return Approval(call_id=call.id, decision="deny", reason=EXPIRED)
    known = standing(store, session_id, call.name)
    return None if known is None else repeated(known, call)


def repeated(known: Approval, call: ToolCallContent) -> Approval:
    """Return a standing decision as that of one call."""
    return Approval(call_id=call.id, decision=known.decision, by=known.by, reason=known.reason)


def settle_without_person(dialog: Dialog) -> bool:
    """Record the decisions about waiting calls that need no person, including those of sub-agents. Return whether there were any."""
    store, session_id = dialog.store, dialog.session_id
    waiting = tuple(_not_begun(store, session_id, dialog.dialog_id))
    undecided = ((place, turn, call) for place, turn, call in waiting if call.id not in turn.decisions)
    made = [(place, _without_person(store, session_id, turn, call)) for place, turn, call in undecided]
    entries = [(place, entry) for place, entry in made if entry is not None]
    for place, entry in entries:
        annotate(store, place, entry)
    return bool(entries)


class WaitingCall(NamedTuple):
    """A call that waits for a decision.

    Attributes:
        session: Its session.
        dialog_id: Its dialog, of the agent or of a sub-agent.
        call: The call.
        since: When the model made it.
        deadline: Until when it can be decided, or None.
    """

    session: SessionRecord
    dialog_id: DialogId
    call: ToolCallContent
    since: float
    deadline: float | None


def waiting_calls(store: Store, session_id: SessionId | None = None, *, decided: bool = False) -> Iterator[WaitingCall]:
    """Yield the calls that wait for a decision, in a session or the whole store, those of the session that was last active first.

    Args:
        store: The store.
        session_id: The session, or None for all.
        decided: Whether to include calls that have a decision and have not begun: a new decision replaces it.
    """
    for record in store.sessions() if session_id is None else (store.session(session_id),):
        for node in store.nodes(record.session_id):
            if not store.last(node.dialog_id).open_calls:
                continue
            turn = read_turn(store, node.dialog_id)
            if turn.outcome == "waiting" and not turn.open and not turn.expired:
                for call in turn.pending:
                    if call.id not in turn.started and (decided or call.id not in turn.decisions):
                        yield WaitingCall(record, node.dialog_id, call, turn.answered, turn.deadline)


def decide(dialog: Dialog, call_id: str, decision: Decision, *, replace: bool = True) -> Handle:
    """Record a decision in the dialog whose call waits, and return its handle. The newest decision counts.

    Args:
        dialog: The dialog of the call, or an ancestor of it, opened by any process.
        call_id: The id of the call from `open_calls`.
        decision: The decision.
        replace: Whether it replaces a decision that is there; False for one that a person makes without knowing of it.

    Raises:
        Conflict: The call has a decision, and `replace` is False. Of two that are made at once, one is recorded.
        NotFound: Neither the dialog's newest answer nor its sub-agents' have this call, or the call has begun or has a result.
        Ambiguous: Waiting calls of several dialogs have this id: some providers number the calls of each answer from 0.
    """
    if replace:
        return _decide(dialog, call_id, decision)
    with dialog.store.transaction(lock=f"decide {dialog.session_id}"):
        return _decide(dialog, call_id, decision, replace=False)


def _decide(dialog: Dialog, call_id: str, decision: Decision, *, replace: bool = True) -> Handle:
    waiting = tuple(_not_begun(dialog.store, dialog.session_id, dialog.dialog_id))
    named = [(place, turn, call) for place, turn, call in waiting if call.id == call_id]
    places = [made for made in named if call_id not in made[1].decisions] or named
    if not places:
        raise NotFound(call_id, what="open call", close=[call.id for _, _, call in waiting])
    if len(places) > 1:
        hint = "Decide in the dialog of the call: decide(session.dialog(ID), ...)."
        raise Ambiguous(call_id, [place for place, _, _ in places], hint=hint)
    place, turn, call = places[0]
    if turn.expired and call_id not in turn.decisions:
        raise NotFound(call_id, what="open call", hint="It waited too long for a decision, and is refused.")
    if not replace and (known := turn.decisions.get(call_id)) is not None:
        who = f" by {known.by}" if known.by else ""
        why = f"Call {call_id} of {call.name} has a decision{who} already: {known.decision}."
        raise Conflict(place, why=why, hint="`palaver approve` and `palaver deny` replace it until the call begins.")
    return annotate(dialog.store, place, decision.entry(call))


def abandon(dialog: Dialog) -> None:
    """Record that the conversation continues without the waiting calls of a dialog and its sub-agents."""
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
