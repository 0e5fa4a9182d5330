"""Several processes at one store: nothing is lost, nobody is ignored."""

from collections.abc import Callable, Iterator
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path
from threading import Event, Thread

import pytest

from palaver.ids import DialogId
from palaver.store import Store, open_store
from palaver.testing.store_laws import Begun, begin
from palaver.testing.store_laws.backend import forked

FORK = get_context("fork")


def at_once(folder: Path, processes: int, work: Callable[[], str]) -> list[str]:
    """Have processes do the same at once, and return what each of them returned."""

    def tell(file: Path) -> None:
        file.write_text(work())

    files = [folder / f"said-{number}" for number in range(processes)]
    children = [FORK.Process(target=tell, args=(file,)) for file in files]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert {child.exitcode for child in children} == {0}
    return [file.read_text() for file in files]


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """Return the store."""
    with closing(open_store(url)) as store:
        yield store


def test_many_processes_make_the_same_store(url: str, tmp_path: Path) -> None:
    """Processes that start on an empty place at once make one store, and each finds all that was written."""

    def write() -> str:
        with closing(open_store(url)) as store:
            begun = begin(store)
            for number in range(20):
                begun.say(b"%d" % number)
            return begun.dialog

    dialogs = at_once(tmp_path, 4, write)
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
