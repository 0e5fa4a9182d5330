"""Model strings: the provider and model they name, and the errors for those that name none."""

import json
import subprocess
import sys
from pathlib import Path

import anthropic
import pytest

from palaver.errors import InvalidInput, ProviderError
from palaver.providers import connect_model
from tests.providers.asking import answer, ask


def test_string_names_provider_and_model() -> None:
    """No key is needed before the first request."""
    cases: list[tuple[str, str, str, str]] = [
        ("openai/gpt-5.2", "openai", "openai-chat", "gpt-5.2"),
        ("openai-responses/gpt-5.2", "openai", "openai-responses", "gpt-5.2"),
        ("openai/gpt-6.2-sol", "openai", "openai-responses", "gpt-6.2-sol"),
        ("anthropic/claude-opus-4-6", "anthropic", "anthropic", "claude-opus-4-6"),
        ("gemini/gemini-2.5-pro", "google", "gemini", "gemini-2.5-pro"),
        ("litellm/anthropic/claude-opus-4-6", "litellm", "openai-chat", "anthropic/claude-opus-4-6"),
        ("litellm/openai/gpt-6.2-sol", "litellm", "openai-chat", "openai/gpt-6.2-sol"),
        ("openai/some/nested:model", "openai", "openai-chat", "some/nested:model"),
    ]
    for spec, name, profile, model in cases:
        provider, found = connect_model(spec)
        assert (provider.name, provider.profile_for(found).name, found) == (name, profile, model)


def test_other_servers_stay_with_chat_completions() -> None:
    """Only OpenAI's own server refuses tools there; a caller's choice of the API wins."""
    own = connect_model("openai/gpt-6.2-sol", base_url="https://api.openai.com/v1")[0]
    assert own.profile_for("gpt-6.2-sol").name == "openai-responses"
    gateway = connect_model("openai/gpt-6.2-sol", base_url="http://127.0.0.1:9/v1")[0].profile_for("gpt-6.2-sol")
    assert (gateway.name, gateway.tools.functions) == ("openai-chat", True)
    chosen = connect_model("openai/gpt-6.2-sol", api="chat")[0].profile_for("gpt-6.2-sol")
    assert (chosen.name, chosen.tools.functions) == ("openai-chat", False)


def test_claude_is_sampled_in_the_older_version_of_the_api() -> None:
    """The version that the client's requests name decides, whoever sets it."""
    for version, sampled in (("2023-06-01", True), ("2026-10-21", False)):
        headers = {"Anthropic-Version": version}
        provider = connect_model("anthropic/claude-opus-4-6", api_key="none", default_headers=headers)[0]
        assert provider.profile_for("claude-opus-4-6").reasoning.sampling is sampled
        client = anthropic.AsyncAnthropic(api_key="none", default_headers={"anthropic-version": version})
        given = connect_model("anthropic/claude-opus-4-6", client=client)[0]
        assert given.profile_for("claude-opus-4-6").reasoning.sampling is sampled
        assert not given.profile_for("claude-opus-5").reasoning.sampling


def test_scripted_file(tmp_path: Path) -> None:
    """`scripted:FILE`, with the options of the provider."""
    script = tmp_path / "script.json"
    script.write_text(json.dumps(["Hello."]), encoding="utf-8")
    scripted, model = connect_model(f"scripted:{script}", profile="anthropic")
    assert (model, scripted.profile_for(model).name) == ("scripted", "anthropic")
    assert answer(scripted, ask()).content == "Hello."


def test_unknown_string_lists_what_is_close() -> None:
    """And every prefix; a model without its provider, whose that is."""
    cases: list[tuple[str, str]] = [
        ("opena/gpt-5", "'openai'"),
        ("gpt-5", '"openai/gpt-5"'),
        ("claude-sonnet-5", '"anthropic/claude-sonnet-5"'),
        ("gemini-2.5-pro", '"google/gemini-2.5-pro"'),
        ("kimi-k2", '"openai/kimi-k2"'),
        ("openai/", ""),
    ]
    for spec, close in cases:
        with pytest.raises(InvalidInput, match="does not name a model") as caught:
            connect_model(spec)
        assert close in caught.value.hint
        assert "scripted:" in caught.value.hint


def test_missing_key_says_what_to_do() -> None:
    """Nothing is sent; the error names the provider."""
    for spec in ["openai/gpt-5.2", "openai-responses/gpt-5.2", "anthropic/claude-opus-4-6", "google/gemini-2.5-pro"]:
        provider, model = connect_model(spec)
        with pytest.raises(ProviderError) as caught:
            answer(provider, ask(profile=provider.profile_for(model).name, model=model))
        assert (caught.value.kind, caught.value.provider, caught.value.retryable) == ("auth", provider.name, False)
        assert "key" in caught.value.hint


def test_adapters_are_imported_when_asked_and_name_their_extra() -> None:
    """The vendors' packages take seconds to import; without one, the error has the extra's name and how to install it."""
    program = """
import sys
from palaver.errors import MissingExtra
from palaver.providers import connect_model
VENDORS = {"openai": "openai", "anthropic": "anthropic", "google": "google.genai", "litellm": "litellm"}
print([name for name in (*VENDORS.values(), "httpx") if name in sys.modules])
for module, vendor in VENDORS.items():
    sys.modules[vendor] = None
    try:
        connect_model(f"{module}/m")
    except MissingExtra as error:
        print(error.extra, f"palaver-llm[{module}]" in error.hint)
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout.splitlines() == ["[]", "openai True", "anthropic True", "google True", "litellm True"]
