"""Requests of other frameworks: whose window counts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from palaver.context.presets import Palaver
from palaver.errors import InvalidInput, NotFound
from palaver.integrations.request_fitter import RequestFitter
from tests.context.lists import chat

LONG = chat(60)


@pytest.mark.parametrize(
    "given",
    [
        {"budget": 9_000},
        {"policy": {"type": "palaver", "max_tokens": 9_000}},
        {"policy": Palaver(max_tokens=9_000)},
        {"budget": {"max_tokens": 9_000}, "policy": "fold"},
    ],
    ids=["budget", "configuration", "policy", "both"],
)
def test_a_model_that_nobody_knows_needs_a_size(given: dict[str, Any]) -> None:
    """A budget, or a policy with a window, is enough for a model of which nothing is known, and nothing warns."""
    fitted = RequestFitter(dialect="openai-chat", **given).fit(LONG, model="homemade")
    assert fitted.tokens <= 9_000 < fitted.tokens_before


def test_the_window_of_the_framework_is_the_last_resort() -> None:
    """What the framework says of the window counts where palaver does not know the model; where nobody does, the error says what to pass."""
    model = SimpleNamespace(model_name="homemade")
    fits = RequestFitter(dialect="openai-chat")
    assert fits.fit(LONG, model=model, window=9_000).tokens <= 9_000
    assert not fits.fit(LONG, model=SimpleNamespace(model="gpt-5"), window=9_000).omitted
    assert not RequestFitter(dialect="openai-chat", model="gpt-5").fit(LONG, model=model).omitted
    with pytest.raises(InvalidInput, match="window of the model 'homemade' is not known"):
        fits.fit(LONG, model=model)


@pytest.mark.parametrize(
    "given",
    [{"budget": {"reserve": 5_000}}, {"policy": {"type": "palaver", "reserve": 5_000}}],
    ids=["budget", "policy"],
)
def test_an_answer_is_kept_free_of_the_frameworks_window(given: dict[str, Any]) -> None:
    """A budget without a size divides the window that the framework names; where nobody names one, it is refused, not guessed."""
    fits = RequestFitter(dialect="openai-chat", **given)
    assert fits.fit(LONG, model="homemade", window=9_000).tokens <= 4_000
    with pytest.raises(InvalidInput, match="window of the model 'homemade' is not known"):
        fits.fit(LONG, model="homemade")


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"policy": "palavre"}, NotFound),
        ({"policy": "provider"}, InvalidInput),
        ({"policy": None}, InvalidInput),
        ({"policy": {"type": "palaver", "reserve": -5}, "budget": 9_000}, InvalidInput),
        ({"budget": -5}, InvalidInput),
        ({"budget": {"context_usage_ratio": -5}}, InvalidInput),
    ],
)
def test_wrong_arguments_are_refused_at_once(given: dict[str, Any], error: type[Exception]) -> None:
    """A misspelt policy, or a size that is none, does not wait for the first request, nor for a model."""
    with pytest.raises(error, match=r"palavre|-5|provider|policy"):
        RequestFitter(dialect="openai-chat", **given)
