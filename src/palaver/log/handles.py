"""Handles and spans: the stable names of places in a log."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from palaver.errors import InvalidInput
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
