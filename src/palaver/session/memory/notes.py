"""Notes: what a program or a model wrote down beside the conversation, as custom entries of a dialog; the ground of files, blocks and archives.

They are entries, so that they are as durable as everything else, a fork has what stood there when it was made, an earlier state can be had, and
erasing reaches them. They go straight to the store: a tool may write them in a thread of its own while the turn goes on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from palaver.errors import InvalidInput, MemoryConflict
from palaver.ids import DialogId
from palaver.log import NOTHING, Custom, Handle, Header, Span, decode_entry, lineage
from palaver.session.compaction.committing import in_one_step
from palaver.store.protocol import Store

__all__ = ["Held", "Note", "Notes", "replaced_once"]


_CLOSE = 4
"""Entries to a note up to which reading all of them at once is cheaper than reading the notes one by one."""


class Held(Protocol):
    """What is needed of a dialog to keep notes in it."""

    @property
    def store(self) -> Store:
        """Where it lies."""
        ...

    @property
    def dialog_id(self) -> DialogId:
        """Which it is."""
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


def replaced_once(name: str, text: str, old: str, new: str) -> str:
    """Give a text with another one in the place of one that stands in it exactly once.

    Args:
        name: What the text is, for the error.
        text: The text.
        old: What is to be replaced.
        new: What is to stand there.

    Raises:
        InvalidInput: There is nothing to be replaced.
        MemoryConflict: It does not stand there, or several times.
    """
    if not old:
        raise InvalidInput("The text to be replaced is empty.", hint="Append to what stands there, or write it anew.")
    count = text.count(old)
    if count != 1:
        raise MemoryConflict(name, text, times=count)
    return text.replace(old, new)


class Notes:
    """The notes of one kind in a dialog, its ancestors' before the fork included.

    What was read is kept, and each time held against the headers: what was erased since is gone here, too. So a reading costs what is new in
    the log, and one header for each note. May be used from several threads.
    """

    def __init__(self, dialog: Held, custom_type: str) -> None:
        """Read nothing yet."""
        self.store = dialog.store
        self.dialog_id = dialog.dialog_id
        self.custom_type = custom_type
        self._upto = NOTHING.seq
        self._began = False
        self._known: dict[Handle, tuple[str | bytes, Note | None]] = {}
        self._lock = threading.Lock()

    def all(self) -> tuple[Note, ...]:
        """Give the notes, the oldest first."""
        with self._lock:
            self._look()
            return tuple(note for _, note in self._known.values() if note is not None)

    def write(self, make: Callable[[], Mapping[str, Any]]) -> Handle:
        """Write a note that is about the others, and give its handle: what somebody else wrote meanwhile is looked at before.

        Args:
            make: Makes the note for the notes as they stand, or refuses.
        """
        header = in_one_step(
            self.store, self.dialog_id, lambda: Custom(custom_type=self.custom_type, data=dict(make()))
        )
        return Handle(self.dialog_id, header.seq)

    def _look(self) -> None:
        for place, header in list(self._headers()):
            if header.digest != self._known[place][0]:
                self._read(place, header)
        last = self.store.last(self.dialog_id).seq
        new = Span(self.dialog_id, self._upto + 1, last + 1)
        spans = (new,) if self._began else lineage(self.store.node(self.dialog_id), last + 1)
        for span in spans:
            for header in self.store.headers(span.dialog, span.start, span.stop):
                if header.kind == "custom":
                    self._read(Handle(span.dialog, header.seq), header)
        self._upto, self._began = last, True

    def _headers(self) -> Iterator[tuple[Handle, Header]]:
        """Give the headers of the notes that are known: where notes stand close together, all from the first to the last are read at once."""
        seqs: dict[DialogId, list[int]] = {}
        for place in self._known:
            seqs.setdefault(place.dialog, []).append(place.seq)
        for dialog, known in seqs.items():
            start, stop = min(known), max(known) + 1
            if stop - start <= len(known) * _CLOSE:
                wanted = frozenset(known)
                found = (header for header in self.store.headers(dialog, start, stop) if header.seq in wanted)
            else:
                found = (self.store.header(dialog, seq) for seq in known)
            yield from ((Handle(dialog, header.seq), header) for header in found)

    def _read(self, place: Handle, header: Header) -> None:
        entry = decode_entry(self.store.body(place.dialog, place.seq))
        note = None
        if isinstance(entry, Custom) and entry.custom_type == self.custom_type and isinstance(entry.data, Mapping):
            note = Note(place, entry.at, entry.data)
        if note is not None or place in self._known:
            self._known[place] = (header.digest, note)
