"""One agent call on its way: what it goes by, where its turn stands, and the one way in which it writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from palaver.agent.call_session import AgentCallSession, State
from palaver.agent.events import Asking
from palaver.agent.inbox import deliveries
from palaver.agent.settings import Settings
from palaver.agent.sink import Sink
from palaver.agent.steps import Rules
from palaver.agent.tracing import Tracer, Untraced
from palaver.agent.turn import CALL, PARTIAL, Attempt, Turn, attempt_entry
from palaver.errors import BrokenAnswer, CallbackFailed
from palaver.log import Entry
from palaver.log.entries import Custom, TurnEnded, TurnStarted
from palaver.messages import Message, ToolCallContent, ToolMessage
from palaver.models import Assembly, Event
from palaver.prompts import Prompt
from palaver.session import Dialog
from palaver.tools import Toolbox
from palaver.tools.aside import aside
from palaver.wire import Request

__all__ = ["Run"]


@dataclass(slots=True, kw_only=True)
class Run:
    """One agent call on its way.

    Attributes:
        settings: What it goes by.
        dialog: The dialog; nothing else of this process writes to it meanwhile.
        turn: Where the turn stands, as the log has it.
        prompt: What governs the call from beginning to end.
        toolbox: The prompt's and the agent's tools.
        session: The trace.
        sink: Who is told what happens.
        tracer: Who follows it from outside.
        unsaved: Results that the store refused, by dialog and call: the first thing that is written when it takes them again.
        undecided: Calls that the approver left to somebody else.
        suspended: Calls of sub-agents that wait for a decision.
        hearing: The answer that is coming, as far as it has come.
        asked: Whether it is recorded that the model is being asked.
        request: What it is asked with, where the invoker says.
        decision: What a schedule decided before this call, to be recorded with it; None where nothing was scheduled.
    """

    settings: Settings
    dialog: Dialog
    turn: Turn
    prompt: Prompt
    toolbox: Toolbox
    session: AgentCallSession
    sink: Sink
    tracer: Tracer = field(default_factory=Untraced)
    unsaved: MutableMapping[tuple[str, str], ToolMessage] = field(default_factory=dict)
    undecided: set[str] = field(default_factory=set)
    suspended: set[str] = field(default_factory=set)
    hearing: Assembly | None = None
    asked: bool = False
    request: Request | None = None
    decision: Mapping[str, Any] | None = None

    @property
    def step(self) -> int:
        """The round of tools it is in, from 0: the key of the trace's mappings."""
        return max(self.turn.rounds - 1, 0)

    @property
    def rules(self) -> Rules:
        """What the table of outcomes needs to know."""
        left = any(call.id not in self.undecided | self.suspended for call in self.turn.pending)
        return Rules(
            rounds=self.settings.rounds,
            needs_approval=self._needs_approval,
            rerun=self._rerun,
            approver=self.settings.approve is not None and left,
            suspended=frozenset(self.suspended),
        )

    def _needs_approval(self, call: ToolCallContent) -> bool:
        function = self.toolbox.get(call.name)
        return function is not None and function.approval_needed(call)

    def _rerun(self, call: ToolCallContent) -> bool:
        function = self.toolbox.get(call.name)
        return function is not None and function.idempotent

    # --- writing ----------------------------------------------------------------------------------------------------------------

    def record(self, *entries: Entry) -> None:
        """Make a step durable, and take note of where the turn stands then.

        Raises:
            Conflict: Another process has the turn in hand.
            StoreError: The store could not; nothing was written.
        """
        self.dialog.record(*entries)
        self.look()

    def say(self, message: Message) -> None:
        """Make a message durable; as `record`."""
        self.dialog.append(message)
        self.look()

    def require_in_hand(self) -> None:
        """Insist that nobody else has taken the turn over, before something is paid for that could not be recorded.

        Raises:
            Conflict: Another process has it in hand.
        """
        self.dialog.record()

    def look(self) -> None:
        """Take note of what others wrote beside the turn, too."""
        self.turn.catch_up(self.dialog.store, self.dialog.dialog_id)

    def begin(self) -> None:
        """Take the turn in hand. A process that still believes it has it gets a `Conflict` with its next step."""
        closing = (TurnEnded(outcome="interrupted"),) if self.turn.open else ()
        seq = self.dialog.store.last(self.dialog.dialog_id).seq + 1
        mark = Custom(
            custom_type=CALL,
            data={
                "began": self.turn.began if self.turn.began >= 0 else None,
                "inbox": min(self.turn.inbox, default=seq),
                "prompt": self.prompt.path,
            },
        )
        self.record(*closing, TurnStarted(agent=self.settings.name), mark)

    def end(self, outcome: str, *last: Entry) -> None:
        """Let go of the turn. What came too late for an answer that is final becomes part of the conversation behind it."""
        late = deliveries(self.turn.inbox, self.dialog.dialog_id) if outcome == "final" else ()
        self.record(*last, TurnEnded(outcome=outcome), *late)
        self.session.late = tuple(entry.message for entry in late)

    # --- the trace ----------------------------------------------------------------------------------------------------------------

    def enter(self, state: State) -> None:
        """Say where the call is."""
        self.session.state = state

    def require_heard(self) -> None:
        """Insist that no listener has raised.

        Raises:
            CallbackFailed: One has.
        """
        if self.sink.fault is not None:
            raise CallbackFailed("stream handler", self.sink.fault, session=self.session) from self.sink.fault

    async def hear(self, event: Event | Asking) -> None:
        """Take an event of the answer that is coming, and pass it on. That the model is asked is recorded before it is."""
        if isinstance(event, Asking):
            await aside(partial(self.dialog.record_call, event.request, self.decision))
            self.asked, self.request = True, event.request
        else:
            self._assemble(event)
        await self.sink.emit(event)

    def _assemble(self, event: Event) -> None:
        if self.hearing is None:
            self.hearing = Assembly(model=self.settings.model)
        try:
            self.hearing.add(event)
        except BrokenAnswer:  # whoever asked for the answer finds this, too, and says so
            self.hearing = None

    def cut_off(self) -> Iterable[Entry]:
        """Give the entry that keeps an answer of which only a part came; nothing where nothing did."""
        partial = None if self.hearing is None or self.hearing.ended else self.hearing.partial
        self.hearing = None
        if partial is not None and partial.contents:
            yield attempt_entry(Attempt(partial, PARTIAL, "The answer was cut off."))
