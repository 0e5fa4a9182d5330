"""The agent: named dialogs, and turns in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, get_args, overload

from palaver.agent.auto_compact import AutoCompact
from palaver.agent.call_session import AgentCallSession
from palaver.agent.contract import offered, task_prompt
from palaver.agent.given import given_messages
from palaver.agent.hearing import Hearing
from palaver.agent.invoking import Invoker, ProviderInvoker, StreamHandler
from palaver.agent.loop import go
from palaver.agent.run import Run
from palaver.agent.settings import Approver, OnRefused, Settings
from palaver.agent.sink import Sink
from palaver.agent.streaming import TurnStream
from palaver.agent.tracing import Tracer, Untraced
from palaver.agent.turn import read_turn
from palaver.context import FullContext, Policy
from palaver.context.registry import require_policy
from palaver.errors import DecisionNeeded, InvalidInput, PalaverError
from palaver.messages import APITypes, Message, ToolMessage
from palaver.models import Provider
from palaver.models.retry import Retry
from palaver.prompts import Prompt, Runtime
from palaver.session import Dialog
from palaver.session.calls.composing import BudgetLike, PolicyLike
from palaver.session.memory import CoreMemory, SubjectMemory, core_memory_tools, recall_tools
from palaver.store import MemoryStore
from palaver.store.blocks import require_no_block
from palaver.store.connect import StoreLike
from palaver.tools import Function
from palaver.tools.aside import aside
from palaver.tools.portal import run_sync

__all__ = ["Agent"]

_PARALLEL = 8
"""Calls of one answer that run side by side at most."""

Given = Sequence[Message | Mapping[str, Any]]


class Agent(Hearing):
    """Someone who answers: a prompt, a model, and the dialogs it has.

    Every step of a turn is durable before the next one. A turn that was killed, cut off, or waits for a human is gone on with by the next
    `respond()`, in this process or another: `palaver.agent.steps` has the table.

    One thread at a time runs a turn of a dialog; `receive` and the decisions may come from any.

    Attributes:
        model: The model.
        llm_invoker: What asks it; a provider is asked through a `ProviderInvoker`.
        model_args: What it is asked with: fields of `palaver.wire.Call`, and the provider's own parameters.
        max_exception_retry: How many refused answers a turn may have repaired.
        max_interrupt_steps: How many rounds of tools a turn may have; 0 for 100.
        max_llm_recall: How often the provider is asked again when it fails; 0 for what the invoker's own `retry` says.
        context_manager: What shapes each request; None for everything. May be assigned.
        budget: What one request may occupy; None for whatever the provider takes.
        compact: When and how what the model sees is made smaller by itself; None where only a request that is too long does it.
        on_refused: What becomes of a turn whose request is refused for good because of one block: `raise` an error that names it, or
            `quarantine` it, by an entry that can be taken back, and ask again without it.
        memory: Its core memory, which stands in its instructions, with the tools to edit it: a `SubjectMemory` for one of each subject that it talks
            with, or a `CoreMemory`, which is then the same in all of its dialogs, whoever they are about; agents may share one.
        tools: Tools it has in every turn, besides those of the prompt in force.
        recall: Whether it has the tools to bring back what its views leave out (`recall_tools`); None for where something may be left out,
            with `compact`, a `budget` or a `context_manager` other than `full`, unless its prompt asks for a structure. May be assigned.
        stream_handler: What is told of every event.
        api_type: Which of a provider's interfaces, where the invoker has several.
        inherit_system_contract: Whether mere text leaves the system prompt's parser, tools and handler in force.
        approver: Who decides at once about calls that need a decision; None leaves them waiting.
        parallel_tools: Whether calls of one answer run side by side.
        deps: What tools may ask for besides.
        retry: When and how often to ask again, in place of the invoker's own.
        tracer: Who follows its turns from outside: see `palaver.agent.telemetry`.
        last_call: The trace of the newest call, however it ended; None before the first.
    """

    def __init__(  # noqa: PLR0913 - an agent is what it is given; all but four by keyword
        self,
        name: str,
        system_prompt: Prompt | str,
        model: str,
        llm_invoker: Invoker | Provider,
        *,
        model_args: Mapping[str, Any] | None = None,
        max_exception_retry: int = 3,
        max_interrupt_steps: int = 5,
        max_llm_recall: int = 0,
        context_manager: PolicyLike | None = None,
        budget: BudgetLike | None = None,
        compact: AutoCompact | None = None,
        on_refused: OnRefused = "raise",
        memory: CoreMemory | SubjectMemory | None = None,
        tools: Iterable[Any] = (),
        recall: bool | None = None,
        stream_handler: StreamHandler | None = None,
        api_type: APITypes | str | None = None,
        inherit_system_contract: bool = True,
        store: StoreLike | None = None,
        runtime: Runtime | None = None,
        approve: Approver | None = None,
        parallel_tools: bool = True,
        deps: Any = None,  # noqa: ANN401 - whatever the program's tools need
        retry: Retry | None = None,
        tracer: Tracer | None = None,
    ) -> None:
        require_policy(context_manager, "context_manager")
        super().__init__(name, system_prompt, store, runtime)
        self.model = _named(model)
        self.llm_invoker = ProviderInvoker(llm_invoker) if isinstance(llm_invoker, Provider) else llm_invoker
        self.model_args: Mapping[str, Any] = MappingProxyType(dict(model_args or {}))
        self.max_exception_retry = _count("max_exception_retry", max_exception_retry)
        self.max_interrupt_steps = _count("max_interrupt_steps", max_interrupt_steps)
        self.max_llm_recall = _count("max_llm_recall", max_llm_recall)
        self.context_manager = context_manager
        self.budget = budget
        self.compact = compact
        self.on_refused: OnRefused = _way(on_refused)
        self.memory = memory
        self.tools = _listed(tools)
        self.recall = recall
        self.stream_handler = stream_handler
        self.api_type = api_type
        self.inherit_system_contract = inherit_system_contract
        self.approver = approve
        self.parallel_tools = parallel_tools
        self.deps = deps
        self.retry = retry
        self.tracer = tracer or Untraced()
        self.last_call: AgentCallSession | None = None
        self._unsaved: dict[tuple[str, str], ToolMessage] = {}

    def __repr__(self) -> str:
        return f"<Agent {self.name} model={self.model!r} dialogs={list(self._aliases)}>"

    # --- turns ------------------------------------------------------------------------------------------------------------------

    @overload
    def respond(
        self,
        alias: str | None = ...,
        metadata: Mapping[str, Any] | None = ...,
        args: Mapping[str, Any] | None = ...,
        parser_args: Mapping[str, Any] | None = ...,
        return_session: Literal[False] = ...,
        *,
        messages: Given | None = ...,
        input: str = ...,
        prompt_args: Mapping[str, Any] | None = ...,
    ) -> Message: ...
    @overload
    def respond(
        self,
        alias: str | None = ...,
        metadata: Mapping[str, Any] | None = ...,
        args: Mapping[str, Any] | None = ...,
        parser_args: Mapping[str, Any] | None = ...,
        *,
        return_session: Literal[True],
        messages: Given | None = ...,
        input: str = ...,
        prompt_args: Mapping[str, Any] | None = ...,
    ) -> AgentCallSession: ...
    def respond(  # noqa: PLR0913 - the source documents' signature
        self,
        alias: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        args: Mapping[str, Any] | None = None,
        parser_args: Mapping[str, Any] | None = None,
        return_session: bool = False,  # noqa: FBT001, FBT002 - a public signature
        *,
        messages: Given | None = None,
        input: str = "",  # noqa: A002 - a public signature
        prompt_args: Mapping[str, Any] | None = None,
    ) -> Message | AgentCallSession:
        """Answer: as `arespond`, for synchronous callers. Ctrl-C interrupts the turn and leaves it to the next call."""
        settings = self._settings(metadata, args, parser_args)
        dialog = self._addressed(alias, messages, input, prompt_args)
        session = self._session(dialog)
        run_sync(partial(self._answer, dialog, session, settings, None))
        return _given_back(session, whole=return_session)

    @overload
    async def arespond(
        self,
        alias: str | None = ...,
        metadata: Mapping[str, Any] | None = ...,
        args: Mapping[str, Any] | None = ...,
        parser_args: Mapping[str, Any] | None = ...,
        return_session: Literal[False] = ...,
        *,
        messages: Given | None = ...,
        input: str = ...,
        prompt_args: Mapping[str, Any] | None = ...,
    ) -> Message: ...
    @overload
    async def arespond(
        self,
        alias: str | None = ...,
        metadata: Mapping[str, Any] | None = ...,
        args: Mapping[str, Any] | None = ...,
        parser_args: Mapping[str, Any] | None = ...,
        *,
        return_session: Literal[True],
        messages: Given | None = ...,
        input: str = ...,
        prompt_args: Mapping[str, Any] | None = ...,
    ) -> AgentCallSession: ...
    async def arespond(  # noqa: PLR0913 - the source documents' signature
        self,
        alias: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        args: Mapping[str, Any] | None = None,
        parser_args: Mapping[str, Any] | None = None,
        return_session: bool = False,  # noqa: FBT001, FBT002 - a public signature
        *,
        messages: Given | None = None,
        input: str = "",  # noqa: A002 - a public signature
        prompt_args: Mapping[str, Any] | None = None,
    ) -> Message | AgentCallSession:
        """Answer in a dialog: go on with its turn, or begin the next one.

        Args:
            alias: Which of its dialogs; the one that is talked to when not given.
            metadata: What is to be kept with the answer.
            args: What the model is asked with in this call, over `model_args`.
            parser_args: What the prompt's parser is called with besides the text.
            return_session: Whether to give the trace in place of the answer. A turn that waits for a decision is a trace, too.
            messages: A conversation that the caller keeps, answered in a dialog of its own and in no other; the last message is the user's.
            input: A text to be answered: in the dialog, or behind `messages`.
            prompt_args: The variables of the system prompt, for `messages`.

        Raises:
            AgentFailure: There is no answer; the error has the trace.
            DecisionNeeded: A call waits for a human, and no trace was asked for.
            InfeasibleBudget: What must be sent is larger than the budget.
            Conflict: Another process has the turn in hand.
            StoreError: The store failed. These three have the trace as `session`, too; so has `last_call`, whatever happened.
        """
        dialog = self._addressed(alias, messages, input, prompt_args)
        session = self._session(dialog)
        await self._answer(dialog, session, self._settings(metadata, args, parser_args), None)
        return _given_back(session, whole=return_session)

    def stream(  # noqa: PLR0913 - as arespond
        self,
        alias: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        args: Mapping[str, Any] | None = None,
        parser_args: Mapping[str, Any] | None = None,
        *,
        messages: Given | None = None,
        input: str = "",  # noqa: A002 - a public signature
        prompt_args: Mapping[str, Any] | None = None,
    ) -> TurnStream:
        """Answer, and give every event as it happens: `for event in agent.stream()`, or `async for`. Arguments as for `arespond`."""
        dialog = self._addressed(alias, messages, input, prompt_args)
        session = self._session(dialog)
        settings = self._settings(metadata, args, parser_args)
        return TurnStream(session, lambda handler: self._answer(dialog, session, settings, handler))

    def _addressed(
        self, alias: str | None, messages: Given | None, text: str, prompt_args: Mapping[str, Any] | None
    ) -> Dialog:
        """Give the dialog that is to be answered in, with what was said in the same breath."""
        if messages is None:
            dialog = self._named(alias)
            require_no_block(dialog.store, "A turn")
            if text:
                self.receive(text, alias)
            return dialog
        found = given_messages(messages, text)
        store = self.store if self._kept else MemoryStore()
        require_no_block(store, "A turn")
        dialog = self._opened(store, f"{self.name}_messages", prompt_args)
        dialog.append(found)
        return dialog

    def _session(self, dialog: Dialog) -> AgentCallSession:
        return AgentCallSession(
            agent_name=self.name,
            dialog_id=dialog.dialog_id,
            dialog=dialog,
            max_exception_retry=self.max_exception_retry,
            max_interrupt_steps=self.max_interrupt_steps,
            max_llm_recall=self.max_llm_recall,
        )

    def _settings(
        self,
        metadata: Mapping[str, Any] | None,
        args: Mapping[str, Any] | None,
        parser_args: Mapping[str, Any] | None,
    ) -> Settings:
        return Settings(
            name=self.name,
            model=self.model,
            invoker=self.llm_invoker,
            model_args={**self.model_args, **(args or {})},
            parser_args=parser_args,
            metadata=metadata,
            api_type=self.api_type,
            max_exception_retry=self.max_exception_retry,
            max_interrupt_steps=self.max_interrupt_steps,
            retry=self._retry(),
            context_manager=self.context_manager,
            budget=self.budget,
            compact=self.compact,
            on_refused=self.on_refused,
            approve=self.approver,
            parallel=_PARALLEL if self.parallel_tools else 1,
            deps=self.deps,
            agent=self,
        )

    def _retry(self) -> Retry:
        policy = self.retry or getattr(self.llm_invoker, "retry", None)
        if self.max_llm_recall:
            return replace(policy or Retry(), attempts=self.max_llm_recall + 1)
        return policy or Retry(attempts=1)

    async def _answer(
        self, dialog: Dialog, session: AgentCallSession, settings: Settings, handler: StreamHandler | None
    ) -> AgentCallSession:
        self.last_call = session
        with self._in_hand(dialog):
            try:
                await self._turn(dialog, session, settings, handler)
            except Exception as error:  # whatever it is, the trace says so, and it is raised again
                if session.state == "initial":  # it failed before the turn was in hand: a tool, a server, the store
                    session.state, session.error = "failure", error
                if isinstance(error, PalaverError):  # those that are no AgentFailure lead to the trace as well
                    vars(error).setdefault("session", session)
                raise
        return session

    async def _turn(
        self, dialog: Dialog, session: AgentCallSession, settings: Settings, handler: StreamHandler | None
    ) -> None:
        dialog.reload()
        turn = await aside(partial(read_turn, dialog.store, dialog.dialog_id))
        session.resumed = turn.began >= 0
        task = task_prompt(dialog, turn, self.system_prompt, inherit=self.inherit_system_contract)
        before = dialog.top_prompt
        memory = self.memory.core(dialog) if isinstance(self.memory, SubjectMemory) else self.memory
        own = self.tools if memory is None else (*self.tools, *core_memory_tools(memory))
        async with offered(task, dialog.runtime, own, self._kit(task)) as (prompt, toolbox):
            run = Run(
                settings=replace(settings, memory=memory),
                dialog=dialog,
                turn=turn,
                prompt=prompt,
                toolbox=toolbox,
                session=session,
                sink=Sink((self.stream_handler, handler)),
                unsaved=self._unsaved,
                tracer=self.tracer,
            )
            with self.tracer.turn(run.settings, session):
                await go(run)
        if dialog.top_prompt is before:  # nothing was put meanwhile: what governed the answer stays
            dialog.top_prompt = task

    def _kit(self, task: Prompt) -> tuple[Function, ...]:
        """Give the tools that bring back what views leave out, if it has them.

        Where nobody says, it has them where something may be left out, but not beside a structure of the answer: some models give no such answer
        where tools are declared.
        """
        if self.recall is None:
            small = self.compact is not None or self.budget is not None or not _shows_all(self.context_manager)
            return recall_tools() if small and task.format is None else ()
        return recall_tools() if self.recall else ()


def _shows_all(shaped: PolicyLike | None) -> bool:
    """Tell whether a context manager, as it is named, leaves nothing out."""
    if isinstance(shaped, Policy):
        return shaped.complete
    name = shaped.get("type") if isinstance(shaped, Mapping) else shaped
    return name is None or (isinstance(name, str) and name in {"null", FullContext.name})


def _given_back(session: AgentCallSession, *, whole: bool) -> Message | AgentCallSession:
    if whole:
        return session
    if session.state == "waiting" or session.delivery is None:
        raise DecisionNeeded(session.waiting, session=session)
    return session.delivery


def _listed(tools: object) -> tuple[Any, ...]:
    """Give tools as a tuple; one that was given by itself is named as the mistake."""
    if isinstance(tools, str) or not isinstance(tools, Iterable):
        raise InvalidInput(f"tools is a list of tools, not {tools!r}.", hint="Put it into a list.")
    return tuple(tools)


def _named(model: object) -> str:
    if isinstance(model, str):
        return model
    raise InvalidInput(f"model is the name of a model, not {model!r}.")


def _way(wanted: OnRefused) -> OnRefused:
    if wanted in get_args(OnRefused):
        return wanted
    raise InvalidInput(f"on_refused is one of {', '.join(get_args(OnRefused))}, not {wanted!r}.")


def _count(what: str, number: object) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise InvalidInput(f"{what} is a whole number, not {number!r}.")
    return number
