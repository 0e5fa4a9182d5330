"""From what a caller means by a policy and a budget to a composed view."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

from palaver.context import Composed, ContextManager, Meter, Policy, compose, policy
from palaver.errors import InvalidInput
from palaver.messages import Message
from palaver.prompts import Runtime
from palaver.session.managed import Given, plan_from
from palaver.session.shown import Shown
from palaver.tokens import Budget, counter
from palaver.view import View

__all__ = ["BudgetLike", "PolicyLike", "composed", "tokens_of"]

PolicyLike: TypeAlias = ContextManager | str | Mapping[str, Any]
"""A context manager, the name of one, or its configuration."""

BudgetLike: TypeAlias = Budget | int | Mapping[str, object]
"""A budget, a number of tokens for the whole request, or a configuration in any of the vocabularies of `palaver.tokens`."""

_BOUNDLESS = Budget.of_input(2**53)


class _Result(Protocol):
    """What a context manager gives back."""

    @property
    def messages(self) -> Any:  # noqa: ANN401 - a sequence of messages
        """What the model is to see."""


def composed(
    view: View,
    asked: PolicyLike,
    budget: BudgetLike | None,
    model: str,
    *,
    runtime: Runtime,
    run: Callable[[ContextManager], tuple[_Result, list[Shown]]],
) -> Composed:
    """Compose a view the way a policy, or what a plain context manager gives back, wants it.

    Args:
        view: The view.
        asked: The policy.
        budget: What one request may occupy; the policy's own when not given. A plain manager without one is taken at its word.
        model: The model that counts; the policy's when not given, else the one in force in the view.
        runtime: Where further managers are registered.
        run: Runs a plain manager on a copy, and gives its result and the messages that went in.

    Raises:
        UnknownPolicy: There is none of this name.
        InfeasibleBudget: What must be sent is larger than the budget.
        InvalidInput: Neither the policy nor the caller says what the budget is.
    """
    manager = policy(asked, model, runtime=runtime)
    if manager is None:
        raise InvalidInput("There is no policy to compose with.", hint="Leave the policy out to see everything.")
    counting = model or str(getattr(manager, "model_name", "")) or view.model
    if isinstance(manager, Policy):
        allowed = manager.budget if budget is None else Budget.parse(budget, counting or None)
        return compose(view, manager, allowed, counter(counting))
    result, before = run(manager)
    after = [message for message in result.messages if isinstance(message, Message)]
    plan = plan_from(str(getattr(manager, "name", type(manager).__name__)), view, before, after)
    allowed = _BOUNDLESS if budget is None else Budget.parse(budget, counting or None)
    return compose(view, Given(plan), allowed, counter(counting))


def tokens_of(view: View, model: str) -> int:
    """Give the size of a view as a request, in the tokens of a model; of the one in force when none is named."""
    return Meter(counter(model or view.model)).view(view).total
