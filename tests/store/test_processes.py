"""Several processes at one store: nothing is lost, nobody is ignored."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Event, Thread

import pytest

from palaver.errors import Conflict
from palaver.ids import DialogId
from palaver.store import Store, open_store
from palaver.testing.store_laws import Begun
from palaver.testing.store_laws.backend import forked, words
from tests.postgres import Server

AtOnce = Callable[..., list[str]]


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of a store that is not there yet, of each kind that processes may share."""
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    server: Server = request.getfixturevalue("postgres_server")
    return server.url()


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """Return the store."""
    with closing(open_store(url)) as store:
        yield store


def test_d19_second_process_gets_a_conflict(url: str, begun: Begun, at_once: AtOnce) -> None:
    """Two processes know the same head: the one that appends second is told both numbers, whichever it is; both go on."""
    begun.say(b"before")
    assert at_once("append", url=url, dialog=begun.dialog, head=0) == ["wrote"]
    with pytest.raises(Conflict) as told:
        begun.store.append(begun.dialog, [words(b"parent")], 0)
    assert (told.value.expected, told.value.actual) == (0, 1)
    begun.say(b"parent")
    assert at_once("append", url=url, dialog=begun.dialog, head=1) == ["1 2"]
    assert begun.said() == [b"before", b"child", b"parent"]


@pytest.mark.parametrize(
    ("processes", "each"), [(4, 25), pytest.param(8, 1250, marks=[pytest.mark.soak, pytest.mark.timeout(1200)])]
)
def test_law_5_many_processes_one_dialog(url: str, begun: Begun, at_once: AtOnce, processes: int, each: int) -> None:
    """Each appends after the head it knows and again when it was not first: nothing is lost, doubled, or out of its order."""
    said = [
        list(map(int, one.split())) for one in at_once("compete", processes, url=url, dialog=begun.dialog, count=each)
    ]
    bodies = dict(begun.store.bodies(begun.dialog))
    assert sorted(seq for one in said for seq in one[1:]) == sorted(bodies) == list(range(processes * each))
    for pid, *written in said:
        assert [bodies[seq] for seq in written] == [b"%d:%d" % (pid, number) for number in range(each)]
    assert begun.store.verify(begun.dialog) == ()
    sys.stdout.write(f"{os.cpu_count()} CPUs: {processes} processes, {len(bodies)} entries\n")


def test_many_processes_make_the_same_store(url: str, at_once: AtOnce) -> None:
    """Processes that start on an empty place at once make one store, and each finds all that was written."""
    dialogs = at_once("write_new", 4, url=url)
    with closing(open_store(url, create=False)) as store:
        assert len(list(store.sessions())) == len(set(dialogs)) == 4
        for dialog in dialogs:
            assert [body for _seq, body in store.bodies(DialogId(dialog))] == [b"%d" % one for one in range(20)]


def test_eight_processes_create_one_session_by_name(url: str, store: Store, at_once: AtOnce) -> None:
    """Look for a name, then create, in one transaction with a lock: eight processes end up with one session and its root."""
    said = at_once("find_or_create", 8, url=url, name="daily")
    (record,) = store.sessions(name="daily")
    assert set(said) == {f"{record.session_id} {record.root}"}
    assert len(store.nodes(record.session_id)) == 1


def test_child_that_only_ends_takes_nothing_away(begun: Begun) -> None:
    """A child that closes what it inherited, or ends without a word, leaves its parent's connections alone."""
    begun.say(b"a")
    assert forked(begun.store.close) == 0
    assert forked(lambda: None) == 0
    assert begun.say(b"b")[0].seq == 1


def test_child_of_a_busy_thread_opens_anew(begun: Begun) -> None:
    """A child that is forked while another thread is inside a transaction reads what was durable; the transaction goes on."""
    inside, go_on = Event(), Event()
    begun.say(b"before")

    def write() -> None:
        with begun.store.transaction():
            begun.say(b"a")
            inside.set()
            go_on.wait()
            begun.say(b"b")

    def read() -> None:
        assert begun.said() == [b"before"]
        begun.store.close()

    thread = Thread(target=write)
    thread.start()
    inside.wait()
    status = forked(read)
    go_on.set()
    thread.join()
    assert status == 0
    assert begun.said() == [b"before", b"a", b"b"]
