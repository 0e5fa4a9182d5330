"""The parts of a model's name, however its sellers spell it."""

from __future__ import annotations

import re
from dataclasses import dataclass


class UnknownModelWarning(UserWarning):
    """A model is not known; its window, or what it accepts, is assumed."""


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
    """The parts of a model's name.

    Attributes:
        asked: The name that was asked for.
        hosts: The parts before the model, from left to right: who serves it, and often who made it.
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
    """Return the parts of a model's name.

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
