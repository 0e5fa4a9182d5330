"""The matrix of scenarios and models: `./run live` fills it against the APIs whose keys the environment has, and the tests against the stand-ins."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final

from palaver.errors import PalaverError, ProviderError
from palaver.providers import connect_provider
from palaver.testing.binding_laws import HistorySide
from palaver.testing.binding_sides import AnthropicSide, ChatSide, GeminiSide, ResponsesSide
from tests.live.scenarios import SCENARIOS, BoundReachedError, Bounds, NotShownError, Scenario, Talk
from tests.testing.strict.recorded import InteractionsSide

_TEXT: Final = 60
"""How many characters of a refusal a cell shows."""


@dataclass(frozen=True)
class LiveApi:
    """An API: the prefix of its model strings, the variables with its key, its stand-in, and the tool that it runs itself."""

    prefix: str
    keys: tuple[str, ...]
    models: tuple[str, ...]
    side: Callable[..., HistorySide]
    served: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    def standing_in(self, url: str) -> dict[str, Any]:
        """Return the options of a client of the stand-in."""
        place = {"http_options": {"base_url": url}} if self.prefix.startswith("google") else {"base_url": url}
        return {"api_key": "key", **self.options, **place}


_GOOGLE: Final = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
APIS: Final = (
    LiveApi(
        "anthropic",
        ("ANTHROPIC_API_KEY",),
        (
            "claude-fable-5-2",
            "claude-fable-5-1",
            "claude-opus-5-5",
            "claude-haiku-5-5",
            "claude-opus-5",
            "claude-sonnet-4-5",
        ),
        AnthropicSide,
        "web_search",
    ),
    LiveApi("openai-responses", ("OPENAI_API_KEY",), ("gpt-6.2-sol", "gpt-6-sol", "gpt-5.2"), ResponsesSide),
    LiveApi("openai", ("OPENAI_API_KEY",), ("gpt-5.2", "gpt-4.1"), ChatSide),
    LiveApi(
        "openai",
        ("DEEPSEEK_API_KEY",),
        ("deepseek-v4",),
        lambda *models: ChatSide(*models, server="deepseek"),
        options={"base_url": "https://api.deepseek.com", "server": "deepseek"},
    ),
    LiveApi("google", _GOOGLE, ("gemini-4-argon", "gemini-3.6-flash", "gemini-2.5-pro"), GeminiSide),
    LiveApi("google-interactions", _GOOGLE, ("gemini-4-argon", "gemini-3.6-flash"), InteractionsSide),
)
"""The APIs and their models."""


async def cells(
    api: LiveApi, options: Mapping[str, Any], bounds: Bounds, *, side: HistorySide | None = None
) -> AsyncIterator[tuple[str, Scenario, str]]:
    """Play every scenario with every model of an API, and yield the outcomes."""
    async with aclosing(connect_provider(api.prefix, **options)) as provider:
        for at, model in enumerate(api.models):
            for scenario in SCENARIOS:
                talk = Talk(provider, model, api.models[at - 1], bounds, side, api.served)
                yield model, scenario, await _outcome(scenario, talk)


async def _outcome(scenario: Scenario, talk: Talk) -> str:
    try:
        await scenario.play(talk)
    except NotShownError as error:
        return f"not shown: {error}"
    except BoundReachedError:
        return "not played: the bound is reached"
    except ProviderError as error:
        return f"refused: {str(error)[:_TEXT]}"
    except PalaverError as error:
        return f"not sent: {str(error)[:_TEXT]}"
    noted = f", {talk.noted} left out with notes" if talk.noted else ""
    return f"accepted{noted}" + (f", {talk.dropped} dropped by the API" if talk.dropped else "")
