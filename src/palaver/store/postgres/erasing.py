"""Erasing, as rows; and taking what was deleted out of the server's files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import ClassVar

import psycopg

from palaver.errors import StoreBusy, UnknownHandle
from palaver.ids import DialogId
from palaver.log import Handle
from palaver.store.erasing import Placed, retotalled
from palaver.store.erasing_rows import RowEraser
from palaver.store.postgres import activity, entries
from palaver.store.postgres.connections import Connection, Connections, ask
from palaver.store.postgres.rows import BEFORE_ALL, PostgresRows, rows_of
from palaver.store.postgres.statements import statements
from palaver.store.postgres.texts import held
from palaver.store.postgres.transactions import reading, refuse_if_read_only, together, writing

_XIDS = 1 << 32  # a row knows its transaction by 32 bits (https://www.postgresql.org/docs/current/transaction-id.html)
_PAGE_SINCE = 500
_SCRUBS = {
    (True, False): "rewrite",
    (True, True): "rewrite_payloads",
    (False, False): "vacuum",
    (False, True): "vacuum_payloads",
}
"""The statement of a scrub, by whether it is thorough and whether nothing but payloads was deleted."""


@contextmanager
def erasing(pool: Connections) -> Iterator[PostgresEraser]:
    """Make one transaction of an erasure, with every other writer waiting for its end."""
    with together(pool, alone=True):
        yield PostgresEraser(pool)


class PostgresEraser(RowEraser):
    """What may be done inside an erasure; the locks of the block keep every other writer out."""

    _before_all: ClassVar[tuple[int, ...]] = BEFORE_ALL

    def __init__(self, pool: Connections) -> None:
        self._pool = pool

    def _rows(self, *, write: bool = False) -> AbstractContextManager[PostgresRows]:
        return rows_of(self._pool, write=write)

    def _naming_since(self, place: object) -> Iterator[bytes]:
        """Look at every row, but only at the body of one that a transaction has written since: the rows say which."""
        if not isinstance(place, tuple):
            yield from self._naming()
            return
        with reading(self._pool) as connection, connection.cursor(name="naming") as cursor:
            cursor.itersize = _PAGE_SINCE
            cursor.execute(statements()["bodies_naming_since"], (str(place[0] % _XIDS),), binary=True)
            yield from (bytes(body) for (body,) in cursor)

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

    def remove_dialogs(self, dialog_ids: Collection[DialogId]) -> None:
        """Delete dialogs."""
        with writing(self._pool) as connection:
            for dialog_id in dialog_ids:
                dialog_no, _length = entries.end(connection, dialog_id)
                ask(connection, "dialog_empty", {"dialog_no": dialog_no})
                with activity.without(connection, dialog_no):
                    ask(connection, "dialog_remove", (dialog_no,))


def scrub(pool: Connections, *, thorough: bool, payloads: bool) -> tuple[str, ...]:
    """Write the tables anew, so that the server's files hold no row that was deleted; or only let its room be used again.

    `VACUUM` alone leaves the bytes of a dead row in its page until something else is written there; only `VACUUM FULL` writes the tables anew
    (https://www.postgresql.org/docs/current/sql-vacuum.html). It waits for every reader, and needs as much room as the tables. The old files
    are cut to nothing at once and removed at the next checkpoint, which is asked for; whoever may not ask waits for the server's own.
    """
    refuse_if_read_only(pool)
    connection = pool.borrow()
    try:
        connection.command("SET statement_timeout = 0")
        connection.execute(statements()[_SCRUBS[thorough, payloads]], prepare=False)
        with suppress(psycopg.errors.InsufficientPrivilege):
            connection.command("CHECKPOINT")
    except BaseException as error:  # an interrupt, too, gives the connection back
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
