"""Each word with which a provider ends an answer has a branch in the loop; the stand-in of the Messages API refuses nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from palaver.agent import Agent, ProviderInvoker
from palaver.errors import AgentFailure, ProviderError
from palaver.messages import thaw
from palaver.messages.roles import DISCARDED, UNFINISHED, StopReason, stop_reason_of
from palaver.providers.anthropic.client import AnthropicProvider
from palaver.providers.openai_chat.client import OpenAIProvider
from palaver.testing import strict
from palaver.tools import tool
from tests.agent.helper import QUICK, attempts, calling, roles, scripted, talkative
from tests.clients import opened
from tests.wire.talks import CALL, FOUND, SEARCH, STRICT, THOUGHT, accepted

WORDS = {
    "done": "end_turn stop_sequence stop STOP",
    "tools": "tool_use tool_calls function_call requires_action",
    "cut": "max_tokens length MAX_TOKENS max_output_tokens max_messages incomplete budget_exceeded",
    "pause": "pause_turn",
    "compaction": "compaction",
    "continue": "CONTINUATION requires_continuation",
    "refused": "refusal",
    "window": "model_context_window_exceeded",
    "retry": "MALFORMED_FUNCTION_CALL UNEXPECTED_TOOL_CALL TOO_MANY_TOOL_CALLS MALFORMED_RESPONSE insufficient_system_resource",
    "defect": "MISSING_THOUGHT_SIGNATURE",
    "filtered": "SAFETY RECITATION BLOCKLIST PROHIBITED_CONTENT SPII LANGUAGE IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION IMAGE_OTHER "
    "NO_IMAGE MODEL_ARMOR ESCALATION PUP_LIMITED_DISABLED OTHER content_filter",
}
REASONS = {
    "done": StopReason.STOP,
    "tools": StopReason.TOOL_CALLS,
    "cut": StopReason.LENGTH,
    "pause": StopReason.PAUSE,
    "compaction": StopReason.COMPACTION,
    "continue": StopReason.CONTINUE,
    "refused": StopReason.REFUSAL,
    "window": StopReason.OVERFLOW,
    "retry": StopReason.RETRY,
    "defect": StopReason.DEFECT,
    "filtered": StopReason.CONTENT_FILTER,
}


@pytest.fixture
def claude() -> Iterator[strict.StrictServer]:
    """Return a running stand-in of the Messages API."""
    with strict.anthropic() as server:
        yield server


RAN: list[str] = []


@tool
def bash(command: str) -> str:
    """Run a command."""
    RAN.append(command)
    return "done"


def agent_of(server: strict.StrictServer, **options: Any) -> Agent:  # noqa: ANN401 - what an agent takes
    """Return an agent of the stand-in, with a dialog open."""
    RAN.clear()
    provider = AnthropicProvider(base_url=server.url, api_key="key")
    return Agent(
        "tester", "Be brief.", STRICT, ProviderInvoker(opened(provider)), **({"tools": [bash]} | options)
    ).open("main")


def test_every_word_means_one_thing() -> None:
    """Section 6: each stop word of each API is one of eleven reasons."""
    for meaning, words in WORDS.items():
        assert {stop_reason_of(word) for word in words.split()} == {REASONS[meaning]}, meaning
    assert set(REASONS.values()) > UNFINISHED | DISCARDED
    assert stop_reason_of("other") is None


def test_a_paused_turn_goes_on_by_itself(claude: strict.StrictServer) -> None:
    """`pause_turn`: the content is sent again unchanged, with the same tools; a message that comes meanwhile waits."""
    agent = agent_of(claude, model_args={"provider_tools": {"web_search": True}})
    claude.answers([THOUGHT, "I look.", SEARCH], [FOUND, THOUGHT, "Herons."])
    assert agent.respond("Search.").text_content() == "Herons."
    first, second = (served.asked.body for served in claude.served)
    assert second["tools"] == first["tools"]
    assert [block["type"] for block in second["messages"][-1]["content"]] == ["thinking", "text", "server_tool_use"]
    accepted(claude)


def test_a_mixed_turn_takes_results_only(claude: strict.StrictServer) -> None:
    """`tool_use` beside a server tool that has not answered: the next turn has results only; a queued message follows the answer."""
    agent = agent_of(claude, model_args={"provider_tools": {"web_search": True}})

    def answer(asked: strict.HttpRequest) -> strict.NextAnswer:
        if len(asked.body["messages"]) == 1:
            agent.receive("Also this.")
            return strict.NextAnswer([THOUGHT, SEARCH, CALL])
        return strict.NextAnswer([FOUND, THOUGHT, "Herons."])

    claude.script.otherwise = answer
    assert agent.respond("Go.").text_content() == "Herons."
    assert [block["type"] for block in claude.served[1].asked.body["messages"][-1]["content"]] == ["tool_result"]
    claude.script.otherwise = None
    claude.answers("This, too.")
    assert agent.respond().content == "This, too."
    accepted(claude)


def test_a_call_that_was_cut_off_never_runs(claude: strict.StrictServer) -> None:
    """`max_tokens`: a truncated tool_use is never run, even where its arguments can be read; the model is told."""
    agent = agent_of(claude)
    claude.answers(strict.NextAnswer([THOUGHT, CALL], stop="max_tokens"), "Well.")
    assert agent.respond("Go.").content == "Well."
    assert RAN == []
    (result,) = claude.served[1].asked.body["messages"][-1]["content"]
    assert result["is_error"]
    assert "cut off" in result["content"]
    accepted(claude)


def test_a_compaction_is_kept_and_the_turn_goes_on(claude: strict.StrictServer) -> None:
    """`compaction`: the block is kept, and the loop goes on from it."""
    edit = {
        "type": "compact_20260112",
        "trigger": {"type": "input_tokens", "value": 50_000},
        "pause_after_compaction": True,
    }
    agent = agent_of(claude, model_args={"context_management": {"edits": [edit]}})
    claude.answers("Well.")
    assert agent.respond("word " * 60_000).content == "Well."
    (message,) = claude.served[1].asked.body["messages"]
    assert [block["type"] for block in message["content"]] == ["compaction"]
    accepted(claude)


def test_a_refusal_ends_the_turn_without_its_words(claude: strict.StrictServer) -> None:
    """`refusal`: the partial answer is discarded; the error names the model that the provider recommends."""
    agent = agent_of(claude)
    details = {"type": "refusal", "category": "bio", "explanation": "No.", "recommended_model": "claude-opus-4-8"}
    claude.answers(strict.NextAnswer([THOUGHT, "I wi"], stop="refusal", fields={"stop_details": details}), "Well.")
    with pytest.raises(AgentFailure) as caught:
        agent.respond("Go.")
    assert isinstance(caught.value.error, ProviderError)
    assert caught.value.error.kind == "declined"
    assert "claude-opus-4-8" in str(caught.value.hint)
    assert roles(agent.current_dialog) == ["system", "user"]
    assert agent.respond("Something else.").content == "Well."
    accepted(claude)


def test_a_refused_question_goes_to_the_next_model(claude: strict.StrictServer) -> None:
    """`refusal`: the partial answer is discarded, the next models get the same conversation, and the dialog stays with the one that accepts."""
    models = ["claude-opus-5", "claude-opus-4-8"]
    agent = agent_of(claude, fallback_models=models)
    claude.answers(
        [THOUGHT, CALL],
        strict.NextAnswer([THOUGHT, "I wi"], stop="refusal"),
        strict.NextAnswer([], stop="refusal"),
        "Well.",
        "Yes.",
    )
    assert agent.respond("Go.").content == "Well."
    assert agent.respond("Sure?").content == "Yes."
    bodies = [served.asked.body for served in claude.served]
    assert [body["model"] for body in bodies] == [STRICT, STRICT, *models, models[1]]
    assert "I wi" not in str(bodies[2:])
    assert RAN == ["ls"]
    assert not claude.refused
    assert {dropped["reason"] for dropped in claude.dropped} == {"model_binding_mismatch"}, (
        "thinking that the next model does not read"
    )
    again = agent_of(claude, fallback_models=models)
    claude.answers(*[strict.NextAnswer([], stop="refusal")] * 3)
    with pytest.raises(AgentFailure) as caught:
        again.respond("Go.")
    assert isinstance(caught.value.error, ProviderError)
    assert caught.value.error.kind == "declined"


@pytest.mark.parametrize("stream", [False, True])
def test_openai_refuses_in_a_part_of_its_message(stream: bool) -> None:
    """OpenAI has no stop word for it: the refusal is a part of the message. It is discarded as well, the next model is asked, and the error quotes it."""
    refusal = {"type": "message", "content": [{"type": "refusal", "refusal": "I will not."}]}
    with strict.openai_responses() as server:
        provider = opened(OpenAIProvider(base_url=server.url, api_key="key", api="responses"))
        agent = Agent(
            "tester",
            "Be brief.",
            "gpt-6-sol",
            ProviderInvoker(provider),
            fallback_models=["gpt-5.6-sol"],
            model_args={"stream": stream},
        )
        server.answers([{"type": "reasoning"}, refusal], "Well.")
        assert agent.respond("Go.").content == "Well."
        assert [served.asked.body["model"] for served in server.served] == ["gpt-6-sol", "gpt-5.6-sol"]
        server.answers([refusal])
        with pytest.raises(AgentFailure, match="I will not") as caught:
            agent.respond("And now?")
        assert isinstance(caught.value.error, ProviderError)
        assert caught.value.error.kind == "declined"
        assert agent.respond("Sure?").content
        assert "I will not" not in str(server.served[-1].asked.body)
        assert not server.refused


@pytest.mark.parametrize("streamed", [True, False])
def test_the_credit_of_a_refusal_goes_to_the_next_model(claude: strict.StrictServer, *, streamed: bool) -> None:
    """`fallback_credit_token`: the next model gets the same body with the token, which is redeemed; a body that differs is served all the same."""
    handler = {"stream_handler": (lambda _: None) if streamed else None}
    agent = agent_of(claude, fallback_models=["claude-opus-5", "claude-opus-4-8"], **handler)
    refusal = strict.NextAnswer([THOUGHT, "I wi"], stop="refusal")
    claude.answers(refusal, refusal, [THOUGHT, CALL], "Well.")
    assert agent.respond("Go.").content == "Well."
    first, second, third, last = claude.served
    for before, after in ((first, second), (second, third)):
        token = before.body["stop_details"]["fallback_credit_token"]
        assert after.asked.body["fallback_credit_token"] == {"token": token, "mode": "best_effort"}
        assert after.body["usage"]["fallback_credit"]["status"] == {"type": "redeemed"}
    assert "fallback_credit_token" not in first.asked.body.keys() | last.asked.body.keys()
    accepted(claude)
    calls = agent.current_dialog.calls
    assert [thaw(call.request().body) for call in calls] == [served.asked.body for served in claude.served]
    other = {**second.asked.body, "messages": [{"role": "user", "content": "Something else."}]}
    header = {
        "x-api-key": "key",
        "anthropic-version": "2023-06-01",
        "anthropic-beta": second.asked.headers["anthropic-beta"],
    }
    status = claude.ask("/v1/messages", {**other, "stream": False}, header).body["usage"]["fallback_credit"]["status"]
    assert status == {"type": "not_applied", "reason": "body_mismatch"}
    token = other["fallback_credit_token"]["token"]
    assert claude.ask("/v1/messages", {**other, "fallback_credit_token": token}, header).status == 400


def test_a_full_window_makes_the_conversation_smaller() -> None:
    """`model_context_window_exceeded`: valid but cut: the conversation is compacted, and the question asked again."""
    agent, provider = scripted([{"text": "Half of", "stop_reason": "overflow"}, "All of it."])
    talkative(agent)
    assert agent.respond("go").content == "All of it."
    first, second = provider.requests
    assert len(second.data) < len(first.data)


@pytest.mark.parametrize("reason", ["retry", "content_filter", "defect"])
def test_nothing_of_an_unusable_answer_is_appended(reason: str) -> None:
    """MALFORMED_… is asked again, and nothing of it is appended; what a filter stopped, or a defect, ends the turn."""
    agent, _ = scripted([{"text": "Half", "stop_reason": reason}, "Well."], retry=QUICK)
    if reason == "retry":
        assert agent.respond("go").content == "Well."
    else:
        with pytest.raises(AgentFailure) as caught:
            agent.respond("go")
        assert caught.value.kind == "provider"
    assert "Half" not in [message.content for message in agent.current_dialog.messages]
    assert [attempt["why"] for attempt in attempts(agent.current_dialog)] == ["partial"]


def test_words_over_a_call_do_not_confuse_the_script() -> None:
    """A server that says `stop` and calls a tool (Ollama) calls a tool."""
    agent, _ = scripted([calling("bash", command="ls"), "Well."], tools=[bash])
    assert agent.respond("go").content == "Well."
