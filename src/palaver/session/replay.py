"""The replay log: a directory of plain JSON lines that follows a store, one file a dialog, and from which all of it can be rebuilt.

The store is the truth. The log is written after the store has acknowledged; when it cannot be, the call has succeeded all the same,
a warning says so, and the log catches up at the dialog's next write.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from palaver.errors import Ambiguous, Erased, MissingStore, PalaverError, UnknownDialog
from palaver.ids import BlobId, DialogId, SessionId
from palaver.log import Node
from palaver.messages import canonical_json
from palaver.session.follower import Follower
from palaver.session.portable import (
    Carried,
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
from palaver.session.warn import ReplayLogWarning
from palaver.store.protocol import SessionRecord, Store

__all__ = ["LogBase", "ReplayLog", "follower_of", "read_log"]

VERSION = 1
"""The first line of each file names it."""

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
            written.append(canonical_json(line.to_dict()))
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
    return canonical_json({"replay": VERSION, "order": node.order, "session": session, "node": node_to_dict(node)})


def _payload(store: Store, blob: BlobId) -> bytes:
    return canonical_json({"blob": blob, "data": payload_to_text(store.blob(blob))})


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
    """Give the lines of a log file that are whole; a torn one is passed over."""
    with path.open("rb") as file:
        for line in file:
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict):
                yield record


class _File:
    """One file of a log, as far as it can be read."""

    def __init__(self, path: Path) -> None:
        self.session: SessionRecord | None = None
        self.carried: Carried | None = None
        self.order = 0
        self._beyond = 0
        for record in records(path):
            try:
                self._take(record)
            except (KeyError, TypeError, ValueError) as error:
                _warn(f"A line of {path} cannot be read: {error!r}.")
        if self._beyond:
            _warn(f"{path} has a gap: {self._beyond} lines after it were not used.")

    def _take(self, record: Mapping[str, Any]) -> None:
        """Take one line; the second writing of an entry is the same entry, and what comes after a gap cannot be used."""
        if self.carried is None:
            if "replay" in record:
                self.session, self.order = session_from_dict(record["session"]), int(record["order"])
                self.carried = Carried(node_from_dict(record["node"]))
        elif "blob" in record:
            self.carried.payloads.append(payload_from_text(record["data"]))
        elif record.get("seq") == len(self.carried.lines):
            self.carried.lines.append(line_from_dict(record))
        elif record.get("seq", -1) > len(self.carried.lines):
            self._beyond += 1


def read_log(folder: str | os.PathLike[str], session_id: str | None = None) -> tuple[SessionRecord, list[Carried]]:
    """Read one session from a replay log's directory: its record, and its dialogs in the order in which they were made.

    Raises:
        MissingStore: There is no such directory, or no log in it.
        Ambiguous: It holds several sessions, and none was named.
    """
    found: dict[str, tuple[SessionRecord, list[tuple[int, Carried]]]] = {}
    for path in sorted(Path(folder).glob("*.jsonl")):
        file = _File(path)
        if file.carried is not None and file.session is not None and session_id in {None, file.session.session_id}:
            dialogs = found.setdefault(file.session.session_id, (file.session, []))[1]
            dialogs.append((file.order, file.carried))
    if not found:
        raise MissingStore(str(folder), what="replay log", hint="A replay log is a folder of <dialog id>.jsonl files.")
    if len(found) > 1:
        raise Ambiguous(str(folder), sorted(found), hint="Name one of the sessions.")
    record, dialogs = next(iter(found.values()))
    return record, [carried for _, carried in sorted(dialogs, key=lambda numbered: numbered[0])]


def _warn(said: str) -> None:
    warnings.warn(said, ReplayLogWarning, stacklevel=2)
