"""Migrations: each is done whole and recorded, or not at all; whatever happens in the middle, and whatever a migration itself does wrong."""

from __future__ import annotations

import gzip
import signal
import subprocess
import sys
from pathlib import Path

import apsw
import psycopg
import pytest

from palaver.errors import StoreError
from palaver.store import SqliteStore
from palaver.store.postgres import PostgresStore
from palaver.store.postgres import opening as postgres_opening
from palaver.store.sqlite import opening as sqlite_opening
from palaver.store.sqlite.opening import newest_format
from palaver.store.statements import Migration
from tests.postgres import Server
from tests.store.golden import content
from tests.store.postgres_backend import connected

GOLDEN = Path(__file__).parent.parent / "golden"
NEXT = newest_format() + 1
GOOD = "CREATE TABLE extra (name TEXT); INSERT INTO extra VALUES ('x');"
LOSES = "DELETE FROM sources;"
FAILS = f"{GOOD} SELECT * FROM a_table_that_is_not_there;"  # noqa: S608 - no input in it

CHILD = """
import os, signal, sys
import apsw
from palaver.store.sqlite.opening import _migrate
from palaver.store.statements import Migration

connection = apsw.Connection(sys.argv[1])
connection.create_scalar_function("die", lambda: os.kill(os.getpid(), signal.SIGKILL), 0)
_migrate(connection, Migration(int(sys.argv[2]), "0009_next.sql", sys.argv[3]))
"""


def raw(path: Path) -> tuple[int, int, list[str]]:
    """Give what a file says of its format: its number, its records of migrations, its tables."""
    connection = apsw.Connection(str(path))
    tables = [
        str(name) for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY 1")
    ]
    told = (
        int(connection.pragma("user_version") or 0),
        int(connection.execute("SELECT count(*) FROM migrations").get),
        tables,
    )
    connection.close()
    return told


@pytest.fixture
def store_file(tmp_path: Path) -> Path:
    """Give a file with something of everything, in the newest format."""
    path = tmp_path / "store.db"
    path.write_bytes(gzip.decompress((GOLDEN / f"store-v{newest_format()}.db.gz").read_bytes()))
    return path


def migrate(path: Path, sql: str) -> None:
    """Do one migration of a file, in this process."""
    connection = apsw.Connection(str(path))
    try:
        sqlite_opening._migrate(connection, Migration(NEXT, "0009_next.sql", sql))
    finally:
        connection.close()


@pytest.mark.parametrize("before_death", ["", GOOD, "DELETE FROM headers; DELETE FROM bodies;"])
def test_a_migration_that_is_killed_in_the_middle_was_never_begun(store_file: Path, before_death: str) -> None:
    """SIGKILL after any of its statements: format, tables, records and contents are those before, and the next opening is as ever."""
    before = raw(store_file)
    with SqliteStore(store_file) as store:
        held = content(store)
    words = [sys.executable, "-c", CHILD, str(store_file), str(NEXT), f"{before_death} SELECT die();"]
    assert subprocess.run(words, check=False).returncode == -signal.SIGKILL
    assert raw(store_file) == before
    with SqliteStore(store_file) as store:
        assert content(store) == held


def test_a_migration_and_its_record_are_one_transaction(store_file: Path) -> None:
    """Done, both are there; a statement that fails, and neither is."""
    before = raw(store_file)
    with pytest.raises(apsw.SQLError):
        migrate(store_file, FAILS)
    assert raw(store_file) == before
    migrate(store_file, GOOD)
    number, records, tables = raw(store_file)
    assert (number, records, "extra" in tables) == (NEXT, before[1] + 1, True)


@pytest.mark.parametrize(
    "sql",
    [LOSES, "DELETE FROM headers WHERE id & 1;", "DROP TABLE sources;", "INSERT INTO blobs VALUES (99, x'00', x'01');"],
)
def test_a_migration_that_changes_how_much_there_is_is_not_committed(store_file: Path, sql: str) -> None:
    """Counts are proved: rows that are gone, more than before, or a table that is gone undo the migration, with the figures told."""
    before = raw(store_file)
    with pytest.raises(StoreError, match="before and") as refused:
        migrate(store_file, sql)
    assert "0009_next.sql" in str(refused.value)
    assert raw(store_file) == before


def test_every_old_format_was_upgraded_with_its_counts(tmp_path: Path) -> None:
    """From the first format on, each step keeps the rows of what people put there: as many after as before."""
    path = tmp_path / "store.db"
    path.write_bytes(gzip.decompress((GOLDEN / "store-v1.db.gz").read_bytes()))
    connection = apsw.Connection(str(path))
    before = sqlite_opening._counts(connection)
    connection.close()
    SqliteStore(path).close()
    connection = apsw.Connection(str(path))
    assert sqlite_opening._counts(connection) == before
    assert min(before.values()) > 0
    connection.close()


# --- PostgreSQL -----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def schema(postgres_server: Server) -> str:
    """Give the address of a new store with one payload in it."""
    url = postgres_server.url()
    with PostgresStore(url) as store:
        store.put_blob(b"a payload")
    return url


def standing(url: str) -> tuple[object, ...]:
    """Give what a schema says of its format: its records of migrations, and its tables."""
    with connected(url) as connection:
        done = connection.execute("SELECT count(*), max(version) FROM migrations").fetchone()
        tables = connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace ORDER BY 1"
        ).fetchall()
    connection.close()
    return done, tables


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        (f"{GOOD} SELECT pg_terminate_backend(pg_backend_pid());", psycopg.OperationalError),
        (FAILS, psycopg.errors.UndefinedTable),
        ("DELETE FROM blobs;", StoreError),
    ],
    ids=["connection killed", "statement fails", "loses rows"],
)
def test_in_postgres_a_migration_is_done_whole_or_not_at_all(schema: str, sql: str, error: type[Exception]) -> None:
    """The server's process killed in the middle, a statement that fails, rows that would be lost: nothing was done, and the store opens."""
    before = standing(schema)
    number = postgres_opening.newest_format() + 1
    connection = connected(schema)
    with pytest.raises(error), connection, connection.transaction():
        postgres_opening._migrate(connection, Migration(number, "0009_next.sql", sql))  # type: ignore[arg-type]
    connection.close()
    assert standing(schema) == before
    with PostgresStore(schema) as store:
        assert len(list(store.blob_ids())) == 1
