"""The schedule of a policy: the exchanges gone through from the first, and before every call of the model a decision.

Nothing is stored. What waits, since when and at what rent follows from the exchanges, from when the log says that calls were made, and from
prices. What a commit wrote down is settled: it is gone on from, and decided anew only when something comes.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from palaver.context.ground import Ground, Layout, Room
from palaver.context.ledger import Ledger
from palaver.context.operators.forms import edited, saving, touched
from palaver.context.recipe import Recipe
from palaver.context.schedule.due import Due, Schedule
from palaver.context.schedule.edits import Decision, Edit, EditLedger, Why
from palaver.context.schedule.now import Before
from palaver.context.schedule.prices import PriceSheet
from palaver.context.schedule.rent import RentOrBuy
from palaver.log import Handle
from palaver.messages import Role

__all__ = ["Folding", "Scheduling", "scheduled"]

_PROGRESS = 0.1
"""The least share of what is shown that a fold takes away (OpenHands' condenser: minimum_progress 0.1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folding:
    """What was decided about a fold before a call, in units of one uncached input token.

    Attributes:
        done: Whether exchanges were folded, or the room was made.
        why: `kept`, `paid`, `cold` or `lost`, or `forced` where the room was outgrown.
        rent: What was paid since the last fold, this call's rent included.
        price: What folding costs.
        excess: Tokens that a fold takes away.
    """

    done: bool
    why: Why
    rent: float
    price: float
    excess: int

    def sentence(self) -> str:
        """Say it."""
        what = "folded" if self.done else "not folded"
        figures = f"rent {self.rent:,.0f}, price {self.price:,.0f}, {self.excess:,} tokens over what a fold leaves"
        return f"schedule: {what} ({self.why.value}); {figures}"

    def as_data(self) -> Mapping[str, Any]:
        """Give it as JSON values."""
        return {
            "done": self.done,
            "why": self.why.value,
            "rent": round(self.rent, 1),
            "price": round(self.price, 1),
            "excess": self.excess,
        }

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Folding:
        """Read what `as_data` gave."""
        return cls(**{**data, "why": Why(data["why"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduling:
    """What was decided before the next call.

    Attributes:
        edits: About what waits to be set aside.
        fold: About folding; None where the schedule folds nothing.
        prices: What it was decided by.
    """

    edits: Decision
    fold: Folding | None
    prices: PriceSheet

    def sentences(self) -> tuple[str, ...]:
        """Say it."""
        unit = f" of {self.prices.dollar:.3g} $" if self.prices.dollar else ""
        fold = () if self.fold is None else (self.fold.sentence(),)
        return self.edits.sentence(), *fold, f"schedule: figures in uncached input tokens{unit} ({self.prices.source})"

    def as_data(self) -> Mapping[str, Any]:
        """Give it as JSON values; a cache that is never cold has no lifetime."""
        sheet = self.prices
        prices = {
            name: getattr(sheet, name) for name in ("read", "write", "lifetime", "loss", "missed", "dollar", "source")
        }
        prices["lifetime"] = None if math.isinf(sheet.lifetime) else sheet.lifetime
        fold = None if self.fold is None else self.fold.as_data()
        return {"edits": self.edits.as_data(), "fold": fold, "prices": prices}

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Scheduling:
        """Read what `as_data` gave, such as the decision that is recorded with a call."""
        fold, prices = data["fold"], dict(data["prices"])
        prices["lifetime"] = math.inf if prices["lifetime"] is None else prices["lifetime"]
        return cls(
            edits=Decision.of(data["edits"]),
            fold=None if fold is None else Folding.of(fold),
            prices=PriceSheet(**prices),
        )


def scheduled(
    ground: Ground, recipe: Recipe, schedule: Schedule, prices: PriceSheet, books: Ledger
) -> tuple[Layout, Scheduling | None]:
    """Go through the exchanges from the first and make each edit when it pays, or when the room is outgrown.

    Returns:
        The layout; and what was decided before the next call, None where nothing came since the view was last shaped.
    """
    replay = _Replay(ground, recipe, schedule, prices, books)
    for index in range(len(ground.view.exchanges)):
        replay.step(index)
    return replay.layout, replay.told


class _Replay:
    """The state of one going-through."""

    def __init__(self, ground: Ground, recipe: Recipe, schedule: Schedule, prices: PriceSheet, books: Ledger) -> None:
        self.ground = ground
        self.recipe = recipe
        self.schedule = schedule
        self.prices = prices
        self.layout = Layout()
        self.told: Scheduling | None = None
        self._before = Before(ground.view, books)
        self._shares = books.branches
        self._settled = ground.view.settled
        self._fixed = books.meter.view(ground.view).fixed
        self._ledger = EditLedger(prices=prices)
        self._fold = RentOrBuy(seed=schedule.seed)
        self._due: dict[int, list[Due]] = defaultdict(list)
        for due in schedule.waiting(ground):
            self._due[due.at].append(due)
        self._marked: dict[int, Due] = {}
        self._numbers = 0
        self._upto = [0]
        self._weights: dict[int, int] = {}
        self._edits = Decision(why=Why.NOTHING)

    # --- one exchange ---------------------------------------------------------------------------------------------------------

    def step(self, index: int) -> None:
        exchange = self.ground.view.exchanges[index]
        if exchange.role is Role.ASSISTANT and index >= self._settled:  # a call was made with what stood before it
            self._ledger = self._ledger.called()
            self._fold = self._fold.paid(self._rent())
        whole = self.ground.whole(index)
        self.layout = self.layout.grown(whole, exchange.messages)
        if self.recipe.always is not None:
            self._took(self.recipe.always(self.ground, index, self.layout), Why.LOST, index)
        self._upto.append(self._upto[-1] + self._read(index))
        self._mark(index)
        self._edits = Decision(why=Why.NOTHING)
        fold: Folding | None = None
        if self.recipe.when(self.ground, index, self.layout):
            fold = self._forced(index)
        if index >= self._settled:
            self._decide(index)
            fold = self._folded(index) if fold is None and self.schedule.fold else fold
            self.told = Scheduling(edits=self._edits, fold=fold, prices=self.prices)

    def _mark(self, index: int) -> None:
        """Let what is due from here on wait; of the newest response nothing may be set aside yet."""
        for due in self._due.pop(index, ()):
            if due.index == self.ground.response(index):
                self._due[index + 1].append(due)
                continue
            exchange = self.ground.view.exchanges[due.index]
            saved = saving(self.ground, due.index, (due.change,))
            if saved <= 0 or exchange.pinned or exchange.open or exchange.derived or not self._stands(due):
                continue
            self._numbers += 1
            self._marked[self._numbers] = due
            loss = 0.0 if due.spent else self.prices.again(saved, self.layout.size + self._fixed)
            self._ledger = self._ledger.marked(Edit(place=due.index, number=self._numbers, saved=saved, loss=loss))

    def _stands(self, due: Due) -> bool:
        """Tell whether a block is shown as it was recorded."""
        index, layout = due.index, self.layout
        shown = index in layout.kept if index < layout.cut else index not in layout.holes
        if not shown:
            return False
        block = next(each for each in self.ground.view.exchanges[index].blocks() if each.origin == due.change.target)
        return not touched(layout, index, block)

    # --- decisions ------------------------------------------------------------------------------------------------------------

    def _decide(self, index: int) -> None:
        """Decide about what waits, before the call that comes after an exchange."""
        free_from, why = self._before.free(index, self.prices)
        decision = self._ledger.decide(self._behind, free_from=free_from, why=why, branches=self._weight)
        if self._edits.cut is None:  # else something was flushed at this call already, because the room was made
            self._edits = decision
        if decision.cut is not None:
            self._flush(decision.cut, index)
        sent = self._before.sent(index)
        if sent:
            self._flush_sent(sent)

    def _flush(self, cut: int, index: int) -> None:
        """Make the edits at or right of a place."""
        made = [edit for edit in self._ledger.waiting if edit.place >= cut]
        self._ledger = self._ledger.flushed(cut)
        self._make([self._marked.pop(edit.number) for edit in made])
        self._sums(cut, index)

    def _flush_sent(self, sent: frozenset[Handle]) -> None:
        """Make the edits that the last call was sent with: to take one back would break the prefix for nothing."""
        made = [edit for edit in self._ledger.waiting if self._marked[edit.number].change.target in sent]
        if made:
            numbers = {edit.number for edit in made}
            self._ledger = self._ledger.without(lambda edit: edit.number in numbers)
            self._make([self._marked.pop(edit.number) for edit in made])
            self._sums(made[0].place, len(self._upto) - 2)

    def _make(self, dues: Sequence[Due]) -> None:
        by_operator: dict[str, dict[int, list[Due]]] = defaultdict(lambda: defaultdict(list))
        for due in dues:
            by_operator[due.operator][due.index].append(due)
        for operator, changes in sorted(by_operator.items()):
            wanted = {index: [due.change for due in found] for index, found in changes.items()}
            self.layout = edited(self.ground, self.layout, wanted, operator)

    def _forced(self, index: int) -> Folding:
        """Make the room that is missing."""
        excess = self._excess(self.ground.room)
        rent, price = self._fold.reached(self._rent()), self._price(self.ground.room, cold=False)
        smaller = self.recipe.edit(self.ground, index, self.layout)
        self._took(replace(smaller, at=index), Why.FORCED, index)
        self._fold = self._fold.folded()
        return Folding(done=True, why=Why.FORCED, rent=rent, price=price, excess=excess)

    def _folded(self, index: int) -> Folding | None:
        """Decide about a fold by rent or buy."""
        free_from, why = self._before.free(index, self.prices)
        room = self._target()
        rent, price = self._rent(), self._price(room, cold=free_from == 0)
        reached, excess = self._fold.reached(rent), self._excess(room)
        due = excess >= _PROGRESS * self.layout.size and self._fold.due(rent, price)
        if due:
            after = self.recipe.edit(self.ground.within(room), index, self.layout)
            if after.size <= (1 - _PROGRESS) * self.layout.size:
                self._took(replace(after, at=index), why if free_from == 0 else Why.PAID, index)
                self._fold = self._fold.folded()
                return Folding(
                    done=True, why=why if free_from == 0 else Why.PAID, rent=reached, price=price, excess=excess
                )
        return Folding(done=False, why=Why.KEPT, rent=reached, price=price, excess=excess)

    def _took(self, layout: Layout, why: Why, index: int) -> None:
        """Take a layout that an operator gave: what waits right of its first change may go with it, for nothing."""
        before, self.layout = self.layout, layout
        if layout is before:
            return
        changed = _first_change(before, layout)
        if why is Why.LOST and changed == index:
            return  # an output that was never sent whole
        self._ledger = self._ledger.without(lambda edit: not self._stands(self._marked[edit.number]))
        self._sums(0, index)
        decision = self._ledger.decide(self._behind, free_from=changed, why=why, branches=self._weight)
        if decision.cut is not None:
            self._edits = decision
            self._flush(decision.cut, index)

    # --- figures --------------------------------------------------------------------------------------------------------------

    def _target(self) -> Room:
        """Give the room that a fold before the room is full aims at."""
        room = self.ground.room
        low = room.low if self.schedule.keep is None else min(room.low, self.schedule.keep)
        return Room(
            high=max(min(room.high, self.layout.size), low),
            low=low,
            keep_last=room.keep_last,
            keep_recent=room.keep_recent,
        )

    def _excess(self, room: Room) -> int:
        return max(0, self.layout.size - room.low)

    def _rent(self) -> float:
        """Give what the next call pays for what a fold would have taken away."""
        return self.prices.rent * self._excess(self._target())

    def _price(self, room: Room, *, cold: bool) -> float:
        """Give what a fold costs more than none: what it leaves is written anew, and the work loses something."""
        left = min(room.low, self.layout.size)
        if cold:
            return self.prices.loss - self.prices.write * self._excess(room)
        return self.prices.loss + self.prices.anew * left

    def _read(self, index: int) -> int:
        """Give the tokens of an exchange as it is shown, as often as a living branch reads them."""
        layout = self.layout
        if (index < layout.cut and index not in layout.kept) or index in layout.holes:
            return 0
        return self.ground.size(index, layout) * self._weight(index)

    def _weight(self, index: int) -> int:
        if self._shares is None:
            return 1
        if index not in self._weights:
            self._weights[index] = max(self._shares(self.ground.view.exchanges[index], self.prices.lifetime), 1)
        return self._weights[index]

    def _sums(self, start: int, index: int) -> None:
        """Add up again what stands where, from an exchange on."""
        kept = frozenset(self.layout.kept)
        del self._upto[start + 1 :]
        sizes = [
            0
            if (each < self.layout.cut and each not in kept) or each in self.layout.holes
            else self.ground.size(each, self.layout) * self._weight(each)
            for each in range(start, index + 1)
        ]
        self._upto.extend(list(accumulate(sizes, initial=self._upto[-1]))[1:])

    def _behind(self, place: int) -> int:
        return self._upto[-1] - self._upto[min(place, len(self._upto) - 1)]


def _first_change(before: Layout, after: Layout) -> int:
    """Give the first exchange that a layout shows otherwise than the one before."""
    if before.cut != after.cut or before.kept != after.kept:
        return 0
    places = [index for index, form in after.forms.items() if before.forms.get(index) is not form]
    places += [index for index in before.forms if index not in after.forms]
    places += [
        index for index in {*before.holes, *after.holes} if before.holes.get(index) is not after.holes.get(index)
    ]
    return min(places, default=after.cut)
