"""Drop the oldest exchanges, whole, and keep the end of the one at the border. Lossy to the model, which reads where the rest is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType

from palaver.context.ground import Done, Form, Ground, Layout
from palaver.context.operators.forms import referred, settled
from palaver.context.operators.operator import Loss, Operator
from palaver.context.operators.properties import Property
from palaver.context.operators.shorten import shortened
from palaver.context.texts import kept_end, kept_ends
from palaver.view import Rewrite

__all__ = ["DROP_OLDEST", "Cut", "dropping"]

_LEAST_BORDER = 128
"""Tokens that must be free for the end of a border exchange to be worth showing."""

_NAME = "drop_oldest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Keeps what fits below the low mark, from the newest exchange backwards, and leaves room for what stands for the rest.

    The newest user message, the newest response and what is pinned stay wherever they stand; so does what the ground holds, while that is
    no more than the low mark. What the room says of recent messages stays as far as there is room.

    Attributes:
        border: Whether the end of the exchange at the border is kept.
        messages: The most messages to keep, those in front included; None for as many as fit.
        done: Whether only what the user had said and got before his newest words is dropped, down to the low mark without what came after.
        by_size: Whether the low mark counts; else there is room up to the high one.
        tail: Tokens at the end to keep, in the place of the low mark; what stands for the rest has its room besides. None for the low mark.
    """

    border: bool = True
    messages: int | None = None
    done: bool = False
    by_size: bool = True
    tail: int | None = None

    def __call__(self, ground: Ground, upto: int, layout: Layout) -> Layout:
        """Make a layout smaller."""
        if not self.done:
            layout = _tightened(ground, upto, layout)
        keep = self._kept(ground, upto, layout)
        must = sum(ground.size(index, layout) for index in keep) + ground.stand_in.room(ground, upto)
        must += sum(ground.inserted(hole.text, "notice") for hole in layout.holes.values())
        cut, used = self._walk(ground, upto, layout, keep, must)
        forms = {index: form for index, form in layout.forms.items() if index >= cut or index in keep}
        border = cut - 1
        if self.border and border >= layout.cut and not {border} & {*keep, *layout.forms, *layout.holes}:
            form = _border(ground, border, ground.room.low - must - used)
            if form is not None:
                forms[border] = form
                cut = border
        return settled(
            ground,
            upto,
            replace(
                layout,
                cut=cut,
                kept=tuple(sorted(index for index in keep if index < cut)),
                forms=MappingProxyType(forms),
                holes=MappingProxyType({index: hole for index, hole in layout.holes.items() if index >= cut}),
            ),
        )

    def _kept(self, ground: Ground, upto: int, layout: Layout) -> frozenset[int]:
        """Give what stays wherever it stands: what must, and of the rest what is shown and leaves room for more."""
        protected = ground.protected(upto)
        if not ground.keeps:
            return protected
        shown = set(layout.shown(upto))
        free = ground.room.low - ground.stand_in.room(ground, upto)
        free -= sum(ground.size(index, layout) for index in protected)
        kept = set(protected)
        for index in sorted((ground.held(upto) & shown) - protected, reverse=True):
            if (size := ground.size(index, layout)) <= free:
                free -= size
                kept.add(index)
        return frozenset(kept)

    def _walk(self, ground: Ground, upto: int, layout: Layout, keep: frozenset[int], must: int) -> tuple[int, int]:
        """Give the first exchange that there is room for, and what is used besides `must`.

        Where there is not room even for all that is to be left alone, less of it is kept than there is room for: else every further message
        would cut again.
        """
        cut, used, recent = self._back(ground, upto, layout, keep, must, ground.room.high)
        if recent:
            cut, used, _ = self._back(ground, upto, layout, keep, must, ground.room.enough)
        return cut, used

    def _low(self, ground: Ground, upto: int) -> int:
        """Give the size down to which is cut."""
        if self.tail is None:
            return ground.room.low
        return min(self.tail + ground.stand_in.room(ground, upto), ground.room.high)

    def _back(
        self, ground: Ground, upto: int, layout: Layout, keep: frozenset[int], must: int, most: int
    ) -> tuple[int, int, bool]:
        """Go back from the newest exchange while there is room; tell besides whether it ended at one that was to be left alone."""
        exchanges, room = ground.view.exchanges, ground.room
        low = self._low(ground, upto) if self.by_size else most
        front = sum(exchanges[index].messages for index in keep)
        cut, used, messages, done = upto + 1, 0, 0, 0
        ask = ground.asked(upto)
        for index in range(upto, layout.cut - 1, -1):
            if index not in keep and index not in layout.holes:
                size = ground.size(index, layout)
                recent = messages < room.keep_last or used < room.keep_recent or (self.done and index > ask)
                whole = must + used + size
                if self.done and index <= ask:
                    done += size
                over = whole > most if recent else (done > low or whole > most) if self.done else whole > low
                if over:
                    return cut, used, recent
                if self.messages is not None and not recent and front + exchanges[index].messages > self.messages:
                    break
                used += size
                front += exchanges[index].messages
            messages += exchanges[index].messages
            cut = index
        return cut, used, False


def _border(ground: Ground, index: int, room: int) -> Form | None:
    """Give the end of the exchange at the border, where there is room for some of it."""
    if room < _LEAST_BORDER:
        return None
    rewrites, size = shortened(ground.view.exchanges[index], room, ground.meter, form=kept_end)
    return _form(ground, index, rewrites, size) if rewrites and size <= room else None


def _form(ground: Ground, index: int, rewrites: tuple[Rewrite, ...], size: int) -> Form:
    done = Done("shorten", len(rewrites), ground.whole(index) - size)
    return Form(rewrites=rewrites, size=size, done=(done,))


def _tightened(ground: Ground, upto: int, layout: Layout) -> Layout:
    """Shorten the newest response where it and what must stand beside it would fill more than the room.

    A batch of results may be larger than the window. What was shortened before and is too large still, because more came that must
    stand beside it, is shown as references.
    """
    index = ground.response(upto)
    must = sum(ground.size(each, layout) for each in ground.protected(upto)) + ground.stand_in.room(ground, upto)
    before = layout.forms.get(index)
    most = ground.room.enough if before is None else ground.room.high
    if index < 0 or must <= most or ground.view.exchanges[index].pinned:
        return layout
    if before is None:
        room = ground.room.enough - (must - ground.whole(index))
        rewrites, size = shortened(ground.view.exchanges[index], max(room, 0), ground.meter, form=kept_ends)
        form = _form(ground, index, rewrites, size) if rewrites else None
    else:
        form = referred(ground, index)
    if form is None or (before is not None and form.size >= before.size):
        return layout
    return replace(layout, forms=MappingProxyType({**layout.forms, index: form}))


def dropping(cut: Cut) -> Operator:
    """Give the operator that cuts in some way."""
    return Operator(_NAME, Loss.LOSSY, cut, frozenset({Property.TOOL_LOOP}))


DROP_OLDEST = dropping(Cut())
