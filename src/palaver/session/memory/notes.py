"""Notes: what a program or a model wrote down beside the conversation, as custom entries of a dialog; the ground of files, blocks and archives.

They are entries, so that they are as durable as everything else, a fork has what stood there when it was made, an earlier state can be had, and
erasing reaches them. They go straight to the store: a tool may write them in a thread of its own while the turn goes on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from palaver.errors import InvalidInput, MemoryConflict, UnknownHandle
from palaver.ids import DialogId
from palaver.log import NOTHING, Custom, Handle, Header, Span, decode_entry, lineage
from palaver.session.compaction.committing import in_one_step
from palaver.store.blocks import in_block
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
        digest: The digest of the entry: what is kept of a note is kept under this, for a handle may name another one when a block was taken back.
        at: When it was written, in seconds since 1970-01-01 UTC.
        data: What it says.
    """

    handle: Handle
    digest: bytes
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


class _Read(NamedTuple):
    """What was read of a log, never changed: whoever reads on makes another one.

    Attributes:
        last: The dialog's newest own entry then; None where nothing was read.
        notes: The digest of each entry that is, or was before it was erased, a note, and the note.
    """

    last: Header | None
    notes: Mapping[Handle, tuple[bytes, Note | None]]


_UNREAD = _Read(None, MappingProxyType({}))


class Notes:
    """The notes of one kind in a dialog, its ancestors' before the fork included: those that the store has for whoever asks, and nothing else.

    What was read is kept, and each time held against the headers: what was erased since, or taken back by a block that raised, is gone here, too.
    What is read inside a block stays with its thread, for the block may still take it back. So a reading costs what is new in the log, and one
    header for each note. May be used from several threads: no lock is held while the store is asked, for it may wait for a block of another one.
    """

    def __init__(self, dialog: Held, custom_type: str) -> None:
        """Read nothing yet."""
        self.store = dialog.store
        self.dialog_id = dialog.dialog_id
        self.custom_type = custom_type
        self._sure = _UNREAD
        self._own = threading.local()

    def all(self) -> tuple[Note, ...]:
        """Give the notes, the oldest first."""
        if in_block(self.store):
            read = self._own.read = self._read_on(getattr(self._own, "read", None) or self._sure)
        else:
            read = self._sure = self._read_on(self._sure)
            self._own.read = None
        return tuple(note for _, note in read.notes.values() if note is not None)

    def write(self, make: Callable[[], Mapping[str, Any]]) -> tuple[Handle, Header]:
        """Write a note that is about the others, and give its place: what somebody else wrote meanwhile is looked at before.

        Args:
            make: Makes the note for the notes as they stand, or refuses.
        """
        header = in_one_step(
            self.store, self.dialog_id, lambda: Custom(custom_type=self.custom_type, data=dict(make()))
        )
        return Handle(self.dialog_id, header.seq), header

    def _read_on(self, read: _Read) -> _Read:
        """Read on from what was read, or from the beginning where the store, as this thread sees it, has something else there."""
        now = self.store.last(self.dialog_id)
        try:
            if read.last is not None and self._stands(read.last, now):
                return self._with_new(read, read.last, now)
        except UnknownHandle:  # of a store that does not say which threads are in a block: one was taken back
            pass
        return self._with_new(_UNREAD, None, now)

    def _stands(self, last: Header, now: Header) -> bool:
        if last.seq in {NOTHING.seq, now.seq}:
            return last in {NOTHING, now}
        return last.seq < now.seq and self.store.header(self.dialog_id, last.seq) == last

    def _with_new(self, read: _Read, last: Header | None, now: Header) -> _Read:
        notes = dict(read.notes)
        for place, header in self._headers(read.notes):
            if header.digest != notes[place][0]:
                notes[place] = self._note(place, header)
        new = Span(self.dialog_id, 0 if last is None else last.seq + 1, now.seq + 1)
        for span in lineage(self.store.node(self.dialog_id), now.seq + 1) if last is None else (new,):
            for header in self.store.headers(span.dialog, span.start, span.stop):
                place = Handle(span.dialog, header.seq)
                if header.kind == "custom" and (found := self._note(place, header))[1] is not None:
                    notes[place] = found
        return _Read(now, notes)

    def _headers(self, known: Iterable[Handle]) -> Iterator[tuple[Handle, Header]]:
        """Give the headers of the notes that are known: where notes stand close together, all from the first to the last are read at once.

        Raises:
            UnknownHandle: One is not there any more.
        """
        by_dialog: dict[DialogId, list[int]] = {}
        for place in known:
            by_dialog.setdefault(place.dialog, []).append(place.seq)
        for dialog, seqs in by_dialog.items():
            start, stop = min(seqs), max(seqs) + 1
            if stop - start <= len(seqs) * _CLOSE:
                wanted = frozenset(seqs)
                found = (header for header in self.store.headers(dialog, start, stop) if header.seq in wanted)
            else:
                found = (self.store.header(dialog, seq) for seq in seqs)
            yield from ((Handle(dialog, header.seq), header) for header in found)

    def _note(self, place: Handle, header: Header) -> tuple[bytes, Note | None]:
        entry = decode_entry(self.store.body(place.dialog, place.seq))
        note = None
        if isinstance(entry, Custom) and entry.custom_type == self.custom_type and isinstance(entry.data, Mapping):
            note = Note(place, header.digest, entry.at, entry.data)
        return header.digest, note
