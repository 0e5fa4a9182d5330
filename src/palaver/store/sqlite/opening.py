"""Opening a store's file: what may be there, with which rights it is made, and how each connection is set up."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkstemp
from time import monotonic, sleep
from urllib.parse import quote

import apsw

from palaver.errors import (
    InvalidInput,
    MissingStore,
    PalaverError,
    StoreDamaged,
    StoreError,
    StoreReadOnly,
    StoreTooNew,
)
from palaver.ids import now
from palaver.store.protocol import Durability
from palaver.store.sqlite.faults import fault, os_fault, read_only
from palaver.store.sqlite.statements import migrations
from palaver.store.statements import Migration, require_kept

APPLICATION_ID = 0x70616C76
"""`palv`: stands in the file's header (https://www.sqlite.org/fileformat2.html, offset 68), so that `file` and we know whose it is."""

_MAGIC = b"SQLite format 3\x00"
_PRIVATE_FOLDER = 0o700
_STATEMENTS_CACHED = 100
_RETRY_SECONDS = 0.01
_ROOM = 1 << 20
"""What must be free where a store is made, in bytes: an empty one takes less than half of it while it is made, its log and side file included."""
_CHECKPOINT_PAGES = 1000  # SQLite's own default: at 4 KiB a page the log is carried over every 4 MB or so
_WAL_BYTES_KEPT = 16 * 1024 * 1024  # a log that one large write blew up is cut back to this

_SETUP = {
    "foreign_keys": "ON",
    "secure_delete": "ON",  # what erasure deletes is overwritten; appends delete nothing, so it costs them nothing
    "temp_store": "MEMORY",  # no conversation text in temporary files
    "trusted_schema": "OFF",  # a store may come from someone else
    "cell_size_check": "ON",
    "wal_autocheckpoint": str(_CHECKPOINT_PAGES),
    "journal_size_limit": str(_WAL_BYTES_KEPT),
}


class Opener:
    """How the connections of one store are opened."""

    def __init__(self, path: Path, durability: Durability, wait: float, *, writable: bool) -> None:
        """Keep what every connection needs; nothing is opened yet.

        Args:
            path: The file.
            durability: `FULL` or `NORMAL`.
            wait: How long to wait for other writers, in seconds.
            writable: False to refuse every write.
        """
        self.path = path
        self.wait = wait
        self.writable = writable
        pragmas = _SETUP | {"synchronous": durability.value, "query_only": "OFF" if writable else "ON"}
        if durability is Durability.FULL:
            pragmas |= {
                "fullfsync": "ON",
                "checkpoint_fullfsync": "ON",
            }  # macOS flushes the disk's cache only when told
        self._setup = "".join(f"PRAGMA {name}={value};" for name, value in pragmas.items())

    def connect(self) -> apsw.Connection:
        """Open a connection that is ready for use."""
        with self.opening() as connection:
            self.set_up(connection)
        return connection

    @contextmanager
    def opening(self) -> Iterator[apsw.Connection]:
        """Lend a new connection that has touched nothing yet, and close it when the block raises; SQLite's errors in palaver's words."""
        connection = self._bare()
        try:
            yield connection
        except BaseException as error:  # an interrupt, too, leaves no connection open
            number = connection.system_errno
            connection.close()
            if isinstance(error, apsw.Error):
                raise fault(self.path, self.wait, error, number) from error
            raise

    def set_up(self, connection: apsw.Connection) -> None:
        """Make a connection ready for use."""
        connection.execute(self._setup).fetchall()

    def _bare(self) -> apsw.Connection:
        """Open a connection that has touched nothing yet."""
        able = _may_write(
            self.path
        )  # a reader that may write leaves no side files behind, and refuses every write all the same
        flags = apsw.SQLITE_OPEN_READWRITE if able else apsw.SQLITE_OPEN_READONLY
        immutable = not able and _cannot_log(self.path)
        name = f"file:{quote(str(self.path))}{'?immutable=1' if immutable else ''}"
        try:
            connection = apsw.Connection(
                name, flags=flags | apsw.SQLITE_OPEN_URI, statementcachesize=_STATEMENTS_CACHED
            )
        except apsw.Error as error:
            raise _cannot_open(self.path, error) from error
        connection.set_busy_timeout(int(self.wait * 1000))
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        return connection


def _may_write(path: Path) -> bool:
    """Tell whether this user may write the store and its side files."""
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def _cannot_log(path: Path) -> bool:
    """Tell whether a store without a log lies where this user cannot make one, as on read-only media: SQLite must not try then."""
    return not os.access(path.parent, os.W_OK) and not path.with_name(f"{path.name}-wal").exists()


def _cannot_open(path: Path, error: apsw.Error) -> PalaverError:
    """Ask the system itself why SQLite could not open the file: there is no connection to ask."""
    try:
        with path.open("rb"):
            return StoreError(f"SQLite cannot open {path}: {error}.")
    except OSError as why:
        return os_fault(path, why)


def prepare(opener: Opener, *, create: bool) -> apsw.Connection:
    """Make the file if it is to be made, look at what is there, and bring it to the newest format.

    Returns:
        The connection that looked, ready for use: to close it and open another would carry the log over and delete it in between.

    Raises:
        MissingStore: Nothing is there, or an empty file, and nothing is to be made.
        InvalidInput: What is there is no store of ours; it was not touched.
        StoreTooNew: A later palaver wrote it; it was not touched.
        StoreReadOnly: It, or its folder, may not be written, and it was to be.
    """
    path = opener.path
    try:
        if create and opener.writable:
            _make(path)
        _look(path)
    except OSError as error:
        raise os_fault(path, error) from error
    if opener.writable and not _may_write(path):
        raise read_only(path)
    with opener.opening() as connection:
        try:
            found = _settled(opener, connection, create=create)
        except apsw.NotADBError as error:
            raise _unreadable(path, error) from error
        if not found and not (create and opener.writable):
            raise MissingStore(str(path), hint="The file is empty. Whoever opens it for writing makes a store in it.")
        if found < newest_format():
            _upgrade(opener, connection, found)
        opener.set_up(connection)
    return connection


def _make(path: Path) -> None:
    """Make the file and the folders above it, readable by nobody else from the first moment on; SQLite copies the mode to its side files.

    The file gets its name when it is closed already: closing a descriptor drops all locks that this process has on a file, those of SQLite
    for another handle too (https://www.sqlite.org/howtocorrupt.html, section 2.2).
    """
    if path.exists():
        return
    for folder in reversed([place for place in path.parents if not place.exists()]):
        folder.mkdir(_PRIVATE_FOLDER, exist_ok=True)
        _flush_names(folder.parent)
    descriptor, unnamed = mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mode 0600
    try:
        with os.fdopen(descriptor, "wb", buffering=0) as file:
            room = bytes(_ROOM)
            while room:  # where there is no room for a new store, nothing is to have its name
                room = room[file.write(room) :]
            file.truncate(0)
        with suppress(FileExistsError):  # another was faster
            os.link(unnamed, path)
    finally:
        Path(unnamed).unlink()


def _flush_names(folder: Path) -> None:
    """Let a new name in a folder survive a power cut: SQLite sees to the folder of its log, and nobody to the ones above.

    Where folders cannot be flushed, as on Windows, the system does it in time.
    """
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _look(path: Path) -> None:
    """Refuse what is no file, or too short for a database, of which SQLite would take one byte for none; only SQLite may open it."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise InvalidInput(
            f"{path} is no file, so it is no palaver store.", hint="Name a file; it is made when it is missing."
        )
    if 0 < found.st_size < len(_MAGIC):
        raise _no_database(path)


def _no_database(path: Path) -> InvalidInput:
    return InvalidInput(
        f"{path} is no palaver store: it is no SQLite database.", hint="It was not touched. Name another file."
    )


def _unreadable(path: Path, error: apsw.NotADBError) -> PalaverError:
    """Give the error for what SQLite cannot read: a damaged store still begins as a database does."""
    with path.open("rb") as file:  # no handle has it open
        begins_well = file.read(len(_MAGIC)) == _MAGIC
    return StoreDamaged(str(path), str(error)) if begins_well else _no_database(path)


def newest_format() -> int:
    """Give the format that this palaver writes."""
    return migrations()[-1].version


def _number(connection: apsw.Connection, pragma: str) -> int:
    found = connection.pragma(pragma)
    return found if isinstance(found, int) else 0


def _format(connection: apsw.Connection, path: Path) -> int:
    """Give the format of what is there, 0 for an empty file."""
    with _transaction(connection, "BEGIN"):  # one look: another process may be making the store right now
        found, owner = _number(connection, "user_version"), _number(connection, "application_id")
        ours = owner == APPLICATION_ID or (owner == found == 0 and _is_empty(connection))
    if not ours:
        raise InvalidInput(
            f"{path} is no palaver store: it is the SQLite database of another program.",
            hint="It was not touched. Name another file.",
        )
    if found > newest_format():
        raise StoreTooNew(found, newest_format())
    return found


def _settled(opener: Opener, connection: apsw.Connection, *, create: bool) -> int:
    """Give the format of what is there; whoever makes and upgrades nothing waits a moment for another process that is just doing it."""
    while True:
        found = _format(connection, opener.path)
        if found >= newest_format() or (opener.writable and (create or found)):
            return found
        begun = _begun(connection, opener.path, found)
        if not 0 <= now() - begun < opener.wait:
            return found
        sleep(_RETRY_SECONDS)


def _begun(connection: apsw.Connection, path: Path, found: int) -> float:
    """Give when somebody last changed the format of what is there, or made the empty file, in seconds since 1970-01-01 UTC."""
    if not found:
        return path.stat().st_mtime
    at = connection.execute("SELECT max(applied_at) FROM migrations").get
    return at if isinstance(at, float) else 0.0


def _is_empty(connection: apsw.Connection) -> bool:
    return bool(connection.execute("SELECT count(*) = 0 FROM sqlite_schema").get)


def _upgrade(opener: Opener, connection: apsw.Connection, found: int) -> None:
    if not opener.writable:
        raise StoreReadOnly(
            f"{opener.path} has format {found}; reading needs format {newest_format()}.",
            hint="Open it once for writing, which upgrades it.",
        )
    connection.pragma("secure_delete", "ON")
    connection.pragma("synchronous", "FULL")
    connection.pragma("fullfsync", "ON")
    _use_wal(opener, connection)
    for migration in migrations():
        _migrate(connection, migration)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()  # the tables themselves never depend on a log


def _use_wal(opener: Opener, connection: apsw.Connection) -> None:
    """Switch to a write-ahead log; SQLite gives up at once when two processes do this to a new file, so try for as long as we may wait."""
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
                f"{opener.path} lies where SQLite cannot keep a write-ahead log.",
                hint="Use a local disk, no network share.",
            )


def _migrate(connection: apsw.Connection, migration: Migration) -> None:
    """Do one migration and record it, in one transaction, unless another process was faster.

    What people put there is counted before and after: a migration that lost some of it would not be committed.
    """
    with _transaction(connection):
        if _number(connection, "user_version") >= migration.version:
            return
        before = _counts(connection)
        connection.execute(migration.sql)
        require_kept(migration, before, _counts(connection))
        connection.execute(
            "INSERT INTO migrations VALUES (?, ?, ?, ?)", (migration.version, migration.name, migration.sha256, now())
        )
        connection.pragma("application_id", APPLICATION_ID)
        connection.pragma("user_version", migration.version)


def _counts(connection: apsw.Connection) -> dict[str, int]:
    """Count the rows of each table that holds what cannot be made again; of those that are there."""
    names = [str(name) for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    return {
        name: int(connection.execute(f'SELECT count(*) FROM "{name}"').get)  # noqa: S608 - one of ours
        for name in ("sessions", "dialogs", "headers", "bodies", "blobs", "sources")
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
