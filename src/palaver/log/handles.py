"""Handles and spans: the stable names of places in a log, as text and as sets of entries."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from palaver.errors import InvalidInput, NotFound
from palaver.ids import DialogId

_SHORT = 12
_PATTERN = re.compile(r"(?P<dialog>[0-9a-f]{6,32}):(?P<seq>\d{1,12})(?::(?P<block>\d{1,6}))?\Z")

_SEVERAL = re.compile(r"(?P<dialog>[0-9a-f]{6,32}):(?P<seqs>\d{1,12}(?:\s*[-,]\s*\d{1,12})+)\Z")
"""Several entries of one dialog: `3f2a91c07b5e:1,7,9` or `3f2a91c07b5e:12-40`."""

_SNIPPET = 160
"""Characters of a wrong text that the error repeats."""


class Handle(NamedTuple):
    """The stable name of an entry, or of one block of the message in it.

    A note about something that a policy left out prints its handle, and `recall` returns the original. A printed dialog id has its first 12 hexadecimal
    digits (48 bits), because every call pays for it in tokens; no two dialogs of a session share them.

    Attributes:
        dialog: The dialog that owns the entry. A parsed handle may have a prefix of the id, at least 6 digits.
        seq: The entry's number in that dialog, starting at 0.
        block: The block's index in the message, starting at 0, or None for the whole entry.
    """

    dialog: DialogId
    seq: int
    block: int | None = None

    def __str__(self) -> str:
        """Return the printed form, `dialog:seq` or `dialog:seq:block`."""
        place = f"{self.dialog[:_SHORT]}:{self.seq}"
        return place if self.block is None else f"{place}:{self.block}"

    @classmethod
    def parse(cls, text: str) -> Handle:
        """Read a handle from its printed form.

        Raises:
            InvalidInput: The text is not `dialog:seq` or `dialog:seq:block`.
        """
        found = _PATTERN.match(text.strip())
        if found is None:
            message = f"{text!r} is not a handle. A handle looks like 3f2a91c07b5e:12 or 3f2a91c07b5e:12:0."
            raise InvalidInput(message)
        block = found["block"]
        return cls(DialogId(found["dialog"]), int(found["seq"]), None if block is None else int(block))


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A run of entries of one dialog.

    Attributes:
        dialog: The dialog that owns the entries.
        start: The first entry's number, inclusive.
        stop: The number after the last entry's, exclusive; never below `start`.
    """

    dialog: DialogId
    start: int
    stop: int

    def __len__(self) -> int:
        """Return the number of entries in the span."""
        return self.stop - self.start

    def __contains__(self, place: object) -> bool:
        """Return whether a handle lies in the span."""
        return isinstance(place, Handle) and place.dialog == self.dialog and self.start <= place.seq < self.stop


def places(text: str) -> tuple[Handle | Span, ...]:
    """Read handles, lists and ranges as views print them, also `A to B` and several after semicolons.

    Raises:
        InvalidInput: The text is none of these.
    """
    named: list[Handle | Span] = []
    for part in filter(None, (piece.strip() for piece in text.split(";"))):
        first, to, last = part.partition(" to ")
        if to:
            start, end = Handle.parse(first), Handle.parse(last)
            named.append(_between(start.dialog, start.seq, end.seq))
        elif (several := _SEVERAL.match(part)) is not None:
            named += _several(several["dialog"], several["seqs"])
        else:
            named.append(Handle.parse(part))
    if not named:
        raise InvalidInput(f"{text[:_SNIPPET]!r} names no entries.")
    return tuple(named)


def _several(dialog: str, seqs: str) -> Iterator[Handle | Span]:
    for piece in seqs.split(","):
        first, dash, last = piece.partition("-")
        start = Handle.parse(f"{dialog}:{int(first)}")
        yield _between(start.dialog, start.seq, int(last)) if dash else start


def _between(dialog: DialogId, first: int, last: int) -> Span:
    """Return the entries from one to another, also where the later one is named first."""
    return Span(dialog, min(first, last), max(first, last) + 1)


# --- spans alone ------------------------------------------------------------------------------------------------------------------


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
