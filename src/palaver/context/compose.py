"""Compose: apply a policy to a view, within a budget. The one way to do it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

from palaver.context.cut import find_cut
from palaver.context.layout import Layout
from palaver.context.meter import Bytes, Measure, Meter, Pieces, Size
from palaver.context.operators import Shortened, StandIn, drop, drop_with_note, hide_media
from palaver.context.policy import ContextManager, Policy
from palaver.context.record import note, record
from palaver.errors import InfeasibleBudget, InvalidInput, PolicyFailed
from palaver.tokens import Budget
from palaver.view import Plan, Reason, View, apply

__all__ = ["Composed", "compose", "floor"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """What the model sees, and how it came about.

    Attributes:
        view: The view to send; the same object that went in when nothing changed.
        plan: What was changed; empty for a plain context manager, whose result is the view.
        before: The size of the view that went in. What was not read is estimated from its recorded bytes.
        after: The exact size of `view`.
        by: The name of what decided: the policy, or the fallback in its place.
        failure: Why the policy failed, when a fallback stood in for it; else empty.
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
        manual: Whether somebody asked for a compaction: a policy then makes the view smaller even where it fits.

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
            return _planned(view, policy, budget, meter, manual=manual)
        return _managed(view, policy, budget, meter, dialog)
    except PolicyFailed as error:
        if fallback is None:
            raise
        return replace(_planned(view, fallback, budget, meter), failure=str(error))


def floor(view: View, meter: Measure) -> Mapping[str, int]:
    """Return what every view must hold, by what it is for: instructions, tools, the newest user message, pinned and open exchanges.

    The newest user message and pinned exchanges count in full; of the others the outputs may be shortened to a line.
    """
    layout = Layout.of(view, Budget.of_input(1), meter)
    small = layout.with_rule(Shortened(_SMALLEST, 0))
    size, newest = meter.fixed(view), view.newest_user()
    needed = {"request": size.request, "instructions": size.instructions, "tools": size.tools}
    for index in sorted(view.protected()):
        exchange = view.exchanges[index]
        name = "newest user message" if index == newest else "pinned" if exchange.pinned else "open calls"
        whole = index == newest or exchange.pinned
        needed[name] = needed.get(name, 0) + (layout if whole else small).size(index)
    return {name: tokens for name, tokens in needed.items() if tokens}


# --- policies -------------------------------------------------------------------------------------------------------------

_SMALLEST = 50
"""Outputs of at most this many tokens are never shortened: the line in their place has about as many."""


def _planned(view: View, policy: Policy, budget: Budget, meter: Meter, *, manual: bool = False) -> Composed:
    room, last = budget, None
    for _ in range(_ATTEMPTS):
        try:
            plan, made = _within(view, _asked(view, policy, room, meter, manual=manual), policy, room, meter)
        except InfeasibleBudget as error:
            if last is None or error.needed >= room.limit:
                raise last or error from None
            room = room.with_limit(error.needed)
            continue
        made = _with_fewer_media(made, budget)
        size = Size() if budget.max_bytes is None else Bytes().view(made)
        if budget.max_bytes is None or size.total <= budget.max_bytes:
            return _composed(view, made, plan, meter, by=policy.name)
        last = InfeasibleBudget(budget.max_bytes, size.total, size.parts(), unit=Bytes.unit)
        if policy.complete:
            break
        room = room.with_limit(int(meter.view(made).total * budget.max_bytes / size.total * _BYTES_SHARE))
    raise last or AssertionError("a view is composed at least once")


_ATTEMPTS = 8
_BYTES_SHARE = 0.9
"""Of the tokens that a request of the largest size has, the share that the next attempt may have."""


def _composed(view: View, made: View, plan: Plan, meter: Meter, *, by: str) -> Composed:
    after = meter.view(made)
    before = after if made is view else meter.estimate(view)
    return Composed(view=made, plan=plan, before=before, after=after, by=by)


def _asked(view: View, policy: Policy, budget: Budget, meter: Meter, *, manual: bool) -> Plan:
    try:
        plan = (policy.compact if manual else policy.plan)(view, budget, meter)
    except (InfeasibleBudget, PolicyFailed):
        raise
    except Exception as error:
        raise PolicyFailed(policy.name, error) from error
    if not isinstance(plan, Plan):
        raise PolicyFailed(policy.name, TypeError(f"plan() returned a {type(plan).__name__}, not a Plan"))
    return plan


def _within(view: View, plan: Plan, policy: Policy, budget: Budget, meter: Meter) -> tuple[Plan, View]:
    """Return the plan, continued until the view is at or under the limit, and the view.

    Raises:
        InfeasibleBudget: No plan can do that, or the policy shows everything or nothing.
        PolicyFailed: The plan does not fit the view.
    """
    try:
        made = apply(view, plan) if plan else view
    except InvalidInput as error:
        raise PolicyFailed(policy.name, error) from error
    if Layout.of(made, budget, meter).fits():
        return plan, made
    if policy.complete:
        needed = {name: size for name, size in meter.view(made).parts().items() if size}
        raise InfeasibleBudget(budget.limit, sum(needed.values()), needed)
    whole = Layout.of(view, budget, meter)
    bare = whole.with_plan(plan).without_stand_ins()
    for tried in chain(_continued(bare), _continued(whole)):  # what the plan shortened may have to be shorter still
        if tried.fits():
            plan = tried.noted("dropped the oldest exchanges besides, because the plan left too much").plan(policy.name)
            return plan, apply(view, plan)
    needed = dict(floor(view, meter))
    raise InfeasibleBudget(budget.limit, sum(needed.values()), needed)


def _continued(layout: Layout) -> Iterator[Layout]:
    """Iterate over ever smaller layouts: fewer old exchanges, then only what every view must hold with ever smaller outputs."""
    cuts = (find_cut(layout, stage) for stage in (drop, drop_with_note))
    yield from (found for found in cuts if found is not None)
    stand_ins: tuple[StandIn, ...] = (record, note)
    for must in (layout.protected, layout.view.protected()):
        shown, small = max(layout.limit - layout.fixed, 1), layout
        while shown > 0:
            shown //= 2
            small = layout.with_rule(Shortened(max(shown, _SMALLEST), shown))
            yield from (drop(small, layout.end, keep=must, stand_in=each) for each in stand_ins)
        yield small.without(0, layout.end, Reason.OVER_BUDGET, keep=must)


# --- media ----------------------------------------------------------------------------------------------------------------


def _with_fewer_media(view: View, budget: Budget) -> View:
    """Return the view with the oldest images and sounds hidden until no more than `max_media` are left, and as few bytes as that saves."""
    limits = [(Pieces(), budget.max_media), (Bytes(), budget.max_bytes)]
    for measure, most in limits:
        if most is None or measure.view(view).total <= most:
            continue
        layout = Layout.of(view, Budget.of_input(max(most, 1)), measure).within(most, most // 2)
        hide = partial(hide_media, keep=view.protected())
        shown = {index for index in view.protected() if view.exchanges[index].pinned or index == view.newest_user()}
        found = find_cut(layout, hide) or hide_media(layout, layout.end, keep=frozenset(shown))
        hidden = found.plan("palaver")
        view = apply(view, hidden) if hidden else view
        left = measure.view(view).total
        if left > most and measure.unit == Pieces.unit:
            raise InfeasibleBudget(most, left, measure.view(view).parts(), unit=measure.unit)
    return view


# --- plain context managers -----------------------------------------------------------------------------------------------


def _managed(view: View, manager: ContextManager, budget: Budget, meter: Meter, dialog: object) -> Composed:
    """Return what a plain context manager made of the dialog, exactly.

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
