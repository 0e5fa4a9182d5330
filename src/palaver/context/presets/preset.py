"""What a preset is: a recipe of operators, with the room, the pins and the stand-in that a system is known to use."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

from palaver.context.ground import Ground, Keep, Layout, Room, StandIn
from palaver.context.ledger import Ledger
from palaver.context.manager import Policy
from palaver.context.operators import Edit
from palaver.context.record.stand_in import MOST, SHARE
from palaver.context.steps import laid_out, over, plan_of
from palaver.tokens import Budget, ModelInfo, Rates, model_info
from palaver.view import Plan, View

__all__ = ["Preset", "Recipe", "tail"]


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
    """

    room: Room
    edit: Edit
    stand_in: StandIn
    keeps: tuple[Keep, ...] = ()
    when: Callable[[Ground, int, Layout], bool] = over
    always: Edit | None = None


class Preset(Policy):
    """A policy made of operators, with the published constants of a system.

    Where the original breaks a pair, drops the newest ask or loses what it left out, this does not: the same laws hold as for every
    policy. What the original leaves to a model is told by code until a model's summary is put in its place.

    Attributes:
        words: The budget of the original, in its own words; what the caller says replaces it.
        headings: The sections that the original asks of a model's summary; empty where it makes none.
    """

    words: ClassVar[Mapping[str, object]] = {}
    headings: ClassVar[tuple[str, ...]] = ()

    @cached_property
    def budget(self) -> Budget:
        """What one request may occupy: the original's division of the model's window, unless the caller says otherwise.

        Raises:
            InvalidInput: The policy was made without a model and without a window.
        """
        said = {word: value for word, value in self._words.items() if value is not None}
        info = model_info(self.model_name) if self.model_name else None
        own = {} if info is None else self.own(info)
        if own and info is not None and "max_tokens" in said:  # the original, for a model with that window
            window = min(Budget.parse({"max_tokens": said.pop("max_tokens")}).max_tokens, info.context_window)
            info = replace(info, context_window=window, max_input=min(info.max_input, window))
        return Budget.parse({**own, **said}, info)

    def own(self, model: ModelInfo) -> Mapping[str, object]:  # noqa: ARG002 - most do not look at the model
        """Give the original's budget for a model, in its own words."""
        return self.words

    @abstractmethod
    def recipe(self, room: Room, ledger: Ledger) -> Recipe:
        """Say how views are made smaller.

        Args:
            room: The room that the budget leaves for the exchanges.
            ledger: What is known besides the view.
        """

    def plan(self, view: View, ledger: Ledger, budget: Budget, prices: Rates | None) -> Plan:  # noqa: ARG002 - prices do not matter to it
        """Say what to change."""
        recipe = self.recipe(Room.of(budget, ledger.meter.view(view)), ledger)
        ground = Ground(view, ledger.meter, recipe.room, recipe.stand_in, recipe.keeps)
        return plan_of(ground, laid_out(ground, recipe.edit, when=recipe.when, always=recipe.always), self.name)


def tail(room: Room, tokens: int) -> Room:
    """Give the room that is cut down to so many tokens at the end and a record, where that is less than the whole."""
    low = min(tokens + min(room.high // SHARE, MOST), max(room.high - 1, 0))
    return Room(high=room.high, low=low, keep_last=room.keep_last, keep_recent=room.keep_recent)
