"""The store in PostgreSQL as the laws want it: a schema of its own for each test, looked at through a connection of our own."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import LiteralString

import psycopg

from palaver.ids import DialogId
from palaver.store import Durability, Store
from palaver.store.postgres import PostgresStore
from palaver.store.postgres.address import address
from palaver.testing.store_laws import Backend
from tests.postgres import Server
from tests.store.backends import between_pages


def connected(url: str) -> psycopg.Connection[tuple[object, ...]]:
    """Connect to a store's schema behind its back."""
    where = address(url)
    return psycopg.connect(where.conninfo, autocommit=True, options=f"-csearch_path={where.schema}")


_EMPTY = """
    DELETE FROM files; DELETE FROM gone; DELETE FROM receipts;
    DELETE FROM leases; DELETE FROM followers; DELETE FROM tokens; DELETE FROM texts; DELETE FROM indexed; DELETE FROM sources;
    DELETE FROM entries; DELETE FROM dialogs; DELETE FROM sessions; DELETE FROM blobs;
"""


def emptied(server: Server) -> str:
    """Give the address of an empty store: always the same schema of a server, for making one takes a tenth of a second."""
    url = server.used_again.get("laws")
    if url is None:
        url = server.used_again["laws"] = server.url()
        PostgresStore(url).close()
    with connected(url) as connection:
        connection.execute(_EMPTY)
    connection.close()
    return url


class PostgresBackend(Backend):
    """A store in one schema of a server."""

    def __init__(self, server: Server, durability: Durability = Durability.FULL) -> None:
        self.url = emptied(server)
        self.durability = durability

    def open(self) -> Store:
        """Open the schema."""
        return PostgresStore(self.url, self.durability)

    def _do(self, command: LiteralString, dialog_id: DialogId, seq: int, *values: object) -> bytes:
        place: LiteralString = "dialog_no = (SELECT dialog_no FROM dialogs WHERE dialog_id = %s) AND seq = %s"
        with connected(self.url) as connection:
            cursor = connection.execute(f"{command} WHERE {place}", (*values, dialog_id, seq))
            row = cursor.fetchone() if cursor.description else None
        connection.close()
        return row[0] if row is not None and isinstance(row[0], bytes) else b""

    def stored(self, dialog_id: DialogId, seq: int) -> bytes:
        """Read a body as it lies there."""
        return self._do("SELECT body FROM entries", dialog_id, seq)

    def damage(self, dialog_id: DialogId, seq: int) -> None:
        """Change its last byte."""
        body = self.stored(dialog_id, seq)
        self._do("UPDATE entries SET body = %s", dialog_id, seq, body[:-1] + bytes([body[-1] ^ 1]))

    def lose(self, dialog_id: DialogId, seq: int) -> None:
        """Take it away."""
        self._do("UPDATE entries SET body = NULL", dialog_id, seq)

    def age_payloads(self, seconds: float) -> None:
        """Turn their clocks back."""
        with connected(self.url) as connection:
            connection.execute("UPDATE blobs SET put_at = put_at - make_interval(secs => %s)", (seconds,))
        connection.close()

    def between(self, store: Store, act: Callable[[], None]) -> AbstractContextManager[None]:
        """Act behind each page that is read."""
        return between_pages(store, act)
