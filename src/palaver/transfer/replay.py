"""The replay log: a folder of JSON lines that follows a store, one file per dialog. A session can be rebuilt from it.

The store is authoritative. The log is written after the store acknowledged a write. If it cannot be written, the call still succeeds with a
warning, and the log catches up at the dialog's next write.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Protocol, TypeAlias

from palaver.errors import Ambiguous, Erased, InvalidInput, MissingFile, NotFound, PalaverError, StoreError
from palaver.files import flush_names
from palaver.ids import DialogId, SessionId
from palaver.log import Node, Span, decode_entry, erased_since
from palaver.store.erasing import Erasing, NotedFile
from palaver.store.protocol import SessionRecord, Store
from palaver.transfer.files import sealed, unsealed
from palaver.transfer.landing import warn_of_log
from palaver.transfer.records import EntryRecord, Payload, Record, from_line, to_line
from palaver.transfer.writer import rows

_FILE_MODE, _FOLDER_MODE = 0o600, 0o700  # conversations are private
_SUFFIX, _UNFINISHED = ".jsonl", ".new"
_ID = re.compile("[0-9a-f]{32}")


class Follower(Protocol):
    """Gets every write after the store acknowledged it.

    On failure it warns and does not raise.
    """

    def follow(self, store: Store, node: Node, upto: int) -> None:
        """Follow a dialog up to its own entry `upto`, inclusive; -1 for a dialog without an own entry."""
        ...

    def forget(self, store: Store, session_id: SessionId) -> None:
        """Remove data of a session that the store no longer has."""
        ...


class ReplayLog:
    """Follows a store into a folder: `<dialog id>.jsonl`, first the session and the dialog's node, then its own entries in order.

    Every line has a checksum, and lines are written with one `write`, so a crash damages at most the last line. The store's durability does not
    depend on the log.

    Attributes:
        folder: The folder; created on the first write, readable only by its owner.
        fsync: Whether every write is flushed to disk before the call returns. Without it the log survives a crash of the process, but not of the
            machine.
    """

    def __init__(self, folder: str | os.PathLike[str], *, fsync: bool = False) -> None:
        self.folder = Path(folder)
        self.fsync = fsync
        self._next: dict[DialogId, int] = {}
        self._noted: set[tuple[str, SessionId]] = set()
        self._lock = threading.RLock()

    def follow(self, store: Store, node: Node, upto: int) -> None:
        """Write the missing lines of a dialog up to its own entry `upto`, inclusive. Warn on failure."""
        try:
            with self._lock:
                self._follow(store, node, upto)
        except (OSError, PalaverError) as error:
            self._next.pop(node.dialog_id, None)
            if isinstance(error, Erased):
                self._path(node).unlink(missing_ok=True)  # it was erased while its lines were written
            warn_of_log(f"The replay log of dialog {node.dialog_id} in {self.folder} could not be written: {error}")

    def _path(self, node: Node) -> Path:
        return self.folder / f"{node.dialog_id}{_SUFFIX}"

    def _follow(self, store: Store, node: Node, upto: int) -> None:
        path = self._path(node)
        self._note(store, node.session_id)
        seen = store.last(node.dialog_id).seq
        start, torn = self._next.get(node.dialog_id), False
        if path.exists() and erased_since(store, node.dialog_id, -1 if start is None else start - 1) is not None:
            start = _rewrite(path, store, node)  # the erasure did not know of the log
        elif start is None or not path.exists():
            start, torn = _end_of(path)
        self._write(path, b"\n" * torn + _lines(store, node, start, upto + 1))
        self._next[node.dialog_id] = max(start, upto + 1)
        if erased_since(store, node.dialog_id, seen) is not None:  # while it was read and written
            self._next.pop(node.dialog_id, None)
            self._follow(store, node, upto)

    def _note(self, store: Store, session_id: SessionId) -> None:
        """Let the store know of the folder before it exists, so that every erasure of the session reaches it."""
        known = (store.url, session_id)
        if known not in self._noted and isinstance(store, Erasing):
            try:
                store.note_file(session_id, NotedFile.of_folder(self.folder))
            except StoreError as error:
                if error.reason != "read_only":
                    raise
        self._noted.add(known)

    def forget(self, store: Store, session_id: SessionId) -> None:  # noqa: ARG002 - of a follower
        """Rewrite the files of dialogs in which something was erased, and delete those of erased dialogs. Warn on failure."""
        with self._lock:
            self._next.clear()
            try:
                follow_erasures(store, self.folder)
            except (OSError, PalaverError) as error:
                warn_of_log(f"The replay log in {self.folder} may still have what was erased: {error}")

    def _write(self, path: Path, data: bytes) -> None:
        if not data:
            return
        self.folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
        _put(path, data, os.O_APPEND, flush=self.fsync)


def follow_erasures(store: Store, folder: Path) -> None:
    """Remove from a folder of replay logs what was erased from a store. Files of dialogs that the store does not know stay as they are.

    A file is replaced in one step: after a crash it is the old or the new one, and the next call finishes the work.

    Raises:
        OSError: A file cannot be replaced or deleted.
        StoreError: The store cannot be read.
    """
    for path in sorted(folder.glob(f"*{_SUFFIX}{_UNFINISHED}")):
        path.unlink(missing_ok=True)  # a crash left it
    for path in sorted(folder.glob(f"*{_SUFFIX}")):
        dialog = DialogId(path.stem)
        if _ID.fullmatch(dialog) is None:
            continue
        try:
            node = store.node(dialog)
        except Erased:
            path.unlink(missing_ok=True)
        except NotFound:
            continue
        else:
            if erased_since(store, dialog, -1) is not None:
                _rewrite(path, store, node)
    flush_names(folder)


def _rewrite(path: Path, store: Store, node: Node) -> int:
    """Replace a file by what the store has, and return the number of the next entry."""
    stop = store.last(node.dialog_id).seq + 1
    data = _lines(store, node, -1, stop)
    if path.read_bytes() != data:
        unfinished = path.with_name(f"{path.name}{_UNFINISHED}")
        _put(unfinished, data, os.O_TRUNC, flush=True)
        unfinished.replace(path)
    return stop


def _put(path: Path, data: bytes, how: int, *, flush: bool) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | how, _FILE_MODE)
    try:
        while data:
            data = data[os.write(descriptor, data) :]
        if flush:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


LogBase: TypeAlias = Follower | str | os.PathLike[str]
"""The values of `log_base`: a follower, or the folder of a replay log."""


def follower_of(log_base: LogBase | None) -> Follower | None:
    """Return a replay log for a folder, or a follower unchanged."""
    return ReplayLog(log_base) if isinstance(log_base, str | os.PathLike) else log_base


# --- lines ----------------------------------------------------------------------------------------------------------------------------


def _lines(store: Store, node: Node, start: int, stop: int) -> bytes:
    """Return the lines of a dialog's entries from `start` (inclusive) to `stop` (exclusive). A negative `start` adds the session and the node."""
    head: list[Record] = [store.session(node.session_id), node] if start < 0 else []
    own = rows(store, node.session_id, Span(node.dialog_id, max(start, 0), stop), set())
    return b"".join(sealed(to_line(record)) + b"\n" for record in (*head, *own))


def _records(path: Path) -> Iterator[tuple[bytes, Record | None]]:
    """Yield the lines of a file, each with its record; None for a torn or damaged line."""
    with path.open("rb") as file:
        for line in file:
            text = unsealed(line.rstrip(b"\n"))
            record: Record | None = None
            with suppress(InvalidInput):
                record = None if text is None else from_line(text)
                if isinstance(record, EntryRecord):
                    decode_entry(record.body)
            yield line, record


def _end_of(path: Path) -> tuple[int, bool]:
    """Return the entry that a file needs next (-1: it lacks its first line), and whether its last line is torn."""
    needed, last = -1, b"\n"
    for line, record in _records(path) if path.exists() else ():
        last = line
        if isinstance(record, Node):
            needed = max(needed, 0)
        elif isinstance(record, EntryRecord) and record.seq == needed:
            needed += 1
    return needed, not last.endswith(b"\n")


# --- reading one back -------------------------------------------------------------------------------------------------------------------


class _LogFile:
    """One file of a log, as far as it can be read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.session: SessionRecord | None = None
        self.node: Node | None = None
        self.rows: dict[int, EntryRecord] = {}
        self.payloads: list[Payload] = []
        damaged: dict[int, bytes] = {}
        text = b"\n"
        for number, (text, record) in enumerate(_records(path), 1):
            damaged = {n: torn for n, torn in damaged.items() if not text.startswith(torn)}  # torn, and rewritten
            if not self._read(record, number) and text.strip():
                damaged[number] = text.rstrip(b"\n")
        if damaged and not text.endswith(b"\n"):
            damaged.popitem()  # the end of a log that a crash cut off
        for number in damaged:
            warn_of_log(f"Line {number} of {path} cannot be read.")

    def _read(self, record: Record | None, number: int) -> bool:
        """Keep a line's record and return whether it is valid."""
        match record:
            case SessionRecord():
                self.session = record
            case Node():
                self.node = record
            case Payload():
                self.payloads.append(record)
            case EntryRecord(seq=seq) if 0 <= seq < number:  # each entry has one line
                self.rows.setdefault(seq, record)
            case _:
                return False
        return True

    @property
    def usable(self) -> bool:
        """Whether a dialog can be built from it."""
        return self.node is not None or (bool(self.rows) and _ID.fullmatch(self.path.stem) is not None)

    @property
    def order(self) -> int:
        """The number of the dialog in its session; -1 where its line is lost."""
        return -1 if self.node is None else self.node.order

    def records(self, session: SessionRecord) -> Iterator[Record]:
        """Yield the records of the dialog."""
        node = self.node
        if node is None:
            dialog_id = DialogId(self.path.stem)
            warn_of_log(f"The first lines of {self.path} are lost: dialog {dialog_id} has no parent.")
            node = Node(dialog_id=dialog_id, session_id=session.session_id, created_at=session.created_at)
        yield node
        yield from self.payloads
        yield from (self.rows[seq] for seq in sorted(self.rows))


def read_log(folder: str | os.PathLike[str], session_id: str | None = None) -> Iterator[Record]:
    """Read one session from a replay log, as a stream of records in which some may be missing.

    A line that cannot be read is reported by a warning; all others are used.

    Raises:
        MissingFile: The folder does not exist, or has no log.
        Ambiguous: The folder contains several sessions, and none was named.
    """
    files = [file for path in sorted(Path(folder).glob("*.jsonl")) if (file := _LogFile(path)).usable]
    known = {file.session.session_id: file.session for file in files if file.session is not None}
    alone = next(iter(known.values())) if len(known) == 1 else None
    sessions: dict[str, tuple[SessionRecord, list[_LogFile]]] = {}
    for file in files:
        record = file.session or alone or SessionRecord(session_id=SessionId(file.path.stem), name=file.path.stem)
        if session_id in {None, record.session_id}:
            sessions.setdefault(record.session_id, (record, []))[1].append(file)
    if not sessions:
        raise MissingFile(str(folder), what="replay log", hint="A replay log is a folder of <dialog id>.jsonl files.")
    if len(sessions) > 1:
        raise Ambiguous(str(folder), sorted(sessions), hint="Name one of the sessions.")
    record, mine = next(iter(sessions.values()))
    return chain([record], *(file.records(record) for file in sorted(mine, key=lambda file: file.order)))
