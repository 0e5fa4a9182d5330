"""How LangChain's documentation does it: an agent of `create_agent` a turn, with the list of messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import wrap_model_call
from langchain.chat_models import init_chat_model
from langchain_core.messages import HumanMessage, SystemMessage, trim_messages
from langchain_core.utils.function_calling import convert_to_openai_tool

from bench.hazards.plays import Ask, Fact

PACKAGES = ("langchain", "langchain-anthropic", "langchain-openai", "langchain-google-genai", "langchain-deepseek")
_PREFIX = {"gemini": "google_genai"}
_SEARCH = {"type": "web_search_20250305", "name": "web_search"}


class Talk:
    """A list of messages."""

    def __init__(self, urls: Mapping[str, str]) -> None:
        """Begin."""
        del urls
        self._history: list[Any] = []
        self._first: Ask | None = None

    async def ask(self, ask: Ask) -> None:
        """Ask."""
        first = self._first = self._first or ask
        api, name = ask.to
        model = init_chat_model(f"{_PREFIX.get(api, api)}:{name}", **_options(ask))
        said: list[Any] = [HumanMessage(ask.text)]
        if ask.instructions != first.instructions:  # "to send it in place, place it after a human message"
            said.append(SystemMessage(ask.instructions))
        added = [tool for tool in ask.tools if tool not in first.tools]
        if added:
            said.append(SystemMessage([_addition(tool) for tool in added]))
        agent: Any = create_agent(
            model,
            [*ask.tools, *[_SEARCH] * ask.search],
            system_prompt=first.instructions,
            middleware=[_without(tuple(tool.__name__ for tool in added))] if added else [],
            response_format=Fact if ask.schema else None,
        )
        self._history = [*self._history, *said]
        if ask.keep is not None:
            self._history = trim_messages(
                self._history, strategy="last", token_counter=len, max_tokens=2 * ask.keep + 1, start_on="human"
            )
        while said:
            self._history = (await agent.ainvoke({"messages": self._history}))["messages"]
            if self._history[-1].response_metadata.get("stop_reason") != "pause_turn":
                break


def _options(ask: Ask) -> dict[str, Any]:
    options: dict[str, Any] = {} if ask.temperature is None else {"temperature": ask.temperature}
    if ask.compact:
        options |= {"context_management": {"edits": [{"type": "compact_20260112"}]}, "betas": ["compact-2026-01-12"]}
    if ask.stream:
        options["streaming"] = True
    if not ask.stored:
        options |= {"store": False, "include": ["reasoning.encrypted_content"], "use_responses_api": True}
    return options


def _addition(tool: Any) -> dict[str, Any]:  # noqa: ANN401 - a function
    function = convert_to_openai_tool(tool)["function"]
    definition = {
        "name": function["name"],
        "description": function["description"],
        "input_schema": function["parameters"],
    }
    return {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": definition}}


def _without(names: tuple[str, ...]) -> Any:  # noqa: ANN401 - a middleware
    """Leave the tools that a message adds out of the request's list."""

    @wrap_model_call  # type: ignore[untyped-decorator, unused-ignore]  # langchain is not installed where types are checked
    async def leave_out(request: Any, handler: Any) -> Any:  # noqa: ANN401 - as the documentation has it
        return await handler(request.override(tools=[tool for tool in request.tools if tool.name not in names]))

    return leave_out
