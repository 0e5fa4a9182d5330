"""Caches, through the vendors' clients: what a request may mark or name, and what its report says of the rest."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

import anyio
import pytest
from google import genai

from palaver.log import Toolset
from palaver.messages import ToolMessage, ToolResultContent
from palaver.providers import collect, connect_model
from palaver.providers.anthropic.client import AnthropicProvider
from palaver.session import Dialog
from palaver.session.differences import compare
from palaver.testing import strict
from tests.clients import opened
from tests.wire.scenes import BASH

CLAUDE, GEMINI = "claude-opus-5-5", "gemini-3.6-flash"


def begun(words: str = "Begin.") -> Dialog:
    """Return a dialog with instructions and a tool."""
    dialog = Dialog("assistant")
    dialog.put_text("Be brief.", role="system")
    dialog.record(Toolset(tools=(BASH,)))
    dialog.put_text(words)
    return dialog


def test_marks_of_several_times_are_accepted() -> None:
    """More than one time a request, in any combination; the API refuses a longer one after a shorter one."""
    dialog = begun()

    async def ask(server: strict.StrictServer) -> None:
        async with aclosing(AnthropicProvider(base_url=server.url, api_key="key")) as provider:
            for ttl in ("1h", {"tools": "1h"}, {"system": "1h"}, {"messages": "1h"}, {"tools": "1h", "messages": "5m"}):
                request = dialog.request(provider.profile_for(CLAUDE), CLAUDE, cache_ttl=ttl)
                await collect(provider.stream(request))

    with strict.anthropic() as server:
        anyio.run(ask, server)
        assert server.refused == []
        sent: dict[str, Any] = server.served[-1].asked.body
        sent["messages"][-1]["content"][-1]["cache_control"]["ttl"] = "1h"
        sent["tools"][-1]["cache_control"].pop("ttl")
        header = {
            "x-api-key": "key",
            "anthropic-version": "2023-06-01",
            "anthropic-beta": "thinking-binding-controls-2026-08-01",
        }
        assert "must not come after a ttl='5m'" in server.ask("/v1/messages", sent, header).message


def test_the_report_names_places_without_a_mark() -> None:
    """A mark that was wanted and is not there has a note: one too many, on what is not sent, or for an API without marks."""
    dialog = begun()
    for number in range(4):
        dialog.put_text(f"Word {number}.")
    places = [block.origin for exchange in dialog.view().exchanges for block in exchange.blocks()]
    gone = begun().view().exchanges[-1].first
    request = dialog.request("anthropic", CLAUDE, cache_at=[*places, gone])
    left = [change.why for change in request.report if change.what == "cache"]
    assert sorted(why.rpartition(": ")[2] for why in left) == [
        "a request takes 4 marks, and later ones are wanted",
        "a request takes 4 marks, and later ones are wanted",
        "a request takes 4 marks, and later ones are wanted",
        "it is not sent, or takes no mark",
    ]
    for api, model in (("gemini", GEMINI), ("openai-responses", "gpt-6.2-sol"), ("gemini-interactions", GEMINI)):
        (note,) = [change for change in dialog.request(api, model, cache_ttl="1h").report if change.what == "cache"]
        assert "takes no marks" in note.why
    assert not [
        change for change in dialog.request("anthropic", CLAUDE, cache_ttl="1h").report if change.what == "cache"
    ]


@pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession")  # of google-genai, from aiohttp
@pytest.mark.parametrize("api", ["google", "google-interactions"])
def test_a_cache_has_tools_and_instructions(api: str) -> None:
    """Hazard 53 («CachedContent + tools: 400»): the cache is made of them, requests that name it have neither, and a call of its tool runs on."""
    dialog = begun()
    call = {"functionCall": {"name": "bash", "args": {"command": "ls"}}}
    step = {"type": "function_call", "name": "bash", "arguments": {"command": "ls"}}
    cacher, server = strict.gemini(), strict.gemini() if api == "google" else strict.interactions()

    async def talk(url: str, name: str | None) -> None:
        provider, model = connect_model(f"{api}/{GEMINI}", api_key="key", http_options={"base_url": url})
        named = {"cachedContent" if api == "google" else "cached_content": name}
        async with aclosing(provider):
            for _ in range(2):
                request = dialog.request(provider.profile_for(model), model, parameters=named)
                kept = [change.what for change in request.report if str(name) in change.why]
                assert kept == list(request.profile.cache.moved[:2])
                dialog.append(await collect(provider.stream(request)))
                for asked in dialog.messages[-1].tool_calls():
                    dialog.append(ToolMessage.from_result(ToolResultContent(id=asked.id, name="bash", content="a")))

    with cacher, server:
        client = opened(genai.Client(api_key="key", http_options={"base_url": cacher.url}))
        made = client.caches.create(**dialog.request("gemini", GEMINI).explicit_cache())
        assert cacher.served[0].asked.body.keys() == {"model", "systemInstruction", "tools", "ttl"}
        server.answers([call] if api == "google" else [{"type": "thought"}, step], ["Well."])
        anyio.run(talk, server.url, made.name)
        assert [served.message for served in server.refused] == []
        bodies = [served.asked.body for served in server.served]
        assert all("tools" not in body and "system_instruction" not in body for body in bodies)


def test_another_model_finds_nothing_in_the_cache() -> None:
    """The comparison of two requests says how much of the first the cache still has: none of it for another model."""
    dialog = begun()
    first, other = (dialog.request("anthropic", model) for model in (CLAUDE, "claude-opus-5"))
    dialog.append({"role": "assistant", "content": "Done."})
    later = dialog.request("anthropic", CLAUDE, then="More.")
    assert (compare(first, later).kept, compare(first, later).broken) == (2, None)
    assert compare(first, other).kept == 0
