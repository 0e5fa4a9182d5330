"""Compactions as session managers record them: a summary, and the first entry that was kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from palaver.context import Ledger, Meter
from palaver.context.placing import carrying_on
from palaver.context.record.carried import sources_of
from palaver.log import Compaction, Handle, Reader, Span
from palaver.session.branches.merging import lowest_trust
from palaver.session.calls.composing import tokens_of
from palaver.session.compaction.committing import proven
from palaver.tokens import counter
from palaver.view import Exchange, Insert, Plan, Reason, View, apply
from palaver.view.plan import Drop

__all__ = ["POLICY", "Recorded", "kept_from"]

POLICY = "summary"
"""The name under which a compaction that was recorded with its summary stands in views."""


class Recorded(NamedTuple):
    """A compaction as it was made.

    Attributes:
        summary: What stands for what leaves the view.
        first_kept: The first entry that stays; None, or one that the dialog does not hold, keeps what every view must hold.
        tokens_before: The size of the view before, as whoever made it counted it.
        details: What is to be kept with it; JSON values.
    """

    summary: str
    first_kept: Handle | None
    tokens_before: int
    details: object = None


def kept_from(reader: Reader, view: View, spans: Sequence[Span], made: Recorded) -> Compaction:
    """Make the entry of a compaction: the summary stands first, then everything from an entry on.

    What every view must hold stays: the newest words of the user, pinned entries, open calls. An exchange that the entry is in the middle of
    stays whole. An earlier summary goes: the new one stands for all before it. What is known of what leaves goes on beside it, unseen.

    Args:
        reader: The log.
        view: The view as it stands.
        spans: All that the dialog holds.
        made: The compaction.
    """
    first_kept = made.first_kept
    begin = len(spans) if first_kept is None else _rank(first_kept, spans)[0]
    rank = (begin, -1 if first_kept is None else first_kept.seq)
    protected = view.protected()
    gone = [
        index
        for index, exchange in enumerate(view.exchanges)
        if index not in protected and (exchange.first is None or _ends(exchange, spans) < rank)
    ]
    left = [view.exchanges[index] for index in gone]
    insert = Insert(before=0, text=made.summary, label="summary", sources=sources_of(left), trust=lowest_trust(left))
    plan = Plan(policy=POLICY, drops=tuple(Drop(index=one, reason=Reason.COMPACTED) for one in gone), inserts=(insert,))
    after = carrying_on(view, apply(view, plan), Ledger(meter=Meter(counter(view.model))))
    entry = proven(reader, after, policy=POLICY, before=made.tokens_before, after=tokens_of(after, ""))
    return entry if made.details is None else Compaction.model_validate({**dict(entry), "details": made.details})


def _ends(exchange: Exchange, spans: Sequence[Span]) -> tuple[int, int]:
    return max(_rank(Handle(run.dialog, run.stop - 1), spans) for run in exchange.runs)


def _rank(place: Handle, spans: Sequence[Span]) -> tuple[int, int]:
    """Give a place's order in the log; one that is not in it stands behind everything."""
    held = (
        index
        for index, span in enumerate(spans)
        if place.dialog == span.dialog and place.seq in range(span.start, span.stop)
    )
    return next(held, len(spans)), place.seq
