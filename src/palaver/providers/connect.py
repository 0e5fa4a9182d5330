"""Model strings: `openai/gpt-5`, `anthropic/claude-…`, `litellm/…`, `scripted:FILE`.

Only the adapter that a string names is imported. No environment variable is read here; a vendor's client finds its own key.
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import Any

from palaver.errors import InvalidInput
from palaver.providers.provider import Provider
from palaver.providers.registry import APIS, Adapter
from palaver.providers.scripted import ScriptedProvider, read_script
from palaver.wire.models import read_model

_ADAPTERS = {prefix: adapter for row in APIS.values() for prefix, adapter in row.adapters.items()} | {
    "litellm": Adapter("litellm", "LiteLLMProvider")
}
_SCRIPTED = "scripted"

PROVIDERS: tuple[str, ...] = (*_ADAPTERS, _SCRIPTED)
"""The names of providers."""

PREFIXES: tuple[str, ...] = (*(f"{name}/" for name in _ADAPTERS), f"{_SCRIPTED}:")
"""The prefixes of model strings."""


def connect_provider(name: str, **options: Any) -> Provider:  # noqa: ANN401 - options of the adapter
    """Return the provider with a name in `PROVIDERS`, built from its adapter's options.

    Raises:
        MissingExtra: The adapter's package is not installed.
    """
    if name == _SCRIPTED:
        script = read_script(options.pop("file")) if "file" in options else options.pop("script", ())
        return ScriptedProvider(script, **options)
    adapter = _ADAPTERS[name]
    made: Provider = getattr(import_module(f"palaver.providers.{adapter.module}"), adapter.name)(
        **adapter.options, **options
    )
    return made


def connect_model(spec: str, **options: Any) -> tuple[Provider, str]:  # noqa: ANN401 - options of the adapter
    """Return the provider and the model that a string names.

    Args:
        spec: `PROVIDER/MODEL`, with the provider's name of the model (as LiteLLM does: `litellm/anthropic/claude-…`); or
            `scripted:FILE`, whose model is called `scripted`.
        options: The adapter's options: `api_key`, `base_url`, `client` and so on.

    Raises:
        InvalidInput: The string names no model, or the script cannot be read.
        MissingExtra: The adapter's package is not installed.
    """
    given: object = spec
    if not isinstance(given, str):
        raise InvalidInput(f"model is {given!r}.", hint='Pass a model string, such as "openai/gpt-5".')
    kind, colon, path = spec.partition(":")
    if colon and kind == _SCRIPTED:
        return connect_provider(kind, file=path, **options), kind
    prefix, slash, model = spec.partition("/")
    if slash and model and prefix in _ADAPTERS:
        return connect_provider(prefix, **options), model
    close = get_close_matches(prefix if slash else kind, PROVIDERS, n=1)
    hints = [f"Did you mean {close[0]!r}?"] if close else []
    if spec and not slash and not colon:
        hints = [f'Write "{read_model(spec).maker or "openai"}/{spec}" or the like, or pass a provider.']
    hints.append(f"A model string begins with one of {', '.join(PREFIXES)}.")
    raise InvalidInput(f"{spec!r} does not name a model and its provider.", hint=" ".join(hints))
