"""A disk that forgets: what a power cut leaves of files that were written and not yet flushed.

Everything that is done to files is noted, in order. From the notes the files are made as a power cut at any point would leave them: what was
flushed is there; of what was not, any part may be there, in any order, down to single sectors, and a sector that was being written may hold
anything. SQLite's own crash tests do this behind its `xSync` (https://www.sqlite.org/testing.html, "Crash Testing"; `src/test6.c`), one crash a
process; TigerBeetle's simulator spoils sectors of the writes that were under way (`src/testing/storage.zig`). Here one run gives every cut.

The one thing taken for granted is what SQLite takes for granted of every disk of today: a write changes no byte beside those that were written
(https://www.sqlite.org/psow.html).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from random import Random
from typing import NamedTuple

__all__ = ["Act", "Loss", "Note", "Notes"]

SECTOR = 512
"""Bytes that a disk writes at once at least; the smallest that is in use."""


class Act(Enum):
    """What can be done to a file.

    Attributes:
        MADE: It was opened, and made if it was not there.
        WROTE: Something was written into it.
        CUT: It was cut, or grown, to a size.
        FLUSHED: What was written into it is on the disk now.
        LOST: It could not be flushed. What was written since the last time never reaches the disk, unless it is written anew: systems forget
            it, and the next flush succeeds without it (https://wiki.postgresql.org/wiki/Fsync_Errors).
        DELETED: It is gone.
    """

    MADE = "made"
    WROTE = "wrote"
    CUT = "cut"
    FLUSHED = "flushed"
    LOST = "lost"
    DELETED = "deleted"


class Loss(Enum):
    """What a power cut does to all that was written and not flushed.

    Attributes:
        ALL: Nothing of it is there.
        NONE: All of it is there, as after the death of the process alone.
        TORN: All of it is there but the second half of the last write.
        ANY: Of each write everything is there, nothing, or some sectors, perhaps with garbage in them; drawn at random.
    """

    ALL = "all"
    NONE = "none"
    TORN = "torn"
    ANY = "any"


class Note(NamedTuple):
    """One thing that was done.

    Attributes:
        act: What.
        name: The file.
        offset: Where it was written, or the size to which it was cut.
        data: What was written.
    """

    act: Act
    name: str
    offset: int = 0
    data: bytes = b""


class Notes:
    """All that was done to some files, in order.

    Attributes:
        acts: What was done.
    """

    def __init__(self, entered: Callable[[str], bool] = lambda _name: False) -> None:
        """Begin with no files.

        Args:
            entered: Tells whether flushing a new file of this name flushes the folder, too, and with it the names of all files in it. (SQLite
                does so for its logs and journals.) A name that was never flushed may be gone after a power cut.
        """
        self.acts: list[Note] = []
        self._entered = entered

    def __len__(self) -> int:
        return len(self.acts)

    def cuts(self, first: int = 0) -> Iterator[int]:
        """Return the points at which a cut can make a difference: behind each write, cut, flush and deletion, and before the first.

        Args:
            first: How many acts were done before the first cut.
        """
        yield first
        yield from (at for at, note in enumerate(self.acts, 1) if at > first and note.act is not Act.MADE)

    def left(self, at: int, loss: Loss, seed: int = 0) -> Mapping[str, bytes]:
        """Return the files, by name, as a power cut behind the first `at` acts leaves them.

        Args:
            at: How many acts were done.
            loss: What becomes of what was not flushed.
            seed: What `Loss.ANY` is drawn from, together with `at`.
        """
        draw = Random(f"{seed} {at}")  # noqa: S311 - no secret
        disk: dict[str, bytearray] = {}
        since: dict[str, list[Note]] = {}
        named: set[str] = set()
        for note in self.acts[:at]:
            match note.act:
                case Act.MADE:
                    disk.setdefault(note.name, bytearray())
                    since.setdefault(note.name, [])
                case Act.DELETED:
                    disk.pop(note.name, None)
                    since.pop(note.name, None)
                    named.discard(note.name)
                case Act.FLUSHED:
                    _apply(disk[note.name], since[note.name])
                    since[note.name].clear()
                    named |= set(disk) if self._entered(note.name) else {note.name}
                case Act.LOST:
                    since[note.name].clear()
                case _:
                    since[note.name].append(note)
        lost = {name for name in sorted(set(disk) - named) if _loses_names(loss, draw)}
        for name, content in disk.items():
            _apply(content, _kept(since[name], loss, draw))
        return {name: bytes(content) for name, content in disk.items() if name not in lost}


def _loses_names(loss: Loss, draw: Random) -> bool:
    return loss is Loss.ALL or (loss is Loss.ANY and draw.random() < 0.3)


def _kept(since: Sequence[Note], loss: Loss, draw: Random) -> Iterator[Note]:
    """Return what is on the disk of the writes since the last flush."""
    for place, note in enumerate(since, 1):
        if loss is Loss.ANY:
            yield from _some(note, draw)
        elif loss is Loss.TORN and place == len(since):
            yield note._replace(data=note.data[: len(note.data) // 2])
        elif loss is not Loss.ALL:
            yield note


def _some(note: Note, draw: Random) -> Iterator[Note]:
    """Return a write, nothing of it, or some of the sectors that it touches, each as far as it was written."""
    fate = draw.randrange(4)
    if fate == 1 or (fate and note.act is Act.CUT):
        yield note
    elif fate:
        for sector in range(note.offset // SECTOR * SECTOR, note.offset + len(note.data), SECTOR):
            start = max(sector, note.offset)
            piece = note.data[start - note.offset : sector + SECTOR - note.offset]
            kept = draw.randrange(3)
            if kept:
                yield Note(Act.WROTE, note.name, start, piece if kept == 1 else draw.randbytes(len(piece)))


def _apply(content: bytearray, notes: Iterable[Note]) -> None:
    for note in notes:
        if note.act is Act.CUT:
            del content[note.offset :]
        elif not note.data:
            continue
        content.extend(bytes(max(0, note.offset + len(note.data) - len(content))))
        content[note.offset : note.offset + len(note.data)] = note.data
