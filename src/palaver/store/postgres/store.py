"""The durable store in one schema of a PostgreSQL database."""

from __future__ import annotations

from palaver.errors import InvalidInput
from palaver.store.postgres.address import address
from palaver.store.postgres.database import PostgresDatabase
from palaver.store.postgres.opening import Opener, formats
from palaver.store.protocol import Durability
from palaver.store.sql import SqlStore

WAIT_SECONDS = 5.0
"""How long a call waits for other writers, for a connection, or for a server that went away."""

CONNECTIONS = 16
"""The most connections of one store at once; a server allows 100 to all its clients unless it is told otherwise."""


class PostgresStore(SqlStore):
    """A store in one schema of a PostgreSQL database, for any number of threads, processes and machines.

    Durability `FULL` means that the server has flushed its log before a write returns; `NORMAL` does not wait for that: a write then survives
    the death of this process, and the newest may be missing after that of the server or its machine. A pooler in transaction mode may stand in
    between.

    The server keeps what was deleted in its files until `VACUUM FULL` has written them anew (`scrub`), and longer in its write-ahead log and
    backups.

    Attributes:
        place: The database, for people: without a password.
    """

    beyond: tuple[str, ...] = (
        "the server's write-ahead log, its archives, replicas and backups, which keep old rows until they are recycled",
        "the server's text log, where it is told to write statements into it with their values",
        "copies of the disk, and what a file system or a flash drive keeps of blocks that it wrote anew",
    )

    def __init__(
        self,
        url: str,
        durability: Durability = Durability.FULL,
        *,
        read_only: bool = False,
        create: bool = True,
        wait: float = WAIT_SECONDS,
        connections: int = CONNECTIONS,
    ) -> None:
        """Open the store, and make or upgrade it when needed. The database must exist; the schema is made.

        Args:
            url: `postgresql://user@host:port/database?schema=name`, with every parameter that libpq knows; the schema is `palaver` unless named.
            durability: `FULL` or `NORMAL`.
            read_only: True to refuse every write.
            create: False to raise when there is no such schema.
            wait: How long a call waits for other writers, for a connection, or for a server that went away, in seconds.
            connections: The most connections at once.

        Raises:
            MissingFile: There is no such schema, and `create` is False.
            InvalidInput: The address is malformed, the schema holds something else, or the server cannot keep what is asked for.
            StoreError: A later palaver wrote it (`too_new`), it cannot be written (`read_only`), or no server answers (`unavailable`).
        """
        if durability is Durability.MEMORY:
            raise InvalidInput("A database outlives the process: its durability is full or normal.")
        where = address(url)
        opener = Opener(where, durability, wait, writable=not read_only)
        opener.prepare(create=create)
        self.place = where.place
        super().__init__(PostgresDatabase(opener, connections), where.url, durability, formats())

    def __repr__(self) -> str:
        """Return the place, without a password."""
        return f"<PostgresStore: {self.place}>"
