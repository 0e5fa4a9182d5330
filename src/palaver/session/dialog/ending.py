"""How far an object of a dialog knows its log: it moves forward, whichever of the threads that write through it comes first."""

from __future__ import annotations

from palaver.log import Header
from palaver.tools.locks import OwnLock

__all__ = ["Ending"]


class Ending:
    """The newest entry that is known, of those that were written here and those that the store was asked for.

    Two threads learn of what they wrote in any order. What was written beside the turn is known when all of the turn before it is.

    Attributes:
        last: Its header.
        unsure: Whether some of it was written, or read, inside a block of the store that may still take it back.
    """

    def __init__(self, last: Header) -> None:
        """Begin with what the store has."""
        self.last = last
        self.unsure = False
        self._beside = last  # the newest that was written beside the turn, perhaps behind something of the turn that is not known yet
        self._notes = 0
        self._lock = OwnLock()

    @property
    def notes(self) -> int:
        """How often something was taken note of."""
        return self._notes

    def wrote(self, header: Header) -> None:
        """Take note of an entry of the turn, made on the newest one that was known."""
        with self._lock:
            if header.seq > self.last.seq:
                self.last = header
            self._settle()

    def added(self, header: Header) -> None:
        """Take note of an entry beside the turn."""
        with self._lock:
            if header.seq > self._beside.seq:
                self._beside = header
            self._settle()

    def _settle(self) -> None:
        self._notes += 1
        if self._beside.seq > self.last.seq and self._beside.turn_head == self.last.turn_head:
            self.last = self._beside

    def taken_back(self, last: Header) -> None:
        """Take note of what the store has in the place of what is known here."""
        with self._lock:
            self.last = self._beside = last
            self._notes += 1

    def read(self, header: Header, notes: int) -> bool:
        """Take note of what the store had, unless something was taken note of since it was asked; then False, and it is to be asked again.

        What the store has counts, also where it has less: a block that raised took back what was written in it.
        """
        with self._lock:
            if notes != self._notes:
                return False
            self.last = self._beside = header
            self._notes += 1
            return True
