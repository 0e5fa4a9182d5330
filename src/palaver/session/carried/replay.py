"""The replay log: a directory of plain JSON lines that follows a store, one file a dialog, and from which all of it can be rebuilt.

The store is the truth. The log is written after the store has acknowledged; when it cannot be, the call has succeeded all the same,
a warning says so, and the log catches up at the dialog's next write.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

from palaver.errors import Ambiguous, Erased, MissingStore, PalaverError, UnknownDialog
from palaver.ids import BlobId, DialogId, SessionId
from palaver.log import Handle, Node, decode_entry
from palaver.messages import canonical_json
from palaver.session.carried.follower import Follower, ReplayLogWarning
from palaver.session.carried.gaps import filled, number_of
from palaver.session.carried.portable import (
    Carried,
    Line,
    blobs_of,
    line_from_dict,
    lines,
    node_from_dict,
    node_to_dict,
    payload_from_text,
    payload_to_text,
    session_from_dict,
    session_to_dict,
)
from palaver.store.protocol import SessionRecord, Store

__all__ = ["LogBase", "ReplayLog", "follower_of", "read_log"]

VERSION = 1
"""The first line of each file names it."""

_PAYLOAD = re.compile(rb'\{"blob": ?"([0-9a-f]{64})"')
_END = re.compile(rb'("sum":"[0-9a-f]{32}"|"turn":(true|false))\}\s*\Z')

_FILE_MODE, _FOLDER_MODE = 0o600, 0o700  # conversations are private


class ReplayLog:
    """Follows a store into a directory: `<dialog id>.jsonl`, first the session and the dialog's node, then its own entries in order.

    Lines are written with one `write` each time, so that a crash tears the last line at most. With `fsync` every write is flushed to
    the disk before the call returns; without it (the default) that is left to the operating system: what it survives is the death of
    the process. The store's own durability does not depend on it.

    Attributes:
        folder: The directory; it is made when it is first written to.
        fsync: Whether every write is flushed.
    """

    def __init__(self, folder: str | os.PathLike[str], *, fsync: bool = False) -> None:
        self.folder = Path(folder)
        self.fsync = fsync
        self._next: dict[DialogId, int] = {}

    def follow(self, store: Store, node: Node, upto: int) -> None:
        """Write what the log lacks of a dialog, up to its own entry `upto` (inclusive); whatever goes wrong is a warning."""
        try:
            self._follow(store, node, upto)
        except (OSError, PalaverError) as error:  # a follower never fails the call that it follows
            self._next.pop(node.dialog_id, None)
            warnings.warn(
                f"The replay log of dialog {node.dialog_id} in {self.folder} could not be written: {error}",
                ReplayLogWarning,
                stacklevel=4,
            )

    def _follow(self, store: Store, node: Node, upto: int) -> None:
        path = self.folder / f"{node.dialog_id}.jsonl"
        start = self._next.get(node.dialog_id)
        written: list[bytes] = []
        if start is None:
            self.folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
            start, torn = _standing(path)
            written += [b""] if torn else []
            written += [_head(store, node)] if start < 0 else []
            start = max(start, 0)
        for line in lines(store, node.dialog_id, start, upto + 1):
            written += [_payload(store, blob) for blob in blobs_of(line.body)]
            written.append(_sealed({**line.to_dict(), "number": line.number}))
        if written:
            self._write(path, b"".join(line + b"\n" for line in written))
        self._next[node.dialog_id] = max(start, upto + 1)

    def forget(self, store: Store, session_id: SessionId) -> None:
        """Delete the files of dialogs that were erased, and write those of the others anew, without what was erased in them."""
        for path in sorted(self.folder.glob("*.jsonl")):
            dialog = DialogId(path.stem)
            try:
                if next(records(path), {}).get("session", {}).get("session_id") != session_id:
                    continue
                path.unlink()
                self._next.pop(dialog, None)
                self._follow(store, store.node(dialog), store.last(dialog).seq)
            except (Erased, UnknownDialog):
                continue
            except (OSError, PalaverError) as error:  # as in `follow`
                warnings.warn(
                    f"The replay log {path} could not be rid of what was erased: {error}",
                    ReplayLogWarning,
                    stacklevel=4,
                )

    def _write(self, path: Path, data: bytes) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, _FILE_MODE)
        try:
            while data:
                data = data[os.write(descriptor, data) :]
            if self.fsync:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)


LogBase: TypeAlias = Follower | str | os.PathLike[str]
"""What `log_base` takes: something that follows, or the folder for a replay log."""


def follower_of(log_base: LogBase | None) -> Follower | None:
    """Make a replay log of a folder; a follower is one already."""
    if log_base is None or isinstance(log_base, Follower):
        return log_base
    return ReplayLog(log_base)


def _head(store: Store, node: Node) -> bytes:
    session = session_to_dict(store.session(node.session_id))
    return _sealed({"replay": VERSION, "order": node.order, "session": session, "node": node_to_dict(node)})


def _payload(store: Store, blob: BlobId) -> bytes:
    return canonical_json({"blob": blob, "data": payload_to_text(store.blob(blob))})


def _sealed(fields: Mapping[str, Any]) -> bytes:
    """Give a line with its checksum, so that one that was spoilt and is JSON still is known, too."""
    text = canonical_json(fields)
    return b'%s,"sum":"%s"}' % (text[:-1], _sum(text))


def _sum(text: bytes) -> bytes:
    return sha256(text).hexdigest()[:32].encode()


def _standing(path: Path) -> tuple[int, bool]:
    """Tell which entry a file needs next (-1: it has not even its first line), and whether its last line is torn."""
    if not path.exists():
        return -1, False
    needed = -1
    for record in records(path):
        if "replay" in record:
            needed = max(needed, 0)
        elif record.get("seq") == needed:
            needed += 1
    with path.open("rb") as file:
        file.seek(0, os.SEEK_END)
        if not file.tell():
            return needed, False
        file.seek(-1, os.SEEK_END)
        return needed, file.read(1) != b"\n"


def records(path: Path) -> Iterator[Mapping[str, Any]]:
    """Give the lines of a log file that are whole; others are passed over."""
    with path.open("rb") as file:
        yield from (record for line in file if (record := _record(line)) is not None)


def _record(line: bytes) -> dict[str, Any] | None:
    """Read a line; None for one that is torn or spoilt. A line of an older palaver has no checksum."""
    try:
        record = json.loads(line)
    except ValueError:
        return None
    if not isinstance(record, dict):
        return None
    told = record.pop("sum", None)
    return record if told is None or str(told).encode() == _sum(canonical_json(record)) else None


class _File:
    """One file of a log, as far as it can be read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.session: SessionRecord | None = None
        self.node: Node | None = None
        self.order = -1
        self._lines: dict[int, Line] = {}
        self._payloads: dict[str, bytes] = {}
        self._spoilt: list[tuple[int, int, bytes]] = []
        self._count = 0
        with path.open("rb") as file:
            for self._count, line in enumerate(file, 1):
                self._read(line)
        if self._spoilt and self._spoilt[-1][0] == self._count and not self._spoilt[-1][2].endswith(b"\n"):
            self._spoilt.pop()  # the end of a log that a crash cut off

    @property
    def used(self) -> bool:
        """Whether anything can be made of it."""
        return self.node is not None or bool(self._lines)

    def carried(self, node: Node) -> Carried:
        """Give the dialog, and say which lines are lost; something stands in the place of each, so that what is behind it keeps its number."""
        lost = [seq for seq in range(max(self._lines, default=-1) + 1) if seq not in self._lines]
        left = self._left_of(lost)
        for seq in lost:
            at = f"line {left[seq][0]} of {self.path}" if seq in left else f"its line in {self.path}"
            _warn(
                f"Entry {Handle(node.dialog_id, seq)} is lost: {at} is spoilt or missing. A line of the harness says so."
            )
        told = {at for at, _ in left.values()} | ({1} if self.node is None else set())
        newest = max(self._lines, default=-1)
        for number, before, raw in self._spoilt:  # what nobody wrote again behind it is missed, whatever is left of it
            if number not in told and (before == newest or self._missed(raw)):
                _warn(f"Line {number} of {self.path} cannot be read.")
        spoilt = {seq: raw for seq, (_, raw) in left.items()}
        whole = (
            filled(node.dialog_id, self._lines, spoilt) if lost else map(self._lines.__getitem__, sorted(self._lines))
        )
        return Carried(node, list(whole), list(self._payloads.values()), gaps=bool(lost))

    def _read(self, line: bytes) -> None:
        record = _record(line)
        self._spoilt = [
            one for one in self._spoilt if not line.startswith(one[2].rstrip(b"\n"))
        ]  # torn, and written again
        try:
            taken = record is not None and self._take(record)
        except (KeyError, TypeError, ValueError, PalaverError):
            taken = False
        if not taken and line.strip():
            self._spoilt.append((self._count, max(self._lines, default=-1), line))

    def _take(self, record: Mapping[str, Any]) -> bool:
        """Take one line, unless it does not hold what it says; the second writing of an entry is the same entry."""
        if "replay" in record:
            if self.node is None:
                self.session, order = session_from_dict(record["session"]), int(record["order"])
                self.node, self.order = node_from_dict(record["node"]), order
        elif "blob" in record:
            payload = payload_from_text(record["data"])
            if sha256(payload).hexdigest() != record["blob"]:
                return False
            self._payloads[record["blob"]] = payload
        elif "seq" in record:
            line = line_from_dict(record)
            if not 0 <= line.seq < self._count:  # an entry is at least one line
                return False
            decode_entry(line.body)
            self._lines.setdefault(line.seq, line)
        return True

    def _missed(self, spoilt: bytes) -> bool:
        """Tell whether a line that no entry needs is missed: not one that a crash cut off, whose writer began anew behind it."""
        named = _PAYLOAD.match(spoilt)
        if named is None:
            return _END.search(spoilt) is not None
        wanted = named[1]
        return wanted.decode() not in self._payloads and any(wanted in line.body for line in self._lines.values())

    def _left_of(self, lost: Sequence[int]) -> dict[int, tuple[int, bytes]]:
        """Give the spoilt lines that lost entries stood on, each with its number: what can be read of it says so, or where it stands."""
        entries = [one for one in self._spoilt if not one[2].startswith(b'{"blob"')]
        found = {seq: (at, raw) for at, _, raw in entries if (seq := number_of(raw)) in lost and seq is not None}
        named = {at for at, _ in found.values()}
        for at, newest, raw in entries:
            seq = next((one for one in lost if one > newest and one not in found), None)
            if seq is not None and at not in named:
                found[seq] = (at, raw)
        return found


def read_log(folder: str | os.PathLike[str], session_id: str | None = None) -> tuple[SessionRecord, list[Carried]]:
    """Read one session from a replay log's directory: its record, and its dialogs in the order in which they were made.

    A line that cannot be read is lost, and named by a warning; all others are used. Where that is the first line of a file, the dialog becomes
    a root of the one session that the others tell of, or else of a session of its own.

    Raises:
        MissingStore: There is no such directory, or no log in it.
        Ambiguous: It holds several sessions, and none was named.
    """
    files = [file for path in sorted(Path(folder).glob("*.jsonl")) if (file := _File(path)).used]
    known = {file.session.session_id: file.session for file in files if file.session is not None}
    alone = next(iter(known.values())) if len(known) == 1 else None
    found: dict[str, tuple[SessionRecord, list[_File]]] = {}
    for file in files:
        record = file.session or alone or SessionRecord(session_id=SessionId(file.path.stem), name=file.path.stem)
        if session_id in {None, record.session_id}:
            found.setdefault(record.session_id, (record, []))[1].append(file)
    if not found:
        raise MissingStore(str(folder), what="replay log", hint="A replay log is a folder of <dialog id>.jsonl files.")
    if len(found) > 1:
        raise Ambiguous(str(folder), sorted(found), hint="Name one of the sessions.")
    record, dialogs = next(iter(found.values()))
    return record, [
        file.carried(file.node or _rootless(file.path, record)) for file in sorted(dialogs, key=lambda file: file.order)
    ]


def _rootless(path: Path, record: SessionRecord) -> Node:
    """Give a node to a dialog whose first line is lost: what it shared with others is not known."""
    _warn(f"The first line of {path} is lost: dialog {path.stem} stands alone, without what it shared with others.")
    return Node(dialog_id=DialogId(path.stem), session_id=record.session_id, created_at=record.created_at)


def _warn(said: str) -> None:
    warnings.warn(said, ReplayLogWarning, stacklevel=2)
