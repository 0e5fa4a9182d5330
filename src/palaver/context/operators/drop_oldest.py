"""Drop the oldest exchanges, whole, and keep the end of the one at the border. Lossy to the model, which reads where the rest is."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from palaver.context.ground import Form, Ground, Layout
from palaver.context.operators.operator import Loss, Operator
from palaver.context.operators.shorten import shortened
from palaver.context.texts import kept_end, kept_ends

__all__ = ["DROP_OLDEST", "drop_oldest", "settled"]

_LEAST_BORDER = 128
"""Tokens that must be free for the end of a border exchange to be worth showing."""


def drop_oldest(ground: Ground, upto: int, layout: Layout) -> Layout:
    """Keep what fits below the low mark, from the newest exchange backwards, and leave room for what stands for the rest.

    The newest user message, the newest response and what is pinned stay wherever they stand. What the budget says of recent tokens and
    messages stays as far as the room allows.
    """
    layout = _tightened(ground, upto, layout)
    keep = ground.protected(upto)
    must = sum(ground.size(index, layout) for index in keep)
    must += ground.stand_in.room(ground, upto)
    cut, used = _walk(ground, upto, layout, must)
    forms = {index: form for index, form in layout.forms.items() if index >= cut or index in keep}
    border = cut - 1
    if border >= layout.cut and border not in keep and border not in layout.forms:
        room = ground.low - must - used
        form = _border(ground, border, room)
        if form is not None:
            forms[border] = form
            cut = border
    kept = tuple(sorted(index for index in keep if index < cut))
    return settled(ground, upto, replace(layout, cut=cut, kept=kept, forms=MappingProxyType(forms)))


def settled(ground: Ground, upto: int, layout: Layout) -> Layout:
    """Count a layout, with the room for what stands for the missing."""
    tokens = sum(ground.size(index, layout) for index in layout.shown(upto))
    if next(ground.missing(layout), None) is not None:
        tokens += ground.stand_in.room(ground, upto)
    return replace(layout, tokens=tokens)


def _walk(ground: Ground, upto: int, layout: Layout, must: int) -> tuple[int, int]:
    """Go back from the newest exchange while there is room; give the first exchange that has it, and the tokens used besides `must`."""
    keep = ground.protected(upto)
    cut, used, messages = upto + 1, 0, 0
    for index in range(upto, layout.cut - 1, -1):
        if index not in keep:
            after = used + ground.size(index, layout)
            recent = messages < ground.budget.keep_last or used < ground.budget.keep_recent
            if must + after > (ground.high if recent else ground.low):
                break
            used = after
        messages += ground.view.exchanges[index].messages
        cut = index
    return cut, used


def _border(ground: Ground, index: int, room: int) -> Form | None:
    """Give the end of the exchange at the border, where there is room for some of it."""
    if room < _LEAST_BORDER:
        return None
    rewrites, tokens = shortened(ground.view.exchanges[index], room, ground.meter, form=kept_end)
    return Form(rewrites=rewrites, tokens=tokens) if rewrites and tokens <= room else None


def _tightened(ground: Ground, upto: int, layout: Layout) -> Layout:
    """Shorten the newest response where it and what must stand beside it would fill more than the room.

    A batch of results may be larger than the window.
    """
    index = ground.response(upto)
    must = sum(ground.size(each, layout) for each in ground.protected(upto))
    if index < 0 or must <= ground.enough or index in layout.forms or ground.view.exchanges[index].pinned:
        return layout
    room = ground.enough - (must - ground.size(index, layout))
    rewrites, tokens = shortened(ground.view.exchanges[index], max(room, 0), ground.meter, form=kept_ends)
    if not rewrites:
        return layout
    return replace(layout, forms=MappingProxyType({**layout.forms, index: Form(rewrites=rewrites, tokens=tokens)}))


DROP_OLDEST = Operator("drop_oldest", Loss.LOSSY, drop_oldest)
