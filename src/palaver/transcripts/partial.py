"""A copy that begins later than what was imported: its records are found among the known ones instead of being taken for a rewrite."""

from __future__ import annotations

from collections.abc import Sequence

from palaver.transcripts.places import Landed


class LaterBeginning:
    """The way of a copy of a dialog that lacks its beginning through what is known of the dialog.

    Attributes:
        reached: How many of the known puts lie behind.
        past: True when the copy has come to something new: what follows is new too.
    """

    def __init__(self, known: Sequence[Landed], start: int) -> None:
        """Begin at a known put."""
        self.reached = start
        self.past = False
        self._known = known
        self._size = len(known)
        self._last: Landed | None = None
        self._spots: dict[bytes, list[int]] = {}
        for number in range(self._size - 1, start - 1, -1):
            self._spots.setdefault(known[number].digest, []).append(number)  # the next one stands last

    @classmethod
    def of(cls, known: Sequence[Landed], digest: bytes, start: int) -> LaterBeginning | None:
        """Give the way, if a record of this digest is known from `start` on, and one only: words that were said twice tell no place."""
        spots = [number for number in range(start, len(known)) if known[number].digest == digest]
        return cls(known, spots[0]) if len({known[number].record for number in spots}) == 1 else None

    def next(self, digest: bytes) -> Landed | None:
        """Give where the next put of the copy landed before, or None where it is new.

        A record may be more puts here than it was before, for what was in force already is told anew: they landed with the record.
        """
        if self.past:
            return None
        spots = self._spots.get(digest, [])
        while spots and spots[-1] < self.reached:
            spots.pop()
        if spots:
            self.reached = spots.pop() + 1
            self._last = self._known[self.reached - 1]
        elif self._last is None or self._last.digest != digest:
            self.past = True
            return None
        return self._last

    @property
    def ended(self) -> bool:
        """Whether all that is known lies behind."""
        return self.reached >= self._size
