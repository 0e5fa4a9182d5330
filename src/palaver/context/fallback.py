"""The last resort: a deterministic plan that needs no model, for a view that is over budget when the policy has had its say.

Reversible first: old outputs are set aside; only then the oldest exchanges are dropped, in steps. If what must stay is still too
large, its texts and results are shortened, and at last the newest exchange goes too, unless every view must hold it. What is left then is
the floor, which is known to fit.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from palaver.context.ground import Done, Form, Ground, Layout, Room, StandIn
from palaver.context.measure import Measure
from palaver.context.notice import NOTICE
from palaver.context.operators import DROP_OLDEST, OFFLOAD, Edit, in_phases
from palaver.context.operators.forms import settled
from palaver.context.operators.shorten import shortened
from palaver.context.steps import laid_out, plan_of
from palaver.context.texts import kept_ends
from palaver.view import Plan, View

__all__ = ["NAME", "fallback"]

NAME = "palaver"
"""The name that such omissions carry in the place of a policy's."""


IN_STEPS = in_phases(OFFLOAD, DROP_OLDEST)
"""What is done before the last resort."""


def fallback(view: View, meter: Measure, room: Room, edit: Edit = IN_STEPS, stand_in: StandIn = NOTICE) -> Plan:
    """Plan what is left to do; an empty plan when the view fits.

    What stands for exchanges gives way to a bare notice before one that must be in the view would not fit, and that to nothing.

    Args:
        view: The view.
        meter: The unit in which it must fit.
        room: The room for its exchanges, in that unit.
        edit: What to do in steps before the last resort.
        stand_in: What stands for exchanges that are left out.
    """
    ground = Ground(view, meter, room, stand_in)
    if sum(map(ground.whole, range(len(view.exchanges)))) <= room.high:
        return Plan(policy=NAME)
    layout = laid_out(ground, edit)
    if layout.size > room.high:
        layout = _to_the_floor(ground, layout)
    if stand_in is not NOTICE and (layout.size > room.high or not layout.told):
        return fallback(view, meter, room, edit)
    return plan_of(ground, layout, NAME)


def _to_the_floor(ground: Ground, layout: Layout) -> Layout:
    """Keep what every view must hold and the newest exchange; shorten both as far as needed, then give up the newest, then the notice."""
    last = len(ground.view.exchanges) - 1
    protected = ground.view.protected()
    for keep in (protected | {last}, protected):
        small = _squeezed(ground, last, _only(ground, last, layout, keep))
        if small.size <= ground.room.high:
            return small
    bare = _only(ground, last, layout, protected)
    if next(ground.missing(bare), None) is not None:
        bare = replace(bare, told=False, size=bare.size - ground.stand_in.room(ground, last))
    return _squeezed(ground, last, bare)


def _only(ground: Ground, last: int, layout: Layout, keep: frozenset[int]) -> Layout:
    """Give the layout that shows nothing but some exchanges."""
    return settled(ground, last, Layout(cut=last + 1, kept=tuple(sorted(keep)), forms=_of(layout, keep)))


def _of(layout: Layout, keep: frozenset[int]) -> MappingProxyType[int, Form]:
    return MappingProxyType({index: form for index, form in layout.forms.items() if index in keep})


def _squeezed(ground: Ground, last: int, layout: Layout) -> Layout:
    """Shorten the exchanges that may be, the oldest first, until all of it fits or nothing more can be shortened.

    The newest user message and what is pinned are never shortened: whoever pinned it, or asked it, wants it read.
    """
    whole = {ground.view.newest_user(), *(i for i, exchange in enumerate(ground.view.exchanges) if exchange.pinned)}
    forms, size = dict(layout.forms), layout.size
    for index in layout.shown(last):
        if size <= ground.room.high:
            break
        if index not in whole:
            before = ground.size(index, replace(layout, forms=forms))
            room = max(before - (size - ground.room.high), 0)
            rewrites, after = shortened(ground.view.exchanges[index], room, ground.meter, form=kept_ends)
            if rewrites and after < before:
                done = Done("shorten", len(rewrites), ground.whole(index) - after)
                forms[index] = Form(rewrites=rewrites, size=after, done=(done,))
                size -= before - after
    return replace(layout, forms=MappingProxyType(forms), size=size)
