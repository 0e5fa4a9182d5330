"""Erasing, as rows; and taking what was deleted out of the file."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from palaver.errors import StoreBusy, UnknownHandle
from palaver.ids import BlobId, DialogId, SessionId, now
from palaver.log import Handle
from palaver.store.erasing import Gone, KeptReceipt, Placed, Stray, Thing, listed, named_in, retotalled
from palaver.store.sqlite import activity, entries
from palaver.store.sqlite.connections import Connections, reading, together, writing
from palaver.store.sqlite.entries import entry_id
from palaver.store.sqlite.gone import unknown_session
from palaver.store.sqlite.statements import Row, statements

_MOST = 1 << 32
_PAGE_BLOBS = 50_000  # ids of payloads that are held in memory at a time
_PAGE_BODIES = 64
_IN_MEMORY = 64 << 20  # a larger file is written anew through a temporary one, which holds only what stays


def all_gone(pool: Connections) -> Iterator[tuple[Thing, str, Gone]]:
    """Read all that is remembered."""
    with reading(pool) as connection:
        rows: list[Row] = connection.execute(statements()["gone_all"]).fetchall()
    return ((thing, name, Gone(at, receipt)) for thing, name, at, receipt in rows)


def receipts(pool: Connections) -> tuple[KeptReceipt, ...]:
    """Read all receipts."""
    with reading(pool) as connection:
        return tuple(KeptReceipt(*row) for row in connection.execute(statements()["receipts_all"]))


@contextmanager
def erasing(pool: Connections) -> Iterator[SqliteEraser]:
    """Make one transaction of an erasure."""
    with together(pool):
        yield SqliteEraser(pool)


class SqliteEraser:
    """What may be done inside an erasure; the write lock of the block keeps every other writer out."""

    def __init__(self, pool: Connections) -> None:
        self._pool = pool

    def put_in_place(self, dialog_id: DialogId, placed: Sequence[Placed]) -> None:
        """Overwrite entries, and set the sizes of all that follow."""
        if not placed:
            return
        sql = statements()
        with writing(self._pool) as connection:
            dialog_no, length = entries.end(connection, dialog_id)
            wrong = next((one.seq for one in placed if not 0 <= one.seq < length), None)
            if wrong is not None:
                raise UnknownHandle(str(Handle(dialog_id, wrong)))
            first = min(one.seq for one in placed)
            before = entries.one_header(connection, dialog_id, first - 1).total if first else 0
            overwritten = {one.seq for one in placed}
            for one in placed:
                place = entry_id(dialog_no, one.seq)
                connection.execute(sql["body_restore"], (one.body, place))
                connection.execute(sql["text_remove"], (place,))
                connection.execute(sql["tokens_remove"], (place,))
            rows = connection.execute(sql["headers_up"], (entry_id(dialog_no, first), entry_id(dialog_no, length), -1))
            old = [entries.header(row) for row in rows.fetchall()]
            for was, made in zip(old, retotalled(old, placed, before), strict=True):
                if made != was or made.seq in overwritten:
                    place = entry_id(dialog_no, made.seq)
                    connection.execute(sql["header_set"], (made.kind, made.size, made.total, made.digest, place))

    def clear_dialog(self, dialog_id: DialogId) -> None:
        """Empty a node's metadata."""
        with writing(self._pool) as connection:
            entries.end(connection, dialog_id)
            connection.execute(statements()["dialog_clear"], (dialog_id,))

    def remove_dialogs(self, dialog_ids: Collection[DialogId]) -> None:
        """Delete dialogs."""
        sql = statements()
        with writing(self._pool) as connection:
            for dialog_id in dialog_ids:
                dialog_no, _length = entries.end(connection, dialog_id)
                within = (entry_id(dialog_no, 0), entry_id(dialog_no, _MOST))
                for (place,) in connection.execute(sql["texts_within"], within).fetchall():
                    connection.execute(sql["tokens_remove"], (place,))
                    connection.execute(sql["text_remove"], (place,))
                connection.execute(sql["bodies_remove"], within)
                connection.execute(sql["headers_remove"], within)
                connection.execute(sql["indexed_remove"], (dialog_no,))
                with activity.without(connection, dialog_no):
                    connection.execute(sql["dialog_remove"], (dialog_no,))

    def remove_session(self, session_id: SessionId) -> None:
        """Delete a session."""
        sql = statements()
        with writing(self._pool) as connection:
            number = connection.execute(sql["session_no"], (session_id,)).get
            if number is None:
                raise unknown_session(connection, session_id)
            connection.execute(sql["sources_remove"], (number,))
            connection.execute(sql["files_remove"], (number,))
            connection.execute(sql["session_remove"], (number,))

    def remove_leases(self, ids: Collection[str]) -> None:
        """Delete leases whose name holds an id."""
        sql = statements()
        with writing(self._pool) as connection:
            names = [row[0] for row in connection.execute(sql["lease_names"])]
            for name in names:
                if any(one in name for one in ids):
                    connection.execute(sql["lease_remove"], (name,))

    def unnamed(self, blob_ids: Collection[BlobId], older_than: float | None = None) -> frozenset[BlobId]:
        """Read all that names payloads, and give those of them that nothing names."""
        left = set(blob_ids)
        if older_than is not None:
            before = now() - older_than
            with reading(self._pool) as connection:
                times = {one: connection.execute(statements()["blob_time"], (bytes.fromhex(one),)).get for one in left}
            left = {one for one, at in times.items() if at is not None and at <= before}
        return frozenset(_without_named(self._pool, left, proven=older_than is not None))

    def remove_blobs(self, blob_ids: Collection[BlobId]) -> None:
        """Delete payloads."""
        with writing(self._pool) as connection:
            connection.executemany(statements()["blob_remove"], [(bytes.fromhex(one),) for one in blob_ids])

    def remember(self, things: Collection[tuple[Thing, str]], gone: Gone) -> None:
        """Remember what was erased."""
        with writing(self._pool) as connection:
            connection.executemany(statements()["gone_add"], [(thing, name, *gone) for thing, name in things])

    def keep_receipt(self, receipt: KeptReceipt) -> None:
        """Write a receipt."""
        with writing(self._pool) as connection:
            connection.execute(statements()["receipt_put"], receipt)


def strays(pool: Connections) -> Iterator[Stray]:
    """Read the payloads, and give those that nothing names."""
    after = b""
    while True:
        with reading(pool) as connection:
            page: list[Row] = connection.execute(statements()["blobs_with_times"], (after, _PAGE_BLOBS)).fetchall()
        if not page:
            return
        clock = now()
        found = [Stray(BlobId(digest.hex()), size, clock - at) for digest, size, at in page]
        left = _without_named(pool, {one.blob_id for one in found}, proven=True)
        yield from (one for one in found if one.blob_id in left)
        after = page[-1][0]


def _without_named(pool: Connections, left: set[BlobId], *, proven: bool) -> set[BlobId]:
    """Read all that names payloads, a page at a time, and give the payloads that are left over."""
    sql, after = statements(), -1
    while left:
        with reading(pool) as connection:
            page: list[Row] = connection.execute(sql["bodies_naming_after"], (after, _PAGE_BODIES)).fetchall()
        if not page:
            break
        for number, body in page:
            left -= named_in(body)
            after = number
    with reading(pool) as connection:
        sources: list[Row] = connection.execute(sql["sources_naming"]).fetchall() if left else []
        for raw, index in sources:
            left -= {raw, index}
            listing = None if raw is None else connection.execute(sql["blob_get"], (bytes.fromhex(raw),)).get
            if isinstance(listing, bytes):
                left -= listed(raw, listing, proven=proven)
    return left


def note_file(pool: Connections, session_id: SessionId, path: str) -> None:
    """Remember a file that a session was written to."""
    sql = statements()
    with writing(pool) as connection:
        number = connection.execute(sql["session_no"], (session_id,)).get
        if number is None:
            raise unknown_session(connection, session_id)
        connection.execute(sql["file_add"], (number, path))


def files(pool: Connections, session_id: SessionId) -> tuple[str, ...]:
    """Read the files that a session was written to."""
    sql = statements()
    with reading(pool) as connection:
        number = connection.execute(sql["session_no"], (session_id,)).get
        if number is None:
            raise unknown_session(connection, session_id)
        return tuple(row[0] for row in connection.execute(sql["files_of"], (number,)))


def scrub(pool: Connections, *, thorough: bool) -> tuple[str, ...]:
    """Merge the index, write the file anew, and empty the write-ahead log.

    Every connection of ours overwrites what it deletes (`secure_delete`), so the file is clean without being written anew, but for remnants
    that a page may keep of a row that was moved long ago. The log holds the old pages until it is carried over and cut to nothing, which a
    reader that began before the erasure prevents: then it is pending.
    """
    with writing(pool) as connection:
        connection.execute(statements()["tokens_optimize"])
    pending = _written_anew(pool) if thorough else ()
    with reading(pool) as connection:
        busy, _pages, _carried = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0]
    if busy:
        wait = "another process reads the store as it was before: its write-ahead log cannot be emptied yet"
        return (*pending, wait)
    return pending


def _written_anew(pool: Connections) -> tuple[str, ...]:
    """Write the file anew; what is pending when another writer does not let us."""
    connection = pool.borrow()
    try:
        pool.lock()
        try:
            large = connection.pragma("page_count") * connection.pragma("page_size") > _IN_MEMORY
            connection.execute(f"PRAGMA temp_store={'FILE' if large else 'MEMORY'}")
            connection.execute("VACUUM")
            connection.execute("PRAGMA temp_store=MEMORY")
        finally:
            pool.unlock()
    except BaseException as error:
        translated = pool.translated(error, connection)
        if isinstance(translated, StoreBusy):
            return ("another writer kept the store from being written anew",)
        if translated is not None:
            raise translated from error
        raise
    finally:
        pool.give_back(connection)
    return ()
