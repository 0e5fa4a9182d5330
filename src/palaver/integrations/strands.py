"""Agents of Strands whose sessions are in a store of palaver and whose requests fit.

    agent = Agent(
        model,
        session_manager=RepositorySessionManager("first", PalaverSessionRepository("agents.db")),
        conversation_manager=PalaverConversationManager(),
    )

The conversation managers of Strands cut the messages of an agent for good. This one cuts the request alone: the agent and the session keep every message.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from anyio import to_thread
from pydantic_core import to_jsonable_python

from palaver.context import DEFAULT_POLICY, RECALL_TOOLS
from palaver.context.policy import PolicyLike
from palaver.dialects.bedrock import DIALECT, NAME
from palaver.errors import Conflict, MissingExtra, NotFound
from palaver.ids import DialogId, derive_dialog_id, now
from palaver.integrations.keyed import Keyed, annotate, append, create
from palaver.integrations.request_fitter import RequestFitter
from palaver.log import Custom, MessageEntry, Node
from palaver.messages import Message
from palaver.session import Dialog
from palaver.session import Session as PalaverSession
from palaver.store import SessionRecord
from palaver.store.connect import StoreLike, opened_store
from palaver.tokens.budget import BudgetLike
from palaver.wire.script import ChangeNotes

try:
    from strands.agent.conversation_manager import NullConversationManager
    from strands.hooks import AgentInitializedEvent, HookRegistry
    from strands.middleware import InvokeModelContext, InvokeModelStage
    from strands.multiagent import MultiAgentBase
    from strands.session.session_repository import SessionRepository
    from strands.tools.tools import PythonAgentTool
    from strands.types.exceptions import SessionException
    from strands.types.session import Session, SessionAgent, SessionMessage, decode_bytes_values
    from strands.types.tools import ToolResult, ToolUse
except ModuleNotFoundError as error:
    raise MissingExtra("This adapter", "strands", package="strands-agents") from error

FRAMEWORK = "strands"
_STATE, _REDACTED = f"{FRAMEWORK}/state", f"{FRAMEWORK}/redacted"


class PalaverSessionRepository(SessionRepository):  # type: ignore[misc] # unknown where Strands is missing
    """The sessions of Strands over any store of palaver: each agent of a session has a dialog.

    Each message is stored when the agent adds it, before its tools run. If another process continued the agent, the next message fails with `Conflict`,
    and nothing of either is lost: make the agent again. A message that a guardrail redacts stays in the log, in no view.
    """

    def __init__(self, store: StoreLike, *, subject: str = "") -> None:
        """Use a store, or open the one at an address; `close` closes a store that was opened here.

        Args:
            store: A store, or the address of one.
            subject: Whose data sessions are that are created.

        Raises:
            StoreError: The store cannot be opened.
        """
        self._store, self._owned = opened_store(store, create=True)
        self._keyed = Keyed(self._store, FRAMEWORK)
        self._subject = subject

    def close(self) -> None:
        """Close the store, if it was opened here."""
        if self._owned:
            self._store.close()

    # --- sessions and agents -------------------------------------------------------------------------------------------

    def create_session(self, session: Session, **kwargs: Any) -> Session:  # noqa: ANN401 - Strands' own
        """Create a session.

        Raises:
            SessionException: It exists.
        """
        del kwargs
        about = {"session": to_jsonable_python(session.to_dict())}
        with self._store.transaction():
            if self._keyed.find(session.session_id) is not None:
                raise SessionException(f"Session {session.session_id} already exists")
            self._keyed.make(session.session_id, name=session.session_id, subject=self._subject, about=about)
        return session

    def read_session(self, session_id: str, **kwargs: Any) -> Session | None:  # noqa: ANN401 - as above
        """Return a session, or None."""
        del kwargs
        record = self._keyed.find(session_id)
        about: Any = None if record is None else record.metadata[FRAMEWORK]
        return None if about is None else Session.from_dict(dict(about["session"]))

    def create_agent(self, session_id: str, session_agent: SessionAgent, **kwargs: Any) -> None:  # noqa: ANN401 - as above
        """Create an agent of a session.

        Raises:
            Conflict: It exists.
            SessionException: The session does not exist.
        """
        del kwargs
        with self._store.transaction():
            record = self._record(session_id)
            relation = "root" if record.root is None else "subagent"
            dialog = self._created(record, session_agent.agent_id, session_agent.agent_id, relation)
            if record.root is None:
                self._store.update_session(record.session_id, root=dialog)
            self._write(dialog, _STATE, session_agent.to_dict())

    def read_agent(self, session_id: str, agent_id: str, **kwargs: Any) -> SessionAgent | None:  # noqa: ANN401 - as above
        """Return an agent of a session, or None."""
        del kwargs
        known = next(self._values(_dialog(self._record(session_id), agent_id), _STATE), None)
        return None if known is None else SessionAgent.from_dict(known)

    def update_agent(self, session_id: str, session_agent: SessionAgent, **kwargs: Any) -> None:  # noqa: ANN401 - as above
        """Write the newest state of an agent.

        Raises:
            SessionException: The agent does not exist.
        """
        del kwargs
        known = self.read_agent(session_id, session_agent.agent_id)
        if known is None:
            raise SessionException(f"Agent {session_agent.agent_id} does not exist in session {session_id}")
        session_agent.created_at = known.created_at
        self._write(_dialog(self._record(session_id), session_agent.agent_id), _STATE, session_agent.to_dict())

    # --- messages ------------------------------------------------------------------------------------------------------

    def create_message(self, session_id: str, agent_id: str, session_message: SessionMessage, **kwargs: Any) -> None:  # noqa: ANN401 - as above
        """Append a message.

        Raises:
            Conflict: The agent has another number of messages: another process continued it. Nothing was written.
            InvalidMessage: It is not a message of Converse.
        """
        del kwargs
        at = datetime.fromisoformat(session_message.created_at).timestamp()
        (message,) = DIALECT.reader()(session_message.message, timestamp=at)
        times = {"created_at": session_message.created_at, "updated_at": session_message.updated_at}
        message = message.model_copy(update={"metadata": {**message.metadata, FRAMEWORK: times}})
        dialog = _dialog(self._record(session_id), agent_id)
        with self._store.transaction():
            last = self._store.last(dialog)
            if last.number != session_message.message_id:
                raise Conflict(
                    dialog,
                    session_message.message_id - 1,
                    last.number - 1,
                    why=f"Another process continued the agent {agent_id!r} of the session {session_id!r}: it has {last.number} messages, not {session_message.message_id}.",
                    hint="Make the agent again: it begins with the messages that the session has now.",
                )
            append(self._store, dialog, MessageEntry(message=message), head=last.turn_head)

    def read_message(self, session_id: str, agent_id: str, message_id: int, **kwargs: Any) -> SessionMessage | None:  # noqa: ANN401 - as above
        """Return a message, or None."""
        return next(iter(self.list_messages(session_id, agent_id, 1, message_id, **kwargs)), None)

    def update_message(self, session_id: str, agent_id: str, session_message: SessionMessage, **kwargs: Any) -> None:  # noqa: ANN401 - as above
        """Write what stands for a message that was redacted.

        Raises:
            SessionException: The message does not exist.
        """
        del kwargs
        session, dialog = self._opened(session_id, agent_id)
        if not 0 <= session_message.message_id < len(dialog.messages):
            raise SessionException(f"Message {session_message.message_id} does not exist")
        with self._store.transaction():
            self._write(dialog.dialog_id, _REDACTED, session_message.to_dict())
            session.quarantine(dialog.messages.handle(session_message.message_id), "redacted")

    def list_messages(
        self,
        session_id: str,
        agent_id: str,
        limit: int | None = None,
        offset: int = 0,
        **kwargs: Any,  # noqa: ANN401 - as above
    ) -> list[SessionMessage]:
        """Return messages, oldest first."""
        del kwargs
        _, dialog = self._opened(session_id, agent_id)
        redacted = {value["message_id"]: value for value in self._values(dialog.dialog_id, _REDACTED)}
        messages = dialog.messages[offset : None if limit is None else offset + limit]
        return [_restored(index, message, redacted.get(index)) for index, message in enumerate(messages, offset)]

    # --- agents together -----------------------------------------------------------------------------------------------

    def create_multi_agent(self, session_id: str, multi_agent: MultiAgentBase, **kwargs: Any) -> None:  # noqa: ANN401 - as above
        """Store the state of agents that work together."""
        del kwargs
        with self._store.transaction():
            name = f"multi {multi_agent.id}"
            dialog = self._created(self._record(session_id), name, multi_agent.id, "subagent")
            self._write(dialog, _STATE, multi_agent.serialize_state())

    def read_multi_agent(self, session_id: str, multi_agent_id: str, **kwargs: Any) -> dict[str, Any] | None:  # noqa: ANN401 - as above
        """Return the state of agents that work together, or None."""
        del kwargs
        return next(self._values(_dialog(self._record(session_id), f"multi {multi_agent_id}"), _STATE), None)

    def update_multi_agent(self, session_id: str, multi_agent: MultiAgentBase, **kwargs: Any) -> None:  # noqa: ANN401 - as above
        """Write the newest state of agents that work together."""
        del kwargs
        dialog = _dialog(self._record(session_id), f"multi {multi_agent.id}")
        self._write(dialog, _STATE, multi_agent.serialize_state())

    # --- the store -----------------------------------------------------------------------------------------------------

    def _record(self, session_id: str) -> SessionRecord:
        record = self._keyed.find(session_id)
        if record is None:
            raise SessionException(f"Session {session_id} does not exist")
        return record

    def _opened(self, session_id: str, agent_id: str) -> tuple[PalaverSession, Dialog]:
        record = self._record(session_id)
        session = PalaverSession(self._store, record.session_id)
        try:
            return session, session.dialog(_dialog(record, agent_id))
        except NotFound as error:
            raise SessionException(f"Agent {agent_id} does not exist in session {session_id}") from error

    def _created(self, record: SessionRecord, name: str, owner: str, relation: str) -> DialogId:
        dialog = _dialog(record, name)
        node = Node(dialog_id=dialog, session_id=record.session_id, owner=owner, created_at=now(), relation=relation)
        create(self._store, node)
        return dialog

    def _write(self, dialog: DialogId, kind: str, value: Mapping[str, Any]) -> None:
        annotate(self._store, dialog, Custom.exact(kind, to_jsonable_python(value, fallback=repr)))

    def _values(self, dialog: DialogId, kind: str) -> Iterator[dict[str, Any]]:
        """Yield the values of one kind, newest first; none where there is no dialog."""
        with suppress(NotFound):
            for header in self._store.latest_of_kind(dialog, "custom"):
                body = json.loads(self._store.body(dialog, header.seq))
                if body.get("custom_type") == kind:
                    yield json.loads(body["raw"])


def _dialog(record: SessionRecord, agent_id: str) -> DialogId:
    """Return the id of the dialog of an agent. It is derived, so only one of two writers creates it."""
    return derive_dialog_id(record.session_id, f"{FRAMEWORK} {agent_id}")


def _restored(index: int, message: Message, redacted: Mapping[str, Any] | None) -> SessionMessage:
    if redacted is not None:
        return SessionMessage.from_dict(dict(redacted))
    (item,) = DIALECT.write([message], ChangeNotes())
    at = datetime.fromtimestamp(message.timestamp, UTC).isoformat()  # of a message from elsewhere
    times = {"created_at": at, "updated_at": at} | dict(message.metadata.get(FRAMEWORK, {}))
    return SessionMessage(decode_bytes_values(item), index, **times)


# --- what a model is sent -------------------------------------------------------------------------------------------------


class PalaverConversationManager(NullConversationManager):  # type: ignore[misc] # unknown where Strands is missing
    """Fits each request of an agent to the model's window, by `palaver.fit`. The agent keeps every message.

    The model is offered tools that recall what is left out. Agents may share one.
    """

    def __init__(
        self,
        *,
        policy: PolicyLike = DEFAULT_POLICY,
        budget: BudgetLike | None = None,
        model: str | None = None,
    ) -> None:
        """Choose how requests are fitted.

        Args:
            policy: A policy's name, a configuration or a context manager, as for `palaver.fit`.
            budget: What a request may occupy, as for `palaver.fit`. Default: the policy's own for the model.
            model: The model's name. Default: the `model_id` of the agent's model.
        """
        super().__init__()
        self._fitter = RequestFitter(dialect=NAME, policy=policy, budget=budget, model=model)

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:  # noqa: ANN401 - Strands' own
        """Add the tools that recall, and what fits each request, to an agent."""
        super().register_hooks(registry, **kwargs)
        registry.add_callback(AgentInitializedEvent, self._begin)

    def _begin(self, event: AgentInitializedEvent) -> None:
        event.agent.add_middleware(InvokeModelStage.Input, self._fitted)
        for tool in RECALL_TOOLS:
            event.agent.tool_registry.register_tool(PythonAgentTool(tool.name, DIALECT.declare(tool), self._recalled))

    async def _fitted(self, context: InvokeModelContext) -> InvokeModelContext:
        """Return the request of a call, made to fit.

        Raises:
            InvalidInput: The window of the model is not known.
            InfeasibleBudget: What must be sent is larger than the budget.
        """
        return await to_thread.run_sync(self._fit, context)

    def _fit(self, context: InvokeModelContext) -> InvokeModelContext:
        config: Any = context.model.get_config()
        fitted = self._fitter.fit(
            context.messages,
            model=(config.get("model_id") if isinstance(config, Mapping) else None) or context.model,
            window=context.model.context_window_limit,
            system=_text(context.system_prompt),
            tools=context.tool_specs,
        )
        return context.replace(messages=_alternating(fitted.messages))

    def _recalled(self, tool_use: ToolUse, **state: Any) -> ToolResult:  # noqa: ANN401 - Strands' own
        said = self._fitter.answer(state["agent"].messages, tool_use["name"], tool_use["input"])
        return {"toolUseId": tool_use["toolUseId"], "status": "success", "content": [{"text": said}]}


def _text(system: object) -> str | None:
    """Return the words of a system prompt, which is a text or blocks."""
    if isinstance(system, list):
        return "\n".join(block["text"] for block in system if "text" in block)
    return system if isinstance(system, str) else None


def _alternating(items: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Return messages whose roles alternate, as Converse asks, with bytes."""
    joined: list[Any] = []
    for item in items:
        if joined and joined[-1]["role"] == item["role"]:
            joined[-1] = {**joined[-1], "content": [*joined[-1]["content"], *item["content"]]}
        else:
            joined.append(item)
    return [decode_bytes_values(item) for item in joined]
