"""The edit ledger: what could leave the view, what it has cost so far that it did not, and when that pays for an edit.

Every edit loses the provider's cache of all that stands behind it. So edits wait. Each pays rent: its tokens are read again at every call. When the
rent of all that waits at or right of some place reaches what an edit there costs, all of it goes at once: the leftmost such place, because what
stands further right is then written anew anyway. Where the cache is cold or lost an edit costs nothing, and all that waits goes.

This is aggregation of control messages on a chain (Bienkowski, Byrka, Chrobak, Jeż, Sgall, Stachowiak: Online Control Message Aggregation in Chain
Networks, WADS 2013: 5-competitive, no algorithm better than 2 + the golden ratio), with distances that grow; how far it is from the optimum is
measured (docs/scheduling.md).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple

from palaver.context.schedule.prices import PriceSheet
from palaver.errors import InvalidInput

__all__ = ["Decision", "Edit", "EditLedger", "Why"]


class Why(StrEnum):
    """Why edits were flushed, or kept."""

    NOTHING = "nothing"
    """Nothing waits."""
    KEPT = "kept"
    """No suffix pays for itself yet."""
    PAID = "paid"
    """The rent of a suffix reached its price."""
    COLD = "cold"
    """Nobody called for longer than the cache lives: everything is written anew, whatever it is."""
    LOST = "lost"
    """The prefix is not the cached one: another model, or an edit of somebody else's."""
    FORCED = "forced"
    """The window would be exceeded."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Edit:
    """An edit that waits.

    Attributes:
        place: Where it stands: the number of its exchange, counted from the left.
        number: Tells edits of one place apart.
        saved: Tokens that it takes out of every later request, at least 0.
        since: The number of the call since which it waits.
        reversible: Whether the model can have back all that it takes out.
        loss: What it costs the work, in units.
    """

    place: int
    number: int = 0
    saved: int
    since: int = 0
    reversible: bool = True
    loss: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What was decided before a call, with the numbers it was decided by. Prices are in units of one uncached input token.

    Attributes:
        why: Why.
        waiting: How many edits waited, and `tokens` of how many tokens.
        tokens: The tokens that all of them would save.
        cut: The place from which on edits were flushed; None where none was.
        flushed: How many were.
        saved: The tokens that these save at every later call.
        rent: What was paid for not having made them, up to this call; where all were kept, of the suffix that came nearest to its price.
        price: What making them costs at this call, likewise.
        behind: Tokens that are written anew because of it, likewise.
        branches: How many living branches read the prefix that breaks, at most.
    """

    why: Why
    waiting: int = 0
    tokens: int = 0
    cut: int | None = None
    flushed: int = 0
    saved: int = 0
    rent: float = 0.0
    price: float = 0.0
    behind: int = 0
    branches: int = 1

    def sentence(self) -> str:
        """Say it."""
        if self.why is Why.NOTHING:
            return "schedule: nothing waits"
        edits = "edit" if self.waiting == 1 else "edits"
        waiting = f"{self.waiting:,} {edits} of {self.tokens:,} tokens waited"
        figures = f"rent {self.rent:,.0f}, price {self.price:,.0f} for {self.behind:,} tokens written anew"
        shared = f", {self.branches} branches" if self.branches > 1 else ""
        if self.cut is None:
            return f"schedule: kept; {waiting}; {figures}{shared}"
        done = f"{self.flushed:,} flushed, {self.saved:,} tokens less"
        return f"schedule: {self.why.value}; {waiting}; {done}; {figures}{shared}"

    def as_data(self) -> Mapping[str, Any]:
        """Give it as JSON values."""
        rounded = {"rent": round(self.rent, 1), "price": round(self.price, 1)}
        names = ("waiting", "tokens", "cut", "flushed", "saved", "behind", "branches")
        return {"why": self.why.value, **{name: getattr(self, name) for name in names}, **rounded}

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Decision:
        """Read what `as_data` gave."""
        return cls(**{**data, "why": Why(data["why"])})


def _order(edit: Edit) -> tuple[int, int]:
    """Give what edits stand in the order of."""
    return edit.place, edit.number


class _Suffix(NamedTuple):
    """All edits at or right of a place."""

    cut: int
    edits: int
    saved: int
    rent: float
    price: float
    behind: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EditLedger:
    """The edits that wait, from left to right. A value: every change gives another one.

    Attributes:
        prices: What tokens cost.
        calls: How many calls there were.
        waiting: The edits.
    """

    prices: PriceSheet
    calls: int = 0
    waiting: tuple[Edit, ...] = field(default=())

    def marked(self, *edits: Edit) -> EditLedger:
        """Let edits wait from this call on.

        Raises:
            InvalidInput: One of them waits already, or saves less than nothing.
        """
        waiting = list(self.waiting)
        for edit in edits:
            at = bisect_left(waiting, _order(edit), key=_order)
            if edit.saved < 0 or (at < len(waiting) and _order(waiting[at]) == _order(edit)):
                raise InvalidInput(f"Edit {edit.number} of exchange {edit.place} waits already, or saves nothing.")
            waiting.insert(at, replace(edit, since=self.calls))
        return replace(self, waiting=tuple(waiting))

    def called(self) -> EditLedger:
        """Take note of a call that read all that waits."""
        return replace(self, calls=self.calls + 1)

    def flushed(self, cut: int) -> EditLedger:
        """Take the edits at or right of a place out: they were made."""
        return replace(self, waiting=self.waiting[: bisect_left(self.waiting, cut, key=lambda edit: edit.place)])

    def without(self, gone: Callable[[Edit], bool]) -> EditLedger:
        """Take edits out that are no more to be made, because what they would change has left the view."""
        kept = tuple(edit for edit in self.waiting if not gone(edit))
        return self if len(kept) == len(self.waiting) else replace(self, waiting=kept)

    def rent(self, edit: Edit) -> float:
        """Give what an edit has cost so far because it was not made: its tokens, read at every call since it waits."""
        return self.prices.rent * edit.saved * (self.calls - edit.since)

    def decide(
        self,
        behind: Callable[[int], int],
        *,
        free_from: int | None = None,
        why: Why = Why.LOST,
        branches: Callable[[int], int] = lambda _: 1,
    ) -> Decision:
        """Decide before a call what to flush.

        Args:
            behind: Gives the tokens that stand at or right of a place, the new ones and the edits' own included; a token that several
                living branches share may count as often.
            free_from: From this place on everything is written anew anyway: 0 where the cache is cold or lost. None where it holds.
            why: Why so: `Why.COLD` or `Why.LOST`.
            branches: Gives how many living branches read the exchange at a place.
        """
        if not self.waiting:
            return Decision(why=Why.NOTHING)
        tokens = sum(edit.saved for edit in self.waiting)
        nearest: _Suffix | None = None
        taken: _Suffix | None = None
        for suffix in self._suffixes(behind, free_from):
            if suffix.rent >= suffix.price:
                taken = suffix
            if nearest is None or suffix.price - suffix.rent < nearest.price - nearest.rent:
                nearest = suffix
        told = taken or nearest
        assert told is not None  # noqa: S101 - there is a suffix for each edit that waits
        free = taken is not None and free_from is not None and taken.cut >= free_from
        return Decision(
            why=Why.KEPT if taken is None else why if free else Why.PAID,
            waiting=len(self.waiting),
            tokens=tokens,
            cut=None if taken is None else taken.cut,
            flushed=0 if taken is None else taken.edits,
            saved=0 if taken is None else taken.saved,
            rent=told.rent,
            price=told.price,
            behind=told.behind,
            branches=branches(told.cut),
        )

    def _suffixes(self, behind: Callable[[int], int], free_from: int | None) -> Iterator[_Suffix]:
        """Give the suffixes from the right to the left, each with what it costs at the next call.

        Written anew at `write` is what is left behind the cut, where else all of it would have been read: the tokens behind are what differs,
        and those that the edits take out are not written at all. Right of `free_from` nothing would have been read.
        """
        sheet = self.prices
        edits = saved = 0
        rent = loss = 0.0
        covered = 0 if free_from is None else behind(free_from)
        for index in range(len(self.waiting) - 1, -1, -1):
            edit = self.waiting[index]
            edits += 1
            saved += edit.saved
            rent += self.rent(edit)
            loss += edit.loss
            if index and self.waiting[index - 1].place == edit.place:
                continue  # edits of one exchange go together
            tokens = behind(edit.place)
            broken = max(tokens - covered, 0)
            yield _Suffix(edit.place, edits, saved, rent, sheet.anew * broken - sheet.write * saved + loss, broken)
