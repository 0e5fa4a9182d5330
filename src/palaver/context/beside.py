"""What stands beside that which another stand-in says of exchanges that were left out: their files, or a map of the repository."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

from palaver.context.ground import Ground, Layout, StandIn
from palaver.view import Insert, Reason

__all__ = ["Beside"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside(ABC):
    """Stands for exchanges with what another stand-in says, and something of its own behind it.

    Attributes:
        stand_in: The other stand-in.
    """

    stand_in: StandIn

    @property
    def reason(self) -> Reason:
        """Why exchanges are left out."""
        return self.stand_in.reason

    def room(self, ground: Ground, upto: int) -> int:
        """Give what both have at most."""
        return self.stand_in.room(ground, upto) + self.own_room(ground)

    def inserts(self, ground: Ground, layout: Layout) -> tuple[Insert, ...]:
        """Make both."""
        return (*self.stand_in.inserts(ground, layout), *self.own(ground, layout))

    @abstractmethod
    def own_room(self, ground: Ground) -> int:
        """Give what its own has at most."""

    @abstractmethod
    def own(self, ground: Ground, layout: Layout) -> Iterable[Insert]:
        """Make its own."""
