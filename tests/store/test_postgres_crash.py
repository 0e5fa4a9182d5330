"""PostgreSQL and death: of a client, of the server, of the line between them. What was acknowledged is there, and nothing else is shown."""

import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread

import pytest

from palaver.errors import StoreError, StoreUnavailable
from palaver.ids import DialogId
from palaver.store.following import follow
from palaver.store.lease import acquire, guard
from palaver.store.postgres import PostgresStore
from palaver.testing.store_laws import Begun, begin
from palaver.testing.store_laws.backend import label, words
from tests import postgres
from tests.postgres_wheel import wheel_server
from tests.store.postgres_backend import connected

WRITER = Path(__file__).with_name("writer.py")
KILLS_AFTER = (1, 2, 7, 40)
WRITERS = 3


@pytest.fixture(scope="module")
def mortal() -> Iterator[postgres.Server]:
    """Give a server of these tests' own, which they may kill."""
    with wheel_server() as running:
        yield running


@pytest.fixture
def begun(mortal: postgres.Server) -> Iterator[Begun]:
    """Give a store with one dialog, on the server that may die."""
    store = PostgresStore(mortal.url(), wait=30.0)
    yield begin(store)
    store.close()


@contextmanager
def child(url: str, dialog: str, command: str) -> Iterator[subprocess.Popen[str]]:
    """Start a writer; it is gone at the end, whatever happened."""
    words = [sys.executable, str(WRITER), url, dialog, command]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def numbers(process: subprocess.Popen[str], count: int) -> int:
    """Read so many acknowledged numbers, and give the last."""
    assert process.stdout is not None
    return [int(process.stdout.readline()) for _ in range(count)][-1]


def last_words(process: subprocess.Popen[str], before: int) -> int:
    """Kill a writer, and give the last number that it acknowledged."""
    process.send_signal(signal.SIGKILL)
    said = process.stdout.read() if process.stdout else ""
    whole = said.splitlines() if said.endswith("\n") else said.splitlines()[:-1]
    return int(whole[-1]) if whole else before


def check(begun: Begun, dialog: DialogId, acknowledged: int) -> int:
    """Compare a dialog with what its writer was told, and give its last number."""
    begun.store.annotate(dialog, label(b"after"))  # waits for whatever the dead client's last statement still does
    last = begun.store.last(dialog)
    assert last.seq - 1 in (acknowledged, acknowledged + 1), (
        "more than the one write in flight appeared, or one is lost"
    )
    assert begun.store.verify(dialog) == ()
    bodies = [body for _seq, body in begun.store.bodies(dialog) if body != b"after"]
    assert all(len(set(body.split())) == 1 for body in bodies)
    return last.seq


def test_a_killed_client_loses_nothing_it_acknowledged(begun: Begun) -> None:
    """Law 4: after SIGKILL of a client at any moment every acknowledged entry is there, whole, and the next append works."""
    for count in KILLS_AFTER:
        with child(begun.store.url, begun.dialog, "forever") as writer:
            acknowledged = last_words(writer, numbers(writer, count))
        check(begun, begun.dialog, acknowledged)


@pytest.mark.parametrize("count", KILLS_AFTER)
def test_a_killed_server_loses_nothing_it_acknowledged(mortal: postgres.Server, begun: Begun, count: int) -> None:
    """Law 4: after SIGKILL of the postmaster under load, and its recovery, the writers go on; every acknowledged entry is there, once."""
    dialogs = [begun.dialog, *(begun.fork() for _ in range(WRITERS - 1))]
    with ExitStack() as stack:
        writers = [stack.enter_context(child(begun.store.url, dialog, "forever")) for dialog in dialogs]
        for _ in range(2):
            for writer in writers:
                numbers(writer, count)
            mortal.kill()
            mortal.start()
        seen = [numbers(writer, count) for writer in writers]
        acknowledged = [last_words(writer, number) for writer, number in zip(writers, seen, strict=True)]
    for dialog, number in zip(dialogs, acknowledged, strict=True):
        check(begun, dialog, number)
        followed = [one.header.seq for one in follow(begun.store, dialog, idle=0)]
        assert followed == list(range(len(followed)))


def test_a_store_goes_on_when_its_server_comes_back(mortal: postgres.Server, begun: Begun) -> None:
    """A handle that was open while the server died reads and writes as soon as it is back; leases and followers too."""
    assert isinstance(begun.store, PostgresStore)
    begun.say(b"before")
    lease = acquire(begun.store, "work", holder="me", seconds=600)
    following = follow(begun.store, begun.dialog)
    assert next(following).body == b"before"
    mortal.kill()
    mortal.start()
    assert begun.store.body(begun.dialog, 0) == b"before"
    mortal.kill()
    mortal.start()
    assert begun.say(b"after")[0].seq == 1
    assert next(following).body == b"after"
    begun.say(b"told")
    assert next(following).body == b"told"
    following.close()
    guard(begun.store, lease)


def test_a_server_that_stays_away_is_told(mortal: postgres.Server, begun: Begun) -> None:
    """When the wait is over the store is unavailable; nothing was written, and the handle is good for the time after."""
    impatient = PostgresStore(begun.store.url, wait=0.1)
    impatient.append(begun.dialog, [words(b"a")], -1)
    mortal.kill()
    try:
        for use in (
            lambda: impatient.last(begun.dialog),
            lambda: impatient.append(begun.dialog, [words(b"b")], 0),
            impatient.together().__enter__,
            lambda: PostgresStore(begun.store.url),
        ):
            with pytest.raises(StoreUnavailable):
                use()
    finally:
        mortal.start()
    assert [body for _seq, body in impatient.bodies(begun.dialog)] == [b"a"]
    assert impatient.append(begun.dialog, [words(b"c")], 0)[0].seq == 1
    impatient.close()


def test_a_block_that_the_server_did_not_survive_is_undone(mortal: postgres.Server, begun: Begun) -> None:
    """What was written together dies with the server as one; the caller is told, and nothing of it is there."""
    begun.say(b"before")

    def write() -> None:
        with begun.store.together():
            begun.say(b"in the block")
            mortal.kill()
            mortal.start()
            begun.say(b"after the death")

    with pytest.raises(StoreUnavailable):
        write()
    assert [body for _seq, body in begun.store.bodies(begun.dialog)] == [b"before"]
    assert begun.say(b"after")[0].seq == 1


def test_a_connection_that_was_cut_in_idleness_is_replaced(begun: Begun) -> None:
    """An administrator, or a firewall, may end idle connections: the next call does not notice."""
    begun.say(b"a")
    with connected(begun.store.url) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = 'palaver'"
        )
    other.close()
    assert begun.say(b"b")[0].seq == 1


# --- the line between client and server -----------------------------------------------------------------------------------------


class Line:
    """A socket between client and server that can be cut: before a message reaches the server, or before its answer reaches the client."""

    def __init__(self, server: postgres.Server, folder: Path) -> None:
        self.folder = folder
        self._server = str(server.folder / ".s.PGSQL.5432")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / ".s.PGSQL.5432"))
        self._listener.listen()
        self.cut_at: bytes | None = None
        self.deliver = False
        self.cuts = 0
        self._ends = [self._listener]
        self._threads: list[Thread] = []
        self._start(self._accept)

    def _start(self, job: Callable[..., None], *arguments: object) -> None:
        self._threads.append(Thread(target=job, args=arguments, daemon=True))
        self._threads[-1].start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _address = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                self._ends += [client, server]
                server.connect(self._server)
                cutting = Event()
                self._start(self._carry, client, server, True, cutting)
                self._start(self._carry, server, client, False, cutting)

    def _carry(self, source: socket.socket, sink: socket.socket, upwards: bool, cutting: Event) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 20):
                if upwards and self.cut_at is not None and self.cut_at in data:
                    self.cut_at = None
                    self.cuts += 1
                    cutting.set()
                    if not self.deliver:
                        break
                elif not upwards and cutting.is_set():
                    break  # the answer: the server has done it
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Cut everything."""
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for end in self._ends:
            end.close()


@pytest.fixture
def line(mortal: postgres.Server) -> Iterator[Line]:
    """Give a line to the server."""
    with TemporaryDirectory(prefix="palaver-line-") as folder:
        line = Line(mortal, Path(folder))
        yield line
        line.close()


@pytest.fixture
def through(begun: Begun, line: Line, mortal: postgres.Server) -> Iterator[Begun]:
    """Give the same store through the line."""
    store = PostgresStore(begun.store.url.replace(str(mortal.folder), str(line.folder)), wait=20.0)
    yield Begun(store, begun.session, begun.dialog)
    store.close()


@pytest.mark.parametrize("deliver", [False, True])
def test_an_append_under_a_cut_line_is_written_once(through: Begun, line: Line, deliver: bool) -> None:
    """Whether the line was cut before the server got the entry or before it could say so: it is there once, and acknowledged."""
    through.say(b"before")
    line.deliver, line.cut_at = deliver, b"cut-here-1"
    assert through.say(b"cut-here-1")[0].seq == 1
    line.cut_at = b"cut-here-2"
    assert through.store.annotate(through.dialog, label(b"cut-here-2")).seq == 2
    line.cut_at = b"cut-here-3"
    assert [header.seq for header in through.say(b"more", b"cut-here-3", b"last")] == [3, 4, 5]
    assert line.cuts == 3
    bodies = [b"before", b"cut-here-1", b"cut-here-2", b"more", b"cut-here-3", b"last"]
    assert [body for _seq, body in through.store.bodies(through.dialog)] == bodies


@pytest.mark.parametrize("deliver", [False, True])
def test_another_write_under_a_cut_line_is_told(through: Begun, line: Line, deliver: bool) -> None:
    """A write that cannot be repeated safely raises; afterwards the store goes on, and says what is there."""
    line.deliver, line.cut_at = deliver, b"new-name"
    with pytest.raises(StoreUnavailable):
        through.store.update_session(through.session, name="new-name")
    assert through.store.session(through.session).name == ""  # its transaction was never committed
    line.deliver, line.cut_at = deliver, b"COMMIT"
    with pytest.raises(StoreUnavailable, match="not known"):
        through.store.update_session(through.session, name="other")
    assert through.store.session(through.session).name == ("other" if deliver else "")


def test_a_cut_line_does_not_leave_a_writer_waiting(through: Begun, begun: Begun, line: Line) -> None:
    """The transaction of a client whose line was cut ends, and with it its locks: others write on."""

    def write() -> None:
        with through.store.together():
            through.say(b"in the block")
            line.cut_at = b"cut-here"
            through.say(b"cut-here")

    with pytest.raises(StoreError):
        write()
    assert begun.say(b"other")[0].seq == 0
