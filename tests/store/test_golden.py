"""Formats: the golden file of each opens, and migrations are numbered, recorded, and lose nothing."""

import gzip
import shutil
from pathlib import Path
from typing import Any

import apsw
import pytest

from palaver.errors import StoreError
from palaver.store import MemoryStore, SqliteStore, Store, verify_store
from palaver.store.postgres import PostgresStore
from palaver.store.postgres import opening as postgres_opening
from palaver.store.sql.statements import Migration
from palaver.store.sqlite import opening as sqlite_opening
from palaver.testing.store_laws.backend import begin, words
from tests.postgres import Server
from tests.store.golden import CHILD, GOLDEN, ROOT, write
from tests.store.postgres_backend import run
from tests.stores import fingerprint


def as_before(store: Store) -> None:
    """Assert that a store gives what is written into one today, finds what was indexed, and can be written."""
    today = MemoryStore()
    write(today)
    assert fingerprint(store) == fingerprint(today)
    for word in ("foo_bar", "你", "calling"):
        assert [hit.handle for hit in store.search(word)] == [hit.handle for hit in today.search(word)]
    for dialog in (ROOT, CHILD):
        assert store.verify(dialog) == ()
        store.append(dialog, [words()], store.last(dialog).turn_head)


@pytest.mark.parametrize("version", range(1, sqlite_opening.newest_format() + 1))
def test_p12_sqlite_file_of_each_format_is_read(tmp_path: Path, version: int) -> None:
    """A file of each format opens, is upgraded, and gives all that was written into it."""
    path = tmp_path / "store.db"
    path.write_bytes(gzip.decompress((GOLDEN / f"store-v{version}.db.gz").read_bytes()))
    with SqliteStore(path) as store:
        as_before(store)


@pytest.mark.parametrize("version", range(1, postgres_opening.newest_format() + 1))
def test_p12_postgres_schema_of_each_format_is_read(postgres_server: Server, version: int) -> None:
    """A schema of each format opens, is upgraded, and gives all that was written into it."""
    url = postgres_server.url("golden")
    run(url, "DROP SCHEMA IF EXISTS golden CASCADE")
    run(url, gzip.decompress((GOLDEN / f"postgres-v{version}.sql.gz").read_bytes()).decode())
    with PostgresStore(url) as store:
        as_before(store)


def _next(monkeypatch: pytest.MonkeyPatch, opening: Any, sql: str) -> None:  # noqa: ANN401 - a module of either
    """Let a palaver of tomorrow have one migration more."""
    formats = (*opening.formats(), Migration(opening.newest_format() + 1, "tomorrow", sql))
    monkeypatch.setattr(opening, "formats", lambda: formats)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_migration_is_done_once_or_undone(
    postgres_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Migrations are numbered without gaps. The next is recorded with its digest; one that loses rows is undone; reading alone upgrades nothing."""
    opening: Any = sqlite_opening if kind == "sqlite" else postgres_opening
    assert [one.version for one in opening.formats()] == list(range(1, opening.newest_format() + 1))
    place = str(tmp_path / "store.db") if kind == "sqlite" else postgres_server.url()
    make: Any = SqliteStore if kind == "sqlite" else PostgresStore
    with make(place) as store:
        begun = begin(store)
        blob = store.put_blob(begun.session, b"payload")
    with monkeypatch.context() as later:
        _next(later, opening, "DELETE FROM blob_bytes; DELETE FROM blobs")
        with pytest.raises(StoreError, match="would lose rows: blobs 1 before and 0 after"):
            make(place)
        with pytest.raises(StoreError) as told:
            make(place, read_only=True, wait=0.1)
        assert told.value.reason == "read_only"
    with make(place) as store:
        assert store.blob(begun.session, blob) == b"payload"
    _next(monkeypatch, opening, "CREATE TABLE later (x integer)")
    for _ in range(2):
        with make(place) as store:
            assert store.blob(begun.session, blob) == b"payload"
    monkeypatch.undo()
    with pytest.raises(StoreError) as told:
        make(place)
    assert told.value.reason == "too_new"


def test_killed_migration_begins_anew(tmp_path: Path) -> None:
    """A file whose maker died after any write of it is made whole by whoever comes next."""
    path = tmp_path / "store.db"
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "WAL")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(sqlite_opening.formats()[0].sql)
    for name in ("store.db", "store.db-wal"):
        (tmp_path / "left").mkdir(exist_ok=True)
        shutil.copy(tmp_path / name, tmp_path / "left" / name)
    connection.close()
    with SqliteStore(tmp_path / "left" / "store.db") as store:
        assert list(verify_store(store)) == []
