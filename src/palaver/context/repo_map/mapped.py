"""A map of the repository beside what stands for exchanges that were left out: what was read there is out of sight now."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from palaver.context.ground import Ground, Layout, StandIn
from palaver.context.measure import Measure, Meter
from palaver.context.record.carried import sources_of
from palaver.context.repo_map.interest import interest_of
from palaver.context.repo_map.repo_map import TOKENS, RepoMap
from palaver.messages import Trust
from palaver.view import Insert, Reason

__all__ = ["LABEL", "Mapped"]

LABEL = "repo map"
"""What the model is told that the text is."""

_SHARE = 4
"""At most a quarter of the room is for the map."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapped:
    """Stands for exchanges with what another stand-in says, and a map drawn for what they were at.

    Nothing but what is left out decides what is shown: so the map stays the same to the byte until more is left out, when the prefix is
    lost anyhow.

    Attributes:
        stand_in: The other stand-in.
        repo_map: The map.
        most: The most that it may have, in the unit of the measure.
    """

    stand_in: StandIn
    repo_map: RepoMap = field(compare=False)
    most: int = TOKENS

    @property
    def reason(self) -> Reason:
        """Why exchanges are left out."""
        return self.stand_in.reason

    def room(self, ground: Ground, upto: int) -> int:
        """Give what it has at most."""
        return self.stand_in.room(ground, upto) + self._room(ground)

    def _room(self, ground: Ground) -> int:
        return max(min(self.most, ground.room.high // _SHARE), 0)

    def inserts(self, ground: Ground, layout: Layout) -> tuple[Insert, ...]:
        """Make what the other one says, and the map."""
        return (*self.stand_in.inserts(ground, layout), *self._map(ground, layout))

    def _map(self, ground: Ground, layout: Layout) -> tuple[Insert, ...]:
        missing = frozenset(ground.missing(layout))
        gone = [ground.view.exchanges[index] for index in sorted(missing)]
        acts = [act for act in ground.acts.all if act.index in missing]
        free = self._room(ground) - ground.inserted("", LABEL)
        interest = interest_of(gone, acts, shown=False)
        text = self.repo_map.drawn(interest, free, ground.meter.text, _measure(ground.meter))
        if not text:
            return ()
        sources = sources_of(gone)
        return (Insert(before=ground.gap(layout), text=text, label=LABEL, sources=sources, trust=Trust.OUTSIDE),)


def _measure(meter: Measure) -> Hashable:
    """Tell one measure from another: by its unit, or, of tokens, by what counts them."""
    counter: Any = meter.counter if isinstance(meter, Meter) else meter.unit
    try:
        hash(counter)
    except TypeError:  # one of the caller's own
        return id(counter)
    found: Hashable = counter
    return found
