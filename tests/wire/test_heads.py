"""What of a call a model accepts: sent, translated with a note, or refused before it is sent; by the table of models."""

import re
from typing import Any

import pytest

from palaver.errors import InvalidRequest
from palaver.messages import thaw
from palaver.tokens import UnknownModelWarning
from palaver.wire import Request
from palaver.wire.models import read_model
from tests.wire.scenes import BASH, Scene, call

BUDGET = {"thinking": {"type": "enabled", "budget_tokens": 2048}}
ADAPTIVE = {"thinking": {"type": "adaptive"}}
NET = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
STRICT = ("claude-fable-5-2", "claude-fable-5-1", "claude-opus-5-5", "claude-sonnet-5-5")


def asked(name: str, model: str, **fields: Any) -> Request:  # noqa: ANN401 - fields of a call
    """Compile a question with a tool, and check the request."""
    return Scene(system=["Be brief."], tools=[BASH]).user("go").request(name, model=model, **fields)


def told(request: Request) -> list[str]:
    """Return what the report says of parameters."""
    return [change.why.partition(":")[0] for change in request.report if change.what == "parameter"]


# --- names ---------------------------------------------------------------------------------------------------------------


def test_names_are_read_however_they_are_spelt() -> None:
    """Sellers, regions, dates and old orders of words are no other model; names of other makers are taken as they are."""
    cases: dict[str, tuple[str, str, tuple[int, int] | None]] = {
        "claude-opus-5-5": ("claude", "opus", (5, 5)),
        "us.anthropic.claude-opus-4-6-20260101-v1:0": ("claude", "opus", (4, 6)),
        "publishers/anthropic/models/claude-haiku-4-5@20251001": ("claude", "haiku", (4, 5)),
        "openrouter/anthropic/claude-sonnet-4.5:free": ("claude", "sonnet", (4, 5)),
        "claude-3-5-haiku-latest": ("claude", "haiku", (3, 5)),
        "claude-opus-4-20250514": ("claude", "opus", (4, 0)),
        "gpt-4o-mini-2024-07-18": ("gpt-4o", "mini", (4, 0)),
        "us.openai.gpt-6-astra": ("gpt", "astra", (6, 0)),
        "gpt-5.2-2025-12-11": ("gpt", "", (5, 2)),
        "models/gemini-2.5-flash-lite-preview-06-17": ("gemini", "flash-lite", (2, 5)),
        "fireworks/gpt-oss-20b": ("", "gpt-oss-20b", None),
        "deepseek/deepseek-v4-pro": ("deepseek", "v4-pro", None),
    }
    assert {name: tuple(read_model(name)) for name in cases} == cases


def test_unknown_models_get_the_newest_row_and_one_warning() -> None:
    """A version or a family that no row knows warns once; names of other makers do not."""
    for name, model in (("anthropic", "claude-opus-7"), ("openai-responses", "gpt-8-sol"), ("gemini", "gemini-6-iron")):
        with pytest.warns(UnknownModelWarning, match=model) as caught:
            first, second = asked(name, model), asked(name, model)
        assert len(caught) == 1
        assert first.digest == second.digest
    newest = asked("anthropic", "claude-fable-5-2")
    assert asked("anthropic", "claude-opus-7").profile.reasoning.bound == newest.profile.reasoning.bound
    for name, model in (
        ("openai-chat", "mistral-large-9"),
        ("anthropic", "my-deployment"),
        ("gemini", "gemini-flash-latest"),
    ):
        assert asked(name, model).body


# --- tools ---------------------------------------------------------------------------------------------------------------


def test_forced_tools_are_refused_unless_auto_is_permitted() -> None:
    """Opus and Sonnet 5.5, Fable and Mythos refuse a forced tool: an error before the request is sent, or `auto` with a note."""
    for model in STRICT:
        for choice in ("required", "bash"):
            with pytest.raises(InvalidRequest, match="auto_choice") as caught:
                asked("anthropic", model, tool_choice=choice)
            assert "report" not in caught.value.hint, "it is the call's own"
            request = asked("anthropic", model, tool_choice=choice, auto_choice=True)
            assert (thaw(request.body["tool_choice"]), told(request)) == ({"type": "auto"}, ["tool_choice"])


def test_forced_tools_go_with_adaptive_thinking() -> None:
    """Opus 5, Haiku 5.5 and 4.6 accept both together; thinking with a budget does not."""
    for model in ("claude-opus-5", "claude-haiku-5-5", "claude-opus-4-6"):
        request = asked("anthropic", model, tool_choice="required", parameters=ADAPTIVE, auto_choice=True)
        assert (thaw(request.body["tool_choice"]), told(request)) == ({"type": "any"}, [])
    with pytest.raises(InvalidRequest, match="auto_choice"):
        asked("anthropic", "claude-sonnet-4-5", tool_choice="required", parameters=BUDGET)
    request = asked("anthropic", "claude-sonnet-4-5", tool_choice="required", parameters=BUDGET, auto_choice=True)
    assert thaw(request.body["tool_choice"]) == {"type": "auto"}


def test_tools_of_newer_gpt_go_to_responses_only() -> None:
    """GPT-5.6 and later refuse tools in chat completions, unless they can be kept from reasoning; the error names the way out."""
    for model, way in (("gpt-5.6-luna", "none"), ("gpt-6.2-sol", "openai-responses")):
        with pytest.raises(InvalidRequest, match=re.escape(way)) as caught:
            asked("openai-chat", model)
        assert "report" not in caught.value.hint, "it is the call's own"
        assert asked("openai-responses", model).body["tools"]
        assert Scene().user("go").request("openai-chat", model=model).body["messages"]
    assert asked("openai-chat", "gpt-5.6-luna", parameters={"reasoning_effort": "none"}).body["tools"]


# --- parameters ----------------------------------------------------------------------------------------------------------


def test_sampling_is_left_out_where_it_is_refused() -> None:
    """Every Claude in the API's newest version, GPT-5.6 and later, and newer Gemini models get no temperature; the report says so."""
    cases: list[tuple[str, str, dict[str, Any]]] = [
        *(("anthropic", model, {"top_p": 0.9, "top_k": 5}) for model in (*STRICT, "claude-sonnet-4-5")),
        ("openai-responses", "gpt-6.2-sol", {"top_p": 0.9, "top_logprobs": 2}),
        ("openai-responses", "gpt-5.6-terra", {"top_p": 0.9}),
        ("gemini", "gemini-3.8-flash", {"generationConfig": {"topP": 0.9, "topK": 3}}),
        ("gemini", "gemini-4-argon", {"generationConfig": {"topP": 0.9}}),
    ]
    for name, model, parameters in cases:
        request = asked(name, model, temperature=0.5, parameters=parameters)
        given = parameters.get("generationConfig", parameters)
        assert told(request) == ["temperature", *given], model
        assert not {"temperature", *given} & {*request.body, *request.body.get("generationConfig", {})}
    for name, model in (("openai-chat", "gpt-4.1"), ("openai-responses", "gpt-5.2"), ("openai-chat", "mistral-large")):
        assert asked(name, model, temperature=0.5).body["temperature"] == 0.5


def test_thinking_is_asked_in_the_models_words() -> None:
    """A budget becomes adaptive thinking, with a note, where the model takes none; what has no other words is refused."""
    for model in ("claude-opus-4-7", "claude-sonnet-5", *STRICT):
        request = asked("anthropic", model, parameters=BUDGET)
        assert request.body["thinking"]["type"] == "adaptive"
        assert "budget_tokens" not in request.body["thinking"]
        assert told(request) == ["thinking"]
    assert asked("anthropic", "claude-opus-4-6", parameters=BUDGET).body["thinking"] == BUDGET["thinking"]
    refused = [
        ("claude-opus-5-5", "disabled"),
        ("claude-sonnet-5-5", "disabled"),
        ("claude-haiku-5-5", "between_tools"),
        ("claude-sonnet-4-5", "adaptive"),
    ]
    for model, kind in refused:
        with pytest.raises(InvalidRequest, match="thinking of type"):
            asked("anthropic", model, parameters={"thinking": {"type": kind}})


def test_models_that_think_unasked_have_the_safety_net() -> None:
    """They think without being asked, so what does not fit is dropped without being asked for thinking, too."""
    for model in (*STRICT, "claude-haiku-5-5"):
        assert thaw(asked("anthropic", model).body["thinking"]) == NET
    for model in ("claude-fable-5", "claude-opus-5", "claude-opus-4-6"):
        assert "thinking" not in asked("anthropic", model).body


def test_efforts_that_a_model_lacks_are_refused() -> None:
    """`none` is an effort of some of OpenAI's models; Gemini's levels differ, and `minimal` means the lowest."""
    for model in ("gpt-6.2-astra", "gpt-6.1-sol", "gpt-6-astra"):
        with pytest.raises(InvalidRequest, match="minimal, low"):
            asked("openai-responses", model, parameters={"reasoning": {"effort": "none"}})
    assert asked("openai-responses", "gpt-6.1-terra", parameters={"reasoning": {"effort": "none"}}).body["reasoning"]

    def level(name: str) -> dict[str, Any]:
        return {"generationConfig": {"thinkingConfig": {"thinkingLevel": name}}}

    request = asked("gemini", "gemini-3.8-flash", parameters=level("minimal"))
    assert request.body["generationConfig"]["thinkingConfig"]["thinkingLevel"] == "low"
    assert told(request) == ["thinkingLevel"]
    assert told(asked("gemini", "gemini-3-flash", parameters=level("MINIMAL"))) == []
    assert asked("gemini", "gemini-4-hydrogen", parameters=level("xhigh")).body
    with pytest.raises(InvalidRequest, match="low, medium, high"):
        asked("gemini", "gemini-4-argon", parameters=level("xhigh"))


def test_instructions_of_newer_gpt_are_the_first_item() -> None:
    """GPT-6.2 reads `instructions` after the input and bills them anew; as the first developer item they are in the prefix."""
    body = asked("openai-responses", "gpt-6.2-sol").body
    assert "instructions" not in body
    assert thaw(body["input"][0]) == {
        "type": "message",
        "role": "developer",
        "content": [{"type": "input_text", "text": "Be brief."}],
    }
    assert asked("openai-responses", "gpt-6.1-sol").body["instructions"] == "Be brief."


def test_words_are_not_continued_by_newer_claude() -> None:
    """A request that ends on the assistant's words is refused before it is sent, from 4.6 on."""
    for model, ends in (("claude-sonnet-4-5", True), ("claude-opus-4-6", False), ("claude-opus-5-5", False)):
        request = (
            Scene(tools=[BASH])
            .user("go")
            .model_says(call(), results=["x"])
            .model_says("So")
            .request("anthropic", model=model)
        )
        if ends:
            request.check()
        else:
            with pytest.raises(InvalidRequest, match="prefill"):
                request.check()
