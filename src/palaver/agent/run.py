"""One agent call on its way: what it goes by, where its turn stands, and the one way in which it writes."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass, field

from palaver.agent.answering import Answering
from palaver.agent.call_session import AgentCallSession, State
from palaver.agent.inbox import deliveries
from palaver.agent.settings import Settings
from palaver.agent.sink import Sink
from palaver.agent.steps import Rules
from palaver.agent.tracing import Tracer, Untraced
from palaver.agent.turn import CALL, Turn
from palaver.errors import CallbackFailed
from palaver.log import Entry
from palaver.log.entries import Custom, TurnEnded, TurnStarted
from palaver.messages import Message, ToolCallContent, ToolMessage
from palaver.prompts import Prompt
from palaver.session import Dialog
from palaver.tools import Toolbox

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
        faults: What policies of the caller's raised in this call, as it was recorded: once each.
        answering: The call of the model that is on its way, or the one that failed last; None before one, and once there is an answer.
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
    faults: set[str] = field(default_factory=set)
    answering: Answering | None = None

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
