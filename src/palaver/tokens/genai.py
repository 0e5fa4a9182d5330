"""The adapter to genai-prices: which models there are, their windows, and what a call costs.

The data come with that package; nothing is fetched. Importing it takes a third of a second, so it is done on first use.
"""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo as Model
    from genai_prices.types import Provider

__all__ = ["Found", "ModelName", "close_names", "find", "read_name", "source"]

_BRACKET = re.compile(r"\[([^\]]*)\]$")
"""A suffix such as ``[1m]``, which Claude Code appends to a model to ask for its million-token window."""

_VARIANT = re.compile(r":(?:free|beta|thinking|online|nitro|floor|extended|exacto|latest)$")
"""OpenRouter's and Ollama's variants of one model."""

_BEDROCK = re.compile(
    r"^(?:(?:us|us-gov|eu|apac|ap|jp|au|ca|global)\.)?([a-z0-9]+)\.([a-z].*?)(?:-v\d+)?(?::\d+[a-z]*)?$"
)
"""Amazon Bedrock's identifiers: region, maker, model, revision."""

_FINE_TUNED = re.compile(r"^ft:([^:]+)")
"""OpenAI's fine-tuned models: ``ft:base:organisation::id``."""

_DATE = re.compile(r"-20\d\d-?[01]\d-?[0-3]\d$")
"""The date of a snapshot. A later snapshot than the data know is read as the model itself."""

_ROUTES = frozenset({"models", "publishers", "accounts", "endpoints", "litellm_proxy", "litellm", "chat", "responses"})
"""Parts of a path that name no host."""


@dataclass(frozen=True, slots=True)
class ModelName:
    """One model's name, taken apart.

    Attributes:
        asked: The name as it was given.
        hosts: What stood before the model, from left to right: who serves it, and often who made it.
        bare: The model alone, with its date.
        readings: Ways to read the name, the most specific first; lower case, never empty.
        long_window: Whether the name asks for a window of a million tokens.
    """

    asked: str
    hosts: tuple[str, ...]
    bare: str
    readings: tuple[str, ...]
    long_window: bool = False


def read_name(name: str) -> ModelName:
    """Take a model's name apart.

    Understood are bare names, LiteLLM's and OpenRouter's prefixes (``openrouter/anthropic/claude-sonnet-4.5:free``),
    Bedrock's identifiers (``us.anthropic.claude-3-5-sonnet-20241022-v2:0``), Vertex's dates (``claude-3-5-haiku@20241022``),
    resource paths (``publishers/google/models/gemini-2.5-pro``) and OpenAI's fine-tuned models.
    """
    text = name.strip().lower()
    bracket = _BRACKET.search(text)
    text = _BRACKET.sub("", text)
    tuned = _FINE_TUNED.match(text)
    parts = (tuned[1] if tuned else text).strip("/").split("/")
    hosts = [part for part in parts[:-1] if part not in _ROUTES]
    paths = ["/".join(parts[start:]) for start in range(len(parts))]
    readings = [reading for path in paths for reading in (path, _VARIANT.sub("", path))]
    if bedrock := _BEDROCK.match(readings[-1]):
        hosts.append(bedrock[1])
        readings.append(bedrock[2])
    bare = readings[-1].replace("@", "-")
    return ModelName(
        asked=name,
        hosts=tuple(hosts),
        bare=bare,
        readings=tuple(dict.fromkeys((text, *readings, bare, _DATE.sub("", bare)))),
        long_window=bracket is not None and bracket[1] == "1m",
    )


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
