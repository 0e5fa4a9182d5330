"""SQLite on a disk that fails: a VFS (https://www.sqlite.org/vfs.html) that notes what is written, and fails when it is told to.

It stands in for the system's own, so a store that is opened inside `sqlite_on` is the shipped one, with its pool, its pragmas and its way of
opening; nothing in it knows of this. Locks and shared memory stay those of the system, so several connections and processes work as always.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import apsw

from palaver.store import SqliteStore
from tests.damage.disk import Act, Note, Notes

__all__ = ["Disk", "Failure", "close_on", "put_back", "sqlite_on"]

_NAME = "palaver-failing"
_LOGS = ("-wal", "-journal")
_TRANSIENT = apsw.SQLITE_OPEN_DELETEONCLOSE


class Failure(Enum):
    """How the disk fails.

    Attributes:
        READ: It cannot be read.
        WRITE: It cannot be written.
        SHORT: It writes the first half, and says that it could not write.
        FULL: It has no room for what is to be written.
        FLUSH: It cannot flush; what was to be flushed is lost, and nobody will hear of it again.
    """

    READ = "read"
    WRITE = "write"
    SHORT = "short write"
    FULL = "full"
    FLUSH = "flush"


@dataclass
class Disk:
    """What was done, and what is to go wrong.

    Attributes:
        notes: What was done to the files.
        failure: How it fails; None for never.
        first: Which act of that kind is the first to fail, counted from 1.
        last: Which is the last to fail; as `first` for a single one.
        seen: How many acts of that kind there were.
        failed: How many of them failed.
        watch: Is called behind every act; it may end the process.
    """

    notes: Notes = field(default_factory=lambda: Notes(lambda name: name.endswith(_LOGS)))
    failure: Failure | None = None
    first: int = 0
    last: int = 0
    seen: int = 0
    failed: int = 0
    watch: Callable[[], None] | None = None

    def fail(self, failure: Failure | None, first: int = 1, last: int | None = None) -> None:
        """Fail from now on: the first such act from here, or the ones from `first` to `last`, inclusive; None to work again."""
        self.failure, self.first, self.last = failure, first, first if last is None else last
        self.seen = self.failed = 0

    def fails(self, *kinds: Failure) -> bool:
        """Return whether an act that can fail in these ways is to fail."""
        if self.failure not in kinds:
            return False
        self.seen += 1
        failing = self.first <= self.seen <= self.last
        self.failed += failing
        return failing

    def note(self, act: Act, name: str, offset: int = 0, data: bytes = b"") -> None:
        """Note what was done."""
        self.notes.acts.append(Note(act, Path(name).name, offset, data))
        if self.watch is not None:
            self.watch()


class _File(apsw.VFSFile):
    """One file, on the system's disk."""

    def __init__(self, base: str, disk: Disk, name: apsw.URIFilename | str | None, flags: list[int]) -> None:
        super().__init__(base, name, flags)
        self._disk = disk
        self._name = name.filename() if isinstance(name, apsw.URIFilename) else name or ""
        self._noted = bool(self._name) and not flags[0] & _TRANSIENT
        if self._noted:
            disk.note(Act.MADE, self._name)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802 - apsw's name
        """Read, unless that fails."""
        if self._disk.fails(Failure.READ):
            raise apsw.IOError("read")
        return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        """Write, unless that fails."""
        written = bytes(data)
        fails = self._disk.fails(Failure.WRITE, Failure.SHORT, Failure.FULL)
        if fails:
            written = written[: len(written) // 2] if self._disk.failure is Failure.SHORT else b""
        if written:
            super().xWrite(written, offset)
            if self._noted:
                self._disk.note(Act.WROTE, self._name, offset, written)
        if fails and self._disk.failure is Failure.FULL:
            raise apsw.FullError("no room")
        if fails:
            raise apsw.IOError("write")

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        """Cut, or grow with zeros."""
        super().xTruncate(newsize)
        if self._noted:
            self._disk.note(Act.CUT, self._name, newsize)

    def xSync(self, flags: int) -> None:  # noqa: ARG002, N802
        """Flush, unless that fails: the notes are the disk, so the real one need not be waited for."""
        if self._disk.fails(Failure.FLUSH):
            if self._noted:
                self._disk.note(Act.LOST, self._name)
            raise apsw.IOError("fsync")
        if self._noted:
            self._disk.note(Act.FLUSHED, self._name)


class _Disks(apsw.VFS):
    """The system's disks, through ours."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._base = apsw.vfs_names()[0]
        super().__init__(_NAME, self._base, makedefault=True)

    def xOpen(self, name: apsw.URIFilename | str | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        """Open a file."""
        return _File(self._base, self._disk, name, flags)

    def xGetLastError(self) -> tuple[int, str]:  # noqa: N802
        """Say what was wrong the last time: a failure that was made up, or the system's."""
        number, text = (errno.EIO, "made up") if self._disk.failed else super().xGetLastError()
        return number, text or ""

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        """Delete a file."""
        super().xDelete(filename, syncdir)
        self._disk.note(Act.DELETED, filename)


@contextmanager
def sqlite_on(disk: Disk) -> Iterator[Disk]:
    """Let every SQLite connection that this process opens inside the block use a disk; the ones opened inside must be closed inside."""
    disks = _Disks(disk)
    try:
        yield disk
    finally:
        disks.unregister()


def put_back(left: Mapping[str, bytes], folder: Path) -> None:
    """Write files into a folder, which is made."""
    folder.mkdir(parents=True)
    for name, content in left.items():
        (folder / name).write_bytes(content)


def close_on(store: SqliteStore) -> None:
    """Close a store whose disk may fail.

    When SQLite cannot carry its log over at the end it keeps the log, loses nothing, and says nothing; apsw tells all the same of the error
    that a VFS in Python raised meanwhile, as it could not of one of the system's.
    """
    with suppress(apsw.Error):
        store.close()
