"""Following a dialog: every entry, once, in order, over every store."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import pytest

from palaver.errors import UnknownDialog
from palaver.ids import DialogId
from palaver.store import Store
from palaver.store.following import Followed, follow
from palaver.testing.store_laws import Backend, Begun, begin
from palaver.testing.store_laws.backend import label
from tests import postgres
from tests.store.backends import MemoryBackend, SqliteBackend
from tests.store.postgres_backend import PostgresBackend

WRITTEN = 60


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Backend:
    """Give a place for a store of each kind."""
    if request.param == "memory":
        return MemoryBackend()
    if request.param == "sqlite":
        return SqliteBackend(tmp_path / "store.db")
    server: postgres.Server = request.getfixturevalue("postgres_server")
    return PostgresBackend(server)


@pytest.fixture
def store(backend: Backend) -> Iterator[Store]:
    """Give an empty store."""
    store = backend.open()
    yield store
    store.close()


@pytest.fixture
def begun(store: Store) -> Begun:
    """Give a store with one dialog."""
    return begin(store)


def test_what_is_there_is_given_and_the_end_said(begun: Begun) -> None:
    """With no time to wait, a follower gives what there is beyond the number it knows, headers and bodies, and ends."""
    begun.say(*(b"%d" % number for number in range(5)))
    headers = list(begun.store.headers(begun.dialog))
    everything = [Followed(header, b"%d" % header.seq) for header in headers]
    for after in range(-1, 5):
        assert list(follow(begun.store, begun.dialog, after, idle=0)) == everything[after + 1 :]
    assert list(follow(begun.store, begun.dialog, 99, idle=0)) == []


def test_an_unknown_dialog_is_told_at_once(store: Store) -> None:
    """Who follows nothing learns it when he begins."""
    with pytest.raises(UnknownDialog):
        follow(store, DialogId("e" * 32))


@pytest.mark.parametrize("ahead", [0, 3])
def test_a_follower_sees_all_in_order(backend: Backend, begun: Begun, ahead: int) -> None:
    """Followers on handles of their own get every entry once, in order, with its body, while two threads append and annotate."""
    begun.say(*(b"ahead" for _ in range(ahead)))
    followers = [backend.open() for _ in range(2)]

    def read(store: Store) -> list[Followed]:
        return list(islice(follow(store, begun.dialog, idle=60.0), WRITTEN))

    def write() -> None:
        head = ahead - 1
        for number in range(0, WRITTEN - ahead, 2):
            head = begun.say(b"said %d" % number)[0].turn_head
            begun.store.annotate(begun.dialog, label(b"noted %d" % number))
        assert head >= 0

    with ThreadPoolExecutor(3) as threads:
        readers = [threads.submit(read, store) for store in followers]
        threads.submit(write).result()
        while begun.store.last(begun.dialog).seq + 1 < WRITTEN:
            begun.say(b"rest")
        seen = [reader.result() for reader in readers]
    bodies = list(begun.store.bodies(begun.dialog, 0, WRITTEN))
    for one in seen:
        assert [(followed.header.seq, followed.body) for followed in one] == bodies
    for store in followers:
        store.close()


def test_a_lost_body_hides_no_other(backend: Backend, begun: Begun) -> None:
    """An entry whose body was lost comes without it, in its place."""
    if isinstance(backend, MemoryBackend):
        pytest.skip("memory loses nothing")
    begun.say(b"a", b"b", b"c")
    backend.lose(begun.dialog, 1)
    assert [followed.body for followed in follow(begun.store, begun.dialog, idle=0)] == [b"a", None, b"c"]
    backend.lose(begun.dialog, 2)
    assert [followed.body for followed in follow(begun.store, begun.dialog, idle=0)] == [b"a", None, None]


def test_a_follower_writes_nothing_into_the_log(begun: Begun) -> None:
    """Following, and closing the iterator in the middle, leaves the store as it was."""
    begun.say(b"a", b"b")
    before = begun.everything()
    following = follow(begun.store, begun.dialog)
    assert next(following).body == b"a"
    following.close()
    assert begun.everything() == before
