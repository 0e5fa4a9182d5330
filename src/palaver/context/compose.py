"""Compose: apply a policy to a view, within a budget. The one way to do it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from palaver.context.meter import Meter, Size
from palaver.context.policy import ContextManager, Policy
from palaver.errors import InfeasibleBudget, InvalidInput, PolicyFailed
from palaver.tokens import Budget
from palaver.view import Plan, View

__all__ = ["Composed", "compose"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """What the model sees, and how it came about.

    Attributes:
        view: The view to send; the same object that went in when nothing changed.
        plan: The changes; empty for a plain context manager, whose result is the view.
        before: The size of the view that went in. Parts that were not read are estimated from their recorded bytes.
        after: The exact size of `view`.
        by: The name of the policy that decided, or of its fallback.
        failure: Why the policy failed, when its fallback decided; else empty.
    """

    view: View
    plan: Plan
    before: Size
    after: Size
    by: str
    failure: str = ""


def compose(  # noqa: PLR0913 - what it works on, and how it is asked, by keyword
    view: View,
    policy: ContextManager,
    budget: Budget,
    meter: Meter,
    *,
    dialog: Any = None,  # noqa: ANN401 - whatever dialog the caller has
    fallback: Policy | None = None,
    committed: bool = False,
    manual: bool = False,
) -> Composed:
    """Return the view that the model sees under a policy and a budget.

    Pure: neither the view nor the log changes, and the same inputs give the same view. A policy that leaves too much is continued by dropping the oldest
    exchanges into a record. What a plain context manager returns is sent as it is.

    Args:
        view: The view, from the fold.
        policy: A policy, or a plain context manager.
        budget: What one request may occupy, in tokens, bytes and media.
        meter: Counts tokens. Pass the same meter from call to call, and it counts every exchange once.
        dialog: The dialog that a plain manager is called with; by default one over `view`.
        fallback: The policy to use when `policy` raises; without one the error propagates.
        committed: Whether the caller commits the plan, so that the next view starts from its result: the plan then goes as far as the policy's source does. Otherwise
            it goes in steps, so that the views of a growing log continue each other.
        manual: Whether somebody asked for a compaction, which is committed: a policy then makes the view smaller even where it fits.

    Raises:
        InfeasibleBudget: What must be sent is larger than the budget; the error has the breakdown.
        PolicyFailed: The policy raised, or returned something that is not a plan or a dialog.
    """
    if not isinstance(policy, ContextManager):
        raise InvalidInput(
            f"The policy is {policy!r}.", hint="Pass an object whose class is a Policy or ContextManager."
        )
    try:
        if isinstance(policy, Policy):
            return _planned(view, policy, budget, meter, committed=committed, manual=manual)
        return _managed(view, policy, budget, meter, dialog)
    except PolicyFailed as error:
        if fallback is None:
            raise
        return replace(_planned(view, fallback, budget, meter, committed=committed), failure=str(error))


def _planned(
    view: View, policy: Policy, budget: Budget, meter: Meter, *, committed: bool, manual: bool = False
) -> Composed:
    """Return the view under a policy. One that fits stays as it is, unless the policy changes such views, too."""
    plain = budget.max_bytes is None and budget.max_media is None and not manual
    if not policy.enabled or (plain and not policy.acts_within_limit and meter.fits(view, budget.limit)):
        return _composed(view, view, Plan(policy=policy.name), meter, by=policy.name)
    from palaver.context.budget import planned  # noqa: PLC0415 - nothing that makes views smaller is loaded before one must be

    plan, made = planned(view, policy, budget, meter, committed=committed, manual=manual)
    return _composed(view, made, plan, meter, by=policy.name)


def _managed(view: View, manager: ContextManager, budget: Budget, meter: Meter, dialog: object) -> Composed:
    """Return exactly what a plain context manager made of the dialog.

    Raises:
        PolicyFailed: It raised, or returned something that is not a dialog.
        InfeasibleBudget: What it returned is larger than the budget.
    """
    from palaver.context.working import managed_view  # noqa: PLC0415 - policies plan, and need no dialog

    made = managed_view(view, manager, dialog)
    composed = _composed(view, made, Plan(policy=manager.name), meter, by=manager.name)
    if composed.after.total > budget.limit:
        needed = {name: size for name, size in composed.after.parts().items() if size}
        raise InfeasibleBudget(
            budget.limit,
            composed.after.total,
            needed,
            hint=f"The context manager {manager.name!r} returned more than the budget allows; it is not cut further.",
        )
    return composed


def _composed(view: View, made: View, plan: Plan, meter: Meter, *, by: str) -> Composed:
    after = meter.view(made)
    before = after if made is view else meter.estimate(view)
    return Composed(view=made, plan=plan, before=before, after=after, by=by)
