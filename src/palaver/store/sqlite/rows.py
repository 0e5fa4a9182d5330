"""A connection, for what the stores that keep rows do alike (`palaver.store.erasing_rows`)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager

import apsw

from palaver.ids import BlobId, now
from palaver.store.sqlite.connections import Connections, reading, writing
from palaver.store.sqlite.statements import Row, statements

BEFORE_ALL = (-1,)
"""What is less than the key of every body."""


class SqliteRows:
    """Statements by their names."""

    def __init__(self, connection: apsw.Connection) -> None:
        """Keep the connection."""
        self._connection = connection

    def all(self, name: str, *values: object) -> list[Row]:
        """Execute a statement and give all its rows."""
        found: list[Row] = self._connection.execute(statements()[name], values).fetchall()
        return found

    def each(self, name: str, values: Iterable[tuple[object, ...]]) -> None:
        """Execute a statement once for each of the values."""
        self._connection.executemany(statements()[name], values)

    def older(self, blob_ids: Collection[BlobId], seconds: float) -> set[BlobId]:
        """Give those payloads that nobody has put for so many seconds, by the machine's clock."""
        before = now() - seconds
        times = {one: self.all("blob_time", bytes.fromhex(one)) for one in blob_ids}
        return {one for one, found in times.items() if found and found[0][0] <= before}


@contextmanager
def rows_of(pool: Connections, *, write: bool) -> Iterator[SqliteRows]:
    """Lend a connection: for reading, or for one write transaction."""
    with writing(pool) if write else reading(pool) as connection:
        yield SqliteRows(connection)
