"""What a preset is: a recipe of operators, with the room, the pins and the stand-in that a system is known to use."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

from palaver.context.ground import Ground, Layout, Room
from palaver.context.ledger import Ledger
from palaver.context.manager import Policy
from palaver.context.measure import Size
from palaver.context.operators.put_back import recalled_first
from palaver.context.recipe import Recipe
from palaver.context.record.stand_in import MOST, SHARE
from palaver.context.schedule.prices import PriceSheet
from palaver.context.schedule.replay import scheduled
from palaver.context.steps import laid_out, plan_of
from palaver.tokens import Budget, ModelInfo, Rates, model_info
from palaver.tokens.vocabulary import read_words
from palaver.view import Plan, View

__all__ = ["Preset", "Recipe", "tail"]


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
        if info is None:
            return Budget.parse(said)
        own = self.own(info)
        if own and "max_tokens" in said:  # the original, for a model with that window
            window = min(Budget.parse({"max_tokens": said.pop("max_tokens")}).max_tokens, info.context_window)
            info = replace(info, context_window=window, max_input=min(info.max_input, window))
        return Budget.parse({**_clamped(own, info.context_window), **said}, info)

    @property
    def paced(self) -> bool:
        """True: the original has a limit of its own, and a size of its own that it cuts down to."""
        return True

    def own(self, model: ModelInfo) -> Mapping[str, object]:  # noqa: ARG002 - most do not look at the model
        """Give the original's budget for a model, in its own words."""
        return self.words

    @property
    def enabled(self) -> bool:
        """Whether it does anything; where its configuration turns it off, every view stays as it is."""
        return True

    @cached_property
    def left_alone(self) -> Mapping[str, Any]:
        """What the policy itself was told to leave alone at the end, in the words of a budget: `keep_last`, `keep_recent`."""
        said = read_words(self._words)
        return {word: said[word] for word in ("keep_last", "keep_recent") if word in said}

    def room(self, budget: Budget, size: Size) -> Room:
        """Give the room that a budget leaves; what the policy was told to leave alone at the end wins over what the budget says of that.

        Args:
            budget: The budget, the policy's own or a caller's.
            size: The size of the view.

        Raises:
            InvalidInput: What is to be left alone is no number.
        """
        return Room.of(replace(budget, **self.left_alone), size)

    @abstractmethod
    def recipe(self, room: Room, ledger: Ledger) -> Recipe:
        """Say how views are made smaller.

        Args:
            room: The room that the budget leaves for the exchanges.
            ledger: What is known besides the view.
        """

    def plan(self, view: View, ledger: Ledger, budget: Budget, prices: Rates | None) -> Plan:
        """Say what to change; where the recipe has a schedule and prices are known, also when that pays."""
        if not self.enabled:
            return Plan(policy=self.name)
        recipe = self.recipe(self.room(budget, ledger.meter.view(view)), ledger)
        return planned(view, ledger, recipe, None if prices is None else PriceSheet.of(prices), self.name)


_HELD = "schedule: held; a compaction was taken back, and the view has not grown by a tenth since"
"""What a plan says that would have a schedule."""

_ANSWERS = frozenset({"reserve", "reserve_tokens"})


def _clamped(words: Mapping[str, object], window: int) -> Mapping[str, object]:
    """Give the words of an original, of the answer's room at most half the window: they were chosen for windows of 200,000 tokens."""
    most = window // 2
    return {
        word: most if word in _ANSWERS and isinstance(value, int) and value > most else value
        for word, value in words.items()
    }


def planned(view: View, ledger: Ledger, recipe: Recipe, prices: PriceSheet | None, name: str) -> Plan:
    """Carry out a recipe.

    Args:
        view: The view.
        ledger: The books.
        recipe: The recipe.
        prices: What tokens cost; None for what the budget alone asks for.
        name: The policy's name.
    """
    recipe = replace(recipe, edit=recalled_first(recipe.edit))
    ground = Ground(view, ledger.meter, recipe.room, recipe.stand_in, recipe.keeps)
    if recipe.schedule is None or prices is None or ledger.held:
        layout = laid_out(ground, recipe.edit, when=recipe.when, always=recipe.always)
        plan = _figured(_opened(plan_of(ground, layout, name), ground, layout, recipe))
        return replace(plan, notes=(*plan.notes, _HELD)) if ledger.held and recipe.schedule is not None else plan
    layout, told = scheduled(ground, recipe, recipe.schedule, prices, ledger)
    plan = _opened(plan_of(ground, layout, name), ground, layout, recipe)
    if told is not None:
        plan = replace(plan, notes=(*plan.notes, *told.sentences()), details=told.as_data())
    return _figured(plan)


def _opened(plan: Plan, ground: Ground, layout: Layout, recipe: Recipe) -> Plan:
    """Give the plan with what stands in a view of which nothing is left out."""
    if recipe.opening is None or next(ground.missing(layout), None) is not None:
        return plan
    return replace(plan, inserts=(*plan.inserts, *recipe.opening(ground, layout)))


def _figured(plan: Plan) -> Plan:
    """Give the plan with the figures about what it puts in."""
    figures = {insert.label: dict(insert.figures) for insert in plan.inserts if insert.figures is not None}
    return replace(plan, details={**(plan.details or {}), **figures}) if figures else plan


def tail(room: Room, tokens: int) -> Room:
    """Give the room that is cut down to so many tokens at the end and a record, where that is less than the whole."""
    low = min(tokens + min(room.high // SHARE, MOST), max(room.high - 1, 0))
    return Room(high=room.high, low=low, keep_last=room.keep_last, keep_recent=room.keep_recent)
