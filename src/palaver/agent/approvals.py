"""Decisions about calls that need approval, made by any process that can write to the store.

A decision is an entry beside the turn. Nothing waits in memory, so the process that made the call may have ended.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from palaver.agent.inbox import annotate
from palaver.agent.turn import read_turn
from palaver.errors import InvalidInput, NotFound
from palaver.ids import DialogId, SessionId
from palaver.log import Handle
from palaver.log.entries import Approval
from palaver.messages import ToolCallContent
from palaver.session import Dialog
from palaver.store.protocol import Store

__all__ = ["Approver", "Decision", "Verdict", "decide", "open_calls", "question"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What somebody decided about a call.

    Attributes:
        decision: `approve`, `deny` or `edit`.
        by: Who decided, or empty.
        reason: Why, for the model; may be empty.
        arguments: The arguments to run it with instead: required by `edit`, and by nothing else.
    """

    decision: Literal["approve", "deny", "edit"] = "approve"
    by: str = ""
    reason: str = ""
    arguments: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        """Check it: a decision that is not understood must never let a call run.

        Raises:
            InvalidInput: It is none of the three words, or its arguments and its word do not go together.
        """
        if self.decision not in {"approve", "deny", "edit"}:
            raise InvalidInput(f"There is no decision {self.decision!r}.", hint="Use approve, deny or edit.")
        if (self.decision == "edit") is not isinstance(self.arguments, Mapping):
            raise InvalidInput(
                f"The decision {self.decision!r} has the arguments {self.arguments!r}.",
                hint="edit takes a mapping with all arguments of the call; the other two take none.",
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
"""True to run a call, False to refuse it, a decision with its reason; None to leave it to somebody else."""

Approver: TypeAlias = Callable[[ToolCallContent], Verdict | Awaitable[Verdict]]
"""Decides about a call at once, plainly or to be awaited."""


def open_calls(dialog: Dialog) -> tuple[ToolCallContent, ...]:
    """Return the calls of a dialog's turn, and of its sub-agents', that have neither a result nor a decision and have not begun."""
    found: list[ToolCallContent] = []
    for one in _with_subagents(dialog.store, dialog.session_id, dialog.dialog_id):
        turn = read_turn(dialog.store, one)
        found += [call for call in turn.pending if call.id not in turn.decisions and call.id not in turn.started]
    return tuple(found)


def decide(dialog: Dialog, call_id: str, decision: Decision) -> Handle:
    """Record a decision and return its handle. The newest one counts; one about a call that has begun changes nothing.

    Args:
        dialog: The dialog of the call, or one above it, opened by any process.
        call_id: The call, as `open_calls` names it.
        decision: What was decided.

    Raises:
        NotFound: Neither the dialog's newest answer nor one of its sub-agents' has such a call, or the call has its result.
    """
    known: list[str] = []
    for one in _with_subagents(dialog.store, dialog.session_id, dialog.dialog_id):
        pending = [call.id for call in read_turn(dialog.store, one).pending]
        if call_id in pending:
            return annotate(dialog.store, one, decision.entry(call_id))
        known += pending
    raise NotFound(call_id, what="open call", close=known)


def _with_subagents(store: Store, session_id: SessionId, dialog_id: DialogId) -> Iterator[DialogId]:
    """Yield a dialog and its sub-agents' dialogs, parents first."""
    yield dialog_id
    for node in store.nodes(session_id):
        if node.relation == "subagent" and node.parent_id == dialog_id:
            yield from _with_subagents(store, session_id, node.dialog_id)


_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""C0 but line feed, C1, and the bidirectional controls of Unicode (UAX 9): none may reach a terminal."""


def question(call: ToolCallContent) -> str:
    """Return a call as text for the person who decides, with control characters escaped: they come from the model."""
    text = f"{call.name}({call.arguments})"
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
