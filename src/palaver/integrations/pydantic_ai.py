"""Agents of pydantic-ai whose requests fit and whose conversation is kept in a dialog: a capability.

    conversation = PalaverConversation(Session.open("agents.db", "first", create=True).root)
    agent = Agent(model, capabilities=[conversation])
    result = await agent.run("Hello?", message_history=conversation.messages())

A history processor cuts the history for good. This capability changes one request only: the history and the dialog keep every message.
"""

from __future__ import annotations

from asyncio import Lock
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from anyio import to_thread

from palaver.context import DEFAULT_POLICY, RECALL_TOOLS
from palaver.context.fit import Fit
from palaver.context.policy import PolicyLike
from palaver.dialects import write_messages
from palaver.dialects.pydantic_ai import DIALECT, NAME
from palaver.errors import InvalidInput, MissingExtra
from palaver.integrations.request_fitter import RECALLS, RequestFitter, recalled
from palaver.messages import Message, Role, ToolCallContent, thaw, words_of
from palaver.plurals import a_type
from palaver.session import Dialog
from palaver.tokens.budget import BudgetLike

try:
    from pydantic_ai import FunctionToolset, RunContext, Tool
    from pydantic_ai.agent import AgentRunResult
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ToolCallPart
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.tools import ToolDefinition
except ModuleNotFoundError as error:
    raise MissingExtra("This adapter", NAME, package="pydantic-ai-slim") from error


class PalaverConversation(AbstractCapability[Any]):  # type: ignore[misc] # unknown where pydantic-ai is missing
    """Fits each request of an agent to the model's window, and records its runs in a dialog.

    A message is stored before the next model is called and before a tool runs. If another process continued the dialog, the run fails with
    `Conflict`, and nothing of either is lost: run again with what `messages` returns then.
    """

    def __init__(
        self,
        dialog: Dialog | None = None,
        *,
        policy: PolicyLike = DEFAULT_POLICY,
        budget: BudgetLike | None = None,
        model: str | None = None,
    ) -> None:
        """Choose where the conversation is kept and how requests are fitted.

        Args:
            dialog: The dialog. Default: the conversation is not recorded.
            policy: A policy's name, a configuration or a context manager, as for `palaver.fit`.
            budget: What a request may occupy, as for `palaver.fit`. Default: the policy's own for the model.
            model: The model's name. Default: that of each request's model.

        Raises:
            InvalidInput: The dialog is not one, or policy or budget cannot be used.
        """
        if not isinstance(dialog, Dialog | None):
            raise InvalidInput(f"The dialog is {a_type(dialog)}.", hint="Pass one, such as session.root.")
        super().__init__()
        self._dialog = dialog
        self._fitter = RequestFitter(dialect=NAME, policy=policy, budget=budget, model=model)
        self._fit: Fit | None = None
        self._read = DIALECT.reader()
        self._known: dict[int, ModelMessage] = {}
        self._history: Sequence[ModelMessage] = ()
        self._lock = Lock()

    @classmethod
    def get_serialization_name(cls) -> None:
        """Return None: a dialog is not configured in YAML."""

    async def for_run(self, ctx: RunContext[Any]) -> PalaverConversation:  # noqa: ARG002 - pydantic-ai's
        """Return a capability with a state of its own for a run."""
        fitter = self._fitter
        return type(self)(self._dialog, policy=fitter.policy, budget=fitter.budget, model=fitter.model)

    # --- requests ------------------------------------------------------------------------------------------------------

    async def prepare_model_request(
        self,
        ctx: RunContext[Any],  # noqa: ARG002 - pydantic-ai's
        request_context: ModelRequestContext,
    ) -> ModelRequestContext:
        """Return a request that fits the model that will serve it.

        Raises:
            InvalidInput: The window of the model is not known.
            InfeasibleBudget: What must be sent is larger than the budget.
        """
        return await to_thread.run_sync(self._fitted, request_context)

    def _fitted(self, request: ModelRequestContext) -> ModelRequestContext:
        asked = request.model_request_parameters
        own = [tool for tool in asked.function_tools if tool.name not in RECALLS]
        fitted = self._fit = self._fitter.fit(
            request.messages,
            model=request.model,
            window=request.model.context_window,
            tools=[_schema(tool) for tool in (*own, *asked.output_tools)],
        )
        tools = list(asked.function_tools) if fitted.tools else own
        messages = [
            ModelMessagesTypeAdapter.validate_python([item])[0] if isinstance(item, dict) else item
            for item in fitted.messages
        ]
        return replace(request, messages=messages, model_request_parameters=replace(asked, function_tools=tools))

    def get_toolset(self) -> FunctionToolset[Any]:
        """Return the tools that recall. A request offers them once something is left out."""
        tools = [
            Tool.from_schema(partial(self._recall, spec.name), spec.name, spec.description, thaw(spec.parameters))
            for spec in RECALL_TOOLS
        ]
        return FunctionToolset(tools)

    async def _recall(self, name: str, **args: Any) -> str:  # noqa: ANN401 - JSON
        return await to_thread.run_sync(recalled, self._fit, name, args)

    # --- the conversation ----------------------------------------------------------------------------------------------

    def messages(self) -> list[ModelMessage]:
        """Return the conversation of the dialog as it is now, for `message_history`. A call that was interrupted has a return that says so.

        Raises:
            InvalidInput: There is no dialog.
        """
        if self._dialog is None:
            raise InvalidInput("This capability has no dialog.", hint="Pass one: PalaverConversation(dialog).")
        items = write_messages(self._dialog.reload().messages, NAME).items
        history: list[ModelMessage] = ModelMessagesTypeAdapter.validate_python(items)
        return history

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Record what was said since the last request.

        Raises:
            Conflict: Another process continued the dialog.
            InvalidInput: The history that the run began with is not the dialog's.
        """
        await self._record(ctx.messages)
        return request_context

    async def before_tool_execute(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,  # noqa: ARG002 - pydantic-ai's
        tool_def: ToolDefinition,  # noqa: ARG002 - pydantic-ai's
        args: dict[str, Any],
    ) -> dict[str, Any]:
        """Record the answer that asks for a tool before the tool runs."""
        await self._record(ctx.messages)
        return args

    async def wrap_run(
        self,
        ctx: RunContext[Any],  # noqa: ARG002 - pydantic-ai's
        *,
        handler: Callable[[], Awaitable[AgentRunResult[Any]]],
    ) -> AgentRunResult[Any]:
        """Record the rest of a run, whether it succeeds or fails."""
        try:
            result = await handler()
        except BaseException:
            await self._record(self._history)
            raise
        await self._record(result.all_messages())
        return result

    async def _record(self, history: Sequence[ModelMessage]) -> None:
        if self._dialog is not None:
            self._history = history
            async with self._lock:  # tools run at once
                await to_thread.run_sync(self._append, self._dialog, tuple(history))

    def _append(self, dialog: Dialog, history: Sequence[ModelMessage]) -> None:
        new = [item for item in history if id(item) not in self._known]
        read: Sequence[Message] = [message for item in new for message in self._read(item)]
        if not self._known:
            read = _continued(dialog.messages, read)
        if read:
            dialog.append(read)
        self._known |= {id(item): item for item in new}


def _continued(known: Iterable[Message], given: Sequence[Message]) -> Sequence[Message]:
    """Return what a history has after the messages of a dialog. Instructions have other places where pydantic-ai joined requests.

    Raises:
        InvalidInput: It does not begin with them.
    """
    expected = [_said(message) for message in known if message.role is not Role.SYSTEM]
    matched = 0
    for index, message in enumerate(given):
        if matched == len(expected):
            return given[index:]
        if message.role is not Role.SYSTEM:
            if _said(message) != expected[matched]:
                break
            matched += 1
    if matched == len(expected):
        return ()
    raise InvalidInput(
        f"The run began with another history than its dialog: message {matched} is not the same.",
        hint="Pass message_history=conversation.messages(), or another dialog.",
    )


def _said(message: Message) -> tuple[Role, Sequence[object]]:
    """Return what is compared of a message: not what the dialects keep beside it."""
    said = [
        (content.name, content.args) if isinstance(content, ToolCallContent) else words_of(content)
        for content in message.contents
    ]
    return message.role, said


def _schema(tool: ToolDefinition) -> Mapping[str, Any]:
    return {"name": tool.name, "description": tool.description or "", "parameters": tool.parameters_json_schema}
