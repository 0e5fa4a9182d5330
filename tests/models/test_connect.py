"""Model strings: the provider and model they name, and the errors for those that name none."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from palaver.errors import InvalidInput, ProviderError
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
def test_string_names_provider_and_model(spec: str, name: str, profile: str, model: str) -> None:
    """No key is needed before the first request."""
    provider, found = connect_model(spec)
    assert (provider.name, provider.profile_for(found).name, found) == (name, profile, model)


def test_scripted_file(tmp_path: Path) -> None:
    """`scripted:FILE`, with the options of the provider."""
    script = tmp_path / "script.json"
    script.write_text(json.dumps(["Hello."]), encoding="utf-8")
    scripted, model = connect_model(f"scripted:{script}", profile="anthropic")
    assert (model, scripted.profile_for(model).name) == ("scripted", "anthropic")
    assert answer(scripted, ask()).content == "Hello."


@pytest.mark.parametrize(
    ("spec", "close"),
    [("opena/gpt-5", "'openai'"), ("script:file", "'scripted'"), ("gpt-5", "openai/"), ("openai/", ""), ("", "")],
)
def test_unknown_string_lists_what_is_close(spec: str, close: str) -> None:
    """And every prefix."""
    with pytest.raises(InvalidInput, match="does not name a model") as caught:
        connect_model(spec)
    assert close in caught.value.hint
    assert "scripted:" in caught.value.hint


@pytest.mark.parametrize(
    "spec", ["openai/gpt-5.2", "openai-responses/gpt-5.2", "anthropic/claude-opus-4-6", "google/gemini-2.5-pro"]
)
def test_missing_key_says_what_to_do(spec: str) -> None:
    """Nothing is sent; the error names the provider."""
    provider, model = connect_model(spec)
    with pytest.raises(ProviderError) as caught:
        answer(provider, ask(profile=provider.profile_for(model).name, model=model))
    assert (caught.value.kind, caught.value.provider, caught.value.retryable) == ("auth", provider.name, False)
    assert "key" in caught.value.hint


@pytest.mark.parametrize("spec", ["openai/gpt-5.2", "anthropic/claude-opus-4-6"])
def test_unreachable_server_is_down(spec: str) -> None:
    """A port of this machine where nobody listens: no status, and worth a retry."""
    provider, model = connect_model(spec, base_url="http://127.0.0.1:9", api_key="none")
    with pytest.raises(ProviderError) as caught:
        answer(provider, ask(profile=provider.profile_for(model).name, model=model))
    error = caught.value
    assert (error.kind, error.status, error.retryable, error.partial) == ("down", None, True, None)


@pytest.mark.parametrize(
    ("module", "vendor", "extra"),
    [("openai", "openai", "openai"), ("anthropic", "anthropic", "anthropic"), ("google", "google.genai", "google")],
)
def test_missing_package_names_its_extra(module: str, vendor: str, extra: str) -> None:
    """In a process whose import system does not find the vendor's package."""
    program = f"""
import sys
sys.modules["{vendor}"] = None
from palaver.errors import MissingExtra
from palaver.models import connect_model
try:
    connect_model("{module}/m")
except MissingExtra as error:
    print(error.extra, "palaver[{extra}]" in error.hint)
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout.split() == [extra, "True"]


def test_no_adapter_is_imported_before_it_is_asked_for() -> None:
    """The vendors' packages take seconds to import."""
    program = (
        "import sys, palaver.models; palaver.models.Retry;"
        "print([m for m in ('openai', 'anthropic', 'litellm', 'google.genai', 'httpx') if m in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"
