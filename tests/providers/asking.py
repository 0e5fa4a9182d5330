"""What tests ask providers with: small requests, and a way to read answers from a function that does not wait."""

from typing import Any

import anyio

from palaver.messages import AssistantMessage
from palaver.providers import Provider, collect
from palaver.wire import Request
from tests.wire.scenes import BASH, Scene


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
