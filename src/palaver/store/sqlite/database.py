"""The durable store in one SQLite file: its connections, its transactions, and what only SQLite can be asked."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from urllib.parse import quote

import apsw

from palaver.errors import InvalidInput, PalaverError, StoreBusy, StoreDamaged
from palaver.store import text
from palaver.store.keys import Keys
from palaver.store.protocol import Durability
from palaver.store.sql.database import DatabaseOf, Row, Rows
from palaver.store.sql.statements import statements
from palaver.store.sql.store import SqlStore
from palaver.store.sqlite.faults import busy, fault, moved
from palaver.store.sqlite.opening import SqliteOpener, formats, prepare

_CONNECTIONS = 64  # each costs three file descriptors
_LOOKS = 2
_TOLD = 20  # faults of its pages that SQLite is asked for; one says that a copy is due
_ABANDONED: list[apsw.Connection] = []
"""Connections that a forked child can neither use nor close; kept, so that nothing closes them."""

_WORDS = {
    "s": "",
    "headers": "headers",
    "entries": "headers AS e LEFT JOIN bodies AS b USING (body_no)",
    "body": "b.body",
    "by_kind": " INDEXED BY headers_by_kind",
    "for_update": "",
    "for_erasure": "",
    "for_index": "",
}


@cache
def _statements() -> Mapping[str, str]:
    return MappingProxyType(statements("palaver.store.sqlite", _WORDS))


class SqliteRows(Rows):
    """A connection, for statements by their names."""

    connection: apsw.Connection

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection
        self.sql = _statements()

    def ask(self, sql: str, values: Mapping[str, object]) -> Iterator[Row]:
        """Execute SQL and return its cursor."""
        return self.connection.execute(sql, values)


class SqliteDatabase(DatabaseOf[apsw.Connection]):
    """The connections of one file.

    One writer of this process at a time holds a lock, which wakes the next one at once; SQLite's own lock, which is polled, is left to other
    processes.
    """

    one_writer = True

    def __init__(self, opener: SqliteOpener, *, create: bool) -> None:
        self._opener = opener
        super().__init__(str(opener.path), opener.wait, most=_CONNECTIONS, writable=opener.writable)
        self._file, first = prepare(opener, create=create)
        self._logs[first] = self._log_inode()
        self._all.append(first)
        self._idle.append(first)

    def _renew(self) -> None:
        super()._renew()
        self._writer = Lock()
        self._logs: dict[apsw.Connection, int] = {}  # the write-ahead log that each connection has open, 0 for none

    # --- connections ------------------------------------------------------------------------------------------------------------

    def connect(self) -> apsw.Connection:
        """Open a connection that is ready for use."""
        self._require_in_place()
        self._require_log(next(iter(self._logs.values()), 0))
        connection = self._opener.connect()
        self._logs[connection] = self._log_inode()
        return connection

    def disconnect(self, connection: apsw.Connection) -> None:
        """Close a connection."""
        self._logs.pop(connection, None)
        connection.close(force=True)

    def disown(self, connections: list[apsw.Connection]) -> None:
        """Close what was inherited, before this process opens the file itself.

        SQLite knows the files of a process by a table that a child inherits with locks that it does not have
        (https://www.sqlite.org/howtocorrupt.html, section 2.6): closing every connection empties it. The parent holds its own locks, so the
        child deletes no log. A connection in the middle of a transaction belongs to the parent's thread: it is never closed.
        """
        for connection in connections:
            try:
                if connection.in_transaction:
                    _ABANDONED.append(connection)
                else:
                    connection.close(force=True)
            except apsw.Error:  # another thread of the parent was inside it
                _ABANDONED.append(connection)

    def reusable(self, connection: apsw.Connection) -> bool:
        """Return whether every statement has ended; one that an error's traceback refers to may not have."""
        return connection.txn_state() == apsw.SQLITE_TXN_NONE

    def usable(self, connection: apsw.Connection) -> bool:
        """Return True; raise when the file is not the one that was opened."""
        self._require_in_place()
        return connection is not None

    def _require_in_place(self) -> None:
        try:
            status = os.stat(self.place)  # noqa: PTH116 - at every use: faster than by a Path
        except OSError as error:
            raise moved(self._opener.path) from error
        if (status.st_ino, status.st_dev) != (self._file.st_ino, self._file.st_dev):
            raise moved(self._opener.path)

    def _require_log(self, inode: int) -> None:
        """Raise when the log that a connection has open is not at its place: nobody would find what is written into it."""
        if inode and self._log_inode() != inode:
            raise moved(self._opener.log)

    def _log_inode(self) -> int:
        """Return the inode of the write-ahead log, 0 when there is none."""
        try:
            return os.stat(f"{self.place}-wal").st_ino  # noqa: PTH116 - as above
        except FileNotFoundError:
            return 0

    def rows(self, connection: apsw.Connection) -> SqliteRows:
        """Return a connection for statements by their names."""
        return SqliteRows(connection)

    def translated(self, error: BaseException, connection: apsw.Connection) -> PalaverError | None:
        """Return SQLite's error in palaver's words; None for any other error."""
        return (
            fault(self._opener.path, self.wait, error, connection.system_errno)
            if isinstance(error, apsw.Error)
            else None
        )

    # --- transactions -----------------------------------------------------------------------------------------------------------

    def begin(self, connection: apsw.Connection) -> None:
        """Wait for the turn of this writer, and begin."""
        self._require_log(self._logs[connection])
        if not self._writer.acquire(timeout=self.wait):
            raise busy(self._opener.path, self.wait)
        try:
            connection.execute("BEGIN IMMEDIATE")
        except BaseException:  # an interrupt, too, frees the turn
            self._writer.release()
            raise

    def commit(self, connection: apsw.Connection) -> None:
        """Commit."""
        connection.execute("COMMIT")
        self._writer.release()

    def rollback(self, connection: apsw.Connection) -> None:
        """Undo."""
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        finally:
            self._writer.release()

    def in_progress(self, connection: apsw.Connection) -> bool:
        """Return whether the transaction is still there: a full disk, for one, undoes it."""
        return connection.in_transaction

    def command(self, connection: apsw.Connection, command: str) -> None:
        """Execute SAVEPOINT, RELEASE or ROLLBACK TO."""
        connection.execute(command)

    # --- what only SQLite can be asked ------------------------------------------------------------------------------------------

    def matching(
        self, rows: Rows, query: str, session_no: int | None, before: int, most: int, *, begun: bool
    ) -> list[tuple[int, bool]]:
        """Return the newest texts before a number that have all tokens of a query: their numbers, and whether it was said."""

        def numbers(columns: str) -> list[int]:
            match = _expression(columns, query, session_no, star="*" if begun else "")
            return [number for (number,) in rows.all("matching", match=match, before=before, rows=most)]

        said = frozenset(numbers("said"))
        return [(number, number in said) for number in numbers("said rest")]

    def scrub(self, *, thorough: bool) -> tuple[str, ...]:
        """Merge the index, write the file anew when asked, and empty the write-ahead log.

        Every connection overwrites what it deletes (`secure_delete`), so the file is clean without being written anew, but for remnants of rows
        that were moved long ago. The log keeps old pages until it is checkpointed and emptied, which a reader that began earlier prevents.
        """
        with self.writing() as rows:
            rows.run("tokens_optimize")
        pending = self._written_anew() if thorough else ()
        with self.lent() as connection:
            blocked, _pages, _carried = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0]
        if not blocked:
            return pending
        return (*pending, "another process reads the store as it was before: its write-ahead log cannot be emptied yet")

    def _written_anew(self) -> tuple[str, ...]:
        try:
            with self.lent() as connection:
                if not self._writer.acquire(timeout=self.wait):
                    raise busy(self._opener.path, self.wait)
                try:
                    connection.execute("PRAGMA temp_store=FILE")  # it has only what stays
                    connection.execute("VACUUM")
                    connection.execute("PRAGMA temp_store=MEMORY")
                finally:
                    self._writer.release()
        except StoreBusy:
            return ("another writer kept the store from being written anew",)
        return ()

    def faults(self) -> Iterator[tuple[str, str, str]]:
        """Let SQLite look at every page, index and table (https://www.sqlite.org/pragma.html#pragma_integrity_check).

        A writer may come between the two statements of a look; damage is still there at the next one.
        """
        texts = self._look()
        for _ in range(_LOOKS if texts else 0):
            again = self._look()
            texts = [text for text in texts if text in again]
        yield from (("file", "damaged_file", text) for text in texts)
        headers, bodies = self.all("row_counts")[0]
        if headers != bodies:
            yield "bodies", "loose_rows", f"There are {headers} headers and {bodies} bodies; each header has its own."

    def _look(self) -> list[str]:
        try:
            with self.lent() as connection:
                rows = SqliteRows(connection)
                rows.all("tokens_opened")
                faults = connection.execute(f"PRAGMA integrity_check({_TOLD})").fetchall()
        except StoreDamaged as error:
            return [error.why]
        return [str(text) for (text,) in faults if text != "ok"]


# --- the store ------------------------------------------------------------------------------------------------------------------------

WAIT_SECONDS = 5.0
"""How long a call waits for other writers before it raises `StoreBusy`."""


class SqliteStore(SqlStore):
    """A store in one SQLite file, for any number of threads and processes of one machine.

    The file has mode 0600, missing folders are made with 0700. While the store is open SQLite keeps `-wal` and `-shm` files of the same mode
    beside it. It must not be on a network share.

    Attributes:
        path: The file.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        durability: Durability = Durability.FULL,
        *,
        read_only: bool = False,
        create: bool = True,
        wait: float = WAIT_SECONDS,
        keys: Keys | None = None,
    ) -> None:
        """Open the store, and make or upgrade it when needed.

        Args:
            path: The file.
            durability: `FULL` flushes the disk at every write; `NORMAL` leaves that to the next checkpoint.
            read_only: True to refuse every write; the only way to open a store where nothing may be written.
            create: False to raise when there is no such file.
            wait: How long a call waits for other writers, in seconds.
            keys: As for `open_store`.

        Raises:
            MissingFile: There is no such file, and `create` is False.
            InvalidInput: The file is not a store, its name is not UTF-8, or a file cannot have this durability.
            StoreError: A later palaver wrote it (`too_new`), or it cannot be written (`read_only`).
        """
        if os.fspath(path) == ":memory:":
            raise InvalidInput("A SqliteStore is a file.", hint="MemoryStore() is the store in memory.")
        if durability is Durability.MEMORY:
            raise InvalidInput("A file outlives the process: its durability is full or normal.")
        self.path = Path(os.path.realpath(path))  # SQLite puts the side files next to the target of a link, too
        try:
            url = f"sqlite://{quote(str(self.path))}"
        except UnicodeEncodeError as error:
            raise InvalidInput(f"SQLite opens files whose names are UTF-8, and {str(self.path)!r} is not.") from error
        opener = SqliteOpener(self.path, durability, wait, writable=not read_only, encrypted=keys is not None)
        super().__init__(SqliteDatabase(opener, create=create), url, durability, formats(), keys)


def _expression(columns: str, query: str, session_no: int | None, star: str = "") -> str:
    """Return the FTS5 expression for a query that has words; every token is quoted, and has no quote in it."""
    phrases = [
        f'("{whole}"{star} OR "{" ".join(parts)}"{star})' if parts else f'"{whole}"{star}'
        for whole, parts in text.terms(query)
    ]
    match = f"{{{columns}}} : ({' AND '.join(phrases)})"
    return match if session_no is None else f'session : "{session_no}" AND {match}'
