"""From an address to a store."""

import subprocess
import sys
from pathlib import Path

import pytest

from palaver.errors import InvalidInput, MissingFile, StoreError
from palaver.store import Durability, MemoryStore, SqliteStore, open_store


def test_memory_is_a_new_store_each_time() -> None:
    """`memory:` makes an empty store; one that must be there already cannot be."""
    one, two = open_store("memory:"), open_store(":memory:")
    assert isinstance(one, MemoryStore)
    assert one is not two
    with pytest.raises(MissingFile):
        open_store("memory:", create=False)


def test_address_opens_what_it_was_given_for(tmp_path: Path) -> None:
    """A path and the address that a store gives for it name the same file, whatever its name."""
    wanted = {"with blank.db", "100%.db", "q?a=b#c.db", "名.db", "a:b.db", "%2F.db"}
    for name in wanted:
        by_path = open_store(str(tmp_path / name))
        assert isinstance(by_path, SqliteStore)
        assert by_path.path == tmp_path / name
        by_path.put_blob(b"x")
        by_url = open_store(by_path.url, create=False, durability=Durability.NORMAL)
        assert by_url.has_blob(by_path.put_blob(b"x"))
        assert by_url.url == by_path.url
        by_url.close()
        by_path.close()
    assert {file.name for file in tmp_path.iterdir()} == wanted


def test_with_block_closes_the_store(tmp_path: Path) -> None:
    """The block is given the store itself, and closes it at its end."""
    for store in (MemoryStore(), SqliteStore(tmp_path / "store.db")):
        with store as given:
            assert given is store
        with pytest.raises(StoreError):
            store.index_lag()


def test_relative_path_is_one_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store stays where it was opened, whatever the working folder becomes."""
    monkeypatch.chdir(tmp_path)
    store = open_store("here.db")
    monkeypatch.chdir("/")
    assert store.url == f"sqlite://{tmp_path}/here.db"
    store.put_blob(b"x")
    store.close()


def test_tilde_is_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`~` is the folder of the user."""
    monkeypatch.setenv("HOME", str(tmp_path))
    store = open_store("~/s.db")
    assert store.url == f"sqlite://{tmp_path}/s.db"
    store.close()


def test_address_of_nothing_is_refused() -> None:
    """What names no file and no kind of store is the caller's mistake; nothing is made."""
    wrong = ("sqlite:", "sqlite://", "sqlite:///", "sqlite://host/x.db", "sqlite:x.db", "mysql://x/y", "memory:x")
    for address in ("", " ", *wrong):
        with pytest.raises(InvalidInput):
            open_store(address)


def test_address_of_postgresql_names_a_server() -> None:
    """Where no server answers, the store is unavailable; what is no address is the caller's mistake."""
    with pytest.raises(StoreError, match="does not answer"):
        open_store("postgresql://palaver@127.0.0.1:1/none")
    for wrong in ("postgresql://h/d?schema=A-b", "postgresql://h/d?schema=pg_x", "postgresql://h/d?nonsense=1"):
        with pytest.raises(InvalidInput):
            open_store(wrong)


def test_postgresql_is_loaded_when_named() -> None:
    """Importing the stores loads nothing of psycopg."""
    code = "import sys, palaver.store; sys.exit('psycopg' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_missing_store_is_not_made_when_told_so(tmp_path: Path) -> None:
    """`create=False` opens what is there, or says that nothing is."""
    with pytest.raises(MissingFile):
        open_store(str(tmp_path / "x.db"), create=False)
    assert list(tmp_path.iterdir()) == []


def test_file_store_is_not_in_memory() -> None:
    """SQLite's own word for memory would make a file of that name: it is refused with the way to what was meant."""
    with pytest.raises(InvalidInput, match="MemoryStore"):
        SqliteStore(":memory:")
