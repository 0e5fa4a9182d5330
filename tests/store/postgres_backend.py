"""The store in PostgreSQL as the laws want it, looked at through a connection of our own."""

from typing import Any

import psycopg

from palaver.ids import DialogId
from palaver.store import Durability, Keys, Store
from palaver.store.postgres import PostgresStore
from palaver.store.postgres.opening import address
from palaver.testing.store_laws import Backend
from tests.postgres import Server

_TABLES = "files, gone, receipts, leases, texts, indexed, payload_refs, sources, entries, dialogs, activity, sessions, blobs, blob_bytes"
_EMPTY = "; ".join(f"DELETE FROM {table}" for table in _TABLES.split(", "))  # noqa: S608 - ours
_PLACE = "(session_no, dialog_no) = (SELECT session_no, dialog_no FROM dialogs WHERE dialog_id = %s) AND seq = %s"


def connected(url: str) -> psycopg.Connection[tuple[Any, ...]]:
    """Connect to a store's schema behind its back."""
    where = address(url)
    return psycopg.connect(where.conninfo, autocommit=True, options=f"-csearch_path={where.schema}")


def run(url: str, sql: str, *values: object) -> Any:  # noqa: ANN401 - whatever it returns
    """Execute a statement behind a store's back, and return its first value."""
    with connected(url) as connection:
        cursor = connection.execute(sql, values)
        row = cursor.fetchone() if cursor.description else None
    connection.close()
    return None if row is None else row[0]


def emptied(server: Server, more: str = "", keys: Keys | None = None) -> str:
    """Return the address of an empty store: always the same schema of a server and parameters, for making one takes a tenth of a second."""
    kind = f"laws{more} {keys is not None}"
    url = server.used_again.get(kind)
    if url is None:
        url = server.used_again[kind] = server.url() + more
        PostgresStore(url, keys=keys).close()
    run(url, _EMPTY)
    return url


class PostgresBackend(Backend):
    """A store in one schema of a server; `more` are further parameters of its address."""

    def __init__(
        self, server: Server, durability: Durability = Durability.FULL, more: str = "", keys: Keys | None = None
    ) -> None:
        self.url = emptied(server, more, keys)
        self.durability = durability

    def open(self) -> Store:
        """Open the schema."""
        return PostgresStore(self.url, self.durability)

    def stored(self, dialog_id: DialogId, seq: int) -> bytes:
        """Read a body."""
        return self.lying(dialog_id, seq)

    def lying(self, dialog_id: DialogId, seq: int) -> bytes:
        """Read a body as it lies there."""
        return bytes(run(self.url, f"SELECT body FROM entries WHERE {_PLACE}", dialog_id, seq) or b"")  # noqa: S608

    def damage(self, dialog_id: DialogId, seq: int) -> None:
        """Change its last byte."""
        body = self.lying(dialog_id, seq)
        changed = body[:-1] + bytes([body[-1] ^ 1])
        run(self.url, f"UPDATE entries SET body = %s WHERE {_PLACE}", changed, dialog_id, seq)  # noqa: S608

    def lose(self, dialog_id: DialogId, seq: int) -> None:
        """Delete it."""
        run(self.url, f"UPDATE entries SET body = NULL WHERE {_PLACE}", dialog_id, seq)  # noqa: S608

    def damage_header(self, dialog_id: DialogId, seq: int) -> None:
        """Change the kind in a header."""
        run(self.url, f"UPDATE entries SET kind = 'messagf' WHERE {_PLACE}", dialog_id, seq)  # noqa: S608

    def age_payloads(self, seconds: float) -> None:
        """Turn their clocks back."""
        run(self.url, "UPDATE blobs SET put_at = put_at - %s", seconds)
