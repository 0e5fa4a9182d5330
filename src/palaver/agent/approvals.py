"""What any process may write beside a turn: messages that arrive during it, and decisions about calls that need approval.

Both are entries of the log, stored at once. Nothing waits in memory, so the process that made a call may have ended.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from palaver.agent.turn import DELIVERED, read_turn
from palaver.errors import InvalidInput, NotFound
from palaver.ids import DialogId, SessionId
from palaver.log import Entry, Handle, draft
from palaver.log.entries import Approval, MessageEntry
from palaver.messages import FrozenDict, Message, ToolCallContent
from palaver.session import Dialog
from palaver.store.protocol import Store

__all__ = [
    "BUSY",
    "Approver",
    "Busy",
    "Decision",
    "Verdict",
    "annotate",
    "decide",
    "deliveries",
    "open_calls",
    "question",
    "require_no_transaction",
]

# --- messages -----------------------------------------------------------------------------------------------------------


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


# --- decisions ----------------------------------------------------------------------------------------------------------


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
