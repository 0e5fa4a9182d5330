"""Prices: what providers list, by host, size and date; an unknown price is an error and never zero."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.errors import NotFound
from palaver.messages import Usage
from palaver.tokens.pricing import price, rates

JUNE = datetime(2026, 6, 1, 12, tzinfo=UTC).timestamp()
TOKENS = st.integers(0, 500_000)


def test_anthropics_usage_is_priced_by_kind() -> None:
    """Opus 4.6 at 5, 0.5, 6.25 (an hour: 10) and 25 dollars a million: its input_tokens leave the cached ones out."""
    usage = {
        "input_tokens": 10,
        "cache_read_input_tokens": 100_000,
        "cache_creation_input_tokens": 5_000,
        "cache_creation": {"ephemeral_1h_input_tokens": 2_000, "ephemeral_5m_input_tokens": 3_000},
        "output_tokens": 500,
    }
    cost = price(usage, "claude-opus-4-6", JUNE)
    assert cost.input == pytest.approx(10 * 5e-6)
    assert cost.cache_read == pytest.approx(100_000 * 0.5e-6)
    assert cost.cache_write == pytest.approx(3_000 * 6.25e-6 + 2_000 * 10e-6)
    assert cost.output == pytest.approx(500 * 25e-6)
    assert "anthropic/claude-opus-4-6" in rates("claude-opus-4-6", at=JUNE).source


def test_openais_usage_includes_the_cached_tokens() -> None:
    """GPT-4o at 2.5, 1.25 and 10 dollars a million: prompt_tokens hold the cached ones."""
    usage = {"prompt_tokens": 1_000, "completion_tokens": 100, "prompt_tokens_details": {"cached_tokens": 600}}
    cost = price(usage, "gpt-4o", JUNE)
    assert (cost.input, cost.cache_read, cost.output) == pytest.approx((400 * 2.5e-6, 600 * 1.25e-6, 100 * 10e-6))


def test_long_requests_cost_more_where_the_provider_says_so() -> None:
    """Gemini 2.5 Pro charges the whole request at the higher price beyond 200,000 tokens."""
    short = price({"input_tokens": 200_000, "output_tokens": 0}, "gemini-2.5-pro", JUNE)
    long = price({"input_tokens": 200_001, "output_tokens": 0}, "gemini-2.5-pro", JUNE)
    assert long.total == pytest.approx(2 * short.total, rel=1e-3)
    assert rates("gemini-2.5-pro", input_tokens=200_001, at=JUNE).input == pytest.approx(
        2 * rates("gemini-2.5-pro", at=JUNE).input
    )


@given(TOKENS, TOKENS, TOKENS, TOKENS, st.sampled_from(["gpt-4o", "claude-sonnet-4-5", "gemini-2.5-pro", "gpt-5.5"]))
def test_the_parts_add_up(plain: int, read: int, written: int, output: int, model: str) -> None:
    """Input, cache read, cache write and output add up to the total, none negative, and none is free that was used."""
    usage = Usage(
        input_tokens=plain + read + written, cache_read_tokens=read, cache_write_tokens=written, output_tokens=output
    )
    cost = price(usage, model, JUNE)
    parts = (cost.input, cost.cache_read, cost.cache_write, cost.output)
    assert sum(parts) == pytest.approx(cost.total)
    assert [part > 0 for part in parts] == [count > 0 for count in (plain, read, written, output)]


def test_an_unknown_price_is_an_error() -> None:
    """Nothing is ever priced at zero for want of knowledge, and no host's price is taken that was not named."""
    for model in ("no-such-model", "ollama/deepseek-r1", "meta-llama/Llama-3.1-70B-Instruct", "github_copilot/gpt-4o"):
        with pytest.raises(NotFound, match="no price for the model"):
            price({"input_tokens": 1, "output_tokens": 1}, model)
