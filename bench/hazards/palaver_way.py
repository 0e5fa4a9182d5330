"""How palaver does it: an agent a turn, over one durable dialog."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.hazards.plays import Ask, Fact
from palaver import Agent, Session
from palaver.providers import connect_model
from palaver.store import MemoryStore

PACKAGES: tuple[str, ...] = ()
_PREFIX = {"anthropic": "anthropic", "openai": "openai", "deepseek": "openai", "gemini": "google"}


class Talk:
    """One dialog."""

    def __init__(self, urls: Mapping[str, str]) -> None:
        """Begin."""
        self._urls = urls
        self._dialog = Session.create(MemoryStore(), "hazard").root

    async def ask(self, ask: Ask) -> None:
        """Ask."""
        api, model = ask.to
        place = {"base_url": self._urls[api]} if api == "deepseek" else {}
        provider, name = connect_model(f"{_PREFIX[api]}/{model}", **place)
        arguments: dict[str, Any] = {} if ask.temperature is None else {"temperature": ask.temperature}
        if ask.search:
            arguments["provider_tools"] = {"web_search": True}
        policy = "palaver" if ask.keep is not None else "provider" if ask.compact else None
        agent: Agent[Any] = Agent(
            "agent",
            ask.instructions,
            name,
            provider,
            tools=ask.tools,
            output=Fact if ask.schema else None,
            model_args=arguments,
            context_manager=policy,
            budget=2_400 if ask.keep is not None else None,
        )
        agent.adopt("main", self._dialog)
        if ask.stream:
            async with agent.stream(ask.text) as events:
                async for _ in events:
                    pass
        else:
            await agent.arespond(ask.text)
        await provider.aclose()
