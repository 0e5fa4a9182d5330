"""Laws 15 and 16 over random histories, against the stand-ins."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any, Final

import anthropic
import openai
import pytest
from google import genai
from google.genai import errors, types
from hypothesis import HealthCheck, example, given, settings

from palaver.context import POLICIES
from palaver.testing.binding_laws import BindingStep, HistorySide, Play, binding_steps
from palaver.testing.binding_sides import AnthropicSide, ChatSide, GeminiSide, ResponsesSide
from palaver.tokens import UnknownModelWarning
from palaver.wire import Request
from tests import laws

SIDES: Final[Mapping[str, Callable[[], Sequence[HistorySide]]]] = {
    "claude": lambda: [AnthropicSide()],
    "one claude": lambda: [AnthropicSide("claude-fable-5-1", offered="")],
    "older claude": lambda: [AnthropicSide("claude-opus-5", "claude-opus-4-6", "claude-sonnet-5", "claude-opus-4-5")],
    "account-bound claude": lambda: [AnthropicSide("claude-sonnet-5-5", "claude-haiku-5-5", "claude-opus-5-5")],
    "responses": lambda: [ResponsesSide()],
    "gemini": lambda: [GeminiSide()],
    "chat": lambda: [ChatSide()],
    "deepseek": lambda: [ChatSide("deepseek-v4", server="deepseek")],
    "kimi": lambda: [ChatSide("kimi-k3", server="kimi")],
    "mistral": lambda: [ChatSide("mistral-large", server="mistral")],
    "vllm": lambda: [ChatSide("glm-5", server="vllm")],
    "switches": lambda: [AnthropicSide(), ResponsesSide(), GeminiSide(), ChatSide()],
}
_SOAK: Final = 1_000
_EXAMPLES: Final = settings().max_examples

HISTORIES = settings(
    max_examples=_EXAMPLES if _EXAMPLES >= _SOAK else max(_EXAMPLES // 8, 5),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.differing_executors],
    deadline=None,
)
pytestmark = pytest.mark.filterwarnings(f"ignore::{UnknownModelWarning.__module__}.{UnknownModelWarning.__qualname__}")


_EXCHANGED: Final = [
    BindingStep(kind, number, answers=("say",), size=5)
    for kind, number in (("turn", 0), ("policy", 2), ("model", 3), ("turn", 0), ("model", 0), ("turn", 0))
]
"""Three answers of which the first and the last go back only without each other: the middle one had other words before it. The newest is kept."""


@pytest.mark.parametrize("name", SIDES)
def test_histories_are_accepted(name: str) -> None:
    """Laws 15 and 16: over any history the stand-in refuses nothing and drops nothing, and nothing more could be kept."""
    requests = 0

    @HISTORIES
    @given(steps=binding_steps())
    @example(steps=_EXCHANGED)
    def law(steps: list[BindingStep]) -> None:
        nonlocal requests
        play = Play(SIDES[name](), policies=tuple(POLICIES))
        faults = play.play(steps)
        requests += play.requests
        assert not faults, faults[0]

    law()
    laws.checked(requests)


def senders(stack: ExitStack, sides: Sequence[HistorySide]) -> Callable[[HistorySide, Request], None]:
    """Return a function that sends a request through the vendor's client of a side."""
    calls: dict[str, Callable[..., Any]] = {}
    for side in sides:
        url = stack.enter_context(side.server).url
        client: anthropic.Anthropic | genai.Client | openai.OpenAI
        if side.api == "anthropic":
            client = anthropic.Anthropic(base_url=url, api_key="key", max_retries=0, timeout=60)
            calls[side.api] = client.messages.create
        elif side.api == "gemini":
            client = genai.Client(api_key="key", http_options=types.HttpOptions(base_url=url))
            calls[side.api] = client.models.generate_content
        else:
            client = openai.OpenAI(base_url=url, api_key="key", max_retries=0)
            calls[side.api] = client.responses.create if "responses" in side.api else client.chat.completions.create
        stack.callback(client.close)  # and it is not collected before, which closes it, too

    def send(side: HistorySide, request: Request) -> None:
        with suppress(anthropic.APIStatusError, openai.APIStatusError, errors.APIError):
            calls[side.api](**request)

    return send


@settings(HISTORIES, max_examples=max(HISTORIES.max_examples // 10, 5))
@given(steps=binding_steps(8))
def test_histories_are_accepted_through_clients(steps: list[BindingStep]) -> None:
    """Laws 15 and 16: the same through the vendors' own clients."""
    sides: list[HistorySide] = [AnthropicSide(), ResponsesSide(), GeminiSide(), ChatSide()]
    with ExitStack() as stack:
        play = Play(sides, policies=tuple(POLICIES), send=senders(stack, sides))
        faults = play.play(steps)
        assert not faults, faults[0]
