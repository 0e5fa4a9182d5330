"""Archival memory: passages without a limit, outside every view, found again by what they are about.

(MemGPT, arXiv 2310.08560, section 2.2: archival storage, searched and paged by the model.)
"""

from __future__ import annotations

import threading
from array import array
from base64 import b64decode, b64encode
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from palaver.errors import InvalidInput, MemoryFull, NotFound
from palaver.log import Handle
from palaver.messages.normalize import clean_text
from palaver.session.memory.embedding import Embedder, HashingEmbedder, embedded
from palaver.session.memory.notes import Held, Note, Notes
from palaver.store.blocks import require_no_block
from palaver.store.vectors import Vector, likeness, nearest, stored_vector
from palaver.tools.portal import run_sync

__all__ = ["ArchivalMemory", "Passage"]

LONGEST = 20_000
"""Characters of a passage: a vector says little of more."""

LONGEST_TAG, MOST_TAGS = 100, 32
"""Characters of a tag, and tags of a passage: they are words to find it by, not another place for text."""

_KIND = "palaver.archive"
_BATCH = 64


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage.

    Attributes:
        handle: The entry.
        text: What it says.
        tags: Words by which it can be found as well.
        at: When it was put in, in seconds since 1970-01-01 UTC.
        by: Who put it in, or empty.
        score: How near it is to what was asked, -1 to 1; 0 where nothing was asked.
    """

    handle: Handle
    text: str
    tags: tuple[str, ...] = ()
    at: float = 0.0
    by: str = ""
    score: float = 0.0


class ArchivalMemory:
    """The passages that lie in a dialog, found by the vectors that an embedder makes of them.

    A passage is an entry with its text and its vector, so that forks, copies and erasing treat it as they treat every entry. What finds the
    nearest is made of them anew, in memory. With another embedder than before the old passages are embedded anew when they are searched.
    """

    def __init__(self, dialog: Held, embedder: Embedder | None = None) -> None:
        """Open the archive in a dialog, best in one of its own (`session.new_dialog("archive")`).

        Args:
            dialog: The dialog.
            embedder: What makes vectors; one that hashes words when not given.
        """
        self._notes = Notes(dialog, _KIND)
        self.store, self.dialog_id = dialog.store, dialog.dialog_id
        self.embedder: Embedder = HashingEmbedder() if embedder is None else embedder
        self._vectors: dict[
            bytes, Vector
        ] = {}  # by the digest of the entry: a handle may name another one when a block was taken back
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """Give how many passages there are."""
        return len(self._standing())

    def passages(self, limit: int = 100, offset: int = 0, *, tags: Collection[str] = ()) -> tuple[Passage, ...]:
        """Give passages, the newest first, a page at a time; of those with all of some tags."""
        begin = max(offset, 0)
        found = [_passage(note) for note in reversed(self._standing()) if _tagged(note, tags)]
        return tuple(found[begin : begin + max(limit, 0)])

    # --- putting in and taking out ------------------------------------------------------------------------------------------------

    def insert(self, text: str, tags: Iterable[str] = (), *, by: str = "") -> Passage:
        """Put a passage in; as `ainsert`, for synchronous callers."""
        require_no_block(self.store, "What asks an embedder")
        return run_sync(partial(self.ainsert, text, tags, by=by))

    async def ainsert(self, text: str, tags: Iterable[str] = (), *, by: str = "") -> Passage:
        """Put a passage in.

        Raises:
            InvalidInput: It is empty, has too many or too long tags, or the embedder gave no vector.
            MemoryFull: It has more than 20,000 characters.
        """
        said, marks = clean_text(text, "text", []), tuple(dict.fromkeys(tag.strip() for tag in tags if tag.strip()))
        if not said.strip():
            raise InvalidInput("An empty passage says nothing.")
        if len(marks) > MOST_TAGS or any(len(mark) > LONGEST_TAG for mark in marks):
            raise InvalidInput(f"A passage has at most {MOST_TAGS} tags of at most {LONGEST_TAG} characters.")
        if len(said) > LONGEST:
            raise MemoryFull("passage", size=len(said), limit=LONGEST, hint="Put it in as several passages.")
        (vector,) = await embedded(self.embedder, [said])
        stored = stored_vector(vector)
        data = {
            "text": said,
            "tags": list(marks),
            "by": by,
            "embedder": self.embedder.name,
            "vector": b64encode(stored.tobytes()).decode(),
        }
        handle, header = self._notes.write(lambda: data)
        with self._lock:
            self._vectors[header.digest] = stored
        return Passage(handle, said, marks, header.at, by)

    def delete(self, handle: Handle | str) -> Handle:
        """Take a passage out; what it said stays in the log, until it is erased there.

        Raises:
            InvalidHandle: It is not spelt like a handle.
            NotFound: There is no such passage.
        """
        wanted = Handle.parse(handle) if isinstance(handle, str) else handle

        def gone() -> Mapping[str, Any]:
            for note in self._standing():
                if note.handle.seq == wanted.seq and note.handle.dialog.startswith(wanted.dialog):
                    return {"deleted": f"{note.handle.dialog}:{note.handle.seq}"}
            raise NotFound(str(wanted), what="passage")

        return self._notes.write(gone)[0]

    # --- finding ------------------------------------------------------------------------------------------------------------------

    def search(
        self, query: str, limit: int = 10, offset: int = 0, *, tags: Collection[str] = ()
    ) -> tuple[Passage, ...]:
        """Find passages; as `asearch`, for synchronous callers."""
        require_no_block(self.store, "What asks an embedder")
        return run_sync(partial(self.asearch, query, limit, offset, tags=tags))

    async def asearch(
        self, query: str, limit: int = 10, offset: int = 0, *, tags: Collection[str] = ()
    ) -> tuple[Passage, ...]:
        """Find the passages that are most like a text, the likest first, a page at a time.

        Of passages that are equally like it the earlier comes first; the same archive and embedder give the same pages.

        Args:
            query: The text.
            limit: How many to give.
            offset: How many of the likest to pass over.
            tags: Tags that a passage must have, all of them.

        Raises:
            InvalidInput: The text is longer than a passage can be.
        """
        if len(query) > LONGEST:
            raise InvalidInput(f"What is looked for has {len(query):,} characters, and may have {LONGEST:,}.")
        begin, count = max(offset, 0), max(limit, 0)
        notes = [note for note in self._standing() if _tagged(note, tags)]
        if not notes or not query.strip() or not count:
            return ()
        (wanted,) = await embedded(self.embedder, [clean_text(query, "query", [])])
        vectors = await self._vectors_of(notes)
        sought = stored_vector(wanted)
        found = nearest(vectors, sought, begin + count)[begin:]
        return tuple(_passage(notes[index], likeness(vectors[index], sought)) for index in found)

    async def _vectors_of(self, notes: Sequence[Note]) -> list[Vector]:
        with self._lock:
            known = {note.digest for note in notes}
            kept = {digest: vector for digest, vector in self._vectors.items() if digest in known}
            for note in notes:
                vector = None if note.digest in kept else self._recorded(note)
                if vector is not None:
                    kept[note.digest] = vector
        missing = [note for note in notes if note.digest not in kept]
        for begin in range(0, len(missing), _BATCH):  # another embedder made these
            part = missing[begin : begin + _BATCH]
            made = await embedded(self.embedder, [str(note.data["text"]) for note in part])
            kept |= {note.digest: stored_vector(vector) for note, vector in zip(part, made, strict=True)}
        with self._lock:
            self._vectors = kept
        return [kept[note.digest] for note in notes]

    def _recorded(self, note: Note) -> Vector | None:
        """Give the vector that was recorded with a passage; None where another embedder made it, or it cannot be read."""
        if note.data.get("embedder") != self.embedder.name:
            return None
        vector = array("f")
        try:
            vector.frombytes(b64decode(str(note.data.get("vector", "")), validate=True))
        except ValueError:
            return None
        return vector if len(vector) == self.embedder.dimensions else None

    def _standing(self) -> list[Note]:
        notes: dict[str, Note] = {}
        for note in self._notes.all():
            gone = note.data.get("deleted")
            if gone:
                notes.pop(str(gone), None)
            elif isinstance(note.data.get("text"), str):
                notes[f"{note.handle.dialog}:{note.handle.seq}"] = note
        return list(notes.values())


def _tagged(note: Note, tags: Collection[str]) -> bool:
    return not tags or set(tags) <= set(note.data.get("tags", ()))


def _passage(note: Note, score: float = 0.0) -> Passage:
    tags = tuple(map(str, note.data.get("tags", ())))
    return Passage(note.handle, str(note.data["text"]), tags, note.at, str(note.data.get("by", "")), score)
