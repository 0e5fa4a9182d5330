"""Money: the bill of a replay, what recalls cost, and how far a bill is from the least possible.

What a call refers to and its view does not hold has to be got at, and is paid for, whether it can be looked up or not: to leave something out for
good must not be cheaper than to leave it out so that it can be found. The steps, each a model call of its own on the same view:

==================================  ========================  ==========================================================
what is missing                     calls                     tokens that come into the requests up to the next cut
==================================  ========================  ==========================================================
its handle is in view               1, the recall             the blocks that hold it
a search finds it                   2, search and recall      the hits, and the blocks
a search finds something else       2, search and the step    the hits, and the blocks: what the step brought at first,
                                    that got it at first      it brings again
==================================  ========================  ==========================================================

Source: what leaving something out costs is what fetching it again costs, its tokens and the request on which it is asked for (caching where each thing
has a size and a price of its own: Young, "On-Line File Caching", Algorithmica 33, 2002). That agents go on longer where something is missing is
measured: by 13 to 15 % after summaries (arXiv 2508.21433).
"""

from __future__ import annotations

from collections.abc import Iterable

from palaver.lab.prices import Sheet

__all__ = ["LOOKUP_OUTPUT", "SEARCH_TOKENS", "bill", "recall_charge", "regret"]

LOOKUP_OUTPUT = 60
"""Tokens that a model writes to look something up: a call with a handle or a few words. Ours, about the size of such calls in recordings."""

SEARCH_TOKENS = 300
"""Tokens of the answer of a search: five hits of a line or two each. Ours."""


def bill(calls: Iterable[tuple[int, int, int]], sheet: Sheet) -> float:
    """Give what calls cost.

    Args:
        calls: For each, tokens read from the cache, read anew, and written by the model.
        sheet: The prices.
    """
    return sum(sheet.call(read=read, written=written, output=output) for read, written, output in calls)


def recall_charge(lookups: int, brought: int, view: int, sheet: Sheet) -> float:
    """Give what it costs to bring something back before a call.

    Each step is a model call of its own on the same view, which the cache has; what it brings is read anew once, with the step itself.
    That it stays in later requests is charged there.

    Args:
        lookups: How many steps there are: lookups, those that find something else, and what had to be done again.
        brought: The tokens that they bring, all together.
        view: The tokens of the view.
        sheet: The prices.
    """
    if not lookups:
        return 0.0
    asked = lookups * LOOKUP_OUTPUT
    again = lookups * view
    return again * sheet.cache_read + asked * sheet.output + (brought + asked) * sheet.cache_write


def regret(cost: float, optimum: float) -> float | None:
    """Give how many times the least possible bill a bill is; None where that is nothing.

    Source: the competitive ratio of online algorithms, taken after the fact (Dooly, Goldman, Scott, JACM 2001; Karlin, Kenyon, Randall 2001).
    """
    return cost / optimum if optimum > 0 else None
