"""From a string to a provider and a model: `openai/gpt-5`, `anthropic/claude-…`, `litellm/…`, `scripted:FILE`, `replay:FILE`.

The adapter that a string names is imported then, and no other. No environment is read here; a vendor's client finds its own key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from importlib import import_module
from types import MappingProxyType
from typing import Any

from palaver.errors import InvalidInput
from palaver.models.provider import Provider
from palaver.models.replay import ReplayProvider, read_recording
from palaver.models.script import read_script
from palaver.models.scripted import ScriptedProvider

__all__ = ["PREFIXES", "connect_model"]


def _adapter(module: str, name: str, **fixed: Any) -> Callable[..., Provider]:  # noqa: ANN401 - options of an adapter
    def make(**options: Any) -> Provider:  # noqa: ANN401 - options of an adapter
        made: Provider = getattr(import_module(f"palaver.models.{module}"), name)(**fixed, **options)
        return made

    return make


def _scripted(path: str, **options: Any) -> Provider:  # noqa: ANN401 - those of ScriptedProvider
    return ScriptedProvider(read_script(path), **options)


def _replay(path: str, **options: Any) -> Provider:  # noqa: ANN401 - those of ReplayProvider
    return ReplayProvider(read_recording(path), **options)


_ADAPTERS: Mapping[str, Callable[..., Provider]] = MappingProxyType(
    {
        "openai": _adapter("openai", "OpenAIProvider"),
        "openai-responses": _adapter("openai", "OpenAIProvider", api="responses"),
        "anthropic": _adapter("anthropic", "AnthropicProvider"),
        "google": _adapter("google", "GoogleProvider"),
        "gemini": _adapter("google", "GoogleProvider"),
        "litellm": _adapter("litellm", "LiteLLMProvider"),
    }
)
_FILES: Mapping[str, Callable[..., Provider]] = MappingProxyType({"scripted": _scripted, "replay": _replay})

PREFIXES: tuple[str, ...] = (*(f"{name}/" for name in _ADAPTERS), *(f"{name}:" for name in _FILES))
"""What a string may begin with."""


def connect_model(spec: str, **options: Any) -> tuple[Provider, str]:  # noqa: ANN401 - options of the adapter
    """Give the provider that a string names, and the model.

    Args:
        spec: `PROVIDER/MODEL`, the model as the provider spells it (with LiteLLM: as that does, `litellm/anthropic/claude-…`); or `scripted:FILE`
            or `replay:FILE`, whose model is called `scripted` or `replay`.
        options: Those of the adapter: `api_key`, `base_url`, `client` and so on.

    Raises:
        InvalidInput: It names none; the error says what is close, or what is wrong with the file.
        MissingExtra: The package that the adapter adapts is not installed.
    """
    kind, colon, path = spec.partition(":")
    if colon and kind in _FILES:
        return _FILES[kind](path, **options), kind
    prefix, slash, model = spec.partition("/")
    if slash and model and prefix in _ADAPTERS:
        return _ADAPTERS[prefix](**options), model
    known = (*_ADAPTERS, *_FILES)
    near = get_close_matches(prefix if slash else kind, known, n=1)
    raise InvalidInput(
        f"{spec!r} names no model.",
        hint=(f"Did you mean {near[0]!r}? " if near else "")
        + f"A model is spelt with one of {', '.join(PREFIXES)} before it.",
    )
