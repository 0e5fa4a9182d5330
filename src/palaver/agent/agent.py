"""The agent: named dialogs, and turns in them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from typing import Any, Generic, Literal, Self, Unpack, overload

from pydantic import TypeAdapter

from palaver.agent.approvals import Decision, annotate, decide, open_calls
from palaver.agent.claim import RUNNING, require_no_transaction
from palaver.agent.invoking import Invoker, ProviderInvoker, require_invoker
from palaver.agent.limits import require_limited, require_prices
from palaver.agent.options import AgentOptions, CallArguments, CallSettings, Conversation, OptionKeywords, require_types
from palaver.agent.streaming import TurnStream
from palaver.agent.trace import Answer, OutputT, Trace
from palaver.agent.turn import read_turn
from palaver.agent.turns import AgentTurns, nothing_new
from palaver.context import DEFAULT_POLICY, Policy, policy, require_policy
from palaver.dialects.lists import read_messages
from palaver.errors import Conflict, DecisionNeeded, InvalidInput, NotFound
from palaver.ids import DialogId
from palaver.log import Handle
from palaver.log.entries import Inbox
from palaver.messages import (
    Content,
    ImageContent,
    Message,
    Role,
    TextContent,
    ToolCallContent,
    UserMessage,
)
from palaver.prompts import (
    Format,
    Prompt,
    PromptRef,
    Runtime,
    as_tool,
    get_default_runtime,
    verbatim_prompt,
)
from palaver.providers import Provider, connect_model
from palaver.session import Dialog, Session
from palaver.session.awaited import awaited, in_worker
from palaver.session.compaction import BudgetLike, PolicyLike
from palaver.session.incoming import media_from, rendered
from palaver.store.connect import StoreLike, opened_store
from palaver.store.memory import MemoryStore
from palaver.store.protocol import Store
from palaver.tokens import Budget
from palaver.tools import CallContext
from palaver.tools.portal import run_sync

_MAIN = "main"
"""The alias of the dialog that `respond` and `receive` open when the agent has no dialog."""

_ADOPTED = "adopt(alias, dialog) adds one that another agent or the program began."


@dataclass(frozen=True)
class _Parts:
    """What the constructor is given that nothing else reads before a turn."""

    name: str
    model: str
    tools: Iterable[Any]
    runtime: Runtime | None
    model_args: Mapping[str, Any] | None


class Agent(Generic[OutputT]):
    """An agent answers in durable dialogs, with a prompt, a model and tools.

    Every step of a turn is durable before the next one. The next `respond()`, in this process or another, continues a turn that was
    killed, was cut off or waits for a person. `palaver.agent.steps` has the table of outcomes.

    One thread at a time runs a turn of a dialog. Any thread may call `receive` and record decisions.

    Attributes:
        name: The agent's name; it owns its dialogs.
        system_prompt: The prompt that opens each dialog.
        model: The model.
        llm_invoker: Sends requests to the model.
        tools: Tools of every turn, in addition to those of the prompt in force: functions, tactics and references.
        context_manager: The policy or context manager that shapes each request; None sends everything. May be assigned.
        budget: The budget of one request; None for the policy's own.
        model_args: Fields of `palaver.wire.Call`, and the provider's own parameters.
        options: Its options. May be assigned.
        store: The store of its dialogs.
        runtime: Resolves references.
        output: The format of its answers, which overrides the prompt's; None for text.
        active_alias: The alias of the active dialog, or None.
        last_call: The trace of the newest call, however it ended; None before the first.
        on_trace: Called with the trace of each call when it begins, or None.
    """

    def __init__(  # noqa: PLR0913 - the parts of every agent; everything else is an option
        self,
        name: str,
        system_prompt: Prompt | PromptRef | str,
        model: str,
        llm_invoker: Invoker | Provider | None = None,
        *,
        output: type[OutputT] | TypeAdapter[OutputT] | None = None,
        tools: Iterable[Any] = (),
        context_manager: PolicyLike | None = None,
        budget: BudgetLike | None = None,
        store: StoreLike | None = None,
        runtime: Runtime | None = None,
        model_args: Mapping[str, Any] | None = None,
        **options: Unpack[OptionKeywords],
    ) -> None:
        """Create an agent.

        Args:
            name: Its name.
            system_prompt: A prompt, `Prompt.ref(path)` for a registered one, or a plain string.
            model: The provider's name of the model; `provider/model` without an invoker.
            llm_invoker: An invoker or a provider; it sends the requests.
            output: The type of each answer's `output`: a Pydantic model, a dataclass, or any other type that `Prompt(format=...)` accepts. If an
                answer does not fit, the model is asked to repair it. Without `output`, an answer's output is its text.
            tools: Functions, callables, tactics, or references to registered ones.
            context_manager: A policy or context manager, its name, or its configuration.
            budget: A budget, tokens, or a configuration; with a budget alone the policy is `palaver`.
            store: A store, or the path or address of one. Default: in memory.
            runtime: Resolves references. Default: the default runtime.
            model_args: Fields of `palaver.wire.Call`, and the provider's own parameters.
            options: See `AgentOptions`.

        Raises:
            InvalidInput: A value is wrong, or an option does not exist.
            InfeasibleBudget: The budget leaves no token for any input.
            NotFound: The prompt is not registered, no policy has the name, or a limit is in dollars and a model has no known price.
        """
        require_types(_Parts, vars(_Parts(name, model, tools, runtime, model_args)))
        if not name:
            raise InvalidInput("The agent's name is ''.", hint="Pass a non-empty name; it owns the agent's dialogs.")
        if isinstance(tools, str):
            raise InvalidInput(f"tools is {tools!r}.", hint="Pass a list of tools.")
        self.name = name
        self.runtime = runtime or get_default_runtime()
        self.system_prompt = self._prompt(system_prompt)
        if llm_invoker is None:
            llm_invoker, model = connect_model(model)
        self.model = model
        self.llm_invoker = ProviderInvoker(llm_invoker) if isinstance(llm_invoker, Provider) else llm_invoker
        asked: object = output
        self.output = asked if asked is None or isinstance(asked, Format) else Format(asked)
        self.tools: tuple[Any, ...] = tuple(map(as_tool, tools))
        self.context_manager = context_manager
        self.budget = budget
        self.model_args: Mapping[str, Any] = dict(model_args or {})
        self.options = AgentOptions.of(options)
        self.store: Store = opened_store(store, create=True)[0]
        self.last_call: Trace | None = None
        self.on_trace: Callable[[Trace], None] | None = None
        self._durable = store is not None
        self.active_alias: str | None = None
        self._dialogs: dict[str, Dialog] = {}
        self._instructions: dict[DialogId, str] = {}
        self._turns = AgentTurns()
        self._settings({})  # raises for a wrong value now, not at the first call

    def _prompt(self, prompt: object) -> Prompt:
        if isinstance(prompt, Prompt):
            return prompt
        if isinstance(prompt, PromptRef):
            return self.runtime.get_prompt(prompt.path)
        if isinstance(prompt, str):
            return verbatim_prompt(f"{self.name}/system", prompt)
        hint = 'Pass a string, a Prompt, or Prompt.ref("path") for a registered one.'
        raise InvalidInput(f"system_prompt is {prompt!r}.", hint=hint)

    def __repr__(self) -> str:
        return f"<Agent {self.name} model={self.model!r} dialogs={list(self.dialogs)}>"

    # --- named dialogs ----------------------------------------------------------------------------------------------------------

    @property
    def dialogs(self) -> dict[str, Dialog]:
        """The agent's dialogs by alias, as a copy."""
        return dict(self._dialogs)

    @property
    def current_dialog(self) -> Dialog:
        """The active dialog.

        Raises:
            InvalidInput: No dialog is active.
        """
        return self._named(None)

    def _named(self, alias: str | None) -> Dialog:
        """Return the dialog of an alias, or the active one.

        Raises:
            InvalidInput: No dialog is active, or the alias is not a string.
            NotFound: No dialog has this alias; the error lists the others.
        """
        wanted: object = self.active_alias if alias is None else alias
        if wanted is None:
            raise InvalidInput(f"The agent {self.name!r} has no active dialog.", hint="Open one, or switch to one.")
        if not isinstance(wanted, str):
            raise InvalidInput(f"alias is {wanted!r}.", hint=f"Pass the agent's name for a dialog. {_ADOPTED}")
        if wanted not in self._dialogs:
            near, known = get_close_matches(wanted, self._dialogs), ", ".join(self._dialogs) or "none"
            hint = f"It has: {known}. {_ADOPTED}"
            raise NotFound(wanted, what="dialog of this agent", close=near, hint=hint)
        return self._dialogs[wanted]

    def _addressed(self, alias: str | None) -> Dialog:
        """Return the dialog of an alias, or the active one; an agent without any dialog opens `main`."""
        if alias is None and not self._dialogs:
            self.open(_MAIN)
        return self._named(alias)

    def _require_free(self, alias: str) -> None:
        if alias in self._dialogs:
            hint = "Switch to it, or close it."
            raise InvalidInput(f"The agent {self.name!r} already has a dialog {alias!r}.", hint=hint)

    def _add(self, alias: str, dialog: Dialog, *, switch: bool) -> Self:
        self._require_free(alias)
        self._dialogs[alias] = dialog
        self.active_alias = alias if switch else self.active_alias
        return self

    def open(  # noqa: PLR0913 - all but the first three by keyword
        self,
        alias: str,
        prompt_args: Mapping[str, Any] | None = None,
        session_name: str | None = None,
        *,
        first: str = "",
        resume: bool = False,
        subject: str = "",
        switch: bool = True,
    ) -> Self:
        """Begin a dialog in a new session, with the system prompt as its first message, in one step.

        Args:
            alias: The agent's name for the dialog.
            prompt_args: The variables of the system prompt.
            session_name: The session's name. Default: `{agent}_{alias}`.
            first: The user's first message, if any.
            resume: Whether to continue the session of this name if the store has one, without adding `first`. If several processes do so at
                once, one of them creates it.
            subject: The person whose data it is; selects a `SubjectMemory`.
            switch: Whether it becomes the active dialog.

        Raises:
            InvalidInput: The alias is in use, or variables are missing; nothing was created.
        """
        self._require_free(alias)
        name = session_name or f"{self.name}_{alias}"
        known = self._stored(name) if resume else None
        if known is None:
            # under the lock of the name, so that of several processes one creates the session
            with self.store.transaction(lock=f"session {name}" if resume else ""):
                known = self._stored(name) if resume else None
                if known is None:
                    dialog = self._opened(self.store, name, prompt_args, subject)
                    if first:
                        dialog.put_text(first)
                    return self._add(alias, dialog, switch=switch)
        return self.adopt(alias, self._newest(known), prompt_args, switch=switch)

    def _stored(self, name: str) -> Session | None:
        record = next(iter(self.store.sessions(name=name, limit=1)), None)
        return (
            None if record is None else Session(self.store, record.session_id, self.runtime, active=record.updated_at)
        )

    def _opened(self, store: Store, name: str, prompt_args: Mapping[str, Any] | None, subject: str = "") -> Dialog:
        rendered(self.system_prompt, prompt_args)  # raises before anything is created
        dialog = Session.create(store, name, owner=self.name, subject=subject, runtime=self.runtime).root
        dialog.put_prompt(self.system_prompt, prompt_args, role=Role.SYSTEM, name="system")
        return dialog

    def resume(
        self,
        reference: str | Session,
        alias: str | None = None,
        *,
        dialog: str | None = None,
        prompt_args: Mapping[str, Any] | None = None,
        instructions: Literal["own", "dialog"] = "own",
        switch: bool = True,
    ) -> Self:
        """Open a session of the agent's store. `respond()` then continues a turn that was cut off or waits.

        Args:
            reference: The session's id or name, or the first digits of its id; or the session.
            alias: The agent's name for the dialog. Default: the reference, or the session's id.
            dialog: The id of the dialog. Default: the newest that this agent owns, or else the newest.
            prompt_args: The variables of the system prompt; see `adopt`.
            instructions: Whose instructions are in force; see `adopt`.
            switch: Whether it becomes the active dialog.

        Raises:
            InvalidInput: The alias is in use.
            NotFound: The session does not exist.
        """
        alias = alias or (reference.session_id if isinstance(reference, Session) else reference)
        self._require_free(alias)
        session = (
            reference if isinstance(reference, Session) else Session.open(self.store, reference, runtime=self.runtime)
        )
        place = self._newest(session) if dialog is None else session.dialog(dialog)
        return self.adopt(alias, place, prompt_args, instructions=instructions, switch=switch)

    def _newest(self, session: Session) -> Dialog:
        """Return the newest dialog of a session that this agent owns, or else the newest."""
        own = [node for node in self.store.nodes(session.session_id) if node.owner == self.name]
        if not own:
            return session.newest
        last = max(own, key=lambda node: self.store.last(node.dialog_id).at) if len(own) > 1 else own[0]
        return session.opened.dialog(last.dialog_id, last)

    def adopt(
        self,
        alias: str,
        dialog: Dialog,
        prompt_args: Mapping[str, Any] | None = None,
        *,
        instructions: Literal["own", "dialog"] = "own",
        switch: bool = True,
    ) -> Self:
        """Add a dialog that the program or another agent began.

        From the agent's next turn on, its own system prompt replaces the dialog's instructions, as an entry of the log; an entry is written only if
        the prompt is not in force yet.

        Args:
            alias: The agent's name for the dialog.
            dialog: The dialog.
            prompt_args: The variables of the system prompt. If it has any and none are passed, a dialog that this agent began keeps its
                instructions.
            instructions: `own` for the agent's system prompt, `dialog` to keep the dialog's instructions.
            switch: Whether it becomes the active dialog.

        Raises:
            InvalidInput: The alias is in use, `prompt_args` do not fit, or `instructions` has another value.
        """
        self._require_free(alias)
        if instructions not in {"own", "dialog"}:
            raise InvalidInput(f"instructions is {instructions!r}.", hint='Use "own" or "dialog".')
        if instructions == "dialog" and prompt_args:
            raise InvalidInput("The dialog's instructions have no prompt_args.", hint='Pass instructions="own".')
        # without its variables the prompt cannot be rendered again; what this agent rendered then is in the dialog
        began = self.system_prompt.template_vars and prompt_args is None and dialog.owner == self.name
        text = "" if instructions == "dialog" or began else rendered(self.system_prompt, prompt_args)
        self._instructions[dialog.dialog_id] = text
        return self._add(alias, dialog, switch=switch)

    def switch(self, alias: str) -> Self:
        """Activate another dialog of the agent.

        Raises:
            NotFound: No dialog has this alias; the error lists the others.
        """
        self._named(alias)
        self.active_alias = alias
        return self

    def fork(self, alias: str, child_alias: str, last_n: int = 0, first_k: int = 1, *, switch: bool = True) -> Self:
        """Fork one of the agent's dialogs; see `Dialog.fork`.

        Raises:
            NotFound: No dialog has this alias.
            InvalidInput: The child's alias is in use.
        """
        self._require_free(child_alias)
        dialog = self._named(alias)
        with RUNNING.lock:
            if dialog.dialog_id not in RUNNING:
                dialog.reload()
        child = dialog.fork(last_n, first_k)
        self._instructions[child.dialog_id] = self._instructions.get(dialog.dialog_id, "")
        return self._add(child_alias, child, switch=switch)

    def close(self, alias: str) -> Dialog:
        """Remove an alias and return its dialog, which stays in the store.

        Raises:
            NotFound: No dialog has this alias.
        """
        dialog = self._named(alias)
        del self._dialogs[alias]
        self.active_alias = None if self.active_alias == alias else self.active_alias
        return dialog

    # --- messages ------------------------------------------------------------------------------------------------------------------

    def receive(
        self, text: str, alias: str | None = None, role: Role | str = Role.USER, name: str | None = None
    ) -> Message:
        """Append a text to a dialog.

        While a turn runs, here or in another process, or waits for a decision, the text is stored in the inbox at once. It is delivered at
        the next call of the model, or after the turn's answer. The same applies to prompts and images.
        """
        dialog = self._addressed(alias)
        return self._said(dialog, text, role, name, lambda: dialog.put_text(text, name=name, role=role))

    def receive_prompt(
        self,
        prompt: Prompt | PromptRef | str,
        prompt_args: Mapping[str, Any] | None = None,
        alias: str | None = None,
        role: Role | str = Role.USER,
        name: str | None = None,
    ) -> Message:
        """Append a rendered prompt, which governs the next turn. Pass the prompt or its path.

        Raises:
            NotFound: The runtime has no prompt of this path.
            InvalidInput: Variables are missing.
        """
        dialog = self._addressed(alias)
        path = prompt.path if isinstance(prompt, PromptRef) else prompt
        known = self.runtime.get_prompt(path) if isinstance(path, str) else path
        text = rendered(known, prompt_args)
        return self._said(dialog, text, role, name, lambda: dialog.put_prompt(known, prompt_args, name=name, role=role))

    def receive_image(
        self,
        image: object,
        caption: str | None = None,
        alias: str | None = None,
        role: Role | str = Role.USER,
        name: str | None = None,
    ) -> Message:
        """Append an image: a path, bytes, base64, a URL or a Pillow image."""
        dialog = self._addressed(alias)
        shown = ImageContent(images=(media_from(image),))
        contents: tuple[Content, ...] = (shown,) if caption is None else (TextContent(content=caption), shown)
        return self._said(dialog, contents, role, name, lambda: dialog.put_image(image, caption, name=name, role=role))

    def _said(
        self,
        dialog: Dialog,
        content: str | tuple[Content, ...],
        role: Role | str,
        name: str | None,
        put: Callable[[], Message],
    ) -> Message:
        """Append to the dialog if no turn runs in it and no call of its turn is open; otherwise write to its inbox."""

        def in_turn() -> bool:
            last = dialog.store.last(dialog.dialog_id)
            return last.open_turn >= 0 or bool(last.open_calls and read_turn(dialog.store, dialog.dialog_id).pending)

        with RUNNING.lock:  # no turn of this process begins between the look and the write
            if dialog.dialog_id not in RUNNING and not in_turn():
                dialog.reload()
                try:
                    return put()
                except Conflict:  # another process was first, with a turn or a message
                    if not in_turn():
                        raise
        made = Message(role=role, content=content, name=name)
        (message,) = dialog.opened.stamped(made)
        annotate(dialog.store, dialog.dialog_id, Inbox(message=message))
        return message

    aopen = in_worker(open)  # noqa: A003 - the method above
    aresume = in_worker(resume)
    areceive = in_worker(receive)

    # --- decisions ------------------------------------------------------------------------------------------------------------------

    @property
    def waiting(self) -> tuple[ToolCallContent, ...]:
        """The calls of the active dialog, also of sub-agents, that have not begun and have neither a result nor a decision.

        `open_calls(agent.dialogs[alias])` returns those of another dialog.

        Raises:
            InvalidInput: No dialog is active.
        """
        return open_calls(self._named(None))

    def approve(self, call_id: str, alias: str | None = None, *, by: str = "", always: bool = False) -> Handle:
        """Approve a call; the next `respond()` runs it. With `always`, approve the later calls of the same tool in the session, too.

        Raises:
            NotFound: No such call is open.
        """
        return decide(self._named(alias), call_id, Decision(decision="approve", by=by, always=always))

    def deny(
        self, call_id: str, reason: str = "", alias: str | None = None, *, by: str = "", always: bool = False
    ) -> Handle:
        """Refuse a call. The model reads the reason. With `always`, refuse the later calls of the same tool in the session, too.

        Raises:
            NotFound: No such call is open.
        """
        return decide(self._named(alias), call_id, Decision(decision="deny", reason=reason, by=by, always=always))

    def edit(self, call_id: str, arguments: Mapping[str, Any], alias: str | None = None, *, by: str = "") -> Handle:
        """Approve a call with other arguments, which the model reads.

        Raises:
            NotFound: No such call is open.
        """
        return decide(self._named(alias), call_id, Decision(decision="edit", arguments=arguments, by=by))

    # --- turns ----------------------------------------------------------------------------------------------------------------------

    @overload
    def respond(
        self, input: str = ..., *, return_session: Literal[False] = ..., **call: Unpack[CallArguments]
    ) -> Answer[OutputT]: ...
    @overload
    def respond(self, input: str = ..., *, return_session: Literal[True], **call: Unpack[CallArguments]) -> Trace: ...
    def respond(
        self,
        input: str = "",  # noqa: A002 - a public signature
        *,
        return_session: bool = False,
        **call: Unpack[CallArguments],
    ) -> Answer[OutputT] | Trace:
        """Answer; the synchronous form of `arespond`. Ctrl-C interrupts the turn, and the next call continues it."""
        trace, work = self._called(input, call)
        run_sync(work)
        return trace if return_session else _delivered(trace)

    @overload
    async def arespond(
        self, input: str = ..., *, return_session: Literal[False] = ..., **call: Unpack[CallArguments]
    ) -> Answer[OutputT]: ...
    @overload
    async def arespond(
        self, input: str = ..., *, return_session: Literal[True], **call: Unpack[CallArguments]
    ) -> Trace: ...
    async def arespond(
        self,
        input: str = "",  # noqa: A002 - a public signature
        *,
        return_session: bool = False,
        **call: Unpack[CallArguments],
    ) -> Answer[OutputT] | Trace:
        """Answer in a dialog: continue its turn, or begin the next one.

        While a call waits for a decision, the model is not asked: the text is kept in the inbox and delivered after the decision.

        Args:
            input: A text to answer, appended to the dialog or to `messages`. An agent without a dialog opens `main`.
            return_session: Whether to return the trace instead of the answer, also of a turn that waits for a decision.
            call: See `CallArguments`.

        Raises:
            AgentFailure: The turn ended without an answer.
            DecisionNeeded: A call waits for a person, and `return_session` is False.
            InfeasibleBudget: The content that must be sent is larger than the budget.
            PolicyFailed: The context manager raised.
            Busy: Another call, in this process or another, is answering in the dialog. The text was not stored.
            Conflict: Another process continued the turn.
            StoreError: The store failed. All of these errors have the `trace`.
        """
        require_no_transaction(self.store)  # of this thread
        trace, work = await awaited(self.store, partial(self._called, input, call))
        await work()
        return trace if return_session else _delivered(trace)

    def stream(self, input: str = "", **call: Unpack[CallArguments]) -> TurnStream:  # noqa: A002 - a public signature
        """Answer, and yield every event as it happens: `for event in agent.stream()`, or `async for`. The arguments are those of `arespond`."""
        return TurnStream(*self._called(input, call))

    def compact(self, alias: str | None = None) -> Handle:
        """Compact a dialog; the synchronous form of `acompact`."""
        return run_sync(partial(self.acompact, alias))

    async def acompact(self, alias: str | None = None) -> Handle:
        """Compact a dialog now, between two turns, as the agent's policy does it. The policy `provider` asks the provider.

        Args:
            alias: The dialog. Default: the active one.

        Returns:
            The entry: the compaction, or the provider's answer with its block.

        Raises:
            InvalidInput: A message waits for its answer, the provider compacts no conversation of the model, or the view would not become smaller.
            AgentFailure: A limit of the session or subject is reached.
            ProviderError: The provider returned no compaction.
            Busy: A turn is running in the dialog.
            Conflict: Another process wrote to the dialog meanwhile.
        """
        return await self._turns.compact(self._named(alias), self._settings({}))

    async def answer_in(self, dialog: Dialog, *, within: CallContext | None = None, instructions: str = "") -> Trace:
        """Answer in a dialog that has no alias, or continue its turn. An answer that exists is returned again.

        Args:
            dialog: The dialog.
            within: The tool call that the answer is for, whose trace counts it. Its tracer is used if the agent has none.
            instructions: The text that replaces the dialog's instructions; empty to keep them.
        """
        trace, work = self._begun(dialog, self._settings({}, within or CallContext(), instructions))
        await work()
        return trace

    def _called(self, text: str, call: CallArguments) -> tuple[Trace, Callable[..., Awaitable[None]]]:
        unknown = sorted(call.keys() - CallArguments.__annotations__.keys())
        if unknown:
            raise TypeError(f"respond() has no argument {unknown[0]!r}.")
        settings = self._settings(call)  # raises before anything is written
        dialog, said = self._with_input(text, call)
        return self._begun(dialog, settings, said)

    def _begun(
        self, dialog: Dialog, settings: CallSettings, text: str = ""
    ) -> tuple[Trace, Callable[..., Awaitable[None]]]:
        """Return the trace of a call, and the function that runs it."""
        instructions = settings.instructions or self._instructions.get(dialog.dialog_id, "")
        return self._turns.begin(dialog, replace(settings, instructions=instructions), text)

    def _with_input(self, text: str, call: CallArguments) -> tuple[Dialog, str]:
        """Return the dialog to answer in, a new one with the call's messages, and the text with which the turn begins."""
        messages, alias, words, args = call.get("messages"), call.get("alias"), text, call.get("prompt_args")
        if not isinstance(words, str):
            raise InvalidInput(f"input is {words!r}.", hint="Pass a string; messages=[...] accepts a conversation.")
        if messages is None:
            if alias is None and not self._dialogs:
                if not text:
                    raise nothing_new(f' resume("{self.name}_main") opens a stored session.')
                require_no_transaction(self.store)
                return self.open(_MAIN, args, first=text).current_dialog, ""
            dialog = self._named(alias)
            if args:
                hint = "Pass prompt_args to open(), adopt() or receive_prompt()."
                raise InvalidInput("The system prompt of this dialog is already rendered.", hint=hint)
            require_no_transaction(dialog.store)
            return dialog, text
        conversation = _conversation(messages, text)
        store = self.store if self._durable else MemoryStore()
        require_no_transaction(store)
        with store.transaction():
            dialog = self._opened(store, f"{self.name}_messages", args)
            dialog.append(conversation)
        return dialog, ""

    def _settings(self, call: CallArguments, within: CallContext | None = None, instructions: str = "") -> CallSettings:
        """Return the settings of a call. Every value is checked before anything is written."""
        require_policy(self.context_manager, "context_manager")
        require_invoker(self.llm_invoker)
        model: object = self.model
        if not isinstance(model, str):
            raise InvalidInput(f"model is {model!r}.", hint="Pass the name of a model.")
        named = DEFAULT_POLICY if self.context_manager is None and self.budget is not None else self.context_manager
        manager = policy(named, self.model, runtime=self.runtime)
        if self.options.triggers and isinstance(manager, Policy) and manager.asks_provider:
            hint = "Set the policy's `trigger`, a share of the limit, or call compact()."
            raise InvalidInput(
                f"Triggers do nothing under the policy {manager.name!r}: the provider compacts.", hint=hint
            )
        outer = None if within is None or within.guard is None else within.guard.limits
        limits = (*self.options.all_limits, *(outer or ()))
        summarizes = getattr(self.options.summarizer, "model", "")
        require_prices(limits, filter(None, (self.model, *self.options.fallback_models, summarizes)))
        require_limited(call.get("more"), self.options.all_limits)
        return CallSettings(
            agent=self,
            options=self.options,
            model=self.model,
            invoker=self.llm_invoker,
            model_args={**self.model_args, **(call.get("args") or {})},
            context_manager=manager,
            budget=None if self.budget is None else Budget.parse(self.budget, self.model),
            fallback=policy(self.options.fallback, self.model),
            call=call,
            within=within,
            instructions=instructions,
        )


def _delivered(trace: Trace) -> Answer[Any]:
    if trace.state == "waiting" or trace.delivery is None:
        raise DecisionNeeded(trace.waiting, trace=trace)
    return trace.delivery


def _conversation(messages: Conversation, text: str) -> tuple[Message, ...]:
    """Return a caller's conversation as messages, with the text as the last one.

    Raises:
        InvalidInput: There is nothing to answer, or the last message is neither the user's nor a tool's result.
        InvalidMessage: A value is not a message.
    """
    try:
        conversation = list(read_messages(messages))
    except TypeError as error:
        hint = 'Pass messages=[{"role": "user", "content": "..."}] or Message objects; pass a single text as input.'
        raise InvalidInput("messages contains values that are not messages.", hint=hint) from error
    conversation += [UserMessage.text(text)] if text else []
    if not conversation:
        raise InvalidInput("There is nothing to answer.", hint="Pass a text, or at least one message.")
    last = conversation[-1].role
    if last not in {Role.USER, Role.TOOL}:
        raise InvalidInput(
            f"The last message has the role {last.value!r}: there is nothing to answer.",
            hint="End with a user message, or with a tool's result to continue from there.",
        )
    return tuple(conversation)
