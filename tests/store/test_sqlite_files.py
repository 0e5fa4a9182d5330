"""SQLite and what lies on the disk: rights, rooms without space, files that are something else, and formats of other versions."""

import gzip
import hashlib
import json
import os
import resource
import shutil
import stat
import traceback
from collections.abc import Callable, Iterator
from os import utime
from pathlib import Path
from tempfile import mkdtemp
from threading import Thread

import apsw
import pytest

from palaver.errors import (
    InvalidInput,
    MissingStore,
    StoreDamaged,
    StoreFull,
    StoreReadOnly,
    StoreTooNew,
)
from palaver.store import Durability, SqliteStore
from palaver.store.sqlite.connections import reading
from palaver.store.sqlite.opening import APPLICATION_ID, _migrate, newest_format
from palaver.store.sqlite.statements import migrations
from palaver.testing.forked import forked
from palaver.testing.store_laws import Begun, begin
from palaver.testing.store_laws.backend import words
from tests.store.golden import content

NOBODY = 65534
GOLDEN = Path(__file__).parents[1] / "golden"


def mode(path: Path) -> int:
    """Give the rights of a file."""
    return stat.S_IMODE(path.stat().st_mode)


def digest(path: Path) -> str:
    """Give the digest of a file."""
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
    """Give a folder that every user can reach."""
    folder = Path(mkdtemp(prefix="palaver-store-"))
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o700)
    shutil.rmtree(folder)


@pytest.fixture
def begun(tmp_path: Path) -> Iterator[Begun]:
    """Give a store with one dialog."""
    store = SqliteStore(tmp_path / "store.db")
    yield begin(store)
    store.close()


# --- rights ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_files_are_private_from_the_first_moment(tmp_path: Path, umask: int) -> None:
    """P19: folders are made with 0700 and files with 0600, the log and its index too, whatever the umask."""
    before = os.umask(umask)
    try:
        store = SqliteStore(tmp_path / "a" / "b" / "store.db")
        begin(store).say(b"secret")
    finally:
        os.umask(before)
    files = sorted((tmp_path / "a" / "b").iterdir())
    assert [file.name for file in files] == ["store.db", "store.db-shm", "store.db-wal"]
    assert [mode(file) for file in files] == [0o600] * 3
    assert [mode(folder) for folder in (tmp_path / "a", tmp_path / "a" / "b")] == [0o700] * 2
    store.close()


def test_rights_of_what_is_there_are_left_alone(tmp_path: Path) -> None:
    """A folder and a store that somebody shares on purpose stay shared, and side files follow the store."""
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o750)
    SqliteStore(shared / "store.db").close()
    (shared / "store.db").chmod(0o640)
    store = SqliteStore(shared / "store.db")
    begin(store)
    assert mode(shared) == 0o750
    assert {mode(file) for file in shared.iterdir()} == {0o640}
    store.close()


def test_a_closed_store_is_one_file(begun: Begun, tmp_path: Path) -> None:
    """Closing carries the log over and takes the side files away, so that a copy of the file is a copy of the store."""
    begun.say(b"a")
    begun.store.close()
    assert [file.name for file in tmp_path.iterdir()] == ["store.db"]


def test_a_read_only_folder_says_so(open_folder: Path) -> None:
    """An ordinary user who may not write there is told so, and can still read; nothing is made or changed."""
    store = SqliteStore(open_folder / "store.db")
    begun = begin(store)
    begun.say(b"a", b"b")
    store.close()
    path = open_folder / "store.db"
    path.chmod(0o444)
    open_folder.chmod(0o555)
    before = digest(path)

    def work() -> None:
        with pytest.raises(StoreReadOnly, match="may not be written") as told:
            SqliteStore(path)
        assert "read-only" in told.value.hint
        with pytest.raises(StoreReadOnly):
            SqliteStore(open_folder / "new.db")
        with pytest.raises(StoreReadOnly):
            SqliteStore(open_folder / "folder" / "new.db")
        reader = SqliteStore(path, read_only=True)
        assert [body for _seq, body in reader.bodies(begun.dialog)] == [b"a", b"b"]
        with pytest.raises(StoreReadOnly):
            reader.append(begun.dialog, [words()], 1)
        reader.close()

    as_ordinary_user(work)
    assert digest(path) == before
    assert [file.name for file in open_folder.iterdir()] == ["store.db"]


def test_a_file_of_somebody_else_says_so(open_folder: Path) -> None:
    """A store that may not even be read is no missing store, and no damaged one."""
    SqliteStore(open_folder / "store.db").close()

    def work() -> None:
        for read_only in (False, True):
            with pytest.raises(StoreReadOnly):
                SqliteStore(open_folder / "store.db", read_only=read_only)

    if os.getuid() == 0:
        as_ordinary_user(work)
    else:
        (open_folder / "store.db").chmod(0o000)
        work()


def test_a_store_opened_to_be_read_refuses_every_write(begun: Begun, tmp_path: Path) -> None:
    """It reads what others write, and writes nothing, even where it could."""
    begun.say(b"a")
    reader = SqliteStore(tmp_path / "store.db", read_only=True)
    assert reader.body(begun.dialog, 0) == b"a"
    begun.say(b"b")
    assert reader.last(begun.dialog).seq == 1
    for write in (
        lambda: reader.append(begun.dialog, [words()], 1),
        lambda: reader.put_blob(b"x"),
        lambda: reader.update_session(begun.session, name="x"),
        lambda: reader.index(lambda _kind, body: body.decode()),
        reader.drop_index,
    ):
        with pytest.raises(StoreReadOnly):
            write()
    reader.close()


def test_a_store_to_be_read_must_be_there(tmp_path: Path) -> None:
    """Reading makes nothing."""
    for read_only, create in ((True, False), (False, False), (True, True)):
        with pytest.raises(MissingStore):
            SqliteStore(tmp_path / "a" / "store.db", read_only=read_only, create=create)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "empty.db").touch()
    utime(tmp_path / "empty.db", (1.0, 1.0))
    for read_only, create in ((True, False), (False, False), (True, True)):
        with pytest.raises(MissingStore, match="empty"):
            SqliteStore(tmp_path / "empty.db", read_only=read_only, create=create)
    assert (tmp_path / "empty.db").stat().st_size == 0


@pytest.mark.parametrize("done", range(newest_format()))
def test_a_reader_waits_for_a_store_that_is_just_being_made(tmp_path: Path, done: int) -> None:
    """An empty file that was just made, or one with some of the migrations: a reader that comes then waits, and sees the store whole."""
    path = tmp_path / "store.db"
    path.touch()
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "WAL")
    for migration in migrations()[:done]:
        _migrate(connection, migration)
    read = list[SqliteStore]()
    reader = Thread(target=lambda: read.append(SqliteStore(path, read_only=True, wait=60.0)))
    reader.start()
    reader.join(0.05)
    assert reader.is_alive()
    SqliteStore(path, create=True).close()
    reader.join()
    (store,) = read
    assert list(store.sessions()) == []
    store.close()
    connection.close()


# --- room -----------------------------------------------------------------------------------------------------------------------


def test_a_full_store_undoes_the_write_and_goes_on(begun: Begun) -> None:
    """SQLITE_FULL: the write that does not fit is undone as a whole, what is there stays, and with room it goes on."""
    begun.say(b"a")
    store = begun.store
    assert isinstance(store, SqliteStore)
    with reading(store._pool) as connection:
        pages = int(str(connection.pragma("page_count")))
        connection.pragma("max_page_count", pages + 2)
    before = begun.everything()
    with pytest.raises(StoreFull, match="no room"):
        begun.say(b"b", b"x" * 100_000, b"c")
    with pytest.raises(StoreFull):
        store.put_blob(b"x" * 100_000)
    assert begun.everything() == before
    with reading(store._pool) as connection:
        connection.pragma("max_page_count", 1 << 30)
    assert begun.say(b"b", b"x" * 100_000)[-1].seq == 2
    assert store.verify(begun.dialog) == ()


def test_a_block_on_a_full_disk_is_undone_as_a_whole(begun: Begun) -> None:
    """Nothing of a block stands when it cannot be made durable, even if the error inside was caught."""
    begun.say(b"a")
    store = begun.store
    assert isinstance(store, SqliteStore)
    with reading(store._pool) as connection:
        connection.pragma("max_page_count", int(str(connection.pragma("page_count"))) + 8)
    before = begun.everything()

    def write() -> None:
        with store.together():
            begun.say(b"fits")
            begun.say(b"x" * 100_000)

    with pytest.raises(StoreFull):
        write()
    assert begun.everything() == before


def test_no_store_is_begun_where_there_is_no_room_for_one(tmp_path: Path) -> None:
    """A disk on which a new store does not fit: the error says so, and nothing lies under its name, not even an empty file."""
    path = tmp_path / "store.db"

    def work() -> None:
        for room in (0, 5_000, 100_000):
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
            with pytest.raises(StoreFull, match="no room"):
                SqliteStore(path)
            assert list(tmp_path.iterdir()) == []
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        SqliteStore(path).close()

    assert forked(work) == 0
    assert path.exists()


def test_a_disk_without_room_says_so(tmp_path: Path) -> None:
    """The operating system's own refusal, in the middle of a write, is told as what it is; what was acknowledged stays."""
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    begun = begin(store)
    begun.say(b"a")
    store.close()

    def work() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 50_000, resource.RLIM_INFINITY))
        child = SqliteStore(path)
        with pytest.raises(StoreFull):
            child.append(begun.dialog, [words(b"x" * 500_000)], 0)
        assert child.append(begun.dialog, [words(b"small")], 0)[0].seq == 1
        child.close()

    assert forked(work) == 0
    again = SqliteStore(path)
    assert [body for _seq, body in again.bodies(begun.dialog)] == [b"a", b"small"]
    again.close()


# --- files that are something else ------------------------------------------------------------------------------------------------


def test_a_name_that_is_no_utf_8_is_refused_in_words(tmp_path: Path) -> None:
    """SQLite could not open it: the caller is told, and nothing is made."""
    name = os.fsdecode(bytes(tmp_path) + b"/caf\xe9.db")
    with pytest.raises(InvalidInput, match="UTF-8"):
        SqliteStore(name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content_of_file",
    [b"x", b"SQLite format 2\x00" + b"x" * 100, b'{"role": "user"}\n' * 100, bytes(range(256)) * 40, b"\x00" * 4096],
)
def test_a_file_that_is_no_database_is_refused_untouched(tmp_path: Path, content_of_file: bytes) -> None:
    """Whatever lies there is not ours to change, and the message says what is wrong."""
    path = tmp_path / "notes.txt"
    path.write_bytes(content_of_file)
    for read_only in (False, True):
        with pytest.raises(InvalidInput, match="no SQLite database") as told:
            SqliteStore(path, read_only=read_only)
        assert "not touched" in told.value.hint
    assert path.read_bytes() == content_of_file
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]


def test_a_folder_is_no_store(tmp_path: Path) -> None:
    """A folder, or a path through a file, is told as what it is."""
    with pytest.raises(InvalidInput, match="is no file"):
        SqliteStore(tmp_path)
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(MissingStore):
        SqliteStore(tmp_path / "file" / "store.db")


def test_the_database_of_another_program_is_refused_untouched(tmp_path: Path) -> None:
    """A SQLite file that palaver did not make is not migrated into."""
    path = tmp_path / "other.db"
    other = apsw.Connection(str(path))
    other.execute("CREATE TABLE notes (text); INSERT INTO notes VALUES ('mine')")
    other.close()
    before = digest(path)
    with pytest.raises(InvalidInput, match="another program"):
        SqliteStore(path)
    assert digest(path) == before
    assert [file.name for file in tmp_path.iterdir()] == ["other.db"]


def test_a_database_with_a_broken_head_is_damaged(begun: Begun, tmp_path: Path) -> None:
    """A file that says it is SQLite and is not is told as damaged, and is left for the doctor."""
    begun.say(b"a")
    begun.store.close()
    path = tmp_path / "store.db"
    broken = bytearray(path.read_bytes())
    broken[16:2000] = b"\xff" * (2000 - 16)
    path.write_bytes(broken)
    with pytest.raises(StoreDamaged) as told:
        SqliteStore(path)
    assert str(path) in str(told.value)
    assert path.read_bytes() == bytes(broken)


def test_a_damaged_page_spares_other_dialogs(tmp_path: Path) -> None:
    """Reading what lies on a broken page is told as damage; what lies elsewhere is read as ever."""
    store = SqliteStore(tmp_path / "store.db")
    begun = begin(store)
    begun.say(*(b"%d " % number * 1200 for number in range(30)))
    store.close()
    raw = bytearray((tmp_path / "store.db").read_bytes())
    place = raw.index(b"17 17 17") & ~4095
    raw[place : place + 100] = b"\xff" * 100
    (tmp_path / "store.db").write_bytes(raw)
    again = SqliteStore(tmp_path / "store.db")
    assert [header.seq for header in again.headers(begun.dialog)] == list(range(30))
    assert again.body(begun.dialog, 3) == b"3 " * 1200
    with pytest.raises(StoreDamaged):
        list(again.bodies(begun.dialog))
    again.close()


def test_durability_of_memory_is_refused(tmp_path: Path) -> None:
    """A file outlives the process, so it cannot promise less."""
    with pytest.raises(InvalidInput):
        SqliteStore(tmp_path / "store.db", Durability.MEMORY)


@pytest.mark.parametrize(("durability", "level"), [(Durability.FULL, 2), (Durability.NORMAL, 1)])
def test_durability_is_what_the_connection_does(tmp_path: Path, durability: Durability, level: int) -> None:
    """FULL is synchronous=FULL and NORMAL is synchronous=NORMAL, on every connection, over a write-ahead log."""
    store = SqliteStore(tmp_path / "store.db", durability)
    with reading(store._pool) as one, reading(store._pool) as other:
        assert [c.pragma("synchronous") for c in (one, other)] == [level, level]
        assert one.pragma("journal_mode") == "wal"
        assert one.pragma("secure_delete") == 1
    store.close()


# --- formats --------------------------------------------------------------------------------------------------------------------


def test_a_newer_store_is_refused_untouched(begun: Begun, tmp_path: Path) -> None:
    """A store from a later palaver is told with both formats; not one byte is changed."""
    begun.store.close()
    path = tmp_path / "store.db"
    later = apsw.Connection(str(path))
    later.pragma("user_version", 999)
    later.close()
    before = digest(path)
    for read_only in (False, True):
        with pytest.raises(StoreTooNew, match="999") as told:
            SqliteStore(path, read_only=read_only)
        assert (told.value.found, told.value.supported) == (999, newest_format())
    assert digest(path) == before
    assert [file.name for file in tmp_path.iterdir()] == ["store.db"]


def test_the_file_says_whose_it_is(begun: Begun, tmp_path: Path) -> None:
    """The application id and the format stand in the header, and each migration is recorded with its digest."""
    begun.store.close()
    raw = (tmp_path / "store.db").read_bytes()
    assert int.from_bytes(raw[68:72], "big") == APPLICATION_ID
    assert raw[68:72] == b"palv"
    assert int.from_bytes(raw[60:64], "big") == newest_format()
    looked = apsw.Connection(str(tmp_path / "store.db"))
    assert looked.execute("SELECT count(*) FROM migrations").get == newest_format()
    looked.close()


@pytest.mark.parametrize("version", range(1, newest_format() + 1))
def test_every_old_format_is_read(tmp_path: Path, version: int) -> None:
    """P12: a store of each format that ever was opens, is upgraded, and gives all that was written into it."""
    path = tmp_path / "store.db"
    path.write_bytes(gzip.decompress((GOLDEN / f"store-v{version}.db.gz").read_bytes()))
    expected = json.loads((GOLDEN / f"store-v{version}.json").read_text("utf-8"))
    store = SqliteStore(path)
    assert json.loads(json.dumps(content(store))) == expected
    dialogs = [node.dialog_id for record in store.sessions() for node in store.nodes(record.session_id)]
    assert all(store.verify(dialog) == () for dialog in dialogs)
    assert store.append(dialogs[0], [words()], store.last(dialogs[0]).turn_head)
    store.close()


# --- what erasure will need -----------------------------------------------------------------------------------------------------


def test_what_is_deleted_leaves_the_disk(begun: Begun, tmp_path: Path) -> None:
    """P19: overwriting a body and deleting its text and tokens, and carrying the log over, leaves no trace of it in any file."""
    secrets = [b"zqxsecretone", b"zqxsecrettwo " * 900]
    begun.say(b"before", secrets[0], b"between", secrets[1], b"after")
    begun.store.index(lambda _kind, body: body.decode())
    assert len(begun.store.search("zqxsecretone")) == 1
    store = begun.store
    assert isinstance(store, SqliteStore)
    assert any(b"zqxsecret" in file.read_bytes() for file in tmp_path.iterdir())
    with store.together(), reading(store._pool) as connection:
        for seq in (1, 3):
            place = {"place": (1 << 32) + seq}
            connection.execute(
                "UPDATE bodies SET body = x'00' WHERE body_no = (SELECT body_no FROM headers WHERE id = :place)", place
            )
            connection.execute("DELETE FROM texts WHERE id = :place", place)
            connection.execute("DELETE FROM tokens WHERE rowid = :place", place)
    with reading(store._pool) as connection:
        connection.execute("INSERT INTO tokens (tokens) VALUES ('optimize')")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    store.close()
    assert not any(b"secret" in file.read_bytes() for file in tmp_path.iterdir())
