"""From an address to a store."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from os import utime
from pathlib import Path

import pytest

from palaver.errors import InvalidInput, MissingFile, StoreBusy, StoreError
from palaver.store import Durability, MemoryStore, SqliteStore, open_store
from palaver.store.connect import shown
from palaver.store.postgres import PostgresStore
from palaver.store.postgres.opening import address
from palaver.testing.store_laws import begin
from palaver.testing.store_laws.backend import words


def test_address_opens_what_it_was_given_for(tmp_path: Path) -> None:
    """A path and the address that a store gives for it name the same file, whatever its name."""
    wanted = {"with blank.db", "100%.db", "q?a=b#c.db", "名.db", "a:b.db", "%2F.db"}
    for name in wanted:
        by_path = open_store(str(tmp_path / name))
        assert isinstance(by_path, SqliteStore)
        assert by_path.path == tmp_path / name
        begin(by_path).say(b"x")
        by_url = open_store(by_path.url, create=False, durability=Durability.NORMAL)
        assert list(by_url.sessions()) == list(by_path.sessions()) != []
        assert by_url.url == by_path.url
        by_url.close()
        by_path.close()
    assert {file.name for file in tmp_path.iterdir()} == wanted


def test_postgresql_is_loaded_when_named() -> None:
    """Importing the stores loads nothing of psycopg."""
    code = "import sys, palaver.store; sys.exit('psycopg' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_path_is_one_from_here_or_from_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store stays where it was opened, whatever the working folder becomes; `~` is the folder of the user."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for path in ("here.db", "~/here.db"):
        with closing(open_store(path)) as store:
            monkeypatch.chdir("/")
            assert store.url == f"sqlite://{tmp_path}/here.db"
            begin(store)
        with pytest.raises(StoreError):
            store.index_lag()


def test_address_of_nothing_is_refused() -> None:
    """What names no file and no kind of store is the caller's mistake; nothing is made, and no password is repeated."""
    wrong = [
        "",
        " ",
        "sqlite:",
        "sqlite://",
        "sqlite:///",
        "sqlite://host/x.db",
        "sqlite:x.db",
        "mysql://x/y",
        "memory:x",
    ]
    names = ("", "A", "a-b", "a b", "pg_temp", "1a", "a" * 64, "a;b", 'a"b', "ä")
    wrong += [f"postgresql://h/db?schema={name}" for name in names]
    wrong += ["postgresql://u:hunter%zz2@h/d", "postgresql://u:hunter2@h/d?nonsense=hunter2"]
    for url in wrong:
        with pytest.raises(InvalidInput) as told:
            open_store(url)
        assert "hunter" not in str(told.value)
    with pytest.raises(InvalidInput, match=r"no parameter 'partitons'.*Did you mean 'partitions'"):
        open_store("postgresql://u:hunter2@h/d?partitons=4")
    with pytest.raises(InvalidInput, match="MemoryStore"):
        SqliteStore(":memory:")
    with pytest.raises(StoreError, match="does not answer"):
        open_store("postgresql://palaver@127.0.0.1:1/none")


def test_shown_address_has_no_password() -> None:
    """Wherever an address has it: before the host, among the parameters, in one of several databases."""
    wanted = {
        "postgresql:///work?host=/tmp": "postgresql:///work?host=/tmp",
        "postgresql://ann:hunter2@h:5/d?schema=x": "postgresql://ann:***@h:5/d?schema=x",
        "postgresql://ann@h/d?password=hunter2&schema=x": "postgresql://ann@h/d?password=***&schema=x",
        "postgresql://a:hunter2@h/d postgresql://b:hunter2@h/e": "postgresql://a:***@h/d postgresql://b:***@h/e",
        "sqlite:///my notes/a.db": "sqlite:///my notes/a.db",
        "memory:": "memory:",
    }
    store = MemoryStore()
    for url, safe in wanted.items():
        store.url = url
        assert shown(store) == safe


def test_postgres_address_may_leave_out_the_host() -> None:
    """An address in libpq's form for the local socket, with and without parameters of both."""
    for url, kept in (
        ("postgresql:///work", "postgresql:///work"),
        ("postgresql:///work?schema=x&host=/tmp", "postgresql:///work?host=/tmp"),
    ):
        assert address(url).conninfo == kept


def test_reading_makes_nothing(url: str, tmp_path: Path) -> None:
    """A store that must be there is missing when nothing, or an empty file, is there; it stays so."""
    empty = tmp_path / "empty.db"
    empty.touch()
    utime(empty, (1.0, 1.0))
    for place in (url, str(empty), str(tmp_path / "a" / "store.db"), "memory:"):
        for create, read_only in ((False, False), (False, True)):
            with pytest.raises(MissingFile):
                open_store(place, create=create, read_only=read_only)
    assert ([one.name for one in tmp_path.iterdir()], empty.stat().st_size) == (["empty.db"], 0)
    with pytest.raises(MissingFile):
        open_store(url, create=False)


def test_store_opened_read_only_refuses_every_write(url: str) -> None:
    """It reads what others write, and writes nothing, even where it could."""
    with closing(open_store(url)) as store, closing(open_store(url, read_only=True)) as reader:
        begun = begin(store)
        begun.say(b"a")
        assert reader.body(begun.dialog, 0) == b"a"
        for write in (
            lambda: reader.append(begun.dialog, [words()], 1),
            lambda: reader.put_blob(begun.session, b"x"),
            lambda: reader.update_session(begun.session, name="x"),
            lambda: reader.index(lambda _kind, body: body.decode()),
            lambda: reader.transaction().__enter__(),
        ):
            with pytest.raises(StoreError) as told:
                write()
            assert told.value.reason == "read_only"


def test_writer_waits_for_another_not_for_ever(url: str) -> None:
    """Whoever finds the dialog, the lock or the store taken is told when the wait is over; reading goes on meanwhile."""
    kind = PostgresStore if "://" in url else SqliteStore
    with closing(open_store(url)) as store, kind(url, wait=0.1) as impatient:
        begun = begin(store)
        begun.say(b"a")
        with store.transaction(lock="name"):
            begun.say(b"inside")
            with pytest.raises(StoreBusy):
                impatient.append(begun.dialog, [words()], 0)
            with pytest.raises(StoreBusy), impatient.transaction(lock="name"):
                pass
            assert impatient.last(begun.dialog).seq == 0
        assert impatient.append(begun.dialog, [words()], 1)[0].seq == 2
        with impatient.transaction(), ThreadPoolExecutor(1) as threads:
            impatient.append(begun.dialog, [words()], 2)
            late = threads.submit(impatient.append, begun.dialog, [words()], 3)
            assert isinstance(late.exception(), StoreBusy)
