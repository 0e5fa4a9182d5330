"""The catalogue: every spelling of a model finds it, its window is what it reads, and an unknown one says so."""

from __future__ import annotations

import pytest
from genai_prices.data_snapshot import get_snapshot
from hypothesis import given
from hypothesis import strategies as st

from palaver.errors import NotFound
from palaver.tokens import FAMILIES, model_info
from palaver.tokens.families import family_of

ALL_NAMES = [model.id for provider in get_snapshot().providers for model in provider.models if model.is_match(model.id)]


SPELLINGS = [
    ("gpt-4o", "openai", 128_000, 128_000, 16_384, "openai"),
    ("ft:gpt-4o-2024-08-06:acme::7p4lURel", "openai", 128_000, 128_000, 16_384, "openai"),
    ("gpt-5", "openai", 400_000, 272_000, 128_000, "openai-5"),
    ("claude-sonnet-4-5-20250929", "anthropic", 200_000, 200_000, 64_000, "anthropic"),
    ("claude-sonnet-4-5[1m]", "anthropic", 1_000_000, 1_000_000, 64_000, "anthropic"),
    ("bedrock/us.anthropic.claude-3-5-sonnet-20241022-v2:0", "aws", 200_000, 200_000, 8_192, "anthropic"),
    ("vertex_ai/claude-3-5-haiku@20241022", "google", 200_000, 200_000, 8_192, "anthropic"),
    ("claude-opus-4-7", "anthropic", 1_000_000, 1_000_000, 128_000, "anthropic-4.7"),
    ("gemini/gemini-2.5-pro", "google", 1_048_576, 1_048_576, 65_536, "gemini"),
    ("openai/gpt-6.2-sol", "", 1_050_000, 922_000, 128_000, "openai-5.4"),
    ("anthropic/claude-mythos-5-2", "anthropic", 1_000_000, 1_000_000, 128_000, "anthropic-4.7"),
    ("google/gemini-4-hydrogen", "", 1_048_576, 1_048_576, 65_536, "gemini-3"),
    ("deepseek/deepseek-chat", "deepseek", 131_072, 131_072, 8_192, "deepseek"),
]
"""Name, provider, window, longest input, longest answer, family."""


def test_every_spelling_finds_the_model() -> None:
    """R155: host prefixes, dates, regions and suffixes lead to the model; the input is the window's, never the answer's."""
    for name, *expected in SPELLINGS:
        info = model_info(name, strict=True)
        found = [info.provider, info.context_window, info.max_input, info.max_output, info.family]
        assert found == expected, name
        assert (info.name, info.known, info.warning) == (name, True, "")


def test_an_unknown_model_has_a_default_window_and_says_so() -> None:
    """R155: not a silent 4,096: the family's default, `known` false, and a warning with the figure and close names."""
    for name, window in (
        ("claude-sonnet-99", 200_000),
        ("gpt-4o-ultra", 128_000),
        ("gpt-7", 922_000),
        ("my-own-model", 32_768),
        ("", 32_768),
    ):
        family, info = family_of(name), model_info(name)
        assert not info.known
        assert window <= info.context_window == info.max_input == family.default_window
        assert f"{family.default_window:,}" in info.warning


def test_strict_refuses_an_unknown_model_with_close_names() -> None:
    """A typing error is answered with what was probably meant."""
    with pytest.raises(NotFound) as caught:
        model_info("claude-sonet-4-5", strict=True)
    assert any("claude-sonnet-4" in name for name in caught.value.close)
    assert caught.value.hint


@given(st.sampled_from(ALL_NAMES))
def test_every_listed_model_is_described(name: str) -> None:
    """Whatever is in the data has a window, a family, and an input that fits into the window."""
    info = model_info(name)
    assert 0 < info.max_input <= info.context_window
    assert info.family in FAMILIES
    assert bool(info.warning) != info.known
