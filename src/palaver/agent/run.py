"""One running agent call: its settings, the state of its turn, and how it writes."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Iterable, MutableMapping
from dataclasses import dataclass, field
from typing import Any

import anyio

from palaver.agent.call_session import AgentCallSession, State
from palaver.agent.events import AgentEvent
from palaver.agent.inbox import deliveries
from palaver.agent.invoking import StreamHandler
from palaver.agent.settings import CallSettings
from palaver.agent.turn import CALL, TurnState
from palaver.errors import AgentFailure
from palaver.log import Entry
from palaver.log.entries import Custom, TurnEnded, TurnStarted
from palaver.messages import Message, ToolMessage
from palaver.prompts import Prompt
from palaver.session import Dialog
from palaver.tools import Toolbox
from palaver.wire import Memo, Request

__all__ = ["AgentRun", "Listeners", "callback_failed"]

_LAST_WORD = 5.0
"""Seconds that listeners have to handle the end of a turn: a listener that hangs must not keep a cancelled call."""


def callback_failed(what: str, error: BaseException, session: AgentCallSession) -> AgentFailure:
    """Return the failure of a turn in which something of the caller's raised."""
    message = f"The {what} raised {type(error).__name__}: {error}"
    return AgentFailure(message, session=session, kind="callback", error=error)


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
            except Exception as error:  # noqa: BLE001 - whatever a listener raises is reported when the step is done
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
                self.fault = TypeError("it is a generator, which does not run when it is called: remove the yield")


@dataclass(slots=True, kw_only=True)
class AgentRun:
    """One running agent call.

    Attributes:
        settings: Its settings.
        dialog: The dialog; nothing else of this process writes to its turn meanwhile.
        turn: The state of the turn in the log.
        prompt: What governs the call from beginning to end.
        toolbox: The tools of the prompt and the agent.
        session: The trace.
        listeners: The listeners of its events.
        unsaved: Results that the store refused, by dialog and call: the first thing to write when it accepts them again.
        undecided: Calls that the approver left to somebody else.
        suspended: Calls of sub-agents that wait for a decision.
        answering: The call of the model that is on its way, or the one that failed last; None before one and after an answer.
        measured: The last request that was answered, and the tokens that the provider counted in it.
        memo: The compiled exchanges of the last request.
    """

    settings: CallSettings
    dialog: Dialog
    turn: TurnState
    prompt: Prompt
    toolbox: Toolbox
    session: AgentCallSession
    listeners: Listeners
    unsaved: MutableMapping[tuple[str, str], ToolMessage] = field(default_factory=dict)
    undecided: set[str] = field(default_factory=set)
    suspended: set[str] = field(default_factory=set)
    answering: Any = None
    measured: tuple[Request, int] | None = None
    memo: Memo = field(default_factory=Memo)

    @property
    def postponed(self) -> set[str]:
        """The calls that wait for somebody who is not at hand."""
        return self.undecided | self.suspended

    # --- writing ----------------------------------------------------------------------------------------------------------

    def record(self, *entries: Entry) -> None:
        """Append entries, and update the state of the turn.

        Raises:
            Conflict: Another process continued the turn.
            StoreError: The store could not; nothing was written.
        """
        self.dialog.record(*entries)
        self.look()

    def say(self, message: Message) -> None:
        """Append a message; as `record`."""
        self.dialog.append(message)
        self.look()

    def look(self) -> None:
        """Read what was written since, also by others beside the turn."""
        self.turn.catch_up(self.dialog.store, self.dialog.dialog_id)

    def begin(self) -> None:
        """Begin or resume the turn. Another process that runs it gets a `Conflict` with its next step."""
        closing = (TurnEnded(outcome="interrupted"),) if self.turn.open else ()
        seq = self.dialog.store.last(self.dialog.dialog_id).seq + 1
        data = {
            "began": self.turn.began if self.turn.began >= 0 else None,
            "inbox": min(self.turn.inbox, default=seq),
            "prompt": self.prompt.path,
        }
        self.record(*closing, TurnStarted(agent=self.settings.name), Custom(custom_type=CALL, data=data))

    def end(self, outcome: str, *last: Entry) -> None:
        """End the turn. Messages that came too late for a final answer are appended after it."""
        late = deliveries(self.turn.inbox, self.dialog.dialog_id) if outcome == "final" else ()
        self.record(*last, TurnEnded(outcome=outcome), *late)
        self.session.late = tuple(entry.message for entry in late)

    def enter(self, state: State) -> None:
        """Note in the trace where the call is."""
        self.session.state = state

    def require_listeners(self) -> None:
        """Raise if a listener has raised.

        Raises:
            AgentFailure: One has; its kind is `callback`.
        """
        fault = self.listeners.fault
        if fault is not None:
            raise callback_failed("stream handler", fault, self.session) from fault
