"""Composing: a view, a policy and a budget in; a view that fits out, or the breakdown of why none can.

The policy proposes, and is asked once. What it proposes is taken if it makes the view smaller; if the view is still over budget, a
deterministic plan that needs no model goes on from there. So every policy ends within its budget, also one that leaves too much.

What a model summarised so far is no policy's to leave out: it stays where it stands while it has room, and only a newer summary takes its place
(`record.running`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from palaver.context.fallback import NAME, fallback
from palaver.context.floor import floor
from palaver.context.ground import Room
from palaver.context.ledger import Ledger
from palaver.context.limits import bytes_over, limited, over_limits, require_limits
from palaver.context.measure import Meter, Size
from palaver.context.placing import placed, said_again, shaped, silenced, stands_in
from palaver.context.record.carried import carried
from palaver.context.record.notice_of import NoticeOf
from palaver.context.record.running import SHARE, carrying, holding, line_for, released, standing
from palaver.context.stating import within_room
from palaver.errors import InfeasibleBudget, InvalidInput, PalaverError, PolicyFailed
from palaver.tokens import Budget, Counter, Rates
from palaver.view import Insert, Plan, Reason, View, apply, inserted

__all__ = ["Composed", "Planner", "compose"]


class Planner(Protocol):
    """What `compose` needs of a policy."""

    @property
    def name(self) -> str:
        """The name in records."""
        ...

    @property
    def complete(self) -> bool:
        """Tell whether a view that it leaves too large is infeasible, rather than cut further."""
        ...

    @property
    def literal(self) -> bool:
        """Tell whether what it leaves out is left out without a word."""
        ...

    def plan(self, view: View, ledger: Ledger, budget: Budget, prices: Rates | None, /) -> Plan:
        """Say what to change in a view."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """A view that fits, and how it came about.

    Attributes:
        view: What the model is to see. The very object that went in, when nothing had to change. Of what was put on the list of constraints by
            hand it tells what has room.
        plan: What the policy wanted. Its notes say what each operator took out, and what became of the plan.
        fallback: What was done besides, because the plan was not enough; an empty plan when it was.
        before: The size of the view that went in.
        after: The size of this one.
        floor: What every view must hold, in tokens by what it is for.
        limits: What was done before the policy was asked, because the request had too many media or bytes.
        held: Whether the view is as large as somebody wants it to be who took a compaction back (`Ledger.held`): then this is for one request.
        cut: How many tokens of what was put on the list of constraints by hand have no room in a request. A view that is written down tells them all
            the same, so whoever counts what a compaction saves adds them to both sizes.
    """

    view: View
    plan: Plan
    fallback: Plan
    before: Size
    after: Size
    floor: Mapping[str, int]
    limits: tuple[Plan, ...] = ()
    held: bool = False
    cut: int = 0

    def with_last(self, view: View, plan: Plan, after: Size) -> Composed:
        """Give the same with another last plan, the fallback where there is one, and the view that it makes."""
        made = replace(self, fallback=plan) if self.fallback else replace(self, plan=plan)
        return replace(made, view=view, after=after)

    @property
    def tokens_before(self) -> int:
        """The size of the view that went in, in tokens."""
        return self.before.total

    @property
    def tokens_after(self) -> int:
        """The size of this view, in tokens."""
        return self.after.total


def compose(
    view: View,
    policy: Planner,
    budget: Budget,
    counter: Counter,
    *,
    prices: Rates | None = None,
    ledger: Ledger | None = None,
) -> Composed:
    """Make a view fit a budget the way a policy wants it.

    Pure: neither the view nor the log changes, and the same inputs give the same view. The budget's tokens, bytes and media are all
    kept to; what must be sent is measured first, so that a budget that cannot be kept is told before anything is planned. The running
    summary counts against the budget and stays, as far as a quarter of the room goes; beyond, its beginning or a line stands for it.
    Constraints that were put on the list by hand have a quarter of the room, too, the newest first, and less where there is none: adding one never
    makes a budget too small.

    Args:
        view: The view, from the fold.
        policy: The policy.
        budget: What one request may occupy.
        counter: What counts the tokens of the model that will read it.
        prices: What a token costs, where that is known.
        ledger: The books, where the caller keeps them from call to call (what was counted is not counted again).

    Raises:
        InfeasibleBudget: What must be sent is larger than the budget; the error has the breakdown.
        InvalidInput: What the policy gave is no plan, or none for this view.
        PolicyFailed: The policy raised.
    """
    books = (ledger or Ledger(meter=Meter(counter))).reading(view)
    room = budget if books.anchor is None else books.anchor.within(budget, books.meter)
    refused: InfeasibleBudget | None = None
    for stating in within_room(view, budget, books.meter):
        try:
            made = _saying(stating, policy, budget, room, books, prices)
        except InfeasibleBudget as error:
            refused = error  # what was put on the list by hand gives way before a request becomes impossible
        else:
            cut = 0 if stating is view else books.meter.view(view).total - books.meter.view(stating).total
            return replace(made, cut=cut) if cut else made
    raise refused or AssertionError("a view is given at least once")


def _saying(view: View, policy: Planner, budget: Budget, room: Budget, books: Ledger, prices: Rates | None) -> Composed:
    """Make a view fit, and say what it knows of and says nowhere, if not by this policy's own text then by a line that stays, while there is room."""
    for start, plan in () if policy.literal else said_again(view, books, budget, policy):
        line = plan.inserts[0]
        for asked in (start, holding(start, line.before)):
            try:
                made = _told(asked, policy, budget, room, books, prices)
            except InfeasibleBudget:
                continue
            final = released(made.view, start.exchanges[line.before])
            if stands_in(final, view, line) and not silenced(start, final, books):
                return replace(made, view=final, limits=(plan, *made.limits), before=books.meter.view(view))
    return _told(view, policy, budget, room, books, prices)


def _told(view: View, policy: Planner, budget: Budget, room: Budget, books: Ledger, prices: Rates | None) -> Composed:
    """Make a view fit, and have something stand for what leaves: with as much less of the view as that needs, where it can be had.

    What a plain context manager leaves out is left out without a word: it says what is sent.
    """
    made = _summarised(view, policy, budget, room, books, prices)
    if policy.literal and made.plan.drops:
        return made
    wanted = placed(made, view, books, None, budget)
    while wanted is not None:
        line = made.with_last(*wanted)
        if _fits(line, room, books):
            return line
        less = room.with_input(room.for_input - (line.tokens_after - made.tokens_after))
        try:
            again = _summarised(view, policy, budget, less, books, prices)
        except InfeasibleBudget:
            pass
        else:
            found = placed(again, view, books, room, budget)
            again = again if found is None else again.with_last(*found)
            if not silenced(view, again.view, books):
                return again
        wanted = placed(made, view, books, Budget.of_input(max(line.tokens_after - 1, 1)), budget)
    return made


def _fits(made: Composed, room: Budget, books: Ledger) -> bool:
    return made.tokens_after <= room.for_input and bytes_over(made.view, room, books) <= 0


def _summarised(
    view: View, policy: Planner, budget: Budget, room: Budget, books: Ledger, prices: Rates | None
) -> Composed:
    """Make a view fit, with what a model summarised so far as long as that has room."""
    place = None if policy.complete else standing(view)
    if place is not None and _has_room(books.meter.exchange(view.exchanges[place]), view, room, books):
        try:
            made = _fitted(holding(view, place), policy, budget, room, books, prices)
        except InfeasibleBudget:
            pass  # without it there may be a view
        else:
            return _let_go(made, view, place, books)
    made = _fitted(view, policy, budget, room, books, prices)
    gone = carrying(view) if place is None else place
    told = _announced(made, view, gone, room, books)
    if told is not None:
        return told
    try:  # what says that the summary had to leave has no room: so little more goes for it, where it can
        less = replace(room, max_tokens=max(room.max_tokens - _FOR_LINE, 1))
        return _announced(_fitted(view, policy, budget, less, books, prices), view, gone, room, books) or made
    except InfeasibleBudget:
        return made


_FOR_LINE = 150
"""Tokens of a budget that hold the line for a summary without room, also where a third of them is a buffer."""


def _has_room(tokens: int, view: View, room: Budget, books: Ledger) -> bool:
    """Tell whether the running summary may stay: it has its share of the room, and does not push out what stands beside it."""
    fixed = books.meter.view(view).fixed
    free = room.for_input - sum(floor(view, books.meter).values())
    return tokens * SHARE <= room.for_input - fixed and tokens * 2 <= free


def _let_go(made: Composed, view: View, place: int, books: Ledger) -> Composed:
    """Give what was composed while the running summary was held, without saying that it is held; the very view where nothing changed."""
    touched = made.limits or made.plan or made.fallback
    final = released(made.view, view.exchanges[place]) if touched else view
    return replace(made, view=final, floor=floor(view, books.meter))


def _announced(made: Composed, view: View, place: int | None, room: Budget, books: Ledger) -> Composed | None:
    """Have the view say that the running summary had to leave, where nothing says it; None where there is no room for that."""
    last = made.fallback or made.plan
    before = min((each.before for each in last.inserts), default=min((drop.index for drop in last.drops), default=None))
    if place is None or before is None:
        return made
    line = line_for(view, place, made.view, before, books.meter.text)
    if line is None:
        return made
    base = shaped(view, (*made.limits, made.plan) if made.fallback else made.limits, books.applied)
    last = replace(last, inserts=(line, *last.inserts))
    final = apply(base, last, books.applied)
    after = books.meter.view(final)
    told = made.with_last(final, last, after)
    return told if _fits(told, room, books) else None


def _fitted(view: View, policy: Planner, budget: Budget, room: Budget, books: Ledger, prices: Rates | None) -> Composed:
    """Make a view fit; what must stay in it is settled."""
    needed = floor(view, books.meter)
    if (
        not policy.complete
    ):  # of one that leaves nothing out, all of the view must be sent: that is told when it has been asked
        room.require(needed)
        require_limits(view, budget, books)
    start, limits = limited(view, budget, books)
    if limits and policy.complete:
        raise over_limits(view, budget, books)
    done = _composed(start, policy, room, books, prices, needed)
    if (
        done.tokens_after > room.for_input
    ):  # what was shortened to its bytes is not shortened again: cut to the tokens from the first
        start, limits = limited(view, replace(budget, max_bytes=None), books)
        done = _composed(start, policy, room, books, prices, needed)
    spare = 0
    while (over := max(bytes_over(done.view, budget, books), done.tokens_after - room.for_input)) > 0:
        if spare > _MOST_SPARE + (budget.max_bytes or 0):
            raise over_limits(done.view, room, books)
        spare = max(spare * 2, spare + over)  # what was put in has more bytes than there were left
        start, limits = limited(view, budget, books, spare=spare)
        done = _composed(start, policy, room, books, prices, needed)
    return replace(done, limits=limits, before=books.meter.view(view))


_MOST_SPARE = 1 << 20
"""Bytes that what is put into a view never has: with so many free besides all others the view is not made smaller to have more."""


def _composed(
    view: View, policy: Planner, budget: Budget, books: Ledger, prices: Rates | None, needed: Mapping[str, int]
) -> Composed:
    """Make a view fit the tokens of a budget."""
    before = books.meter.view(view)
    wanted = carried(view, _planned(view, policy, budget, books, prices), books.sources)
    planned, plan, size = _taken(view, wanted, before, books, budget)
    if size.total > budget.for_input and policy.complete:
        raise InfeasibleBudget(
            budget.for_input,
            size.total,
            {name: tokens for name, tokens in size.parts().items() if tokens},
            hint=f"The policy {policy.name!r} leaves nothing out: take another policy, or raise the budget.",
        )
    final, rest, after = _finished(planned, size, books, budget)
    if (
        after.total > budget.for_input
    ):  # what the policy made of an open exchange cannot be made smaller: begin again without it
        plan = _refused(plan, "what it leaves cannot be made small enough")
        final, rest, after = _finished(view, before, books, budget)
    elif not _keeps_a_text(final, plan):
        plan = _dropping(plan)
        final = shaped(view, (plan, rest), books.applied)
    return Composed(view=final, plan=plan, fallback=rest, before=before, after=after, floor=needed, held=books.held)


def _keeps_a_text(view: View, plan: Plan) -> bool:
    """Tell whether a text that a plan put for what it leaves out is in the view that came of it; where it put none, there is none to miss."""
    own = [inserted(insert).turns for insert in plan.inserts if not insert.standing]
    return not own or any(exchange.turns in own for exchange in view.exchanges)


def _dropping(plan: Plan) -> Plan:
    """Give a plan that folds as one that drops: its text had no room in the end, so nothing stands for what it leaves out."""
    drops = tuple(
        replace(drop, reason=Reason.OVER_BUDGET) if drop.reason is Reason.FOLDED else drop for drop in plan.drops
    )
    return replace(plan, drops=drops)


def _planned(view: View, policy: Planner, budget: Budget, books: Ledger, prices: Rates | None) -> Plan:
    """Ask a policy for its plan.

    Raises:
        InvalidInput: It gave something else, such as None where the return was forgotten.
        PolicyFailed: It raised what is none of palaver's own errors.
    """
    try:
        plan: object = policy.plan(view, books, budget, prices)
    except PalaverError:
        raise
    except Exception as error:  # a policy is anybody's code, and may raise anything
        raise PolicyFailed(policy.name, error) from error
    if not isinstance(plan, Plan):
        raise InvalidInput(
            f"The policy {policy.name!r} gave a {type(plan).__name__}, not a plan.",
            hint="Return a palaver.Plan, an empty one where nothing is to change; a method without return gives None.",
        )
    return plan


def _taken(view: View, plan: Plan, before: Size, books: Ledger, budget: Budget) -> tuple[View, Plan, Size]:
    """Apply a plan, unless it does not make the view smaller: then nothing of it is taken, and the plan says so.

    What stands there for its own sake is not counted for that, and must have room; else the plan is taken without it.
    """
    if not plan:
        return view, plan, before
    planned = apply(view, plan, books.applied)
    size = books.meter.view(planned)
    standing = tuple(insert for insert in plan.inserts if insert.standing)
    least = before.total
    if standing:
        own = sum(books.meter.derived(insert.text, insert.label) for insert in standing)
        rest = _without(plan, standing, own)
        if size.total > budget.for_input or bytes_over(planned, budget, books) > 0:
            return _taken(view, rest, before, books, budget)
        if not rest:
            return planned, plan, size
        least += own - _replaced(view, plan, standing, books)
    if size.total < least:
        return planned, plan, size
    return view, _refused(plan, f"the view would have had {size.total:,} tokens instead of {before.total:,}"), before


def _replaced(view: View, plan: Plan, standing: Sequence[Insert], books: Ledger) -> int:
    """Give the size of what a plan leaves out that stood in the view for its own sake: others stand in its place, and nothing is saved by it."""
    labels = {insert.label for insert in standing}
    gone = (view.exchanges[drop.index] for drop in plan.drops)
    return sum(
        books.meter.exchange(each) for each in gone if each.derived and each.turns[0].blocks[0].derived in labels
    )


def _without(plan: Plan, standing: Sequence[Insert], size: int) -> Plan:
    """Give a plan without what stands in the view for its own sake."""
    labels = {insert.label for insert in standing}
    details = {name: value for name, value in (plan.details or {}).items() if name not in labels}
    note = f"left out: {', '.join(sorted(labels))}, {size:,} tokens, for want of room"
    inserts = tuple(insert for insert in plan.inserts if not insert.standing)
    return replace(plan, inserts=inserts, notes=(*plan.notes, note), details=details or None)


def _refused(plan: Plan, why: str) -> Plan:
    """Give the empty plan in the place of one that is not taken."""
    return Plan(policy=plan.policy, notes=(*plan.notes, f"not taken: {why}"))


def _finished(view: View, size: Size, books: Ledger, budget: Budget) -> tuple[View, Plan, Size]:
    """Do what is left to do; the very same view when it fits."""
    if size.total <= budget.for_input:
        return view, Plan(policy=NAME), size
    told = NoticeOf(books.sources, books.constraints)
    rest = carried(view, fallback(view, books.meter, Room.of(budget, size), stand_in=told), books.sources)
    final = apply(view, rest, books.applied)
    return final, rest, books.meter.view(final)
