"""Erasing, as rows; and taking what was deleted out of the server's files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress

import psycopg

from palaver.errors import StoreBusy, UnknownHandle
from palaver.ids import BlobId, DialogId, SessionId
from palaver.log import Handle
from palaver.store.erasing import Gone, KeptReceipt, Placed, Stray, Thing, listed, named_in, retotalled
from palaver.store.postgres import activity, entries
from palaver.store.postgres.connections import Connection, Connections, ask
from palaver.store.postgres.gone import unknown_session
from palaver.store.postgres.statements import Row, statements
from palaver.store.postgres.texts import given, held
from palaver.store.postgres.transactions import reading, refuse_if_read_only, together, writing

_PAGE_ROWS = 200
_PAGE_BLOBS = 50_000  # ids of payloads that are held in memory at a time
_MOST = (1 << 31) - 1


def all_gone(pool: Connections) -> Iterator[tuple[Thing, str, Gone]]:
    """Read all that is remembered."""
    with reading(pool) as connection:
        rows = ask(connection, "gone_all").fetchall()
    return ((thing, given(name), Gone(at, receipt)) for thing, name, at, receipt in rows)


def receipts(pool: Connections) -> tuple[KeptReceipt, ...]:
    """Read all receipts."""
    with reading(pool) as connection:
        return tuple(KeptReceipt(*map(given, row)) for row in ask(connection, "receipts_all"))


@contextmanager
def erasing(pool: Connections) -> Iterator[PostgresEraser]:
    """Make one transaction of an erasure, with every other writer waiting for its end."""
    refuse_if_read_only(pool)
    with together(pool):
        with writing(pool) as connection:
            ask(connection, "writers_out")
        yield PostgresEraser(pool)


class PostgresEraser:
    """What may be done inside an erasure; the locks of the block keep every other writer out."""

    def __init__(self, pool: Connections) -> None:
        self._pool = pool

    def put_in_place(self, dialog_id: DialogId, placed: Sequence[Placed]) -> None:
        """Overwrite entries, and set the sizes of all that follow."""
        if not placed:
            return
        with writing(self._pool) as connection:
            dialog_no, length = entries.end(connection, dialog_id)
            for one in sorted(placed):
                if not 0 <= one.seq < length:
                    raise UnknownHandle(str(Handle(dialog_id, one.seq)))
                self._put(connection, dialog_id, dialog_no, one)

    def _put(self, connection: Connection, dialog_id: DialogId, dialog_no: int, one: Placed) -> None:
        was = entries.one_header(connection, dialog_id, one.seq)
        (made,) = retotalled([was], [one], was.total - was.size)
        row = (held(made.kind), made.size, made.total, made.digest, one.body, dialog_no, one.seq)
        ask(connection, "entry_set", row)
        ask(connection, "totals_shift", (made.size - was.size, dialog_no, one.seq))
        for name in ("text_remove", "tokens_remove"):
            ask(connection, name, (dialog_no, one.seq))

    def clear_dialog(self, dialog_id: DialogId) -> None:
        """Empty a node's metadata."""
        with writing(self._pool) as connection:
            entries.end(connection, dialog_id)
            ask(connection, "dialog_clear", (held(dialog_id),))

    def remove_dialogs(self, dialog_ids: Collection[DialogId]) -> None:
        """Delete dialogs."""
        with writing(self._pool) as connection:
            for dialog_id in dialog_ids:
                dialog_no, _length = entries.end(connection, dialog_id)
                ask(connection, "dialog_empty", {"dialog_no": dialog_no})
                with activity.without(connection, dialog_no):
                    ask(connection, "dialog_remove", (dialog_no,))

    def remove_session(self, session_id: SessionId) -> None:
        """Delete a session."""
        with writing(self._pool) as connection:
            number = _number(connection, session_id)
            ask(connection, "session_empty", {"session_no": number})
            ask(connection, "session_remove", (number,))

    def remove_leases(self, ids: Collection[str]) -> None:
        """Delete leases whose name holds an id."""
        with writing(self._pool) as connection:
            for (name,) in ask(connection, "lease_names").fetchall():
                if any(one in given(name) for one in ids):
                    ask(connection, "lease_remove", (name,))

    def unnamed(self, blob_ids: Collection[BlobId], older_than: float | None = None) -> frozenset[BlobId]:
        """Read all that names payloads, and give those of them that nothing names."""
        left = set(blob_ids)
        with reading(self._pool) as connection:
            if older_than is not None and left:
                digests = [bytes.fromhex(one) for one in left]
                rows = ask(connection, "blobs_older", (older_than, digests)).fetchall()
                left = {BlobId(bytes(digest).hex()) for (digest,) in rows}
            return frozenset(_without_named(connection, left, proven=older_than is not None))

    def remove_blobs(self, blob_ids: Collection[BlobId]) -> None:
        """Delete payloads."""
        with writing(self._pool) as connection, connection.cursor() as cursor:
            cursor.executemany(statements()["blob_remove"], [(bytes.fromhex(one),) for one in blob_ids])

    def remember(self, things: Collection[tuple[Thing, str]], gone: Gone) -> None:
        """Remember what was erased."""
        with writing(self._pool) as connection, connection.cursor() as cursor:
            cursor.executemany(statements()["gone_add"], [(thing, held(name), *gone) for thing, name in things])

    def keep_receipt(self, receipt: KeptReceipt) -> None:
        """Write a receipt."""
        with writing(self._pool) as connection:
            ask(connection, "receipt_put", tuple(map(held, receipt)))


def strays(pool: Connections) -> Iterator[Stray]:
    """Read the payloads, and give those that nothing names."""
    after = b""
    while True:
        with reading(pool) as connection:
            page = ask(connection, "blobs_with_times", (after, _PAGE_BLOBS)).fetchall()
            found = [Stray(BlobId(bytes(digest).hex()), size, age) for digest, size, age in page]
            left = _without_named(connection, {one.blob_id for one in found}, proven=True)
        if not page:
            return
        yield from (one for one in found if one.blob_id in left)
        after = bytes(page[-1][0])


def _without_named(connection: Connection, left: set[BlobId], *, proven: bool) -> set[BlobId]:
    """Read all that names payloads, and give the payloads that are left over."""
    for body in _naming(connection) if left else ():
        left -= named_in(body)
    for raw, index in ask(connection, "sources_naming").fetchall() if left else ():
        left -= {raw, index}
        listing = None if raw is None else ask(connection, "blob_get", (bytes.fromhex(raw),)).fetchone()
        if listing is not None:
            left -= listed(raw, bytes(listing[0]), proven=proven)
    return left


def _naming(connection: Connection) -> Iterator[bytes]:
    """Give the bodies that name payloads, a page at a time."""
    after = (-1, _MOST)
    while page := ask(connection, "bodies_naming", (*after, _PAGE_ROWS)).fetchall():
        yield from (bytes(row[2]) for row in page)
        after = (page[-1][0], page[-1][1])


def _number(connection: Connection, session_id: SessionId) -> int:
    row: Row | None = ask(connection, "session_no", (held(session_id),)).fetchone()
    if row is None:
        raise unknown_session(connection, session_id)
    return int(row[0])


def note_file(pool: Connections, session_id: SessionId, path: str) -> None:
    """Remember a file that a session was written to."""
    with writing(pool) as connection:
        ask(connection, "file_add", (_number(connection, session_id), held(path)))


def files(pool: Connections, session_id: SessionId) -> tuple[str, ...]:
    """Read the files that a session was written to."""
    with reading(pool) as connection:
        return tuple(given(row[0]) for row in ask(connection, "files_of", (_number(connection, session_id),)))


def scrub(pool: Connections, *, thorough: bool) -> tuple[str, ...]:
    """Write the tables anew, so that the server's files hold no row that was deleted; or only let its room be used again.

    `VACUUM` alone leaves the bytes of a dead row in its page until something else is written there; only `VACUUM FULL` writes the tables anew
    (https://www.postgresql.org/docs/current/sql-vacuum.html). It waits for every reader, and needs as much room as the tables. The old files
    are cut to nothing at once and removed at the next checkpoint, which is asked for; whoever may not ask waits for the server's own.
    """
    refuse_if_read_only(pool)
    connection = pool.borrow()
    try:
        connection.command("SET statement_timeout = 0")
        connection.execute(statements()["rewrite" if thorough else "vacuum"], prepare=False)
        with suppress(psycopg.errors.InsufficientPrivilege):
            connection.command("CHECKPOINT")
    except BaseException as error:
        translated = pool.translated(error, connection)
        if isinstance(translated, StoreBusy):
            return ("others use the tables: they could not be written anew (VACUUM FULL)",)
        if translated is not None:
            raise translated from error
        raise
    finally:
        connection.close()  # it may take its time, which no other is to do
        pool.give_back(connection)
    return () if thorough else ("dead rows lie in the pages of the tables until these are written anew (VACUUM FULL)",)
