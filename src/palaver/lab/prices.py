"""The price sheet: the prices of reading, caching and writing tokens, and the lifetime of a provider's cache.

The cost of recalls: if a call refers to content that its view lacks, the content must be fetched, and is charged even if no lookup finds it.
Omitting content irretrievably must not be cheaper than omitting it with a handle. Each step is a separate model call on the same view:

==================================  ========================  ==========================================================
missing content                     calls                     tokens added to the requests up to the next cut
==================================  ========================  ==========================================================
its handle is in view               1, the recall             the blocks that contain it
a search finds it                   2, search and recall      the hits, and the blocks
a search finds something else       2, search and the step    the hits, and the blocks: the content of that step, which
                                    that first brought it     it brings again
==================================  ========================  ==========================================================

Source: omitting an item costs as much as fetching it again: its tokens and the request (caching with item sizes and prices:
Young, "On-Line File Caching", Algorithmica 33, 2002). Agents need more steps when content is missing: 13 to 15 % more after
summaries (arXiv 2508.21433).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from palaver.errors import NotFound
from palaver.tokens import model_info
from palaver.tokens.pricing import rates

LIFETIMES: Mapping[str, float] = MappingProxyType(
    {"anthropic": 300.0, "openai": 600.0, "gemini": 300.0, "deepseek": 7_200.0}
)
"""Seconds for which a prefix stays in a provider's cache after it was last used, by the family of the model.

Anthropic: 5 minutes, restarted by each read (platform.claude.com/docs/en/build-with-claude/prompt-caching). OpenAI: 5 to 10 minutes of
inactivity (platform.openai.com/docs/guides/prompt-caching). DeepSeek: "hours to days" (api-docs.deepseek.com/guides/kv_cache). Gemini publishes
none for its implicit cache; 5 minutes is our assumption."""

_OTHERS = 300.0
_LEAST = 1_024
"""The minimum tokens of a cached prefix: Anthropic (of most models) and OpenAI, as above."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """The prices of tokens, in the sheet's currency, and the properties of the cache.

    Attributes:
        model: The model.
        currency: `USD`, or `input tokens`: multiples of a token read without a cache.
        input: An input token without caching.
        cache_read: An input token read from the cache.
        cache_write: An input token written to the cache.
        output: An output token.
        lifetime: Seconds for which a prefix stays in the cache after its last use; 0 for no cache.
        least: The minimum tokens of a cached prefix.
        source: The source of the figures.
    """

    model: str
    currency: str
    input: float
    cache_read: float
    cache_write: float
    output: float
    lifetime: float
    least: int
    source: str

    def call(self, *, read: int, written: int, output: int) -> float:
        """Return the price of a call: cached tokens are read from the cache, and all others are written to it.

        A request shorter than the minimum prefix is not cached and costs as input.

        Args:
            read: Tokens read from the cache.
            written: Input tokens that are not in the cache.
            output: Tokens written by the model.
        """
        anew = self.cache_write if self.lifetime and read + written >= self.least else self.input
        return read * self.cache_read + written * anew + output * self.output

    def found(self, stable: int, *, warm: bool) -> int:
        """Return the number of tokens of a request that are in the cache.

        Args:
            stable: The number of leading tokens that it shares with the previous request.
            warm: Whether the cache of the previous request is still alive.
        """
        return stable if warm and self.lifetime and stable >= self.least else 0

    def warm(self, gap: float | None) -> bool:
        """Return whether a prefix is still cached after `gap` seconds; True if the gap is unknown."""
        return gap is None or gap <= self.lifetime


RELATIVE = Sheet(
    model="",
    currency="input tokens",
    input=1.0,
    cache_read=0.10,
    cache_write=1.25,
    output=5.0,
    lifetime=_OTHERS,
    least=_LEAST,
    source="multiples of an uncached input token, as Anthropic's list has them",
)
"""The sheet for models without a known price."""


def sheet(model: str, *, lifetime: float | None = None) -> Sheet:
    """Return the price sheet of a model.

    Prices are list prices for requests of ordinary length, without surcharges for very long ones.

    Args:
        model: The model.
        lifetime: The lifetime of the provider's cache in seconds, to override the known one; 0 for no cache.

    Returns:
        The sheet; without a known price, `RELATIVE` with the model's name, whose `currency` says so.
    """
    lives = LIFETIMES.get(model_info(model).family, _OTHERS) if lifetime is None else lifetime
    try:
        found = rates(model)
    except NotFound:
        return _cached(replace(RELATIVE, model=model, lifetime=lives))
    listed = Sheet(
        model=model,
        currency="USD",
        input=found.input,
        cache_read=found.cache_read,
        cache_write=found.cache_write,
        output=found.output,
        lifetime=lives,
        least=_LEAST,
        source=found.source,
    )
    return _cached(listed)


def _cached(listed: Sheet) -> Sheet:
    """Return a sheet unchanged if there is a cache. Without one, every input token costs `input`: in calls, recalls, the optimum and for policies."""
    return listed if listed.lifetime else replace(listed, cache_read=listed.input, cache_write=listed.input)


LOOKUP_OUTPUT = 60
"""The output tokens of a lookup: a call with a handle or a few words. Our figure, about the size of such calls in recordings."""

SEARCH_TOKENS = 300
"""The tokens of a search result: five hits of a line or two each. Our figure."""


def recall_charge(lookups: int, brought: int, view: int, sheet: Sheet) -> float:
    """Return the cost of bringing content back before a call.

    Each step is a model call on the same view, which is in the cache. The content is read once without the cache. Later requests that contain it are
    charged separately.

    Args:
        lookups: The number of steps.
        brought: The total tokens that they bring.
        view: The tokens of the view.
        sheet: The prices.
    """
    if not lookups:
        return 0.0
    asked = lookups * LOOKUP_OUTPUT
    again = lookups * view
    return again * sheet.cache_read + asked * sheet.output + (brought + asked) * sheet.cache_write
