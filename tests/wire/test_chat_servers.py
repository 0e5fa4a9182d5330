"""Reasoning goes back to servers of chat completions in the field in which each wants it; the stand-ins refuse nothing."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import openai
import pytest

from palaver.log import MessageEntry, Toolset
from palaver.messages import (
    AssistantMessage,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    thaw,
)
from palaver.providers import collect
from palaver.providers.openai_chat.client import OpenAIProvider
from palaver.session import Dialog, Session
from palaver.store import MemoryStore
from palaver.testing import strict
from palaver.wire import Call, Request, compile  # noqa: A004 - the word for it
from tests.clients import opened
from tests.wire.scenes import BASH

MODELS = {
    "deepseek": "deepseek-v4",
    "kimi": "kimi-k3",
    "glm": "glm-5.1",
    "minimax": "MiniMax-M3",
    "mistral": "magistral-medium",
    "openrouter": "anthropic/claude-opus-5",
    "vllm": "my-model",
    "sglang": "my-model",
    "ollama": "gpt-oss",
    "gemini": "gemini-3-pro",
    "openai": "gpt-4o",
}
FIELDS = {
    **dict.fromkeys(("deepseek", "kimi", "glm", "sglang"), "reasoning_content"),
    **dict.fromkeys(("minimax", "openrouter"), "reasoning_details"),
    **dict.fromkeys(("vllm", "ollama"), "reasoning"),
}
CALL = {"type": "function", "name": "bash", "arguments": '{"command": "ls"}'}
THOUGHT = {"type": "reasoning", "text": "hm"}


def begun() -> Dialog:
    """Return a dialog with a tool and a question."""
    dialog = Session.create(MemoryStore(), "talk").root
    dialog.record(Toolset(tools=(BASH,)))
    dialog.put_text("Go.")
    return dialog


def ask(server: strict.StrictServer, name: str, dialog: Dialog, *, stream: bool = False) -> Request:
    """Send the next request through the client, and append its answer."""

    async def answered() -> tuple[Request, AssistantMessage]:
        async with aclosing(OpenAIProvider(base_url=server.url, api_key="key", name=name)) as provider:
            call = Call(model=MODELS[name], stream=stream)
            request = compile(dialog.view(), provider.profile_for(MODELS[name]), call, lambda _: b"")
            request.check()
            return request, await collect(provider.stream(request))

    request, message = asyncio.run(answered())
    dialog.record(MessageEntry(message=message))
    return request


@pytest.mark.parametrize("name", sorted(MODELS))
@pytest.mark.parametrize("stream", [False, True])
def test_reasoning_goes_back_in_its_field(name: str, stream: bool) -> None:
    """«chat: reasoning_content missing x DeepSeek/Kimi», «chat: reasoning_content sent x R1, Mistral»: reasoning_content that is missing is refused by DeepSeek and Kimi; sent to R1 or Mistral, it is refused, too."""
    dialog = begun()
    with strict.openai_chat(server=name) as server:
        server.answers([THOUGHT, CALL], [THOUGHT, "Done."], "Well.")
        ask(server, name, dialog, stream=stream)
        call = dialog.messages[-1].tool_calls()[0]
        dialog.append(ToolMessage.from_results([ToolResultContent(id=call.id, content="a.py")]))
        ask(server, name, dialog, stream=stream)
        dialog.put_text("And?")
        request = ask(server, name, dialog, stream=stream)
        assert [served.message for served in server.refused] == []
    said = [message for message in thaw(request.body)["messages"] if message["role"] == "assistant"]
    for message in said:
        if name in FIELDS:
            assert FIELDS[name] in message
        elif name == "mistral":
            assert message["content"][0]["type"] == "thinking"
        else:
            assert "reasoning" not in str(message)
    assert [change for change in request.report.lost() if change.what == "thinking"] == []


@pytest.mark.parametrize("name", ["deepseek", "kimi"])
def test_messages_of_others_get_an_empty_field(name: str) -> None:
    """«chat: reasoning_content missing x DeepSeek/Kimi»: where another model made the calls, the field is there without its words, and the report says so."""
    dialog = begun()
    thought = ThinkingContent("Secret.", "c2ln", provider="anthropic")
    call = ToolCallContent("c1", "bash", args={"command": "ls"})
    dialog.append(AssistantMessage(contents=(thought, call), provider="anthropic", model="claude-opus-5"))
    dialog.append(ToolMessage.from_results([ToolResultContent(id="c1", content="a.py")]))
    with strict.openai_chat(server=name) as server:
        request = ask(server, name, dialog)
        assert server.refused == []
    assert "Secret" not in request.data.decode()
    assert {change.how.value for change in request.report if change.what == "thinking"} == {"dropped", "added"}


@pytest.mark.parametrize("model", ["deepseek-reasoner", "qwen3-max", "gpt-4o", "magistral-medium"])
def test_closed_schemas_get_no_foreign_field(model: str) -> None:
    """«chat: reasoning_content sent x R1, Mistral»: R1 refuses `reasoning_content` in its input, Mistral answers 422 extra_forbidden; the report says what was left out."""
    dialog = begun()
    thought = ThinkingContent("Secret.", provider="kimi")
    dialog.append(AssistantMessage(contents=(thought, TextContent("Done.")), provider="kimi", model="kimi-k3"))
    dialog.put_text("And?")
    request = dialog.request("openai-chat", model)
    assert "Secret" not in request.data.decode()
    assert [change.what for change in request.report.lost()] == ["thinking"]


@pytest.mark.parametrize("then", ["And?", None])
def test_the_assistant_speaks_after_results_to_mistral(then: str | None) -> None:
    """Mistral refuses words of the user after a result («Unexpected role 'user' after role 'tool'»): words after results that nobody answered are accepted, and the report says what was added."""
    dialog = begun()
    dialog.append(AssistantMessage(contents=(ToolCallContent("c1", "bash", args={"command": "ls"}),)))
    dialog.append(ToolMessage.from_results([ToolResultContent(id="c1", content="a.py")]))
    if then is None:
        dialog.put_text("And?")
    request = dialog.request("openai-chat", "mistral-large", then=then)
    request.check()
    with strict.openai_chat(server="mistral") as server:
        opened(openai.OpenAI(base_url=server.url, api_key="key", max_retries=0)).chat.completions.create(**request)
        assert server.refused == []
    assert [change.why for change in request.report][-1:] == ["the assistant must speak after results"]
    assert "did not answer" not in dialog.request("openai-chat", "gpt-4.1", then=then).data.decode()


@pytest.mark.parametrize("name", ["vllm", "sglang"])
def test_truncated_arguments_are_an_object(name: str) -> None:
    """«truncated arguments in history x vLLM/SGLang»: truncated arguments in the history make servers with templates refuse every later request."""
    dialog = begun()
    dialog.append(AssistantMessage(contents=(ToolCallContent("c1", "bash", args='{"command": "l'),), provider=name))
    dialog.append(ToolMessage.from_results([ToolResultContent(id="c1", content="no", is_error=True)]))
    with strict.openai_chat(server=name) as server:
        request = ask(server, name, dialog)
        assert server.refused == []
    assert "arguments" in [change.what for change in request.report]


def test_the_server_is_named_by_provider_or_model() -> None:
    """A user names the server by the provider's name, by `server`, or by the model's name."""
    cases: list[tuple[dict[str, Any], str, str]] = [
        ({"name": "openrouter"}, "anthropic/claude-opus-5", "reasoning_details"),
        ({"name": "home", "server": "vllm"}, "my-model", "reasoning"),
        ({}, "deepseek-v4", "reasoning_content"),
        ({"name": "home"}, "my-model", ""),
    ]
    for options, model, field in cases:
        provider = OpenAIProvider(client=openai.AsyncOpenAI(api_key="x"), **options)
        assert provider.profile_for(model).reasoning.field == field
