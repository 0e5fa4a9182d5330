"""Cutting in steps.

A policy that looks at the newest request only moves its cut with every request, and every request then begins differently from the
one before: no provider finds it in its cache. Here the cut is a function of the history: the exchanges are gone through from the
first, and only where they outgrow the room is something done, down to a low mark. Between two such steps a request is the one before
and what is new (law 7), although nothing was stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from palaver.context.ground import Done, Ground, Hole, Layout
from palaver.context.operators.operator import Edit
from palaver.context.record.carried import sources_of
from palaver.view import Drop, Insert, Plan, Reason

__all__ = ["Removed", "laid_out", "over", "plan_of", "removed"]


@dataclass(frozen=True, slots=True)
class Removed:
    """What an operator took out of a view, all in all.

    Attributes:
        operator: The operator's name.
        exchanges: How many exchanges it changed or left out.
        blocks: How many of their blocks it shows in another form or leaves out; 0 where it left out whole exchanges.
        saved: What that saved, in the unit of the measure; what stands in the place of what is gone is not taken off.
    """

    operator: str
    exchanges: int
    blocks: int
    saved: int

    def sentence(self, unit: str) -> str:
        """Say it."""
        what = (
            f"{self.blocks:,} blocks of {self.exchanges:,} exchanges"
            if self.blocks
            else f"{self.exchanges:,} exchanges"
        )
        return f"{self.operator}: {what}, {self.saved:,} {unit}"


def over(ground: Ground, upto: int, layout: Layout) -> bool:  # noqa: ARG001 - the size says it all
    """Tell whether a layout has outgrown the room."""
    return layout.size > ground.room.high


def laid_out(
    ground: Ground,
    edit: Edit,
    *,
    when: Callable[[Ground, int, Layout], bool] = over,
    always: Edit | None = None,
) -> Layout:
    """Go through the exchanges from the first, and make the layout smaller wherever it outgrows the room.

    Args:
        ground: The ground.
        edit: Makes the layout smaller.
        when: Tells when to: where the room is outgrown, unless given.
        always: Done at every exchange, before it is asked whether the room is outgrown.
    """
    layout = Layout()
    for index in range(len(ground.view.exchanges)):
        exchange = ground.view.exchanges[index]
        layout = layout.grown(ground.whole(index), exchange.messages)
        if always is not None:
            layout = always(ground, index, layout)
        if when(ground, index, layout):
            smaller = edit(ground, index, layout)
            layout = layout if smaller is layout else replace(smaller, at=index)
    return layout


def removed(ground: Ground, layout: Layout) -> tuple[Removed, ...]:
    """Tell what a layout takes out, by operator, in the order in which it is met."""
    exchanges, blocks, saved = Counter[str](), Counter[str](), Counter[str]()
    for done in _done(ground, layout):
        exchanges[done.operator] += 1
        blocks[done.operator] += done.blocks
        saved[done.operator] += done.saved
    return tuple(Removed(name, exchanges[name], blocks[name], saved[name]) for name in exchanges)


def _done(ground: Ground, layout: Layout) -> Iterator[Done]:
    missing = frozenset(ground.missing(layout))
    for index, form in sorted(layout.forms.items()):
        if index not in missing:
            yield from form.done
    for hole in layout.holes.values():
        yield Done(hole.operator, 0, hole.saved)
    for index in sorted(missing):
        yield Done(ground.stand_in.reason.value, 0, ground.whole(index))


def plan_of(ground: Ground, layout: Layout, policy: str) -> Plan:
    """Write a layout down as a plan; its notes say what each operator took out."""
    protected = ground.view.protected()
    missing = [index for index in ground.missing(layout) if index not in protected]
    holes = {index: hole for index, hole in sorted(layout.holes.items()) if index not in protected}
    forms = [form for index, form in sorted(layout.forms.items()) if index not in {*missing, *holes}]
    drops = [Drop(index=index, reason=ground.stand_in.reason) for index in missing]
    drops += [Drop(index=index, reason=Reason.SUPERSEDED) for index in holes]
    inserts = ground.stand_in.inserts(ground, layout) if missing and layout.told else ()
    return Plan(
        policy=policy,
        drops=tuple(drops),
        rewrites=tuple(rewrite for form in forms for rewrite in form.rewrites),
        removes=tuple(remove for form in forms for remove in form.removes),
        inserts=(*inserts, *(_line(ground, index, hole) for index, hole in holes.items())),
        notes=tuple(each.sentence(ground.meter.unit) for each in removed(ground, layout)),
    )


def _line(ground: Ground, index: int, hole: Hole) -> Insert:
    """Give the line in the place of an exchange."""
    exchange = ground.view.exchanges[index]
    trust = min(block.trust for block in exchange.blocks())
    return Insert(before=index + 1, text=hole.text, label="notice", sources=sources_of([exchange]), trust=trust)
