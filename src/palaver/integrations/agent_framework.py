"""Agents of Microsoft's Agent Framework whose conversation is in a store of palaver and whose requests fit: two context providers.

    agent = Agent(
        client,
        context_providers=[PalaverHistoryProvider("agents.db"), PalaverFitProvider()],
        require_per_service_call_history_persistence=True,
    )
    await agent.run("Hello?", session=agent.create_session(session_id="first"))

The framework's own compaction marks messages and cuts the conversation of the run. Here the request alone is cut: the session and the run keep every message.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from anyio import to_thread

from palaver.context import DEFAULT_POLICY, RECALL_TOOLS
from palaver.context.fit import Fit
from palaver.context.policy import PolicyLike
from palaver.dialects import read_messages, write_messages
from palaver.dialects.agent_framework import NAME
from palaver.errors import Conflict, InvalidInput, MissingExtra
from palaver.integrations.keyed import Keyed, append, in_thread, step
from palaver.integrations.request_fitter import RequestFitter, recalled
from palaver.log import MessageEntry
from palaver.messages import thaw
from palaver.session import Session
from palaver.store.connect import StoreLike, opened_store
from palaver.tokens.budget import BudgetLike

try:
    from agent_framework import (
        EXCLUDED_KEY,
        GROUP_ANNOTATION_KEY,
        AgentSession,
        ChatContext,
        ChatMiddleware,
        ContextProvider,
        FunctionTool,
        HistoryProvider,
        Message,
        SessionContext,
        SupportsAgentRun,
    )
except ModuleNotFoundError as error:
    raise MissingExtra("This adapter", NAME, package="agent-framework-core") from error

_State = dict[str, Any]
_MARKS = (GROUP_ANNOTATION_KEY, EXCLUDED_KEY)
"""What the framework adds to each message before it compacts a request."""


class PalaverHistoryProvider(HistoryProvider):  # type: ignore[misc] # unknown where the framework is missing
    """The history of agents over any store of palaver.

    Each session of the framework is a session. A write is one durable step; with `require_per_service_call_history_persistence` there is one after each
    call of the model, before its tools run. If another process continued the session since a call read it, the write fails with `Conflict`, and
    nothing of either is lost: run again.
    """

    def __init__(self, store: StoreLike, *, source_id: str = "palaver", subject: str = "", **options: Any) -> None:  # noqa: ANN401 - the framework's
        """Use a store, or open the one at an address; `close` closes a store that was opened here. A session is created by its first message.

        Args:
            store: A store, or the address of one.
            source_id: The framework's name of this provider.
            subject: Whose data sessions are that are created.
            options: What is loaded and stored, as for `HistoryProvider`.

        Raises:
            StoreError: The store cannot be opened.
        """
        super().__init__(source_id, **options)
        self._store, self._owned = opened_store(store, create=True)
        self._keyed = Keyed(self._store, NAME)
        self._subject = subject

    def close(self) -> None:
        """Close the store, if it was opened here."""
        if self._owned:
            self._store.close()

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: _State
    ) -> None:
        """Load the history into a call, or into a run.

        Raises:
            Conflict: The call answers calls of tools, and another process continued the session since they were made.
        """
        del state  # shared by all runs of a session, at once as well
        answers = [
            part.call_id
            for message in context.input_messages
            for part in message.contents
            if part.type == "function_result"
        ]
        own = context.metadata[self._own] = {"answers": answers}
        await super().before_run(agent=agent, session=session, context=context, state=own)

    async def after_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: _State
    ) -> None:
        """Store what was said.

        Raises:
            Conflict: Another process continued the session; nothing was written.
        """
        del state
        own = context.metadata.get(self._own, {})
        await super().after_run(agent=agent, session=session, context=context, state=own)

    @property
    def _own(self) -> str:
        return f"{NAME} {self.source_id}"

    async def get_messages(
        self,
        session_id: str | None,
        *,
        state: _State | None = None,
        **kwargs: Any,  # noqa: ANN401 - the framework's
    ) -> list[Message]:
        """Return the conversation of a session. A call that was interrupted has a result that says so."""
        del kwargs
        job = partial(self._get, _name(session_id), {} if state is None else state)
        return await in_thread(self._store, job)

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: _State | None = None,
        **kwargs: Any,  # noqa: ANN401 - the framework's
    ) -> None:
        """Append messages to a session, all or none.

        Raises:
            Conflict: Another process continued the session since this state was read; nothing was written.
        """
        del kwargs
        known = {} if state is None else state
        job = partial(self._save, _name(session_id), messages, known)
        await in_thread(self._store, job if "head" in known else partial(step, self._store, job))

    # --- in a worker thread --------------------------------------------------------------------------------------------

    def _get(self, name: str, state: _State) -> list[Message]:
        record = self._keyed.find(name)
        if record is None or record.root is None:
            state |= {"dialog": None, "head": -1}
            return []
        last = self._store.last(record.root)  # before the messages: after one that comes later, the next write fails
        answers = frozenset(state.get("answers", ()))
        if not answers.issubset(last.open_calls):
            why = f"Another process continued the session {name!r} while tools ran. Their results were not written."
            raise Conflict(
                record.root,
                actual=last.turn_head,
                why=why,
                hint="Run again; the session has everything up to these calls.",
            )
        state |= {"dialog": record.root, "head": last.turn_head}
        dialog = Session(self._store, record.session_id).root
        items = write_messages(dialog.messages, NAME).items
        shown = (_without(item, answers) for item in items)
        return [Message.from_dict(item) for item in shown if item["contents"]]

    def _save(self, name: str, messages: Sequence[Message], state: _State) -> None:
        if not messages:
            return
        entries = [MessageEntry(message=message) for message in read_messages(list(messages), NAME)]
        with self._store.transaction():
            record = self._keyed.make(name, name=name, subject=self._subject, about={"session_id": name})
            if "head" in state and record.root != state["dialog"]:
                why = f"Another process continued the session {name!r}."
                raise Conflict(record.root or "", why=why, hint="Run again.")
            root = record.root or self._keyed.root(record)
            state |= {"dialog": root, "head": append(self._store, root, *entries, head=state.get("head"))[-1].seq}


def _name(session_id: object) -> str:
    if not isinstance(session_id, str) or not session_id:
        raise InvalidInput(f"The session is {session_id!r}.", hint="Pass agent.create_session(session_id=...).")
    return session_id


def _without(item: Mapping[str, Any], answers: frozenset[str]) -> dict[str, Any]:
    """Return an item without what it says of calls that were interrupted and whose results the request brings."""
    contents = [
        part for part in item["contents"] if part.get("type") != "function_result" or part.get("call_id") not in answers
    ]
    return {**item, "contents": contents}


# --- what a model is sent -------------------------------------------------------------------------------------------------


class PalaverFitProvider(ContextProvider):  # type: ignore[misc] # unknown where the framework is missing
    """Fits each request of an agent to the model's window, by `palaver.fit`. The model is offered tools that recall what is left out.

    It works with every history provider. Not for conversations that the server keeps: their requests have only the newest messages.
    """

    def __init__(
        self,
        *,
        policy: PolicyLike = DEFAULT_POLICY,
        budget: BudgetLike | None = None,
        model: str | None = None,
        source_id: str = "palaver fit",
    ) -> None:
        """Choose how requests are fitted.

        Args:
            policy: A policy's name, a configuration or a context manager, as for `palaver.fit`.
            budget: What a request may occupy, as for `palaver.fit`. Default: the policy's own for the model.
            model: The model's name. Default: that of each request.
            source_id: The framework's name of this provider.
        """
        super().__init__(source_id)
        self._fitter = RequestFitter(dialect=NAME, policy=policy, budget=budget, model=model)

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: _State
    ) -> None:
        """Add the tools that recall, and what fits each request, to a run."""
        del agent, session, state
        fits = _RunFitter(self._fitter)
        context.extend_tools(self.source_id, fits.tools())
        context.extend_middleware(self.source_id, fits)


class _RunFitter(ChatMiddleware):  # type: ignore[misc] # unknown where the framework is missing
    """Fits the requests of one run."""

    def __init__(self, fitter: RequestFitter) -> None:
        self._fitter = fitter
        self._fit: Fit | None = None

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Have a call fitted where the framework would compact it: after the history was loaded, also if that is for each call.

        Raises:
            InvalidInput: The agent has a compaction strategy, too.
        """
        if context.kwargs.get("compaction_strategy") is not None:
            raise InvalidInput("The agent has a compaction strategy, too.", hint="Leave out one of them.")
        context.messages = list(context.messages)  # the run's own list stays whole
        context.kwargs["compaction_strategy"] = partial(self._compact, context)
        await call_next()

    async def _compact(self, context: ChatContext, messages: list[Message]) -> bool:
        for message in messages:
            for key in _MARKS:
                message.additional_properties.pop(key, None)
        self._fit = fitted = await to_thread.run_sync(self._fitted, context, tuple(messages))
        messages[:] = [Message.from_dict(item) if isinstance(item, Mapping) else item for item in fitted.messages]
        return bool(fitted.omitted)

    def _fitted(self, context: ChatContext, messages: Sequence[Message]) -> Fit:
        options: Mapping[str, Any] = context.options or {}
        tools = [
            tool.to_json_schema_spec() if isinstance(tool, FunctionTool) else tool
            for tool in options.get("tools") or ()
        ]
        model = options.get("model") or context.client
        return self._fitter.fit(messages, model=model, system=options.get("instructions"), tools=tools)

    def tools(self) -> list[FunctionTool]:
        """Return the tools that recall what is left out of this run's newest request."""
        return [
            FunctionTool(
                name=tool.name,
                description=tool.description,
                input_model=thaw(tool.parameters),
                func=partial(self._recall, tool.name),
            )
            for tool in RECALL_TOOLS
        ]

    async def _recall(self, name: str, **args: Any) -> str:  # noqa: ANN401 - JSON
        return await to_thread.run_sync(recalled, self._fit, name, args)
