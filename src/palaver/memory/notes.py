"""Notes: data that a program or a model stores outside the conversation. Core memory, files and archives consist of notes.

A note is a custom entry of a dialog: as durable as every entry, inherited by forks, and reached by erasures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from palaver.errors import Conflict, InvalidInput, NotFound
from palaver.ids import DialogId
from palaver.log import Custom, Handle, draft, entry_at, lineage
from palaver.store.protocol import Store

Data: TypeAlias = Mapping[str, Any]
T = TypeVar("T")


class HasPlace(Protocol):
    """A dialog, or any object that locates one."""

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
        data: Its content.
    """

    handle: Handle
    at: float
    data: Data


class Notebook(Generic[T]):
    """The notes of one kind in a dialog, including its ancestors' before the fork. The newest note of a key is in force."""

    def __init__(self, dialog: HasPlace, custom_type: str, key: str, read: Callable[[Note], T]) -> None:
        """Create the notes; nothing is read yet.

        Args:
            dialog: The dialog.
            custom_type: The type of the entries.
            key: The field with a note's key. If empty, a note's handle is its key.
            read: Returns the value of a note; raises `TypeError` or `InvalidInput` for one in another program's format.
        """
        self.store = dialog.store
        self.dialog_id = dialog.dialog_id
        self._type = custom_type
        self._key = key
        self._read = read

    def _all(self) -> Iterator[tuple[str, T | None]]:
        """Yield the notes, oldest first: the key and the value; None if it is deleted or cannot be read."""
        last = self.store.last(self.dialog_id)
        for span in lineage(self.store.node(self.dialog_id), last.seq + 1):
            for header in reversed(list(self.store.latest_of_kind(span.dialog, "custom", span.start, span.stop))):
                place = Handle(span.dialog, header.seq)
                entry = entry_at(self.store, place)
                if isinstance(entry, Custom) and entry.custom_type == self._type and isinstance(entry.data, Mapping):
                    note = Note(place, entry.at, entry.data)
                    yield str(note.data.get(self._key, place)), self._readable(note)

    def _readable(self, note: Note) -> T | None:
        try:
            return None if note.data.get("deleted") else self._read(note)
        except (TypeError, InvalidInput):  # another program's note
            return None

    def in_force(self) -> dict[str, T]:
        """Return the values in force, by key."""
        values: dict[str, T] = {}
        for key, value in self._all():
            if value is None:
                values.pop(key, None)
            else:
                values[key] = value
        return values

    def history(self, key: str) -> tuple[T, ...]:
        """Return all values of a key, oldest first."""
        return tuple(said for known, said in self._all() if known == key and said is not None)

    def find(self, key: str, what: str, among: Mapping[str, T] | None = None) -> T:
        """Return the value in force for a key.

        Raises:
            NotFound: There is no value; the error has close matches.
        """
        known = self.in_force() if among is None else among
        if key not in known:
            hint = f"Existing: {', '.join(list(known)[:20]) or 'none'}."
            raise NotFound(key, what=what, close=get_close_matches(key, known, cutoff=0.5), hint=hint)
        return known[key]

    def write(self, make: Callable[[dict[str, T]], Data]) -> T:
        """Write a note and return its value.

        Args:
            make: Returns the note's data from the values in force, or raises. No other note is written in between.
        """
        return self._read(self._written(make))

    def delete(self, key: str, what: str, **more: str) -> Handle:
        """Delete the value in force for a key, and return the new entry.

        Raises:
            NotFound: There is no value.
        """

        def gone(known: dict[str, T]) -> Data:
            self.find(key, what, known)
            return {self._key: key, "deleted": True, **more}

        return self._written(gone).handle

    def _written(self, make: Callable[[dict[str, T]], Data]) -> Note:
        with self.store.transaction(
            lock=f"notes {self.dialog_id}"
        ):  # the values in force stay so until the note is written
            entry = Custom(custom_type=self._type, data=dict(make(self.in_force())))
            header = self.store.annotate(self.dialog_id, draft(entry)[0])
        return Note(Handle(self.dialog_id, header.seq), entry.at, entry.data)


def replaced_once(name: str, text: str, old: str, new: str) -> str:
    """Return a text with `old`, which must occur exactly once, replaced by `new`.

    Raises:
        InvalidInput: `old` is empty.
        Conflict: `old` does not occur exactly once.
    """
    if not old:
        raise InvalidInput("The text to be replaced is empty.", hint="Append to the text, or write the whole text.")
    count = text.count(old)
    if count != 1:
        why = f"occurs {count:,} times in it, not once" if count else "is not in it"
        raise Conflict(name, why=f"{name!r} was not changed: the text to be replaced {why}.", hint="Read it again.")
    return text.replace(old, new)
