"""The price sheet: what reading, caching and writing a token costs, and how long a provider's cache lives.

Money: what recalls cost.

What a call refers to and its view does not hold has to be fetched, and is paid for whether it can be looked up or not: leaving something out for
good must not be cheaper than leaving it out so that it can be found. The steps, each a model call of its own on the same view:

==================================  ========================  ==========================================================
what is missing                     calls                     tokens that come into the requests up to the next cut
==================================  ========================  ==========================================================
its handle is in view               1, the recall             the blocks that hold it
a search finds it                   2, search and recall      the hits, and the blocks
a search finds something else       2, search and the step    the hits, and the blocks: what the step brought at first,
                                    that brought it at first  it brings again
==================================  ========================  ==========================================================

Source: leaving something out costs what fetching it again costs, its tokens and the request that asks for it (caching where each item has a size and a
price: Young, "On-Line File Caching", Algorithmica 33, 2002). Agents do go on longer when something is missing: by 13 to 15 % after
summaries (arXiv 2508.21433).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from palaver.errors import NotFound
from palaver.tokens import model_info
from palaver.tokens.pricing import rates

__all__ = ["LIFETIMES", "LOOKUP_OUTPUT", "RELATIVE", "SEARCH_TOKENS", "Sheet", "recall_charge", "sheet"]

LIFETIMES: Mapping[str, float] = MappingProxyType(
    {"anthropic": 300.0, "openai": 600.0, "gemini": 300.0, "deepseek": 7_200.0}
)
"""Seconds for which a prefix stays in a provider's cache after it was last used, by the family of the model.

Anthropic: 5 minutes, begun anew with each read (platform.claude.com/docs/en/build-with-claude/prompt-caching). OpenAI: 5 to 10 minutes of
inactivity (platform.openai.com/docs/guides/prompt-caching). DeepSeek: "hours to days" (api-docs.deepseek.com/guides/kv_cache). Gemini publishes
none for its implicit cache; 5 minutes is ours."""

_OTHERS = 300.0
_LEAST = 1_024
"""Tokens below which a prefix is not cached: Anthropic (of most models) and OpenAI, as above."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """What a token costs, in the sheet's currency, and what is known of the cache.

    Attributes:
        model: The model.
        currency: `USD`, or `input tokens`: multiples of a token read without a cache.
        input: A token read that was not cached, where the provider does not cache it.
        cache_read: A token read from the cache.
        cache_write: A token read and put into the cache.
        output: A token written.
        lifetime: Seconds for which a prefix stays in the cache after its last use; 0 for no cache.
        least: Tokens that a prefix must have to be cached.
        source: Where the figures are from.
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
        """Price a call: what was in the cache is read from it, and all the rest is put into it.

        What is shorter than the least prefix is not cached and costs as input.

        Args:
            read: Tokens read from the cache.
            written: Tokens read anew.
            output: Tokens written by the model.
        """
        anew = self.cache_write if self.lifetime and read + written >= self.least else self.input
        return read * self.cache_read + written * anew + output * self.output

    def found(self, stable: int, *, warm: bool) -> int:
        """Return how many tokens of a request the cache has.

        Args:
            stable: With how many tokens it begins that the request before it had.
            warm: Whether the cache of the request before is still there.
        """
        return stable if warm and self.lifetime and stable >= self.least else 0

    def warm(self, gap: float | None) -> bool:
        """Return whether a prefix is still cached after so many seconds; where nobody knows how many, it is."""
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
"""What is taken where a model has no known price."""


def sheet(model: str, *, lifetime: float | None = None) -> Sheet:
    """Make the price sheet of a model.

    Prices are the list's for requests of ordinary length: what some providers charge besides for very long ones is left out.

    Args:
        model: The model.
        lifetime: Seconds for which its provider's cache lives, where the caller knows better; 0 for no cache.

    Returns:
        Its sheet; `RELATIVE`, under its name, where no price is known: its `currency` says so.
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
    """Return a sheet as it is where there is a cache; without one every token read costs as input, in calls, recalls, the optimum and what policies are told."""
    return listed if listed.lifetime else replace(listed, cache_read=listed.input, cache_write=listed.input)


LOOKUP_OUTPUT = 60
"""Tokens that a model writes to look something up: a call with a handle or a few words. Ours, about the size of such calls in recordings."""

SEARCH_TOKENS = 300
"""Tokens of the answer of a search: five hits of a line or two each. Ours."""


def recall_charge(lookups: int, brought: int, view: int, sheet: Sheet) -> float:
    """Return what it costs to bring something back before a call.

    Each step is a model call on the same view, which is in the cache; what it brings is read anew once. Later requests that contain it are charged
    for it themselves.

    Args:
        lookups: How many steps there are.
        brought: The tokens that they bring in all.
        view: The tokens of the view.
        sheet: The prices.
    """
    if not lookups:
        return 0.0
    asked = lookups * LOOKUP_OUTPUT
    again = lookups * view
    return again * sheet.cache_read + asked * sheet.output + (brought + asked) * sheet.cache_write
