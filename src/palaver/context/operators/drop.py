"""Drop: leave out old exchanges, with a record or a note in their place."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from palaver.context.layout import STAND_INS, Layout
from palaver.context.record import note, record
from palaver.view import Insert, Reason

__all__ = ["StandIn", "drop", "drop_with_note"]

StandIn: TypeAlias = Callable[[Layout], Insert]
"""Makes the text that stands for what is left out: `record.record` or `record.note`."""


def drop(
    layout: Layout, cut: int, *, first: int = 0, stand_in: StandIn = record, keep: frozenset[int] | None = None
) -> Layout:
    """Leave out the exchanges before `cut`, except those to keep, with a record in their place.

    The record covers what was dropped before, too. Where nothing would leave but an earlier record, the layout stays as it is.

    Args:
        layout: The layout.
        cut: The first exchange that stays.
        first: So many exchanges at the beginning stay too.
        stand_in: What stands for them.
        keep: Indexes of exchanges that stay; by default the protected ones.
    """
    reason = Reason.OVER_BUDGET if stand_in is note else Reason.FOLDED
    gone = layout.without(first, cut, reason, keep=keep)
    if all(layout.view.exchanges[index].derived in STAND_INS for each, _ in gone.dropped for index in each):
        return layout
    return gone.without_stand_ins().with_insert(stand_in(gone))


def drop_with_note(layout: Layout, cut: int) -> Layout:
    """Leave out the exchanges before `cut`, except protected ones, with one line in their place."""
    return drop(layout, cut, stand_in=note)
