"""What the log says of past calls: when each was made and of which model. No clock is read here; the time of the next call is given."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias, overload

from palaver.ids import DialogId
from palaver.log import Handle
from palaver.view import Exchange, View

__all__ = ["Called", "Calls", "Made", "Sharing"]

Sharing: TypeAlias = "Callable[[Exchange, float], int]"
"""Tells how many living branches read an exchange, this one included: those whose newest entry is no older than so many seconds."""


@dataclass(frozen=True, slots=True)
class Called:
    """One call.

    Attributes:
        place: The entry that records it; the response, if there was one, comes behind it.
        at: When, in seconds since 1970-01-01 UTC.
        model: The model that was asked.
    """

    place: Handle
    at: float
    model: str


class Made(Sequence[Called]):
    """Calls that were made, the oldest first. A value: one with further calls is another one, and costs no more than these.

    The values that come of one another share their calls, each the first so many of them: a conversation has as many values as calls.
    """

    __slots__ = ("_all", "_by_dialog", "_count", "_end")

    def __init__(self, calls: Iterable[Called] = ()) -> None:
        """Take calls."""
        self._all: list[Called] = []
        # of each dialog, the numbers of the entries, and those of the calls
        self._by_dialog: dict[DialogId, tuple[list[int], list[int]]] = {}
        for call in calls:
            self._add(call)
        self._count = len(self._all)
        # who takes it goes on with the calls that are shared; one only, also of threads that ask at once
        self._end = [None]

    def _add(self, call: Called) -> None:
        entries, numbers = self._by_dialog.setdefault(call.place.dialog, ([], []))
        entries.append(call.place.seq)
        numbers.append(len(self._all))
        self._all.append(call)

    def then(self, *calls: Called) -> Made:
        """Give these calls and further ones."""
        if not calls:
            return self
        try:
            self._end.pop()
        except IndexError:  # others went on from here before
            return Made((*self, *calls))
        more = Made()
        more._all, more._by_dialog = self._all, self._by_dialog
        for call in calls:
            more._add(call)
        more._count = len(self._all)
        return more

    def before(self, place: Handle) -> Called | None:
        """Give the last call of a dialog that was recorded before an entry of it; None where none was."""
        entries, numbers = self._by_dialog.get(place.dialog, ((), ()))
        index = min(bisect_left(entries, place.seq), bisect_left(numbers, self._count))
        return self._all[numbers[index - 1]] if index else None

    def __len__(self) -> int:
        """Count the calls."""
        return self._count

    @overload
    def __getitem__(self, index: int) -> Called: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Called, ...]: ...
    def __getitem__(self, index: int | slice) -> Called | tuple[Called, ...]:
        """Give one or some of them."""
        if isinstance(index, slice):
            return tuple(self._all[number] for number in range(self._count)[index])
        return self._all[range(self._count)[index]]

    def __eq__(self, other: object) -> bool:
        """Compare with any sequence of calls."""
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        """Hash the calls."""
        return hash(tuple(self))


@dataclass(frozen=True)
class Calls:
    """The calls of a dialog that are known, and what is known of the next one.

    Attributes:
        made: The calls, the oldest first.
        now: When the next one will be made; None where that is not known: then no cache is taken for cold because of it.
        model: The model that it will ask, or empty.
        sent: What the newest call was sent; None where that is not known.
        answered: When the model, or a tool, said something last; None where that is not known. In a log without calls, such as one that was
            imported, the cache was last used then.
    """

    made: Sequence[Called] = ()
    now: float | None = None
    model: str = ""
    sent: View | None = None
    answered: float | None = None

    @cached_property
    def _made(self) -> Made:
        return self.made if isinstance(self.made, Made) else Made(self.made)

    def of(self, response: Exchange) -> Called | None:
        """Give the call that a response answers: the last one recorded before it; None where none is."""
        first = response.first
        return None if first is None else self._made.before(first)

    @property
    def last(self) -> Called | None:
        """The newest call."""
        return self.made[-1] if self.made else None
