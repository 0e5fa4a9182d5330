"""What code makes of a view that is to become smaller: down to what, what stays for a focus, and that something stands for all that leaves.

A request that has no room for a line goes without one: the next request is made of the same log. A compaction is what all later views start from, so
the line has its room where nobody said how small the view is to be; and where a budget was given that has none for the constraints, it is infeasible.

What is written down does not cut the constraints that were put on the list by hand (`palaver.context.stating` cuts them for one request). So they are laid
aside before anything is planned, and both sizes of a compaction, and what it aims at, are those of what the log's own view has: what is sent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from palaver.context import Composed, account
from palaver.context.floor import floor
from palaver.context.limits import over_limits
from palaver.context.placing import NO_SMALLER, carrying_on, placed, silenced, unstated
from palaver.context.record.notice_of import MOST, SHARE
from palaver.errors import InfeasibleBudget
from palaver.session.calls.composing import Composing
from palaver.session.compaction.committing import worth
from palaver.session.compaction.focusing import Focused, focused
from palaver.session.compaction.pacing import BY_HAND, apart, as_if_full, of_input, paced
from palaver.tokens import Budget
from palaver.view import Plan, View

__all__ = ["Made", "by_code"]

_SHARE = 0.5
"""The share of its size that a view keeps where nobody says how small it is to be."""

_FOR_SUMMARY = 0.2
"""The share of the room that is left for a summary."""

_LINE = 100
"""Tokens that a line has which says what left: beside the record there is room for one."""


@dataclass(frozen=True, kw_only=True)
class Made:
    """A plan that code made.

    Attributes:
        composed: The view as it would be.
        target: What one request may occupy then.
        focused: What the focus names.
        kept: How many exchanges stay because of that.
    """

    composed: Composed
    target: Budget
    focused: Focused
    kept: int


def by_code(ready: Composing, focus: str, *, given: bool, summarised: bool) -> Made:
    """Plan a compaction without a model.

    Args:
        ready: The policy and the view.
        focus: What to dwell on.
        given: Whether somebody said how small the view is to be; else it is half of it, or what the policy's own limit makes of it.
        summarised: Whether room is left for a summary.

    Raises:
        InfeasibleBudget: What every view must hold, and a line for what leaves, is larger than the budget that was given.
    """
    rest, by_hand = apart(ready)
    if not by_hand:
        return _told(_planned(ready, focus, given=given, summarised=summarised), ready, given=given)
    try:
        made = _told(_planned(rest, focus, given=given, summarised=summarised), rest, given=given)
    except InfeasibleBudget as error:  # with all of them it is too much: then a request tells some of them
        made = _told(_planned(ready, focus, given=given, summarised=summarised), ready, given=given)
        whole = _whole(made.composed, ready)
        least = sum(floor(ready.view, ready.ledger.meter).values())
        if given and least <= made.target.for_input < whole.tokens_after:
            raise _with(
                by_hand, error, made.target
            ) from error  # what is written down tells all, and all could have a place
        return replace(made, composed=whole)
    target = of_input(ready, min(made.target.for_input, _MOST) + by_hand)
    return replace(made, composed=_whole(made.composed, ready), target=target)


_MOST = 2**53


def _with(by_hand: int, error: InfeasibleBudget, target: Budget) -> InfeasibleBudget:
    """Say what a view needs besides the constraints that were put on the list by hand, with them."""
    if error.unit != "tokens":
        return error
    parts = {**error.breakdown, "instructions": error.breakdown.get("instructions", 0) + by_hand}
    return InfeasibleBudget(target.for_input, error.needed + by_hand, parts, hint=error.hint)


def _whole(composed: Composed, ready: Composing) -> Composed:
    """Give a composed view as it is written down, with all that was put on the list of constraints by hand, and its sizes."""
    view, meter = ready.view, ready.ledger.meter
    before = meter.view(view)
    if composed.view.exchanges == view.exchanges and not (composed.plan or composed.fallback or composed.limits):
        return replace(composed, view=view, before=before, after=before, cut=0)
    kept = iter(block for block in composed.view.system if block.derived != BY_HAND)
    system = tuple(block if block.derived == BY_HAND else next(kept) for block in view.system)
    final = replace(composed.view, system=system)
    return replace(composed, view=final, before=before, after=meter.view(final), cut=0)


# --- how small ------------------------------------------------------------------------------------------------------------------


def _planned(ready: Composing, focus: str, *, given: bool, summarised: bool) -> Made:
    named = focused(ready.view, focus)
    if given:
        return _within(ready, named, summarised=summarised)
    size = ready.ledger.meter.view(ready.view).total
    made = _by_itself(ready, named, size, summarised=summarised) if paced(ready) else None
    return made or _smaller(ready, named, size, summarised=summarised)


def _within(ready: Composing, named: Focused, *, summarised: bool) -> Made:
    """Plan for the budget that was given, with room for a summary where there is some."""
    target = ready.budget
    if not summarised:
        return _made(ready, ready.view, named, target, target)
    try:
        return _made(ready, ready.view, named, _beside_summary(target), target)
    except InfeasibleBudget:
        return Made(composed=ready.composed(target), target=target, focused=named, kept=0)


def _smaller(ready: Composing, named: Focused, size: int, *, summarised: bool) -> Made:
    """Plan where nobody says how small: for half, else with what every view must hold and a record of what leaves, else as small as there can be."""
    least = size
    found: list[Made] = []
    for target in _targets(ready, size):
        try:
            made = _made(ready, ready.view, named, _beside_summary(target) if summarised else target, target)
        except InfeasibleBudget as error:
            least = error.needed
            continue
        if not _lost(ready, made.composed):
            return made
        found.append(made)
    if found:
        return found[0]
    target = Budget.of_input(least)
    return Made(composed=ready.composed(target), target=target, focused=named, kept=0)  # without room for a summary


def _targets(ready: Composing, size: int) -> Iterator[Budget]:
    """Give what a view may have then where nobody says: half of it; or what every view must hold, and a record of what leaves."""
    meter, most = ready.ledger.meter, ready.budget.for_input
    yield Budget.of_input(max(1, min(math.ceil(size * _SHARE), most)))
    needed = sum(floor(ready.view, meter).values())
    record = min(MOST, max(needed - meter.view(ready.view).fixed, 0) // (SHARE - 1))
    enough = min(needed + record + _LINE, most)
    if needed < enough and worth(size, enough):
        yield Budget.of_input(enough)


def _beside_summary(target: Budget) -> Budget:
    return Budget.of_input(max(1, math.ceil(target.for_input * (1 - _FOR_SUMMARY))))


def _by_itself(ready: Composing, named: Focused, size: int, *, summarised: bool) -> Made | None:
    """Plan by the policy's own limit; where that is not reached, as if it were now. None where what must be sent is too large for either.

    Where a summary is wanted and what the plan leaves has grown since its last cut, so that there is no room for one, it is cut again.
    """
    for target in (ready.budget, as_if_full(ready, size)):
        made = _worth(ready, named, target, target, size)
        less = of_input(ready, math.ceil(target.for_input * (1 - _FOR_SUMMARY)))
        if made is not None and summarised and made.composed.tokens_after > less.for_input:
            made = _worth(ready, named, less, target, size) or made
        if made is not None:
            return made
    return None


def _worth(ready: Composing, named: Focused, room: Budget, target: Budget, size: int) -> Made | None:
    """Compose for a room; None where there is no such view, or none that is worth a commit."""
    try:
        made = _made(ready, ready.view, named, room, target)
    except InfeasibleBudget:
        return None
    return made if worth(size, made.composed.tokens_after) else None


# --- what stays for a focus -----------------------------------------------------------------------------------------------------


def _made(ready: Composing, view: View, named: Focused, room: Budget, target: Budget) -> Made:
    """Compose; of the exchanges that the focus names the best stay, as many as there is a view with."""
    kept = named.found
    while kept:
        made = _holding(ready, view, frozenset(kept), room)
        if made is not None:
            return Made(composed=_unpinned(made, view), target=target, focused=named, kept=len(kept))
        kept = kept[(len(kept) + 1) // 2 :]
    return Made(composed=ready.composed(room), target=target, focused=named, kept=0)


def _holding(ready: Composing, view: View, kept: AbstractSet[int], room: Budget) -> Composed | None:
    """Compose so that some exchanges stay; None where there is no such view, or the policy alone cannot make it: the focus shall cost no record."""
    held = tuple(replace(x, pinned=True) if n in kept else x for n, x in enumerate(view.exchanges))
    try:
        made = ready.composed(room, replace(view, exchanges=held))
    except InfeasibleBudget:
        return None
    return None if made.fallback else made


def _unpinned(made: Composed, view: View) -> Composed:
    """Give a composed view whose exchanges are pinned where the log pins them: that the focus held them is no fact of the log."""
    pinned = {exchange.first: exchange.pinned for exchange in view.exchanges if exchange.first is not None}
    shown = tuple(
        replace(x, pinned=x.pinned if x.first is None else pinned.get(x.first, x.pinned)) for x in made.view.exchanges
    )
    return replace(made, view=replace(made.view, exchanges=shown))


# --- what stands for what leaves ------------------------------------------------------------------------------------------------


def _told(made: Made, ready: Composing, *, given: bool) -> Made:
    """Have something stand for all that leaves; the view as it is where nothing smaller than what leaves can, and nobody said how small.

    Raises:
        InfeasibleBudget: In the budget that was given there is no room for the constraints among it.
    """
    composed = made.composed
    fits = account(ready.view, made.target, ready.ledger.meter).fits
    if fits and composed.view is not ready.view and composed.tokens_after >= composed.tokens_before:
        # a request may be larger for what the user said; nothing is compacted by that
        return _not_taken(made, ready, NO_SMALLER)
    if not _lost(ready, composed):
        return made
    if not given and (found := placed(composed, ready.view, ready.ledger, None)) is not None:
        told = composed.with_last(*found)
        if told.tokens_after < told.tokens_before and not _lost(ready, told):
            return replace(made, composed=told)
    if given and not silenced(ready.view, composed.view, ready.ledger):
        return replace(made, composed=composed)  # no room for a line: what is known goes on without one
    if given and not fits:
        return _shortest(made, ready)
    return _not_taken(made, ready)


_NO_LINE = "there is no room for a line that stands for what it leaves out"


def _not_taken(made: Made, ready: Composing, why: str = _NO_LINE) -> Made:
    """Give the view as it is, and say why."""
    composed = made.composed
    note = f"not taken: {why}"
    plan, rest = composed.plan, Plan(policy=composed.fallback.policy)
    same = Plan(policy=plan.policy, notes=(*plan.notes, note))
    return replace(
        made,
        composed=replace(composed, view=ready.view, plan=same, fallback=rest, limits=(), after=composed.before),
        kept=0,
    )


def _shortest(made: Made, ready: Composing) -> Made:
    """Give as little as there can be, and the shortest line that says all constraints.

    Raises:
        InfeasibleBudget: The budget that was given has no room for that.
    """
    least = sum(floor(ready.view, ready.ledger.meter).values())
    target = made.target
    try:
        composed = ready.composed(target.with_input(least))
    except InfeasibleBudget:  # it leaves nothing out
        composed = made.composed
    least_view, size = ready.view, composed.before.total
    while (found := placed(composed, ready.view, ready.ledger, Budget.of_input(size - 1))) is not None:
        told = composed.with_last(*found)
        if _lost(ready, told):
            break
        if account(told.view, target, ready.ledger.meter).fits:
            return replace(made, composed=told, kept=0)
        least_view, size = told.view, told.tokens_after  # the next one says less
    error = over_limits(least_view, target, ready.ledger)
    raise InfeasibleBudget(error.budget, error.needed, error.breakdown, unit=error.unit, hint=_NO_ROOM)


_NO_ROOM = (
    "Raise the budget: what must be sent would fit, but no line with what the user said must or must not be, "
    "which stands for what leaves and from which all later views start."
)


def _lost(ready: Composing, composed: Composed) -> bool:
    """Tell whether a composed view leaves something out for which nothing stands, or a constraint unsaid."""
    if composed.view is ready.view:
        return False
    final = carrying_on(ready.view, composed.view, ready.ledger)
    return bool(final.carried) or bool(unstated(final))
