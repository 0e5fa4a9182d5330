"""Scripted providers: answers in order, in every form, streamed or not; scripts in files; the laws."""

import json
from collections.abc import Iterable
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest

from palaver.errors import (
    BrokenAnswer,
    ContextOverflow,
    InvalidInput,
    ProviderDown,
    RateLimited,
    ScriptExhausted,
)
from palaver.messages import AssistantMessage, StopReason, TextContent, ThinkingContent, ToolCallContent
from palaver.models import BlockEvent, Provider, ScriptedProvider, TextDelta, read_script
from palaver.testing.provider_laws import ProviderLaws, Question
from palaver.wire import Request
from tests.models.asking import answer, ask, events
from tests.wire.scenes import BASH


class TestTheLaws(ProviderLaws):
    """A scripted provider is a provider."""

    def provider(self) -> Provider:
        """Answer by the user's words."""
        return ScriptedProvider(_reply)

    def questions(self) -> Iterable[Question]:
        """Ask for every kind of answer."""
        return [
            Question("text"),
            Question("calls", (BASH,)),
            Question("limited", fails=RateLimited),
            Question("overflow", fails=ContextOverflow),
        ]


def _reply(request: Request) -> object:
    asked = request.body["messages"][-1]["content"]
    calls = [{"id": f"call_{n}", "name": "bash", "arguments": {"command": f"ls {n}"}} for n in range(2)]
    return {
        "text": {"text": "Hello from a script.", "usage": {"prompt_tokens": 3, "completion_tokens": 4}},
        "calls": {"text": "Looking.", "tool_calls": calls},
        "limited": RateLimited("later", retry_after=3),
        "overflow": {"error": {"kind": "ContextOverflow", "limit": 10}},
    }[asked]


def test_answers_come_in_order_and_requests_are_kept() -> None:
    """Texts, messages and objects; each request can be looked at afterwards."""
    provider = ScriptedProvider(["one", AssistantMessage(content="two"), {"text": "three"}])
    assert [answer(provider, ask(text)).content for text in "abc"] == ["one", "two", "three"]
    assert [request.body["messages"][-1]["content"] for request in provider.requests] == ["a", "b", "c"]


def test_a_script_that_is_used_up_is_loud() -> None:
    """One request too many is an error that says which; it is not tried again."""
    provider = ScriptedProvider(["one"])
    answer(provider, ask())
    with pytest.raises(ScriptExhausted, match="request 2") as caught:
        answer(provider, ask())
    assert not caught.value.retryable


def test_answers_may_be_computed_from_the_request() -> None:
    """A function of the request, also one that waits; a script that is one function answers everything."""

    async def later(request: Request) -> str:
        return f"later to {request.model}"

    provider = ScriptedProvider([lambda request: f"to {request.model}", later])
    assert [answer(provider, ask(model="m")).content for _ in range(2)] == ["to m", "later to m"]
    assert answer(ScriptedProvider(lambda _: "always"), ask()).content == "always"


def test_a_script_may_have_no_end() -> None:
    """No more is read of an iterable than is asked for."""
    provider = ScriptedProvider(repeat("again"))
    assert {answer(provider, ask()).content for _ in range(3)} == {"again"}


def test_answers_that_were_given_before_are_passed_over() -> None:
    """A process that goes on where another one stopped begins at its place in the script."""
    assert answer(ScriptedProvider(["one", "two", "three"], start=2), ask()).content == "three"


@pytest.mark.parametrize("error", [RateLimited("x"), RateLimited, ValueError("a defect"), KeyboardInterrupt()])
def test_errors_are_raised(error: Any) -> None:  # noqa: ANN401 - an exception or its class
    """An exception or a class of one, ours or another's."""
    with pytest.raises(error if isinstance(error, type) else type(error)):
        answer(ScriptedProvider([error]), ask())


def test_a_streamed_answer_comes_in_pieces_of_the_wanted_size() -> None:
    """Whole it is one delta a block; streamed, a delta for each so many characters."""
    script = [{"text": "0123456789", "tool_calls": [{"name": "bash", "arguments": {"command": "ls"}}]}]
    whole = events(ScriptedProvider(script), ask())
    assert [event.text for event in whole if isinstance(event, TextDelta)] == ["0123456789"]
    streamed = events(ScriptedProvider(script, chunk=4), ask(stream=True))
    assert [event.text for event in streamed if isinstance(event, TextDelta)] == ["0123", "4567", "89"]
    assert not any(isinstance(event, BlockEvent) for event in [*whole, *streamed])


def test_what_comes_before_a_failure_is_in_the_error() -> None:
    """An answer with an error breaks off after what it says; cut arguments stay text."""
    call = {"name": "bash", "arguments": '{"command": "rm -'}
    provider = ScriptedProvider([{"text": "Half an ans", "tool_calls": [call], "error": "BrokenAnswer"}])
    with pytest.raises(BrokenAnswer) as caught:
        answer(provider, ask(stream=True))
    partial = caught.value.partial
    assert partial.text_content() == "Half an ans"
    assert partial.tool_calls()[0].raw_args == '{"command": "rm -'
    assert partial.tool_calls()[0].error
    assert (caught.value.provider, caught.value.model) == ("scripted", "gpt-5.2")


def test_a_delay_is_slept_before_the_answer() -> None:
    """By the sleep that was given: tests do not wait."""
    naps: list[float] = []

    async def nap(seconds: float) -> None:
        naps.append(seconds)

    answer(ScriptedProvider([{"text": "late", "delay": 2.5}, "now"], sleep=nap), ask())
    assert naps == [2.5]


def test_an_answer_object_becomes_a_message() -> None:
    """Thinking, text and calls in this order, with usage and the stop reason that fits."""
    calls = [{"name": "bash", "arguments": {"command": "ls"}, "id": "c1"}, {"name": "bash"}]
    script = [{"thinking": "Hm.", "text": "So.", "tool_calls": calls, "usage": {"prompt_tokens": 5}}]
    message = answer(ScriptedProvider(script), ask())
    assert message.contents[:3] == (
        ThinkingContent("Hm."),
        TextContent("So."),
        ToolCallContent("c1", "bash", args={"command": "ls"}),
    )
    assert message.tool_calls()[1].id.startswith("call_")
    assert message.usage.input_tokens == 5
    assert message.stop_reason is StopReason.TOOL_CALLS
    assert (message.model, message.provider) == ("gpt-5.2", "scripted")


def test_ids_are_made_up_anew_in_each_answer() -> None:
    """The same script in a second process gives no id that the log has already."""
    script = {"tool_calls": [{"name": "bash"}]}
    provider = ScriptedProvider([script, script])
    first, second = (answer(provider, ask()).tool_calls()[0].id for _ in range(2))
    assert first != second


def test_a_script_is_read_from_a_file(tmp_path: Path) -> None:
    """A list, or an object with the list under `answers`."""
    path = tmp_path / "script.json"
    said = ["one", {"error": {"kind": "ProviderDown", "message": "gone", "status": 503}}]
    for content in (said, {"answers": said}):
        path.write_text(json.dumps(content), encoding="utf-8")
        provider = ScriptedProvider(read_script(path))
        assert answer(provider, ask()).content == "one"
        with pytest.raises(ProviderDown, match="gone") as caught:
            answer(provider, ask())
        assert caught.value.status == 503


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "no JSON"),
        ('{"answer": []}', "no list"),
        ('["ok", 7]', "Answer 2"),
        ('[{"txet": "x"}]', "'text'"),
        ('[{"text": 7}]', "is a text"),
        ("[{}]", "says something"),
        ('[{"error": "RateLimitd"}]', "'RateLimited'"),
        ('[{"error": 7}]', "kind"),
        ('[{"text": "x", "delay": -1}]', "seconds"),
        ('[{"tool_calls": [{"arguments": {}}]}]', "name"),
        ('[{"tool_calls": [{"name": "a", "args": {}}]}]', "args"),
        ('[{"tool_calls": "bash"}]', "list"),
        ('[{"text": "x", "stop_reason": "because"}]', "stop_reason"),
    ],
)
def test_a_wrong_script_says_which_answer_is_wrong_and_how(tmp_path: Path, content: str, says: str) -> None:
    """With the place, and the close match where there is one."""
    path = tmp_path / "script.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InvalidInput) as caught:
        read_script(path)
    assert says in str(caught.value)


def test_a_script_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    """Not a traceback of the system's."""
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_script(tmp_path / "none.json")
