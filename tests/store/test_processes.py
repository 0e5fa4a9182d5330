"""Several processes at one store: nothing is lost, nobody is ignored."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from threading import Event, Thread

import pytest

from palaver.ids import DialogId
from palaver.store import Store, open_store
from palaver.testing.store_laws import Begun
from palaver.testing.store_laws.backend import forked

AtOnce = Callable[..., list[str]]


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """Return the store."""
    with closing(open_store(url)) as store:
        yield store


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
