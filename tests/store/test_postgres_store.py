"""What is PostgreSQL's own: addresses, schemas, migrations, locks, forks, and what its types cannot hold."""

import asyncio
import gzip
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from threading import Event, Thread

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.errors import (
    Conflict,
    InvalidInput,
    MissingStore,
    StoreBusy,
    StoreError,
    StoreReadOnly,
    StoreTooNew,
    StoreUnavailable,
)
from palaver.store import Durability, erasing_rows, open_store
from palaver.store.asynchronous import AsyncStore
from palaver.store.postgres import PostgresStore
from palaver.store.postgres.address import address
from palaver.store.postgres.opening import newest_format
from palaver.store.postgres.search import _VECTOR_BYTES, _vectors
from palaver.store.postgres.statements import migrations, statements
from palaver.store.postgres.texts import given as as_given
from palaver.store.postgres.texts import held
from palaver.store.postgres.transactions import reading
from palaver.testing.forked import forked
from palaver.testing.store_laws import Begun, begin
from palaver.testing.store_laws.backend import words
from tests import postgres
from tests.store.golden import content
from tests.store.postgres_backend import connected, emptied

ROOM = Path(str(files("palaver.store.postgres")))
GOLDEN = Path(__file__).parents[1] / "golden"
WRITER = Path(__file__).with_name("writer.py")


@pytest.fixture
def url(postgres_server: postgres.Server) -> str:
    """Give the address of an empty store."""
    return emptied(postgres_server)


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    """Give an empty store."""
    with PostgresStore(url) as store:
        yield store


@pytest.fixture
def begun(store: PostgresStore) -> Begun:
    """Give a store with one dialog."""
    return begin(store)


# --- addresses --------------------------------------------------------------------------------------------------------------------


def test_an_address_keeps_what_libpq_knows() -> None:
    """The schema is ours, everything else goes to libpq as it is; the address opens the same place, and names it without a password."""
    where = address("postgres://me:s%40cret@h:5433/db?connect_timeout=3&schema=agents&sslmode=require")
    assert where.schema == "agents"
    assert psycopg.conninfo.conninfo_to_dict(where.conninfo) == {
        "user": "me",
        "password": "s@cret",
        "host": "h",
        "port": "5433",
        "dbname": "db",
        "connect_timeout": "3",
        "sslmode": "require",
    }
    assert address(where.url) == where
    assert "cret" not in where.place
    assert address("postgresql://h/db").schema == "palaver"


@pytest.mark.parametrize("wrong", ["", "A", "a-b", "a b", "pg_temp", "1a", "a" * 64, "a;b", 'a"b', "ä"])
def test_a_schema_is_a_plain_name(wrong: str) -> None:
    """A name that would have to be quoted, or is PostgreSQL's own, is refused."""
    with pytest.raises(InvalidInput):
        address(f"postgresql://h/db?schema={wrong}")


@pytest.mark.parametrize("broken", ["postgresql://u:hunter%zz2@h/d", "postgresql://u:hunter2@h/d?nonsense=hunter2"])
def test_a_broken_address_shows_no_password(broken: str) -> None:
    """The error about an address with a user in it does not repeat any of it."""
    with pytest.raises(InvalidInput) as told:
        address(broken)
    assert "hunter" not in str(told.value)


def test_a_password_is_told_to_nobody(postgres_server: postgres.Server) -> None:
    """Neither the store nor an error about it shows the password of its address."""
    url = postgres_server.url("secretive").replace("palaver@", "palaver:hunter2@")
    with PostgresStore(url) as store:
        assert "hunter2" not in repr(store) + store.place
        store.close()
        with pytest.raises(StoreError) as told:
            store.index_lag()
        assert "hunter2" not in str(told.value)
    with pytest.raises(StoreError) as told:
        PostgresStore(url.replace("/postgres?", "/nowhere?"))
    assert "nowhere" in str(told.value)
    assert "hunter2" not in str(told.value)
    assert not isinstance(told.value, StoreUnavailable)


# --- schemas and migrations ---------------------------------------------------------------------------------------------------------


def test_migrations_are_numbered_without_gaps() -> None:
    """The first is 1, and each raises the format by one."""
    assert [migration.version for migration in migrations()] == list(range(1, len(migrations()) + 1))


def test_every_statement_is_used_and_every_used_one_is_there() -> None:
    """No statement lies about unused, and no code names one that is not there."""
    paths = [*ROOM.glob("*.py"), Path(erasing_rows.__file__)]
    code = "".join(path.read_text("utf-8") for path in paths)
    named = {name for name in statements() if f'"{name}"' in code}
    asked = set(re.findall(r"(?:ask\(\s*[\w.]+,\s*|rows\.(?:all|each)\()\"(\w+)\"", code)) | set(
        re.findall(r"statements\(\)\[\"(\w+)\"\]", code)
    )
    assert named == set(statements())
    assert asked <= named


def test_a_store_is_made_when_told_so_only(postgres_server: postgres.Server) -> None:
    """`create=False` and `read_only` open what is there, or say that nothing is; and nothing is made."""
    url = postgres_server.url()
    for create, read_only in ((False, False), (True, True)):
        with pytest.raises(MissingStore):
            open_store(url, create=create, read_only=read_only)
    with psycopg.connect(address(url).conninfo) as connection:
        assert (
            connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (address(url).schema,)).fetchone()
            is None
        )
    connection.close()


def test_each_migration_is_recorded_with_its_digest(url: str, store: PostgresStore) -> None:
    """The store says which migrations made it."""
    with connected(url) as looked:
        rows = looked.execute("SELECT version, name, sha256 FROM migrations ORDER BY version").fetchall()
    looked.close()
    assert rows == [(one.version, one.name, one.sha256) for one in migrations()]
    assert store.index_lag() == 0


def test_a_newer_store_is_refused_untouched(postgres_server: postgres.Server) -> None:
    """A store from a later palaver is told with both formats; nothing is changed."""
    url = postgres_server.url()
    PostgresStore(url).close()
    with connected(url) as later:
        later.execute("INSERT INTO migrations VALUES (999, 'later', '', 0)")
        for read_only in (False, True):
            with pytest.raises(StoreTooNew) as told:
                PostgresStore(url, read_only=read_only)
            assert (told.value.found, told.value.supported) == (999, newest_format())
        assert later.execute("SELECT count(*) FROM migrations").fetchone() == (len(migrations()) + 1,)
    later.close()


def test_a_schema_of_another_program_is_refused_untouched(postgres_server: postgres.Server) -> None:
    """A schema with other tables is no store, even if one of them is called as ours is; an empty schema becomes one."""
    url = postgres_server.url()
    schema = address(url).schema
    with psycopg.connect(address(url).conninfo, autocommit=True) as other:
        other.execute(f"CREATE SCHEMA {schema}")
        other.execute(f"CREATE TABLE {schema}.migrations (version int)")
        with pytest.raises(InvalidInput, match="another program"):
            PostgresStore(url)
        assert other.execute("SELECT count(*) FROM pg_tables WHERE schemaname = %s", (schema,)).fetchone() == (1,)
        other.execute(f"DROP TABLE {schema}.migrations")
        PostgresStore(url).close()
    other.close()


def test_many_processes_may_make_the_same_store(postgres_server: postgres.Server) -> None:
    """Processes that start on an empty place at once make one store, and each finds all that was written."""
    url = postgres_server.url()
    command = [sys.executable, str(WRITER), url, "-", "begin"]
    pipe = subprocess.PIPE
    writers = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(3)]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("\n")
        writer.stdin.flush()
    assert [writer.communicate()[0] != "" and writer.returncode for writer in writers] == [0, 0, 0]
    with open_store(url, create=False) as store:  # type: ignore[attr-defined]
        assert len(list(store.sessions())) == 3


def test_a_database_that_cannot_hold_every_text_is_refused(postgres_server: postgres.Server) -> None:
    """The encoding of the database must be UTF8."""
    url = postgres_server.url()
    with psycopg.connect(address(url).conninfo, autocommit=True) as other:
        other.execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    other.close()
    with pytest.raises(InvalidInput, match="LATIN1"):
        PostgresStore(url.replace("/postgres?", "/latin?"))


@pytest.mark.parametrize("version", range(1, newest_format() + 1))
def test_every_old_format_is_read(postgres_server: postgres.Server, version: int) -> None:
    """P12: a store of each format that ever was opens, is upgraded, and gives all that was written into it."""
    url = postgres_server.url("golden")
    made = gzip.decompress((GOLDEN / f"postgres-v{version}.sql.gz").read_bytes())
    with psycopg.connect(address(url).conninfo, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS golden CASCADE")
        connection.execute(made)
    connection.close()
    expected = json.loads((GOLDEN / f"postgres-v{version}.json").read_text("utf-8"))
    with PostgresStore(url) as store:
        assert json.loads(json.dumps(content(store))) == expected
        dialogs = [node.dialog_id for record in store.sessions() for node in store.nodes(record.session_id)]
        assert all(store.verify(dialog) == () for dialog in dialogs)
        assert store.append(dialogs[0], [words()], store.last(dialogs[0]).turn_head)


# --- durability, reading only ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("durability", "told"), [(Durability.FULL, "on"), (Durability.NORMAL, "off")])
def test_the_server_flushes_as_the_durability_says(url: str, durability: Durability, told: str) -> None:
    """Full durability waits for the flush, normal does not; a durability that a database cannot have is refused."""
    with PostgresStore(url, durability) as store, reading(store._pool) as connection:
        assert connection.execute("SHOW synchronous_commit").fetchone() == (told,)
    with pytest.raises(InvalidInput):
        PostgresStore(url, Durability.MEMORY)


def test_a_server_that_never_flushes_promises_nothing() -> None:
    """With fsync off, full durability is refused and normal is not."""
    programs = postgres.wheel_programs()
    if programs is None or postgres.why_missing(programs) is not None:
        pytest.skip(postgres.why_missing(programs) or "")
    with postgres.server(programs, fsync="off") as server:
        with pytest.raises(InvalidInput, match="fsync"):
            PostgresStore(server.url())
        PostgresStore(server.url(), Durability.NORMAL).close()


def test_a_store_opened_for_reading_refuses_every_write(url: str, begun: Begun) -> None:
    """It reads everything, and neither we nor the server let anything be written."""
    begun.say(b"a")
    with PostgresStore(url, read_only=True) as reader:
        assert reader.body(begun.dialog, 0) == b"a"
        assert reader.search("a") == ()
        for write in (
            lambda: reader.append(begun.dialog, [words()], 0),
            lambda: reader.put_blob(b"x"),
            lambda: reader.update_session(begun.session, name="x"),
            reader.together().__enter__,
            reader.drop_index,
        ):
            with pytest.raises(StoreReadOnly):
                write()
        with reading(reader._pool) as connection, pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            connection.execute("DELETE FROM blobs")


# --- waiting --------------------------------------------------------------------------------------------------------------------------


def test_a_writer_waits_for_another_but_not_for_ever(url: str, begun: Begun) -> None:
    """Two blocks that append to the same dialog: the second waits for the first, and is told when that takes too long."""
    with PostgresStore(url, wait=0.1) as impatient:
        with begun.store.together():
            begun.say(b"in the block")
            with pytest.raises(StoreBusy):
                impatient.append(begun.dialog, [words()], -1)
            assert impatient.last(begun.dialog).seq == -1
        assert impatient.append(begun.dialog, [words()], 0)[0].seq == 1


def test_all_connections_may_be_in_use(url: str, begun: Begun) -> None:
    """A thread that finds no free connection waits, and is told when that takes too long."""
    with PostgresStore(url, wait=0.05, connections=1) as narrow:
        told: list[BaseException] = []

        def read() -> None:
            try:
                narrow.last(begun.dialog)
            except StoreBusy as error:
                told.append(error)

        with narrow.together():
            thread = Thread(target=read)
            thread.start()
            thread.join()
        assert len(told) == 1
        assert narrow.last(begun.dialog).seq == -1


def test_a_deadlock_of_two_blocks_is_told_to_one(url: str, begun: Begun) -> None:
    """Blocks that append to the same dialogs in opposite order: one is told, and the other's writes stand."""
    other = begun.fork()
    waiting, outcome = Event(), list[object]()
    with PostgresStore(url, wait=20.0) as second:

        def write() -> None:
            try:
                with second.together():
                    second.append(other, [words(b"second")], -1)
                    waiting.set()
                    second.append(begun.dialog, [words(b"second")], -1)
            except StoreError as error:
                outcome.append(error)

        thread = Thread(target=write)
        try:
            with begun.store.together():
                begun.say(b"first")
                thread.start()
                waiting.wait()
                begun.store.append(other, [words(b"first")], -1)
        except StoreError as error:
            outcome.append(error)
        thread.join()
    said = {dialog: [body for _seq, body in begun.store.bodies(dialog)] for dialog in (begun.dialog, other)}
    assert len(outcome) == 1
    assert said in ({begun.dialog: [b"first"], other: [b"first"]}, {begun.dialog: [b"second"], other: [b"second"]})


def test_nobody_is_notified_unless_somebody_follows(url: str, store: PostgresStore, begun: Begun) -> None:
    """An append tells the channel only while a follower is here; and a follower that waits is woken by it."""
    channel = address(url).schema
    with connected(url) as listening:
        listening.execute(f"LISTEN {channel}")
        begun.say(b"alone")
        with store.watch(begun.dialog) as wait:
            begun.say(b"told")
            wait(100.0)  # the test would time out
            begun.say(b"another dialog", dialog=begun.fork())
        with connected(url) as other:
            other.execute("SELECT pg_notify(%s, 'end')", (channel,))
        other.close()
        told = []
        for notify in listening.notifies(timeout=60):
            told.append(notify.payload)
            if told[-1] == "end":
                break
        number = listening.execute("SELECT dialog_no FROM dialogs WHERE dialog_id = %s", (begun.dialog,)).fetchone()
    listening.close()
    assert number is not None
    assert told == [str(number[0]), "end"]


def test_asynchronous_callers_share_a_commit(begun: Begun) -> None:
    """Callers of asyncio write together; each gets its own outcome, and the one that comes too late its conflict."""
    dialogs = [begun.dialog, *(begun.fork() for _ in range(19))]

    async def work() -> list[object]:
        async with AsyncStore(begun.store) as together:
            late = together.append(begun.dialog, [words(b"late")], 7)
            writes = [together.append(dialog, [words(b"a"), words(b"b")], -1) for dialog in dialogs]
            return await asyncio.gather(*writes, late, return_exceptions=True)

    *written, refused = asyncio.run(work())
    assert isinstance(refused, Conflict)
    assert all(isinstance(headers, tuple) for headers in written)
    assert [[body for _seq, body in begun.store.bodies(dialog)] for dialog in dialogs] == [[b"a", b"b"]] * len(dialogs)


# --- forks ----------------------------------------------------------------------------------------------------------------------------


def test_a_child_forked_inside_a_block_leaves_it_to_its_parent(begun: Begun) -> None:
    """The transaction belongs to the parent: the child is told so, whatever it does with the store, and the parent's block stands."""

    def work() -> None:
        for use in (lambda: begun.say(b"child"), lambda: begun.store.last(begun.dialog)):
            with pytest.raises(StoreError, match="forked"):
                use()

    with begun.store.together():
        begun.say(b"before")
        assert forked(work) == 0
        begun.say(b"after")
    assert [body for _seq, body in begun.store.bodies(begun.dialog)] == [b"before", b"after"]


def test_a_fork_beside_a_busy_thread_disturbs_neither(begun: Begun) -> None:
    """While another thread is in a block, a child opens anew and writes elsewhere; the block goes on."""
    elsewhere = begun.fork()
    inside, go_on = Event(), Event()

    def write() -> None:
        with begun.store.together():
            begun.say(b"a")
            inside.set()
            go_on.wait()
            begun.say(b"b")

    def work() -> None:
        assert list(begun.store.bodies(begun.dialog)) == []
        begun.say(b"child", dialog=elsewhere)
        begun.store.close()

    thread = Thread(target=write)
    thread.start()
    inside.wait()
    status = forked(work)
    go_on.set()
    thread.join()
    assert status == 0
    assert [body for _seq, body in begun.store.bodies(begun.dialog)] == [b"a", b"b"]
    assert [body for _seq, body in begun.store.bodies(elsewhere)] == [b"child"]


# --- what PostgreSQL's types cannot hold --------------------------------------------------------------------------------------------


@given(one=st.text(), other=st.text())
def test_every_text_comes_back_and_no_two_are_alike(one: str, other: str) -> None:
    """The spelling of U+0000 loses nothing: what is held has none, comes back, and differs where the texts do."""
    for text in (one, other):
        assert "\x00" not in held(text)
        assert as_given(held(text)) == text
    assert (held(one) == held(other)) == (one == other)
    assert held("C:\\new \\0") == "C:\\new \\0"


def test_odd_texts_are_kept_everywhere(begun: Begun) -> None:
    """U+0000 and its spelling survive in every text field of an entry."""
    odd = "a\x00b\x1a0\x1a"
    draft = words()._replace(kind=odd, role=odd, opens=(odd,), response=odd)
    (header,) = begun.store.append(begun.dialog, [draft], -1)
    assert begun.store.header(begun.dialog, 0) == header
    assert (header.kind, header.role, header.calls, header.response) == (odd, odd, (odd,), odd)


def test_a_text_of_any_size_is_found(begun: Begun) -> None:
    """What does not fit into one tsvector is found by words from its beginning and its end together, once, with a rank."""
    many = " ".join(f"word{number}x" for number in range(150_000))
    begun.say(many.encode(), b"word0x alone", ("z" * 5_000_000).encode())
    begun.store.index(lambda _kind, body: body.decode())
    assert len(list(_vectors("'#1'", many))) > 1
    (hit,) = begun.store.search("word149999x word0x")
    assert hit.handle.seq == 0
    assert "word0x" in hit.snippet
    assert {hit.handle.seq for hit in begun.store.search("word0x", session_id=begun.session)} == {0, 1}
    assert begun.store.search("word0x word1x alone") == ()


@given(st.text(st.characters(codec="utf-8"), max_size=200))
def test_a_vector_stays_within_its_limit(said: str) -> None:
    """However odd the letters: a vector holds no more than was counted, and begins with its session."""
    for vector in _vectors("'#1'", said * 50):
        assert vector.startswith("'#1'")
        assert len(vector.encode()) < 4 * _VECTOR_BYTES
