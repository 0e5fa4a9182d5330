"""The model catalogue: from a name, however it is spelt, to window, longest answer, tokenizer and price list. Offline.

Windows and prices come with genai-prices, the longest answers from a table of our own; nothing is fetched. Importing genai-prices costs a third of
a second, so the first look-up does it.
"""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.metadata import version
from typing import TYPE_CHECKING, NamedTuple

from palaver.errors import NotFound
from palaver.tokens.families import family_of
from palaver.tokens.names import ModelName, read_name

if TYPE_CHECKING:
    from datetime import datetime

    from genai_prices.data_snapshot import DataSnapshot
    from genai_prices.types import ModelInfo as Model
    from genai_prices.types import Provider

# --- models ------------------------------------------------------------------------------------------

_LONG_WINDOW = 1_000_000


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What is known of one model. Figures are tokens.

    Make one yourself for a model of your own: ``ModelInfo("my-llama", context_window=32_768)``.

    Attributes:
        name: The name as it was asked for.
        context_window: What one request and its answer may occupy together.
        max_input: What one request may occupy at most; never the longest answer.
        max_output: The longest answer, including reasoning, or None if unknown.
        provider: Who serves it, as genai-prices names it; empty if unknown.
        family: Which models it counts like (``palaver.tokens.FAMILIES``).
        known: Whether the window is known. If not, ``context_window`` is a default and ``warning`` says so.
        warning: A sentence for the user when ``known`` is false, else empty.
    """

    name: str
    context_window: int
    max_input: int = 0
    max_output: int | None = None
    provider: str = ""
    family: str = "other"
    known: bool = True
    warning: str = ""

    def __post_init__(self) -> None:
        """Use the whole window as input unless a smaller input is set."""
        if not self.max_input:
            object.__setattr__(self, "max_input", self.context_window)


def model_info(name: str, *, strict: bool = False) -> ModelInfo:
    """Look a model up.

    Understood are bare and dated names and those with prefixes of a host or maker, as LiteLLM, OpenRouter, Bedrock and
    Vertex spell them.

    Args:
        name: The model.
        strict: Refuse a model whose window is not known. Otherwise it gets the default window of the family its name
            suggests, ``known`` is false, and ``warning`` says what was assumed.

    Raises:
        NotFound: ``strict``, and the window is not known; the error names close matches.
    """
    asked = read_name(name)
    family = family_of(asked.bare)
    limits = next((row for pattern, row in _LIMITS if pattern.match(asked.bare)), WindowLimits())
    listing = find(asked)
    listed = listing.context_window if listing else None
    long_window = asked.long_window and listing is not None
    window = _LONG_WINDOW if long_window else limits.window or listed
    if window is None and strict:
        raise NotFound(
            name,
            what="model",
            close=close_names(asked),
            hint="Set the window yourself: ModelInfo(name, window).",
        )
    known = window is not None
    window = window or family.default_window
    return ModelInfo(
        name=name,
        context_window=window,
        max_input=window - (limits.max_output or 0) if limits.apart and known else window,
        max_output=limits.max_output if known else None,
        provider=listing.provider.id if listing else "",
        family=family.name,
        known=known,
        warning="" if known else _warning(name, window, close_names(asked)),
    )


def _warning(name: str, window: int, close: tuple[str, ...]) -> str:
    """Return the warning for an unknown model."""
    near = f" Close: {', '.join(close)}." if close else ""
    return f"The window of {name!r} is not known; {window:,} tokens are assumed.{near}"


# --- genai-prices ------------------------------------------------------------------------------------------------------

_ALIASES = {"azure_ai": "azure", "fireworks_ai": "fireworks", "meta-llama": "together", "z-ai": "zai"}
"""LiteLLM's words for hosts that genai-prices calls otherwise and does not recognise."""

_LOCAL = frozenset({"ollama", "ollama_chat", "hosted_vllm", "vllm", "lm_studio", "llamafile", "llamacpp", "local"})
"""Words before a model that runs on one's own machine."""

_CLOSE = 5
"""How many close names an error shows."""


@dataclass(frozen=True, slots=True)
class Listing:
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


def _data() -> DataSnapshot:
    """Return the data in force: those of the package, or those that the program set instead."""
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415 - a third of a second, on first use only

    return get_snapshot()


def find(name: ModelName) -> Listing | None:
    """Find a model by its name.

    The hosts in the name come first, then the makers of models of that name, then other makers, then resellers.
    A match without a window gets the window of the next match that has one.

    Returns:
        The first match, or None.
    """
    return _found(name, _data().timestamp)


@lru_cache(maxsize=256)
def _found(name: ModelName, _made: datetime) -> Listing | None:
    """Find a model in the data that were made at a time: a name that is not listed is looked for at every provider, which costs a millisecond."""
    matches = _matches(name)
    first = next(matches, None)
    if first is None:
        return None
    provider, model, certain = first
    windows = (window for _, other, _ in itertools.chain((first,), matches) if (window := other.context_window))
    return Listing(provider, model, next(windows, None), certain and _LOCAL.isdisjoint(name.hosts))


def _matches(name: ModelName) -> Iterator[tuple[Provider, Model, bool]]:
    """Return every model that the name can mean, in search order, and whether the name points to its host."""
    providers = _data().providers
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
    providers = sorted(_data().providers, key=_resells)
    known = dict.fromkeys(model.id.lower() for provider in providers for model in provider.models)
    return tuple(difflib.get_close_matches(name.bare, known, n=_CLOSE, cutoff=0.6))


# --- our own table -----------------------------------------------------------------------------------------------------


class WindowLimits(NamedTuple):
    """What one row says; None where it says nothing.

    Attributes:
        max_output: Tokens of the longest answer, reasoning included.
        window: Tokens of the window, in place of what the price data say.
        apart: Whether the longest answer is always reserved: the longest input is then the window less ``max_output``, however short the answer.
    """

    max_output: int | None = None
    window: int | None = None
    apart: bool = False


# genai-prices has one window a model and nothing about answers. This table adds the longest answer, and windows it lacks or
# that have grown since. The first row whose pattern fits the beginning of a model's bare name counts.
#
# Sources: the model pages of each provider (OpenAI "Models", Anthropic "Models overview", Google "Gemini models", DeepSeek
# "Models & pricing", the model pages of Z.ai, Mistral, Cohere, Meta and Qwen), as known in November 2026 and compared with
# LiteLLM's model map; the pages themselves were not read again for it. Compared again with what others took from those
# pages: GPT-5 to 5.3 (a window of 400,000, of which 272,000 are input), GPT-5.4 and 5.5 (1,050,000, of which 922,000 are
# input; 128,000 of answer: anomalyco/models.dev#1630, earendil-works/pi#5087, cognizant-ai-lab/neuro-san#784), Claude from
# 4.6 on (128,000 of answer, where 4.5 has 64,000: Effect-TS/effect#7129). One gateway lists 272,000 tokens of answer for
# GPT-5.5; OpenAI's page, as quoted in the first of these, does not. Unconfirmed: Z.ai, Mistral, Cohere, Meta and Qwen.
_LIMITS = tuple(
    (re.compile(pattern), limits)
    for pattern, limits in (
        # OpenAI. From GPT-5 on, the pages state a window and an input that is smaller by the longest answer.
        (r"gpt-5(\.\d+)?-chat", WindowLimits(16_384, 128_000)),
        (r"gpt-5-pro", WindowLimits(272_000)),
        (r"gpt-5\.3-codex-spark", WindowLimits(None, 128_000)),
        (r"gpt-(5\.[5-9]|6)(?!\d)", WindowLimits(128_000, 1_050_000, apart=True)),
        (r"gpt-([5-9]|\d\d)", WindowLimits(128_000, apart=True)),
        (r"gpt-4\.1", WindowLimits(32_768, 1_047_576)),
        (r"gpt-4o-2024-05-13|gpt-4($|-)|gpt-3\.5", WindowLimits(4_096)),
        (r"(chat)?gpt-4o", WindowLimits(16_384)),
        (r"gpt-oss", WindowLimits(131_072)),
        (r"o1-preview", WindowLimits(32_768)),
        (r"o1-mini", WindowLimits(65_536)),
        (r"o[134]($|-)", WindowLimits(100_000)),
        # Anthropic. Names come as claude-opus-4-6, claude-opus-4.6 and claude-4.6-opus.
        (r"claude-(instant|v?[12]\b|3-(opus|sonnet|haiku))", WindowLimits(4_096)),
        (r"claude-3[.-]5", WindowLimits(8_192)),
        (r"claude-(3[.-]7|sonnet-3[.-]7)", WindowLimits(64_000)),
        (r"claude-(opus-4($|[.-][01](?!\d)|-20)|4([.-][01])?-opus)", WindowLimits(32_000)),
        (r"claude-(\w+-4[.-]([6-9]|\d\d)(?!\d)|4[.-]([6-9]|\d\d)-\w+)", WindowLimits(128_000)),
        (r"claude-(\w+-4|4)", WindowLimits(64_000)),
        (r"claude-(fable|mythos)-5|claude-(opus|sonnet|haiku)-5($|[.-]5)", WindowLimits(128_000, 1_000_000)),
        (r"claude-", WindowLimits(128_000)),
        # Google.
        (r"gemini-(pro$|1|2\.0|flash-1|pro-1)", WindowLimits(8_192)),
        (r"gemini-(2\.5-pro|3(\.\d+)?-pro)$|gemini-3(\.\d+)?-pro-preview", WindowLimits(65_536, 1_048_576)),
        (r"gemini-(3\.[5-9]|4)", WindowLimits(65_536, 1_048_576)),
        (r"gemini-", WindowLimits(65_536)),
        # Others.
        (r"deepseek-(chat|v3)", WindowLimits(8_192, 131_072)),
        (r"deepseek-(reasoner|r1)", WindowLimits(65_536, 131_072)),
        (r"deepseek-(v4|flash)", WindowLimits(393_216, 1_000_000)),
        (r"glm-4\.5", WindowLimits(98_304)),
        (r"glm-", WindowLimits(131_072)),
        (r"(mistral-(large|medium|small)|command-r|llama-?3[.-][123])", WindowLimits(None, 128_000)),
        (r"qwen3-coder", WindowLimits(None, 262_144)),
        (r"scripted$", WindowLimits(None, 32_768)),  # of the provider that answers from a script
    )
)
