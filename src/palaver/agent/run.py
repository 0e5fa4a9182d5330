"""One running agent call: its settings, its listeners, the state of its turn, and its writes."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import anyio

from palaver.agent.claim import this_process
from palaver.agent.events import AgentEvent, Delivered
from palaver.agent.invoking import StreamHandler
from palaver.agent.limits import MORE, NOTED, Guard, Limits
from palaver.agent.options import CallSettings
from palaver.agent.trace import Answer, Trace
from palaver.agent.turn import CALL, TurnState, deliveries
from palaver.errors import AgentFailure, Busy, Conflict
from palaver.log import Entry, Handle
from palaver.log.entries import Custom, Inbox, MessageEntry, TurnEnded, TurnStarted
from palaver.messages import Message, ToolMessage
from palaver.messages.frozen import EMPTY
from palaver.prompts import Prompt
from palaver.session import Dialog
from palaver.session.awaited import awaited
from palaver.tools import CallContext, Toolbox
from palaver.view import View
from palaver.wire import Memo, Request

T = TypeVar("T")

_LAST_WORD = 5.0
"""Seconds for listeners to handle the end of a turn. A listener that hangs must not block a cancelled call."""


def _said(message: Message) -> MessageEntry:
    return MessageEntry(message=message)


def callback_failed(what: str, error: BaseException, trace: Trace) -> AgentFailure:
    """Return the failure of a turn in which a callback of the caller raised."""
    message = f"The {what} raised {type(error).__name__}: {error}"
    return AgentFailure(message, trace=trace, kind="callback", error=error)


class Listeners:
    """The listeners of a turn's events, called in the loop's thread, one event at a time.

    A listener that raises never loses a step: each step is durable before its event.

    Attributes:
        fault: The first exception of a listener, or None; no listener is called after it.
    """

    def __init__(self, handlers: Iterable[StreamHandler | None]) -> None:
        self.fault: Exception | None = None
        self._handlers = tuple(each for each in handlers if each is not None)
        self._owed: list[Awaitable[None]] = []

    def __bool__(self) -> bool:
        return bool(self._handlers)

    async def emit(self, event: AgentEvent) -> None:
        """Call every listener, and await what they return."""
        self.note(event)
        while self._owed:
            try:
                await self._owed.pop(0)
            except Exception as error:  # noqa: BLE001 - an exception of a listener is reported after the step
                self.fault = self.fault or error

    async def end(self, event: AgentEvent) -> None:
        """Call every listener with the last event, also after a cancellation."""
        with anyio.move_on_after(_LAST_WORD, shield=True):
            await self.emit(event)
        for waiting in self._owed:
            if inspect.iscoroutine(waiting):
                waiting.close()
        self._owed.clear()

    def note(self, event: AgentEvent) -> None:
        """Call every listener without waiting; an awaitable is awaited at the next event."""
        for handler in self._handlers:
            if self.fault is not None:
                return
            try:
                waiting = handler(event)
            except Exception as error:  # noqa: BLE001 - as above
                self.fault = error
                return
            if inspect.isawaitable(waiting):
                self._owed.append(waiting)
            elif inspect.isgenerator(waiting) or inspect.isasyncgen(waiting):
                self.fault = TypeError("the handler is a generator, which does not run when called; remove the yield")


@dataclass(slots=True, kw_only=True)
class AgentRun:
    """One running agent call.

    Attributes:
        settings: Its settings.
        dialog: The dialog. Nothing else in this process writes to its turn meanwhile.
        turn: The state of the turn in the log.
        prompt: The prompt that governs the call from beginning to end.
        toolbox: The tools of the prompt and the agent.
        trace: The trace.
        guard: Checks the limits of what it may spend.
        said: The message with which the turn begins, until it is written; None if there is none.
        listeners: The listeners of its events.
        instructions: The system prompt that must be in force; empty to keep the dialog's.
        unsaved: Results that the store refused, by dialog and call. They are written first when it accepts writes again.
        undecided: Calls that wait for a person: the approver, if there is one, did not decide them.
        suspended: Calls of sub-agents that wait for a decision, or stopped at a limit of this turn.
        limited: Whether one stopped at a limit.
        answering: The current model call, or the one that failed last; None before a call and after an answer.
        measured: The last request that was answered, and the provider's token count of it.
        memo: The compiled exchanges of the last request.
        lock: Held while the run uses the store: results of parallel calls are written one after the other.
        left: What the refusal of a model left for the next one.
        more: What the call allows in addition to a limit, until it is written.
    """

    settings: CallSettings
    dialog: Dialog
    turn: TurnState
    prompt: Prompt
    toolbox: Toolbox
    trace: Trace
    guard: Guard
    listeners: Listeners
    instructions: str = ""
    said: Message | None = None
    unsaved: MutableMapping[tuple[str, str], ToolMessage] = field(default_factory=dict)
    undecided: set[str] = field(default_factory=set)
    suspended: set[str] = field(default_factory=set)
    limited: bool = False
    answering: Any = None
    measured: tuple[Request, int] | None = None
    memo: Memo = field(default_factory=Memo)
    lock: threading.RLock = field(default_factory=threading.RLock)
    left: Mapping[str, Any] = EMPTY
    more: Limits | None = None

    @property
    def context(self) -> CallContext:
        """The surroundings of a tool's call."""
        settings, began = self.settings, self.dialog.opened.last.open_turn
        return CallContext(
            dialog=self.dialog,
            agent=settings.agent,
            trace=self.trace,
            fence=Handle(self.dialog.dialog_id, began) if began >= 0 else None,
            guard=self.guard,
            tracer=settings.tracer,
            deps=settings.options.deps,
            on_progress=self.listeners.note,
        )

    # --- writing ----------------------------------------------------------------------------------------------------------

    async def record(self, *entries: Entry) -> None:
        """Append entries, and update the state of the turn.

        Raises:
            Conflict: Another process continued the turn.
            StoreError: The store failed; nothing was written.
        """
        await self.awaited(partial(self._record, *entries))

    def _record(self, *entries: Entry) -> None:
        self.dialog.record(*entries)
        self.look()

    async def say(self, message: Message) -> None:
        """Append a message; see `record`."""
        await self.awaited(lambda: self._record(*map(_said, self.dialog.opened.stamped(message))))

    async def awaited(self, work: Callable[[], T]) -> T:
        """Do something with the store, one thing of this run at a time, without the event loop waiting."""

        def alone() -> T:
            with self.lock:
                return work()

        return await awaited(self.dialog.store, alone)

    def look(self, *, anew: bool = False) -> None:
        """Read the entries written since: up to the newest own one, which no other writer came before unseen; `anew`, up to the newest of all."""
        if anew:
            self.dialog.opened.refresh()
        self.turn.catch_up(self.dialog.opened.recent, self.dialog.dialog_id)

    async def within_limits(self) -> None:
        """Raise if a limit is reached.

        Raises:
            AgentFailure: A limit is reached; the kind is `limit`.
        """
        if self.guard.limits:
            await self.awaited(partial(self.guard.require, self.trace))

    def view(self) -> View:
        """Return the whole view after the newest own entry."""
        return self.dialog.opened.known_view()

    async def begin(self, *, deliver: bool) -> None:
        """Begin or resume the turn, in one step with its message. A process that ran it until now gets a `Conflict` at its next step.

        Args:
            deliver: Whether the messages of the inbox follow in the same step.

        Raises:
            Busy: Another process was first; nothing was written.
        """
        come = self.due() if deliver else ()
        await self.awaited(partial(self._begin, come))
        await self.tell(come)

    def due(self) -> tuple[MessageEntry, ...]:
        """Return the entries that make the inbox part of the conversation, unless they would interrupt a tool of the provider's own."""
        return () if self.turn.waits else deliveries(self.turn.inbox, self.dialog.dialog_id)

    async def tell(self, delivered: Iterable[MessageEntry]) -> None:
        """Tell the listeners which messages are part of the conversation now."""
        for entry in delivered:
            await self.listeners.emit(Delivered(entry.message))

    def _begin(self, come: Iterable[Entry]) -> None:
        store, dialog_id = self.dialog.store, self.dialog.dialog_id
        # the process that ran it is dead, or silent for too long: `require_unclaimed` has looked
        closing = (TurnEnded(outcome="interrupted", at=self._last_step()),) if self.turn.open else ()
        said = () if self.said is None else (MessageEntry(message=self.said),)
        data: dict[str, Any] = {
            "began": self.turn.began if self.turn.began >= 0 else None,
            "inbox": min(self.turn.inbox, default=self.dialog.opened.recent.last(dialog_id).seq + 1),
            "prompt": self.prompt.path,
            "process": this_process(),
        }
        noted = {"decide_within": self.settings.options.decide_within, NOTED: self.guard.noted(dialog_id)}
        data |= {name: value for name, value in noted.items() if value is not None}
        marks = TurnStarted(agent=self.settings.agent.name), Custom(custom_type=CALL, data=data), *self._granted()
        try:
            if said and (closing or self.turn.pending):  # the calls of the turn come before the message
                with store.transaction():
                    self._queue()
                    self._record(*closing, *marks, *come)
            else:
                self._record(*closing, *said, *marks, *come)
        except Conflict as error:
            raise Busy(dialog_id, error.expected, error.actual) from error
        self.said = None

    def _last_step(self) -> float:
        """Return when the turn made its last step: a process that was killed did nothing after it."""
        recent = self.dialog.opened.recent
        return recent.header(self.dialog.dialog_id, recent.last(self.dialog.dialog_id).turn_head).at

    def _granted(self) -> Iterator[Custom]:
        """Yield the entry of what the call allows in addition to a limit, once."""
        more, self.more = self.more, None
        if more is not None:
            yield Custom(custom_type=MORE, data={"per": more.per, **more.amounts})

    async def queue(self) -> None:
        """Store the message of the call in the inbox, if there is one, and what the call allows. It is delivered at the next request to the model."""
        await self.awaited(self._queue)
        for entry in self._granted():
            await self.awaited(partial(self.dialog.opened.annotate, entry))

    def _queue(self) -> None:
        if self.said is not None:
            self.dialog.opened.annotate(Inbox(message=self.said))
            self.look()
            self.said = None

    async def end(self, outcome: str, *last: Entry) -> None:
        """End the turn. Messages that came too late for a final answer are appended after it."""
        await self.awaited(partial(self._end, outcome, *last))

    def _end(self, outcome: str, *last: Entry) -> None:
        late: tuple[MessageEntry, ...] = ()
        if outcome == "final":
            self.look(anew=True)
            late = deliveries(self.turn.inbox, self.dialog.dialog_id)
        self._record(*last, TurnEnded(outcome=outcome), *late)
        self.trace.late = tuple(entry.message for entry in late)

    def deliver(self, answer: Message | None) -> None:
        """Set the answer of the call."""
        self.trace.delivery = None if answer is None else Answer.of(answer, self.settings.agent.output)

    def require_listeners(self) -> None:
        """Raise if a listener has raised.

        Raises:
            AgentFailure: A listener raised; the kind is `callback`.
        """
        fault = self.listeners.fault
        if fault is not None:
            raise callback_failed("stream handler", fault, self.trace) from fault
