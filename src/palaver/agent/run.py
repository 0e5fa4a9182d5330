"""One running agent call: the agent's options, the call's settings, the state of its turn, and its writes."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any, TypeAlias, TypedDict

import anyio

from palaver.agent.answer import Answer
from palaver.agent.approvals import Approver, annotate, deliveries
from palaver.agent.call_session import USUAL_ROUNDS, AgentCallSession
from palaver.agent.claim import this_process
from palaver.agent.events import AgentEvent
from palaver.agent.invoking import Invoker, StreamHandler
from palaver.agent.turn import CALL, TurnState
from palaver.context.policy import ContextManager, policy
from palaver.context.summary import Summarizer
from palaver.context.triggers import Trigger
from palaver.errors import AgentFailure, Busy, Conflict, InvalidInput
from palaver.log import Entry
from palaver.log.entries import Custom, Inbox, MessageEntry, TurnEnded, TurnStarted
from palaver.messages import APITypes, Message, ToolMessage
from palaver.messages.frozen import EMPTY
from palaver.models.retry import Retry
from palaver.prompts import Prompt
from palaver.session import Dialog
from palaver.session.memory import CoreMemory, SubjectMemory
from palaver.tokens import Budget
from palaver.tools import CallContext, Toolbox
from palaver.wire import Memo, Request

__all__ = [
    "MOST_ROUNDS",
    "AgentOptions",
    "AgentRun",
    "CallArguments",
    "CallSettings",
    "Conversation",
    "Listeners",
    "callback_failed",
]

# --- settings -----------------------------------------------------------------------------------------------------------


MOST_ROUNDS = 100
"""The maximum number of rounds of tools if `max_interrupt_steps` is 0; LLLM's figure."""

_MOST_PARALLEL = 8
"""The number of calls of one answer that run in parallel."""


class AgentOptions(TypedDict, total=False):
    """The options of an agent, each by keyword: `Agent(..., max_interrupt_steps=20, summarizer=...)`.

    Attributes:
        approve: A function that decides at once about calls that need a decision. Without one they wait.
        max_exception_retry: The maximum number of repairs in a turn. Default: 3.
        max_interrupt_steps: The maximum number of rounds of tools in a turn; 0 means 100. Default: 20.
        max_llm_recall: The maximum number of retries when the provider fails; 0, the default, follows `retry`.
        retry: When and how often to retry, instead of the invoker's own policy.
        fallback: The policy to use if the context manager raises. By default the turn fails with `PolicyFailed`.
        summarizer: Writes a summary in addition to the record when exchanges leave the view. Default: none.
        triggers: When to compact although the view still fits its limit.
        recall: Whether the agent has the recall tools. By default, if a policy may leave something out and there is no format.
        memory: The core memory in its instructions, with tools to edit it; a `SubjectMemory` for one memory per subject.
        parallel_tools: Whether calls of one answer run in parallel. Default: True.
        inherit_system_contract: Whether the system prompt's parser, tools and handler are in force after plain text. Default: True.
        api_type: The provider's interface, if the invoker supports several.
        stream_handler: Called with every event.
        tracer: Called with every event too, such as `palaver.agent.telemetry.Telemetry`.
        deps: Objects that tools need: a database, a client, a user.
    """

    approve: Approver | None
    max_exception_retry: int
    max_interrupt_steps: int
    max_llm_recall: int
    retry: Retry | None
    fallback: str | None
    summarizer: Summarizer | None
    triggers: Sequence[Trigger]
    recall: bool | None
    memory: CoreMemory | SubjectMemory | None
    parallel_tools: bool
    inherit_system_contract: bool
    api_type: APITypes | str | None
    stream_handler: StreamHandler | None
    tracer: StreamHandler | None
    deps: Any


Conversation: TypeAlias = Sequence[Message | Mapping[str, Any]]
"""Messages that the caller keeps, or dicts in a provider's format."""


class CallArguments(TypedDict, total=False):
    """The keyword arguments of one call of an agent.

    Attributes:
        alias: The dialog's alias. Default: the active dialog.
        metadata: Stored with the answer.
        args: Arguments of this call, which override `model_args`.
        parser_args: Further arguments of the prompt's parser.
        abandon: Whether to go on without the decisions that calls wait for. The model reads that they were not run. Default: False.
        messages: A conversation that the caller keeps, answered in a new dialog. The last message is the user's.
        prompt_args: The variables of the system prompt, if the call opens a dialog: with `messages`, or the first of an agent.
    """

    alias: str | None
    metadata: Mapping[str, Any] | None
    args: Mapping[str, Any] | None
    parser_args: Mapping[str, Any] | None
    abandon: bool
    messages: Conversation | None
    prompt_args: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSettings:
    """The settings of one call: the agent's options, and the call's arguments.

    Attributes:
        agent: The agent.
        model: The model.
        invoker: Sends requests to the model.
        model_args: Arguments of the request.
        context_manager: Shapes each request, or None; with a budget alone the policy `palaver`.
        budget: The budget of one request, or None.
        parser_args: Further arguments of the prompt's parser.
        abandon: Whether to go on without the decisions that calls wait for.
        metadata: Stored with each answer.
        instructions: The text that replaces the dialog's instructions; empty to keep them.
    """

    agent: Any
    model: str
    invoker: Invoker
    model_args: Mapping[str, Any] = EMPTY
    context_manager: ContextManager | None = None
    budget: Budget | None = None
    parser_args: Mapping[str, Any] | None = None
    abandon: bool = False
    metadata: Mapping[str, Any] | None = None
    instructions: str = ""
    approve: Approver | None = None
    max_exception_retry: int = 3
    max_interrupt_steps: int = USUAL_ROUNDS
    max_llm_recall: int = 0
    retry: Retry | None = None
    fallback: str | None = None
    summarizer: Summarizer | None = None
    triggers: Sequence[Trigger] = ()
    recall: bool | None = None
    memory: CoreMemory | SubjectMemory | None = None
    parallel_tools: bool = True
    inherit_system_contract: bool = True
    api_type: APITypes | str | None = None
    stream_handler: StreamHandler | None = field(default=None, repr=False)
    tracer: StreamHandler | None = field(default=None, repr=False)
    deps: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            InvalidInput: A value has the wrong type.
            NotFound: No policy has the name of `fallback`.
        """
        for name in ("max_exception_retry", "max_interrupt_steps", "max_llm_recall"):
            number = getattr(self, name)
            if isinstance(number, bool) or not isinstance(number, int) or number < 0:
                raise InvalidInput(f"{name} is {number!r}.", hint="Pass a whole number, at least 0.")
        if not isinstance(self.model, str):
            raise InvalidInput(f"model is {self.model!r}.", hint="Pass the name of a model.")
        require_invoker(self.invoker)
        policy(self.fallback, self.model)

    @property
    def rounds(self) -> int:
        """The maximum number of rounds of tools in a turn."""
        return self.max_interrupt_steps or MOST_ROUNDS

    @property
    def parallel(self) -> int:
        """The number of calls of one answer that run in parallel."""
        return _MOST_PARALLEL if self.parallel_tools else 1

    @property
    def retrying(self) -> Retry:
        """When and how often to retry: `retry`, or else the invoker's own policy, or else never. `max_llm_recall` sets the number."""
        policy = self.retry or getattr(self.invoker, "retry", None)
        if self.max_llm_recall:
            return replace(policy or Retry(), attempts=self.max_llm_recall + 1)
        return policy or Retry(attempts=1)

    @property
    def provider(self) -> str:
        """The provider's name, or empty."""
        return str(getattr(getattr(self.invoker, "provider", None), "name", ""))


def require_invoker(given: object) -> None:
    """Raise InvalidInput unless the value is a provider or has an async `invoke`."""
    invoke = getattr(given, "invoke", None)
    if not callable(invoke):
        hint = 'Pass a provider, or an object with `async def invoke(...)`; Agent(model="openai/gpt-5") finds the provider itself.'
        raise InvalidInput(f"llm_invoker is {given!r}.", hint=hint)
    if not inspect.iscoroutinefunction(invoke):
        raise InvalidInput(
            f"The invoke of {type(given).__name__} is not async.", hint="Write `async def invoke(...)`; see Invoker."
        )


def require_options(options: Mapping[str, Any]) -> None:
    """Raise InvalidInput if an option does not exist."""
    known = AgentOptions.__annotations__
    for name in options:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            meant = f"Did you mean {near[0]!r}?" if near else f"Options: {', '.join(sorted(known))}."
            raise InvalidInput(f"An agent has no option {name!r}.", hint=meant)


# --- the run ------------------------------------------------------------------------------------------------------------


_LAST_WORD = 5.0
"""Seconds for listeners to handle the end of a turn. A listener that hangs must not block a cancelled call."""


def callback_failed(what: str, error: BaseException, session: AgentCallSession) -> AgentFailure:
    """Return the failure of a turn in which a callback of the caller raised."""
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
        session: The trace.
        said: The message with which the turn begins, until it is written; None if there is none.
        listeners: The listeners of its events.
        instructions: The system prompt that must be in force; empty to keep the dialog's.
        unsaved: Results that the store refused, by dialog and call. They are written first when it accepts writes again.
        undecided: Calls that the approver did not decide.
        suspended: Calls of sub-agents that wait for a decision.
        answering: The current model call, or the one that failed last; None before a call and after an answer.
        measured: The last request that was answered, and the provider's token count of it.
        memo: The compiled exchanges of the last request.
    """

    settings: CallSettings
    dialog: Dialog
    turn: TurnState
    prompt: Prompt
    toolbox: Toolbox
    session: AgentCallSession
    listeners: Listeners
    instructions: str = ""
    said: Message | None = None
    unsaved: MutableMapping[tuple[str, str], ToolMessage] = field(default_factory=dict)
    undecided: set[str] = field(default_factory=set)
    suspended: set[str] = field(default_factory=set)
    answering: Any = None
    measured: tuple[Request, int] | None = None
    memo: Memo = field(default_factory=Memo)

    @property
    def postponed(self) -> set[str]:
        """The calls that wait for a decision from outside."""
        return self.undecided | self.suspended

    @property
    def context(self) -> CallContext:
        """The surroundings of a tool's call."""
        settings = self.settings
        return CallContext(
            dialog=self.dialog,
            agent=settings.agent,
            trace=self.session,
            tracer=settings.tracer,
            deps=settings.deps,
            on_progress=self.listeners.note,
        )

    # --- writing ----------------------------------------------------------------------------------------------------------

    def record(self, *entries: Entry) -> None:
        """Append entries, and update the state of the turn.

        Raises:
            Conflict: Another process continued the turn.
            StoreError: The store failed; nothing was written.
        """
        self.dialog.record(*entries)
        self.look()

    def say(self, message: Message) -> None:
        """Append a message; see `record`."""
        self.dialog.append(message)
        self.look()

    def look(self) -> None:
        """Read the entries written since, including those of other writers."""
        self.turn.catch_up(self.dialog.store, self.dialog.dialog_id)

    def begin(self) -> None:
        """Begin or resume the turn, in one step with its message. A process that ran it until now gets a `Conflict` at its next step.

        Raises:
            Busy: Another process was first; nothing was written.
        """
        store, dialog_id = self.dialog.store, self.dialog.dialog_id
        closing = (TurnEnded(outcome="interrupted"),) if self.turn.open else ()
        said = () if self.said is None else (MessageEntry(message=self.said),)
        data = {
            "began": self.turn.began if self.turn.began >= 0 else None,
            "inbox": min(self.turn.inbox, default=store.last(dialog_id).seq + 1),
            "prompt": self.prompt.path,
            "process": this_process(),
        }
        marks = TurnStarted(agent=self.settings.agent.name), Custom(custom_type=CALL, data=data)
        try:
            if said and (closing or self.turn.pending):  # the calls of the turn come before the message
                with store.transaction():
                    self.queue()
                    self.record(*closing, *marks)
            else:
                self.record(*closing, *said, *marks)
        except Conflict as error:
            raise Busy(dialog_id, error.expected, error.actual) from error
        self.said = None

    def queue(self) -> None:
        """Store the message of the call in the inbox, if there is one. It is delivered at the next request to the model."""
        if self.said is not None:
            annotate(self.dialog.store, self.dialog.dialog_id, Inbox(message=self.said))
            self.look()
            self.said = None

    def end(self, outcome: str, *last: Entry) -> None:
        """End the turn. Messages that came too late for a final answer are appended after it."""
        late = deliveries(self.turn.inbox, self.dialog.dialog_id) if outcome == "final" else ()
        self.record(*last, TurnEnded(outcome=outcome), *late)
        self.session.late = tuple(entry.message for entry in late)

    def deliver(self, answer: Message | None) -> None:
        """Set the answer of the call."""
        self.session.delivery = None if answer is None else Answer.of(answer, self.settings.agent.output)

    def require_listeners(self) -> None:
        """Raise if a listener has raised.

        Raises:
            AgentFailure: A listener raised; the kind is `callback`.
        """
        fault = self.listeners.fault
        if fault is not None:
            raise callback_failed("stream handler", fault, self.session) from fault
