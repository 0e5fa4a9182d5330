"""The durable store in one schema of a PostgreSQL database: its connections, its transactions, and what only PostgreSQL can be asked."""

from __future__ import annotations

import os
import re
import select
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import cache, lru_cache
from types import MappingProxyType
from weakref import WeakKeyDictionary

import psycopg
from psycopg import RawCursor, sql
from psycopg.pq import TransactionStatus
from psycopg.waiting import Ready, Wait

from palaver.errors import InvalidInput, PalaverError, StoreBusy
from palaver.store import text
from palaver.store.keys import Keys
from palaver.store.postgres import partitions
from palaver.store.postgres.faults import fault, unknown_outcome
from palaver.store.postgres.opening import Connection, PostgresOpener, address, formats
from palaver.store.postgres.partitions import PARTED, part_of
from palaver.store.protocol import Durability
from palaver.store.sql.database import DatabaseOf, NotAsRequired, Row, Rows
from palaver.store.sql.statements import statements
from palaver.store.sql.store import SqlStore

_VALUE = re.compile(r"(?<!:):(\w+)")

_MOST_BYTES = 1_000_000
"""A tsvector has less than 1 MB of words (https://www.postgresql.org/docs/current/textsearch-limitations.html)."""

_UNKEPT = "#"
"""Stands for all tokens of a text with more; no token is so. Every search looks for it, and the text itself decides."""

_SAMPLE = 1000
"""So many of the newest texts tell how frequent the words of a query are."""

_MARGIN = 1.5
"""Of so many times as many texts as should have enough hits by the sample, the hits are looked up."""

_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
_SCRUBBED = "entries, texts, indexed, payload_refs, blobs, blob_bytes, sources, dialogs, files, activity, sessions, leases, receipts, gone"

_WORDS = {
    "headers": "entries",
    "body": "e.body",
    "by_kind": "",
    "for_update": "FOR NO KEY UPDATE",
    "for_erasure": "FOR UPDATE",
    "for_index": "FOR KEY SHARE SKIP LOCKED",
}


_PART = "/*partition*/"
"""Follows, in a statement, the name of a table that may have partitions. New rows find theirs by themselves."""


@cache
def _statements(schema: str) -> Mapping[str, str]:
    words = {"s": f"{schema}.", "entries": f"{schema}.entries AS e", **_WORDS}
    parted = re.compile(rf"(?<!INTO )\b({schema}\.(?:{'|'.join(PARTED)}))\b")
    named = statements("palaver.store.postgres", words)
    return MappingProxyType({name: parted.sub(rf"\1{_PART}", one) for name, one in named.items()})


@lru_cache(maxsize=8192)
def _numbered(sql: str) -> tuple[str, tuple[str, ...]]:
    """Return SQL with numbers for the names of its values, and those names; psycopg would remember 128 texts, and partitions multiply them."""
    names = tuple(dict.fromkeys(_VALUE.findall(sql)))
    return _VALUE.sub(lambda name: f"${names.index(name[1]) + 1}", sql), names


class PostgresRows(Rows):
    """A connection, for statements by their names; texts go in and come out as the rest of palaver has them."""

    connection: Connection

    def __init__(self, connection: Connection, schema: str, partitions: int) -> None:
        self.connection = connection
        self.sql = _statements(schema)
        self._partitions = partitions

    def ask(self, sql: str, values: Mapping[str, object]) -> Iterator[Row]:
        """Send SQL and return what waits for its rows; what is about one session goes to its partition."""
        if self._partitions > 1:
            sql = sql.replace(_PART, part_of(values, self._partitions))
        numbered, names = _numbered(sql)
        held = [to_stored(value) if isinstance(value, str) else value for value in map(values.__getitem__, names)]
        asking = RawCursor(self.connection).execute(numbered, held, binary=True)
        self.connection.wait(_flushed(self.connection))
        return map(_given, asking)

    def asked(self, statement: str, /, **values: object) -> Callable[[], Row | None]:
        """Send a statement, and return what waits for its first row."""
        rows = self.ask(self.sql[statement], values)
        return lambda: next(rows, None)

    def require(self, statement: str, /, **values: object) -> None:
        """Send a statement that fails unless another returns a row: dividing by its count needs no round trip to see what it returns."""
        self.ask(f"SELECT 1 / count(*) FROM ({self.sql[statement]}) AS required", values)  # noqa: S608 - of our own statements


def _flushed(connection: Connection) -> Generator[Wait, Ready | int, None]:
    """Send all of what was asked: a pipeline of psycopg sends as much as fits the socket, and may then wait for an answer to the rest."""
    while connection.pgconn.flush():
        if (yield Wait.RW) & Ready.R:
            connection.pgconn.consume_input()


# Texts from outside, as PostgreSQL can store them: it has every character of Unicode except U+0000. That is stored as U+001A and `0`, and U+001A,
# which ordinary texts do not contain, as U+001A and `1`. Every other text is stored as it is.

_ESCAPE = "\x1a"


def to_stored(text: str) -> str:
    """Return a text as it is stored."""
    if "\x00" in text or _ESCAPE in text:
        return text.replace(_ESCAPE, f"{_ESCAPE}1").replace("\x00", f"{_ESCAPE}0")
    return text


def from_stored(text: str) -> str:
    """Return a stored text as it was."""
    if _ESCAPE in text:
        return text.replace(f"{_ESCAPE}0", "\x00").replace(f"{_ESCAPE}1", _ESCAPE)
    return text


def _given(row: Row) -> Row:
    return tuple(from_stored(one) if isinstance(one, str) else one for one in row)


class PostgresDatabase(DatabaseOf[Connection]):
    """The connections of one schema.

    A transaction is sent as a pipeline: statements travel together up to the next one whose rows are needed. So an append, which needs none, is
    one journey.
    """

    def __init__(self, opener: PostgresOpener, most: int) -> None:
        self._opener = opener
        self._schema = opener.where.schema
        self._pipelines: WeakKeyDictionary[Connection, tuple[ExitStack, psycopg.Pipeline]] = WeakKeyDictionary()
        names = list(opener.settings)
        self._settings = f"SELECT {', '.join(f'set_config({name!r}, %({name})s, true)' for name in names)}"
        super().__init__(opener.where.place, opener.wait, most=most, writable=opener.writable)

    # --- connections ------------------------------------------------------------------------------------------------------------

    def connect(self) -> Connection:
        """Open a connection."""
        return self._opener.connect()

    def disconnect(self, connection: Connection) -> None:
        """Close a connection."""
        connection.close()

    def disown(self, connections: list[Connection]) -> None:
        """Replace inherited sockets by nothing, so that the parent's server receives nothing from this process, not even at its end."""
        nothing = os.open(os.devnull, os.O_RDWR)
        for connection in connections:
            with suppress(psycopg.Error, OSError):  # closed already
                os.dup2(nothing, connection.fileno())
        os.close(nothing)

    def reusable(self, connection: Connection) -> bool:
        """Return whether a connection is alive and not in the middle of something."""
        return connection.pgconn.transaction_status == TransactionStatus.IDLE

    def usable(self, connection: Connection) -> bool:
        """Return whether an idle connection is alive: a server says nothing unasked, but that it ends."""
        if connection.closed:
            return False
        watched = select.poll()
        watched.register(connection.fileno(), select.POLLIN)
        return not watched.poll(0)

    def rows(self, connection: Connection) -> PostgresRows:
        """Return a connection for statements by their names."""
        return PostgresRows(connection, self._schema, self._opener.partitions)

    def together(self) -> AbstractContextManager[Rows]:
        """Lend a connection for reading, in a pipeline."""
        return self.reading() if self.in_transaction else self._piped()

    @contextmanager
    def _piped(self) -> Iterator[Rows]:
        with self.lent() as connection, connection.pipeline():
            yield self.lent_rows(connection)

    def translated(self, error: BaseException, connection: Connection) -> PalaverError | NotAsRequired | None:
        """Return psycopg's error in palaver's words; None for any other error."""
        if isinstance(error, psycopg.errors.DivisionByZero):  # only `require` divides
            return NotAsRequired()
        return (
            fault(self.place, self.wait, error, broken=connection.broken) if isinstance(error, psycopg.Error) else None
        )

    # --- transactions -----------------------------------------------------------------------------------------------------------

    def begin(self, connection: Connection) -> None:
        """Begin, with settings that end with the transaction."""
        stack = ExitStack()
        self._pipelines[connection] = stack, stack.enter_context(connection.pipeline())
        connection.execute(_BEGIN)
        connection.execute(self._settings, self._opener.settings)

    def commit(self, connection: Connection) -> None:
        """Commit; where a statement before it failed, the server skips it, and its error is raised here."""
        try:
            connection.execute("COMMIT")
            self._pipelines.pop(connection)[0].close()
        except psycopg.OperationalError as error:
            if connection.broken:
                raise unknown_outcome(self.place) from error
            raise

    def _sync(self, connection: Connection) -> None:
        """Wait for what was sent, and raise its errors."""
        if connection in self._pipelines:
            self._pipelines[connection][1].sync()

    def rollback(self, connection: Connection) -> None:
        """Undo; a connection that died is undone by the server."""
        with suppress(psycopg.Error):
            if connection in self._pipelines:
                self._pipelines.pop(connection)[0].close()
        with suppress(psycopg.Error):
            if connection.pgconn.transaction_status in {TransactionStatus.INTRANS, TransactionStatus.INERROR}:
                connection.execute("ROLLBACK")

    def in_progress(self, connection: Connection) -> bool:
        """Return whether the connection is alive: the server undoes no transaction as a whole but that of a dead one."""
        return not connection.closed

    def command(self, connection: Connection, command: str) -> None:
        """Execute SAVEPOINT, RELEASE or ROLLBACK TO; errors of what was sent before belong to the step that ends here."""
        if command.startswith("ROLLBACK"):
            with suppress(psycopg.Error):
                self._sync(connection)
        connection.execute(command)
        if not command.startswith("SAVEPOINT"):
            self._sync(connection)

    def lock(self, connection: Connection, name: str) -> None:
        """Acquire an advisory lock that ends with the transaction."""
        connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"{self._schema}:{name}",))
        self._sync(connection)

    def faults(self) -> Iterator[tuple[str, str, str]]:
        """Return which partitions are not what they should be, and which sessions are not in theirs."""
        if self._opener.partitions > 1:
            with self.reading() as rows:
                yield from partitions.faults(rows, self._schema, self._opener.partitions)

    # --- what only PostgreSQL can be asked ----------------------------------------------------------------------------------------

    def tokens(self, said: str, rest: str) -> Mapping[str, object]:
        """Return the tokens of a text, each once; of one with more than a tsvector has room for a mark that every search looks for."""
        people = {*said.split()}
        every = people.union(rest.split())
        if sum(len(token.encode()) for token in every) > _MOST_BYTES:
            people = every = {_UNKEPT}
        return {"said": list(people), "every": list(every)}

    def matching(
        self, rows: Rows, query: str, session_no: int | None, before: int, most: int, *, begun: bool
    ) -> list[tuple[int, bool]]:
        """Return the newest texts before a number that have all tokens of a query: their numbers, and whether it was said.

        The index names all texts with a word, in no order: of a frequent one it is asked only for the newest texts that should have enough.
        """
        values = {"query": _tsquery(query, session_no, begun=begun), "before": before}
        since = 0
        if session_no is None:
            newest = rows.all("newest_texts", **values, rows=_SAMPLE)
            found = [(number, said) for number, had, said in newest if had]
            if len(found) >= most or len(newest) < _SAMPLE:
                return found[:most]
            if found:
                since = max(0, newest[0][0] - int(_MARGIN * most * _SAMPLE / len(found)))
        values |= {"session_no": session_no, "rows": most}
        found = rows.all("matching", **values, since=since)
        return found if len(found) == most or not since else rows.all("matching", **values, since=0)

    def scrub(self, *, thorough: bool) -> tuple[str, ...]:
        """Rewrite the tables, so that no deleted row stays in the server's files; or only let its space be used again.

        `VACUUM` alone leaves the bytes of a dead row in its page until something else is written there; only `VACUUM FULL` writes the tables
        anew (https://www.postgresql.org/docs/current/sql-vacuum.html). It waits for every reader, keeps everybody out meanwhile, and needs as
        much room as the tables.
        """
        self.require_writable()
        tables = sql.SQL(", ").join(sql.Identifier(self._schema, name) for name in _SCRUBBED.split(", "))
        try:
            with self.lent() as connection:
                command = sql.SQL("VACUUM (FULL) {}" if thorough else "VACUUM {}")
                connection.execute(command.format(tables))
                with suppress(psycopg.errors.InsufficientPrivilege):
                    connection.execute("CHECKPOINT")
        except StoreBusy:
            return ("others use the tables: they could not be written anew (VACUUM FULL)",)
        return (
            () if thorough else ("dead rows lie in the pages of the tables until they are written anew (VACUUM FULL)",)
        )


def _tsquery(query: str, session_no: int | None, *, begun: bool) -> str:
    """Return the condition that texts have a query's tokens, or so many that they could not be kept; no token has a quote in it."""
    star = ":*" if begun else ""
    tokens = [
        " | ".join([f"'{whole}'{star}", *([" & ".join(f"'{part}'" for part in parts) + star] if parts else [])])
        for whole, parts in text.terms(query)
    ]
    having = f"({') & ('.join(tokens)}) | '{_UNKEPT}'"
    return having if session_no is None else f"'#{session_no}' & ({having})"


# --- the store ------------------------------------------------------------------------------------------------------------------------

WAIT_SECONDS = 5.0
"""How long a call waits for other writers, for a connection, or for a server that went away."""

CONNECTIONS = 16
"""The most connections of one store at once; by default, a server allows all its clients 100 together."""


class PostgresStore(SqlStore):
    """A store in one schema of a PostgreSQL database, for any number of threads, processes and machines.

    Durability `FULL` means that the server has flushed its log before a write returns; `NORMAL` does not wait for that: a write then survives
    the death of this process, and the newest may be missing after that of the server or its machine. A pooler in transaction mode may be in
    between.

    The server keeps what was deleted in its files until `VACUUM FULL` has written them anew (`scrub`), and longer in its write-ahead log and
    backups.

    Attributes:
        place: The database, for people: without a password.
        conninfo: The address as other programs of the database read it: without the schema, with the password if there is one.
    """

    remote = True

    def __init__(  # noqa: PLR0913 - by keyword
        self,
        url: str,
        durability: Durability = Durability.FULL,
        *,
        read_only: bool = False,
        create: bool = True,
        wait: float = WAIT_SECONDS,
        connections: int = CONNECTIONS,
        keys: Keys | None = None,
    ) -> None:
        """Open the store, and make or upgrade it when needed. The database must exist; the schema is made.

        Args:
            url: `postgresql://user@host:port/database?schema=name`, with every parameter that libpq knows; the schema is `palaver` unless named.
                `partitions=16` makes a new store in so many partitions.
            durability: `FULL` or `NORMAL`.
            read_only: True to refuse every write.
            create: False to raise when there is no such schema.
            wait: How long a call waits for other writers, for a connection, or for a server that went away, in seconds.
            connections: The most connections at once.
            keys: As for `open_store`.

        Raises:
            MissingFile: There is no such schema, and `create` is False.
            InvalidInput: The address is malformed, the schema contains something else, or the server cannot keep what is asked for.
            StoreError: A later palaver wrote it (`too_new`), it cannot be written (`read_only`), or no server answers (`unavailable`).
        """
        if durability is Durability.MEMORY:
            raise InvalidInput("A database outlives the process: its durability is full or normal.")
        where = address(url)
        opener = PostgresOpener(where, durability, wait, writable=not read_only, encrypted=keys is not None)
        opener.prepare(create=create)
        self.place, self.conninfo = where.place, where.conninfo
        super().__init__(PostgresDatabase(opener, connections), where.url, durability, formats(), keys)

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Lend the connection of this thread's transaction, for statements of the caller's own that belong to it: an outbox, a job of a queue.

        They are written with what the store writes in the same transaction, or not at all; without one, the block is a transaction. Neither
        commit nor roll back. The connection's transaction is a pipeline: an error may come with the next statement whose rows are read.

        Raises:
            StoreError: The database failed, as for the store's own writes. What it refused to do is psycopg's error.
        """
        refused: list[psycopg.Error] = []
        try:
            with self._db.writing() as rows:
                try:
                    yield rows.connection
                except (psycopg.ProgrammingError, psycopg.IntegrityError, psycopg.DataError) as error:
                    refused.append(error)
                    raise
        except PalaverError:
            if refused:
                raise refused[0] from None
            raise

    def __repr__(self) -> str:
        """Return the place, without a password."""
        return f"<PostgresStore: {self.place}>"
