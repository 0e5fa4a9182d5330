"""What was erased is in no file any more: marks planted everywhere, and a look at the raw bytes of everything that the store wrote."""

import tempfile
from hashlib import sha256
from pathlib import Path

import apsw
import pytest

from palaver.erasure.erase import erase, finish_erasures
from palaver.erasure.plan import preview_erasure
from palaver.erasure.receipts import Receipt, verify_receipt
from palaver.errors import Erased, InvalidInput, StoreError
from palaver.ids import BlobId, SessionId
from palaver.session import Session
from palaver.store import SqliteStore
from palaver.store.erasing import Erasing, NotedFile
from palaver.store.postgres import PostgresStore
from palaver.transcripts import export
from tests import postgres
from tests.damage.sqlite_disk import Disk, Failure, sqlite_on
from tests.privacy.planted import Planted, found, plant
from tests.store.postgres_backend import connected

COMPRESSED = {"source"}
"""Marks that lie compressed, and so cannot be seen in raw bytes before an erasure either; their payloads are looked for by name."""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder for everything: the store, temporary files, bundles."""
    temp = tmp_path / "temp"
    temp.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temp))
    for name in ("TMPDIR", "SQLITE_TMPDIR"):
        monkeypatch.setenv(name, str(temp))
    return tmp_path


def _bundle(store: Erasing, planted: Planted, folder: Path) -> None:
    """Export a session, as the command does, so that the store knows the file."""
    path = folder / "bundles" / f"{planted.session}.palaver"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"".join(export(store, planted.session, "bundle").pieces))
    note_file(store, planted.session, path)


def note_file(store: Erasing, session: SessionId, path: Path) -> None:
    """Note a file as the command that exports does."""
    store.note_file(session, NotedFile(str(path), sha256(path.read_bytes()).hexdigest(), path.stat().st_ino))


def _asked(scope: str, planted: Planted, session: Session) -> dict[str, object]:
    asked: dict[str, dict[str, object]] = {
        "session": {"session": planted.session},
        "subject": {"subject": session.record.subject},
        "dialog": {"dialog": planted.dialog, "children": True},
        "tombstones": {"dialog": planted.dialog, "tombstones": True},
        "entries": {"entries": planted.said},
    }
    return asked[scope]


def _gone(scope: str, planted: Planted) -> dict[str, str]:
    """Return the marks that must be gone: what is the session's stays where the session does."""
    of_session = {"name", "subject", "workdir", "metadata", "value key", "value", "identity", "path"}
    stays = set() if scope in {"session", "subject"} else of_session
    return {where: one for where, one in planted.marks.items() if where not in stays}


def _payloads(store: SqliteStore) -> set[BlobId]:
    return {blob for record in store.sessions() for blob in store.blob_ids(record.session_id)}


@pytest.mark.parametrize(
    ("scope", "thorough"),
    [
        ("session", True),
        ("session", False),
        ("subject", True),
        ("dialog", True),
        ("tombstones", False),
        ("entries", True),
    ],
)
def test_grep_over_the_raw_files_finds_nothing(place: Path, scope: str, thorough: bool) -> None:
    """After an erasure no mark of what was erased is in the database, its log, side files, temporary files or bundles; the rest is there."""
    with SqliteStore(place / "store.db") as store:
        going = plant(store, place, "going")
    with SqliteStore(place / "store.db") as store:  # what was planted lies in the file now, and in its log from here on
        staying = plant(store, place, "staying")
        Session.open(store, going.session).root.marks.label(going.said[3], f"later {going.marks['label']}")
        _bundle(store, going, place)
        before = found([place], going.marks)
        assert before.keys() >= going.marks.keys() - COMPRESSED, "the marks can be found before"
        assert {"store.db", "store.db-wal"} <= {name for files in before.values() for name in files}
        pieces = set(_payloads(store))
        asked = _asked(scope, going, Session.open(store, going.session))
        files = preview_erasure(store, **asked).files  # type: ignore[arg-type]
        receipt = erase(store, **asked, files=files, thorough=thorough)  # type: ignore[arg-type]
        assert receipt.complete, receipt.pending
        assert found([place], _gone(scope, going)) == {}, "while the store is open"
        assert set(receipt.blobs) == pieces - set(_payloads(store)), "pictures and kept files went with it"
        assert len(receipt.blobs) >= 3
        verdict = verify_receipt(store, receipt)
        assert verdict.holds, verdict.problems
        assert not verdict.pending
    assert found([place], _gone(scope, going)) == {}, "after it was closed"
    kept = found([place], staying.marks)
    assert kept.keys() >= staying.marks.keys() - COMPRESSED, "what was not asked for is all there"
    with SqliteStore(place / "store.db") as store:
        assert Receipt.from_json(receipt.to_json()) == receipt
        assert verify_receipt(store, receipt.to_json()).holds
        assert all(store.verify(node.dialog_id) == () for node in store.nodes(staying.session))


def test_a_reader_that_holds_the_log_is_told_of(place: Path) -> None:
    """While another process reads the store as it was, the receipt says what is pending; when it has ended, finishing leaves nothing."""
    store = SqliteStore(place / "store.db", wait=0.2)
    planted = plant(store, place, "going")
    reader = apsw.Connection(str(place / "store.db"))
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM bodies").get
    receipt = erase(store, session=planted.session)
    assert not receipt.complete
    assert "log" in receipt.pending[-1]
    assert verify_receipt(store, receipt).pending
    reader.execute("COMMIT")
    reader.close()
    (finished,) = finish_erasures(store)
    assert finished.complete
    assert finish_erasures(store) == ()
    assert verify_receipt(store, receipt.id).pending == ()
    store.close()
    assert found([place], planted.marks) == {}


def exported(store: Erasing, folder: Path) -> tuple[Session, Path]:
    """Return a session, and the file that it was exported to."""
    session = Session.create(store, "going")
    session.root.put_text("a secret")
    path = folder / "going.jsonl"
    path.write_text("a secret")
    note_file(store, session.session_id, path)
    return session, path


def test_only_files_that_the_caller_names_are_deleted(place: Path) -> None:
    """A file stays, and is pending, until somebody who was shown its name names it; a receipt with the user's own file deletes nothing."""
    mine = place / "mine.txt"
    mine.write_text("precious")
    with SqliteStore(place / "store.db") as store:
        session, path = exported(store, place)
        assert preview_erasure(store, session=session.session_id).files == (str(path),)
        note_file(store, session.session_id, mine)  # as in a store of somebody else, with its true digest and inode
        receipt = session.erase()
        assert f"the file {path} is to be deleted" in receipt.pending
        assert [one.complete for one in finish_erasures(store)] == [False]
        assert path.exists()
        assert [one.complete for one in finish_erasures(store, files=[path])] == [False]
        assert not path.exists()
        assert mine.read_text() == "precious"
        assert [one.complete for one in finish_erasures(store, files=[mine])] == [True]
    assert found([place], {"file": path.name}) == {}


@pytest.mark.parametrize("how", ["rewritten", "replaced", "another path", "symlink", "folder", "not noted"])
def test_a_file_that_is_not_the_noted_one_is_never_deleted(place: Path, how: str) -> None:
    """Another session's export, the user's own file, a link or a folder under the noted name stays, whoever names it."""
    with SqliteStore(place / "store.db") as store:
        session, path = exported(store, place)
        mine = place / "mine.txt"
        mine.write_text("a secret")
        if how == "rewritten":
            path.write_text("b secret")
        elif how == "replaced":
            mine = mine.replace(path)
        elif how in {"symlink", "folder"}:
            path.unlink()
            path.symlink_to(mine) if how == "symlink" else path.mkdir()
        elif how == "not noted":
            store.note_file(session.session_id, NotedFile(str(mine)))
        if how not in {"replaced", "not noted"}:
            with pytest.raises(InvalidInput, match="mine"):
                session.erase(files=[path, mine])
            assert session.root.messages, "nothing was erased"
        receipt = session.erase(files=[path, mine] if how == "not noted" else [path])
        assert mine.exists()
        assert receipt.complete is (how == "another path")
        assert path.exists() is (how not in {"another path", "not noted"})


def test_the_files_of_a_server_hold_nothing(postgres_server: postgres.Server, tmp_path: Path) -> None:
    """On PostgreSQL no mark is in the tables' files after VACUUM FULL; the write-ahead log may hold some."""
    tables = [postgres_server.data / "base"]

    def on_disk(planted: Planted) -> dict[str, list[str]]:
        with connected(store.url) as connection:
            connection.execute("CHECKPOINT")
        connection.close()
        return found(tables, planted.marks)

    with PostgresStore(postgres_server.url()) as store:
        going, staying = plant(store, tmp_path, "going"), plant(store, tmp_path, "staying")
        before = on_disk(going)
        assert len(before) > 10, "the marks can be found before"
        dirty = erase(store, subject=Session.open(store, going.session).record.subject, thorough=False)
        assert "VACUUM FULL" in dirty.pending[0]
        (receipt,) = finish_erasures(store)
        assert receipt.complete
        assert on_disk(going) == {}
        assert on_disk(staying).keys() >= before.keys()
        assert verify_receipt(store, receipt).holds
        with pytest.raises(Erased):
            store.session(going.session)


@pytest.mark.parametrize("failure", [Failure.FULL, Failure.WRITE, Failure.FLUSH])
def test_a_disk_that_fails_leaves_all_or_a_receipt(place: Path, failure: Failure) -> None:
    """An erasure that raises has erased nothing; one that is done gives its receipt with what is pending, which is taken up later."""
    outcomes = set()
    for first in range(1, 8) if failure is Failure.FLUSH else (1, 8, 20, 44, 68, 92):
        with sqlite_on(Disk()) as disk, SqliteStore(place / f"{failure.value}-{first}.db") as store:
            session = Session.create(store, "going")
            session.root.put_text("a secret " * 2_000)
            disk.fail(failure, first, 1_000_000)
            try:
                receipt = erase(store, session=session.session_id)
            except StoreError:
                disk.fail(None)
                outcomes.add("whole")
                assert Session.open(store, "going").root.messages[0].text_content().startswith("a secret")
                continue
            disk.fail(None)
            outcomes.add("complete" if receipt.complete else "pending")
            done = finish_erasures(store)
            assert [one.id for one in done if one.complete] == ([] if receipt.complete else [receipt.id])
            assert verify_receipt(store, receipt).holds
    assert outcomes >= {"whole", "pending"}
