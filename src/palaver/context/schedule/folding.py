"""What folding costs on a workload: the bill of a rule, and of a planner that knows the future.

The cost of a call is that of a provider with an ideal cache of the longest prefix: what the call before it sent is read, the rest is written. A fold
asks a model for the summary with the same prefix, so that it reads the cache too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TypeAlias

from palaver.context.schedule.prices import PriceSheet
from palaver.context.schedule.rent import RentOrBuy
from palaver.context.schedule.workloads import Growth
from palaver.errors import InfeasibleBudget

__all__ = [
    "Bill",
    "Moment",
    "Rule",
    "at_size",
    "break_even",
    "forced",
    "optimal_rent",
    "optimum",
    "played",
    "rent_or_buy",
]

_NEVER = -1
"""The number of the last fold where there was none."""


@dataclass(frozen=True, slots=True)
class Bill:
    """What a schedule costs.

    Attributes:
        total: All calls and folds, in units of one uncached input token.
        folds: The calls before which it folds.
    """

    total: float
    folds: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Moment:
    """What a rule knows before a call; nothing of what comes later.

    Attributes:
        call: The call's number.
        size: What the request occupies if nothing is folded, in tokens.
        excess: What a fold would take away, in tokens.
        rent: What that costs at this call, were it warm.
        price: What folding costs more at this call than not folding.
        cold: Whether the cache is cold.
    """

    call: int
    size: int
    excess: int
    rent: float
    price: float
    cold: bool


Rule: TypeAlias = Callable[[Moment], bool]
"""Tells before a call whether to fold. Made anew for each conversation, because it may remember."""


@dataclass(frozen=True)
class _Costs:
    """The cost of each call of a workload, by where it was folded last."""

    load: Growth
    prices: PriceSheet
    upto: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "upto", (0, *accumulate(self.load.new)))
        least = self.load.prefix + self.load.summary + self.load.keep
        if least > self.load.room:
            parts = {"prefix": self.load.prefix, "summary": self.load.summary, "tail": self.load.keep}
            raise InfeasibleBudget(self.load.room, least, parts)

    def tail(self, call: int) -> int:
        """Give the tokens that a fold before a call leaves of the conversation, what the call brings included."""
        return min(self.load.keep, self.upto[call + 1])

    def sent(self, call: int, fold: int) -> int:
        """Give what the cache holds before a call: all that is sent but what is new."""
        if fold == _NEVER:
            return self.load.prefix + self.upto[call]
        return self.load.prefix + self.load.summary + self.tail(fold) + self.upto[call] - self.upto[fold + 1]

    def size(self, call: int, fold: int) -> int:
        return self.sent(call, fold) + self.load.new[call]

    def fits(self, call: int, fold: int) -> bool:
        return self.size(call, fold) <= self.load.room

    def plain(self, call: int, fold: int) -> float:
        """Give the cost of a call before which nothing is folded."""
        if self.load.cold[call]:
            return self.prices.write * self.size(call, fold)
        return self.prices.read * self.sent(call, fold) + self.prices.write * self.load.new[call]

    def folded(self, call: int, fold: int) -> float:
        """Give the cost of a fold before a call and of that call."""
        load, prices = self.load, self.prices
        anew = load.summary + self.tail(call)
        asked = prices.output * load.summary + prices.loss
        if load.cold[call]:
            return self.size(call, fold) + asked + prices.write * (load.prefix + anew)
        return prices.read * self.sent(call, fold) + asked + prices.read * load.prefix + prices.write * anew

    def moment(self, call: int, fold: int) -> Moment:
        size = self.size(call, fold)
        excess = max(0, self.sent(call, fold) - self.load.prefix - self.load.summary - self.load.keep)
        price = self.folded(call, fold) - self.plain(call, fold)
        return Moment(call, size, excess, self.prices.rent * excess, price, self.load.cold[call])


def played(load: Growth, prices: PriceSheet, rule: Rule) -> Bill:
    """Let a rule fold; where the request would not fit it is folded all the same.

    Raises:
        InfeasibleBudget: What a fold leaves does not fit.
    """
    costs = _Costs(load, prices)
    total, fold = 0.0, _NEVER
    folds: list[int] = []
    for call in range(len(load.new)):
        wanted = rule(costs.moment(call, fold))
        if wanted or not costs.fits(call, fold):
            total += costs.folded(call, fold)
            folds.append(call)
            fold = call
        else:
            total += costs.plain(call, fold)
    return Bill(total, tuple(folds))


def optimum(load: Growth, prices: PriceSheet) -> Bill:
    """Give the cheapest bill there is, by dynamic programming over the last fold: as many steps as the square of the calls.

    It is over folds that a model is asked for. `palaver.lab.optimum` has the same recursion for another problem: cuts that ask no model, leave what a
    policy's own cuts left, and may only stand before some of the calls where a recorded dialog has many thousand.

    Raises:
        InfeasibleBudget: What a fold leaves does not fit.
    """
    costs = _Costs(load, prices)
    calls = len(load.new)
    best = [float("inf")] * calls  # of everything up to and including call c, folded right before c
    before = [_NEVER] * calls
    end, last = float("inf"), _NEVER
    for fold in range(_NEVER, calls):
        spent = 0.0 if fold == _NEVER else best[fold]
        for call in range(fold + 1, calls):
            if spent + (whole := costs.folded(call, fold)) < best[call]:
                best[call], before[call] = spent + whole, fold
            if not costs.fits(call, fold):
                break
            spent += costs.plain(call, fold)
        else:
            if spent < end:
                end, last = spent, fold
    folds = []
    while last != _NEVER:
        folds.append(last)
        last = before[last]
    return Bill(end, tuple(reversed(folds)))


# --- rules ----------------------------------------------------------------------------------------------------------------------


def forced(_: Moment) -> bool:
    """Fold only where the window would be exceeded."""
    return False


def at_size(tokens: float) -> Rule:
    """Fold where a request would have more than so many tokens."""
    return lambda moment: moment.size > tokens


def break_even(calls: int, prices: PriceSheet) -> Rule:
    """Fold where so many further calls would pay for it: every system that weighs cost guesses such a number."""
    return lambda moment: calls * prices.rent * moment.excess > moment.price


def rent_or_buy(seed: str | None = None) -> Rule:
    """Fold by rent or buy: nothing is guessed.

    Args:
        seed: Draws thresholds at random; None for the rule without chance.
    """
    state = RentOrBuy(seed=seed)

    def rule(moment: Moment) -> bool:
        nonlocal state
        due = state.due(moment.rent, moment.price)
        state = state.folded() if due else state.paid(moment.rent)
        return due

    return rule


# --- the bare problem --------------------------------------------------------------------------------------------------------------


def optimal_rent(rents: tuple[float, ...], price: float, room: float = float("inf")) -> float:
    """Give the least rent and prices of the bare problem, in which a fold takes everything that came before it.

    Args:
        rents: What the tokens that each call brings cost at that call and every later one, until they are folded.
        price: What a fold costs.
        room: The most rent that a call may pay: beyond it a fold is forced.
    """
    best = [float("inf")] * len(rents)  # of all calls before c, and a fold right before c
    answer = float("inf")
    for fold in range(_NEVER, len(rents)):
        spent, carried = 0.0 if fold == _NEVER else best[fold], 0.0
        for call in range(fold + 1, len(rents)):
            best[call] = min(best[call], spent + price)
            carried += rents[call]
            if carried > room:
                break
            spent += carried
        else:
            answer = min(answer, spent)
    return answer
