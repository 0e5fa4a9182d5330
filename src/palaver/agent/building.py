"""Invokers by name: what a configuration says becomes something that asks a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any, TypeAlias

from palaver.agent.invoking import Invoker, ProviderInvoker
from palaver.errors import InvalidInput, NotFound
from palaver.models import Provider, ReplayProvider, ScriptedProvider, connect_model
from palaver.models.retry import Retry

__all__ = ["Builder", "build_invoker", "register_invoker"]

Builder: TypeAlias = Callable[[Mapping[str, Any]], Invoker]
"""Makes an invoker of a configuration, without its key `invoker`."""


def build_invoker(config: Mapping[str, Any] | str) -> Invoker:
    """Make an invoker.

    Args:
        config: Its name, or a mapping with the name under `invoker`, a `retry` policy or its figures, and whatever the provider takes:
            `build_invoker({"invoker": "openai", "base_url": "…"})`.

    Raises:
        NotFound: There is no invoker of this name; `close` has those that look like it. The error is a KeyError too.
        MissingExtra: The provider's package is not installed.
        InvalidInput: The configuration has a key that the invoker does not know.
    """
    fields = {"invoker": config} if isinstance(config, str) else dict(config)
    name = fields.pop("invoker", None)
    if not isinstance(name, str):
        raise InvalidInput("An invoker's configuration names it.", hint='Give {"invoker": "litellm"}.')
    builder = _BUILDERS.get(name)
    if builder is None:
        raise NotFound(name, what="invoker", close=get_close_matches(name, _BUILDERS))
    try:
        return builder(fields)
    except TypeError as error:
        raise InvalidInput(f"The invoker {name!r} cannot be made of {sorted(fields)}: {error}.") from error


def register_invoker(name: str, builder: Builder) -> Builder:
    """Name an invoker for this process, and give its builder back. A runtime's own are named with `Runtime.register_invoker`."""
    _BUILDERS[name] = builder
    return builder


def _over(module: str, kind: str, **own: Any) -> Builder:  # noqa: ANN401 - the provider's own arguments
    """Give the builder of an invoker over a provider, whose module is loaded when the first one is made."""

    def build(fields: Mapping[str, Any]) -> Invoker:
        rest = dict(fields)
        retry = _retry(rest.pop("retry", None))
        provider: Provider = getattr(import_module(module), kind)(**own, **rest)
        return ProviderInvoker(provider, retry)

    return build


def _retry(given: object) -> Retry | None:
    if given is None or isinstance(given, Retry):
        return given
    if isinstance(given, Mapping):
        return Retry(**given)
    if isinstance(given, int) and not isinstance(given, bool):
        return Retry(attempts=given + 1)
    raise InvalidInput(f"A retry policy is a Retry, a mapping of its figures or a number of retries, not {given!r}.")


def _told(kind: str, provider: Callable[..., Provider], word: str) -> Builder:
    """Give the builder of an invoker over what was written down: a file, or the thing itself under a word."""

    def build(fields: Mapping[str, Any]) -> Invoker:
        rest = dict(fields)
        retry = _retry(rest.pop("retry", None))
        if "file" in rest:
            return ProviderInvoker(connect_model(f"{kind}:{rest.pop('file')}", **rest)[0], retry)
        return ProviderInvoker(provider(rest.pop(word, ()), **rest), retry)

    return build


_BUILDERS: dict[str, Builder] = {
    "litellm": _over("palaver.models.litellm", "LiteLLMProvider"),
    "openai": _over("palaver.models.openai", "OpenAIProvider"),
    "openai-responses": _over("palaver.models.openai", "OpenAIProvider", api="responses"),
    "anthropic": _over("palaver.models.anthropic", "AnthropicProvider"),
    "google": _over("palaver.models.google", "GoogleProvider"),
    "scripted": _told("scripted", ScriptedProvider, "script"),
    "replay": _told("replay", ReplayProvider, "recording"),
}
"""The invokers there are; `register_invoker` adds to them."""
