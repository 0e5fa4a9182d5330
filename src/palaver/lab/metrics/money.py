"""Money: the bill of a replay, what recalls cost, and how far a bill is from the least possible."""

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

    Each lookup is a model call of its own on the same view, which the cache has; what it brings is read anew once, with the lookup itself.
    That it stays in later requests is charged there.

    Args:
        lookups: How many there are.
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
