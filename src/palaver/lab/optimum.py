"""The offline optimum: the lowest possible cost of a dialog's calls, if the times of all cuts were chosen with knowledge of the future.

The optimum is only over *when* to cut, down to the average size of this policy's own cuts. So it separates bad timing from cutting too much or too
little. Dynamic programming over the last cut, as `f(c) = min over b of f(b) + cost(b, c)`
(the single-operator optimum of lot sizing: Wagner, Whitin, "Dynamic Version of the Economic Lot Size Model", 1958), with every cost in constant
time from prefix sums. The number of steps is the square of the number of calls, for at most `_MOST` possible cuts.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from palaver.lab.prices import Sheet

_MOST = 1_000
"""The maximum number of possible cuts. In a longer dialog only every second, third … call counts, to bound the search."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The load of a dialog on its context.

    Attributes:
        new: The new tokens before each call, in order.
        warm: Whether the cache is warm at each call.
        prefix: Tokens of instructions and tools, which are never cut.
        output: Tokens of all responses.
        after: Tokens of the conversation after a cut, including the call's new tokens.
        room: The maximum size of a request.
    """

    new: tuple[int, ...]
    warm: tuple[bool, ...]
    prefix: int
    output: int
    after: int
    room: int


def optimum(load: Load, sheet: Sheet) -> float:
    """Return the lowest possible bill of the calls.

    A call directly after a cut is billed as if it fitted: its content must be sent in any case.

    Args:
        load: The load of the dialog.
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
    """Computes the cost of the calls between two cuts in constant time.

    A cut at call c is made before it. The call reads the prefix from a warm cache and writes the remaining conversation to it. Each later call reads the
    previous request and writes the new tokens; with a cold cache it writes everything.
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
        """Return the number to add to the tokens before a call to get the size of the previous request."""
        if cut < 0:
            return self._load.prefix
        return self._load.prefix + min(self._load.after, self._upto[cut + 1]) - self._upto[cut + 1]

    def last(self, cut: int) -> int:
        """Return the first call after a cut that needs another cut; the number of calls if all fit."""
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
        """Return the cost of the calls from one cut up to another one, exclusive."""
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
