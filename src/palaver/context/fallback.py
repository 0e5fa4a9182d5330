"""The last resort: a deterministic plan that needs no model, for a view that is over budget when the policy has had its say.

Reversible first: old outputs are set aside; only then the oldest exchanges are dropped, in steps. If what must stay is still too
large, its texts and results are shortened, and at last the newest exchange goes too, unless every view must hold it. What is left then is
the floor, which is known to fit.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from palaver.context.ground import Form, Ground, Layout
from palaver.context.measure import Meter
from palaver.context.notice import NOTICE
from palaver.context.operators import DROP_OLDEST, OFFLOAD, in_phases
from palaver.context.operators.drop_oldest import settled
from palaver.context.operators.shorten import shortened
from palaver.context.steps import laid_out, plan_of
from palaver.context.texts import kept_ends
from palaver.tokens import Budget
from palaver.view import Plan, View

__all__ = ["NAME", "fallback"]

NAME = "palaver"
"""The name that such omissions carry in the place of a policy's."""


def fallback(view: View, meter: Meter, budget: Budget) -> Plan:
    """Plan what is left to do; an empty plan when the view fits."""
    if meter.view(view).total <= budget.for_input:
        return Plan(policy=NAME)
    ground = Ground(view, meter, budget, NOTICE)
    layout = laid_out(ground, in_phases(OFFLOAD, DROP_OLDEST))
    if layout.tokens > ground.high:
        layout = _to_the_floor(ground, layout)
    return plan_of(ground, layout, NAME)


def _to_the_floor(ground: Ground, layout: Layout) -> Layout:
    """Keep what every view must hold and the newest exchange; shorten both as far as needed, then give up the newest, then the notice."""
    last = len(ground.view.exchanges) - 1
    protected = ground.view.protected()
    for keep in (protected | {last}, protected):
        small = _squeezed(ground, last, _only(ground, last, layout, keep))
        if small.tokens <= ground.high:
            return small
    bare = _only(ground, last, layout, protected)
    if next(ground.missing(bare), None) is not None:
        bare = replace(bare, told=False, tokens=bare.tokens - ground.stand_in.room(ground, last))
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
    forms, tokens = dict(layout.forms), layout.tokens
    for index in layout.shown(last):
        if tokens <= ground.high:
            break
        if index not in whole:
            before = ground.size(index, replace(layout, forms=forms))
            room = max(before - (tokens - ground.high), 0)
            rewrites, after = shortened(ground.view.exchanges[index], room, ground.meter, form=kept_ends)
            if rewrites and after < before:
                forms[index] = Form(rewrites=rewrites, tokens=after)
                tokens -= before - after
    return replace(layout, forms=MappingProxyType(forms), tokens=tokens)
