"""Where a turn stands: a fold over its entries, and nothing else.

The loop knows no more than this. It writes a step, reads it back here, and asks `palaver.agent.steps` what comes next; a process that
takes a turn up after a kill does exactly the same, so that going on and resuming cannot differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from palaver.context.triggers import Overflow
from palaver.errors import InvalidInput, StoreDamaged
from palaver.ids import DialogId
from palaver.log import LOST, Handle, Reader, decode_entry
from palaver.log.entries import (
    Approval,
    CallStarted,
    Compaction,
    Custom,
    Entry,
    Inbox,
    MessageEntry,
    Quarantine,
    TurnEnded,
    TurnStarted,
)
from palaver.messages import FunctionCall, Message, Role, ToolCallContent, ToolResultContent
from palaver.store import Store

__all__ = ["ATTEMPT", "CALL", "DELIVERED", "Attempt", "Turn", "attempt_entry", "paused", "read_turn"]

CALL = "palaver.call"
"""The custom entry that stands behind each `turn_started` of ours: where the agent call began, and what governs it."""

ATTEMPT = "palaver.attempt"
"""The custom entry that keeps an answer which never became a message: refused by a parser, cut off, or one round too many."""

DELIVERED = "palaver.inbox"
"""The key of a delivered message's metadata that names the inbox entry it came from."""

_PAUSED = "pause_turn"
"""What Anthropic calls the end of an answer whose own tools are still at work: sent back as it is, the model goes on with it.

Source: platform.claude.com, "Handling stop reasons", pause_turn."""

REFUSED, PARTIAL, EXHAUSTED = "refused", "partial", "exhausted"


@dataclass(frozen=True, slots=True)
class Attempt:
    """An answer that never became a message.

    Attributes:
        message: What the model said.
        why: `refused` (a parser did not take it), `partial` (it was cut off), or `exhausted` (it called tools when no more were allowed).
        error: What was wrong with it.
        told: What the model was told then; empty where nothing was.
    """

    message: Message
    why: str
    error: str = ""
    told: str = ""


def paused(message: Message) -> bool:
    """Tell whether the model stopped in the middle of its answer and goes on with it when it is asked again."""
    return message.metadata.get("stop_reason") == _PAUSED


def attempt_entry(attempt: Attempt) -> Custom:
    """Give the entry that keeps an attempt."""
    data = {
        "message": attempt.message.to_dict(),
        "why": attempt.why,
        "error": attempt.error,
        "told": attempt.told,
    }
    return Custom(custom_type=ATTEMPT, data=data)


@dataclass(slots=True)
class Turn:
    """One agent call as the log has it: from the message that is to be answered to the answer, over any number of processes.

    Attributes:
        began: The number of the `turn_started` it began with, or -1 before it has.
        open: Whether a process has it in hand, or died with it in hand.
        outcome: How it ended last: `final`, `failed`, `interrupted`, `waiting`; empty before it has.
        prompt: The path of the prompt that governs it, or empty.
        response: The newest answer of the model in it, or None.
        answers: The results that the answer's calls have, by call id.
        started: The calls that were begun, by id; the value says whether they may be begun again.
        decisions: What was decided about the calls, by id; the newest wins.
        attempts: The answers since then that never became messages.
        repairs: How many answers were refused in all.
        rounds: How many answers called tools, or were paused.
        executed: The calls that have results, for finding repetitions.
        said: Whether somebody said something since the newest answer.
        overtaken: Whether that was said after the turn had stopped: calls that nobody decided about are given up then.
        compacted: Whether the view was made smaller since the newest message because a request was too long. What a person, a trigger or
            a schedule made smaller was not measured by what the provider said, and is no reason not to do so once.
        aside: The blocks that were set aside in it.
        inbox: Messages that arrived and are not delivered yet, by the number of their entry.
        seen: The number of the next entry to look at.
    """

    began: int = -1
    open: bool = False
    outcome: str = ""
    prompt: str = ""
    response: Message | None = None
    answers: dict[str, ToolResultContent] = field(default_factory=dict)
    started: dict[str, bool] = field(default_factory=dict)
    decisions: dict[str, Approval] = field(default_factory=dict)
    attempts: list[Attempt] = field(default_factory=list)
    repairs: int = 0
    rounds: int = 0
    executed: list[FunctionCall] = field(default_factory=list)
    said: bool = False
    overtaken: bool = False
    compacted: bool = False
    aside: set[Handle] = field(default_factory=set)
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
    def over(self) -> bool:
        """Whether it is answered."""
        return not self.open and self.outcome == "final"

    def catch_up(self, reader: Reader, dialog_id: DialogId) -> None:
        """Take what was written since, by whomever."""
        for seq, entry in _entries(reader, dialog_id, self.seen):
            self.take(seq, entry)

    def take(self, seq: int, entry: Entry) -> None:
        """Take the next entry."""
        self.seen = seq + 1
        match entry:
            case MessageEntry(message=message):
                self._message(message)
            case CallStarted(call_id=call, idempotent=idempotent):
                self.started[call] = idempotent
            case Approval(call_id=call):
                if _understood(entry) and any(one.id == call for one in self.pending):
                    self.decisions[call] = entry
            case Inbox(message=message):
                self.inbox[seq] = message
            case Compaction(attempt=attempt) if attempt is not None and attempt.get("trigger") == Overflow.name:
                self.compacted = True
            case _:
                self._mark(seq, entry)

    def _mark(self, seq: int, entry: Entry) -> None:
        match entry:
            case TurnStarted():
                self.open = True
                self.began = seq if self.began < 0 else self.began
            case TurnEnded(outcome=outcome):
                self._end(outcome)
            case Quarantine(target=place, lifted=False):
                self.aside.add(Handle(place.dialog, place.seq, place.block))
            case Custom(custom_type="palaver.attempt", data=data):
                self._attempt(data)
            case Custom(custom_type="palaver.call", data=data):
                self.prompt = str(data.get("prompt") or "")
            case _:
                pass

    def _message(self, message: Message) -> None:
        self.compacted = False
        if message.is_assistant_side:
            self._answer(message)
        elif message.role is Role.TOOL:
            for result in message.tool_results():
                self._result(result)
        else:
            self._heard(message)

    def _heard(self, message: Message) -> None:
        self.said = True
        self.inbox.pop(message.metadata.get(DELIVERED, -1), None)
        if message.role is Role.USER and not self.open:
            self.overtaken = True
            self._afresh()

    def _answer(self, message: Message) -> None:
        self.response = message
        self.rounds += message.is_function_call or paused(message)
        self.said = self.overtaken = False
        for held in (self.answers, self.started, self.decisions, self.attempts):
            held.clear()

    def _result(self, result: ToolResultContent) -> None:
        call = next((one for one in self.pending if one.id == result.id), None)
        if call is not None:
            self.answers[call.id] = result
            self.executed.append(_executed(call, result))

    def _attempt(self, data: Mapping[str, object]) -> None:
        fields = data.get("message")
        if isinstance(fields, Mapping):
            message = Message.from_dict(fields)
            why, error, told = (str(data.get(name) or "") for name in ("why", "error", "told"))
            self.attempts.append(Attempt(message, why, error, told))
            self.repairs += why == REFUSED

    def _end(self, outcome: str) -> None:
        self.open = False
        self.outcome = outcome
        if outcome == "failed":
            self._afresh()

    def _afresh(self) -> None:
        """Count from here: what failed may be tried again, and what was said anew is a new question."""
        self.repairs = self.rounds = 0
        self.attempts.clear()
        self.executed.clear()
        self.aside.clear()


def _understood(decision: Approval) -> bool:
    """Tell whether a decision is one of those there are; a word of a newer version, or another program's, decides nothing."""
    return decision.decision in {"approve", "deny"} or (
        decision.decision == "edit" and isinstance(decision.arguments, Mapping)
    )


def _executed(call: ToolCallContent, result: ToolResultContent) -> FunctionCall:
    said = result.text()
    error = said if result.is_error else None
    return FunctionCall(call.id, call.name, call.args, None if error else said, said, error)


def read_turn(store: Store, dialog_id: DialogId) -> Turn:
    """Read where the newest turn of a dialog stands. Where there is none, or something was said since it was answered, that is a fresh one.

    Costs what the turn has, and what was said since the oldest message that still waits; never what the dialog has.
    """
    began, since = _bounds(store, dialog_id)
    turn = Turn()
    for seq, entry in _entries(store, dialog_id, began) if began >= 0 else ():
        turn.take(seq, entry)
    if 0 <= since < began:
        turn.inbox |= {seq: one for seq, one in _waiting(store, dialog_id, since) if seq < began}
    if began < 0 or (turn.over and (turn.said or turn.inbox)):
        fresh = Turn(seen=store.last(dialog_id).seq + 1, said=True)
        fresh.inbox = dict(_waiting(store, dialog_id, since))
        return fresh
    return turn


def _entries(reader: Reader, dialog_id: DialogId, start: int) -> Iterator[tuple[int, Entry]]:
    """Read the entries of a turn. What one that is damaged or lost did is not guessed: a tool might be run twice.

    Raises:
        StoreDamaged: One cannot be read; the error says how to go on before it.
    """
    expected = start
    for seq, body in reader.bodies(dialog_id, start):
        if seq != expected:
            raise _unreadable(dialog_id, expected)
        try:
            entry = decode_entry(body)
        except InvalidInput as error:
            raise _unreadable(dialog_id, seq) from error
        if _stands_for_lost(entry):
            raise _unreadable(dialog_id, seq)
        yield seq, entry
        expected = seq + 1


def _stands_for_lost(entry: Entry) -> bool:
    if isinstance(entry, MessageEntry):
        return LOST in entry.message.metadata
    return isinstance(entry, Custom) and entry.custom_type == LOST


def _unreadable(dialog_id: DialogId, seq: int) -> StoreDamaged:
    back = Handle(dialog_id, seq - 1)
    hint = f"Go back to before it: `palaver rewind SESSION --to {back} --yes`, or dialog.rewind({str(back)!r}).apply()."
    why = "an entry of the newest turn cannot be read, and what it did is not guessed"
    return StoreDamaged(str(Handle(dialog_id, seq)), why, hint=hint if seq else "")


def _bounds(store: Store, dialog_id: DialogId) -> tuple[int, int]:
    """Give where the newest turn of ours began, -1 for never, and the first entry at which an undelivered message may stand."""
    started = next(store.of_kind(dialog_id, "turn_started"), None)
    if started is None:
        return -1, 0
    mark = _mark_at(store, dialog_id, started.seq + 1)
    began, since = mark.get("began"), mark.get("inbox")
    return started.seq if began is None else began, started.seq if since is None else since


def _mark_at(reader: Reader, dialog_id: DialogId, seq: int) -> Mapping[str, int | None]:
    """Give what stands behind a `turn_started`; nothing where another program wrote that."""
    if seq > reader.last(dialog_id).seq:
        return {}
    entry = decode_entry(reader.body(dialog_id, seq))
    if isinstance(entry, Custom) and entry.custom_type == CALL and isinstance(entry.data, Mapping):
        return entry.data
    return {}


def _waiting(store: Store, dialog_id: DialogId, since: int) -> Iterator[tuple[int, Message]]:
    """Give the messages in the inbox from an entry on that were not delivered; where none arrived, nothing else is read."""
    arrived = [header.seq for header in store.of_kind(dialog_id, "inbox", since)][::-1]
    if not arrived:
        return
    later = store.headers(dialog_id, arrived[0])
    said = [header.seq for header in later if header.kind == "message" and header.role == Role.USER.value]
    found = {seq: decode_entry(store.body(dialog_id, seq)) for seq in (*arrived, *said)}
    delivered = {entry.message.metadata.get(DELIVERED) for entry in found.values() if isinstance(entry, MessageEntry)}
    for seq in arrived:
        entry = found[seq]
        if isinstance(entry, Inbox) and seq not in delivered:
            yield seq, entry.message
