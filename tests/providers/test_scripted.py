"""Scripted providers: answers in order and in every form, streamed or not; scripts in files; the laws of providers."""

import json
from collections.abc import Iterable
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest

from palaver.errors import ContextOverflow, InvalidInput, ProviderError, RateLimited
from palaver.messages import AssistantMessage, StopReason, TextContent, ThinkingContent, ToolCallContent
from palaver.providers import Provider, ScriptedProvider, read_script
from palaver.testing.provider_laws import ProviderLaws, Question
from palaver.wire import Request
from tests.providers.asking import answer, ask
from tests.wire.scenes import BASH


class TestLaws(ProviderLaws):
    """A scripted provider is a provider."""

    def provider(self) -> Provider:
        """Answer by the user's text."""
        return ScriptedProvider(_reply)

    def questions(self) -> Iterable[Question]:
        """Ask for every kind of answer."""
        return [
            Question("text"),
            Question("calls", (BASH,)),
            Question("limited", fails="rate"),
            Question("overflow", fails="overflow"),
        ]


def _reply(request: Request) -> object:
    asked = request.body["messages"][-1]["content"]
    calls = [{"id": f"call_{n}", "name": "bash", "arguments": {"command": f"ls {n}"}} for n in range(2)]
    return {
        "text": {"text": "Hello from a script.", "usage": {"prompt_tokens": 3, "completion_tokens": 4}},
        "calls": {"text": "Looking.", "tool_calls": calls},
        "limited": RateLimited("later", retry_after=3),
        "overflow": {"error": {"kind": "overflow", "limit": 10}},
    }[asked]


def test_answers_come_in_order() -> None:
    """Texts, messages and objects; requests are kept, and one too many is an error."""
    provider = ScriptedProvider(["one", AssistantMessage(content="two"), {"text": "three"}])
    assert [answer(provider, ask(text)).content for text in "abc"] == ["one", "two", "three"]
    assert [request.body["messages"][-1]["content"] for request in provider.requests] == ["a", "b", "c"]
    with pytest.raises(ProviderError, match="request 4") as caught:
        answer(provider, ask())
    assert (caught.value.kind, caught.value.retryable) == ("script", False)


def test_answers_may_be_functions_of_the_request() -> None:
    """Coroutine functions too; one function answers every request, and an endless iterable is read as it is asked."""

    async def later(request: Request) -> str:
        return f"later to {request.model}"

    provider = ScriptedProvider([lambda request: f"to {request.model}", later])
    assert [answer(provider, ask(model="m")).content for _ in range(2)] == ["to m", "later to m"]
    assert answer(ScriptedProvider(lambda _: "always"), ask()).content == "always"
    assert answer(ScriptedProvider(repeat("again")), ask()).content == "again"


def test_exceptions_are_raised() -> None:
    """An exception or a class of one."""
    cases: list[Any] = [RateLimited("x"), RateLimited, ValueError("a defect"), KeyboardInterrupt()]
    for error in cases:
        with pytest.raises(error if isinstance(error, type) else type(error)):
            answer(ScriptedProvider([error]), ask())


def test_error_has_the_text_before_it() -> None:
    """Cut arguments stay text."""
    call = {"name": "bash", "arguments": '{"command": "rm -'}
    provider = ScriptedProvider([{"text": "Half an ans", "tool_calls": [call], "error": "broken"}])
    with pytest.raises(ProviderError) as caught:
        answer(provider, ask(stream=True))
    error = caught.value
    assert (error.kind, error.provider, error.model, error.retryable) == ("broken", "scripted", "gpt-5.2", True)
    assert error.partial.text_content() == "Half an ans"
    assert error.partial.tool_calls()[0].raw_args == '{"command": "rm -'
    assert error.partial.tool_calls()[0].error


def test_object_becomes_a_message() -> None:
    """Thinking, text and calls in this order, with usage and stop reason; ids are new in each answer."""
    calls = [{"name": "bash", "arguments": {"command": "ls"}, "id": "c1"}, {"name": "bash"}]
    script = {"thinking": "Hm.", "text": "So.", "tool_calls": calls, "usage": {"prompt_tokens": 5}}
    provider = ScriptedProvider([script, script])
    message, again = answer(provider, ask()), answer(provider, ask())
    expected = (ThinkingContent("Hm."), TextContent("So."), ToolCallContent("c1", "bash", args={"command": "ls"}))
    assert message.contents[:3] == expected
    assert message.tool_calls()[1].id.startswith("call_")
    assert message.tool_calls()[1].id != again.tool_calls()[1].id
    assert (message.usage.input_tokens, message.stop_reason) == (5, StopReason.TOOL_CALLS)
    assert (message.model, message.provider) == ("gpt-5.2", "scripted")


def test_script_is_read_from_a_file(tmp_path: Path) -> None:
    """A list, or an object with the list under `answers`."""
    for key in [None, "answers"]:
        path = tmp_path / "script.json"
        said = ["one", {"error": {"kind": "overflow", "message": "too long", "status": 400, "limit": 5}}]
        path.write_text(json.dumps({key: said} if key else said), encoding="utf-8")
        provider = ScriptedProvider(read_script(path))
        assert answer(provider, ask()).content == "one"
        with pytest.raises(ContextOverflow, match="too long") as caught:
            answer(provider, ask())
        assert (caught.value.status, caught.value.limit) == (400, 5)


def test_wrong_script_names_the_fault(tmp_path: Path) -> None:
    """And the number of the answer."""
    cases: list[tuple[str | None, str]] = [
        ("{", "not valid JSON"),
        ('["ok", 7]', "Answer 2"),
        ('[{"txet": "x"}]', "txet"),
        ('[{"error": "late"}]', "'rate'"),
        ('[{"tool_calls": [{"arguments": {}}]}]', "tool_calls.0.name"),
        (None, "cannot be read"),
    ]
    for content, says in cases:
        path = tmp_path / "script.json"
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_text(content, encoding="utf-8")
        with pytest.raises(InvalidInput) as caught:
            read_script(path)
        assert says in str(caught.value)
