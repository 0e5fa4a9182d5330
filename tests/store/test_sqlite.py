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
from os import utime
from pathlib import Path
from tempfile import mkdtemp
from threading import Thread

import apsw
import pytest

from palaver.errors import InvalidInput, MissingFile, StoreBusy, StoreDamaged, StoreError
from palaver.store import Durability, SqliteStore
from palaver.store.sqlite.opening import APPLICATION_ID, newest_format
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


def test_rights_of_what_is_there_are_left_alone(tmp_path: Path) -> None:
    """A folder and a store that somebody shares on purpose stay shared, and side files follow the store."""
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o750)
    SqliteStore(shared / "store.db").close()
    (shared / "store.db").chmod(0o640)
    with SqliteStore(shared / "store.db") as store:
        begin(store)
        assert mode(shared) == 0o750
        assert {mode(file) for file in shared.iterdir()} == {0o640}


def test_read_only_folder_is_told_and_read(open_folder: Path) -> None:
    """A user who cannot write there is told so, and can still read; nothing is made or changed."""
    path = open_folder / "store.db"
    with SqliteStore(path) as store:
        begun = begin(store)
        begun.say(b"a", b"b")
    path.chmod(0o444)
    open_folder.chmod(0o555)
    before = digest(path)

    def work() -> None:
        for place in (path, open_folder / "new.db", open_folder / "folder" / "new.db"):
            with pytest.raises(StoreError) as told:
                SqliteStore(place)
            assert reason(told) == "read_only"
        with SqliteStore(path, read_only=True) as reader:
            assert Begun(reader, begun.session, begun.dialog).said() == [b"a", b"b"]

    as_ordinary_user(work)
    assert (digest(path), names(open_folder)) == (before, ["store.db"])


def test_file_of_somebody_else_is_told(open_folder: Path) -> None:
    """A store that may not even be read is no missing store, and no damaged one."""
    SqliteStore(open_folder / "store.db").close()
    if os.getuid() != 0:
        (open_folder / "store.db").chmod(0o000)

    def work() -> None:
        for read_only in (False, True):
            with pytest.raises(StoreError) as told:
                SqliteStore(open_folder / "store.db", read_only=read_only)
            assert reason(told) == "read_only"

    as_ordinary_user(work)


def test_store_opened_read_only_refuses_every_write(path: Path, begun: Begun) -> None:
    """It reads what others write, and writes nothing, even where it could."""
    with SqliteStore(path, read_only=True) as reader:
        begun.say(b"a")
        assert reader.body(begun.dialog, 0) == b"a"
        for write in (
            lambda: reader.append(begun.dialog, [words()], 1),
            lambda: reader.put_blob(b"x"),
            lambda: reader.update_session(begun.session, name="x"),
            lambda: reader.index(lambda _kind, body: body.decode()),
            lambda: reader.transaction().__enter__(),
        ):
            with pytest.raises(StoreError) as told:
                write()
            assert reason(told) == "read_only"


def test_reading_makes_nothing(tmp_path: Path) -> None:
    """A store that must be there is missing when nothing, or an empty file, is there; it stays so."""
    empty = tmp_path / "empty.db"
    empty.touch()
    utime(empty, (1.0, 1.0))
    for place in (tmp_path / "a" / "store.db", empty, empty / "store.db"):
        for read_only, create in ((True, False), (False, False), (True, True)):
            with pytest.raises(MissingFile):
                SqliteStore(place, read_only=read_only, create=create)
    assert (names(tmp_path), empty.stat().st_size) == (["empty.db"], 0)


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


def test_full_store_undoes_the_write_and_goes_on(store: SqliteStore, begun: Begun) -> None:
    """The write that does not fit is undone as a whole, a transaction too, even if the error inside was caught; with room it goes on."""
    begun.say(b"a")
    with store._db.lent() as connection:
        connection.pragma("max_page_count", int(str(connection.pragma("page_count"))) + 8)
    before = begun.everything()

    def write() -> None:
        with store.transaction():
            begun.say(b"fits")
            with pytest.raises(StoreError):
                begun.say(b"x" * 100_000)

    for use in (lambda: begun.say(b"b", b"x" * 100_000), lambda: store.put_blob(b"x" * 100_000)):
        with pytest.raises(StoreError, match="no room") as told:
            use()
        assert reason(told) == "full"
    with pytest.raises(StoreError):
        write()
    assert begun.everything() == before
    with store._db.lent() as connection:
        connection.pragma("max_page_count", 1 << 30)
    assert begun.say(b"b", b"x" * 100_000)[-1].seq == 2
    assert store.verify(begun.dialog) == ()


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


def test_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    """Whatever lies there is not ours to change, and the message says what is wrong."""
    path = tmp_path / "notes.txt"
    for content in (b"x", b"SQLite format 2\x00" + b"x" * 100, b'{"role": "user"}\n' * 100, b"\x00" * 4096):
        path.write_bytes(content)
        for read_only in (False, True):
            with pytest.raises(InvalidInput, match="not an SQLite database"):
                SqliteStore(path, read_only=read_only)
        assert (path.read_bytes(), names(tmp_path)) == (content, ["notes.txt"])


def test_database_of_another_program_is_left_alone(path: Path) -> None:
    """A SQLite file that palaver did not make is not migrated into; nor is a folder, or a name that is not UTF-8, a store."""
    other = apsw.Connection(str(path))
    other.execute("CREATE TABLE notes (text); INSERT INTO notes VALUES ('mine')")
    other.close()
    before = digest(path)
    for place in (path, path.parent, os.fsdecode(bytes(path.parent) + b"/caf\xe9.db")):
        with pytest.raises(InvalidInput):
            SqliteStore(place)
    assert (digest(path), names(path.parent)) == (before, ["store.db"])


def test_newer_store_is_left_alone(path: Path, store: SqliteStore) -> None:
    """A store of a later palaver is told with both formats; not one byte is changed."""
    store.close()
    later = apsw.Connection(str(path))
    later.pragma("user_version", 999)
    later.close()
    before = digest(path)
    for read_only in (False, True):
        with pytest.raises(StoreError, match=f"999.*{newest_format()}") as told:
            SqliteStore(path, read_only=read_only)
        assert reason(told) == "too_new"
    assert (digest(path), names(path.parent)) == (before, ["store.db"])


def test_file_says_whose_it_is(path: Path, store: SqliteStore) -> None:
    """The application's id and the format stand in the header of the file, where `file` looks."""
    store.close()
    raw = path.read_bytes()
    assert (raw[68:72], int.from_bytes(raw[60:64], "big")) == (APPLICATION_ID.to_bytes(4, "big"), newest_format())


def test_d20_broken_head_is_damage(path: Path, begun: Begun) -> None:
    """A file that begins as SQLite does and is not is damaged, and is left for the doctor."""
    begun.store.close()
    broken = bytearray(path.read_bytes())
    broken[16:2000] = b"\xff" * (2000 - 16)
    path.write_bytes(broken)
    with pytest.raises(StoreDamaged, match=str(path)):
        SqliteStore(path)
    assert path.read_bytes() == bytes(broken)


def test_d20_damaged_page_spares_the_rest(path: Path, begun: Begun) -> None:
    """Reading what lies on a broken page is damage; what lies elsewhere is read as ever."""
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
    """A store whose file was moved reads and writes nothing, and nobody makes another beside its log; moved back, it goes on."""
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


def test_file_that_was_replaced_is_noticed(path: Path, begun: Begun, tmp_path: Path) -> None:
    """Another store under the same name is not written into."""
    begun.say(b"a")
    with SqliteStore(tmp_path / "other.db") as other:
        theirs = begin(other)
    (tmp_path / "other.db").replace(path)
    with pytest.raises(StoreError) as told:
        begun.store.append(theirs.dialog, [words()], -1)
    assert reason(told) == "moved"


@pytest.mark.parametrize("flipped", [False, True])
def test_d20_torn_log_ends_at_a_whole_write(path: Path, begun: Begun, tmp_path: Path, flipped: bool) -> None:
    """Cut the write-ahead log anywhere, or flip a byte in it: what was written before is there, whole, in order, and appending goes on."""
    begun.say(b"in the file")
    other = apsw.Connection(str(path))
    other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    other.close()
    log, bodies, after = path.with_name("store.db-wal"), [b"in the file"], {0: 1}
    for number in range(12):
        bodies.append(b"%d " % number * (40 * number + 1))
        begun.say(bodies[-1])
        after[log.stat().st_size] = len(bodies)
    whole, content = log.read_bytes(), path.read_bytes()
    cuts = {31, 33, *after, *(max(0, size - 1) for size in after), *range(0, len(whole), len(whole) // 13)}
    for cut in sorted(cuts):
        place = tmp_path / str(cut) / "store.db"
        place.parent.mkdir()
        place.write_bytes(content)
        tail = bytes([whole[cut] ^ 0xFF]) + whole[cut + 1 :] if flipped and cut < len(whole) else b""
        place.with_name("store.db-wal").write_bytes(whole[:cut] + tail)
        with SqliteStore(place) as store:
            left = Begun(store, begun.session, begun.dialog)
            survived = max(count for size, count in after.items() if size <= cut)
            assert left.said() == bodies[:survived]
            assert store.verify(begun.dialog) == ()
            assert left.say(b"next")[0].seq == survived


def test_deleted_bytes_leave_the_disk(path: Path, begun: Begun) -> None:
    """Each connection overwrites what it deletes: overwritten bodies, deleted texts and tokens are in no file any more."""
    begun.say(b"before", b"zqxsecretone", b"zqxsecrettwo " * 900)
    begun.store.index(lambda _kind, body: body.decode())
    assert any(b"zqxsecret" in file.read_bytes() for file in path.parent.iterdir())
    store = begun.store
    assert isinstance(store, SqliteStore)
    with store._db.lent() as connection:
        connection.execute("UPDATE bodies SET body = x'00'; DELETE FROM texts; DELETE FROM tokens")
    assert store.scrub(thorough=False) == ()
    store.close()
    assert not any(b"secret" in file.read_bytes() for file in path.parent.iterdir())


# --- durability and waiting ---------------------------------------------------------------------------------------------------------


def test_durability_is_what_connections_do(path: Path) -> None:
    """FULL flushes at each write and NORMAL at checkpoints, on every connection; a file cannot promise less."""
    for durability, level in ((Durability.FULL, 2), (Durability.NORMAL, 1)):
        with SqliteStore(path, durability) as store, store._db.lent() as one, store._db.lent() as other:
            assert [connection.pragma("synchronous") for connection in (one, other)] == [level, level]
            assert (one.pragma("journal_mode"), one.pragma("secure_delete")) == ("wal", 1)
    with pytest.raises(InvalidInput):
        SqliteStore(path, Durability.MEMORY)


def test_writer_waits_for_another_not_for_ever(path: Path, begun: Begun) -> None:
    """Whoever finds the file, or in its own process the lock, taken is told when the wait is over; reading goes on meanwhile."""
    begun.say(b"a")
    told = list[StoreBusy]()
    with SqliteStore(path, wait=0.05) as impatient:

        def write() -> None:
            with pytest.raises(StoreBusy) as busy:
                impatient.append(begun.dialog, [words()], 0)
            told.append(busy.value)

        other = apsw.Connection(str(path))
        other.execute("BEGIN IMMEDIATE")
        write()
        assert impatient.body(begun.dialog, 0) == b"a"
        other.close()
        with impatient.transaction():
            thread = Thread(target=write)
            thread.start()
            thread.join()
        assert len(told) == 2
        assert impatient.append(begun.dialog, [words()], 0)[0].seq == 1


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
