"""The ground that operators work on: the exchanges of a view with their sizes, and how much room there is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from types import MappingProxyType
from typing import Protocol

from palaver.context.measure import Meter
from palaver.ids import DialogId
from palaver.messages import Role, Speaker
from palaver.tokens import Budget
from palaver.view import Exchange, Insert, Omission, Reason, Rewrite, View

__all__ = ["GONE", "Form", "Ground", "Layout", "StandIn"]

_LOW = 2
"""A cut leaves at most one half of the room: every cut loses the provider's cache of what stands behind it, and cutting to half the room
halves what is sent and makes cuts rare. (OpenHands condenses to half of its maximum too: condenser config, max_size // 2.)"""

GONE = frozenset({Reason.OVER_BUDGET, Reason.FOLDED, Reason.COMPACTED, Reason.MANAGER})
"""Why something that the user or a model said is left out of a view: it had to become smaller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """An exchange in another form.

    Attributes:
        rewrites: The blocks that are shown in another form.
        tokens: The size of the exchange so.
    """

    rewrites: tuple[Rewrite, ...]
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How the exchanges up to some point are shown.

    Attributes:
        cut: The first exchange of the tail that is shown without a gap.
        kept: The exchanges before the cut that are shown.
        forms: The exchanges that are shown in another form.
        tokens: The size of all that, in tokens, with the room of what stands for the exchanges that are left out.
        told: Whether something stands for them; not where even that has no room.
    """

    cut: int = 0
    kept: tuple[int, ...] = ()
    forms: Mapping[int, Form] = field(default_factory=lambda: MappingProxyType({}))
    tokens: int = 0
    told: bool = True

    def shown(self, upto: int) -> Iterator[int]:
        """Give the exchanges that are shown, up to and including `upto`."""
        yield from self.kept
        yield from range(self.cut, upto + 1)


class StandIn(Protocol):
    """What stands for exchanges that were left out. A policy chooses one; operators only know how much room it needs."""

    @property
    def reason(self) -> Reason:
        """Why they are left out."""
        ...

    def room(self, ground: Ground, upto: int, /) -> int:
        """Give the tokens that it has at most, whatever is left out of the exchanges up to `upto`. No later exchange changes it."""
        ...

    def insert(self, ground: Ground, layout: Layout, /) -> Insert:
        """Make it, for what a layout leaves out."""
        ...


@dataclass(frozen=True)
class Ground:
    """A view, measured, with the room there is.

    Attributes:
        view: The view.
        meter: What counts.
        budget: What one request may occupy.
        stand_in: What stands for exchanges that are left out.
    """

    view: View
    meter: Meter
    budget: Budget
    stand_in: StandIn

    @cached_property
    def high(self) -> int:
        """Tokens that exchanges may occupy; beyond it something must be done."""
        return self.budget.for_input - self.meter.view(self.view).fixed

    @cached_property
    def low(self) -> int:
        """Tokens that exchanges occupy at most after it was done, so that it need not be done again soon."""
        return self.high // _LOW

    @property
    def enough(self) -> int:
        """Tokens down to which setting aside must get, so that nothing needs to be dropped: half-way between low and high."""
        return (self.low + self.high) // 2

    def whole(self, index: int) -> int:
        """Give the size of an exchange as it is."""
        return self.meter.exchange(self.view.exchanges[index])

    def size(self, index: int, layout: Layout) -> int:
        """Give the size of an exchange as a layout shows it."""
        form = layout.forms.get(index)
        return self.whole(index) if form is None else form.tokens

    def inserted(self, text: str, label: str) -> int:
        """Give the size of a derived text as an exchange of its own, rounded up."""
        return self.meter.derived(text, label)

    def dialogs(self, upto: int) -> tuple[DialogId, ...]:
        """Give the dialogs that what was left out up to `upto` may come from."""
        return tuple(dialog for dialog, first in self._dialogs.items() if first <= upto)

    @cached_property
    def _dialogs(self) -> Mapping[DialogId, int]:
        """Each dialog with the first exchange that holds some of it; -1 for one that the view leaves some of out already."""
        found: dict[DialogId, int] = {}
        for omission in self.gone:
            for handle in islice(omission.handles(), 1):
                found.setdefault(handle.dialog, -1)
        for index, exchange in enumerate(self.view.exchanges):
            for run in exchange.runs:
                found.setdefault(run.dialog, index)
        return found

    @cached_property
    def _newest(self) -> tuple[tuple[int, int], ...]:
        """For each exchange, the newest user's words and the newest response up to and including it, -1 for none."""
        user = response = -1
        newest = []
        for index, exchange in enumerate(self.view.exchanges):
            if exchange.role is Role.ASSISTANT:
                response = index
            elif _asks(exchange):
                user = index
            newest.append((user, response))
        return tuple(newest)

    @cached_property
    def _pinned(self) -> tuple[int, ...]:
        return tuple(index for index, exchange in enumerate(self.view.exchanges) if exchange.pinned)

    def protected(self, upto: int) -> frozenset[int]:
        """Give the exchanges that a view up to `upto` must hold: the newest user message, the newest response, and what is pinned.

        The newest response stands for the open calls: whether one of them was open then, nobody can tell afterwards.
        """
        pinned = (index for index in self._pinned if index <= upto)
        return frozenset(index for index in (*self._newest[upto], *pinned) if index >= 0)

    def response(self, upto: int) -> int:
        """Give the newest response up to `upto`, or -1."""
        return self._newest[upto][1]

    @cached_property
    def gone(self) -> tuple[Omission, ...]:
        """What the view leaves out already because it had to become smaller."""
        return tuple(omission for omission in self.view.omissions if omission.reason in GONE)

    def dropped(self, layout: Layout) -> tuple[Omission, ...]:
        """Give what a layout leaves out, with what the view left out before."""
        return (*self.gone, *(gone for index in self.missing(layout) for gone in self._omissions(index)))

    def missing(self, layout: Layout) -> Iterator[int]:
        """Give the exchanges that a layout leaves out."""
        kept = frozenset(layout.kept)
        return (index for index in range(layout.cut) if index not in kept)

    def gap(self, layout: Layout) -> int:
        """Give the exchange before which something stands for what a layout leaves out: the first one behind all of it."""
        return max(self.missing(layout), default=-1) + 1

    def _omissions(self, index: int) -> Iterator[Omission]:
        exchange = self.view.exchanges[index]
        for number, run in enumerate(exchange.runs):
            yield Omission(
                reason=Reason.OVER_BUDGET,
                span=run,
                messages=0 if number else exchange.messages,
                size=0 if number else exchange.size,
            )


def _asks(exchange: Exchange) -> bool:
    """Tell whether these are words of the user."""
    return exchange.role is Role.USER and not exchange.derived and exchange.turns[0].blocks[0].speaker is Speaker.HUMAN
