"""From what a caller means by a policy and a budget to a composed view."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from palaver.context import Composed, ContextManager, Ledger, Meter, Policy, Viewed, compose, planner, policy
from palaver.errors import InvalidInput
from palaver.log import Handle
from palaver.messages import Content
from palaver.prompts import Runtime
from palaver.tokens import Budget, Rates, counter
from palaver.view import View

__all__ = ["NO_LIMIT", "BudgetLike", "Composing", "PolicyLike", "composing", "tokens_of"]

PolicyLike: TypeAlias = ContextManager | str | Mapping[str, Any]
"""A context manager, the name of one, or its configuration."""

BudgetLike: TypeAlias = Budget | int | Mapping[str, object]
"""A budget, the number of tokens that the request may occupy, or a configuration in any of the vocabularies of `palaver.tokens`."""

NO_LIMIT = Budget.of_input(2**53)
"""A budget that nothing exceeds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Composing:
    """A policy made ready for a view: what the caller meant, found and checked.

    Attributes:
        view: The view.
        manager: The policy or context manager.
        model: The model whose tokens count, or empty.
        budget: What one request may occupy.
        ledger: The books.
        derive: Makes the dialog that a plain manager is called with.
        prices: What a token of the model costs; None where nothing is scheduled by it.
    """

    view: View
    manager: ContextManager
    model: str
    budget: Budget
    ledger: Ledger
    derive: Callable[[View], Viewed]
    prices: Rates | None = None

    @property
    def room(self) -> Budget:
        """What one request may occupy in counted tokens: the budget, corrected by what the provider said of the last request."""
        anchor = self.ledger.anchor
        return self.budget if anchor is None else anchor.within(self.budget, self.ledger.meter)

    def within(self, most: int) -> Composing:
        """Give it for at most so many counted tokens, which the provider's word has corrected already; the very same where that is no less."""
        room = self.room
        if room.for_input <= most:
            return self
        less = room.with_input(most)
        return replace(self, budget=less, ledger=replace(self.ledger, anchor=None))

    def composed(self, budget: Budget | None = None, view: View | None = None) -> Composed:
        """Compose the view, or another one of the same dialog, for the budget or another one.

        Raises:
            InfeasibleBudget: What must be sent is larger than the budget.
        """
        seen = self.view if view is None else view
        plain = not isinstance(self.manager, Policy)
        plans = planner(self.manager, self.derive(seen) if plain else None)
        counts = self.ledger.meter.counter
        return compose(seen, plans, budget or self.budget, counts, prices=self.prices, ledger=self.ledger)


def composing(  # noqa: PLR0913 - what is composed, and what of the dialog it needs
    view: View,
    asked: PolicyLike,
    budget: BudgetLike | None,
    model: str,
    *,
    runtime: Runtime,
    derive: Callable[[View], Viewed],
    sources: Callable[[Handle], Content | None],
) -> Composing:
    """Make a policy, or a plain context manager, ready for a view.

    Args:
        view: The view.
        asked: The policy.
        budget: What one request may occupy; the policy's own when not given. A plain manager without one is taken at its word.
        model: The model that counts; the policy's when not given, else the one in force in the view.
        runtime: Where further managers are registered.
        derive: Makes the dialog that a plain manager is called with: whatever it does to that one is thrown away.
        sources: Gives a block as it was recorded: a record is made from originals, also of what an earlier commit set aside.

    Raises:
        UnknownPolicy: There is none of this name.
        InvalidInput: Neither the policy nor the caller says what the budget is.
    """
    manager = policy(asked, model, runtime=runtime)
    if manager is None:
        raise InvalidInput("There is no policy to compose with.", hint="Leave the policy out to see everything.")
    counting = model or str(getattr(manager, "model_name", "")) or view.model
    if budget is not None:
        allowed = Budget.parse(budget, counting or None)
    else:
        allowed = manager.budget_for(counting) if isinstance(manager, Policy) else NO_LIMIT
    books = Ledger(meter=Meter(counter(counting)), sources=sources)
    return Composing(view=view, manager=manager, model=counting, budget=allowed, ledger=books, derive=derive)


def tokens_of(view: View, model: str) -> int:
    """Give the size of a view as a request, in the tokens of a model; of the one in force when none is named."""
    return Meter(counter(model or view.model)).view(view).total
