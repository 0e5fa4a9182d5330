"""Profiles: four tables of what providers accept, found by name and relaxed for models known to take more."""

import pickle
import re
from dataclasses import FrozenInstanceError, fields

import pytest

from palaver.errors import UnknownProfile
from palaver.tokens import model_info
from palaver.wire.check import validate
from palaver.wire.profiles import PROFILES, Profile, profile
from palaver.wire.violations import Rule


def test_there_are_four() -> None:
    """Each API has one profile, under its own name."""
    assert list(PROFILES) == ["openai-chat", "openai-responses", "anthropic", "gemini"]
    assert all(each.name == name for name, each in PROFILES.items())


@pytest.mark.parametrize("each", PROFILES.values(), ids=PROFILES)
def test_the_model_of_a_profile_is_known(each: Profile) -> None:
    """What stands for a provider where nobody names a model is a model of that provider, and its window is known."""
    info = model_info(each.model, strict=True)
    assert info.provider == {"openai-chat": "openai", "openai-responses": "openai", "gemini": "google"}.get(
        each.name, each.name
    )


def test_an_unknown_name_tells_what_is_close() -> None:
    """A misspelt name raises an error that carries the names it could be."""
    with pytest.raises(UnknownProfile) as caught:
        profile("open-ai-chat")
    assert "openai-chat" in caught.value.close
    assert "anthropic" in str(caught.value)


@pytest.mark.parametrize("each", PROFILES.values(), ids=PROFILES)
def test_a_profile_is_a_value(each: Profile) -> None:
    """Nothing in a profile can be changed, and it can be a key."""
    with pytest.raises(FrozenInstanceError):
        each.request_bytes = 1  # type: ignore[misc]  # that it is refused is the point
    with pytest.raises(TypeError):
        each.turns.roles["user"] = "human"  # type: ignore[index]  # the same
    assert hash(each) == hash(profile(each.name))


@pytest.mark.parametrize("each", PROFILES.values(), ids=PROFILES)
def test_every_role_has_its_word(each: Profile) -> None:
    """Our four roles are all spoken of."""
    assert set(each.turns.roles) == {"system", "user", "assistant", "tool"}


@pytest.mark.parametrize("each", PROFILES.values(), ids=PROFILES)
def test_figures_are_sizes(each: Profile) -> None:
    """Every number in the tables is one that something can stay under; an image fits into a request."""
    for part in (each.turns, each.calls, each.tools, each.media, each.cache):
        for column in fields(part):
            value = getattr(part, column.name)
            assert not isinstance(value, int) or isinstance(value, bool) or value >= 0
    assert 0 < each.media.image_bytes <= each.request_bytes
    assert each.media.images


@pytest.mark.parametrize(
    ("model", "prefill", "manual", "sampling", "inside", "least"),
    [
        ("", False, False, False, False, 4096),
        ("claude-opus-5-5", False, False, False, False, 4096),
        ("claude-sonnet-5", False, False, False, False, 4096),
        ("claude-opus-4-8", False, False, False, True, 4096),
        ("claude-opus-4-7", False, False, False, False, 4096),
        ("claude-opus-4-6", False, True, True, False, 4096),
        ("claude-sonnet-4-6", False, True, True, False, 2048),
        ("claude-opus-4-5-20251101", True, True, True, False, 4096),
        ("claude-haiku-4-5-20251001", True, True, True, False, 4096),
        ("claude-sonnet-4-5", True, True, True, False, 1024),
        ("anthropic.claude-sonnet-4-5-20250929-v1:0", True, True, True, False, 1024),
        ("claude-opus-4-1-20250805", True, True, True, False, 1024),
        ("claude-opus-4-20250514", True, True, True, False, 1024),
        ("claude-3-7-sonnet-20250219", True, True, True, False, 1024),
        ("claude-3-5-haiku-20241022", True, True, True, False, 2048),
    ],
)
def test_claude_by_version(model: str, prefill: bool, manual: bool, sampling: bool, inside: bool, least: int) -> None:
    """What older models take beyond the profile, and the one that takes instructions inside."""
    found = profile("anthropic", model)
    assert found.turns.assistant_last is prefill
    assert found.reasoning.manual is manual
    assert found.reasoning.sampling is sampling
    assert found.turns.system_inside is inside
    assert found.cache.least_tokens == least


@pytest.mark.parametrize(
    ("model", "signed"),
    [
        ("", True),
        ("gemini-3-pro", True),
        ("gemini-3.8-flash", True),
        ("gemini-2.5-pro", False),
        ("gemini-1.5-pro", False),
    ],
)
def test_gemini_by_version(model: str, signed: bool) -> None:
    """Calls go back signed from Gemini 3 on."""
    assert profile("gemini", model).reasoning.signed_calls is signed
    request = {
        "contents": [
            {"role": "user", "parts": [{"text": "Look."}]},
            {"role": "model", "parts": [{"functionCall": {"name": "look"}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {}}}]},
        ]
    }
    found = {violation.rule for violation in validate(request, profile("gemini", model))}
    assert found == ({Rule.THINKING_SIGNATURE} if signed else set())


@pytest.mark.parametrize("name", PROFILES)
def test_patterns_hold_to_the_whole(name: str) -> None:
    """Patterns are meant to match whole: none has an anchor of its own that a reader would have to think about."""
    each = PROFILES[name]
    for pattern in (each.calls.id, each.tools.name):
        assert isinstance(pattern, re.Pattern)
        assert "^" not in pattern.pattern.replace("[^", "")
        assert "$" not in pattern.pattern
        assert pattern.fullmatch("call_1")
        assert not pattern.fullmatch("")


def test_a_violation_survives_pickling() -> None:
    """Violations cross to another process inside an error."""
    found = validate({}, PROFILES["anthropic"])
    assert found
    assert pickle.loads(pickle.dumps(found)) == found  # noqa: S301 — our own bytes
