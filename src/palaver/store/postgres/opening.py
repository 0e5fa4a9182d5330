"""Opening a store's schema: what may be there, how it is made or upgraded, and how each connection is set up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic, sleep

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo
from psycopg.pq import PGconn, Ping

from palaver.errors import InvalidInput, MissingStore, StoreError, StoreReadOnly, StoreTooNew
from palaver.ids import now
from palaver.store.postgres.address import Address
from palaver.store.postgres.connections import Connection
from palaver.store.postgres.faults import NeverReached, fault, unavailable
from palaver.store.postgres.statements import migrations
from palaver.store.protocol import Durability
from palaver.store.statements import Migration, require_kept

_RETRY_SECONDS = 0.05
_OLDEST_SERVER = 130000

# A connection whose other side is gone is noticed within about 25 seconds; what an address says itself wins.
_KEEPALIVE = {"connect_timeout": 10, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}

_ABANDONED_SECONDS = 300.0
"""How long the server waits for the next statement inside a transaction before it gives the client up, with its locks."""

_MARK = "palaver store"


class Opener:
    """How the connections of one store are opened."""

    def __init__(
        self, where: Address, durability: Durability, *, wait: float, statement: float, writable: bool
    ) -> None:
        """Keep what every connection needs; nothing is opened yet.

        Args:
            where: The address.
            durability: `FULL` or `NORMAL`.
            wait: How long to wait for a lock, and for a server that went away, in seconds.
            statement: How long a statement may take, in seconds.
            writable: False to refuse every write.
        """
        self.where = where
        self.wait = wait
        self.writable = writable
        self._durability = durability
        self._conninfo = make_conninfo(
            where.conninfo, **{key: value for key, value in _KEEPALIVE.items() if f"{key}=" not in where.conninfo}
        )
        self._settings = {
            "search_path": f"{where.schema}, pg_temp",
            "lock_timeout": f"{wait * 1000:.0f}",
            "statement_timeout": f"{statement * 1000:.0f}",
            "idle_in_transaction_session_timeout": f"{_ABANDONED_SECONDS * 1000:.0f}",
            "default_transaction_isolation": "read committed",
            "default_transaction_read_only": "off" if writable else "on",
            "client_encoding": "UTF8",
            "application_name": "palaver",
            # Each of our statements looks at few rows. Where the planner fears more, both would cost many times what they could save.
            "jit": "off",
            "max_parallel_workers_per_gather": "0",
        }

    def connect(self, patient: bool) -> Connection:  # noqa: FBT001 - asked for by the pool only
        """Open a connection that is ready for use; when `patient`, wait for a server that is not there at the moment."""
        deadline = monotonic() + self.wait
        while True:
            try:
                return self._open()
            except psycopg.OperationalError as error:
                ping = Ping(PGconn.ping(self._conninfo.encode()))
                waits = ping is Ping.REJECT or (patient and ping is not Ping.NO_ATTEMPT)
                if not waits or monotonic() > deadline:
                    raise self._refused(error, ping) from error
            sleep(_RETRY_SECONDS)

    def _refused(self, error: psycopg.OperationalError, ping: Ping) -> StoreError:
        if ping is not Ping.OK:
            return unavailable(self.where.place, " ".join(str(error).split()), NeverReached)
        return StoreError(
            f"The server refused to open {self.where.place}: {' '.join(str(error).split())}.",
            hint="Look at the user, the password and the database, which must be there.",
        )

    def _open(self) -> Connection:
        connection = Connection.connect(self._conninfo, autocommit=True, prepare_threshold=0)
        try:
            self._set_up(connection)
        except BaseException:  # an interrupt, too, leaves no connection open
            connection.close()
            raise
        return connection

    def _set_up(self, connection: Connection) -> None:
        names, values = list(self._settings), list(self._settings.values())
        connection.execute(
            "SELECT set_config(name, value, false) FROM unnest(%s::text[], %s::text[]) AS wanted (name, value)",
            (names, values),
            prepare=False,
        )
        # A server may have been told to wait for more than its own disk (remote_apply): that is not taken back.
        connection.execute(
            "SELECT set_config('synchronous_commit', CASE WHEN %s THEN 'off' WHEN current_setting('synchronous_commit') = 'off' "
            "THEN 'on' ELSE current_setting('synchronous_commit') END, false)",
            (self._durability is Durability.NORMAL,),
            prepare=False,
        )

    @contextmanager
    def opened(self) -> Iterator[Connection]:
        """Lend a new connection, and close it afterwards; psycopg's errors in palaver's words."""
        connection = self.connect(False)  # noqa: FBT003 - not patient: nobody has seen this server yet
        try:
            yield connection
        except psycopg.Error as error:
            raise fault(self.where.place, self.wait, error, broken=connection.broken) from error
        finally:
            connection.close()


def prepare(opener: Opener, durability: Durability, *, create: bool) -> None:
    """Make the schema if it is to be made, look at what is there, and bring it to the newest format.

    Raises:
        MissingStore: There is no such schema, or nothing is in it, and nothing is to be made.
        InvalidInput: What is there is no store of ours, or the server cannot keep one; it was not touched.
        StoreTooNew: A later palaver wrote it; it was not touched.
        StoreReadOnly: It has an older format and may not be written.
    """
    with opener.opened() as connection:
        _check_server(connection, opener, durability)
        found = _format(connection, opener)
        if not found and not (create and opener.writable):
            raise MissingStore(opener.where.place)
        if (found or 0) < newest_format():
            _upgrade(connection, opener, found or 0)


def newest_format() -> int:
    """Give the format that this palaver writes."""
    return migrations()[-1].version


def _check_server(connection: Connection, opener: Opener, durability: Durability) -> None:
    """Refuse a server that cannot keep what we promise."""
    place = opener.where.place
    if connection.info.server_version < _OLDEST_SERVER:
        raise InvalidInput(
            f"{place} is served by PostgreSQL {connection.info.server_version // 10000}: 13 is the oldest."
        )
    row = connection.execute("SELECT current_setting('server_encoding'), current_setting('fsync')").fetchone()
    encoding, fsync = row or ("", "")
    if encoding != "UTF8":
        raise InvalidInput(f"{place} keeps texts in {encoding}.", hint="Make a database with the encoding UTF8.")
    if durability is Durability.FULL and fsync != "on":
        raise InvalidInput(
            f"The server of {place} never flushes its disk (fsync is {fsync}): it cannot promise full durability.",
            hint="Switch fsync on, or ask for the durability normal.",
        )


def _format(connection: Connection, opener: Opener) -> int | None:
    """Give the format of what is there: 0 for an empty schema, None when there is no schema."""
    schema, place = opener.where.schema, opener.where.place
    row = connection.execute(
        "SELECT n.oid, (SELECT count(*) FROM pg_class WHERE relnamespace = n.oid),"
        " obj_description(to_regclass(quote_ident(n.nspname) || '.migrations'), 'pg_class')"
        " FROM pg_namespace AS n WHERE n.nspname = %s",
        (schema,),
    ).fetchone()
    if row is None:
        return None
    _oid, tables, mark = row
    if mark != _MARK:
        if tables:
            raise InvalidInput(
                f"{place} holds no palaver store, but {tables} tables and indexes of another program.",
                hint="It was not touched. Name another schema: postgresql://…?schema=name.",
            )
        return 0
    newest = connection.execute("SELECT max(version) FROM migrations").fetchone()
    found = int(newest[0]) if newest and newest[0] is not None else 0
    if found > newest_format():
        raise StoreTooNew(found, newest_format())
    return found


def _upgrade(connection: Connection, opener: Opener, found: int) -> None:
    """Do all the migrations that are missing and record them, in one transaction, unless another process was faster."""
    if not opener.writable:
        raise StoreReadOnly(
            f"{opener.where.place} has format {found}; reading needs format {newest_format()}.",
            hint="Open it once for writing, which upgrades it.",
        )
    schema = opener.where.schema
    with connection.transaction():
        connection.execute("SET LOCAL synchronous_commit TO on")
        connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (f"palaver:{schema}",))
        if not _there(connection, schema):
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)), prepare=False)
        done = _format(connection, opener) or 0
        for migration in migrations():
            if migration.version > done:
                _migrate(connection, migration)


def _there(connection: Connection, schema: str) -> bool:
    return connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (schema,)).fetchone() is not None


def _migrate(connection: Connection, migration: Migration) -> None:
    """Do one migration and record it; what people put there is counted before and after, and must be the same."""
    before = _counts(connection)
    connection.execute(migration.sql, prepare=False)
    require_kept(migration, before, _counts(connection))
    connection.execute(
        "INSERT INTO migrations VALUES (%s, %s, %s, %s)",
        (migration.version, migration.name, migration.sha256, now()),
        prepare=False,
    )


def _counts(connection: Connection) -> dict[str, int]:
    """Count the rows of each table that holds what cannot be made again; of those that are there."""
    counts: dict[str, int] = {}
    for name in ("sessions", "dialogs", "entries", "blobs", "sources"):
        there = connection.execute("SELECT to_regclass(%s) IS NOT NULL", (name,), prepare=False).fetchone()
        if there and there[0]:
            counted = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(name))
            row = connection.execute(counted, prepare=False).fetchone()
            counts[name] = int(row[0]) if row else 0
    return counts
