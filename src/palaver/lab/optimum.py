"""The offline optimum: the least that the calls of a dialog could have cost, had the times of all cuts been chosen with the future known.

A policy's cuts leave what they leave; the optimum is over *when* to cut, down to the size that this policy's own cuts had on average. So it tells
bad timing from cutting much or little. Dynamic programming over the last cut, as `f(c) = min over b of f(b) + cost(b, c)`
(the single-operator optimum of lot sizing: Wagner, Whitin, "Dynamic Version of the Economic Lot Size Model", 1958), with every cost in constant
time from sums over prefixes: as many steps as the square of the calls, for at most `_MOST` places where a cut may be.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from palaver.lab.prices import Sheet

__all__ = ["Load", "optimum"]

_MOST = 1_000
"""Calls before which a cut may be; in a longer dialog every second, third … one: the search stays bounded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What a dialog asks of its context.

    Attributes:
        new: The tokens that come before each call, in order.
        warm: Whether the cache is warm at each call.
        prefix: Tokens of instructions and tools, which nothing cuts.
        output: Tokens of all responses.
        after: Tokens of the conversation that a cut leaves, what the call brings included.
        room: The most that a request may occupy.
    """

    new: tuple[int, ...]
    warm: tuple[bool, ...]
    prefix: int
    output: int
    after: int
    room: int


def optimum(load: Load, sheet: Sheet) -> float:
    """Return the least bill for which the calls could have been had.

    A call before which there is a cut is billed as if it fitted: what must be sent is sent, and nobody could have done better.

    Args:
        load: What the dialog asks for.
        sheet: The prices.
    """
    sums = _Sums(load, sheet)
    calls = len(load.new)
    stride = max(1, -(-calls // _MOST))
    best: dict[int, float] = {-1: 0.0}
    end = float("inf")
    for cut in range(-1, calls):
        spent = best.get(cut)
        if spent is None:
            continue
        last = sums.last(cut)
        for later in range(cut + 1, min(last + 1, calls)):
            if later % stride and later != last:
                continue
            cost = spent + sums.between(cut, later)
            if cost < best.get(later, float("inf")):
                best[later] = cost
        if last >= calls:
            end = min(end, spent + sums.between(cut, calls))
    return end + load.output * sheet.output


class _Sums:
    """What the calls from one cut to the next cost, in constant time.

    A cut at call c is made before it: the call sends the prefix, read from the cache where it is warm, and what the cut leaves, written anew. The
    calls after it read what the one before sent, and write what is new; a cold one writes everything.
    """

    def __init__(self, load: Load, sheet: Sheet) -> None:
        self._load = load
        self._sheet = sheet
        self._upto = (0, *accumulate(load.new))
        self._warm = (0, *accumulate(int(each) for each in load.warm))
        self._sent = (0, *accumulate(self._upto[index] for index in range(len(load.new))))
        self._sent_warm = (
            0,
            *accumulate(self._upto[index] if load.warm[index] else 0 for index in range(len(load.new))),
        )

    def _base(self, cut: int) -> int:
        """Return what is to be added to the tokens that came before a call to get what the call before it sent."""
        if cut < 0:
            return self._load.prefix
        return self._load.prefix + min(self._load.after, self._upto[cut + 1]) - self._upto[cut + 1]

    def last(self, cut: int) -> int:
        """Return the first call after a cut that does not fit without another one; the number of calls where all fit."""
        base, calls = self._base(cut), len(self._load.new)
        low, high = cut + 1, calls
        while low < high:
            middle = (low + high) // 2
            if base + self._upto[middle + 1] > self._load.room:
                high = middle
            else:
                low = middle + 1
        return low

    def between(self, cut: int, later: int) -> float:
        """Return what the calls from a cut up to another one, exclusive, cost, and the cut at its beginning."""
        begin = cut + 1 if cut >= 0 else 0
        base, sheet = self._base(cut), self._sheet
        warm = self._warm[later] - self._warm[begin]
        read = base * warm + self._sent_warm[later] - self._sent_warm[begin]
        whole = base * (later - begin) + self._sent[later] - self._sent[begin]
        new = self._upto[later] - self._upto[begin]
        cost = read * sheet.cache_read + (whole - read + new) * sheet.cache_write
        return cost + (self._first(cut) if cut >= 0 else 0.0)

    def _first(self, cut: int) -> float:
        left = min(self._load.after, self._upto[cut + 1])
        prefix = self._sheet.cache_read if self._load.warm[cut] else self._sheet.cache_write
        return self._load.prefix * prefix + left * self._sheet.cache_write
