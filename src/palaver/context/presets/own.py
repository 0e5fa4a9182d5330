"""palaver's other own policies: `fold`, `offload`, `default`, `full`; and `lllm`, the original of `default`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from types import MappingProxyType
from typing import ClassVar

from palaver.context.compose import Policy
from palaver.context.cut import Phase
from palaver.context.layout import Form, Layout
from palaver.context.meter import Measure, Meter
from palaver.context.notes import reference, tail_only
from palaver.context.operators import Words, changed, clear, drop, drop_with_note, text_of
from palaver.context.parameters import Parameters, count
from palaver.context.presets import Preset
from palaver.context.record import note
from palaver.log import Handle
from palaver.tokens import SAFETY_BUFFER, Budget
from palaver.view import Plan, Reason, Rewrite, View

# --- fold, offload ------------------------------------------------------------------------------------------------------


class FoldContextManager(Preset):
    """Fold the oldest exchanges into a record that code writes. Source: the plain form of every system that compacts."""

    name = "fold"

    def phases(self, layout: Layout) -> Sequence[Phase]:  # noqa: ARG002 - the same for every layout
        """Fold."""
        return (Phase(drop),)


class OffloadContextManager(Preset):
    """Set old outputs aside; else drop the oldest exchanges.

    Outputs of more than `compaction_token_threshold` tokens become references.

    Attributes:
        threshold: Outputs of more tokens are set aside.
    """

    name = "offload"
    parameters: ClassVar[Parameters] = MappingProxyType({"threshold": count()})
    threshold: int = 500

    def phases(self, layout: Layout) -> Sequence[Phase]:  # noqa: ARG002 - the same for every layout
        """Set aside; then drop."""
        aside = partial(clear, least=self.threshold, words=REFERENCE)
        return (Phase(aside), Phase(drop_with_note))


REFERENCE: Words = partial(reference, lines=3)
"""Shows the first and the last three lines of an output."""


# --- default, lllm ------------------------------------------------------------------------------------------------------


class DefaultContextManager(Preset):
    """Keep the newest messages and drop the oldest. Of the message at the border the newest part stays.

    Source: Productive-Superintelligence/lllm, lllm/core/dialog.py, DefaultContextManager.

    Attributes:
        SAFETY_BUFFER: Tokens kept free for what counting gets wrong; on a small window, at most a third of it.
    """

    name = "default"
    SAFETY_BUFFER: ClassVar[int] = SAFETY_BUFFER
    first: ClassVar[int] = 0

    def phases(self, layout: Layout) -> Sequence[Phase]:  # noqa: ARG002 - the same for every layout
        """Drop all but the border message."""
        return (Phase(partial(_drop_to_border, first=self.first)),)


class LLLM(DefaultContextManager):
    """Keep the first message and the newest ones, and drop those between them.

    Source: as for `default`. The original keeps the beginning of the border message although its mark says otherwise, and parts calls from results.
    """

    name = "lllm"
    first = 1


def _drop_to_border(layout: Layout, cut: int, *, first: int) -> Layout:
    """Drop what is old, but show the end of the exchange at the border: at most half of what one step of the cut leaves out."""
    border, first = cut - 1, min(first, layout.beginning)
    free = border >= first and border not in layout.protected and not layout.view.exchanges[border].derived
    form = _ending(layout, border, (layout.limit - layout.target) // 2) if free else None
    gone = drop(layout, border if form is not None else cut, first=first, stand_in=note)
    return gone if form is None else gone.with_forms({border: form})


def _ending(layout: Layout, index: int, room: int) -> Form | None:
    """Return an exchange with the end of its text in `room` tokens; None where it does not fit, or fits as it is."""
    present, size = layout.form(index), layout.size(index)
    if size <= room:
        return present or Form(size)
    rewrites: list[Rewrite] = []
    for block in layout.view.exchanges[index].blocks():  # its oldest texts leave first
        text = text_of(block.content)
        if size > room and text and block.origin is not None and block.reason is None:
            tokens = layout.meter.text(text)
            ending = _ended(layout.meter, block.origin, text, tokens - (size - room))
            rewrites.append(Rewrite(target=block.origin, text=ending, reason=Reason.SHORTENED))
            size -= tokens - layout.meter.text(ending)
    form = changed(layout, index, rewrites)
    return form if form is not None and form.size <= room else None


def _ended(meter: Measure, handle: Handle, text: str, room: int) -> str:
    """Return the mark and the end of a text in `room` tokens; the mark alone where even that is too large."""
    keep, ending = len(text), tail_only(handle, text, len(text))
    while keep > 0 and (size := meter.text(ending)) > room:
        keep = max(keep * room // size - 1, 0)
        ending = tail_only(handle, text, keep)
    return ending


# --- full ---------------------------------------------------------------------------------------------------------------


class FullContext(Policy):
    """Leave nothing more out of the view. A view that exceeds the budget raises InfeasibleBudget."""

    name = "full"
    complete = True

    def plan(self, view: View, budget: Budget, meter: Meter) -> Plan:  # noqa: ARG002 - nothing matters to it
        """Return an empty plan."""
        return Plan(policy=self.name)
