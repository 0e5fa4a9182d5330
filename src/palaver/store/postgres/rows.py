"""A connection, for what the stores that keep rows do alike (`palaver.store.erasing_rows`)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager

from palaver.ids import BlobId
from palaver.store.postgres.connections import Connection, Connections, ask
from palaver.store.postgres.statements import Row, statements
from palaver.store.postgres.texts import given, held
from palaver.store.postgres.transactions import reading, writing

BEFORE_ALL = (-1, -1)
"""What is less than the key of every body."""


class PostgresRows:
    """Statements by their names; texts as they were given to us."""

    def __init__(self, connection: Connection) -> None:
        """Keep the connection."""
        self._connection = connection

    def all(self, name: str, *values: object) -> list[Row]:
        """Execute a statement and give all its rows."""
        cursor = ask(self._connection, name, _held(values))
        found = [] if cursor.description is None else cursor.fetchall()
        return [tuple(given(value) if isinstance(value, str) else value for value in row) for row in found]

    def each(self, name: str, values: Iterable[tuple[object, ...]]) -> None:
        """Execute a statement once for each of the values, without waiting for the answer to one before sending the next."""
        with self._connection.cursor() as cursor:
            cursor.executemany(statements()[name], map(_held, values))

    def older(self, blob_ids: Collection[BlobId], seconds: float) -> set[BlobId]:
        """Give those payloads that nobody has put for so many seconds, by the server's clock."""
        found = self.all("blobs_older", seconds, [bytes.fromhex(one) for one in blob_ids])
        return {BlobId(bytes(digest).hex()) for (digest,) in found}


def _held(values: tuple[object, ...]) -> tuple[object, ...]:
    return tuple(held(value) if isinstance(value, str) else value for value in values)


@contextmanager
def rows_of(pool: Connections, *, write: bool) -> Iterator[PostgresRows]:
    """Lend a connection: for reading, or for one write transaction."""
    with writing(pool) if write else reading(pool) as connection:
        yield PostgresRows(connection)
