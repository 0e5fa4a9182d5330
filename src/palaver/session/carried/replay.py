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

from palaver.errors import Ambiguous, Erased, InvalidInput, MissingStore, PalaverError, UnknownDialog
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
from palaver.session.reading.erased import erased_since
from palaver.store.protocol import SessionRecord, Store
from palaver.tools.locks import OwnLock

__all__ = ["LogBase", "ReplayLog", "follower_of", "read_log"]

VERSION = 1
"""The first line of each file names it."""

_ID = re.compile("[0-9a-f]{32}")
_PAYLOAD = re.compile(rb'\{"blob": ?"([0-9a-f]{64})"')
_END = re.compile(rb'("sum":"[0-9a-f]{32}"|"turn":(true|false))\}\s*\Z')

_FILE_MODE, _FOLDER_MODE = 0o600, 0o700  # conversations are private


class ReplayLog:
    """Follows a store into a directory: `<dialog id>.jsonl`, first the session and the dialog's node, then its own entries in order.

    Lines are written with one `write` each time, so that a crash tears the last line at most. With `fsync` every write is flushed to
    the disk before the call returns; without it (the default) that is left to the operating system: what it survives is the death of
    the process. The store's own durability does not depend on it. Threads may use it at once: an entry is written once, and none that was erased
    meanwhile.

    Attributes:
        folder: The directory; it is made when it is first written to.
        fsync: Whether every write is flushed.
    """

    def __init__(self, folder: str | os.PathLike[str], *, fsync: bool = False) -> None:
        self.folder = Path(folder)
        self.fsync = fsync
        self._next: dict[DialogId, int] = {}
        self._forgotten = 0  # how often something was erased
        self._lock = OwnLock()  # of the files: nobody waits for the store in it

    def follow(self, store: Store, node: Node, upto: int) -> None:
        """Write what the log lacks of a dialog, up to its own entry `upto` (inclusive); whatever goes wrong is a warning."""
        try:
            self._follow(store, node, upto)
        except (OSError, PalaverError) as error:  # a follower never fails the call that it follows
            with self._lock:
                self._next.pop(node.dialog_id, None)
            warnings.warn(
                f"The replay log of dialog {node.dialog_id} in {self.folder} could not be written: {error}",
                ReplayLogWarning,
                stacklevel=4,
            )

    def _follow(self, store: Store, node: Node, upto: int) -> None:
        while not self._followed(store, node, upto):
            pass  # another thread wrote of it first, or something was erased: what was read is not what the file lacks

    def _followed(self, store: Store, node: Node, upto: int) -> bool:
        """Write what is lacking, unless the file or the store is not what it was when that was read any more."""
        path = self.folder / f"{node.dialog_id}.jsonl"
        seen = store.last(node.dialog_id).seq
        with self._lock:
            forgotten, known = self._forgotten, self._next.get(node.dialog_id)
            needed, torn = (known, False) if known is not None else _standing(path)
        if known is None and needed > 0 and _is_outdated(store, node.dialog_id, path):
            self._delete(path)
            return False
        start = max(needed, 0)
        written = [b""] if torn else []
        written += [_head(store, node)] if needed < 0 else []
        for line in lines(store, node.dialog_id, start, upto + 1):
            written += [_payload(store, blob) for blob in blobs_of(line.body)]
            written.append(_sealed({**line.to_dict(), "number": line.number}))
        with self._lock:
            if (forgotten, known) != (self._forgotten, self._next.get(node.dialog_id)):
                return False
            if known is None:
                self.folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
            try:
                self._write(path, b"".join(line + b"\n" for line in written), new=needed < 0)
            except FileNotFoundError:
                if self._next.pop(node.dialog_id, None) is None:
                    raise
                return False  # somebody took the file away: it begins anew
            self._next[node.dialog_id] = max(start, upto + 1)
        return not written or self._stands(store, node.dialog_id, seen, path)

    def _stands(self, store: Store, dialog: DialogId, seen: int, path: Path) -> bool:
        """Tell whether nothing was erased since a dialog was read; else its file is deleted, and begins anew where the dialog is still there.

        Who erases may be another process, and have been through the folder before this was written.
        """
        try:
            if erased_since(store, dialog, seen) is None:
                return True
        except (Erased, UnknownDialog):
            self._delete(path)
            return True
        self._delete(path)
        return False

    def _delete(self, path: Path) -> None:
        """Delete a file, and forget how far it went, so that nothing that was read of it is the beginning of another."""
        with self._lock:
            self._forgotten += 1
            self._next.pop(DialogId(path.stem), None)
            path.unlink(missing_ok=True)

    def forget(self, store: Store, session_id: SessionId) -> None:
        """Delete the files of dialogs that were erased, and write those of the others anew, without what was erased in them."""
        with self._lock:
            self._forgotten += 1  # first: what was read of the store before is written no more
        for path in sorted(self.folder.glob("*.jsonl")):
            dialog = DialogId(path.stem)
            try:
                if not _is_of(store, session_id, path):
                    continue
                self._delete(path)
                self._follow(store, store.node(dialog), store.last(dialog).seq)
            except (Erased, UnknownDialog):
                continue
            except (OSError, PalaverError) as error:  # as in `follow`
                warnings.warn(
                    f"The replay log {path} could not be rid of what was erased: {error}",
                    ReplayLogWarning,
                    stacklevel=4,
                )

    def _write(self, path: Path, data: bytes, *, new: bool) -> None:
        if not data:
            return
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | (os.O_CREAT if new else 0), _FILE_MODE)
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


def _is_of(store: Store, session_id: SessionId, path: Path) -> bool:
    """Tell whether a file is of a session, or of a dialog that was erased: as the store says, and where it has never had that dialog, the file itself.

    Raises:
        InvalidInput: Neither says it.
    """
    try:
        return store.node(DialogId(path.stem)).session_id == session_id
    except Erased:
        return True
    except UnknownDialog:
        told = [record["session"] for record in records(path) if isinstance(record.get("session"), dict)]
        if not told and _ID.fullmatch(path.stem):
            raise InvalidInput("nothing in it says of which session it is", hint="Delete it by hand.") from None
        return any(each.get("session_id") == session_id for each in told)


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


def _is_outdated(store: Store, dialog: DialogId, path: Path) -> bool:
    """Tell whether a file says something else of an entry than the store: something was erased by somebody who did not know of it.

    What only the file has is no sign of that: the store may have been put back from an earlier copy.
    """
    if erased_since(store, dialog, -1) is None:
        return False
    now = {seq: _sum(body) for seq, body in store.bodies(dialog)}
    said = ((record.get("seq"), record["entry"]) for record in records(path) if "entry" in record)
    return any(
        isinstance(seq, int) and now.get(seq, b"") not in {b"", _sum(canonical_json(entry))} for seq, entry in said
    )


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
