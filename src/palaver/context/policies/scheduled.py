"""Any preset with a schedule: it makes its edits when they pay, not only when the room is full."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from difflib import get_close_matches
from functools import cached_property
from types import MappingProxyType
from typing import ClassVar

from palaver.context.ledger import Ledger
from palaver.context.manager import Policy
from palaver.context.parameters import Parameters, count, require, switch, text
from palaver.context.presets import PRESETS, Preset
from palaver.context.presets.preset import planned
from palaver.context.schedule.due import Schedule, Waiting
from palaver.context.schedule.prices import PriceSheet
from palaver.errors import InvalidInput
from palaver.tokens import Budget, Rates
from palaver.view import Plan, View

__all__ = ["Scheduled"]


class Scheduled(Policy):
    """A preset whose edits are scheduled.

    Results behind the newest, and those that a later one made pointless, wait until the rent they cost pays for an edit; exchanges are
    folded by rent or buy; and whatever waits goes for nothing when the provider's cache is cold or lost. The preset's own limits hold as before.

    Attributes:
        policy: The preset.
        schedule: When edits are made.
        prices: What tokens cost; None for the prices of the model that `compose` is given, or else the ratios of most providers.
    """

    name: ClassVar[str] = "scheduled"

    def __init__(  # noqa: PLR0913 - the words of a configuration
        self,
        policy: Preset | str = "palaver",
        model_name: str = "",
        max_tokens: int | None = None,
        *,
        prices: PriceSheet | Rates | Mapping[str, float] | None = None,
        newest: int | None = 10,
        fold: bool = True,
        keep: int | None = None,
        seed: str | None = None,
        **budget: object,
    ) -> None:
        """Schedule a preset.

        Args:
            policy: The preset, or its name.
            model_name: The model, where the preset is named.
            max_tokens: The window, likewise.
            prices: What tokens cost: a sheet, a provider's rates, or the words of a sheet.
            newest: How many of the newest results are left alone; None where results that are only old do not wait.
            fold: Whether exchanges are folded before the room is full.
            keep: Tokens that such a fold leaves; None for what the preset's own cuts leave.
            seed: Draws the thresholds of folds at random; None for the rule without chance.
            budget: Further words of the preset, where it is named.

        Raises:
            InvalidInput: There is no such preset; or it is no preset, so that there is nothing to schedule.
        """
        if isinstance(policy, str):
            policy = _named(policy)(model_name, max_tokens, **budget)
        elif not isinstance(policy, Preset):
            raise InvalidInput(
                f"{getattr(policy, 'name', policy)!r} is no preset: it does not say what it is made of.",
                hint="Schedule a preset, or make one of your own with a recipe.",
            )
        require(_WORDS, {"newest": newest, "fold": fold, "keep": keep, "seed": seed})
        self.policy = policy
        self.schedule = Schedule(waiting=Waiting(newest=newest), fold=fold, keep=keep, seed=seed)
        self.prices = _sheet(prices)
        super().__init__(policy.model_name, policy.max_tokens)

    @cached_property
    def budget(self) -> Budget:
        """What one request may occupy: what the preset says."""
        return self.policy.budget

    @property
    def paced(self) -> bool:
        """Whether the preset knows itself when a view is to be made smaller."""
        return self.policy.paced

    def budget_for(self, model_name: str) -> Budget:
        """Give what one request may occupy; where the preset was made for no model and no window, with a model."""
        return self.policy.budget_for(model_name)

    def plan(self, view: View, ledger: Ledger, budget: Budget, prices: Rates | None) -> Plan:
        """Say what to change, and when that pays."""
        if not self.policy.enabled:
            return Plan(policy=self.policy.name)
        sheet = self.prices or (PriceSheet() if prices is None else PriceSheet.of(prices))
        recipe = self.policy.recipe(self.policy.room(budget, ledger.meter.view(view)), ledger)
        return planned(view, ledger, replace(recipe, schedule=self.schedule), sheet, self.policy.name)


def _named(name: str) -> type[Preset]:
    found = {each.name: each for each in PRESETS}.get(name)
    if found is None:
        raise InvalidInput(
            f"There is no preset {name!r}.", hint=f"Presets: {', '.join(each.name for each in PRESETS)}."
        )
    return found


_WORDS: Parameters = MappingProxyType(
    {"newest": count(none=True), "fold": switch(), "keep": count(none=True), "seed": text(none=True)}
)


def _sheet(prices: object) -> PriceSheet | None:
    """Give the prices that are meant.

    Raises:
        InvalidInput: They are none.
    """
    if prices is None or isinstance(prices, PriceSheet):
        return prices
    if isinstance(prices, Rates):
        return PriceSheet.of(prices)
    known = tuple(each.name for each in fields(PriceSheet))
    if isinstance(prices, Mapping):
        odd = next((word for word in prices if word not in known), None)
        if odd is None:
            return PriceSheet(**prices)
        close = get_close_matches(str(odd), known, n=1)
        raise InvalidInput(
            f"{odd!r} is no price.", hint=f"Close: {close[0]}." if close else f"Prices: {', '.join(known)}."
        )
    raise InvalidInput(
        f"prices is {prices!r}.", hint=f"It is a PriceSheet, Rates, or a mapping of: {', '.join(known)}."
    )
