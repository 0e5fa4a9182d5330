"""What operators share: showing blocks in another form, and which blocks may still be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from palaver.context.ground import Done, Form, Ground, Hole, Layout
from palaver.context.operators.shorten import text_of
from palaver.context.texts import reference
from palaver.context.units import media_in
from palaver.messages import ToolResultContent
from palaver.view import Block, Reason, Remove, Rewrite

__all__ = ["edited", "free", "may_change", "referred", "saving", "settled", "touched", "with_holes"]


def settled(ground: Ground, upto: int, layout: Layout) -> Layout:
    """Measure a layout, with the room for what stands for the missing."""
    shown = tuple(layout.shown(upto))
    size = sum(ground.size(index, layout) for index in shown)
    size += sum(ground.inserted(hole.text, "notice") for hole in layout.holes.values())
    if next(ground.missing(layout), None) is not None:
        size += ground.stand_in.room(ground, upto)
    return replace(layout, size=size, messages=sum(ground.view.exchanges[index].messages for index in shown))


def edited(ground: Ground, layout: Layout, changes: Mapping[int, Sequence[Rewrite | Remove]], operator: str) -> Layout:
    """Show blocks of some exchanges in another form, besides the forms that they have; what gets no smaller by it stays.

    Args:
        ground: The ground.
        layout: The layout so far.
        changes: For each exchange that is shown, the blocks to show in another form or to leave out.
        operator: Who does it.
    """
    forms, all_saved = dict(layout.forms), 0
    for index, wanted in changes.items():
        worth = [(change, gain) for change, gain in _gains(ground, index, wanted) if gain > 0]
        if worth:
            before = forms.get(index) or Form(size=ground.whole(index))
            saved = sum(gain for _, gain in worth)
            all_saved += saved
            forms[index] = Form(
                rewrites=(*before.rewrites, *(one for one, _ in worth if isinstance(one, Rewrite))),
                removes=(*before.removes, *(one for one, _ in worth if isinstance(one, Remove))),
                size=before.size - saved,
                done=(*before.done, Done(operator, len(worth), saved)),
            )
    if not all_saved:
        return layout
    return replace(layout, forms=MappingProxyType(forms), size=layout.size - all_saved)


def saving(ground: Ground, index: int, changes: Sequence[Rewrite | Remove]) -> int:
    """Tell what changes of an exchange save; those that save nothing are not made."""
    return sum(max(gain, 0) for _, gain in _gains(ground, index, changes))


def _gains(ground: Ground, index: int, changes: Sequence[Rewrite | Remove]) -> Iterator[tuple[Rewrite | Remove, int]]:
    blocks = {block.origin: block.content for block in ground.view.exchanges[index].blocks()}
    for change in changes:
        content = blocks[change.target]
        whole = ground.meter.block(content)
        if isinstance(change, Remove):
            yield change, whole
        elif isinstance(content, ToolResultContent):
            yield change, whole - ground.meter.result(change.text)
        else:
            yield change, whole - ground.meter.text(change.text)


def with_holes(ground: Ground, upto: int, layout: Layout, lines: Mapping[int, str], operator: str) -> Layout:
    """Leave whole exchanges out, each with a line in its place; one that is no larger than its line stays."""
    holes = dict(layout.holes)
    for index, line in lines.items():
        saved = ground.size(index, layout) - ground.inserted(line, "notice")
        if index >= layout.cut and index not in holes and saved > 0:
            holes[index] = Hole(line, operator, ground.size(index, layout))
    if len(holes) == len(layout.holes):
        return layout
    forms = {index: form for index, form in layout.forms.items() if index not in holes}
    return settled(
        ground,
        upto,
        replace(layout, holes=MappingProxyType(dict(sorted(holes.items()))), forms=MappingProxyType(forms)),
    )


def referred(ground: Ground, index: int) -> Form | None:
    """Give the form in which every text and output of an exchange that is larger than its reference is shown as one; None for none."""
    exchange = ground.view.exchanges[index]
    wanted = [
        Rewrite(
            target=block.origin,
            text=reference(block.origin, text, lines=_LINES, media=tuple(media_in(block.content))),
            reason=Reason.OFFLOADED,
        )
        for block in exchange.blocks()
        if block.origin is not None and (text := text_of(block)) is not None
    ]
    worth = [(change, gain) for change, gain in _gains(ground, index, wanted) if gain > 0]
    if not worth:
        return None
    saved = sum(gain for _, gain in worth)
    rewrites = tuple(change for change, _ in worth if isinstance(change, Rewrite))
    return Form(rewrites=rewrites, size=ground.whole(index) - saved, done=(Done("offload", len(rewrites), saved),))


_LINES = 0
"""Lines of a text that its shortest reference shows."""


def touched(layout: Layout, index: int, block: Block) -> bool:
    """Tell whether a block is shown in another form already, or left out."""
    if block.reason is not None or block.origin is None:
        return True
    form = layout.forms.get(index)
    if form is None:
        return False
    changes: tuple[Rewrite | Remove, ...] = (*form.rewrites, *form.removes)
    return any(each.target == block.origin for each in changes)


def free(ground: Ground, upto: int, layout: Layout) -> Iterator[int]:
    """Give the exchanges whose blocks may be shown in another form, in order."""
    return (index for index in layout.shown(upto) if may_change(ground, upto, index))


def may_change(ground: Ground, upto: int, index: int) -> bool:
    """Tell whether the blocks of an exchange may be shown in another form: not pinned, open, derived, the newest ask or response, or to be left alone."""
    if index >= ground.recent(upto):
        return False
    exchange = ground.view.exchanges[index]
    newest = index in ground.newest(upto)
    return not (newest or exchange.pinned or exchange.open or exchange.derived)
