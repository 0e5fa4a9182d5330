"""Money: what recalls cost.

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

from palaver.lab.prices import Sheet

__all__ = ["LOOKUP_OUTPUT", "SEARCH_TOKENS", "recall_charge"]

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
