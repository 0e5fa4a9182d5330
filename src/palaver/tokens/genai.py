"""The adapter to genai-prices: which models there are, their windows, and what a call costs.

The data come with that package; nothing is fetched. Importing it takes a third of a second, so it is done on first use.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING

from palaver.tokens.names import ModelName

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo as Model
    from genai_prices.types import Provider

__all__ = ["Found", "close_names", "find", "source"]

_ALIASES = {"azure_ai": "azure", "fireworks_ai": "fireworks", "meta-llama": "together", "z-ai": "zai"}
"""LiteLLM's words for hosts that genai-prices calls otherwise and does not recognise."""

_LOCAL = frozenset({"ollama", "ollama_chat", "hosted_vllm", "vllm", "lm_studio", "llamafile", "llamacpp", "local"})
"""Words before a model that runs on one's own machine."""

_CLOSE = 5
"""How many close names an error shows."""


@dataclass(frozen=True, slots=True)
class Found:
    """A model in the data, at the host that was asked for or at its maker."""

    provider: Provider
    model: Model
    context_window: int | None
    """As the data say for this host, else for the first other host that has the same model."""
    certain: bool
    """Whether the host was named, or makes the model: a price at any other host is a guess."""


@cache
def source() -> str:
    """Return the name and version of the data."""
    return f"genai-prices {version('genai-prices')}"


def _providers() -> list[Provider]:
    """Return the data in force: those of the package, or those that the program set instead."""
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415 - a third of a second, on first use only

    return get_snapshot().providers


def find(name: ModelName) -> Found | None:
    """Find a model by its name.

    The hosts in the name come first, then the makers of models of that name, then other makers, then resellers.
    A match without a window gets the window of the next match that has one.

    Returns:
        The first match, or None.
    """
    matches = _matches(name)
    first = next(matches, None)
    if first is None:
        return None
    provider, model, certain = first
    windows = (window for _, other, _ in itertools.chain((first,), matches) if (window := other.context_window))
    return Found(provider, model, next(windows, None), certain and _LOCAL.isdisjoint(name.hosts))


def _matches(name: ModelName) -> Iterator[tuple[Provider, Model, bool]]:
    """Return every model that the name can mean, in search order, and whether the name points to its host."""
    providers = _providers()
    for provider, certain in _search_order(name, providers):
        for reading in name.readings:
            model = provider.find_model(reading, all_providers=providers)
            if model is not None:
                yield provider, model, certain


def _search_order(name: ModelName, providers: list[Provider]) -> Iterator[tuple[Provider, bool]]:
    """Return every provider once, and whether the name points to it."""
    from genai_prices.data_snapshot import find_provider_by_id  # noqa: PLC0415 - as above

    named = (find_provider_by_id(providers, _ALIASES.get(host, host)) for host in name.hosts)
    makers = (p for p in providers if p.model_match is not None and p.model_match.is_match(name.bare))
    seen: set[str] = set()
    for provider in (*named, *makers):
        if provider is not None and provider.id not in seen:
            seen.add(provider.id)
            yield provider, True
    for provider in sorted(providers, key=_resells):
        if provider.id not in seen:
            yield provider, False


def _resells(provider: Provider) -> bool:
    """Return whether a provider has no names of its own: it resells."""
    return provider.model_match is None


def close_names(name: ModelName) -> tuple[str, ...]:
    """Return up to five identifiers in the data that look like a name, the closest first."""
    providers = sorted(_providers(), key=_resells)
    known = dict.fromkeys(model.id.lower() for provider in providers for model in provider.models)
    return tuple(difflib.get_close_matches(name.bare, known, n=_CLOSE, cutoff=0.6))
