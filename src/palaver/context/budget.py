"""Within the budget: the plan of a policy, continued until the view fits, or the error that nothing can make it fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain

from palaver.context.cut import find_cut
from palaver.context.layout import Layout
from palaver.context.meter import Bytes, Measure, Meter, Pieces, Size
from palaver.context.operators import Shortened, StandIn, drop, drop_with_note, hide_media, shorten_huge
from palaver.context.policy import Policy
from palaver.context.record import note, record
from palaver.errors import InfeasibleBudget, InvalidInput, PolicyFailed, StoreError
from palaver.plurals import a_type
from palaver.tokens import Budget
from palaver.view import Plan, Reason, View, apply

__all__ = ["floor", "planned"]

_SMALLEST = 50
"""Outputs of at most this many tokens are never shortened: the line in their place has about as many."""


def planned(
    view: View, policy: Policy, budget: Budget, meter: Meter, *, committed: bool = False, manual: bool = False
) -> tuple[Plan, View]:
    """Return the plan of a policy, continued where it leaves too much, and the view: within the budget in tokens, bytes and media.

    Args:
        view: The view.
        policy: The policy.
        budget: What one request may occupy.
        meter: Counts tokens.
        committed: Whether the plan is committed.
        manual: Whether somebody asked for a compaction, which is committed, too.

    Raises:
        InfeasibleBudget: What must be sent is larger than the budget.
        PolicyFailed: The policy raised, or returned a plan that does not fit the view.
    """
    room, last = budget, None
    for _ in range(_ATTEMPTS):
        try:
            asked = _asked(view, policy, room, meter, committed=committed, manual=manual)
            plan, made = _within(view, asked, policy, room, meter, committed=committed or manual)
        except InfeasibleBudget as error:
            if last is None or error.needed >= room.limit:
                raise last or error from None
            room = room.with_limit(error.needed)
            continue
        made = _with_fewer_media(made, budget)
        size = Size() if budget.max_bytes is None else Bytes().view(made)
        if budget.max_bytes is None or size.total <= budget.max_bytes:
            return plan, made
        last = InfeasibleBudget(budget.max_bytes, size.total, size.parts(), unit=Bytes.unit)
        if policy.complete:
            break
        room = room.with_limit(int(meter.view(made).total * budget.max_bytes / size.total * _BYTES_SHARE))
    raise last or AssertionError("a view is composed at least once")


_ATTEMPTS = 8
_BYTES_SHARE = 0.9
"""Of the tokens that a request of the largest size has, the share that the next attempt may have."""


def _asked(view: View, policy: Policy, budget: Budget, meter: Meter, *, committed: bool, manual: bool) -> Plan:
    try:
        if committed or manual:
            plan = policy.compact(view, budget, meter, asked=manual)
        else:
            plan = policy.plan(view, budget, meter)
    except (InfeasibleBudget, PolicyFailed, StoreError):
        raise
    except Exception as error:
        raise PolicyFailed(policy.name, error) from error
    if not isinstance(plan, Plan):
        raise PolicyFailed(policy.name, TypeError(f"plan() returned {a_type(plan)}, not a Plan"))
    return plan


def _within(
    view: View, plan: Plan, policy: Policy, budget: Budget, meter: Meter, *, committed: bool
) -> tuple[Plan, View]:
    """Return the plan, continued until the view is at or under the limit, and the view.

    Raises:
        InfeasibleBudget: No plan can do that, or the policy shows everything or nothing.
        PolicyFailed: The plan does not fit the view.
    """
    try:
        made = apply(view, plan) if plan else view
    except InvalidInput as error:
        raise PolicyFailed(policy.name, error) from error
    if meter.fits(made, budget.limit):
        return plan, made
    if policy.complete:
        needed = {name: size for name, size in meter.view(made).parts().items() if size}
        raise InfeasibleBudget(budget.limit, sum(needed.values()), needed)
    whole = shorten_huge(Layout.of(view, budget, meter, committed=committed))
    kept = whole.with_plan(plan)
    bare = kept.without_stand_ins()
    # the last of them for what the plan shortened, which may have to be shorter still
    for tried in chain([kept], _continued(bare), _continued(whole)):
        if tried.fits():
            plan = tried.noted("shortened or dropped more besides, because the plan left too much").plan(policy.name)
            return plan, apply(view, plan)
    needed = dict(floor(view, meter))
    raise InfeasibleBudget(budget.limit, sum(needed.values()), needed)


def _continued(layout: Layout) -> Iterator[Layout]:
    """Iterate over ever smaller layouts: fewer old exchanges, then only what every view must show, with ever smaller outputs."""
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


def floor(view: View, meter: Measure) -> Mapping[str, int]:
    """Return the sizes of what every view must show: instructions, tools, the newest user message, pinned and open exchanges.

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
        every = replace(layout, limit=layout.total())
        found = find_cut(layout, hide) or hide_media(every, layout.end, keep=frozenset(shown))
        hidden = found.plan("palaver")
        view = apply(view, hidden) if hidden else view
        left = measure.view(view).total
        if left > most and measure.unit == Pieces.unit:
            raise InfeasibleBudget(most, left, measure.view(view).parts(), unit=measure.unit)
    return view
