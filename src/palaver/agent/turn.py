"""The state of a turn: a fold over its entries.

The loop writes a step, reads it back here, and asks `steps` for the next one. A process that resumes a turn after a kill does the same,
so continuing and resuming cannot differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from palaver.errors import InvalidInput, StoreDamaged
from palaver.ids import DialogId, now
from palaver.log import LOST, Handle, Node, Reader, copy_of, decode_entry
from palaver.log.entries import (
    Approval,
    CallStarted,
    Custom,
    Entry,
    Inbox,
    MessageEntry,
    TurnEnded,
    TurnStarted,
)
from palaver.messages import FrozenDict, FunctionCall, Message, Role, ToolCallContent, ToolResultContent
from palaver.messages.roles import UNFINISHED, WAITS
from palaver.session.costs import REJECTED
from palaver.session.recent import Recent
from palaver.session.waiting import DELIVERED, undelivered
from palaver.store.protocol import Store

CALL = "palaver.call"
"""The custom entry after each `turn_started` of ours. It records where the agent call began, which prompt governs it and which process runs it."""

REPEATED = "palaver.repeated"
"""The metadata key with which a message names the call of the harness that it answers."""

ABANDON = "abandon"
"""The decision that the conversation goes on without a call."""

REFUSED, PARTIAL, EXHAUSTED = "refused", "partial", "exhausted"


@dataclass(frozen=True, slots=True)
class RejectedAnswer:
    """An answer that did not become a message.

    Attributes:
        message: The model's answer.
        why: `refused` (by a parser), `partial` (it was cut off), or `exhausted` (it called tools after the last round).
        error: The reason.
        repair: The request for a repair that the model got, or empty.
    """

    message: Message
    why: str
    error: str = ""
    repair: str = ""


def unfinished(message: Message) -> bool:
    """Return whether the answer continues when the model is asked again."""
    return message.stop_reason in UNFINISHED


def attempt_entry(attempt: RejectedAnswer) -> Custom:
    """Return the entry that records an attempt."""
    data = {"message": attempt.message.to_dict(), "why": attempt.why, "error": attempt.error, "repair": attempt.repair}
    return Custom(custom_type=REJECTED, data=data)


class Fate(StrEnum):
    """What happens to a call that has no result."""

    RUN = "run"
    """It runs."""
    UNKNOWN = "unknown"
    """It began, and its effect is unknown. The model reads that."""
    AGREED = "agreed"
    """The provider runs it: a person agreed."""
    DENIED = "denied"
    """A person denied it."""
    GIVEN_UP = "given_up"
    """The conversation continued without it: it needs no decision and a message followed, or somebody abandoned it."""
    DECIDE = "decide"
    """It waits for a decision."""
    WAIT = "wait"
    """It waits for a decision about a sub-agent's call, or for an agent that has its tool."""


@dataclass(slots=True)
class TurnState:
    """One agent call as recorded in the log, from the message to its answer, over any number of processes.

    Attributes:
        began: The number of its first `turn_started`, or -1.
        since: The number of the entry since which a limit of the turn counts: its first, or the user's message after it had stopped; or -1.
        open: Whether a process is running it, or died while running it.
        outcome: How it last ended: `final`, `failed`, `interrupted` or `waiting`; empty before that.
        prompt: The path of the prompt that governs it, or empty.
        process: The process that last began or continued it, or empty.
        decide_within: Seconds after which an undecided call is refused, or None.
        answered: When the newest answer was recorded.
        response: The model's newest answer in it, or None.
        answers: The results of that answer's calls, by call id.
        started: The calls that began, by id. The value is whether they may begin again.
        repeats: The calls of the harness that began and have no result, by id: each with the model's call that it makes again.
        decisions: The decisions about the calls, by id; the newest wins.
        awaited: The calls, by id, that waited when the turn last stopped and have not begun since.
        attempts: The answers since then that did not become messages.
        repairs: The total number of refused answers.
        rounds: The number of answers that called tools or were not finished.
        executed: The calls that have results, to find repeats.
        said: Whether a message followed the newest answer.
        overtaken: Whether a message came after the turn had stopped. Calls that need no decision and have not begun are then abandoned.
        inbox: Messages that arrived and are not yet delivered, by the number of their entry.
        seen: The number of the next entry to read.
    """

    began: int = -1
    since: int = -1
    open: bool = False
    outcome: str = ""
    prompt: str = ""
    process: str = ""
    decide_within: float | None = None
    answered: float = 0.0
    response: Message | None = None
    answers: dict[str, ToolResultContent] = field(default_factory=dict)
    started: dict[str, bool] = field(default_factory=dict)
    repeats: dict[str, Handle] = field(default_factory=dict)
    decisions: dict[str, Approval] = field(default_factory=dict)
    awaited: set[str] = field(default_factory=set)
    attempts: list[RejectedAnswer] = field(default_factory=list)
    repairs: int = 0
    rounds: int = 0
    executed: list[FunctionCall] = field(default_factory=list)
    said: bool = False
    overtaken: bool = False
    inbox: dict[int, Message] = field(default_factory=dict)
    seen: int = 0

    @property
    def calls(self) -> tuple[ToolCallContent, ...]:
        """The calls of the newest answer."""
        return () if self.response is None else tuple(self.response.tool_calls())

    @property
    def pending(self) -> tuple[ToolCallContent, ...]:
        """The calls of the newest answer that have no result."""
        return tuple(call for call in self.calls if call.id not in self.answers)

    @property
    def waits(self) -> bool:
        """Whether a tool of the provider's own has not answered yet: messages wait for the next answer."""
        return self.response is not None and (unfinished(self.response) or WAITS in self.response.metadata)

    @property
    def over(self) -> bool:
        """Whether the turn has its answer."""
        return not self.open and self.outcome == "final"

    @property
    def deadline(self) -> float | None:
        """Until when its calls can be decided, in seconds since 1970 UTC; None for ever."""
        return None if self.decide_within is None else self.answered + self.decide_within

    @property
    def expired(self) -> bool:
        """Whether it is too late to decide its calls."""
        return self.deadline is not None and now() > self.deadline

    def task(self, call_id: str) -> dict[str, str]:
        """Return the metadata with which a sub-agent's dialog names the call it answers."""
        return {"call": call_id, "response": "" if self.response is None else self.response.id}

    def catch_up(self, reader: Reader, dialog_id: DialogId) -> None:
        """Read the entries written since, by any writer."""
        for seq, entry in _entries(reader, dialog_id, self.seen):
            self.add(seq, entry)

    def add(self, seq: int, entry: Entry) -> None:
        """Fold one entry into the state."""
        self.seen = seq + 1
        match entry:
            case MessageEntry(message=message):
                self._add_message(seq, message, entry.at)
            case CallStarted():
                self._add_start(entry)
            case Approval():
                self._add_decision(entry)
            case Inbox(message=message) if not entry.erased:
                self.inbox[seq] = message
                self._overtake(seq, message)
            case TurnStarted():
                self.open = True
                self.began = seq if self.began < 0 else self.began
                self.since = seq if self.since < 0 else self.since
            case TurnEnded(outcome=outcome):
                self._end(outcome)
            case Custom(custom_type=name, data=data):
                self._add_ours(name, data)
            case _:
                pass

    def _add_start(self, entry: CallStarted) -> None:
        if entry.repeats is None:
            self.started[entry.call_id] = entry.idempotent
            self.awaited.discard(entry.call_id)
        else:
            self.repeats[entry.call_id] = entry.repeats.handle

    def _add_decision(self, entry: Approval) -> None:
        if _is_decision(entry) and any(call.id == entry.call_id for call in self.pending):
            self.decisions[entry.call_id] = entry

    def _add_ours(self, name: str, data: Mapping[str, object]) -> None:
        """Fold a custom entry of the loop into the state."""
        if name == REJECTED:
            self._add_attempt(data)
        elif name == CALL:
            self.prompt = str(data.get("prompt") or "")
            self.process = str(data.get("process") or "")
            within = data.get("decide_within")
            self.decide_within = within if isinstance(within, int | float) else None

    def _add_message(self, seq: int, message: Message, at: float) -> None:
        if message.is_assistant_side:
            self.response = message
            self.answered = at
            self.rounds += message.is_function_call or unfinished(message)
            self.said = self.overtaken = False
            for state in (self.answers, self.started, self.decisions, self.awaited, self.attempts):
                state.clear()
        elif message.role is Role.TOOL:
            for result in message.tool_results():
                self._add_result(result)
        else:
            self.said = True
            self.inbox.pop(message.metadata.get(DELIVERED, -1), None)
            self.repeats.pop(message.metadata.get(REPEATED, ""), None)
            self._overtake(seq, message)

    def _overtake(self, seq: int, message: Message) -> None:
        """Note that a user's message came after the turn had stopped."""
        if message.role is Role.USER and not self.open:
            self.overtaken = True
            self.since = seq
            self._count_anew()

    def _add_result(self, result: ToolResultContent) -> None:
        # the first of its id without a result: some providers number the calls of each answer anew
        call = next((pending for pending in self.pending if pending.id == result.id), None)
        if call is not None:
            text = result.text()
            error = text if result.is_error else None
            self.answers[call.id] = result
            self.executed.append(FunctionCall(call.id, call.name, call.args, None if error else text, text, error))

    def _add_attempt(self, data: Mapping[str, object]) -> None:
        fields = data.get("message")
        if isinstance(fields, Mapping):
            why, error, repair = (str(data.get(name) or "") for name in ("why", "error", "repair"))
            self.attempts.append(RejectedAnswer(Message.from_dict(fields), why, error, repair))
            self.repairs += why == REFUSED

    def _end(self, outcome: str) -> None:
        self.open = False
        self.outcome = outcome
        if outcome == "waiting":
            self.awaited.update(call.id for call in self.pending)
        if outcome == "failed":
            self._count_anew()

    def _count_anew(self) -> None:
        """Reset the counts: a failed step may be tried again, and a later message is a new question."""
        self.repairs = self.rounds = 0
        self.attempts.clear()
        self.executed.clear()


def _is_decision(entry: Approval) -> bool:
    """Return whether a decision is a known one. Another program's unknown decision has no effect."""
    return entry.decision in {"approve", "deny", ABANDON} or (
        entry.decision == "edit" and isinstance(entry.arguments, Mapping)
    )


def subagent_dialog(nodes: Iterable[Node], parent: DialogId, task: Mapping[str, str]) -> DialogId | None:
    """Return the dialog in which a sub-agent works on a call, or None."""
    below = (node for node in nodes if node.relation == "subagent" and node.parent_id == parent)
    return next((node.dialog_id for node in below if task.items() <= node.metadata.items()), None)


def deliveries(inbox: Mapping[int, Message], dialog_id: DialogId) -> tuple[MessageEntry, ...]:
    """Return the entries that make messages of the inbox part of the conversation, oldest first."""
    return tuple(MessageEntry(message=_delivered(inbox[seq], seq, dialog_id)) for seq in sorted(inbox))


def _delivered(message: Message, seq: int, dialog_id: DialogId) -> Message:
    about = {DELIVERED: seq, "dialog_id": dialog_id, **copy_of([Handle(dialog_id, seq)])}
    metadata = FrozenDict({**message.metadata, **about})
    return message.model_copy(update={"metadata": metadata})


# --- reading -------------------------------------------------------------------------------------------------------------


def read_turn(store: Store | Recent, dialog_id: DialogId, *, asked: bool = False) -> TurnState:
    """Return the state of a dialog's newest turn. It is a fresh state if there is no turn or a message followed the answer.

    A message follows if one is in the log, or is about to be written (`asked`). The cost depends on the turn and the entries since the oldest undelivered message, not on the length of the dialog.

    Raises:
        StoreDamaged: An entry of the turn cannot be read.
    """
    began, since = _bounds(store, dialog_id)
    turn = TurnState()
    for seq, entry in _entries(store, dialog_id, began) if began >= 0 else ():
        turn.add(seq, entry)
    if 0 <= since < began:
        turn.inbox |= {seq: message for seq, message in undelivered(store, dialog_id, since) if seq < began}
    if began < 0 or (turn.over and (asked or turn.said or turn.inbox)):
        fresh = TurnState(seen=store.last(dialog_id).seq + 1, said=True)
        fresh.inbox = dict(undelivered(store, dialog_id, since))
        return fresh
    return turn


def _entries(reader: Reader, dialog_id: DialogId, start: int) -> Iterator[tuple[int, Entry]]:
    """Yield the entries of a turn. Do not guess the effect of a damaged or lost entry: a tool might run twice.

    Raises:
        StoreDamaged: An entry cannot be read. The error says how to continue before it.
    """
    expected = start
    for seq, body in reader.bodies(dialog_id, start):
        try:
            entry = decode_entry(body) if seq == expected else None
        except InvalidInput as error:
            raise _unreadable(dialog_id, seq) from error
        if entry is None or _stands_for_lost(entry):
            raise _unreadable(dialog_id, expected)
        yield seq, entry
        expected = seq + 1


def _stands_for_lost(entry: Entry) -> bool:
    if isinstance(entry, MessageEntry):
        return LOST in entry.message.metadata
    return isinstance(entry, Custom) and entry.custom_type == LOST


def _unreadable(dialog_id: DialogId, seq: int) -> StoreDamaged:
    back = Handle(dialog_id, seq - 1)
    hint = f"Go back to the entry before it: `palaver branch rewind {back} --yes`, or session.rewind({str(back)!r}).apply()."
    why = "an entry of the newest turn cannot be read, and its effect is unknown"
    return StoreDamaged(str(Handle(dialog_id, seq)), why, hint=hint if seq else "")


def _bounds(store: Store | Recent, dialog_id: DialogId) -> tuple[int, int]:
    """Return where our newest turn began (-1 for never), and the first entry that can be an undelivered message."""
    started = next(store.latest_of_kind(dialog_id, "turn_started"), None)
    if started is None:
        return -1, 0
    mark = mark_at(store, dialog_id, started.seq + 1)
    began, since = mark.get("began"), mark.get("inbox")
    return started.seq if began is None else began, started.seq if since is None else since


def mark_at(reader: Reader, dialog_id: DialogId, seq: int) -> Mapping[str, Any]:
    """Return the data of our mark after a `turn_started`; empty if another program wrote the turn."""
    if seq > reader.last(dialog_id).seq:
        return {}
    entry = decode_entry(reader.body(dialog_id, seq))
    if isinstance(entry, Custom) and entry.custom_type == CALL and isinstance(entry.data, Mapping):
        return entry.data
    return {}
