"""What a conversation's last requests were compiled to and checked for, so that the next one costs what is new in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from palaver.wire.held import Held
from palaver.wire.profiles import Profile
from palaver.wire.rounds import Round

__all__ = ["Compiled", "Shelf"]

_SHELVES = 4
"""Providers and models for which something is kept at once: an agent asks one, and perhaps others after failures."""


class _Label(NamedTuple):
    """What a shelf is for: rounds of other requests are other ones."""

    profile: Profile
    model: str
    in_force: str
    asked: bool


@dataclass(slots=True)
class Shelf:
    """What is kept for one provider and model.

    Attributes:
        rounds: The rounds of the last request.
        checked: What the last request that was found fine had.
        made: How many rounds were compiled in all.
    """

    rounds: Mapping[tuple[int, ...], Round] = field(default_factory=dict)
    checked: Held = field(default_factory=Held)
    made: int = 0


class Compiled:
    """What is gone on with from request to request of one conversation.

    It holds what its last request had, for a few providers and models, and never more; and it changes no request: whoever compiles without it
    gets the same.
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        self._shelves: list[tuple[_Label, Shelf]] = []

    @property
    def held(self) -> int:
        """How many rounds are kept in all."""
        return sum(len(shelf.rounds) for _, shelf in self._shelves)

    def shelf(self, profile: Profile, model: str, in_force: str, *, asked: bool) -> Shelf:
        """Give what is kept for requests of one kind, the shelf that was asked for longest ago made free for a new kind.

        Args:
            profile: The provider's rules.
            model: The model that the request is for.
            in_force: The model in force in the view.
            asked: Whether the request asks for tools of the provider's own.
        """
        label = _Label(profile, model, in_force, asked)
        found = next((one for one in self._shelves if one[0] == label), (label, Shelf()))
        others = [one for one in self._shelves if one[1] is not found[1]]
        self._shelves = [found, *others][:_SHELVES]
        return found[1]
