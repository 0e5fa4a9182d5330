"""Spans of entries: joined, cut, compared and counted."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from palaver.errors import NotFound
from palaver.ids import DialogId
from palaver.log.handles import Handle, Span
from palaver.log.lineage import Reader


def joined(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Drop empty spans, and join neighbours that touch or overlap."""
    kept: list[Span] = []
    for span in spans:
        if not len(span):
            continue
        last = kept[-1] if kept else None
        if last is not None and last.dialog == span.dialog and last.start <= span.start <= last.stop:
            kept[-1] = Span(span.dialog, last.start, max(last.stop, span.stop))
        else:
            kept.append(span)
    return tuple(kept)


def last_of(spans: Sequence[Span]) -> Handle | None:
    """Return the last entry of spans, or None."""
    return Handle(spans[-1].dialog, spans[-1].stop - 1) if spans else None


def upto(spans: Sequence[Span], place: Handle) -> tuple[Span, ...]:
    """Return the spans up to an entry, inclusive.

    Raises:
        NotFound: The entry is not in them.
    """
    for index, span in enumerate(spans):
        if place in span:
            return (*spans[:index], Span(span.dialog, span.start, place.seq + 1))
    raise NotFound(str(place), what="entry", hint="This dialog does not contain it.")


def common(mine: Sequence[Span], theirs: Sequence[Span]) -> tuple[Span, ...]:
    """Return the common beginning of two paths."""
    shared: list[Span] = []
    for span, other in zip(mine, theirs, strict=False):
        if (span.dialog, span.start) != (other.dialog, other.start):
            break
        shared.append(Span(span.dialog, span.start, min(span.stop, other.stop)))
        if span.stop != other.stop:
            break
    return tuple(shared)


def apart(spans: Iterable[Span], others: Iterable[Span]) -> tuple[Span, ...]:
    """Return the parts of `spans` that are not in `others`, in order."""
    taken: dict[str, list[Span]] = {}
    for other in sorted(others):
        taken.setdefault(other.dialog, []).append(other)
    rest: list[Span] = []
    for span in spans:
        start = span.start
        for other in taken.get(span.dialog, ()):
            if start < min(other.start, span.stop):
                rest.append(Span(span.dialog, start, min(other.start, span.stop)))
            start = max(start, other.stop)
        if start < span.stop:
            rest.append(Span(span.dialog, start, span.stop))
    return tuple(rest)


def clip(spans: Iterable[Span], runs: Sequence[Span]) -> Iterator[Span]:
    """Return the parts of `spans` that lie within `runs`, in the order of `spans`."""
    for span in spans:
        for run in runs:
            if run.dialog == span.dialog:
                start, stop = max(span.start, run.start), min(span.stop, run.stop)
                if start < stop:
                    yield Span(span.dialog, start, stop)


def gaps(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Return what lies between spans of one dialog, sorted: entries that a dialog with these spans does not have."""
    return tuple(
        Span(span.dialog, span.stop, after.start)
        for span, after in pairwise(sorted(spans))
        if span.dialog == after.dialog and span.stop < after.start
    )


def part_of(place: Handle, between: Sequence[Span]) -> tuple[DialogId, int]:
    """Return a key of the part in which a place lies, where `gaps` part the entries: equal for places of one part only."""
    return place.dialog, bisect_left(between, Span(place.dialog, place.seq, place.seq)) if between else 0


class Stretch(NamedTuple):
    """A span of a dialog's lineage with its message counts.

    Attributes:
        span: The entries.
        before: The number of messages before the span in its own dialog.
        first: The number of messages before the span in the lineage.
        messages: The number of messages that begin in the span.
    """

    span: Span
    before: int
    first: int
    messages: int


def stretches(reader: Reader, spans: Iterable[Span]) -> tuple[Stretch, ...]:
    """Return spans with their counts of messages. Read two headers per span."""
    parts: list[Stretch] = []
    first = 0
    for span in spans:
        before = reader.header(span.dialog, span.start - 1).number if span.start else 0
        begun = reader.header(span.dialog, span.stop - 1).number - before if len(span) else 0
        parts.append(Stretch(span, before, first, begun))
        first += begun
    return tuple(parts)


def messages_in(reader: Reader, spans: Iterable[Span]) -> int:
    """Return the number of messages that begin in spans."""
    return sum(stretch.messages for stretch in stretches(reader, spans))
