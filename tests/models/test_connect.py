"""Model strings: which provider and model they name, and what is said of those that name none."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from palaver.errors import AuthenticationFailed, InvalidInput, MissingExtra, ProviderDown
from palaver.models import connect_model
from tests.models.asking import answer, ask


@pytest.mark.parametrize(
    ("spec", "name", "profile", "model"),
    [
        ("openai/gpt-5.2", "openai", "openai-chat", "gpt-5.2"),
        ("openai-responses/gpt-5.2", "openai", "openai-responses", "gpt-5.2"),
        ("anthropic/claude-opus-4-6", "anthropic", "anthropic", "claude-opus-4-6"),
        ("google/gemini-2.5-pro", "google", "gemini", "gemini-2.5-pro"),
        ("gemini/gemini-2.5-pro", "google", "gemini", "gemini-2.5-pro"),
        ("litellm/anthropic/claude-opus-4-6", "litellm", "openai-chat", "anthropic/claude-opus-4-6"),
        ("openai/some/nested:model", "openai", "openai-chat", "some/nested:model"),
    ],
)
def test_a_string_names_a_provider_and_a_model(spec: str, name: str, profile: str, model: str) -> None:
    """No key is needed until something is asked."""
    provider, found = connect_model(spec)
    assert (provider.name, provider.profile_for(found).name, found) == (name, profile, model)


def test_files_are_scripts_and_recordings(tmp_path: Path) -> None:
    """`scripted:FILE` and `replay:FILE`, with the options of their providers."""
    script, recording = tmp_path / "script.json", tmp_path / "recording.json"
    script.write_text(json.dumps(["Hello."]), encoding="utf-8")
    said = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "Hello again."}]
    recording.write_text(json.dumps(said), encoding="utf-8")
    scripted, model = connect_model(f"scripted:{script}", profile="anthropic")
    assert (model, scripted.profile_for(model).name) == ("scripted", "anthropic")
    assert answer(scripted, ask()).content == "Hello."
    replay, model = connect_model(f"replay:{recording}")
    assert model == "replay"
    assert answer(replay, ask()).content == "Hello again."


@pytest.mark.parametrize(
    ("spec", "close"),
    [
        ("opena/gpt-5", "'openai'"),
        ("antropic/claude", "'anthropic'"),
        ("script:file", "'scripted'"),
        ("gpt-5", "openai/"),
        ("openai/", ""),
        ("", ""),
    ],
)
def test_what_names_no_model_is_told_what_is_close(spec: str, close: str) -> None:
    """With the ways to spell one."""
    with pytest.raises(InvalidInput, match="names no model") as caught:
        connect_model(spec)
    assert close in caught.value.hint
    assert "scripted:" in caught.value.hint


@pytest.mark.parametrize(
    "spec", ["openai/gpt-5.2", "openai-responses/gpt-5.2", "anthropic/claude-opus-4-6", "google/gemini-2.5-pro"]
)
def test_without_a_key_the_question_fails_with_what_to_do(spec: str) -> None:
    """Nothing is sent anywhere; the error is typed, names the provider, and says what to give."""
    provider, model = connect_model(spec)
    profile = provider.profile_for(model).name
    with pytest.raises(AuthenticationFailed) as caught:
        answer(provider, ask(profile=profile, model=model))
    assert caught.value.provider == provider.name
    assert "key" in caught.value.hint
    assert not caught.value.retryable


@pytest.mark.parametrize("spec", ["openai/gpt-5.2", "anthropic/claude-opus-4-6"])
def test_nobody_there_is_a_provider_that_is_down(spec: str) -> None:
    """A port of this machine where nobody listens: it may be tried again, and there is no status."""
    provider, model = connect_model(spec, base_url="http://127.0.0.1:9", api_key="none")
    with pytest.raises(ProviderDown) as caught:
        answer(provider, ask(profile=provider.profile_for(model).name, model=model))
    assert caught.value.status is None
    assert caught.value.retryable
    assert caught.value.partial is None


@pytest.mark.parametrize(
    ("module", "vendor", "extra"),
    [("openai", "openai", "openai"), ("anthropic", "anthropic", "anthropic"), ("google", "google.genai", "google")],
)
def test_a_missing_package_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, module: str, vendor: str, extra: str
) -> None:
    """Not an ImportError from somewhere: what needs it, and how it is installed."""
    monkeypatch.delitem(sys.modules, f"palaver.models.{module}", raising=False)
    monkeypatch.setitem(sys.modules, vendor, None)
    if vendor == "google.genai":
        monkeypatch.delattr("google.genai", raising=False)
    with pytest.raises(MissingExtra) as caught:
        connect_model(f"{module}/m")
    assert caught.value.extra == extra
    assert f"palaver[{extra}]" in caught.value.hint


def test_no_adapter_is_imported_before_it_is_asked_for() -> None:
    """`import palaver.models` brings no vendor's package: they take seconds."""
    program = (
        "import sys, palaver.models; palaver.models.Retry;"
        "print([m for m in ('openai', 'anthropic', 'litellm', 'google.genai', 'httpx') if m in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"
