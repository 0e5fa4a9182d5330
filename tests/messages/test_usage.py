"""Usage means the same whoever reports it."""

import pickle
from typing import Any

import pytest
from hypothesis import given
from pydantic import BaseModel

from palaver.messages import AssistantMessage, InvokeCost, Message, Usage, UsageCost
from palaver.testing import strategies as some

# What each provider says of one and the same call: it read 100 tokens, 60 from the cache and 10 into it where the provider tells,
# and wrote 30, 20 of them reasoning where it tells.
VOCABULARIES: dict[str, tuple[dict[str, Any], int, int]] = {
    "openai chat": (
        {
            "prompt_tokens": 100,
            "completion_tokens": 30,
            "total_tokens": 130,
            "prompt_tokens_details": {"cached_tokens": 60},
            "completion_tokens_details": {"reasoning_tokens": 20},
        },
        0,
        20,
    ),
    "openai responses": (
        {
            "input_tokens": 100,
            "output_tokens": 30,
            "total_tokens": 130,
            "input_tokens_details": {"cached_tokens": 60},
            "output_tokens_details": {"reasoning_tokens": 20},
        },
        0,
        20,
    ),
    "codex": (
        {
            "input_tokens": 100,
            "cached_input_tokens": 60,
            "output_tokens": 30,
            "reasoning_output_tokens": 20,
            "total_tokens": 130,
        },
        0,
        20,
    ),
    "anthropic": (
        {
            "input_tokens": 30,
            "cache_read_input_tokens": 60,
            "cache_creation_input_tokens": 10,
            "output_tokens": 30,
            "service_tier": "standard",
        },
        10,
        0,
    ),
    "litellm for anthropic": (
        {
            "prompt_tokens": 100,
            "completion_tokens": 30,
            "total_tokens": 130,
            "cache_read_input_tokens": 60,
            "cache_creation_input_tokens": 10,
            "prompt_tokens_details": {"cached_tokens": 60, "cache_creation_tokens": 10},
        },
        10,
        0,
    ),
    "gemini": (
        {
            "promptTokenCount": 90,
            "toolUsePromptTokenCount": 10,
            "candidatesTokenCount": 10,
            "thoughtsTokenCount": 20,
            "cachedContentTokenCount": 60,
            "totalTokenCount": 130,
        },
        0,
        20,
    ),
    "gemini in Python": (
        {
            "prompt_token_count": 100,
            "candidates_token_count": 10,
            "thoughts_token_count": 20,
            "cached_content_token_count": 60,
            "total_token_count": 130,
        },
        0,
        20,
    ),
    "gemini command line": (
        {"input": 100, "output": 10, "cached": 60, "thoughts": 20, "tool": 0, "total": 130},
        0,
        20,
    ),
    "pi": (
        {"input": 30, "output": 30, "cacheRead": 60, "cacheWrite": 10, "totalTokens": 130, "cost": {"total": 0.5}},
        10,
        0,
    ),
    "inspect": (
        {
            "input_tokens": 30,
            "output_tokens": 30,
            "total_tokens": 130,
            "input_tokens_cache_read": 60,
            "input_tokens_cache_write": 10,
            "reasoning_tokens": 20,
        },
        10,
        20,
    ),
    "camel case": ({"inputTokens": 100, "outputTokens": 30, "cachedInputTokens": 60, "reasoningTokens": 20}, 0, 20),
    "palaver": ({"input_tokens": 100, "output_tokens": 30, "cache_read_tokens": 60, "cache_write_tokens": 10}, 10, 0),
}


@pytest.mark.parametrize("name", VOCABULARIES)
def test_c7_every_vocabulary_is_read_to_the_same_figures(name: str) -> None:
    """R14, R235: input is everything read, cache figures are parts of it, output is everything written."""
    raw, written, reasoning = VOCABULARIES[name]
    usage = Usage(raw)
    assert dict(usage) == raw
    assert (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens) == (100, 30, 60)
    assert (usage.cache_write_tokens, usage.reasoning_tokens) == (written, reasoning)
    assert usage.uncached_tokens == 40 - written
    assert usage.total_tokens == usage.context_tokens == 130
    cost = usage.invoke_cost
    assert (cost.prompt_tokens, cost.completion_tokens, cost.total_tokens, cost.cached_prompt_tokens) == (
        100,
        30,
        130,
        60,
    )


def test_d22_context_size_is_that_of_one_request_never_a_sum_over_calls() -> None:
    """Twelve calls were added up in the parts; the total is the last call's and is the context (openclaw 99843)."""
    usage = Usage({"input": 12, "output": 15_104, "cacheRead": 819_661, "cacheWrite": 93_130, "totalTokens": 163_978})
    assert usage.context_tokens == 163_978
    assert (
        Usage(
            {"input": 12, "output": 15_104, "cacheRead": 819_661, "cacheWrite": 93_130, "total": 163_978}
        ).context_tokens
        == 163_978
    )


def test_a_total_larger_than_its_parts_is_not_context() -> None:
    """A total that counts something else as well does not make the context larger than what was read and written."""
    assert Usage({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 99}).context_tokens == 15
    assert Usage({"total_tokens": 99}).context_tokens == 99  # unless it is all that is known


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"prompt_tokens": None, "completion_tokens": None, "prompt_tokens_details": None},
        {"prompt_tokens": True, "completion_tokens": "12"},
        {"input_tokens": -5},
        {"cost": None},
        {"something": {"else": 1}},
    ],
)
def test_r14_what_is_no_count_counts_nothing(raw: dict[str, Any]) -> None:
    """Missing, None, booleans, text and negative figures are zero, and nothing fails."""
    usage = Usage(raw)
    assert usage.invoke_cost == InvokeCost()
    assert usage.context_tokens == 0
    assert usage.cost == UsageCost()


def test_r236_dollars_are_read_as_they_were_recorded() -> None:
    """A mapping by kind of token, a bare number, LiteLLM's response cost; prices are not guessed here."""
    pi = Usage(
        {
            "input": 1,
            "output": 1,
            "cacheRead": 0,
            "cost": {"input": 0.1, "output": 0.2, "cacheRead": 0.3, "cacheWrite": 0.4, "total": 1.0},
        }
    )
    assert pi.cost == UsageCost(input=0.1, output=0.2, cache_read=0.3, cache_write=0.4, total=1.0)
    assert pi.invoke_cost.cost == 1.0
    assert Usage({"prompt_tokens": 1, "cost": 0.25}).cost.total == 0.25
    assert Usage({"prompt_tokens": 1, "response_cost": 0.5}).invoke_cost.cost == 0.5
    by_parts = Usage({"prompt_tokens": 1, "prompt_cost": 0.25, "completion_cost": 0.5}).invoke_cost
    assert (by_parts.prompt_cost, by_parts.completion_cost, by_parts.cost) == (0.25, 0.5, 0.75)


def test_r23_costs_add_up_and_lose_their_rates() -> None:
    """Tokens and dollars are summed; a rate belongs to one call."""
    one = InvokeCost(
        prompt_tokens=1, cost=0.5, input_cost_per_token=0.1, output_cost_per_token=0.1, cache_read_input_token_cost=0.1
    )
    assert one + one == InvokeCost(prompt_tokens=2, cost=1.0)
    assert sum([one, one], InvokeCost()).prompt_tokens == 2
    with pytest.raises(TypeError):
        one + 1  # type: ignore[operator]


class Foreign(BaseModel):
    """The usage object of some provider's package."""

    prompt_tokens: int
    completion_tokens: int


def test_a_provider_packages_object_is_read_as_its_dump() -> None:
    """An invoker passes on what the provider's client gave it."""
    message = AssistantMessage(content="x", usage=Foreign(prompt_tokens=3, completion_tokens=4))  # type: ignore[arg-type]
    assert (message.usage, message.cost.total_tokens) == ({"prompt_tokens": 3, "completion_tokens": 4}, 7)


@given(some.usages())
def test_r7_the_raw_record_is_kept_whole_and_cannot_change(usage: Usage) -> None:
    """It equals a plain dict, survives copies and pickles, and every typed attribute is a figure that is not negative."""
    message = Message(role="assistant", content="x", usage=usage)
    assert message.usage == dict(usage)
    again = pickle.loads(pickle.dumps(usage))  # noqa: S301 - our own bytes
    assert type(again) is Usage
    assert again == usage
    assert usage.uncached_tokens + usage.cache_read_tokens + usage.cache_write_tokens >= usage.input_tokens
    assert min(usage.input_tokens, usage.output_tokens, usage.total_tokens, usage.context_tokens) >= 0
    with pytest.raises(TypeError):
        usage["x"] = 1
