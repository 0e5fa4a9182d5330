"""Opening a store's file: what may be there, with which rights it is made, and how each connection is set up."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from time import monotonic, sleep
from urllib.parse import quote

import apsw

from palaver.errors import InvalidInput, MissingFile, PalaverError, StoreDamaged, StoreError
from palaver.files import flush_names, write_once
from palaver.ids import now
from palaver.store.protocol import Durability
from palaver.store.sql.statements import KEPT, Migration, check_format, check_keys, migrations, require_kept
from palaver.store.sqlite.faults import fault, os_fault, read_only

APPLICATION_ID = 0x70616C76
"""`palv`, in the file's header (https://www.sqlite.org/fileformat2.html, offset 68): `file` and we know whose it is."""

ENCRYPTED_ID = 0x70616C65
"""`pale`: that of an encrypted store, from its first moment on."""

_MAGIC = b"SQLite format 3\x00"
_PRIVATE_FOLDER = 0o700
_STATEMENTS_CACHED = 100
_RETRY_SECONDS = 0.01
_WAL_BYTES_KEPT = 16 * 1024 * 1024  # a log that one large write blew up is cut back to this

_SETUP = {
    "foreign_keys": "ON",
    "secure_delete": "ON",  # what erasure deletes is overwritten; appends delete nothing, so it costs them nothing
    "temp_store": "MEMORY",  # no conversation text in temporary files
    "trusted_schema": "OFF",  # a store may come from someone else
    "cell_size_check": "ON",
    "journal_size_limit": str(_WAL_BYTES_KEPT),
}


@cache
def formats() -> tuple[Migration, ...]:
    """Return the migrations, oldest first."""
    return migrations("palaver.store.sqlite")


def newest_format() -> int:
    """Return the format that this palaver writes."""
    return formats()[-1].version


class SqliteOpener:
    """How the connections of one store are opened.

    Attributes:
        path: The file.
        log: Its write-ahead log. SQLite deletes it only with the last connection.
        wait: How long to wait for other writers, in seconds.
        writable: False to refuse every write.
        encrypted: Whether there are keys for it.
    """

    def __init__(
        self, path: Path, durability: Durability, wait: float, *, writable: bool, encrypted: bool = False
    ) -> None:
        self.path = path
        self.log = path.with_name(f"{path.name}-wal")
        self.wait = wait
        self.writable = writable
        self.encrypted = encrypted
        pragmas = _SETUP | {"synchronous": durability.value, "query_only": "OFF" if writable else "ON"}
        full = (
            "ON" if durability is Durability.FULL else "OFF"
        )  # macOS flushes the disk's cache only with these pragmas
        pragmas |= {"fullfsync": full, "checkpoint_fullfsync": full}
        self._setup = "".join(f"PRAGMA {name}={value};" for name, value in pragmas.items())

    def connect(self) -> apsw.Connection:
        """Open a connection that is ready for use."""
        with self.opening() as connection:
            self.set_up(connection)
        return connection

    def set_up(self, connection: apsw.Connection) -> None:
        """Make a connection ready for use."""
        connection.execute(self._setup).fetchall()
        connection.pragma("schema_version")  # which opens the log

    @contextmanager
    def opening(self) -> Iterator[apsw.Connection]:
        """Open a connection that has touched nothing yet; close it when the block raises."""
        connection = self._bare()
        try:
            yield connection
        except BaseException as error:  # an interrupt, too, leaves no connection open
            number = connection.system_errno
            with suppress(apsw.Error):  # a log that cannot be checkpointed now stays, and nothing is lost
                connection.close()
            if isinstance(error, apsw.Error):
                raise fault(self.path, self.wait, error, number) from error
            raise

    def _bare(self) -> apsw.Connection:
        able = _may_write(self.path)  # a read-only store on a place that can be written leaves no side files behind
        flags = apsw.SQLITE_OPEN_READWRITE if able else apsw.SQLITE_OPEN_READONLY
        sealed = not os.access(self.path.parent, os.W_OK)  # SQLite must not try to make a side file
        immutable = sealed and not self.log.exists()
        alone = sealed and self.log.exists() and not self.path.with_name(f"{self.path.name}-shm").exists()
        name = f"file:{quote(str(self.path))}{'?immutable=1' if immutable else ''}"
        try:
            connection = apsw.Connection(
                name,
                flags=flags | apsw.SQLITE_OPEN_URI,
                vfs="unix-none" if alone else None,
                statementcachesize=_STATEMENTS_CACHED,
            )
        except apsw.Error as error:
            raise _cannot_open(self.path, error) from error
        if (
            alone
        ):  # nobody has it open: what a killed writer left in the log is read without locks, by an index in memory
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            connection.pragma("locking_mode", "EXCLUSIVE")
        connection.set_busy_timeout(int(self.wait * 1000))
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)  # else a statement is prepared again for new values
        return connection


def _may_write(path: Path) -> bool:
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def _cannot_open(path: Path, error: apsw.Error) -> PalaverError:
    """Ask the system why SQLite could not open the file: there is no connection to ask."""
    try:
        with path.open("rb"):
            return StoreError(f"SQLite cannot open {path}: {error}.")
    except OSError as why:
        return os_fault(path, why)


# --- making and migrating ---------------------------------------------------------------------------------------------------------


def prepare(opener: SqliteOpener, *, create: bool) -> tuple[os.stat_result, apsw.Connection]:
    """Make the file if it is to be made, look at what is there, and bring it to the newest format.

    Returns:
        The file that was found, and a connection to it that is ready for use.

    Raises:
        MissingFile: Nothing is there, or an empty file, and `create` is False.
        InvalidInput: What is there is not a store; it was not touched.
        StoreError: A later palaver wrote it, or it cannot be written.
    """
    path = opener.path
    try:
        if create and opener.writable:
            _make(path)
        status = _look(path)
    except OSError as error:
        raise os_fault(path, error) from error
    if opener.writable and not _may_write(path):
        raise read_only(path)
    with opener.opening() as connection:
        try:
            version = _settled(opener, connection, create=create)
        except apsw.NotADBError as error:
            raise _unreadable(path, error) from error
        if not version and not (create and opener.writable):
            raise MissingFile(path, what="store", hint="The file is empty. Open it for writing to make a store in it.")
        if check_format(str(path), version, newest_format(), writable=opener.writable):
            _upgrade(opener, connection)
        opener.set_up(connection)
    return status, connection


def _make(path: Path) -> None:
    """Make the file and the folders above it, readable by nobody else from the first moment on; SQLite copies the mode to its side files.

    A log without its file belongs to a store that was moved: SQLite would delete it, and what was acknowledged with it.
    """
    left = path.with_name(f"{path.name}-wal")
    orphaned = left.exists()  # asked first: whoever makes a store makes its log later
    if path.exists():
        return
    if orphaned:
        raise StoreError(
            f"{left} holds the newest writes of a store that is not at {path} any more.",
            reason="moved",
            hint="Move the store back beside it, or name another place.",
        )
    for folder in reversed([place for place in path.parents if not place.exists()]):
        folder.mkdir(_PRIVATE_FOLDER, exist_ok=True)
        flush_names(folder.parent)
    write_once(path)


def _look(path: Path) -> os.stat_result:
    """Return what is there; refuse what is not a file, or too short for a database; SQLite would read one byte as an empty database."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise InvalidInput(f"{path} is not a file.", hint="Name a file; it is made when it is missing.")
    if 0 < status.st_size < len(_MAGIC):
        raise _no_database(path)
    return status


def _no_database(path: Path) -> InvalidInput:
    return InvalidInput(f"{path} is not an SQLite database.", hint="It was not touched. Name another file.")


def _unreadable(path: Path, error: apsw.NotADBError) -> PalaverError:
    """Return the error for what SQLite cannot read: a damaged store still begins as a database does."""
    with path.open("rb") as file:  # no handle has it open
        begins_well = file.read(len(_MAGIC)) == _MAGIC
    return StoreDamaged(str(path), str(error)) if begins_well else _no_database(path)


def _number(connection: apsw.Connection, pragma: str) -> int:
    found = connection.pragma(pragma)
    return found if isinstance(found, int) else 0


def _format(connection: apsw.Connection, opener: SqliteOpener) -> int:
    """Return the format of what is there, 0 for an empty file."""
    with _transaction(connection, "BEGIN"):  # one look: another process may be making the store right now
        version, owner = _number(connection, "user_version"), _number(connection, "application_id")
        ours = owner in {APPLICATION_ID, ENCRYPTED_ID}
        empty = not ours and owner == version == 0 and connection.execute("SELECT count(*) = 0 FROM sqlite_schema").get
    if not ours and not empty:
        raise InvalidInput(
            f"{opener.path} is the SQLite database of another program.", hint="It was not touched. Name another file."
        )
    if ours:
        check_keys(str(opener.path), encrypted=owner == ENCRYPTED_ID, keys=opener.encrypted)
    return version


def _settled(opener: SqliteOpener, connection: apsw.Connection, *, create: bool) -> int:
    """Return the format of what is there; a reader waits a moment for another process that is just making it."""
    begun = opener.path.stat().st_mtime
    while True:
        version = _format(connection, opener)
        if version >= newest_format() or (opener.writable and (create or version)):
            return version
        if not 0 <= now() - begun < opener.wait:
            return version
        sleep(_RETRY_SECONDS)


def _upgrade(opener: SqliteOpener, connection: apsw.Connection) -> None:
    connection.execute("PRAGMA secure_delete=ON; PRAGMA synchronous=FULL; PRAGMA fullfsync=ON").fetchall()
    _use_wal(opener, connection)
    for migration in formats():
        _migrate(opener, connection, migration)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()  # the tables themselves never depend on a log


def _use_wal(opener: SqliteOpener, connection: apsw.Connection) -> None:
    """Switch to a write-ahead log; SQLite fails at once when two processes do this to a new file, so it is repeated."""
    deadline = monotonic() + opener.wait
    while True:
        try:
            if connection.pragma("journal_mode", "WAL") == "wal":
                return
        except apsw.BusyError:
            if monotonic() > deadline:
                raise
            sleep(_RETRY_SECONDS)
        else:
            raise StoreError(
                f"SQLite cannot keep a write-ahead log beside {opener.path}.",
                hint="Use a local disk, not a network share.",
            )


def _migrate(opener: SqliteOpener, connection: apsw.Connection, migration: Migration) -> None:
    """Do one migration and record it, in one transaction, unless another process was faster."""
    with _transaction(connection):
        if _number(connection, "user_version") >= migration.version:
            return
        before = _counts(connection)
        connection.execute(migration.sql)
        require_kept(migration, before, _counts(connection))
        connection.execute(
            "INSERT INTO migrations VALUES (?, ?, ?, ?)", (migration.version, migration.name, migration.sha256, now())
        )
        connection.pragma("application_id", ENCRYPTED_ID if opener.encrypted else APPLICATION_ID)
        connection.pragma("user_version", migration.version)


def _counts(connection: apsw.Connection) -> dict[str, int]:
    """Count the rows of each table whose content cannot be derived again."""
    names = {str(name) for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    return {
        name: int(connection.execute(f'SELECT count(*) FROM "{name}"').get)  # noqa: S608 - one of ours
        for name in KEPT
        if name in names
    }


@contextmanager
def _transaction(connection: apsw.Connection, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
    """Commit at the end, undo on any error."""
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:  # an interrupt, too, is undone
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
