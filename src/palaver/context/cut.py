"""The cut: the one mechanism by which every policy makes a view smaller.

A cut is an index: everything before it is old. A *stage* is a function of a layout and a cut that changes old exchanges only.

Where the plan is committed, the next one starts from its result, and the cut is the first at or under the target: the same at every compaction. Where it is not, as with
`fit` and previews, nothing is remembered between calls: `find_cut` computes the cut from the log alone, and finds the same cut again while the log grows.

Think of a ruler along the log. It has long marks every step (limit - target), shorter marks between them, and longer marks at two steps, four steps and so
on.
The view fits between target and limit for a stretch of cuts. Of the marks in that stretch the longest is the cut. The stretch slides forward as the log grows; the mark stays
the longest in it until it slides out, and only then does the view change. Where no long mark is in the stretch, the first cut at or under the target belongs to it.

The ruler does not measure tokens: they are estimated from recorded bytes, which are in the headers, so that a long log is not read. The stretch is one step long and has one long mark, so a view of T tokens loses ceil((T - L) / (L - G)) * (L - G) of
them. Where bytes predict tokens badly, the view still ends between target and limit, which that formula alone would miss.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from palaver.context.layout import Layout

Stage: TypeAlias = Callable[[Layout, int], Layout]
"""Returns a layout with everything before the cut treated as old.

Nothing at or after the cut changes, what becomes of old exchanges depends on old exchanges only, and a later cut leaves a smaller layout.
"""


@dataclass(frozen=True, slots=True)
class Phase:
    """A stage, and how far it may go.

    Attributes:
        stage: What becomes of everything before a cut.
        target: Down to how many tokens of the whole request the cut goes; None for the target of the budget.
        stop: The newest cut: what its source leaves alone comes after it, and a committed plan cuts there. None where the source states only a size.
        frees: The least it must free to count, in tokens.
    """

    stage: Stage
    target: int | None = None
    stop: int | None = None
    frees: int = 0


def run_stages(layout: Layout, *stages: Stage | Phase, stop: int | None = None) -> Layout:
    """Run stages in order and stop at the first that suffices.

    Each stage starts from `layout`, not from the result of the stage before it. A stage that includes another one calls it.

    Args:
        layout: The layout as it is without a cut.
        stages: The stages. A `Phase` limits how far its stage may go.
        stop: The newest cut to consider, unless every stage needs a newer one.

    Returns:
        `layout` itself when it fits; the layout of the first stage with a cut at or under the limit; else the last stage at the newest cut.
    """
    if layout.fits() or not stages:
        return layout
    phases = [stage if isinstance(stage, Phase) else Phase(stage) for stage in stages]
    for last in dict.fromkeys((layout.end if stop is None else stop, layout.end)):
        for phase in phases:
            made = run_phase(layout, phase, last)
            if made is not None:
                return made
    return _stage(layout, phases[-1])(layout, max(layout.end - 1, 0))


def run_phase(layout: Layout, phase: Phase, stop: int) -> Layout | None:
    """Return the layout at the cut of a phase, at most `stop`; None when no cut is at or under the limit."""
    target = layout.target if phase.target is None else min(phase.target, layout.limit - 1)
    aimed = replace(layout, target=0 if layout.committed and phase.stop is not None else target)
    last = stop if phase.stop is None else min(stop, phase.stop)
    made = find_cut(aimed, _stage(layout, phase), stop=last)
    return None if made is None or (phase.frees and layout.total() - made.total() < phase.frees) else made


_ROOM = 16_000
"""The least tokens of which a record has its shares where a phase leaves less: a quarter of them is the longest summary (`summary.py`)."""


def _stage(layout: Layout, phase: Phase) -> Stage:
    """Return the stage of a phase, in which a record has its shares of the phase's target: it must not outweigh what the phase leaves."""
    target = layout.target if phase.target is None else min(layout.target, max(phase.target, _ROOM))
    return lambda _, cut: phase.stage(replace(layout, target=target), cut)


def find_cut(layout: Layout, stage: Stage, *, stop: int | None = None) -> Layout | None:
    """Return the layout at the first cut at or under the target, where the plan is committed; else at the roundest allowed cut.

    Where a committed plan cannot reach the target, the newest cut is taken. Where no other cut lands between target and limit, because one exchange is larger than the
    step, the first cut at or under the limit is taken.

    Args:
        layout: The layout as it is without a cut.
        stage: The stage.
        stop: The newest cut to consider. The newest exchange is never old.

    Returns:
        The layout, or None when no cut is at or under the limit.
    """
    last = layout.end - 1 if stop is None else min(stop, layout.end - 1)
    search = _Search(layout, stage)
    first, newest = search.under(layout.limit, layout.end - 1), last
    if last < max(first, 1) or search.rest(last) > layout.limit:
        return None
    if layout.committed:
        cuts = range(search.under(layout.target, last), last)
        cut = cuts.start + bisect_left(cuts, -layout.target, key=lambda at: -search.size(at))
        return search.at(cut) if search.size(cut) <= layout.limit else None
    position, step = layout.position, max(1, layout.limit - layout.target)
    while first <= newest:  # of the cuts that may be allowed, the one at the roundest mark is measured
        cut = roundest(position, first, newest, step)
        if search.size(cut) > layout.limit:
            first = cut + 1
        elif search.size(cut) <= layout.target:
            newest = cut - 1
        elif newest == last or position(cut - 1) // step < position(cut) // step:
            return search.at(cut)
        else:  # no long mark is in the stretch
            others = range(cut + 1, newest + 1)
            beyond = cut + 1 + bisect_left(others, -layout.target, key=lambda other: -search.size(other))
            return search.at(roundest(position, cut, beyond, step))
    return search.at(first) if first <= last else None


class _Search:
    """Sizes of a stage at cuts. Adds up new exchanges once; the stage measures old ones."""

    def __init__(self, layout: Layout, stage: Stage) -> None:
        self._layout = layout
        self._stage = stage
        self._tails = [0]
        self._found: dict[int, tuple[Layout, int]] = {}

    def rest(self, cut: int) -> int:
        """Return the size of the new exchanges at a cut, with instructions and tools."""
        layout = self._layout
        while len(self._tails) <= layout.end - cut:
            self._tails.append(self._tails[-1] + layout.size(layout.end - len(self._tails)))
        return layout.fixed + layout.added + self._tails[layout.end - cut]

    def under(self, most: int, last: int) -> int:
        """Return the first cut, from 1 to `last`, at which the new exchanges have at most `most` tokens."""
        cut = last
        while cut > 1 and self.rest(cut - 1) <= most:
            cut -= 1
        return cut

    def at(self, cut: int) -> Layout:
        """Return the layout at a cut."""
        return self._at(cut)[0]

    def size(self, cut: int) -> int:
        """Return the size at a cut, or any number above the limit."""
        return self._at(cut)[1]

    def _at(self, cut: int) -> tuple[Layout, int]:
        if cut not in self._found:
            made = self._stage(self._layout, cut)
            new = self.rest(cut) - self._layout.fixed - self._layout.added
            self._found[cut] = (made, new + made.total(self._layout.limit - new, stop=cut))
        return self._found[cut]


_FINEST = 16
"""Powers of two below one step by which boundaries differ."""

_COARSEST = 40
"""Powers of two above one step."""


def roundest(position: Callable[[int], int], first: int, last: int, step: int) -> int:
    """Return the boundary of `first` to `last` that reaches the roundest position.

    Args:
        position: Returns the size before a boundary, which ascends.
        first: The first boundary, at least 1.
        last: The last boundary.
        step: The size of one step: the roundest positions are its multiples by large powers of two.
    """
    low, high = position(first - 1) << _FINEST, position(last) << _FINEST
    unit = step << (_FINEST + _COARSEST)
    while unit > 1 and high // unit == low // unit:
        unit //= 2
    reached = -(-(high // unit * unit) >> _FINEST)
    return bisect_left(range(last), reached, first, key=position)
