"""Erasing, as rows; and taking what was deleted out of the file."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import ClassVar

from palaver.errors import StoreBusy, UnknownHandle
from palaver.ids import DialogId
from palaver.log import Handle
from palaver.store.erasing import Placed, retotalled
from palaver.store.erasing_rows import RowEraser
from palaver.store.sqlite import activity, entries
from palaver.store.sqlite.connections import Connections, reading, together, writing
from palaver.store.sqlite.entries import entry_id
from palaver.store.sqlite.rows import BEFORE_ALL, SqliteRows, rows_of
from palaver.store.sqlite.statements import statements

_MOST = 1 << 32
_SHORT_SECONDS = 0.1
_IN_MEMORY = 64 << 20  # a larger file is written anew through a temporary one, which holds only what stays


@contextmanager
def erasing(pool: Connections) -> Iterator[SqliteEraser]:
    """Make one transaction of an erasure."""
    with together(pool):
        yield SqliteEraser(pool)


class SqliteEraser(RowEraser):
    """What may be done inside an erasure; the write lock of the block keeps every other writer out."""

    _before_all: ClassVar[tuple[int, ...]] = BEFORE_ALL

    def __init__(self, pool: Connections) -> None:
        self._pool = pool

    def _rows(self, *, write: bool = False) -> AbstractContextManager[SqliteRows]:
        return rows_of(self._pool, write=write)

    def _naming_since(self, place: object) -> Iterator[bytes]:
        """Bodies are numbered as they come; numbers are given again only behind bodies that were deleted, with their dialogs."""
        with self._rows() as rows:
            (now_upto,) = rows.all("written_upto")
        newest, *erased = place if isinstance(place, tuple) else (None,)
        return self._naming((newest,)) if erased == list(now_upto[1:]) else self._naming()

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


def scrub(pool: Connections, *, thorough: bool, payloads: bool) -> tuple[str, ...]:
    """Merge the index, write the file anew, and empty the write-ahead log.

    Every connection of ours overwrites what it deletes (`secure_delete`), so the file is clean without being written anew, but for remnants
    that a page may keep of a row that was moved long ago. The log holds the old pages until it is carried over and cut to nothing, which a
    reader that began before the erasure prevents: then it is pending. While it waits for such a reader nobody else writes; so it does not wait
    where only payloads were deleted and nobody asked for more.
    """
    if not payloads:
        with writing(pool) as connection:
            connection.execute(statements()["tokens_optimize"])
    pending = _written_anew(pool) if thorough else ()
    with reading(pool) as connection:
        patient = pool.wait if thorough or not payloads else _SHORT_SECONDS
        connection.set_busy_timeout(int(patient * 1000))
        try:
            busy, _pages, _carried = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0]
        finally:
            connection.set_busy_timeout(int(pool.wait * 1000))
    if busy and payloads and not thorough:
        return (
            "others use the store: what was removed lies in its write-ahead log until the last of them has closed it",
        )
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
    except BaseException as error:  # an interrupt, too, gives the connection back
        translated = pool.translated(error, connection)
        if isinstance(translated, StoreBusy):
            return ("another writer kept the store from being written anew",)
        if translated is not None:
            raise translated from error
        raise
    finally:
        pool.give_back(connection)
    return ()
