"""A format on its whole way: sent, held to, refused with reasons, repaired, and kept, whoever the provider is."""

import json
from typing import Any

import pytest
from pydantic import BaseModel, Field

from palaver import Dialog
from palaver.agent import Agent, ProviderInvoker
from palaver.errors import ParseError, RepairFailed
from palaver.messages import thaw
from palaver.models import Assembly, ScriptedProvider
from palaver.models.answers import AnswerReader, AnthropicAnswer, GeminiAnswer
from palaver.prompts import DefaultHandler, Prompt, Runtime
from palaver.tools import tool
from palaver.wire import ProfileName

PROFILES: dict[ProfileName, str] = {
    "openai-chat": "gpt-4o",
    "openai-responses": "gpt-5.2",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-3-pro",
}


class Bird(BaseModel):
    """A sighting."""

    name: str
    count: int = Field(ge=1)


GOOD = '{"name": "heron", "count": 2}'
BAD = '{"count": 0}'


def asking(profile: ProfileName, prompt: Prompt, *answers: Any, **options: Any) -> tuple[Agent, ScriptedProvider]:  # noqa: ANN401 - a script
    """Give an agent that was asked something, and its provider."""
    provider = ScriptedProvider(list(answers), profile=profile)
    agent = Agent("watcher", prompt, PROFILES[profile], ProviderInvoker(provider), **options)
    agent.open("main").receive("What do you see?")
    return agent, provider


@pytest.mark.parametrize("profile", PROFILES)
def test_a_refused_answer_is_repaired_with_the_reasons(profile: ProfileName) -> None:
    """The schema is in every request; the second one quotes what was wrong; the dialog has the good answer alone, and `read` gives the type."""
    prompt = Prompt(path="birds", prompt="You watch.", format=Bird)
    agent, provider = asking(profile, prompt, BAD, GOOD)
    session = agent.respond(return_session=True)
    assert session.exception_retries_count == 1
    assert session.delivery is not None
    assert session.delivery.parsed == {"name": "heron", "count": 2}
    assert prompt.read(session.delivery) == Bird(name="heron", count=2)
    first, second = (request.data.decode() for request in provider.requests)
    for sent in (first, second):
        assert '"count"' in sent
    assert "name: missing; count: Input should be greater than or equal to 1" in second
    assert [message.text_content() for message in agent.current_dialog.messages] == [
        "You watch.",
        "What do you see?",
        GOOD,
    ]


def test_an_answer_that_never_holds_ends_in_a_typed_error() -> None:
    """After the last repair the error has the trace, and what was wrong each time."""
    agent, provider = asking(
        "openai-chat", Prompt(path="b", prompt="x", format=Bird), *["no JSON"] * 3, max_exception_retry=2
    )
    with pytest.raises(RepairFailed) as caught:
        agent.respond()
    assert len(provider.requests) == 3
    assert caught.value.session.exception_retries_count >= 2
    assert all("is no JSON" in each for found in caught.value.session.exception_retries.values() for each in found)


def test_tools_and_a_format_in_one_turn() -> None:
    """Calls are not held to the format, the final answer is; after the last round it still is, without tools."""

    @tool
    def look(where: str) -> str:
        """Look."""
        return where

    call = {"tool_calls": [{"name": "look", "arguments": {"where": "up"}}]}
    other = {"tool_calls": [{"name": "look", "arguments": {"where": "down"}}]}
    prompt = Prompt(
        path="b", prompt="x", format=Bird, function_list=[look], handler=DefaultHandler(interrupt_final="Now answer.")
    )
    agent, provider = asking("openai-chat", prompt, call, other, GOOD, max_interrupt_steps=2)
    assert agent.respond().parsed == {"name": "heron", "count": 2}
    assert all("response_format" in request.body for request in provider.requests)
    assert "Now answer." in provider.requests[-1].data.decode()


def test_a_handler_of_ones_own_writes_the_repair() -> None:
    """Its words stand in the next request, around the reasons, whatever braces those have."""
    prompt = Prompt(path="b", prompt="x", format=Bird, handler=DefaultHandler(exception="NO! {error_message} AGAIN!"))
    agent, provider = asking("openai-chat", prompt, '{"{oops}": 1}', GOOD)
    agent.respond()
    said = provider.requests[1].body["messages"][-1]["content"]
    assert "NO! The answer does not hold" in said
    assert "AGAIN!" in said


def test_a_parser_beside_a_format() -> None:
    """The parser makes of the answer what is kept; it never sees one that does not hold."""
    seen: list[str] = []

    def parse(content: str, **_args: object) -> dict[str, Any]:
        seen.append(content)
        return {"upper": json.loads(content)["name"].upper()}

    agent, _ = asking("openai-chat", Prompt(path="b", prompt="x", format=Bird, parser=parse), BAD, GOOD)
    assert agent.respond().parsed == {"upper": "HERON", "raw": GOOD}
    assert seen == [GOOD]


def test_a_refusal_of_the_models_is_told_like_any_other_answer() -> None:
    """A model that declines in words gave no JSON: the reasons say so."""
    with pytest.raises(ParseError, match="is no JSON"):
        Prompt(path="b", prompt="x", format=Bird).read("I cannot help with that.")


def test_provider_tools_of_a_prompt_are_sent() -> None:
    """`addon_args` of the prompt in force go along with every request of the call."""
    prompt = Prompt(path="b", prompt="x", addon_args={"web_search": {"max_uses": 2}})
    agent, provider = asking("anthropic", prompt, "fine")
    agent.respond()
    assert provider.requests[0].body["tools"][0]["max_uses"] == 2


def test_references_are_resolved_for_the_call() -> None:
    """A prompt may name tools of the runtime; the registered prompt is not changed."""
    runtime = Runtime()

    @runtime.register_tool
    def look(where: str) -> str:
        """Look."""
        return where

    prompt = Prompt(path="b", prompt="x", function_list=["look"])
    call = {"tool_calls": [{"name": "look", "arguments": {"where": "up"}}]}
    agent, provider = asking("openai-chat", prompt, call, "done", runtime=runtime)
    assert agent.respond().content == "done"
    assert provider.requests[0].body["tools"][0]["function"]["name"] == "look"
    assert agent.system_prompt.function_list == ("look",)


CLAUDE_SAID: dict[str, Any] = {
    "type": "message",
    "role": "assistant",
    "id": "msg_1",
    "model": "claude-sonnet-4-5",
    "stop_reason": "end_turn",
    "content": [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "herons"}},
        {
            "type": "web_search_tool_result",
            "tool_use_id": "srvtoolu_1",
            "content": [{"type": "web_search_result", "title": "t", "url": "u", "encrypted_content": "e"}],
        },
        {"type": "text", "text": "They fish."},
    ],
    "usage": {"input_tokens": 1, "output_tokens": 1},
}
GEMINI_SAID: dict[str, Any] = {
    "candidates": [
        {
            "content": {
                "role": "model",
                "parts": [
                    {"thoughtSignature": "c2ln", "executableCode": {"language": "PYTHON", "code": "print(1)"}},
                    {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
                    {"text": "It is 1."},
                ],
            },
            "finishReason": "STOP",
        }
    ]
}


@pytest.mark.parametrize(
    ("profile", "reader", "said", "tools", "sent"),
    [
        ("anthropic", AnthropicAnswer, CLAUDE_SAID, {"web_search": True}, lambda body: body["messages"][1]["content"]),
        ("gemini", GeminiAnswer, GEMINI_SAID, {"code_execution": True}, lambda body: body["contents"][1]["parts"]),
    ],
)
def test_what_a_tool_of_the_provider_left_goes_back_to_it(
    profile: ProfileName,
    reader: type[AnswerReader],
    said: dict[str, Any],
    tools: dict[str, Any],
    sent: Any,  # noqa: ANN401 - classes and functions
) -> None:
    """From the provider's own answer through the log to the next request: the same blocks, to the last field."""
    dialog = Dialog(owner="watcher")
    dialog.put_text("What do you see?")
    model, provider = PROFILES[profile], {"gemini": "google"}.get(profile, profile)
    answer = Assembly(model=model, provider=provider)
    for event in reader(dialog.request(profile, model, provider_tools=tools), provider).whole(said):
        answer.add(event)
    dialog.append(answer.partial)
    dialog.put_text("And then?")
    request = dialog.request(profile, model, provider_tools=tools, cache=False)
    expected = said["content"] if profile == "anthropic" else said["candidates"][0]["content"]["parts"]
    assert sent(thaw(request.body)) == expected
    assert len(request.report) == 0
