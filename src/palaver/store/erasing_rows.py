"""Erasing where everything lies in rows: what the stores that speak SQL do alike, each by its own statements of the same names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Protocol

from palaver.errors import PalaverError, UnknownDialog, UnknownSession
from palaver.ids import BlobId, DialogId, SessionId
from palaver.store.erasing import Gone, KeptReceipt, Mark, Stray, Thing, Unnamed, listed, named_in
from palaver.store.records import MIN_PREFIX_DIGITS

__all__ = ["ErasingFace", "RowEraser", "Rows", "gone", "unknown_dialog", "unknown_session"]

_ID_DIGITS = 32
_PAGE_BODIES = 500
"""Entries that one statement reads: a server ends a statement that takes too long, and most entries name nothing."""
PAGE_BLOBS = 50_000
"""Ids of payloads that are held in memory at a time."""


class Rows(Protocol):
    """A connection that is lent, for statements by their names; texts go in and come out as the rest of palaver has them."""

    def all(self, name: str, *values: object) -> list[tuple[Any, ...]]:
        """Execute a statement and give all its rows."""
        ...

    def each(self, name: str, values: Iterable[tuple[object, ...]]) -> None:
        """Execute a statement that gives no rows, once for each of the values."""
        ...

    def older(self, blob_ids: Collection[BlobId], seconds: float) -> set[BlobId]:
        """Give those payloads that nobody has put for so many seconds, by the store's clock."""
        ...


# --- what is gone ---------------------------------------------------------------------------------------------------------------


def gone(rows: Rows, thing: Thing, name: str) -> Gone | None:
    """Read what is remembered of something erased; a dialog may be named by the first digits of its id."""
    found = rows.all("gone_get", thing, name)
    if not found and thing == "dialog" and MIN_PREFIX_DIGITS <= len(name) < _ID_DIGITS:
        found = rows.all("gone_beginning", thing, name, name)
    return Gone(*found[0]) if found else None


def unknown_dialog(rows: Rows, dialog_id: str) -> PalaverError:
    """Give the error for a dialog that is not there: erased, or never there."""
    found = gone(rows, "dialog", dialog_id)
    return UnknownDialog(dialog_id) if found is None else found.error("dialog", dialog_id)


def unknown_session(rows: Rows, session_id: str) -> PalaverError:
    """Give the error for a session that is not there: erased, or never there."""
    found = gone(rows, "session", session_id)
    return UnknownSession(session_id) if found is None else found.error("session", session_id)


def _session_no(rows: Rows, session_id: SessionId) -> int:
    found = rows.all("session_no", session_id)
    if not found:
        raise unknown_session(rows, session_id)
    return int(found[0][0])


class _OfRows(ABC):
    """What can read all that names payloads."""

    _before_all: ClassVar[tuple[int, ...]]
    """What is less than the key of every body."""

    @abstractmethod
    def _rows(self, *, write: bool = False) -> AbstractContextManager[Rows]:
        """Lend a connection: for reading, or for one write transaction."""

    def _take_named(
        self, left: set[BlobId], bodies: Iterable[bytes], known: Collection[str], *, proven: bool
    ) -> set[str]:
        """Take what bodies and sources name out of some payloads, and give the lists of pieces that were read; known ones are not."""
        for body in bodies if left else ():
            left -= named_in(body)
            if not left:
                break
        read: set[str] = set()
        with self._rows() as rows:
            for raw, index in rows.all("sources_naming") if left else ():
                left -= {raw, index}
                if raw is None or raw in known or raw in read:
                    continue
                read.add(raw)
                for (listing,) in rows.all("blob_get", bytes.fromhex(raw)):
                    left -= listed(raw, bytes(listing), proven=proven)
        return read

    def _naming(self, after: tuple[object, ...] = ()) -> Iterator[bytes]:
        """Give the bodies that may name payloads, behind a key or all of them; read a page of all entries at a time."""
        after = after or self._before_all
        while True:
            with self._rows() as rows:
                page = rows.all("bodies_naming", *after, _PAGE_BODIES)
            if not page:
                return
            yield from (bytes(row[0]) for row in page if row[0] is not None)
            after = page[-1][1:]


class ErasingFace(_OfRows):
    """The part of a store that tells what was erased, and keeps what an erasure has to reach."""

    def gone(self, thing: Thing, name: str) -> Gone | None:
        """Tell whether something was erased."""
        with self._rows() as rows:
            return gone(rows, thing, name)

    def all_gone(self) -> Iterator[tuple[Thing, str, Gone]]:
        """Give all that is remembered to be erased."""
        with self._rows() as rows:
            found = rows.all("gone_all")
        return ((thing, name, Gone(at, receipt)) for thing, name, at, receipt in found)

    def receipts(self) -> tuple[KeptReceipt, ...]:
        """Give all receipts, the oldest first."""
        with self._rows() as rows:
            return tuple(KeptReceipt(*row) for row in rows.all("receipts_all"))

    def note_file(self, session_id: SessionId, path: str) -> None:
        """Remember that a session was written to a file."""
        with self._rows(write=True) as rows:
            rows.all("file_add", _session_no(rows, session_id), path)

    def files(self, session_id: SessionId) -> tuple[str, ...]:
        """Give the files that a session was written to."""
        with self._rows() as rows:
            return tuple(path for (path,) in rows.all("files_of", _session_no(rows, session_id)))

    @abstractmethod
    def _aged(self, rows: Rows, after: bytes) -> list[tuple[Any, ...]]:
        """Give a page of payloads after the one of a digest: digest, length, and how long ago somebody put it, in seconds."""

    def strays(self) -> Iterator[Stray]:
        """Give the payloads that nothing names."""
        after = b""
        while True:
            with self._rows() as rows:
                page = self._aged(rows, after)
            if not page:
                return
            found = [Stray(BlobId(bytes(digest).hex()), size, age) for digest, size, age in page]
            left = {one.blob_id for one in found}
            self._take_named(left, self._naming(), (), proven=True)
            yield from (one for one in found if one.blob_id in left)
            after = bytes(page[-1][0])

    def unnamed(self, blob_ids: Collection[BlobId], older_than: float) -> Unnamed:
        """Give those payloads that nothing names and that nobody has put for so many seconds."""
        with self._rows() as rows:
            (place,) = rows.all("written_upto")
            left = rows.older(blob_ids, older_than)
        lists = self._take_named(left, self._naming(), (), proven=True)
        return Unnamed(frozenset(left), Mark(place, frozenset(lists)))


# --- inside an erasure ------------------------------------------------------------------------------------------------------------


class RowEraser(_OfRows):
    """What may be done inside an erasure; the block that it was made in keeps every other writer out."""

    @abstractmethod
    def _naming_since(self, place: object) -> Iterator[bytes]:
        """Give the bodies that were written behind a place and may name payloads; all of them where nobody can tell."""

    def clear_dialog(self, dialog_id: DialogId) -> None:
        """Empty a node's metadata."""
        with self._rows(write=True) as rows:
            if not rows.all("dialog_end", dialog_id):
                raise unknown_dialog(rows, dialog_id)
            rows.all("dialog_clear", dialog_id)

    def remove_session(self, session_id: SessionId) -> None:
        """Delete a session."""
        with self._rows(write=True) as rows:
            number = _session_no(rows, session_id)
            for name in ("sources_remove", "files_remove", "session_remove"):
                rows.all(name, number)

    def remove_leases(self, ids: Collection[str]) -> None:
        """Delete leases whose name holds an id."""
        with self._rows(write=True) as rows:
            names = [name for (name,) in rows.all("lease_names") if any(one in name for one in ids)]
            rows.each("lease_remove", ((name,) for name in names))

    def unnamed(
        self, blob_ids: Collection[BlobId], older_than: float | None = None, since: Mark | None = None
    ) -> frozenset[BlobId]:
        """Read all that names payloads, or what of it was written since a mark, and give those of them that nothing names."""
        left = set(blob_ids)
        if older_than is not None and left:
            with self._rows() as rows:
                left = rows.older(left, older_than)
        bodies = self._naming() if since is None else self._naming_since(since.place)
        self._take_named(left, bodies, () if since is None else since.lists, proven=older_than is not None)
        return frozenset(left)

    def remove_blobs(self, blob_ids: Collection[BlobId]) -> None:
        """Delete payloads."""
        with self._rows(write=True) as rows:
            rows.each("blob_remove", ((bytes.fromhex(one),) for one in blob_ids))

    def remember(self, things: Collection[tuple[Thing, str]], gone: Gone) -> None:
        """Remember what was erased."""
        with self._rows(write=True) as rows:
            rows.each("gone_add", ((thing, name, *gone) for thing, name in things))

    def keep_receipt(self, receipt: KeptReceipt) -> None:
        """Write a receipt."""
        with self._rows(write=True) as rows:
            rows.all("receipt_put", *receipt)
