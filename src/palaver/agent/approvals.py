"""Decisions about calls that wait for one: made anywhere, at any time, by whoever can write to the store.

A decision is an entry beside the turn. Nothing waits in memory: the process that made the call may be long gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from palaver.agent.inbox import beside
from palaver.agent.turn import read_turn
from palaver.errors import InvalidInput, NotFound
from palaver.ids import DialogId, SessionId
from palaver.log import Handle
from palaver.log.entries import Approval
from palaver.messages import ToolCallContent
from palaver.session import Dialog
from palaver.store import Store

__all__ = ["Decision", "decide", "open_calls"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What somebody decided about a call.

    Attributes:
        decision: `approve`, `deny` or `edit`.
        by: Who decided, or empty.
        reason: Why, for the model; empty where nobody said.
        arguments: The arguments to run it with instead: what `edit` needs, and nothing else takes.

    Raises:
        InvalidInput: It is none of the three words, or its arguments and its word do not go together.
    """

    decision: Literal["approve", "deny", "edit"] = "approve"
    by: str = ""
    reason: str = ""
    arguments: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        """Refuse what nobody can have meant: a decision that is not understood must never let a call run."""
        if self.decision not in {"approve", "deny", "edit"}:
            raise InvalidInput(f"There is no decision {self.decision!r}.", hint="It is approve, deny or edit.")
        if (self.decision == "edit") is not isinstance(self.arguments, Mapping):
            raise InvalidInput(
                f"The decision {self.decision!r} comes with the arguments {self.arguments!r}.",
                hint="edit takes a mapping: all the arguments the call is to run with. The other two take none.",
            )

    def entry(self, call_id: str) -> Approval:
        """Give the entry that records it."""
        return Approval(
            call_id=call_id,
            decision=self.decision,
            by=self.by,
            reason=self.reason or None,
            arguments=None if self.arguments is None else dict(self.arguments),
        )


def open_calls(dialog: Dialog) -> tuple[ToolCallContent, ...]:
    """Give the calls that somebody may have to decide about: those of a dialog's turn, and of its sub-agents', without result or decision."""
    found: list[ToolCallContent] = []
    for one in _line(dialog.store, dialog.session_id, dialog.dialog_id):
        turn = read_turn(dialog.store, one)
        found += [call for call in turn.pending if call.id not in turn.decisions and call.id not in turn.started]
    return tuple(found)


def decide(dialog: Dialog, call_id: str, decision: Decision) -> Handle:
    """Record a decision. The newest one counts; one about a call that has begun changes nothing.

    Args:
        dialog: The dialog the call stands in, or one above it, opened by any process.
        call_id: The call, as `open_calls` names it.
        decision: What was decided.

    Raises:
        NotFound: Neither the dialog's newest answer nor one of its sub-agents' has such a call, or the call has its result.
    """
    known: list[str] = []
    for one in _line(dialog.store, dialog.session_id, dialog.dialog_id):
        turn = read_turn(dialog.store, one)
        if any(call.id == call_id for call in turn.pending):
            return beside(dialog.store, one, decision.entry(call_id))
        known += [call.id for call in turn.pending]
    raise NotFound(call_id, what="open call", close=known)


def _line(store: Store, session_id: SessionId, dialog_id: DialogId) -> Iterator[DialogId]:
    """Give a dialog and its sub-agents' dialogs, parents first."""
    yield dialog_id
    for node in store.nodes(session_id):
        if node.relation == "subagent" and node.parent_id == dialog_id:
            yield from _line(store, session_id, node.dialog_id)
