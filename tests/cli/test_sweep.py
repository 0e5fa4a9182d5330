"""palaver sweep: what a writer left that died between putting a payload and naming it, named by verify and doctor, removed when somebody says so."""

import gzip
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from shutil import copy
from typing import Any

import apsw
import pytest

from palaver.cli.outcome import Exit
from palaver.errors import StoreBusy
from palaver.session import Session
from palaver.store import SqliteStore
from palaver.store.sweeping import DAY, sweep, sweepable
from tests.cli.commands import run

GOLDEN = Path(__file__).parent.parent / "golden"

DIES = """
import os, signal, sys
from palaver import Session
from palaver.session import Session
from palaver.store import SqliteStore

class Dies(SqliteStore):
    def append(self, *words):
        os.kill(os.getpid(), signal.SIGKILL)

session = Session.create(SqliteStore(sys.argv[1]), "talk")
session.root.put_image(b"\\x89PNG\\r\\n\\x1a\\n" + bytes(30))
picture = b"\\x89PNG\\r\\n\\x1a\\n" + bytes(40)
if sys.argv[2] == "by itself":
    session.store.put_blob(picture)
Session.open("talk", Dies(sys.argv[1])).root.put_image(picture)
"""


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Let a writer that puts a picture by itself be killed before the entry that names it, and give the folder of the store."""
    folder = tmp_path_factory.mktemp("left")
    _dies(folder / "store.db", "by itself")
    return folder


def _dies(store: Path, how: str) -> None:
    ended = subprocess.run([sys.executable, "-c", DIES, str(store), how], check=False)
    assert ended.returncode == -signal.SIGKILL


def test_a_dialogs_writer_that_dies_leaves_nothing(tmp_path: Path) -> None:
    """A picture and the entry that names it are one step: who is killed between the two leaves neither."""
    _dies(tmp_path / "store.db", "together")
    with SqliteStore(tmp_path / "store.db") as store:
        assert (list(store.strays()), len(list(store.blob_ids()))) == ([], 1)


@pytest.fixture
def store(left: Path, tmp_path: Path) -> Path:
    """Give a store with what it left, for one test."""
    for file in left.iterdir():
        copy(file, tmp_path)
    return tmp_path / "store.db"


def _age(path: Path, seconds: float) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE blob_times SET at = at - ?", (seconds,))
    connection.close()


def _last(text: str) -> dict[str, Any]:
    row: dict[str, Any] = json.loads(text.splitlines()[-1])
    return row


def test_what_a_dead_writer_left_is_named(store: Path) -> None:
    """Verify and doctor give its count, its bytes and its hash, in words and as JSON; it is no fault."""
    (stray,) = SqliteStore(store).strays()
    for command, words in (("verify", (store,)), ("doctor", ("--store", store))):
        told = run(command, *words)
        assert told.code == Exit.OK
        assert "1 payload (48 bytes) is named by nothing" in told.out
        assert stray.blob_id in told.out
        assert stray.blob_id in run(command, *words, "--json").out
    row = _last(run("verify", store, "--json").out)
    assert (row["strays"], row["stray_bytes"], row["sound"]) == (1, 48, True)


def test_it_is_removed_when_it_is_old_and_somebody_says_so(store: Path) -> None:
    """A new one stays, for its writer may be alive; an old one is shown, stays without --yes, and is gone with it; the named picture stays."""
    young = run("sweep", store, "--yes")
    assert (young.code, "Removed 0 payloads" in young.out) == (Exit.OK, True)
    _age(store, 2 * DAY)
    shown = run("sweep", store)
    assert "Would remove 1 payload (48 bytes)" in shown.out
    assert len(list(SqliteStore(store).blob_ids())) == 2
    row = run("sweep", store, "--json").row()
    assert (row["preview"], len(row["to_remove"]), row["younger"]) == (True, 1, [])
    done = run("sweep", store, "--yes", "--json").row()
    assert (done["bytes"], len(done["removed"]), done["kept"], done["pending"]) == (48, 1, [], [])
    assert len(list(SqliteStore(store).blob_ids())) == 1
    assert "named by nothing" not in run("verify", store).out
    assert run("verify", store).code == Exit.OK


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--older-than", "0s"), Exit.INPUT),
        (("--older-than", "59m", "--yes"), Exit.INPUT),
        (("--older-than", "soon"), Exit.INPUT),
        (("--preview", "--yes"), Exit.USAGE),
    ],
)
def test_words_that_cannot_be(store: Path, words: tuple[str, ...], code: Exit) -> None:
    """An age under an hour, or none, and both of look and do are refused; nothing is removed."""
    _age(store, 2 * DAY)
    assert run("sweep", store, *words).code == code
    assert len(list(SqliteStore(store).strays())) == 1


def test_places_that_are_no_store(tmp_path: Path, store: Path) -> None:
    """A store that is not there, one in memory, a folder, one that may only be read: each has its code, and nothing is made."""
    assert run("sweep", tmp_path / "none.db").code == Exit.MISSING
    assert not (tmp_path / "none.db").exists()
    assert run("sweep", "memory:").code == Exit.INPUT
    assert run("sweep", tmp_path).code == Exit.INPUT
    _age(store, 2 * DAY)
    if os.geteuid() != 0:
        store.chmod(0o400)
        assert run("sweep", store).code == Exit.OK
        assert run("sweep", store, "--yes").code == Exit.STORE


def test_beside_others(store: Path) -> None:
    """A reader that began before keeps the log: it is told as pending, and what was removed is gone; what another sweep took is told by that one."""
    _age(store, 2 * DAY)
    with SqliteStore(store) as other:
        plan = sweepable(other)
        reader = apsw.Connection(str(store))
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM blobs").get == 2
        Session.open("talk", other).root.put_text("written meanwhile")
        done = run("sweep", store, "--yes", "--json")
        assert (done.code, len(done.row()["removed"])) == (Exit.FOUND, 1)
        assert "write-ahead log" in done.row()["pending"][0]
        reader.close()
        swept = sweep(other, plan)
        assert (swept.removed, swept.kept, swept.left, swept.pending) == ((), (), (), ())


def test_a_store_of_an_older_format(tmp_path: Path) -> None:
    """To look, it has to be upgraded, and says how; a sweep upgrades it, and nothing in it is due, for all counts as put just now."""
    with gzip.open(GOLDEN / "store-v4.db.gz") as packed:
        (tmp_path / "old.db").write_bytes(packed.read())
    connection = apsw.Connection(str(tmp_path / "old.db"))
    connection.execute("UPDATE sources SET raw = NULL")  # it is none: where a list cannot be read, nothing is swept
    connection.close()
    told = run("sweep", tmp_path / "old.db")
    assert (told.code, "format 4" in told.err, "upgrades" in told.err) == (Exit.STORE, True, True)
    assert "Removed 0 payloads" in run("sweep", tmp_path / "old.db", "--yes").out
    assert run("sweep", tmp_path / "old.db").code == Exit.OK


def test_others_that_keep_the_store(store: Path) -> None:
    """A writer that holds the store for too long, before anything was removed: the store is busy, and nothing is gone; doctor reads all the same."""
    _age(store, 2 * DAY)
    with SqliteStore(store, wait=0.05) as other:
        plan = sweepable(other)
        with SqliteStore(store) as writer, writer.together():
            writer.put_blob(b"x")
            with pytest.raises(StoreBusy):
                sweep(other, plan)
            assert "named by nothing" in run("doctor", "--store", store).out
        assert len(sweep(other, plan).removed) == 1
