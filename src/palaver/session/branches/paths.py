"""Paths: the spans of entries that lead from a beginning to an entry, and what two of them have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from palaver.errors import UnknownHandle
from palaver.ids import DialogId, SessionId
from palaver.log import Handle, Node, Reader, Run, Span, lineage

__all__ = ["apart", "common", "newest", "node_of", "path_to", "runs_of", "upto"]


def path_to(reader: Reader, place: Handle) -> tuple[Span, ...]:
    """Give everything that leads to an entry, and the entry: what its own dialog held when it was written."""
    return lineage(reader.node(place.dialog), place.seq + 1)


def upto(spans: Sequence[Span], place: Handle) -> tuple[Span, ...]:
    """Give the spans up to an entry, inclusive.

    Raises:
        UnknownHandle: The entry is not in them.
    """
    for index, span in enumerate(spans):
        if place.dialog == span.dialog and span.start <= place.seq < span.stop:
            return (*spans[:index], Span(span.dialog, span.start, place.seq + 1))
    raise UnknownHandle(str(place), hint="This dialog does not hold it.")


def newest(spans: Sequence[Span]) -> Handle | None:
    """Give the last entry of spans, or None."""
    return Handle(spans[-1].dialog, spans[-1].stop - 1) if spans else None


def common(one: Sequence[Span], other: Sequence[Span]) -> tuple[Span, ...]:
    """Give what two paths both begin with."""
    found: list[Span] = []
    for mine, theirs in zip(one, other, strict=False):
        if (mine.dialog, mine.start) != (theirs.dialog, theirs.start):
            break
        found.append(Span(mine.dialog, mine.start, min(mine.stop, theirs.stop)))
        if mine.stop != theirs.stop:
            break
    return tuple(found)


def apart(spans: Iterable[Span], others: Sequence[Span]) -> tuple[Span, ...]:
    """Give what of the spans the others do not hold, in order."""
    return tuple(part for span in spans for part in _without(span, others))


def _without(span: Span, others: Sequence[Span]) -> Iterator[Span]:
    start = span.start
    for other in sorted(other for other in others if other.dialog == span.dialog):
        if start < min(other.start, span.stop):
            yield Span(span.dialog, start, min(other.start, span.stop))
        start = max(start, other.stop)
    if start < span.stop:
        yield Span(span.dialog, start, span.stop)


def runs_of(spans: Iterable[Span]) -> tuple[Run, ...]:
    """Give spans in the form that entries record."""
    return tuple(Run(dialog=span.dialog, start=span.start, stop=span.stop) for span in spans)


def node_of(session_id: SessionId, spans: Sequence[Span]) -> Node:
    """Give a node that holds these spans and is in no store: what a view of them alone is folded for."""
    return Node(dialog_id=DialogId("0" * 32), session_id=session_id, ranges=tuple(spans))
