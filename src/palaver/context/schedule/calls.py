"""What the log says of past calls: when each was made and of which model. No clock is read here; the time of the next call is given."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from palaver.ids import DialogId
from palaver.log import Handle
from palaver.view import Exchange, View

__all__ = ["Called", "Calls", "Sharing"]

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


@dataclass(frozen=True)
class Calls:
    """The calls of a dialog that are known, and what is known of the next one.

    Attributes:
        made: The calls, the oldest first.
        now: When the next one will be made; None where that is not known: then no cache is taken for cold because of it.
        model: The model that it will ask, or empty.
        sent: What the newest call was sent; None where that is not known.
    """

    made: tuple[Called, ...] = ()
    now: float | None = None
    model: str = ""
    sent: View | None = None

    @cached_property
    def _by_dialog(self) -> Mapping[DialogId, tuple[list[int], list[Called]]]:
        found: dict[DialogId, tuple[list[int], list[Called]]] = {}
        for call in self.made:
            seqs, calls = found.setdefault(call.place.dialog, ([], []))
            seqs.append(call.place.seq)
            calls.append(call)
        return found

    def of(self, response: Exchange) -> Called | None:
        """Give the call that a response answers: the last one recorded before it; None where none is."""
        first = response.first
        if first is None or first.dialog not in self._by_dialog:
            return None
        seqs, calls = self._by_dialog[first.dialog]
        index = bisect_left(seqs, first.seq)
        return calls[index - 1] if index else None

    @property
    def last(self) -> Called | None:
        """The newest call."""
        return self.made[-1] if self.made else None
