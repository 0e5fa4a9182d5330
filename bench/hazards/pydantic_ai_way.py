"""How pydantic-ai's documentation does it: a run a turn, with `message_history`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.capabilities import ProcessHistory, WebSearch
from pydantic_ai.messages import ModelMessage, ModelRequest, UserPromptPart
from pydantic_ai.models.anthropic import AnthropicCompaction
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.deepseek import DeepSeekProvider

from bench.hazards.plays import Ask, Fact

PACKAGES = ("pydantic-ai-slim",)
_PREFIX = {"anthropic": "anthropic", "openai": "openai", "gemini": "google"}


class Talk:
    """A list of messages."""

    def __init__(self, urls: Mapping[str, str]) -> None:
        """Begin."""
        self._urls = urls
        self._history: list[ModelMessage] = []

    async def ask(self, ask: Ask) -> None:
        """Ask."""
        api, name = ask.to
        model: Any = f"{_PREFIX.get(api)}:{name}"
        if api == "deepseek":
            client = AsyncOpenAI(base_url=self._urls[api], api_key="key")
            model = OpenAIChatModel(name, provider=DeepSeekProvider(openai_client=client))
        settings: dict[str, Any] = {} if ask.temperature is None else {"temperature": ask.temperature}
        if not ask.stored:
            settings["openai_store"] = False
        capabilities: list[Any] = [WebSearch()] * ask.search + [AnthropicCompaction()] * ask.compact
        if ask.keep is not None:
            capabilities.append(ProcessHistory(lambda messages: _newest(messages, ask.keep)))
        agent: Any = Agent(
            model,
            tools=ask.tools,
            output_type=Fact if ask.schema else str,
            model_settings=settings,
            capabilities=capabilities,
        )
        agent.instructions(lambda: ask.instructions, name="role", on_change="append")
        if ask.stream:
            async with agent.run_stream(ask.text, message_history=self._history) as result:
                await result.get_output()
        else:
            result = await agent.run(ask.text, message_history=self._history)
        self._history = result.all_messages()


def _newest(messages: list[ModelMessage], keep: int) -> list[ModelMessage]:
    """Cut before a question, as the documentation advises."""
    begun = [
        at
        for at, each in enumerate(messages)
        if isinstance(each, ModelRequest) and any(isinstance(part, UserPromptPart) for part in each.parts)
    ]
    return messages[begun[-keep - 1] :]
