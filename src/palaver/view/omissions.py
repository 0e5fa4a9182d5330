"""What leaves a view with whole exchanges: one omission for each contiguous run of entries."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TypeAlias

from palaver.ids import DialogId
from palaver.log import Span, gaps
from palaver.view.blocks import Reason
from palaver.view.exchange import Exchange
from palaver.view.view import Omission, View

_Entries: TypeAlias = AbstractSet[tuple[DialogId, int]]

DECIDED = frozenset({Reason.OVER_BUDGET, Reason.FOLDED, Reason.COMPACTED, Reason.MANAGER})
"""Why whole exchanges leave. Entries with another reason were never shown."""


@dataclass(slots=True)
class _Run:
    """A run of entries that leaves; its neighbours are added to it."""

    dialog: DialogId
    start: int
    stop: int
    reason: Reason
    by: str
    messages: int
    size: int

    @classmethod
    def of(cls, gone: Omission) -> _Run:
        """Return an omission of whole entries as a run."""
        span = gone.span or Span(DialogId(""), 0, 0)
        return cls(span.dialog, span.start, span.stop, gone.reason, gone.by, gone.messages, gone.size)

    def omission(self) -> Omission:
        """Return the run as an omission."""
        span = Span(self.dialog, self.start, self.stop)
        return Omission(reason=self.reason, span=span, by=self.by, messages=self.messages, size=self.size)


def left_out(view: View, dropped: Mapping[int, Reason], policy: str) -> tuple[Omission, ...]:
    """Return the omissions of a view without some exchanges.

    Neighbouring entries with one reason make one omission. Entries that views never show do not part neighbours. Entries that the view shows or depends
    on do, and so does what the dialog does not share of an ancestor. An empty message between neighbours leaves with them.

    Args:
        view: The view as it was.
        dropped: The exchanges that leave, with the reason of each.
        policy: Who decided it.
    """
    standing = set(_entries((span.dialog, span.start, span.stop) for span in view.state))
    for index, exchange in enumerate(view.exchanges):
        if index not in dropped:
            standing.update(_entries(exchange.source.runs))
    ranks = {span.dialog: rank for rank, span in enumerate(view.shared)}
    decided = [gone for gone in view.omissions if gone.span is not None and gone.reason in DECIDED]
    runs, blocks = _leaving(view, dropped, policy, standing)
    joined = _joined([*map(_Run.of, decided), *runs], ranks, standing, gaps(view.shared))
    others = (gone for gone in view.omissions if gone.span is None or gone.reason not in DECIDED)
    return (*_outside(others, joined, ranks), *(run.omission() for run in joined), *blocks)


def _entries(runs: Iterable[tuple[DialogId, int, int]]) -> Iterator[tuple[DialogId, int]]:
    for dialog, start, stop in runs:
        for seq in range(start, stop):
            yield dialog, seq


def _leaving(
    view: View, dropped: Mapping[int, Reason], policy: str, standing: _Entries
) -> tuple[list[_Run], list[Omission]]:
    """Return the entries that leave, and the blocks that leave of entries that stay: a message with a result and words is part of two exchanges."""
    runs: list[_Run] = []
    blocks: list[Omission] = []
    staying: dict[DialogId, list[int]] = {}
    for dialog, seq in sorted(standing):
        staying.setdefault(dialog, []).append(seq)
    last = _Run(DialogId(""), 0, 0, Reason.NOT_SHOWN, policy, 0, 0)
    for index, reason in dropped.items():
        exchange = view.exchanges[index]
        messages, size, own = exchange.messages, exchange.size, exchange.source.runs
        for dialog, start, stop in own:
            numbers = staying.get(dialog, ())
            if (place := bisect_left(numbers, start)) < len(numbers) and numbers[place] < stop:
                own = tuple((dialog, seq, seq + 1) for dialog, seq in _entries(own) if (dialog, seq) not in standing)
                blocks += _blocks(exchange, standing, reason, policy, counted=bool(own))
                break
        for dialog, start, stop in own:
            if last.stop == start and last.dialog == dialog and last.reason is reason:
                last.stop = stop
                last.messages += messages
                last.size += size
            else:
                last = _Run(dialog, start, stop, reason, policy, messages, size)
                runs.append(last)
            messages = size = 0
    return runs, blocks


def _blocks(
    exchange: Exchange, standing: _Entries, reason: Reason, policy: str, *, counted: bool
) -> Iterator[Omission]:
    for handle, _ in exchange.shown():
        if (handle.dialog, handle.seq) in standing:
            messages, size = (0, 0) if counted else (exchange.messages, exchange.size)
            yield Omission(reason=reason, handle=handle, by=policy, messages=messages, size=size)
            counted = True


def _joined(runs: list[_Run], ranks: Mapping[DialogId, int], standing: _Entries, holes: tuple[Span, ...]) -> list[_Run]:
    """Return runs in the order of the log, neighbours joined."""
    runs.sort(key=lambda run: (ranks.get(run.dialog, len(ranks)), run.start))
    joined: list[_Run] = []
    for run in runs:
        last = joined[-1] if joined else None
        if last is None or not _neighbours(last, run, standing, holes):
            joined.append(run)
            continue
        last.stop = max(last.stop, run.stop)
        last.messages += run.messages
        last.size += run.size
    return joined


def _neighbours(last: _Run, run: _Run, standing: _Entries, holes: tuple[Span, ...]) -> bool:
    if last.dialog != run.dialog or last.reason is not run.reason or last.by != run.by:
        return False
    if last.stop == run.start:
        return True
    if any(hole.dialog == run.dialog and hole.start < run.start and hole.stop > last.stop for hole in holes):
        return False
    return all((run.dialog, seq) not in standing for seq in range(last.stop, run.start))


def _outside(gone: Iterable[Omission], joined: list[_Run], ranks: Mapping[DialogId, int]) -> Iterator[Omission]:
    """Return omissions without the empty messages that lie within runs that leave."""
    starts = [(ranks.get(run.dialog, len(ranks)), run.start) for run in joined]
    for each in gone:
        if each.reason is Reason.EMPTY and each.span is not None:
            span = each.span
            place = bisect_right(starts, (ranks.get(span.dialog, len(ranks)), span.start)) - 1
            if place >= 0 and joined[place].dialog == span.dialog and span.start < joined[place].stop:
                continue
        yield each
