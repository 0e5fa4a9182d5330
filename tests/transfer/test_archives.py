"""Archives: a session goes out and comes back as it was; whatever is interrupted or lost on the way, nothing of it is lost, and the error says what to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from palaver import MemoryStore, Session, Store, UserMessage
from palaver.erasure import erase, preview_erasure, verify_receipt
from palaver.errors import Conflict, InvalidInput, MissingFile, NotFound, StoreDamaged, StoreError
from palaver.ids import SessionId
from palaver.log import TurnStarted
from palaver.session import searchable
from palaver.store import verify_store
from palaver.store.erasing import Erasing
from palaver.store.protocol import Copyable
from palaver.testing.logs import model
from palaver.testing.session_laws import check_session
from palaver.transcripts import Importer
from palaver.transfer.archives import FolderShelf, ObjectShelf, Shelf, archive, archived, open_shelf, restore
from palaver.transfer.sync import sync
from tests.formats.samples import Claude, text
from tests.stores import fingerprint
from tests.wire.pictures import png


def long_session(store: Store, folder: Path) -> SessionId:
    """Return an imported session with its kept file, branches, a picture, labels, a compaction, recorded calls and an erased entry."""
    transcript = Claude()
    transcript.user("u1", "Count the lamps.")
    transcript.model("a1", "m1", text("Twelve."))
    (folder / "talk.jsonl").write_bytes(transcript.bytes())
    session_id = next(Importer(store).import_path(folder / "talk.jsonl")).session_id
    session = Session(store, session_id)
    root = session.root
    root.put_image(png(3, 4))
    root.append(model("A lamp."))
    for number in range(8):
        root.append([UserMessage.text(f"{number} " + "w " * 60), model("v " * 60)])
    root.compaction.preview("palaver", 600).approve()
    erase(store, entries=[root.messages.handle(4)])
    root.reload().append(UserMessage.text("and now"))
    root.calls.record(root.request("openai", "gpt-5"))
    root.fork().append(UserMessage.text("on a branch"))
    root.marks.label(root.messages.handle(1), "answer")
    store.index(searchable)
    return session_id


class CutError(Exception):
    """The machine stopped."""


class Cupboard:
    """Shelves in memory by address, which can fail or lose things."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.fails = False

    def __call__(self, address: str) -> Shelf:  # noqa: ARG002 - all are this one
        """Return the shelf at an address."""
        return self

    def put(self, name: str, pieces: Iterable[bytes]) -> None:
        """Keep a file."""
        whole = b"".join(pieces)
        if self.fails:
            raise OSError("no network\n\nDebug source:\nGeneric {")
        self.files[name] = whole

    def get(self, name: str) -> Iterator[bytes]:
        """Return a file."""
        if name not in self.files:
            raise FileNotFoundError(name)
        return iter([self.files[name]])


def test_session_comes_back_as_it_was(store: Store, tmp_path: Path) -> None:
    """In the archive it costs a row; opened, it has the same ids, handles, headers, bytes, media, kept file and search results as before."""
    session_id = long_session(store, tmp_path)
    begun = Session.create(store, "another").root
    begun.append(UserMessage.text("stays"))
    before = fingerprint(store)
    root = Session(store, session_id).root
    request, place = root.calls[-1].request(), root.messages.handle(3)
    about = archive(store, session_id, f"file://{tmp_path}/archive")
    assert isinstance(store, Copyable)
    assert (store.nodes(session_id), list(store.blob_ids(session_id))) == ((), [])
    assert [(source.raw, source.index) for source in store.sources(session_id)] == [(None, None)]
    assert store.search("branch", session_id=session_id) == ()
    assert archived(store.session(session_id)) == about
    assert not list(verify_store(store))
    with pytest.raises(NotFound, match=r"Session\.open"):
        _ = Session(store, session_id).root
    with pytest.raises(InvalidInput, match="is archived in"):
        archive(store, session_id, f"file://{tmp_path}/elsewhere")
    session = Session.open(store, session_id)
    assert fingerprint(store) == before
    assert session.root.calls[-1].request().data == request.data
    assert str(session.recall(place)) == str(root.recall(place))
    store.index(searchable)
    assert store.search("branch", session_id=session_id)
    assert not list(verify_store(store))
    check_session(session)
    with pytest.raises(InvalidInput, match="not archived"):
        restore(store, session_id)


def test_archive_that_fails_removes_nothing(store: Store, tmp_path: Path) -> None:
    """Out of reach, changed on the way, written meanwhile, in a turn, or cut before the removal is durable: the session is in the store as it was."""
    session_id = long_session(store, tmp_path)
    before = fingerprint(store)
    cupboard = Cupboard()
    cupboard.fails = True
    with pytest.raises(StoreError, match="no network") as unreachable:
        archive(store, session_id, "s3://lamps", shelves=cupboard)
    assert (unreachable.value.reason, "Debug" in str(unreachable.value)) == ("unavailable", False)

    class Lossy(Cupboard):
        def put(self, name: str, pieces: Iterable[bytes]) -> None:
            self.files[name] = b"".join(pieces)[:-30]

    with pytest.raises(StoreDamaged, match="other bytes"):
        archive(store, session_id, "s3://lamps", shelves=Lossy())
    with suppress(CutError), store.transaction():
        archive(store, session_id, "s3://lamps", shelves=Cupboard())
        raise CutError
    assert fingerprint(store) == before

    class Busy(Cupboard):
        def put(self, name: str, pieces: Iterable[bytes]) -> None:
            super().put(name, pieces)
            Session(store, session_id).root.append(UserMessage.text("meanwhile"))

    with pytest.raises(Conflict, match="while it was archived"):
        archive(store, session_id, "s3://lamps", shelves=Busy())
    assert Session(store, session_id).root.messages[-1].text_content() == "meanwhile"
    Session(store, session_id).root.record(TurnStarted())
    with pytest.raises(Conflict, match="turn"):
        archive(store, session_id, "s3://lamps", shelves=Cupboard())
    assert archived(store.session(session_id)) is None


def test_lost_or_changed_archive_says_what_to_do(store: Store, tmp_path: Path) -> None:
    """What is gone, changed or out of reach is a typed error with the address; once it is back, the session opens."""
    session_id = long_session(store, tmp_path)
    before = fingerprint(store)
    about = archive(store, session_id, f"file://{tmp_path}/archive")
    (file,) = (tmp_path / "archive").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    whole = file.read_bytes()
    file.unlink()
    with pytest.raises(MissingFile, match="archive") as missing:
        Session.open(store, session_id)
    assert "palaver erase" in missing.value.hint
    assert missing.value.path == about.address
    file.write_bytes(whole.replace(b"lamps", b"LAMPS"))
    with pytest.raises(StoreDamaged, match="other bytes"):
        Session.open(store, session_id)
    file.write_bytes(whole)
    Session.open(store, session_id)
    assert fingerprint(store) == before


def test_cut_restore_is_done_by_the_next(store: Store, tmp_path: Path) -> None:
    """A restore is one step: where it is cut, the session is in the archive as before."""
    session_id = long_session(store, tmp_path)
    before = fingerprint(store)
    archive(store, session_id, f"file://{tmp_path}/archive")
    row = fingerprint(store)
    with suppress(CutError), store.transaction():
        restore(store, session_id)
        raise CutError
    assert fingerprint(store) == row
    restore(store, session_id)
    assert fingerprint(store) == before


def test_erasure_reaches_an_archive(store: Store, tmp_path: Path) -> None:
    """The erasure of an archived session deletes the file that is named to it; what lies in object storage is named in the receipt."""
    assert isinstance(store, Erasing)
    session_id = long_session(store, tmp_path)
    archive(store, session_id, f"file://{tmp_path}/archive")
    (path,) = preview_erasure(store, session=session_id).files
    receipt = erase(store, session=session_id, files=[path])
    assert list((tmp_path / "archive").iterdir()) == []
    assert verify_receipt(store, receipt).holds
    other = Session.create(store, "other").root
    other.append(UserMessage.text("secret"))
    about = archive(store, other.session_id, "s3://lamps", shelves=Cupboard())
    receipt = erase(store, session=other.session_id)
    assert any(about.address in words for words in receipt.beyond)


def test_importing_again_makes_no_second_session(store: Store, tmp_path: Path) -> None:
    """A file whose session is archived is as it was imported, or the error says how to bring the session back; then it grows."""
    transcript, importer = Claude(), Importer(store)
    transcript.user("u1", "Count the lamps.")
    (file := tmp_path / "talk.jsonl").write_bytes(transcript.bytes())
    session_id = next(importer.import_path(file)).session_id
    archive(store, session_id, f"file://{tmp_path}/archive")
    (same,) = importer.import_path(file)
    assert (same.session_id, same.outcome, same.entries) == (session_id, "unchanged", 0)
    transcript.model("a1", "m1", text("Twelve."))
    file.write_bytes(transcript.bytes())
    with pytest.raises(InvalidInput, match=f"(?s)is archived.*palaver archive {session_id[:12]} --restore"):
        list(importer.import_path(file))
    assert [record.session_id for record in store.sessions()] == [session_id]
    restore(store, session_id)
    (grown,) = importer.import_path(file)
    assert (grown.session_id, grown.outcome, grown.entries > 0) == (session_id, "grown", True)


def test_archived_session_is_left_alone_by_a_sync(store: Store, tmp_path: Path) -> None:
    """A sync neither fills an archived session nor takes it for an empty one; the report says how to bring it back."""
    session_id = long_session(store, tmp_path)
    other = MemoryStore()
    sync(store, other)
    archive(store, session_id, f"file://{tmp_path}/archive")
    before = fingerprint(other)
    for side in (other, f"{tmp_path}/folder/"):
        assert "--restore" in sync(store, side).refused[0]
    assert (store.nodes(session_id), fingerprint(other)) == ((), before)
    restore(store, session_id)
    assert sync(store, other).refused == ()


def test_object_storage_keeps_the_same_bytes(tmp_path: Path) -> None:
    """Through obstore's stores a session goes out and comes back, large ones in several parts; a missing object is a missing file."""
    stores: Any = pytest.importorskip("obstore.store")
    shelf = ObjectShelf(stores.MemoryStore())
    here = MemoryStore()
    session_id = long_session(here, tmp_path)
    Session(here, session_id).root.append([UserMessage.text("x" * 1000) for _ in range(12_000)])
    before = fingerprint(here)
    archive(here, session_id, "s3://lamps/deep", shelves=lambda _: shelf)
    with pytest.raises(MissingFile):
        restore(here, session_id, shelves=lambda _: ObjectShelf(stores.MemoryStore()))
    restore(here, session_id, shelves=lambda _: shelf)
    assert fingerprint(here) == before


def test_address_of_an_archive_is_checked(tmp_path: Path) -> None:
    """A folder by its address, object storage by its own; anything else is refused with the forms that are known."""
    shelf = open_shelf(f"file://{tmp_path}/with%20blank")
    assert isinstance(shelf, FolderShelf)
    assert shelf.path == tmp_path / "with blank"
    for wrong in ("archive", "file://host/x", "s3:", "nothing://x"):
        with pytest.raises(InvalidInput):
            open_shelf(wrong)
