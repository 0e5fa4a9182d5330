"""Syncs: every side has the conversations of all, nothing that is there changes, and what was lost on the way comes with the next."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count, permutations
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver import Session, UserMessage
from palaver.erasure import erase
from palaver.errors import Conflict, InfeasibleBudget, InvalidInput, MissingFile, NotFound
from palaver.ids import DialogId, SessionId
from palaver.log import Handle, Header, Node, Span, lineage
from palaver.session import Dialog
from palaver.store import MemoryStore, SessionRecord, SqliteStore, Store, open_store, verify_store
from palaver.testing.logs import model
from palaver.testing.session_laws import check_session
from palaver.transcripts import Importer
from palaver.transfer.sync import Synced, sync
from tests.formats.samples import Claude, text
from tests.wire.pictures import png

Entries = dict[tuple[str, int], bytes]
Side = Store | str
Step = tuple[str, int, int]


def said(dialog: Dialog) -> tuple[str, ...]:
    """Return the texts of a dialog's messages."""
    return tuple(message.text_content() for message in dialog.messages)


def talks(store: Store) -> set[tuple[Any, ...]]:
    """Return what all dialogs of all sessions say, and how many entries each has, wherever it lies; with what describes the session."""
    every = (Session(store, record.session_id) for record in (*store.sessions(), *store.sessions(trashed=True)))
    return {
        (session.record.name, session.record.trashed_at, said(dialog), sum(map(len, spans(dialog))))
        for session in every
        for dialog in session.dialogs
    }


def spans(dialog: Dialog) -> tuple[Span, ...]:
    """Return the entries of a dialog."""
    return lineage(dialog.store.node(dialog.dialog_id), dialog.store.last(dialog.dialog_id).seq + 1)


def entries(store: Store) -> Entries:
    """Return all that is in a store, by place."""
    records = (*store.sessions(), *store.sessions(trashed=True))
    nodes = [node for record in records for node in store.nodes(record.session_id)]
    return {(node.dialog_id, seq): body for node in nodes for seq, body in store.bodies(node.dialog_id)}


def nothing(done: Synced) -> bool:
    """Return whether a sync did nothing."""
    return (done.added, done.forks, done.changed, done.refused) == ((0, 0), (), (), ())


# --- any history ------------------------------------------------------------------------------------------------------------------

SIDES = st.integers(0, 2)
WRITES = st.tuples(
    st.sampled_from(["say", "say", "say", "record", "mark", "compact", "fork", "merge", "rename", "trash"]),
    SIDES,
    st.integers(0, 5),
)
SYNCS = st.tuples(st.sampled_from(["sync", "folder"]), SIDES, SIDES)


def say(session: Session, which: int, word: str) -> str:
    """Say something in a dialog, and return what was acknowledged."""
    session.dialogs[which % len(session.dialogs)].append(UserMessage.text(word))
    return word


def record(session: Session, which: int, word: str) -> str:
    """Say something, and record a call that sees it."""
    dialog = session.dialogs[which % len(session.dialogs)]
    dialog.append([model(word), UserMessage.text(f"{word}?")])
    dialog.calls.record(dialog.request("openai", "gpt-5"))
    return word


def mark(session: Session, which: int, word: str) -> None:
    """Label and pin the newest entry of a dialog."""
    dialog = session.dialogs[which % len(session.dialogs)]
    place = Handle(dialog.dialog_id, session.store.last(dialog.dialog_id).seq)
    if place.seq >= 0:
        dialog.marks.label(place, word)
        dialog.marks.pin(place)


def compact(session: Session, which: int, word: str) -> None:  # noqa: ARG001 - the signature of a write
    """Compact a dialog."""
    session.dialogs[which % len(session.dialogs)].compaction.preview("palaver", 60).approve()


WRITERS: Mapping[str, Callable[[Session, int, str], object]] = {
    "say": say,
    "record": record,
    "mark": mark,
    "compact": compact,
    "fork": lambda session, which, _: session.dialogs[which % len(session.dialogs)].fork(last_n=which % 2),
    "merge": lambda session, which, _: session.merge(
        session.dialogs[-1], session.dialogs[which % len(session.dialogs)]
    ),
    "rename": lambda session, _, word: session.store.update_session(session.session_id, name=word),
    "trash": lambda session, which, _: session.store.update_session(session.session_id, trashed_at=which or None),
}


def write(store: Store, session_id: SessionId, what: str, which: int, word: str) -> object:
    """Write something to a session, and return the message that was acknowledged, if it is one."""
    with suppress(NotFound, InvalidInput, InfeasibleBudget):
        done = WRITERS[what](Session(store, session_id), which, word)
        return done if what in {"say", "record"} else None
    return None


def settled(sides: Sequence[Side]) -> None:
    """Sync every pair until nothing is left to do."""
    done: list[Synced] = []
    for _ in range(4):
        done = [sync(first, second) for first, second in permutations(sides, 2) if not isinstance(first, str)]
        if all(map(nothing, done)):
            return
    raise AssertionError(f"syncs do not come to an end: {done}")


def check_convergence(stores: Sequence[Store], folder: str, history: Sequence[Step], *, together: bool) -> None:
    """Let three machines and a folder write and sync, and check the laws."""
    session = Session.create(stores[0], "talk")
    session.root.append([UserMessage.text("begin " + "w " * 40), model("yes " + "v " * 40)])
    if together:
        settled(stores)
    acknowledged = set()
    for number, (what, mine, other) in enumerate(history):
        if what in {"sync", "folder"}:
            before = [entries(store) for store in stores]
            if what == "folder" or mine != other:
                assert not sync(stores[mine], folder if what == "folder" else stores[other]).refused
            assert all(old.items() <= entries(store).items() for old, store in zip(before, stores, strict=True))
        else:
            acknowledged.add(write(stores[mine], session.session_id, what, other, f"{what} {number}"))
    before = [entries(store) for store in stores]
    settled([*stores, folder])
    assert all(old.items() <= entries(store).items() for old, store in zip(before, stores, strict=True))
    assert talks(stores[0]) == talks(stores[1]) == talks(stores[2])
    words = {word for _, _, texts, _ in talks(stores[2]) for word in texts}
    assert acknowledged - {None} <= words
    new = MemoryStore()
    sync(new, folder)
    assert {talk[2:] for talk in talks(new)} == {talk[2:] for talk in talks(stores[0])}
    for store in (*stores, new):
        assert not list(verify_store(store))
        check_session(Session(store, session.session_id))


@settings(
    max_examples=(settings.default or settings()).max_examples // 4
)  # a quarter of what the profile says: each has twenty syncs
@given(history=st.lists(st.one_of(WRITES, WRITES, SYNCS), min_size=4, max_size=25), together=st.booleans())
def test_any_history_converges(
    history: list[Step], *, together: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Three machines and a folder write and sync in any order: in the end all say the same, all acknowledged is there, and what was there is unchanged."""
    stores = [MemoryStore(), MemoryStore(), MemoryStore()]
    check_convergence(stores, f"{tmp_path_factory.mktemp('folder')}/", history, together=together)


@pytest.mark.parametrize("seed", [109, 143, 153])
def test_stores_of_all_kinds_converge(seed: int, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """So they do where one machine has a file, one PostgreSQL, and one a store in memory."""
    random = Random(seed)  # noqa: S311 - the same histories in each run
    history = [
        (random.choice([*WRITERS, "say", "say", "sync", "folder"]), random.randrange(3), random.randrange(3))
        for _ in range(70)
    ]
    server = open_store(request.getfixturevalue("postgres_server").url())
    stores = [SqliteStore(tmp_path / "here.db"), server, MemoryStore()]
    check_convergence(stores, f"{tmp_path}/folder/", history, together=bool(seed % 2))
    for store in stores:
        store.close()


# --- over every kind of side --------------------------------------------------------------------------------------------------------

MakeSide = Callable[[], Side]


@pytest.fixture(params=["memory", "sqlite", "postgres", "folder"])
def side(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Side]:
    """Return an empty store of each kind, and a folder that does not exist."""
    if request.param == "folder":
        yield f"{tmp_path / 'bundles'}/"
        return
    store: Store = MemoryStore()
    if request.param == "sqlite":
        store = SqliteStore(tmp_path / "there.db")
    elif request.param == "postgres":
        store = open_store(request.getfixturevalue("postgres_server").url())
    yield store
    store.close()


def begun(store: Store, name: str = "talk") -> Dialog:
    """Return the dialog of a new session with two messages."""
    dialog = Session.create(store, name).root
    dialog.append([UserMessage.text("hello"), model("hi")])
    return dialog


def other_machine(side: Side) -> MemoryStore:
    """Return a store that was synced with a side."""
    store = MemoryStore()
    sync(store, side)
    return store


def test_both_sides_get_what_is_missing(side: Side, tmp_path: Path) -> None:
    """New sessions, entries, branches, pictures, names and kept files arrive on the other machine; a second sync does nothing."""
    here = MemoryStore()
    dialog = begun(here)
    assert sync(here, side).added == (0, 2)
    there = other_machine(side)
    theirs = Session.open(there, "talk").root
    theirs.put_image(png(3, 4))
    theirs.fork().append(UserMessage.text("on a branch"))
    there.update_session(theirs.session_id, name="renamed", metadata={"a": 1})
    transcript = Claude()
    transcript.user("u1", "Count.")
    transcript.model("a1", "m1", text("Twelve."))
    (tmp_path / "talk.jsonl").write_bytes(transcript.bytes())
    imported = next(Importer(there).import_path(tmp_path / "talk.jsonl"))
    sync(there, side)
    assert sync(here, side).refused == ()
    assert talks(here) == talks(there)
    for session_id in (dialog.session_id, imported.session_id):
        assert list(here.blob_ids(session_id)) == list(there.blob_ids(session_id)) != []
    assert here.sources(imported.session_id) == there.sources(imported.session_id)
    assert here.session(dialog.session_id).metadata == {"a": 1}
    assert Session.open(here, "renamed").root.messages[2].contents == theirs.messages[2].contents
    for store in (here, there):
        assert nothing(sync(store, side))
        assert not list(verify_store(store))


def test_other_side_becomes_a_version(side: Side) -> None:
    """Where both sides went on, each keeps its own numbers, and the other's are in a dialog with the same id everywhere, which goes on with it."""
    here = MemoryStore()
    mine = begun(here)
    sync(here, side)
    there = other_machine(side)
    theirs = Session.open(there, "talk").root
    mine.append(UserMessage.text("a"))
    theirs.append(UserMessage.text("b"))
    sync(here, side)
    done = sync(there, side)
    assert len(done.forks) == 2  # one on each side
    sync(here, side)
    (version,) = (node.dialog_id for node in here.nodes(mine.session_id) if node.dialog_id != mine.dialog_id)
    assert said(Session.open(here, "talk").dialog(version)) == ("hello", "hi", "b")
    theirs.append([model("c"), UserMessage.text("d")])
    third = other_machine(side)
    sync(there, side)
    sync(here, side)
    sync(third, side)
    assert said(Session.open(here, "talk").dialog(version)) == ("hello", "hi", "b", "c", "d")
    assert said(mine.reload()) == ("hello", "hi", "a")
    Session.open(here, "talk").dialog(version).append(model("from here"))
    sync(here, side)
    sync(there, side)
    assert said(theirs.reload()) == ("hello", "hi", "b", "c", "d", "from here")
    assert [len(store.nodes(mine.session_id)) for store in (here, there, third)] == [2, 2, 2]


def test_handles_mean_the_same_in_a_version() -> None:
    """A handle that was printed on the other machine is recalled in its version as it was there; the view of a version is that of the other machine."""
    here, there = MemoryStore(), MemoryStore()
    mine = begun(here)
    sync(here, there)
    theirs = Session.open(there, "talk").root
    mine.append(UserMessage.text("a"))
    for number in range(12):
        theirs.append([UserMessage.text(f"{number} " + "w " * 60), model("v " * 60)])
    theirs.compaction.preview("palaver", 600).approve()
    theirs.append(UserMessage.text("now"))
    theirs.calls.record(theirs.request("openai", "gpt-5"))
    sync(here, there)
    session = Session.open(here, "talk")
    (version,) = (dialog for dialog in session.dialogs if dialog.dialog_id != mine.dialog_id)
    assert version.calls[-1].request().data == theirs.calls[-1].request().data
    omitted = [str(handle) for omission in theirs.view().omissions for handle in omission.handles()]
    assert omitted
    for reader in (version, version.fork()):
        recalled = [reader.recall(handle) for handle in omitted]
        assert [str(entry) for entry in recalled] == [str(theirs.recall(handle)) for handle in omitted]
    check_session(session)


# --- erasure -------------------------------------------------------------------------------------------------------------------------


def test_erased_session_does_not_come_back(side: Side) -> None:
    """What one side erased is not brought back to it, nor to a folder; the other side keeps its own and is told how to erase it."""
    here = MemoryStore()
    session_id = begun(here).session_id
    sync(here, side)
    there = other_machine(side)
    erase(here, session=session_id)
    done = sync(here, side)
    told = done.changed if isinstance(side, str) else done.refused
    assert session_id in told[0]
    assert not list(here.sessions())
    late = sync(there, side)
    if isinstance(side, str):
        assert f"palaver erase {session_id}" in late.refused[0]
        assert list(Path(side).glob("*.bundle")) == []
    assert sync(here, there).refused
    assert not list(here.sessions())
    erase(there, session=session_id)
    assert not sync(there, here).refused


def test_erased_entry_stays_erased_in_every_version() -> None:
    """An entry that was erased here does not come back in the version of a side that still has it; erasing it there reaches both versions."""
    here, there = MemoryStore(), MemoryStore()
    mine = begun(here)
    sync(here, there)
    theirs = Session.open(there, "talk").root
    theirs.append(UserMessage.text("b"))
    secret = theirs.recall(f"{mine.dialog_id}:0")
    erase(here, entries=[f"{mine.dialog_id}:0"])
    assert "its entry 0 was erased" in sync(here, there).refused[0]
    assert all(b"hello" not in body for body in entries(here).values())
    assert secret is not None
    assert any(b'"b"' in body for body in entries(here).values())
    mine.reload().append(UserMessage.text("a"))
    sync(here, there)
    assert sum(b"hello" in body for body in entries(there).values()) == 2
    erase(there, entries=[f"{mine.dialog_id}:0"])
    assert all(b"hello" not in body for body in entries(there).values())
    for store in (here, there):
        assert not list(verify_store(store))


# --- cuts and other writers -----------------------------------------------------------------------------------------------------------


class CutError(Exception):
    """The machine stopped."""


class Stopping(MemoryStore):
    """Does so many writes and then fails, as a machine does."""

    left = -1

    def _step(self) -> None:
        if self.left == 0:
            raise CutError
        self.left -= 1

    def take_entries(self, dialog_id: DialogId, taken: Sequence[tuple[Header, bytes]]) -> None:
        """Write, or stop."""
        self._step()
        super().take_entries(dialog_id, taken)

    def create_dialog(self, node: Node) -> Node:
        """Write, or stop."""
        self._step()
        return super().create_dialog(node)

    def update_session(self, session_id: SessionId, **changes: object) -> SessionRecord:
        """Write, or stop."""
        self._step()
        return super().update_session(session_id, **changes)

    def bodies(self, dialog_id: DialogId, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Read, or stop."""
        self._step()
        return super().bodies(dialog_id, start, stop)


@pytest.mark.parametrize("order", [0, 1])
def test_cut_sync_is_completed_by_the_next(order: int, tmp_path: Path) -> None:
    """Whatever step a sync stops at, each session is whole on each side, and the next sync ends where an undisturbed one does."""

    def made(store: Store) -> tuple[Stopping, Dialog]:
        stopping = Stopping()
        sync(stopping, store)
        return stopping, Session.open(stopping, "talk").root

    origin = MemoryStore()
    begun(origin)
    begun(origin, "another")
    for steps in count():
        folder = f"{tmp_path}/{steps}/"
        (here, mine), (there, theirs) = made(origin), made(origin)
        mine.append(UserMessage.text("a"))
        mine.fork().append(UserMessage.text("on a branch"))
        theirs.append(UserMessage.text("b"))
        there.update_session(theirs.session_id, name="renamed")
        begun(there, "new")
        pair = (here, there)[:: 1 - 2 * order]
        before = [entries(store) for store in pair]
        pair[0].left = steps
        try:
            sync(*pair)
            sync(pair[0], folder)
        except CutError:
            cut = True
        else:
            cut = False
        for store in pair:
            store.left = -1
            assert not list(verify_store(store))
        settled([*pair, folder])
        assert talks(here) == talks(there) == talks(other_machine(folder))
        assert all(old.items() <= entries(store).items() for old, store in zip(before, pair, strict=True))
        assert len(talks(here)) == 5
        if not cut:
            break
    assert steps > 10


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_writers_during_syncs_lose_nothing(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """While both sides are written to, and synced again and again, every acknowledged message is on both in the end."""
    here: Store = SqliteStore(tmp_path / "here.db")
    url = str(tmp_path / "there.db") if kind == "sqlite" else request.getfixturevalue("postgres_server").url()
    there = open_store(url)
    session_id = begun(here).session_id
    sync(here, there)
    acknowledged: list[str] = []

    def writing(store: Store, name: str) -> None:
        dialog = Session(store, session_id).root
        waiting = [f"{name} {number}" for number in range(40, 0, -1)]
        while waiting:
            try:
                dialog.append(UserMessage.text(waiting[-1]))
                acknowledged.append(waiting.pop())
            except Conflict:
                dialog.reload()

    threads = [threading.Thread(target=writing, args=pair) for pair in ((here, "here"), (there, "there"))]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        sync(here, there)
    for thread in threads:
        thread.join()
    settled([here, there])
    assert len(acknowledged) == 80
    for store in (here, there):
        words = {word for _, _, texts, _ in talks(store) for word in texts}
        assert words >= set(acknowledged)
        assert not list(verify_store(store))
        store.close()


# --- costs and bad input ----------------------------------------------------------------------------------------------------------------


def test_nothing_new_reads_no_bodies(tmp_path: Path) -> None:
    """Where nothing is new, a sync reads the newest header of each dialog, and no body; so it does with a folder."""

    class Counting(MemoryStore):
        reads = 0

        def bodies(self, dialog_id: DialogId, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
            self.reads += 1
            return super().bodies(dialog_id, start, stop)

        def body(self, dialog_id: DialogId, seq: int) -> bytes:
            self.reads += 1
            return super().body(dialog_id, seq)

        def headers(
            self, dialog_id: DialogId, start: int = 0, stop: int | None = None, *, reverse: bool = False
        ) -> Iterator[Header]:
            self.reads += 1
            return super().headers(dialog_id, start, stop, reverse=reverse)

    here, there = Counting(), Counting()
    for number in range(5):
        begun(here, f"talk {number}").append([UserMessage.text("x"), model("y")])
    folder = f"{tmp_path}/"
    sync(here, there)
    sync(here, folder)
    here.reads = there.reads = 0
    assert nothing(sync(here, there))
    assert nothing(sync(here, folder))
    assert (here.reads, there.reads) == (0, 0)


def test_damaged_file_in_a_folder_is_said_and_stays(tmp_path: Path) -> None:
    """A file that was cut off is left alone and said; the session is written anew beside it, and other sessions are synced."""
    here = MemoryStore()
    begun(here)
    begun(here, "another")
    folder = f"{tmp_path}/"
    sync(here, folder)
    damaged = min(tmp_path.glob("*.bundle"))
    damaged.write_bytes(damaged.read_bytes()[:-20])
    cut = damaged.rename(damaged.with_name(f"{damaged.name[:33]}{'0' * 16}.bundle"))
    done = sync(here, folder)
    assert str(cut) in done.refused[0]
    assert cut.exists()
    assert len(talks(other_machine(folder))) == 2


def test_stray_bundle_in_a_folder_is_said_and_stays(tmp_path: Path) -> None:
    """A file whose name is not one that a sync writes is not read, not deleted, and named; files of other kinds are nobody's business."""
    here = MemoryStore()
    begun(here)
    (tmp_path / "junk.bundle").write_bytes(b"junk")
    (tmp_path / "notes.txt").write_bytes(b"mine")
    for _ in range(2):
        (said,) = sync(here, tmp_path).refused
        assert said.startswith(f"{tmp_path / 'junk.bundle'}: ")
    assert (tmp_path / "junk.bundle").read_bytes() == b"junk"
    assert len(talks(other_machine(str(tmp_path)))) == 1


def test_first_side_must_exist(tmp_path: Path) -> None:
    """A mistyped first store is refused and not created; the second one may be new."""
    with pytest.raises(MissingFile):
        sync(tmp_path / "wrok.db", tmp_path / "b.db")
    with pytest.raises(MissingFile):
        sync(f"{tmp_path}/wrong/", tmp_path / "b.db")
    assert list(tmp_path.iterdir()) == []
    begun(SqliteStore(tmp_path / "work.db"))
    sync(tmp_path / "work.db", tmp_path / "b.db")
    assert len(talks(SqliteStore(tmp_path / "b.db"))) == 1


def test_new_machine_begins_with_the_folder(tmp_path: Path) -> None:
    """A folder may be the first side: the new store gets what is in it, and `added` is in the order of the sides."""
    folder = f"{tmp_path}/bundles/"
    here = MemoryStore()
    begun(here)
    assert sync(here, folder).added == (0, 2)
    assert sync(folder, tmp_path / "laptop.db").added == (0, 2)
    laptop = SqliteStore(tmp_path / "laptop.db")
    assert talks(laptop) == talks(here)
    begun(laptop, "more")
    assert sync(folder, laptop).added == (2, 0)


def test_sides_that_cannot_be_synced_are_refused(tmp_path: Path) -> None:
    """A store with itself, and two folders."""
    SqliteStore(tmp_path / "a.db").close()
    with pytest.raises(InvalidInput, match="with itself"):
        sync(tmp_path / "a.db", tmp_path / "a.db")
    with pytest.raises(InvalidInput, match="Both"):
        sync(tmp_path, f"{tmp_path}/other/")
