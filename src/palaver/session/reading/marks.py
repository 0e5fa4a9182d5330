"""Labels, pins and quarantines: marks on entries, found by their headers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from palaver.log import Entry, Handle, Label, Pin, Place, Quarantine, Reader, Span, entry_at

__all__ = ["labels_in", "labels_of", "pins_in", "quarantined_in"]


def labels_in(reader: Reader, spans: Sequence[Span]) -> Mapping[Handle, str]:
    """Give the labels in force: the newest of each entry wins, and None takes it away.

    What a fork left out is looked through, too: a label that stands there on an entry that was kept is in force.
    """
    return MappingProxyType(_last(_entries(reader, _with_gaps(reader, spans), "label", among=spans)))


def labels_of(reader: Reader, spans: Sequence[Span]) -> dict[Handle, str]:
    """Give the labels in force in several dialogs together: the newest by time wins."""
    return _last(sorted(_entries(reader, spans, "label"), key=lambda entry: entry.at))


def _last(entries: Iterable[Entry]) -> dict[Handle, str]:
    found: dict[Handle, str] = {}
    for entry in entries:
        if isinstance(entry, Label):
            found.pop(_handle(entry.target), None)
            if entry.label is not None:
                found[_handle(entry.target)] = entry.label
    return found


def pins_in(reader: Reader, spans: Sequence[Span]) -> tuple[Handle, ...]:
    """Give the pinned entries, in the order of pinning."""
    found: dict[Handle, None] = {}
    for entry in _entries(reader, spans, "pin"):
        if isinstance(entry, Pin):
            place = Handle(entry.target.dialog, entry.target.seq)  # entries are pinned, whichever block was named
            found.pop(place, None)
            if entry.pinned:
                found[place] = None
    return tuple(found)


def quarantined_in(reader: Reader, spans: Sequence[Span]) -> Mapping[Handle, str]:
    """Give what is in quarantine and why, in the order in which it was set aside."""
    found: dict[Handle, str] = {}
    for entry in _entries(reader, spans, "quarantine"):
        if isinstance(entry, Quarantine):
            found.pop(_handle(entry.target), None)
            if not entry.lifted:
                found[_handle(entry.target)] = entry.reason
    return MappingProxyType(found)


def _with_gaps(reader: Reader, spans: Sequence[Span]) -> list[Span]:
    """Give all that was said up to the end of some spans, in the order of the log: what they hold, and what forks left out before it."""
    found: list[Span] = []
    place = spans[-1] if spans else None
    while place is not None:
        found.append(Span(place.dialog, 0, place.stop))
        ranges = reader.node(place.dialog).ranges
        place = ranges[-1] if ranges else None
    return found[::-1]


def _entries(reader: Reader, spans: Sequence[Span], kind: str, among: Sequence[Span] | None = None) -> Iterator[Entry]:
    """Give the entries of a kind; of those that are not held, when it is said what is, only the ones that mark what is held."""
    for span in spans:
        for header in reader.headers(span.dialog, span.start, span.stop):
            if header.kind != kind:
                continue
            entry = entry_at(reader, Handle(span.dialog, header.seq))
            place = Handle(span.dialog, header.seq)
            if (
                among is None
                or _held(place, among)
                or (isinstance(entry, Label) and _held(_handle(entry.target), among))
            ):
                yield entry


def _held(place: Handle, spans: Sequence[Span]) -> bool:
    return any(place in span for span in spans)


def _handle(place: Place) -> Handle:
    return Handle(place.dialog, place.seq, place.block)
