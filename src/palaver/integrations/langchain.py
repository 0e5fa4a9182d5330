"""Agents of LangChain whose requests fit: a middleware.

    agent = create_agent(model, tools, middleware=[PalaverMiddleware()], checkpointer=PalaverCheckpointSaver("agents.db"))

The state keeps every message; only the request is fitted. Where something is left out, the model is offered the tools `recall` and
`search_history`, which are answered from the state.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from anyio import to_thread

from palaver.context.policy import DEFAULT_POLICY, PolicyLike
from palaver.errors import InvalidInput, MissingExtra
from palaver.integrations.request_fitter import RECALLS, RequestFitter
from palaver.tokens.budget import BudgetLike

try:
    from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse, ToolCallRequest
    from langchain_core.messages import BaseMessage, ToolMessage, messages_from_dict
    from langchain_core.tools import BaseTool
    from langchain_core.utils.function_calling import convert_to_openai_tool
except ModuleNotFoundError as error:
    raise MissingExtra("This adapter", "langchain") from error

T = TypeVar("T")


class PalaverMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):  # type: ignore[misc] # unknown where LangChain is missing
    """Fits each request of an agent to the model's window, and keeps it valid for its provider.

    Put it before other middleware that changes messages: handles count the messages of the state.
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
            budget: What a request may occupy, as for `palaver.fit`. Default: the policy's own for the model; the window of a model that palaver does
                not know comes from LangChain's profile of it.
            model: The model's name. Default: that of each request's model.
        """
        super().__init__()
        self._fitter = RequestFitter(dialect="langchain", policy=policy, budget=budget, model=model)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Call the model with a request that fits.

        Raises:
            InvalidInput: Middleware before this one changed which messages the request begins with, or the window of the model is not known.
            InfeasibleBudget: What must be sent is larger than the budget.
        """
        return handler(self._fitted(request))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """As `wrap_model_call`; the request is fitted in another thread."""
        return await handler(await to_thread.run_sync(self._fitted, request))

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], T]) -> ToolMessage | T:
        """Answer a call of a tool that recalls; other calls go on."""
        return self._recalled(request) if self._recalls(request) else handler(request)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[T]]
    ) -> ToolMessage | T:
        """As `wrap_tool_call`."""
        if self._recalls(request):
            return await to_thread.run_sync(self._recalled, request)
        return await handler(request)

    # --- requests ------------------------------------------------------------------------------------------------------

    def _fitted(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        _require_all(request.messages, request.state["messages"])
        fitted = self._fitter.fit(
            request.messages,
            model=request.model,
            window=(getattr(request.model, "profile", None) or {}).get("max_input_tokens"),
            system=None if request.system_message is None else request.system_message.text,
            tools=[convert_to_openai_tool(tool) if isinstance(tool, BaseTool) else tool for tool in request.tools],
        )
        messages = [messages_from_dict([item])[0] if isinstance(item, dict) else item for item in fitted.messages]
        return request.override(messages=messages, tools=[*request.tools, *fitted.tools])

    # --- recalling -----------------------------------------------------------------------------------------------------

    def _recalls(self, request: ToolCallRequest) -> bool:
        """Return whether palaver answers a call; a tool of the user's own with such a name goes first."""
        return request.tool is None and request.tool_call["name"] in RECALLS

    def _recalled(self, request: ToolCallRequest) -> ToolMessage:
        call = request.tool_call
        said = self._fitter.answer(request.state["messages"], call["name"], call["args"])
        return ToolMessage(said, tool_call_id=call["id"], name=call["name"])


def _require_all(sent: Sequence[BaseMessage], known: Sequence[BaseMessage]) -> None:
    """Raise InvalidInput unless the request begins with the messages of the state: handles count them."""
    if [message.id for message in sent[: len(known)]] != [message.id for message in known]:
        raise InvalidInput(
            "Middleware before this one took messages of the state out of the request, or put others before them.",
            hint="Put PalaverMiddleware first in the list of middleware, or leave the other one out.",
        )
