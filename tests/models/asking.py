"""What tests ask providers with: small requests, and a way to read answers from a function that does not wait."""

from collections.abc import Callable
from typing import Any

import anyio

from palaver.messages import AssistantMessage
from palaver.models import Event, Provider, collect
from palaver.wire import Request
from tests.wire.scenes import BASH, Scene

__all__ = ["answer", "ask", "events"]


def ask(text: str = "hello", *, profile: str = "openai-chat", **call: Any) -> Request:  # noqa: ANN401 - fields of a Call
    """Compile a request that ends on the user's words and declares one tool."""
    return Scene(system=["Be brief."], tools=[BASH]).user(text).request(profile, **call)


def answer(provider: Provider, request: Request) -> AssistantMessage:
    """Ask, and give the whole answer."""

    async def whole() -> AssistantMessage:
        try:
            return await collect(provider.stream(request))
        finally:
            await provider.aclose()

    return anyio.run(whole)


def events(provider: Provider, request: Request, seen: Callable[[Event], None] = lambda _: None) -> list[Event]:
    """Ask, and give the events; `seen` gets each as it comes, also those before a failure."""

    async def listed() -> list[Event]:
        out: list[Event] = []
        try:
            async for event in provider.stream(request):
                seen(event)
                out.append(event)
        finally:
            await provider.aclose()
        return out

    return anyio.run(listed)
