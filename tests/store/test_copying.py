"""Copies: everything, exactly, from any store into any other; begun again, they go on; what differs is told."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from palaver.errors import InvalidInput, UnknownDialog
from palaver.ids import DialogId
from palaver.log import Header, next_header
from palaver.store import MemoryStore, Store
from palaver.store.copying import Copyable, copy_store
from palaver.testing.store_laws import Backend, begin
from palaver.testing.store_laws.backend import Begun, answer, calls, label, words
from tests import postgres
from tests.store.backends import MemoryBackend, SqliteBackend
from tests.store.golden import PAYLOAD, content, write
from tests.store.postgres_backend import PostgresBackend

KINDS = ("memory", "sqlite", "postgres")
Make = Callable[[str], Backend]


@pytest.fixture
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Give what makes a place of a kind."""
    number = itertools.count()

    def made(kind: str) -> Backend:
        if kind == "memory":
            return MemoryBackend()
        if kind == "sqlite":
            return SqliteBackend(tmp_path / f"store-{next(number)}.db")
        server: postgres.Server = request.getfixturevalue("postgres_server")
        return PostgresBackend(server)

    return made


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """Give each kind of store."""
    given: str = request.param
    return given


@pytest.fixture
def backend(make: Make, kind: str) -> Backend:
    """Give a place of each kind."""
    return make(kind)


@pytest.fixture
def store(backend: Backend) -> Iterator[Store]:
    """Give an empty store of each kind."""
    store = backend.open()
    yield store
    store.close()


def copyable(store: Store) -> Copyable:
    """Give a store as one that can be copied."""
    assert isinstance(store, Copyable)
    return store


@pytest.mark.parametrize(
    ("source", "target"), [(a, b) for a in KINDS for b in KINDS if (a, b) != ("postgres", "postgres")]
)
def test_a_copy_is_equal(make: Make, source: str, target: str) -> None:
    """From any store into any other: every session, node, header, body, payload and source comes back equal, and the proof says so."""
    here, there = make(source).open(), make(target).open()
    write(here)
    begin(there)
    copied = copy_store(here, there)
    assert copied.equal
    assert copied.differences == ()
    assert (copied.sessions, copied.dialogs, copied.entries, copied.blobs, copied.others) == (2, 2, 9, 1, 1)
    assert copied.written == copied.entries
    assert there.index_lag() == 9
    wanted = _described(here)
    found = _described(there)
    assert {name: value for name, value in found["sessions"].items() if name in wanted["sessions"]} == wanted[
        "sessions"
    ]
    assert all(dialog in found["dialogs"] for dialog in wanted["dialogs"])
    assert (found["sources"], found["blobs"]) == (wanted["sources"], wanted["blobs"])
    again = copy_store(here, there)
    assert (again.written, again.digest, again.found, again.equal) == (0, copied.digest, copied.found, True)
    here.close()
    there.close()


def _described(store: Store) -> dict[str, dict[str, object]]:
    described = content(store)
    return described | {"sessions": {one["session_id"]: one for one in described["sessions"]}}


def test_a_copy_that_was_cut_off_goes_on(make: Make, kind: str) -> None:
    """Whatever write it was cut off at, the next copy writes only what is missing, and the whole is equal."""

    class CutError(Exception):
        pass

    class Cutting(MemoryStore):
        """Gives so many answers and then fails, as a machine does."""

        left = 0

        def bodies(self, dialog_id: DialogId, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
            for pair in super().bodies(dialog_id, start, stop):
                if self.left == 0:
                    raise CutError
                self.left -= 1
                yield pair

    here, there = Cutting(), make(kind).open()
    begun = begin(here)
    for _ in range(3):
        begun.say(*(b"x" * 2_000_000 for _ in range(4)))
        begun.fork()
    cuts = 0
    for left in range(1, 30, 3):
        here.left = left
        try:
            copied = copy_store(here, there)
        except CutError:
            cuts += 1
        else:
            break
    here.left = -1
    copied = copy_store(here, there)
    assert cuts > 1
    assert copied.equal
    assert there.last(begun.dialog) == here.last(begun.dialog)
    there.close()


def test_a_grown_store_is_copied_on(store: Store) -> None:
    """What was appended, forked, renamed or put into the trash since the last copy is there after the next."""
    here = MemoryStore()
    begun = begin(here)
    begun.say(b"a")
    assert copy_store(here, store).written == 1
    begun.say(b"b")
    here.annotate(begun.dialog, label())
    child = begun.fork()
    begun.say(b"c", dialog=child)
    here.update_session(begun.session, name="new", trashed_at=9.0, root=child)
    copied = copy_store(here, store)
    assert (copied.equal, copied.written) == (True, 3)
    assert store.session(begun.session) == here.session(begun.session)


def test_a_target_that_went_on_is_told_and_left_alone(store: Store) -> None:
    """A dialog that was continued in the target, or a session that got another dialog there, is a difference; nothing is undone."""
    here = MemoryStore()
    begun = begin(here)
    begun.say(b"a")
    copy_store(here, store)
    there = Begun(store, begun.session, begun.dialog)
    there.say(b"there")
    copied = copy_store(here, store)
    assert not copied.equal
    assert any("went on otherwise" in difference for difference in copied.differences)
    begun.say(b"here", b"more")
    assert not copy_store(here, store).equal
    assert [body for _seq, body in store.bodies(begun.dialog)] == [b"a", b"there"]


def test_a_difference_that_was_made_behind_the_stores_back_is_found(backend: Backend, store: Store) -> None:
    """The proof reads both stores: a changed byte in a body of the target is told, with its place."""
    here = MemoryStore()
    begun = begin(here)
    begun.say(b"one", b"two")
    copy_store(here, store)
    backend.damage(begun.dialog, 1)
    copied = copy_store(here, store)
    assert not copied.equal
    assert copied.digest != copied.found
    assert [f"dialog {begun.dialog}, its bodies" in difference for difference in copied.differences] == [True]


def test_a_damaged_source_is_told(backend: Backend, store: Store) -> None:
    """A body that is not the one its header tells of is not copied as if it were."""
    begun = begin(store)
    begun.say(b"one", b"two")
    backend.damage(begun.dialog, 1)
    there = MemoryStore()
    copied = copy_store(store, there)
    assert not copied.equal
    assert any("not the one that was written" in difference for difference in copied.differences)


def test_a_store_is_not_copied_into_itself(store: Store) -> None:
    """Nor into another handle on the same place."""
    with pytest.raises(InvalidInput):
        copy_store(store, store)


# --- what a store gives for it ----------------------------------------------------------------------------------------------------


def test_all_payloads_are_named_in_order(store: Store) -> None:
    """Each id once, more than any page holds."""
    assert list(copyable(store).blob_ids()) == []
    with store.together():
        blobs = {store.put_blob(b"%d" % number) for number in range(1100)} | {store.put_blob(PAYLOAD)}
    assert list(copyable(store).blob_ids()) == sorted(blobs)


def test_entries_are_taken_as_they_are(store: Store) -> None:
    """Also kinds that nobody may append, and fields that today's rules would not give."""
    begun = begin(store)
    first = next_header(calls("c1", "c2"))
    odd = first._replace(
        seq=1, kind="tombstone", role="later", number=7, open_calls=("c2",), calls=("x",), response="q", at=9.0
    )
    second = odd._replace(size=7, total=first.total + 7, digest=next_header(words(b"erased!")).digest)
    copyable(store).take_entries(begun.dialog, [(first, b"calling"), (second, b"erased!")])
    assert list(store.headers(begun.dialog)) == [first, second]
    assert store.verify(begun.dialog) == ()
    assert begun.say(b"next")[0].seq == 2
    with pytest.raises(UnknownDialog):
        copyable(store).take_entries(DialogId("e" * 32), [(first, b"calling")])


@pytest.mark.parametrize("change", [{"seq": 5}, {"total": 1}, {"size": 1}, {"digest": b"0" * 16}])
def test_entries_that_do_not_fit_are_refused(store: Store, change: dict[str, object]) -> None:
    """What does not follow, or whose body is another, is refused with all that was given; nothing is written."""
    begun = begin(store)
    headers: list[Header] = [next_header(words(b"a"))]
    headers.append(next_header(answer("c1"), headers[0]))
    wrong = headers[1]._replace(**change)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        copyable(store).take_entries(begun.dialog, [(headers[0], b"a"), (wrong, b"done")])
    assert store.last(begun.dialog).seq == -1
    copyable(store).take_entries(begun.dialog, [(headers[0], b"a"), (headers[1], b"done")])
    assert store.last(begun.dialog) == headers[1]
