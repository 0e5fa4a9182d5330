"""Notes: what a program or a model wrote down beside the conversation. Core memory, files and archives are made of them.

A note is a custom entry of a dialog: as durable as every entry, inherited by forks, and reached by erasures.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from palaver.errors import Conflict, InvalidInput, StoreBusy
from palaver.ids import DialogId
from palaver.log import Custom, Handle, Header, Span, entry_at, lineage
from palaver.session.head import KnownHead
from palaver.store.protocol import Store

__all__ = ["HasPlace", "Note", "Notes", "replaced_once"]

_TRIES = 200
"""How often another writer may come between; each time that one has written something, so not all of them wait."""


class HasPlace(Protocol):
    """A dialog, or anything that says where one is."""

    @property
    def store(self) -> Store:
        """The store."""
        ...

    @property
    def dialog_id(self) -> DialogId:
        """The dialog."""
        ...


class Note(NamedTuple):
    """One note.

    Attributes:
        handle: The entry.
        at: When it was written, in seconds since 1970-01-01 UTC.
        data: What it says.
    """

    handle: Handle
    at: float
    data: Mapping[str, Any]


Data: TypeAlias = Mapping[str, Any]


class _OvertakenError(Exception):
    """Another writer came between reading and writing."""


class Notes:
    """The notes of one kind in a dialog, its ancestors' before the fork included. Reading them costs what is new in the log."""

    def __init__(self, dialog: HasPlace, custom_type: str) -> None:
        self.store = dialog.store
        self.dialog_id = dialog.dialog_id
        self._type = custom_type
        self._head = KnownHead(self.store, self.dialog_id)
        self._lock = threading.RLock()
        self._changes = -1
        self._upto = -1
        self._notes: list[Note] = []

    def all(self) -> Sequence[Note]:
        """Return the notes, the oldest first."""
        with self._lock:
            last = self._head.reload()
            spans: Sequence[Span] = (Span(self.dialog_id, self._upto + 1, last.seq + 1),)
            if self._changes != self._head.changes:  # also the first time
                self._notes, self._changes = [], self._head.changes
                spans = lineage(self.store.node(self.dialog_id), last.seq + 1)
            for span in spans:
                headers = self.store.latest_of_kind(span.dialog, "custom", span.start, span.stop)
                for header in reversed(list(headers)):
                    self._add(Handle(span.dialog, header.seq))
            self._upto = last.seq
            return tuple(self._notes)

    def _add(self, place: Handle) -> None:
        entry = entry_at(self.store, place)
        if isinstance(entry, Custom) and entry.custom_type == self._type and isinstance(entry.data, Mapping):
            self._notes.append(Note(place, entry.at, entry.data))

    def write(self, make: Callable[[Sequence[Note]], Data]) -> Note:
        """Write a note that depends on the others, as they stand when it is written.

        Args:
            make: Returns the note's data for the notes as they stand, or raises.

        Raises:
            StoreBusy: Other writers of the same dialog were always faster.
        """
        for _ in range(_TRIES):
            with self._lock:
                entry = Custom(custom_type=self._type, data=dict(make(self.all())))
                known = self._upto

            def check(header: Header, known: int = known) -> None:
                if header.seq != known + 1:
                    raise _OvertakenError

            try:
                return Note(self._head.annotate(entry, check), entry.at, entry.data)
            except _OvertakenError:
                continue
        raise StoreBusy(f"Other writers of dialog {self.dialog_id} were always faster.", hint="Try again.")


def replaced_once(name: str, text: str, old: str, new: str) -> str:
    """Return a text with `new` in place of `old`, which must occur exactly once.

    Raises:
        InvalidInput: `old` is empty.
        Conflict: It does not occur, or several times.
    """
    if not old:
        raise InvalidInput("The text to be replaced is empty.", hint="Append to what is there, or write it anew.")
    count = text.count(old)
    if count != 1:
        why = f"occurs {count:,} times in it, not once" if count else "is not in it"
        raise Conflict(name, why=f"{name!r} was not changed: the text to be replaced {why}.", hint="Read it again.")
    return text.replace(old, new)
