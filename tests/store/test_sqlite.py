"""SQLite and what lies on the disk: rights, room, files that are something else, and those that move."""

import hashlib
import os
import resource
import shutil
import stat
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import mkdtemp
from threading import Thread

import apsw
import pytest

from palaver.errors import InvalidInput, StoreDamaged, StoreError
from palaver.store import Durability, SqliteStore
from palaver.testing.store_laws import Begun, begin
from palaver.testing.store_laws.backend import forked, words

NOBODY = 65534


def reason(told: pytest.ExceptionInfo[StoreError]) -> str:
    """Return why a store failed."""
    return told.value.reason


def mode(path: Path) -> int:
    """Return the rights of a file."""
    return stat.S_IMODE(path.stat().st_mode)


def names(folder: Path) -> list[str]:
    """Return what a folder holds."""
    return sorted(one.name for one in folder.iterdir())


def digest(path: Path) -> str:
    """Return the digest of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def as_ordinary_user(work: Callable[[], None]) -> None:
    """Do something as a user for whom rights count; the tests themselves may run as root, for whom they do not."""
    child = os.fork()
    if child == 0:
        try:
            if os.getuid() == 0:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            work()
        except BaseException:  # noqa: BLE001 - the child must end here, whatever happened
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, "it failed as an ordinary user; the report is above"


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Return a folder that every user can reach."""
    folder = Path(mkdtemp(prefix="palaver-store-"))
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o700)
    shutil.rmtree(folder)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the place of a store."""
    return tmp_path / "store.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    """Return the store."""
    with SqliteStore(path) as store:
        yield store


# --- rights ---------------------------------------------------------------------------------------------------------------------


def test_p19_files_are_private_from_the_first_moment(tmp_path: Path) -> None:
    """Folders are made with 0700 and files with 0600, the log and its index too, whatever the umask; a closed store is one file."""
    before = os.umask(0o000)
    folder = tmp_path / "a" / "b"
    try:
        store = SqliteStore(folder / "store.db")
        begin(store).say(b"secret")
    finally:
        os.umask(before)
    assert names(folder) == ["store.db", "store.db-shm", "store.db-wal"]
    assert [mode(file) for file in folder.iterdir()] == [0o600] * 3
    assert [mode(one) for one in (folder.parent, folder)] == [0o700] * 2
    store.close()
    assert names(folder) == ["store.db"]


def test_read_only_folder_is_told_and_read(open_folder: Path) -> None:
    """A user who cannot write there, or may not even read, is told so, and reads what may be read; nothing is made or changed."""
    path = open_folder / "store.db"
    with SqliteStore(path) as store:
        begun = begin(store)
        begun.say(b"a", b"b")
    secret = open_folder / "secret.db"
    SqliteStore(secret).close()
    if os.getuid() != 0:
        secret.chmod(0o000)
    path.chmod(0o444)
    open_folder.chmod(0o555)
    before = digest(path)

    def work() -> None:
        for place in (path, open_folder / "new.db", open_folder / "folder" / "new.db"):
            with pytest.raises(StoreError) as told:
                SqliteStore(place)
            assert reason(told) == "read_only"
        with pytest.raises(StoreError) as told:
            SqliteStore(secret, read_only=True)
        assert reason(told) == "read_only"
        with SqliteStore(path, read_only=True) as reader:
            assert Begun(reader, begun.session, begun.dialog).said() == [b"a", b"b"]

    as_ordinary_user(work)
    assert (digest(path), names(open_folder)) == (before, ["secret.db", "store.db"])


@pytest.mark.parametrize("sides", [("-wal",), ("-wal", "-shm")], ids=["log", "log and its index"])
def test_read_only_folder_shows_what_a_log_holds(open_folder: Path, tmp_path: Path, sides: tuple[str, ...]) -> None:
    """What was acknowledged and is only in the log that a killed writer left is read, by several connections; nothing is made or changed."""
    with SqliteStore(tmp_path / "store.db") as store:
        begun = begin(store)
        begun.say(b"a", b"b")
        for side in ("", *sides):
            shutil.copy(tmp_path / f"store.db{side}", open_folder / f"store.db{side}")
            (open_folder / f"store.db{side}").chmod(0o444)
    open_folder.chmod(0o555)
    before = {name: digest(open_folder / name) for name in names(open_folder)}

    def work() -> None:
        with SqliteStore(open_folder / "store.db", read_only=True) as reader:
            lines = reader.bodies(begun.dialog)
            assert next(lines) == (0, b"a")
            assert Begun(reader, begun.session, begun.dialog).said() == [b"a", b"b"]
            assert list(lines) == [(1, b"b")]

    as_ordinary_user(work)
    assert {name: digest(open_folder / name) for name in names(open_folder)} == before


def test_reader_waits_for_a_store_being_made(path: Path) -> None:
    """A file that is empty because another process is just making it: a reader waits for it, and sees it whole."""
    path.touch()
    read = list[SqliteStore]()
    reader = Thread(target=lambda: read.append(SqliteStore(path, read_only=True, wait=60.0)))
    reader.start()
    reader.join(0.05)
    assert reader.is_alive()
    SqliteStore(path).close()
    reader.join()
    assert list(read[0].sessions()) == []
    read[0].close()


# --- room -----------------------------------------------------------------------------------------------------------------------


def test_disk_without_room_is_told(path: Path) -> None:
    """A disk on which a new store does not fit: nothing lies under its name. One that fills up later: what was acknowledged stays."""

    def limit(size: int) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def work() -> None:
        for room in (0, 5_000, 100_000):
            limit(room)
            with pytest.raises(StoreError) as told:
                SqliteStore(path)
            assert reason(told) == "full"
        limit(resource.RLIM_INFINITY)
        assert names(path.parent) in ([], ["store.db"])
        with SqliteStore(path) as store:
            begun = begin(store)
            limit(path.stat().st_size + 50_000)
            with pytest.raises(StoreError) as told:
                begun.say(b"x" * 500_000)
            assert reason(told) == "full"
            begun.say(b"small")
        limit(resource.RLIM_INFINITY)
        with SqliteStore(path) as store:
            assert Begun(store, begun.session, begun.dialog).said() == [b"small"]

    assert forked(work) == 0


# --- files that are something else ------------------------------------------------------------------------------------------------


def test_file_that_is_no_store_is_left_alone(tmp_path: Path) -> None:
    """Whatever lies there is not ours to change: neither other files, nor databases of other programs, nor a folder, nor odd names."""
    path = tmp_path / "notes.txt"
    with apsw.Connection(str(path)) as other:
        other.execute("CREATE TABLE notes (text); INSERT INTO notes VALUES ('mine')")
    other.close()
    contents = (b"x", b"SQLite format 2\x00" + b"x" * 100, b"\x00" * 4096)
    for content in (path.read_bytes(), *contents):
        path.write_bytes(content)
        for read_only in (False, True):
            with pytest.raises(InvalidInput):
                SqliteStore(path, read_only=read_only)
        assert (path.read_bytes(), names(tmp_path)) == (content, ["notes.txt"])
    for place in (tmp_path, os.fsdecode(bytes(tmp_path) + b"/caf\xe9.db")):
        with pytest.raises(InvalidInput):
            SqliteStore(place)
    assert names(tmp_path) == ["notes.txt"]


def test_damaged_page_spares_the_rest(path: Path, begun: Begun) -> None:
    """D20: reading what lies on a broken page is damage; what lies elsewhere is read as ever."""
    begun.say(*(b"%d " % number * 1200 for number in range(30)))
    begun.store.close()
    raw = bytearray(path.read_bytes())
    place = raw.index(b"17 17 17") & ~4095
    raw[place : place + 100] = b"\xff" * 100
    path.write_bytes(raw)
    with SqliteStore(path) as again:
        assert [header.seq for header in again.headers(begun.dialog)] == list(range(30))
        assert again.body(begun.dialog, 3) == b"3 " * 1200
        with pytest.raises(StoreDamaged):
            list(again.bodies(begun.dialog))


# --- files that move, and those that are cut ----------------------------------------------------------------------------------------


def test_file_that_moved_is_noticed(path: Path, begun: Begun) -> None:
    """A store whose file was moved reads and writes nothing, and nobody makes another beside its log; moved back, it goes on.

    Another store under the same name is not written into.
    """
    begun.say(b"a")
    elsewhere = path.with_name("elsewhere.db")
    path.rename(elsewhere)
    for use in (lambda: begun.say(b"lost"), begun.said, lambda: SqliteStore(path)):
        with pytest.raises(StoreError) as told:
            use()
        assert reason(told) == "moved"
    elsewhere.rename(path)
    begun.say(b"b")
    assert begun.said() == [b"a", b"b"]
    with SqliteStore(elsewhere) as other:
        theirs = begin(other)
    elsewhere.replace(path)
    with pytest.raises(StoreError) as told:
        begun.store.append(theirs.dialog, [words()], -1)
    assert reason(told) == "moved"


@pytest.mark.parametrize("replaced", [False, True])
def test_deleted_log_is_noticed(path: Path, begun: Begun, replaced: bool) -> None:
    """A write after the write-ahead log was deleted is refused, for nobody would find it; closing keeps what was acknowledged before."""
    begun.say(b"a")
    log = path.with_name(f"{path.name}-wal")
    content = log.read_bytes()
    log.unlink()
    if replaced:
        log.with_suffix(".other").write_bytes(content)  # another file: the inode differs
        log.with_suffix(".other").rename(log)
    for _ in range(2):
        with pytest.raises(StoreError) as told:
            begun.say(b"lost")
        assert reason(told) == "moved"
    begun.store.close()
    with SqliteStore(path) as again:
        assert [body for _seq, body in again.bodies(begun.dialog)] == [b"a"]
        again.append(begun.dialog, [words(b"b")], again.last(begun.dialog).turn_head)


def test_log_of_the_last_connection_is_no_fault(path: Path, begun: Begun) -> None:
    """SQLite deletes the log with the last connection: a store whose connections were all closed, or one of a child process, goes on."""
    begun.say(b"a")
    with SqliteStore(path) as other:
        with other._db.lent() as connection:
            connection.execute("BEGIN")  # not reusable: it is closed when it comes back
        other.append(begun.dialog, [words(b"b")], other.last(begun.dialog).turn_head)
    begun.store.close()
    with SqliteStore(path) as alone:
        with alone._db.lent() as connection:
            connection.execute("BEGIN; SELECT 1 FROM sqlite_schema")
        assert not path.with_name(f"{path.name}-wal").exists()
        alone.append(begun.dialog, [words(b"c")], alone.last(begun.dialog).turn_head)
        assert [body for _seq, body in alone.bodies(begun.dialog)] == [b"a", b"b", b"c"]


# --- durability and waiting ---------------------------------------------------------------------------------------------------------


def test_durability_is_what_connections_do(path: Path) -> None:
    """FULL flushes at each write and NORMAL at checkpoints, on every connection; a file cannot promise less."""
    for durability, level in ((Durability.FULL, 2), (Durability.NORMAL, 1)):
        with SqliteStore(path, durability) as store, store._db.lent() as one, store._db.lent() as other:
            assert [connection.pragma("synchronous") for connection in (one, other)] == [level, level]
            assert (one.pragma("journal_mode"), one.pragma("secure_delete")) == ("wal", 1)
    with pytest.raises(InvalidInput):
        SqliteStore(path, Durability.MEMORY)


_LOCKED = """
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 510, 0x40000002)
    except OSError:
        print("held")
"""


def test_opening_again_drops_no_lock(path: Path, begun: Begun) -> None:
    """Closing any descriptor of a file drops all locks of a process on it, so nobody but SQLite opens the store.

    Without its lock, a handle would not notice that another process takes the log away from under it. The lock is the one on SQLite's
    shared bytes (https://www.sqlite.org/howtocorrupt.html, section 2.2).
    """
    begun.say(b"a")
    for read_only in (False, True):
        SqliteStore(path, read_only=read_only).close()
    held = subprocess.run([sys.executable, "-c", _LOCKED, str(path)], capture_output=True, text=True, check=True)
    assert held.stdout.strip() == "held"
