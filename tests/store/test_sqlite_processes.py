"""SQLite with several processes: conflicts, kills, torn logs, and a file that many make at once."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import apsw
import pytest

from palaver.errors import StoreBusy, StoreError
from palaver.ids import DialogId
from palaver.store import Durability, SqliteStore
from palaver.testing.forked import forked
from palaver.testing.store_laws import Begun, begin
from palaver.testing.store_laws.backend import words

WRITER = Path(__file__).with_name("writer.py")
KILLS_AFTER = (1, 2, 7, 40)


@contextmanager
def child(path: Path, dialog: str, command: str) -> Iterator[subprocess.Popen[str]]:
    """Start a writer; it is gone at the end, whatever happened."""
    process = subprocess.Popen(
        [sys.executable, str(WRITER), str(path), dialog, command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def line(process: subprocess.Popen[str]) -> str:
    """Read one answer."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def tell(process: subprocess.Popen[str]) -> None:
    """Send the line that a writer waits for."""
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Give the place of a store."""
    return tmp_path / "store.db"


@pytest.fixture
def begun(path: Path) -> Iterator[Begun]:
    """Give a store with one dialog."""
    store = SqliteStore(path)
    yield begin(store)
    store.close()


def test_a_second_process_is_told_of_the_first(path: Path, begun: Begun) -> None:
    """D19: two processes load the same head; the one that appends second gets a conflict with both numbers, and both go on."""
    begun.say(b"before")
    with child(path, begun.dialog, "once") as other:
        assert line(other) == "0"
        begun.say(b"parent")
        tell(other)
        assert line(other) == "conflict 0 1"
    with child(path, begun.dialog, "once") as other:
        assert line(other) == "1"
        tell(other)
        assert line(other) == "wrote 2"
    assert [body for _seq, body in begun.store.bodies(begun.dialog)] == [b"before", b"parent", b"child"]


def test_a_killed_writer_loses_nothing_it_acknowledged(path: Path, begun: Begun) -> None:
    """Law 4: after SIGKILL at any moment every acknowledged entry is there, whole, and the next append works."""
    acknowledged = -1
    for count in KILLS_AFTER:
        with child(path, begun.dialog, "forever") as writer:
            for _ in range(count):
                acknowledged = int(line(writer))
            writer.send_signal(signal.SIGKILL)
            rest = writer.stdout.read() if writer.stdout else ""
        whole = rest.splitlines() if rest.endswith("\n") else rest.splitlines()[:-1]
        acknowledged = int(whole[-1]) if whole else acknowledged
        last = begun.store.last(begun.dialog)
        assert last.seq in (acknowledged, acknowledged + 1), (
            "more than the one write in flight appeared, or one is lost"
        )
        assert begun.store.verify(begun.dialog) == ()
        assert all(body == b"%d " % seq * 700 for seq, body in begun.store.bodies(begun.dialog))
        acknowledged = last.seq


def _copy(path: Path, to: Path, wal_bytes: int) -> SqliteStore:
    """Open a copy of a store as a crash would leave it: the file, and the first bytes of its log."""
    to.mkdir()
    shutil.copy(path, to / "store.db")
    (to / "store.db-wal").write_bytes(path.with_name("store.db-wal").read_bytes()[:wal_bytes])
    return SqliteStore(to / "store.db")


def test_a_torn_log_is_opened_up_to_its_last_whole_write(path: Path, begun: Begun, tmp_path: Path) -> None:
    """D20: cut the write-ahead log anywhere; what was written before the cut is there, whole, in order, and appending goes on."""
    begun.say(b"in the file")
    with apsw_connection(path) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    bodies = [b"in the file"]
    size_after = {0: 1}
    for number in range(12):
        body = b"%d " % number * (40 * number + 1)
        begun.say(body)
        bodies.append(body)
        size_after[path.with_name("store.db-wal").stat().st_size] = len(bodies)
    total = max(size_after)
    cuts = sorted({*size_after, *(max(0, size - 1) for size in size_after), *range(0, total, total // 23), 31, 33})
    for cut in cuts:
        survived = max(count for size, count in size_after.items() if size <= cut)
        store = _copy(path, tmp_path / f"cut-{cut}", cut)
        assert [body for _seq, body in store.bodies(begun.dialog)] == bodies[:survived]
        assert store.verify(begun.dialog) == ()
        assert Begun(store, begun.session, begun.dialog).say(b"next")[0].seq == survived
        store.close()


def test_a_log_with_a_wrong_byte_ends_before_it(path: Path, begun: Begun, tmp_path: Path) -> None:
    """A frame of the log that is not what was written counts for nothing, nor does anything after it; nothing half is shown."""
    bodies = [b"later %d" % number * 100 for number in range(8)]
    for body in bodies:
        begun.say(body)
    whole = path.with_name("store.db-wal").read_bytes()
    for place in range(40, len(whole), len(whole) // 11):
        folder = tmp_path / f"byte-{place}"
        folder.mkdir()
        shutil.copy(path, folder / "store.db")
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        (folder / "store.db-wal").write_bytes(damaged)
        store = SqliteStore(folder / "store.db")
        nodes = [node.dialog_id for record in store.sessions() for node in store.nodes(record.session_id)]
        for dialog in nodes:
            read = [body for _seq, body in store.bodies(dialog)]
            assert read == bodies[: len(read)]
            assert store.verify(dialog) == ()
        store.close()


@contextmanager
def apsw_connection(path: Path) -> Iterator[apsw.Connection]:
    """Open the file behind the store's back."""
    connection = apsw.Connection(str(path))
    yield connection
    connection.close()


def test_many_processes_may_make_the_same_store(path: Path) -> None:
    """Processes that start on an empty place at once make one store, and each finds all that was written."""
    dialogs: list[str] = []
    with child(path, "-", "begin") as a, child(path, "-", "begin") as b, child(path, "-", "begin") as c:
        writers = (a, b, c)
        assert [line(writer) for writer in writers] == ["ready"] * 3
        for writer in writers:
            tell(writer)
        dialogs += [line(writer) for writer in writers]
        assert [writer.wait() for writer in writers] == [0, 0, 0]
    store = SqliteStore(path, create=False)
    assert len(list(store.sessions())) == 3
    for dialog in dialogs:
        assert [body for _seq, body in store.bodies(DialogId(dialog))] == [b"%d" % number for number in range(20)]
    store.close()


def test_an_idle_process_does_not_hinder_the_end(path: Path, begun: Begun) -> None:
    """A store that another process has open may be closed and opened, and nothing of either is lost."""
    begun.say(b"a")
    with child(path, begun.dialog, "idle") as other:
        assert line(other) == "0"
        begun.store.close()
        again = SqliteStore(path)
        Begun(again, begun.session, begun.dialog).say(b"b")
        again.close()
        tell(other)
        assert other.wait() == 0
    last = SqliteStore(path)
    assert last.last(begun.dialog).seq == 1
    last.close()


def test_a_writer_that_never_ends_is_waited_for_but_not_for_ever(path: Path, begun: Begun) -> None:
    """A store that another holds raises `StoreBusy` when the wait is over; nothing was written, and reading goes on meanwhile."""
    begun.say(b"a")
    impatient = SqliteStore(path, Durability.FULL, wait=0.05)
    with apsw_connection(path) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy):
            impatient.append(begun.dialog, [words()], 0)
        assert impatient.body(begun.dialog, 0) == b"a"
        other.execute("ROLLBACK")
    assert impatient.append(begun.dialog, [words()], 0)[0].seq == 1
    impatient.close()


def test_a_thread_waits_for_another_but_not_for_ever(path: Path, begun: Begun) -> None:
    """Within one process, too, a block that does not end makes others give up, told so."""
    impatient = SqliteStore(path, Durability.FULL, wait=0.05)
    with impatient.together():
        from_elsewhere: list[BaseException] = []

        def write() -> None:
            try:
                impatient.append(begun.dialog, [words()], -1)
            except StoreBusy as error:
                from_elsewhere.append(error)

        thread = Thread(target=write)
        thread.start()
        thread.join()
    assert len(from_elsewhere) == 1
    assert impatient.append(begun.dialog, [words()], -1)[0].seq == 0
    impatient.close()


def test_a_child_that_never_uses_the_store_leaves_it_alone(path: Path, begun: Begun) -> None:
    """A forked child that just ends, running its exit handlers, takes nothing away from its parent."""
    begun.say(b"a")
    pid = os.fork()
    if pid == 0:
        begun.store.close()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    assert begun.say(b"b")[0].seq == 1
    with child(path, begun.dialog, "idle") as other:
        assert line(other) == "1"
        tell(other)


_LOCKED = """
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 510, 0x40000002)
    except OSError:
        print("held")
    else:
        print("free")
"""


def test_opening_again_does_not_drop_the_locks_of_the_first(path: Path, begun: Begun) -> None:
    """Closing any descriptor of a file drops all locks of a process on it, so nobody but SQLite may open the store.

    Without its lock, a handle would not notice that another process takes the log away from under it. The lock is the one on SQLite's
    shared bytes (https://www.sqlite.org/howtocorrupt.html, section 2.2).
    """
    begun.say(b"a")
    for read_only in (False, True):
        SqliteStore(path, read_only=read_only).close()
    held = subprocess.run([sys.executable, "-c", _LOCKED, str(path)], capture_output=True, text=True, check=True)
    assert held.stdout.strip() == "held"


def test_a_fork_waits_for_the_writes_of_other_threads(begun: Begun) -> None:
    """A child never sees a transaction in its middle: the fork waits until the block of the other thread has ended."""
    store = begun.store
    assert isinstance(store, SqliteStore)
    inside = Event()

    def write() -> None:
        with store.together():
            begun.say(b"a")
            inside.set()
            while not store._pool._fork_waits:
                os.sched_yield()
            begun.say(b"b")

    def work() -> None:
        assert [body for _seq, body in store.bodies(begun.dialog)] == [b"a", b"b"]
        begun.say(b"child")

    thread = Thread(target=write)
    thread.start()
    inside.wait()
    assert forked(work) == 0
    thread.join()
    assert [body for _seq, body in store.bodies(begun.dialog)] == [b"a", b"b", b"child"]


def test_a_child_forked_inside_a_block_leaves_it_to_its_parent(begun: Begun) -> None:
    """The transaction belongs to the parent: the child is told so, whatever it does with the store, and the parent's block stands."""

    def work() -> None:
        for use in (lambda: begun.say(b"child"), lambda: begun.store.last(begun.dialog)):
            with pytest.raises(StoreError, match="forked"):
                use()

    def child_leaves_the_block() -> None:
        with begun.store.together():
            begun.say(b"a")
            children.append(_forked_inside())

    def _forked_inside() -> int:
        pid = os.fork()
        if pid == 0:
            raise SystemExit
        return os.waitpid(pid, 0)[1]

    children: list[int] = []
    with begun.store.together():
        begun.say(b"before")
        assert forked(work) == 0
        begun.say(b"after")
    parent = os.getpid()
    try:
        child_leaves_the_block()
    except BaseException as error:
        if os.getpid() == parent:
            raise
        os._exit(0 if isinstance(error, SystemExit) else 1)
    assert children == [0]
    assert [body for _seq, body in begun.store.bodies(begun.dialog)] == [b"before", b"after", b"a"]
    assert begun.store.verify(begun.dialog) == ()
