"""The positive corpus: rich requests that validate, and that are requests to the providers' own packages too."""

from typing import Any

import pytest
from pydantic import ValidationError

from palaver.wire.check import validate
from palaver.wire.violations import Rule
from tests.wire.check.samples import SAMPLES, Sample
from tests.wire.check.vendor_types import hold_to_types


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_taken(name: str) -> None:
    """A rich request of every provider breaks no rule."""
    sample = SAMPLES[name]
    assert validate(sample.request(), sample.profile, as_history=sample.as_history) == ()


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_of_its_providers_types(name: str) -> None:
    """The same request is one to the types of the provider's own package."""
    sample = SAMPLES[name]
    hold_to_types(sample.profile.name, sample.request())


@pytest.mark.parametrize("profile", ["anthropic", "openai-chat", "openai-responses", "gemini"])
def test_the_types_would_notice(profile: str) -> None:
    """The types are held to in the depths of a request too: a foreign field and a wrong value there are refused."""
    depths: dict[str, tuple[str, int, str, int]] = {
        "anthropic": ("messages", 0, "content", 0),
        "openai-chat": ("messages", 2, "content", 0),
        "openai-responses": ("input", 1, "content", 0),
        "gemini": ("contents", 0, "parts", 0),
    }
    spoiled = ({"unheard_of": 1}, {"text": 7})
    for change in spoiled:
        body = SAMPLES[profile].request()
        part: Any = body
        for step in depths[profile]:
            part = part[step]
        part |= change
        with pytest.raises(ValidationError):
            hold_to_types(profile, body)


def _histories() -> list[tuple[str, Sample]]:
    return [(name, sample) for name, sample in SAMPLES.items() if sample.as_history]


@pytest.mark.parametrize(("name", "sample"), _histories())
def test_a_history_becomes_a_request_with_the_next_words(name: str, sample: Sample) -> None:
    """A body that ends on the assistant's words is valid as a history, refused as a request, and one with a user turn more."""
    body = sample.request()
    assert {each.rule for each in validate(body, sample.profile)} == {Rule.ROLE_LAST}
    if sample.profile.name == "anthropic":
        body["messages"].append({"role": "user", "content": "And another?"})
    else:
        body["contents"].append({"role": "user", "parts": [{"text": "And another?"}]})
    assert validate(body, sample.profile) == (), name
    assert validate(body, sample.profile, as_history=True) == ()


@pytest.mark.parametrize("name", SAMPLES)
def test_a_request_is_a_history(name: str) -> None:
    """Whatever is taken as the next request is taken as the record of a conversation."""
    sample = SAMPLES[name]
    assert validate(sample.request(), sample.profile, as_history=True) == ()
