"""How the documentation of openai-agents does it: a run a turn over one session; other vendors' models through LiteLLM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import litellm
from agents import Agent, ModelSettings, Runner, SessionSettings, SQLiteSession, function_tool, set_tracing_disabled
from agents.extensions.models.litellm_model import LitellmModel
from openai.types.shared import Reasoning

from bench.hazards.plays import Ask, Fact, NoWayError

PACKAGES = ("openai-agents",)
set_tracing_disabled(True)
litellm.drop_params = True  # "drop any params that the model does not take"


class Talk:
    """A session."""

    def __init__(self, urls: Mapping[str, str]) -> None:
        """Begin."""
        self._urls = urls
        self._session = SQLiteSession("hazard")

    async def ask(self, ask: Ask) -> None:
        """Ask."""
        if ask.search:
            raise NoWayError("The tools of other providers cannot be declared.")
        api, name = ask.to
        model: Any = name if api == "openai" else LitellmModel(f"{api}/{name}", api_key="key", base_url=self._urls[api])
        agent = Agent(
            "agent",
            instructions=ask.instructions,
            tools=[function_tool(tool) for tool in ask.tools],
            model=model,
            model_settings=_settings(ask),
            output_type=Fact if ask.schema else None,
        )
        self._session.session_settings = SessionSettings(limit=None if ask.keep is None else 3 * ask.keep)
        if ask.stream:
            result = Runner.run_streamed(agent, ask.text, session=self._session)
            async for _ in result.stream_events():
                pass
        else:
            await Runner.run(agent, ask.text, session=self._session)


def _settings(ask: Ask) -> ModelSettings:
    settings = ModelSettings(temperature=ask.temperature)
    if ask.to[0] == "anthropic":
        settings.reasoning = Reasoning(effort="medium")  # it is what makes the library send thinking back
    if not ask.stored:
        settings.store, settings.response_include = False, ["reasoning.encrypted_content"]
    if ask.compact:
        settings.extra_args = {"context_management": {"edits": [{"type": "compact_20260112"}]}}
    return settings
