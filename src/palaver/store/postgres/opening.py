"""Opening a store's schema: where it lies, what may be there, how it is made or upgraded, and how each connection is set up."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from time import monotonic, sleep
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import psycopg
from psycopg import ProgrammingError, sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import Conninfo, PGconn, Ping

from palaver.errors import InvalidInput, MissingFile, StoreBusy, StoreError
from palaver.ids import now
from palaver.plurals import counted
from palaver.store.postgres.faults import fault, unavailable
from palaver.store.postgres.partitions import MOST_PARTITIONS, in_parts
from palaver.store.protocol import Durability
from palaver.store.sql.database import Row
from palaver.store.sql.statements import KEPT, Migration, check_format, check_keys, migrations, require_kept

# --- addresses --------------------------------------------------------------------------------------------------------------------

SCHEMA = "palaver"
"""The schema of a store whose address names none."""

_SCHEMES = {"postgres", "postgresql"}
_SCHEMA_NAME = re.compile(r"(?!pg_)[a-z_][a-z0-9_]{0,62}\Z")  # PostgreSQL keeps pg_ for itself, and 63 bytes of a name


@dataclass(frozen=True, slots=True)
class Address:
    """Where a store lies.

    Attributes:
        url: As for `open_store`, with the password if there is one.
        conninfo: What libpq gets.
        schema: The schema.
        place: For people: without a password.
        prepared: Whether the server keeps the plans of statements that a connection repeats.
        partitions: How many partitions the tables that grow are made of; None for as many as they have.
    """

    url: str
    conninfo: str
    schema: str
    place: str
    prepared: bool
    partitions: int | None


def _why(url: str, error: Exception) -> str:
    """Say what is wrong with an address, unless that could show a password."""
    return "it cannot be read" if "@" in url else str(error)


def address(url: str) -> Address:
    """Read an address: `postgresql://user@host:port/database?schema=name&prepared=yes&partitions=16`, with every other parameter of libpq.

    Source: https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING-URIS

    Raises:
        InvalidInput: It is not such an address, its schema is not a plain name, `prepared` is neither yes nor no, or `partitions` is no number
            from 1 to 256.
    """
    _check_parameters(key for key, _ in parse_qsl(url.partition("?")[2], keep_blank_values=True))
    try:
        parts = urlsplit(url)
        asked = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
        query = urlencode([(key, value) for key, value in asked if key not in _OURS], safe="/", quote_via=quote)
        conninfo = url.partition("?")[0] + (f"?{query}" if query else "")
        known = conninfo_to_dict(conninfo)
    except (ValueError, ProgrammingError) as error:
        raise InvalidInput(f"This is not the address of a PostgreSQL database: {_why(url, error)}.") from None
    ours = {"schema": SCHEMA, "prepared": "no", "partitions": ""} | {key: value for key, value in asked if key in _OURS}
    schema, prepared, partitions = ours["schema"], ours["prepared"], ours["partitions"]
    if prepared not in {"yes", "no"}:
        raise InvalidInput(f"prepared={prepared} is not known.", hint="Give yes or no.")
    if partitions and not (re.fullmatch("[0-9]{1,3}", partitions) and 1 <= int(partitions) <= MOST_PARTITIONS):
        raise InvalidInput(f"partitions={partitions} is not known.", hint=f"Give a number from 1 to {MOST_PARTITIONS}.")
    if parts.scheme not in _SCHEMES or _SCHEMA_NAME.match(schema) is None:
        raise InvalidInput(
            f"{schema!r} cannot be the schema of a store.", hint="Give letters, digits and underscores, lower case."
        )
    where = known.get("host") or known.get("hostaddr") or "the local socket"
    place = (
        f"PostgreSQL database {known.get('dbname') or known.get('user') or 'of this user'} at {where}, schema {schema}"
    )
    joint = "&" if urlsplit(conninfo).query else "?"
    more = "&prepared=yes" if prepared == "yes" else ""
    more += f"&partitions={partitions}" if partitions else ""
    return Address(
        f"{conninfo}{joint}schema={schema}{more}",
        conninfo,
        schema,
        place,
        prepared == "yes",
        int(partitions) if partitions else None,
    )


def _check_parameters(names: Iterable[str]) -> None:
    """Refuse a parameter that neither libpq nor this store knows.

    Raises:
        InvalidInput: There is one.
    """
    known = {option.keyword.decode() for option in Conninfo.get_defaults()} | _OURS | {"ssl"}
    for name in names:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"Did you mean {close[0]!r}?" if close else "PostgreSQL's documentation lists those of libpq."
            raise InvalidInput(f"The address of a PostgreSQL database has no parameter {name!r}.", hint=hint)


_OURS = frozenset({"schema", "prepared", "partitions"})
"""The parameters of an address that libpq does not know."""

_REPEATED_STATEMENTS = 16  # in each partition

_REPEATED = 3
"""How often a connection executes a statement before the server is asked to keep its plan."""


# --- connections --------------------------------------------------------------------------------------------------------------------

_RETRY_SECONDS = 0.05
_MARK, _ENCRYPTED = "palaver store", "palaver store, encrypted"

STATEMENT_SECONDS = 60.0
"""How long a single statement of a transaction may take; none of a sound store comes near."""

_ABANDONED_SECONDS = 300.0
"""How long the server waits for the next statement of a transaction before it closes the connection and frees its locks."""

# A connection whose other side is gone is noticed within about 25 seconds; what an address says itself wins.
_PARAMETERS: dict[str, str | int] = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "client_encoding": "UTF8",
    "application_name": "palaver",
}

Connection = psycopg.Connection[Row]


@cache
def formats() -> tuple[Migration, ...]:
    """Return the migrations, oldest first."""
    return migrations("palaver.store.postgres")


def newest_format() -> int:
    """Return the format that this palaver writes."""
    return formats()[-1].version


class PostgresOpener:
    """How the connections of one store are opened.

    A connection has no settings of its own: each transaction sets what it needs for itself, and statements name the schema. So a pooler that
    lends another connection for every transaction can be between the store and its server.

    Attributes:
        where: The address.
        wait: How long to wait for a lock, and for a server that went away, in seconds.
        writable: False to refuse every write.
        encrypted: Whether there are keys for it.
        settings: What a transaction that writes sets, by name.
        partitions: How many partitions the tables that grow have; 1 for plain tables.
    """

    def __init__(
        self, where: Address, durability: Durability, wait: float, *, writable: bool, encrypted: bool = False
    ) -> None:
        self.where = where
        self.wait = wait
        self.writable = writable
        self.encrypted = encrypted
        self.partitions = 1
        self.settings = {
            "lock_timeout": f"{wait * 1000:.0f}",
            "statement_timeout": f"{STATEMENT_SECONDS * 1000:.0f}",
            "idle_in_transaction_session_timeout": f"{_ABANDONED_SECONDS * 1000:.0f}",
        }
        if durability is Durability.NORMAL:
            self.settings["synchronous_commit"] = "off"
        self._durability = durability
        self._reached = False
        self._conninfo = make_conninfo(
            where.conninfo, **{key: value for key, value in _PARAMETERS.items() if f"{key}=" not in where.conninfo}
        )

    def connect(self) -> Connection:
        """Open a connection; wait for a server that starts, or that was there before."""
        deadline = monotonic() + self.wait
        while True:
            try:
                made: Connection = psycopg.Connection.connect(
                    self._conninfo, autocommit=True, prepare_threshold=_REPEATED if self.where.prepared else None
                )
            except psycopg.OperationalError as error:
                ping = Ping(PGconn.ping(self._conninfo.encode()))
                waits = ping is Ping.REJECT or (self._reached and ping is not Ping.NO_ATTEMPT)
                if not waits or monotonic() > deadline:
                    raise self._refused(error, ping) from error
                sleep(_RETRY_SECONDS)
            else:
                made.prepared_max = max(made.prepared_max or 0, _REPEATED_STATEMENTS * self.partitions)
                self._reached = True
                return made

    def _refused(self, error: psycopg.OperationalError, ping: Ping) -> StoreError:
        why = " ".join(str(error).split())
        if ping is not Ping.OK:
            return unavailable(self.where.place, why)
        if self._reached:  # libpq does not say which error it is, but the address was right
            return StoreBusy(
                f"The server of {self.where.place} let nobody in for more than {self.wait:g} seconds: {why}.",
                hint="Nothing was written. Try again.",
            )
        return StoreError(
            f"The server refused to open {self.where.place}: {why}.",
            hint="Check the user, the password, the database, which must exist, and how many connections the server allows.",
        )

    def prepare(self, *, create: bool) -> None:
        """Make the schema if it is to be made, look at what is there, and bring it to the newest format.

        Raises:
            MissingFile: There is no such schema, or it is empty, and `create` is False.
            InvalidInput: What is there is not a store, or the server cannot keep one; it was not touched.
            StoreError: A later palaver wrote it, or it cannot be written.
        """
        with self._opened() as connection:
            self._check_server(connection)
            version = self._format(connection)
            if not version and not (create and self.writable):
                raise MissingFile(self.where.place, what="store")
            if check_format(self.where.place, version or 0, newest_format(), writable=self.writable):
                self._upgrade(connection)
            self.partitions = self._partitions(connection)
            if self.where.partitions not in {None, self.partitions}:
                raise InvalidInput(
                    f"{self.where.place} has {counted(self.partitions, 'partition')}, not {self.where.partitions}.",
                    hint="Their number is chosen when a store is made. Leave partitions= out, or copy the store into a new one.",
                )

    def _partitions(self, connection: Connection) -> int:
        query = "SELECT count(*) FROM pg_inherits WHERE inhparent = to_regclass(%s)"
        row = connection.execute(query, (f"{self.where.schema}.entries",)).fetchone()
        return max(1, int(row[0])) if row else 1

    @contextmanager
    def _opened(self) -> Iterator[Connection]:
        connection = self.connect()
        try:
            yield connection
        except psycopg.Error as error:
            raise fault(self.where.place, self.wait, error, broken=connection.broken) from error
        finally:
            connection.close()

    def _check_server(self, connection: Connection) -> None:
        """Refuse a server that cannot keep what the store promises."""
        place = self.where.place
        names = ("server_encoding", "fsync", "synchronous_commit")
        row = connection.execute(f"SELECT {', '.join(f'current_setting({name!r})' for name in names)}").fetchone()
        encoding, fsync, commit = row or ("", "", "")
        if encoding != "UTF8":
            raise InvalidInput(f"{place} keeps texts in {encoding}.", hint="Make a database with the encoding UTF8.")
        if self._durability is Durability.FULL and fsync != "on":
            raise InvalidInput(
                f"The server of {place} never flushes its disk (fsync is {fsync}): it cannot promise full durability.",
                hint="Switch fsync on, or ask for the durability normal.",
            )
        if self._durability is Durability.FULL and commit == "off":  # more than on (remote_apply) is not lowered
            self.settings["synchronous_commit"] = "on"

    def _format(self, connection: Connection) -> int | None:
        """Return the format of what is there: 0 for an empty schema, None when there is no schema."""
        row = connection.execute(
            "SELECT (SELECT count(*) FROM pg_class WHERE relnamespace = n.oid),"
            " obj_description(to_regclass(quote_ident(n.nspname) || '.migrations'), 'pg_class')"
            " FROM pg_namespace AS n WHERE n.nspname = %s",
            (self.where.schema,),
        ).fetchone()
        if row is None:
            return None
        tables, mark = row
        if mark not in {_MARK, _ENCRYPTED}:
            if tables:
                raise InvalidInput(
                    f"{self.where.place} holds {tables} tables and indexes of another program.",
                    hint="It was not touched. Name another schema: postgresql://…?schema=name.",
                )
            return 0
        check_keys(self.where.place, encrypted=mark == _ENCRYPTED, keys=self.encrypted)
        migrated = sql.Identifier(self.where.schema, "migrations")
        newest = connection.execute(sql.SQL("SELECT max(version) FROM {}").format(migrated)).fetchone()
        return int(newest[0]) if newest and newest[0] is not None else 0

    def _upgrade(self, connection: Connection) -> None:
        """Do all migrations that are missing and record them, in one transaction, unless another process was faster."""
        schema = sql.Identifier(self.where.schema)
        with connection.transaction():
            connection.execute("SET LOCAL synchronous_commit TO on")
            connection.execute(sql.SQL("SET LOCAL search_path TO {}, pg_temp").format(schema))
            connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (f"palaver:{self.where.schema}",))
            connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(schema))
            done = self._format(connection) or 0
            parts = self._partitions(connection) if done else self.where.partitions or 1
            for migration in formats():
                if migration.version > done:
                    _migrate(connection, migration, parts)
            if self.encrypted:
                connection.execute(sql.SQL("COMMENT ON TABLE migrations IS {}").format(_ENCRYPTED))


def _migrate(connection: Connection, migration: Migration, parts: int) -> None:
    """Do one migration and record it."""
    before = _counts(connection)
    connection.execute(in_parts(migration.sql, parts) if parts > 1 else migration.sql)
    require_kept(migration, before, _counts(connection))
    connection.execute(
        "INSERT INTO migrations VALUES (%s, %s, %s, %s)", (migration.version, migration.name, migration.sha256, now())
    )


def _counts(connection: Connection) -> dict[str, int]:
    """Count the rows of each table whose content cannot be derived again."""
    counts: dict[str, int] = {}
    for name in KEPT:
        there = connection.execute("SELECT to_regclass(%s) IS NOT NULL", (name,)).fetchone()
        if there and there[0]:
            row = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(name))).fetchone()
            counts[name] = int(row[0]) if row else 0
    return counts
