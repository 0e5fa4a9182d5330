"""Profiles: four tables of what providers accept, found by name and relaxed for models known to accept more."""

import pytest

from palaver.errors import NotFound
from palaver.providers import profile


def test_unknown_name_lists_what_is_close() -> None:
    """A misspelled name raises an error with the names that it could be."""
    with pytest.raises(NotFound, match="There is no provider 'open-ai-chat'") as caught:
        profile("open-ai-chat")
    assert "openai-chat" in caught.value.close


CLAUDE: list[tuple[str, bool, bool, bool, bool, bool]] = [
    ("", False, False, False, False, False),
    ("claude-fable-5-2", False, False, False, True, True),
    ("claude-opus-5-5", False, False, False, True, True),
    ("claude-sonnet-5", False, False, False, False, True),
    ("claude-opus-4-8", False, False, False, True, True),
    ("claude-opus-4-7", False, False, False, False, True),
    ("claude-sonnet-4-6", False, True, True, False, True),
    ("claude-haiku-4-5-20251001", True, True, True, False, True),
    ("anthropic.claude-sonnet-4-5-20250929-v1:0", True, True, True, False, True),
    ("claude-opus-4-1-20250805", True, True, True, False, True),
    ("claude-opus-4-20250514", True, True, True, False, False),
    ("claude-opus-4-0", True, True, True, False, False),
    ("claude-3-7-sonnet-latest", True, True, True, False, False),
    ("claude-3-5-haiku-latest", True, False, True, False, False),
]


def test_claude_by_version() -> None:
    """What models accept of prefill, budgets, sampling in the older version of the API, instructions inside, and schemas."""
    for model, prefill, manual, sampling, inside, native in CLAUDE:
        found, older = profile("anthropic", model), profile("anthropic", model, {"version": "2023-06-01"})
        reasoning, turns = found.reasoning, found.turns
        assert (turns.assistant_last, "enabled" in reasoning.thinking) == (prefill, manual), model
        assert (turns.system_inside, found.answers.native) == (inside, native), model
        assert (reasoning.sampling, older.reasoning.sampling) == (False, sampling), model


def test_openai_models_that_take_a_schema() -> None:
    """By what OpenAI publishes; a model of another maker behind its API counts as a new one."""
    for model in ("gpt-4o-mini", "gpt-4.1", "o1", "mistral-large"):
        assert profile("openai-chat", model).answers.native
    for model in ("gpt-4", "gpt-4-0613", "gpt-4o-2024-05-13", "o1-mini", "deepseek/deepseek-v4-pro"):
        assert not profile("openai-chat", model).answers.native


def test_gemini_by_version() -> None:
    """Calls go back signed from Gemini 3 on."""
    signed = {"": True, "gemini-3-pro": True, "gemini-3.8-flash": True, "gemini-2.5-pro": False, "gemini-1.5": False}
    assert {model: profile("gemini", model).reasoning.signed_calls for model in signed} == signed
