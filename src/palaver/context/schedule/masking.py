"""What setting observations aside costs on a workload: the bill of a rule, of never doing it, and of a planner that knows the future."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

from palaver.context.schedule.edits import Edit, EditLedger
from palaver.context.schedule.prices import PriceSheet
from palaver.context.schedule.workloads import Observations
from palaver.errors import InvalidInput

__all__ = ["AtLeast", "EveryStep", "Masking", "Never", "Polling", "Suffix", "best_batches", "best_suffixes", "masked"]

_MOST = 14
"""Observations up to which the optimum over all suffixes is found: there are more states than two to that power."""


class Masking(Protocol):
    """A rule: which observations to mask before a call. Made anew for each conversation."""

    def cut(self, waiting: Sequence[int], tail: _Tail, /) -> int | None:
        """Give the observation from which on all that wait are masked; None for none.

        Args:
            waiting: The observations that may be masked and are not, in order.
            tail: What stands where.
        """
        ...


@dataclass(slots=True)
class _Tail:
    """What stands where: the size of each step as it is shown, and what masking it would save."""

    load: Observations
    shown: list[int]

    @classmethod
    def of(cls, load: Observations) -> _Tail:
        return cls(load, [])

    def step(self, number: int) -> None:
        self.shown.append(self.load.action + self.load.sizes[number])

    def saved(self, number: int) -> int:
        """Give what masking an observation saves; one that is no larger than its line is never masked."""
        return max(self.load.sizes[number] - self.load.line, 0)

    def behind(self, place: int) -> int:
        return sum(self.shown[place:])

    def mask(self, number: int) -> None:
        self.shown[number] -= self.saved(number)


class Never:
    """Masks nothing."""

    def cut(self, waiting: Sequence[int], tail: _Tail, /) -> int | None:  # noqa: ARG002 - it looks at nothing
        """Give None."""
        return None


class EveryStep:
    """Masks whatever may be masked, at every step (JetBrains' observation masking)."""

    def cut(self, waiting: Sequence[int], tail: _Tail, /) -> int | None:  # noqa: ARG002 - it looks at nothing else
        """Give the first."""
        return waiting[0] if waiting else None


@dataclass(frozen=True, slots=True)
class Polling:
    """Masks when so many observations wait (SWE-agent's polling)."""

    steps: int

    def cut(self, waiting: Sequence[int], tail: _Tail, /) -> int | None:  # noqa: ARG002 - it counts
        """Give the first of them."""
        return waiting[0] if len(waiting) >= self.steps else None


@dataclass(frozen=True, slots=True)
class AtLeast:
    """Masks when that saves so many tokens (OpenCode's prune, Anthropic's clear_at_least)."""

    tokens: int

    def cut(self, waiting: Sequence[int], tail: _Tail, /) -> int | None:
        """Give the first of them."""
        return waiting[0] if sum(map(tail.saved, waiting)) >= self.tokens else None


class Suffix:
    """Masks by the edit ledger: the leftmost suffix whose rent has reached its price."""

    def __init__(self, prices: PriceSheet) -> None:
        """Begin with an empty ledger."""
        self._ledger = EditLedger(prices=prices)
        self._known = 0

    def cut(self, waiting: Sequence[int], tail: _Tail, /) -> int | None:
        """Give the place that the ledger decides on."""
        fresh = [number for number in waiting if number >= self._known]
        self._known = max([self._known, *(number + 1 for number in fresh)])
        self._ledger = self._ledger.marked(*(Edit(place=number, saved=tail.saved(number)) for number in fresh))
        decision = self._ledger.decide(_Sums(tail.shown).behind)
        if decision.cut is not None:
            self._ledger = self._ledger.flushed(decision.cut)
        self._ledger = self._ledger.called()
        return decision.cut


class _Sums:
    def __init__(self, shown: Sequence[int]) -> None:
        self._upto = (0, *accumulate(shown))

    def behind(self, place: int) -> int:
        return self._upto[-1] - self._upto[place]


def masked(load: Observations, prices: PriceSheet, rule: Masking) -> float:
    """Give the bill of a rule: what every call reads from the cache and writes to it."""
    tail, waiting, total = _Tail.of(load), list[int](), 0.0
    for call in range(len(load.sizes)):
        tail.step(call)
        waiting.extend(number for number in (call - load.newest,) if number >= 0 and tail.saved(number))
        cut = rule.cut(waiting, tail)
        broken = call if cut is None else cut
        for number in [] if cut is None else [each for each in waiting if each >= cut]:
            tail.mask(number)
            waiting.remove(number)
        total += _call(tail, broken, prices)
    return total


def _call(tail: _Tail, broken: int, prices: PriceSheet) -> float:
    """Give the cost of a call whose prefix is cached up to a step; the first writes all of it."""
    anew = tail.behind(broken)
    whole = tail.load.prefix + sum(tail.shown)
    if len(tail.shown) == 1:
        return prices.write * whole
    return prices.read * (whole - anew) + prices.write * anew


# --- optimum -------------------------------------------------------------------------------------------------------------------


def best_batches(load: Observations, prices: PriceSheet) -> float:
    """Give the cheapest bill of all planners that mask, whenever they do, all that may be masked.

    By dynamic programming over the last time, as many steps as the square of the calls. It is never less than the bill of `best_suffixes`.
    """
    calls = len(load.sizes)
    steps = [load.action + size for size in load.sizes]
    saved = [max(size - load.line, 0) for size in load.sizes]
    upto, saves = (0, *accumulate(steps)), (0, *accumulate(saved))
    best = [float("inf")] * calls  # of all calls before c, masked right before c for nothing yet
    end = float("inf")
    for last in (None, *range(load.newest, calls)):
        done = 0 if last is None else max(last - load.newest + 1, 0)  # observations masked
        spent = 0.0 if last is None else best[last]
        for call in range(0 if last is None else last, calls):
            if call > (load.newest if last is None else last):
                best[call] = min(best[call], spent + _batch(load, prices, upto, saves, call, done))
            elif last is None and call == load.newest:
                best[call] = spent + _batch(load, prices, upto, saves, call, done)
            if call == last:
                continue  # its cost is the batch's
            whole = load.prefix + upto[call + 1] - saves[done]
            new = whole if call == 0 else steps[call]
            spent += prices.read * (whole - new) + prices.write * new
        end = min(end, spent)
    return end


def _batch(
    load: Observations,
    prices: PriceSheet,
    upto: Sequence[int],
    saves: Sequence[int],
    call: int,
    done: int,
) -> float:
    """Give the cost of a call before which all that may be masked is, of which the first `done` were before."""
    now = call - load.newest + 1
    whole = load.prefix + upto[call + 1] - saves[now]
    broken = next((number for number in range(done, now) if saves[number + 1] > saves[number]), call)
    anew = whole - (load.prefix + upto[broken] - saves[broken])
    return prices.read * (whole - anew) + prices.write * anew


def best_suffixes(load: Observations, prices: PriceSheet) -> float:
    """Give the cheapest bill there is, over every suffix at every call.

    Raises:
        InvalidInput: There are more observations than can be gone through.
    """
    may = len(load.sizes) - load.newest
    if may > _MOST:
        raise InvalidInput(f"{may} observations may be masked; all ways to are gone through for at most {_MOST}.")
    bills: dict[frozenset[int], float] = {frozenset(): 0.0}
    for call in range(len(load.sizes)):
        after: dict[frozenset[int], float] = {}
        for gone, spent in bills.items():
            for more, cost in _choices(load, prices, call, gone):
                total = spent + cost
                if total < after.get(more, float("inf")):
                    after[more] = total
        bills = after
    return min(bills.values())


def _choices(
    load: Observations, prices: PriceSheet, call: int, gone: frozenset[int]
) -> Iterator[tuple[frozenset[int], float]]:
    waiting = [number for number in range(call - load.newest + 1) if number not in gone]
    tail = _Tail.of(load)
    for number in range(call + 1):
        tail.step(number)
    for number in gone:
        tail.mask(number)
    yield gone, _call(tail, call, prices)
    for cut in reversed(waiting):
        tail.mask(cut)
        gone |= {cut}
        yield gone, _call(tail, cut, prices)
