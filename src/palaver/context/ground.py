"""The ground that operators work on: the exchanges of a view, measured, how much room there is, and what must stay."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from types import MappingProxyType
from typing import Protocol, TypeAlias

from palaver.context.measure import Measure, Size
from palaver.context.work.acts import Acts, acts_of
from palaver.ids import DialogId
from palaver.log import Handle, gaps, part_of
from palaver.messages import Role, Speaker
from palaver.tokens import Budget
from palaver.view import Exchange, Insert, Omission, Reason, Remove, Rewrite, View

__all__ = ["GONE", "Done", "Form", "Ground", "Hole", "Keep", "Layout", "Room", "StandIn", "asks"]

_LOW = 2
"""A cut leaves at most one half of the room: every cut loses the provider's cache of what stands behind it, and cutting to half the room
halves what is sent and makes cuts rare. (OpenHands condenses to half of its maximum too: condenser config, max_size // 2.)"""

GONE = frozenset({Reason.OVER_BUDGET, Reason.FOLDED, Reason.COMPACTED, Reason.MANAGER})
"""Why something that the user or a model said is left out of a view: it had to become smaller."""


@dataclass(frozen=True, slots=True)
class Done:
    """What an operator did to an exchange.

    Attributes:
        operator: The operator's name.
        blocks: How many blocks it shows in another form, or leaves out.
        saved: What that saved.
    """

    operator: str
    blocks: int
    saved: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """An exchange in another form.

    Attributes:
        rewrites: The blocks that are shown in another form.
        removes: The blocks that are left out.
        size: The size of the exchange so.
        done: Who did what of it.
    """

    rewrites: tuple[Rewrite, ...] = ()
    removes: tuple[Remove, ...] = ()
    size: int
    done: tuple[Done, ...] = ()


@dataclass(frozen=True, slots=True)
class Hole:
    """An exchange that is left out among others that are shown, with a line in its place.

    Attributes:
        text: The line.
        operator: Who left it out.
        saved: What that saved.
    """

    text: str
    operator: str
    saved: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How the exchanges up to some point are shown.

    Attributes:
        cut: The first exchange of the tail that is shown without a gap, but for holes.
        kept: The exchanges before the cut that are shown.
        forms: The exchanges that are shown in another form.
        holes: The exchanges from the cut on that are left out.
        size: The size of all that, with the room of what stands for the exchanges that are left out.
        messages: How many messages are shown, what stands for others not counted.
        told: Whether something stands for them; not where even that has no room.
        at: The newest exchange when it was last made smaller because the room was outgrown; -1 where it never was.
    """

    cut: int = 0
    kept: tuple[int, ...] = ()
    forms: Mapping[int, Form] = field(default_factory=lambda: MappingProxyType({}))
    holes: Mapping[int, Hole] = field(default_factory=lambda: MappingProxyType({}))
    size: int = 0
    messages: int = 0
    told: bool = True
    at: int = -1

    def grown(self, size: int, messages: int) -> Layout:
        """Give the same layout with an exchange more behind it."""
        return Layout(
            cut=self.cut,
            kept=self.kept,
            forms=self.forms,
            holes=self.holes,
            size=self.size + size,
            messages=self.messages + messages,
            told=self.told,
            at=self.at,
        )

    def shown(self, upto: int) -> Iterator[int]:
        """Give the exchanges that are shown, up to and including `upto`."""
        yield from self.kept
        if self.holes:
            yield from (index for index in range(self.cut, upto + 1) if index not in self.holes)
        else:
            yield from range(self.cut, upto + 1)


class StandIn(Protocol):
    """What stands for exchanges that were left out. A policy chooses one; operators only know how much room it needs."""

    @property
    def reason(self) -> Reason:
        """Why they are left out."""
        ...

    def room(self, ground: Ground, upto: int, /) -> int:
        """Give the size that it has at most, whatever is left out of the exchanges up to `upto`. No later exchange changes it."""
        ...

    def inserts(self, ground: Ground, layout: Layout, /) -> tuple[Insert, ...]:
        """Make it, for what a layout leaves out."""
        ...


Keep: TypeAlias = "Callable[[Ground, int], Iterable[int]]"
"""Says which exchanges up to some point should stay where there is room, besides those that every view must hold. What it says must
not depend on later ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """How much the exchanges of a view may occupy.

    Attributes:
        high: Beyond this something must be done.
        low: Down to this it is done, so that it need not be done again soon.
        keep_last: Messages at the end that are left alone as far as the room allows.
        keep_recent: How much at the end is left alone as far as the room allows.
    """

    high: int
    low: int
    keep_last: int = 0
    keep_recent: int = 0

    @classmethod
    def of(cls, budget: Budget, size: Size) -> Room:
        """Give the room that a budget leaves for the exchanges of a view of this size; a cut goes down to half of it."""
        high = budget.for_input - size.fixed
        return cls(high=high, low=high // _LOW, keep_last=budget.keep_last, keep_recent=budget.keep_recent)

    @classmethod
    def within(cls, most: int, size: Size) -> Room:
        """Give the room where a whole request may have so much of some unit."""
        high = most - size.fixed
        return cls(high=high, low=high // _LOW)

    @property
    def enough(self) -> int:
        """The size down to which setting aside must get, so that nothing needs to be dropped: half-way between low and high."""
        return (self.low + self.high) // 2


@dataclass(frozen=True)
class Ground:
    """A view, measured, with the room there is.

    Attributes:
        view: The view.
        meter: What measures.
        room: How much room there is.
        stand_in: What stands for exchanges that are left out.
        keeps: What should stay besides what must.
    """

    view: View
    meter: Measure
    room: Room
    stand_in: StandIn
    keeps: tuple[Keep, ...] = ()

    @cached_property
    def acts(self) -> Acts:
        """The calls with their results."""
        return acts_of(self.view.exchanges, self.meter.acts)

    def within(self, room: Room) -> Ground:
        """Give the same ground with other room; what was found of the exchanges is not looked for again."""
        _ = self._dialogs, self._newest, self._pinned, self.asks, self.gone  # found once, however many rooms there are
        other = replace(self, room=room)
        same = {name: found for name, found in vars(self).items() if name not in vars(other) and name != "_recent"}
        vars(other).update(same)
        return other

    def whole(self, index: int) -> int:
        """Give the size of an exchange as it is."""
        return self.meter.exchange(self.view.exchanges[index])

    def size(self, index: int, layout: Layout) -> int:
        """Give the size of an exchange as a layout shows it."""
        form = layout.forms.get(index)
        return self.whole(index) if form is None else form.size

    def inserted(self, text: str, label: str) -> int:
        """Give the size of a derived text as an exchange of its own, rounded up."""
        return self.meter.derived(text, label)

    def dialogs(self, upto: int) -> tuple[DialogId, ...]:
        """Give the dialogs that what was left out up to `upto` may come from: one as often as there are parts of it, where only parts are held."""
        return tuple(dialog for (dialog, _), first in self._dialogs.items() if first <= upto)

    @cached_property
    def _dialogs(self) -> Mapping[tuple[DialogId, int], int]:
        """Each part of a dialog with the first exchange that holds some of it; -1 for one that the view leaves some of out already."""
        between = gaps(self.view.shared)
        found: dict[tuple[DialogId, int], int] = {}
        for omission in self.gone:
            for handle in islice(omission.handles(), 1):
                found.setdefault(part_of(handle, between), -1)
        for index, exchange in enumerate(self.view.exchanges):
            for run in exchange.runs:
                found.setdefault(part_of(Handle(run.dialog, run.start), between), index)
        return found

    @cached_property
    def _newest(self) -> tuple[tuple[int, int, int], ...]:
        """For each exchange, the newest user's words, response, and output behind that response, up to and including it; -1 for none."""
        user = response = output = -1
        newest = []
        for index, exchange in enumerate(self.view.exchanges):
            if exchange.role is Role.ASSISTANT:
                response, output = index, -1
            elif exchange.observes:
                output = index
            elif asks(exchange):
                user = index
            newest.append((user, response, output))
        return tuple(newest)

    @cached_property
    def _pinned(self) -> tuple[int, ...]:
        return tuple(index for index, exchange in enumerate(self.view.exchanges) if exchange.pinned)

    def protected(self, upto: int) -> frozenset[int]:
        """Give the exchanges that a view up to `upto` must hold: the newest user message and response with its output, and what is pinned.

        The newest response stands for the open calls: whether one of them was open then, nobody can tell afterwards.
        """
        pinned = (index for index in self._pinned if index <= upto)
        return frozenset(index for index in (*self._newest[upto], *pinned) if index >= 0)

    def held(self, upto: int) -> frozenset[int]:
        """Give the exchanges that a cut at `upto` leaves in: the protected, and what else should stay."""
        return self.protected(upto).union(*(keep(self, upto) for keep in self.keeps))

    @cached_property
    def asks(self) -> tuple[int, ...]:
        """The exchanges that are words of the user, in order."""
        return tuple(index for index, exchange in enumerate(self.view.exchanges) if asks(exchange))

    def turn(self, upto: int, number: int) -> int:
        """Give the exchange with which the user's last so many turns up to `upto` begin; 0 where there are fewer."""
        count = bisect_right(self.asks, upto)
        return self.asks[count - number] if count >= number else 0

    def asked(self, upto: int) -> int:
        """Give the newest words of the user up to `upto`, or -1."""
        return self._newest[upto][0]

    def newest(self, upto: int) -> frozenset[int]:
        """Give the newest words of the user up to `upto`, the newest response, and in a text protocol the output that answers it."""
        return frozenset(self._newest[upto])

    def recent(self, upto: int) -> int:
        """Give the first of the exchanges up to `upto` that the room says to leave alone at the end; `upto + 1` where it says nothing."""
        if not (self.room.keep_last or self.room.keep_recent):
            return upto + 1
        if upto not in self._recent:
            index, messages, size = upto + 1, 0, 0
            while index > 0 and (messages < self.room.keep_last or size < self.room.keep_recent):
                index -= 1
                messages += self.view.exchanges[index].messages
                size += self.whole(index)
            self._recent[upto] = index
        return self._recent[upto]

    @cached_property
    def _recent(self) -> dict[int, int]:
        """What was found of each exchange that somebody asked for."""
        return {}

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
        """Give the exchanges before the cut that a layout leaves out."""
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


def asks(exchange: Exchange) -> bool:
    """Tell whether these are words of the user."""
    return exchange.role is Role.USER and not exchange.derived and exchange.turns[0].blocks[0].speaker is Speaker.HUMAN
