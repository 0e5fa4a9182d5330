"""Budgets: one division of a window for every vocabulary, never negative, and typed errors for what is none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import palaver
from palaver.errors import InfeasibleBudget, InvalidInput
from palaver.tokens import BUDGET_KEYS, Budget, ModelInfo, UnknownModelWarning, model_info

MODELS = st.one_of(
    st.sampled_from(["gpt-4o", "gpt-5", "gpt-4", "claude-opus-4-6", "gemini-2.5-pro", "nobody-knows-me"]).map(
        model_info
    ),
    st.integers(1, 10**6).map(lambda window: ModelInfo("mine", context_window=window, max_output=window // 2 or None)),
)
TOKENS = st.integers(0, 10**6)


@given(st.integers(-5, 10**6), TOKENS, TOKENS, st.one_of(st.none(), st.integers(1, 10**6)))
def test_a_budget_is_a_division_of_its_window_or_an_error(
    window: int, reserve: int, buffer: int, max_input: int | None
) -> None:
    """Whatever is asked for: the parts are not negative and add up, input is at least 1, or a typed error says why not."""

    def make() -> Budget:
        return Budget(max_tokens=window, reserve=reserve, safety_buffer=buffer, max_input=max_input)

    if window < 1:
        with pytest.raises(InvalidInput):
            make()
        return
    if reserve >= window:
        with pytest.raises(InfeasibleBudget) as caught:
            make()
        assert caught.value.needed == sum(caught.value.breakdown.values()) > caught.value.budget == window
        return
    budget = make()
    assert budget.limit >= 1
    assert budget.reserve + budget.buffer + budget.limit <= window
    assert budget.target < budget.limit
    assert 0 <= budget.buffer <= buffer
    assert max_input is None or budget.limit <= max_input


@given(st.integers(15_000, 10**6))
def test_the_buffer_is_five_thousand_tokens(window: int) -> None:
    """R160: the limit is max_tokens less 5,000, and on small windows less is kept, never all of it."""
    assert Budget(max_tokens=window).limit == window - 5_000
    assert Budget(max_tokens=4_096).limit == 4_096 - 1_365


@pytest.mark.filterwarnings("ignore::palaver.tokens.UnknownModelWarning")
@given(MODELS)
def test_every_vocabulary_divides_every_window(model: ModelInfo) -> None:
    """Each constructor gives a budget for any model, with defaults that shrink on small windows."""
    for budget in (
        Budget.from_window(model),
        Budget.from_window(model, max_tokens=32_000),
        Budget.from_reserve(model),
        Budget.from_headroom(model),
    ):
        assert 1 <= budget.limit <= max(model.max_input, 32_000)
        assert budget.reserve + budget.buffer + budget.limit <= budget.max_tokens
    if model.context_window > 1:
        assert Budget.from_ratio(model).limit == min(int(model.context_window * 0.8), model.max_input)


def test_the_words_of_each_source() -> None:
    """R155, R264, R265, R304, R316: windows less buffers, shares, reserves and headroom, each as its source divides."""
    cases: list[tuple[Budget, int]] = [
        (Budget.from_window("gpt-4o", max_tokens=32_000), 27_000),
        (Budget.from_window("gpt-4o"), 128_000 - 16_384 - 5_000),
        (Budget.from_ratio("gpt-4o"), 102_400),
        (Budget.from_ratio("gpt-4o", max_token_context_length=50_000), 50_000),
        (Budget.from_ratio(max_token_context_length=50_000), 50_000),
        (Budget.from_reserve("claude-sonnet-4-5"), 200_000 - 16_384),
        (Budget.from_headroom("gpt-4o"), 128_000 - 16_384 - 20_000),
    ]
    for budget, limit in cases:
        assert budget.limit == limit
    assert (cases[2][0].keep_last, cases[5][0].keep_recent) == (2, 20_000)


READ: list[tuple[Any, Budget]] = [
    (None, Budget.from_window("gpt-4o")),
    (200_000, Budget(max_tokens=200_000, safety_buffer=0, max_input=128_000)),
    ({"max_tokens": 32_000, "SAFETY_BUFFER": 100}, Budget.from_window("gpt-4o", max_tokens=32_000, safety_buffer=100)),
    ({"context_usage_ratio": 0.8, "preserve_last_messages": 4}, Budget.from_ratio("gpt-4o", preserve_last_messages=4)),
    ({"reserveTokens": 9_000, "keepRecentTokens": 7}, Budget.from_reserve("gpt-4o", reserve=9_000, keep_recent=7)),
    ({"buffer": 20_000}, Budget.from_headroom("gpt-4o")),
    ({"model_name": "gpt-4"}, Budget.from_window("gpt-4")),
]
"""Configurations for gpt-4o, and what they are."""


def test_a_configuration_in_any_vocabulary() -> None:
    """C16: every vocabulary of the sources is read, and gives what its constructor gives."""
    for config, budget in READ:
        assert Budget.parse(config, "gpt-4o") == budget
        assert Budget.parse(budget) is budget


REFUSED: list[tuple[Any, str]] = [
    ("50%", r"'50%'.*whole number of tokens.*a Budget; or a dict"),
    ({"max_tokns": 5}, "Close: max_tokens"),
    ({"max_tokens": 5, "window": 6}, "another word for the same"),
    ({"context_usage_ratio": 1.5}, "0 < ratio <= 1"),
    ({"max_tokens": 128_000, "context_usage_ratio": 0.75}, "both set the size of the window"),
    ({"max_tokens": "many"}, "max_tokens is 'many'"),
    ({}, "neither a window nor a model"),
]
"""Configurations, and what the error says."""


def test_what_is_no_budget_is_refused() -> None:
    """Unknown keys name the close ones, contradictions both values, and bad values the key."""
    for config, says in REFUSED:
        with pytest.raises(InvalidInput, match=says):
            Budget.parse(config)


@given(st.integers(1, 128_000), st.sampled_from([None, "gpt-4o", "nobody-knows-me"]))
def test_a_number_is_what_the_request_may_occupy(number: int, model: str | None) -> None:
    """One meaning wherever a number is taken: so many tokens of input, none kept aside."""
    assert Budget.parse(number, model).limit == number


VALUES = st.one_of(st.none(), st.integers(-3, 200_000), st.floats(), st.text(max_size=3), st.booleans())


@pytest.mark.filterwarnings("ignore::palaver.tokens.UnknownModelWarning")
@given(
    st.dictionaries(st.sampled_from(sorted(BUDGET_KEYS)), VALUES, max_size=4),
    st.sampled_from([None, "gpt-4o", "gpt-4"]),
)
def test_any_configuration_is_a_budget_or_a_typed_error(config: dict[str, object], model: str | None) -> None:
    """No combination of known keys, whatever their values, gives anything else."""
    try:
        budget = Budget.parse(config, model)
    except (InvalidInput, InfeasibleBudget):
        return
    assert budget.limit >= 1


def test_an_assumed_window_is_warned_of() -> None:
    """Only where it is used: a window of one's own needs none."""
    with pytest.warns(UnknownModelWarning, match="'my-llama' is not known; 32,768 tokens are assumed"):
        Budget.from_window("my-llama")
    assert Budget.from_window("my-llama", max_tokens=8_000).limit < 8_000


def test_the_warning_points_at_the_line_that_called() -> None:
    """It comes once a call, and says how to give the window."""
    with pytest.warns(UnknownModelWarning, match=r"budget=\{'max_tokens': 32768\}") as caught:
        palaver.fit([{"role": "user", "content": "hi"}], model="my-llama")
    assert [warning.filename for warning in caught] == [__file__]
