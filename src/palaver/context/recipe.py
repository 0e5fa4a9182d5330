"""Recipes: what a preset is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from palaver.context.ground import Ground, Keep, Layout, Room, StandIn
from palaver.context.operators import Edit
from palaver.context.schedule.due import Schedule
from palaver.context.steps import over
from palaver.view import Insert

__all__ = ["Recipe"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How a preset makes a view smaller.

    Attributes:
        room: How much room there is, and down to what it is cut.
        edit: What is done where the room is outgrown.
        stand_in: What stands for exchanges that are left out.
        keeps: What should stay besides what must.
        when: When something is done.
        always: What is done at every exchange.
        schedule: When edits are made besides, by what they cost and save; None for never. Where no price is known, nothing is scheduled.
        opening: Makes what stands in the view where nothing is left out of it; None for nothing.
    """

    room: Room
    edit: Edit
    stand_in: StandIn
    keeps: tuple[Keep, ...] = ()
    when: Callable[[Ground, int, Layout], bool] = over
    always: Edit | None = None
    schedule: Schedule | None = None
    opening: Callable[[Ground, Layout], Iterable[Insert]] | None = None
