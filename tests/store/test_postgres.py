"""What is PostgreSQL's own: addresses, schemas, locks, poolers, servers that go away, and what its types cannot hold."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from socket import socketpair
from threading import Event, Thread
from typing import cast

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver import Session, UserMessage
from palaver.errors import InvalidInput, StoreBusy, StoreError
from palaver.ids import SessionId, new_session_id
from palaver.store import Durability, SessionRecord
from palaver.store.erasing import Erasing
from palaver.store.lease import acquire, renew
from palaver.store.postgres import PostgresStore
from palaver.store.postgres.database import from_stored, to_stored
from palaver.store.postgres.opening import address
from palaver.testing.store_laws import Begun, begin
from palaver.testing.store_laws.backend import words
from tests.postgres import Server, server
from tests.postgres_wheel import wheel_server
from tests.store.postgres_backend import connected, emptied, run


@pytest.fixture
def url(postgres_server: Server) -> str:
    """Return the address of an empty store."""
    return emptied(postgres_server)


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    """Return an empty store."""
    with PostgresStore(url) as store:
        yield store


def failing(use: Callable[[], object]) -> str:
    """Return the reason of the error that a use raises."""
    with pytest.raises(StoreError) as told:
        use()
    return told.value.reason


# --- addresses --------------------------------------------------------------------------------------------------------------------


def test_wherekeeps_what_libpq_knows() -> None:
    """The schema is ours, everything else goes to libpq as it is; the address opens the same place, and names it without a password."""
    where = address("postgres://me:s%40cret@h:5433/db?connect_timeout=3&schema=agents&sslmode=require")
    known = psycopg.conninfo.conninfo_to_dict(where.conninfo)
    login = {"user": "me", "password": "s@cret", "host": "h", "port": "5433", "dbname": "db"}
    assert (where.schema, known) == ("agents", login | {"connect_timeout": "3", "sslmode": "require"})
    assert address(where.url) == where
    assert "cret" not in where.place
    assert address("postgresql://h/db").schema == "palaver"


def test_statements_are_prepared_where_the_address_says_so(postgres_server: Server) -> None:
    """The server keeps the plans of statements that a connection repeats, or none; another word is refused."""
    url = postgres_server.url()
    for where, kept in ((url, False), (f"{url}&prepared=yes", True)):
        with PostgresStore(where) as store:
            assert address(store.url).prepared is kept
            dialog = Session.create(store).root
            for _ in range(5):
                dialog.append(UserMessage("How many lamps?"))
            with store._db.lent() as connection:
                count = connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchall()[0][0]
            assert bool(count) is kept
            assert len(Session.open(store, dialog.session_id).root.messages) == 5
    with pytest.raises(InvalidInput, match="yes or no"):
        address(f"{url}&prepared=maybe")


def test_password_is_told_to_nobody(postgres_server: Server) -> None:
    """Neither the store nor an error about it shows the password of its address."""
    url = postgres_server.url("secretive").replace("palaver@", "palaver:hunter2@")
    with PostgresStore(url) as store:
        assert "hunter2" not in repr(store) + store.place
    with pytest.raises(StoreError) as closed:
        store.index_lag()
    with pytest.raises(StoreError) as told:
        PostgresStore(url.replace("/postgres?", "/nowhere?"))
    assert "hunter2" not in str(closed.value) + str(told.value)
    assert "nowhere" in str(told.value)
    assert told.value.reason != "unavailable"


# --- schemas ------------------------------------------------------------------------------------------------------------------------


def test_schema_of_another_program_is_left_alone(postgres_server: Server) -> None:
    """A schema with other tables is no store, even if one of them is called as ours is; an empty schema becomes one."""
    url = postgres_server.url()
    schema = address(url).schema
    run(url, f"CREATE SCHEMA {schema}")
    run(url, "CREATE TABLE migrations (version int)")
    with pytest.raises(InvalidInput, match="another program"):
        PostgresStore(url)
    assert run(url, "SELECT count(*) FROM pg_tables WHERE schemaname = %s", schema) == 1
    run(url, "DROP TABLE migrations")
    PostgresStore(url).close()


def test_database_that_holds_not_every_text_is_refused(postgres_server: Server) -> None:
    """The encoding of the database must be UTF8."""
    url = postgres_server.url()
    run(url, "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    with pytest.raises(InvalidInput, match="LATIN1"):
        PostgresStore(url.replace("/postgres?", "/latin?"))


# --- partitions -----------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def parted(postgres_server: Server) -> Iterator[PostgresStore]:
    """Return an empty store in three partitions."""
    with PostgresStore(emptied(postgres_server, "&partitions=3")) as store:
        yield store


def partition(begun: Begun) -> str:
    """Return how the names of a session's tables end, by its id."""
    return f"_{int(begun.session[-4:], 16) % 3:03}"


def test_partitions_are_chosen_when_a_store_is_made(postgres_server: Server, url: str) -> None:
    """The store knows their number; an address that names another one is refused, and so is one that is no number of partitions."""
    place = postgres_server.url()
    with PostgresStore(f"{place}&partitions=2") as made, PostgresStore(place) as again:
        begun = begin(made)
        assert address(made.url).partitions == 2
        assert again.session(begun.session) == made.session(begun.session)
        assert again.append(begun.dialog, [words(b"a")], -1) == tuple(made.headers(begun.dialog))
    for where, told in (
        (f"{place}&partitions=3", "has 2 partitions, not 3"),
        (f"{url}&partitions=2", "has 1 partition"),
    ):
        with pytest.raises(InvalidInput, match=told):
            PostgresStore(where)
    for number in ("0", "257", "-1", "many"):
        with pytest.raises(InvalidInput, match="from 1 to 256"):
            address(f"{url}&partitions={number}")


def test_rows_of_a_session_lie_in_one_partition(parted: PostgresStore) -> None:
    """Entries, references and texts are where the last digits of the session's id say, and come back from there."""
    for number in range(12):
        begun = begin(parted)
        begun.say(b"number %d" % number, b'{"digest": "%s"}' % parted.put_blob(begun.session, b"%d" % number).encode())
        parted.index(lambda _kind, body: body.decode(), session_id=begun.session)
        for table in ("entries", "payload_refs", "texts"):
            where = "SELECT string_agg(DISTINCT tableoid::regclass::text, ' ') FROM {} WHERE session_no = (SELECT session_no FROM sessions WHERE session_id = %s)"
            assert run(parted.url, where.format(table), begun.session) == f"{table}{partition(begun)}"
        assert [hit.session_id for hit in parted.search(f"number {number}", session_id=begun.session)] == [
            begun.session
        ]
    assert len(parted.search("number")) == 12


def test_work_on_a_session_touches_no_other_partition(parted: PostgresStore) -> None:
    """While somebody has the other partitions for himself, a session is read, written, indexed and searched as ever."""
    begun = begin(parted)
    others = [f"_{number:03}" for number in range(3) if f"_{number:03}" != partition(begun)]
    tables = ", ".join(f"{table}{end}" for table in ("entries", "payload_refs", "texts") for end in others)
    with connected(parted.url) as other, PostgresStore(f"{parted.url}&options=-clock_timeout%3D1000") as impatient:
        other.execute(f"BEGIN; LOCK TABLE {tables} IN ACCESS EXCLUSIVE MODE")
        same = Begun(impatient, begun.session, begun.dialog)
        header = same.say(b"a lamp", b'{"digest": "%s"}' % impatient.put_blob(begun.session, b"a picture").encode())[-1]
        same.store.append(begun.dialog, [words(b"known")], header.turn_head, header)
        assert impatient.index(lambda _kind, body: body.decode(), session_id=begun.session) == 3
        assert len(impatient.search("lamp", session_id=begun.session)) == 1
        assert len(impatient.tail(begun.dialog)) == len(same.said()) == len(list(impatient.headers(begun.dialog))) == 3
        root = impatient.root(begun.session)
        assert root is not None
        assert len(root[1]) == 3
        assert list(impatient.latest_of_kind(begun.dialog, "label")) == []
        assert impatient.verify(begun.dialog) == ()
        other.execute("ROLLBACK")


def test_partitions_are_verified(postgres_server: Server) -> None:
    """A partition that was taken away, and a session that lies where its id does not say, are found."""
    with PostgresStore(f"{postgres_server.url()}&partitions=3") as store:
        session = SessionId(f"{new_session_id()[:-4]}0000")
        store.create_session(SessionRecord(session_id=session))
        assert list(store.faults(None)) == []
        run(store.url, "ALTER TABLE texts DETACH PARTITION texts_001")
        run(store.url, "UPDATE sessions SET session_id = left(session_id, 28) || '0001'")
        assert [(place, code) for place, code, _what in store.faults(None)] == [
            ("texts_001", "wrong_schema"),
            (f"{session[:-4]}0001", "wrong_schema"),
        ]


def test_planner_knows_nothing_of_what_was_said(parted: PostgresStore) -> None:
    """No statistics are kept of texts, in a partition either: they would outlive an erasure."""
    begun = begin(parted)
    begun.say(*(b"a lamp" for _ in range(50)))
    parted.index(lambda _kind, body: body.decode())
    run(parted.url, "ANALYZE")
    kept = "SELECT string_agg(attname, ' ') FROM pg_stats WHERE schemaname = %s AND tablename LIKE %s AND attname = ANY(%s)"
    schema, secret = (
        address(parted.url).schema,
        ["body", "digest", "calls", "open_calls", "response", "deflated", "tokens", "said"],
    )
    assert run(parted.url, kept, schema, f"%\\{partition(begun)}", secret) is None
    assert run(parted.url, kept, schema, f"%\\{partition(begun)}", ["seq"])


# --- durability, reading only ---------------------------------------------------------------------------------------------------------


def test_server_flushes_as_the_durability_says(url: str) -> None:
    """Full durability waits for the flush, normal does not; a database cannot promise less."""
    for durability, told in ((Durability.FULL, "on"), (Durability.NORMAL, "off")):
        with PostgresStore(url, durability) as store, store._db.lent() as connection:
            store._db.begin(connection)
            assert connection.execute("SHOW synchronous_commit").fetchone() == (told,)
            store._db.rollback(connection)
    with pytest.raises(InvalidInput):
        PostgresStore(url, Durability.MEMORY)


def test_server_that_never_flushes_promises_nothing(postgres_server: Server) -> None:
    """With fsync off, full durability is refused and normal is not."""
    with server(postgres_server.programs, fsync="off") as careless:
        with pytest.raises(InvalidInput, match="fsync"):
            PostgresStore(careless.url())
        PostgresStore(careless.url(), Durability.NORMAL).close()


# --- waiting --------------------------------------------------------------------------------------------------------------------------


def test_all_connections_may_be_in_use(url: str, begun: Begun) -> None:
    """A thread that finds no free connection waits, and is told when that takes too long."""
    with PostgresStore(url, wait=0.05, connections=1) as narrow, ThreadPoolExecutor(1) as threads:
        with narrow.transaction():
            assert isinstance(threads.submit(narrow.last, begun.dialog).exception(), StoreBusy)
        assert narrow.last(begun.dialog).seq == -1


def test_deadlock_is_told_to_one(url: str, begun: Begun) -> None:
    """Transactions that append to the same dialogs in opposite order: one is told, and the other's writes stand."""
    other = begun.fork()
    waiting, told = Event(), list[StoreError]()
    with PostgresStore(url, wait=20.0) as second:

        def write() -> None:
            try:
                with second.transaction():
                    second.append(other, [words(b"second")], -1)
                    waiting.set()
                    second.append(begun.dialog, [words(b"second")], -1)
            except StoreError as error:
                told.append(error)

        thread = Thread(target=write)
        try:
            with begun.store.transaction():
                begun.say(b"first")
                thread.start()
                waiting.wait()
                begun.store.append(other, [words(b"first")], -1)
        except StoreError as error:
            told.append(error)
        thread.join()
    assert len(told) == 1
    assert [begun.said(), begun.said(other)] in ([[b"first"]] * 2, [[b"second"]] * 2)


def test_erasing_a_session_locks_no_other_writer(url: str, begun: Begun) -> None:
    """While an erasure has one session's rows and payloads, others append to theirs, name payloads, and make sessions."""
    picture = begun.store.put_blob(begun.session, b"a picture")
    begun.say(picture.encode())
    with PostgresStore(url, wait=0.5) as second:
        other = begin(second)
        with cast("Erasing", begun.store).erasing() as eraser:
            eraser.remove_dialogs([begun.dialog])
            eraser.remove_session(begun.session)
            other.say(b"meanwhile", second.put_blob(other.session, b"another").encode())
            assert other.store.index(lambda _kind, body: body.decode()) == 2
            begin(second)
        assert len(list(second.sessions())) == 2


# --- a pooler in transaction mode ---------------------------------------------------------------------------------------------------


def test_pooler_in_transaction_mode_may_stand_between(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing outlives a transaction on a connection: one on which everything was discarded before each use serves as well."""

    def discarded(connection: psycopg.Connection[object]) -> bool:
        assert connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)
        locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
        assert connection.execute(locks).fetchone() == (0,)
        assert connection.execute("SHOW lock_timeout").fetchone() == ("0",)
        connection.execute("DISCARD ALL")
        return True

    monkeypatch.setattr(store._db, "usable", discarded)
    begun = begin(store)
    for number in range(8):
        with store.transaction(lock="name"):
            begun.say(b"number %d" % number)
    assert store.index(lambda _kind, body: body.decode()) == 8
    assert len(store.search("number", session_id=begun.session)) == len(begun.said()) == 8


# --- a server that goes away --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mortal() -> Iterator[Server]:
    """Return a server of these tests' own, which they may kill."""
    with wheel_server() as running:
        yield running


@pytest.fixture
def exposed(mortal: Server) -> Iterator[Begun]:
    """Return a store with one dialog, on the server that may die."""
    with closing(PostgresStore(mortal.url(), wait=30.0)) as store:
        yield begin(store)


def test_law_4_store_goes_on_when_its_server_is_back(mortal: Server, exposed: Begun) -> None:
    """A handle that was open while the server died reads and writes as soon as it is back; leases are kept; an open transaction is undone."""
    store = cast("PostgresStore", exposed.store)
    exposed.say(b"before")
    lease = acquire(store, "work", holder="me", seconds=600)

    def write() -> None:
        with store.transaction():
            exposed.say(b"inside")
            mortal.kill()
            mortal.start()
            exposed.say(b"after the death")

    assert failing(write) == "unavailable"
    assert exposed.said() == [b"before"]
    mortal.kill()
    mortal.start()
    assert exposed.say(b"after")[0].seq == 1
    renew(store, lease, seconds=600)


def test_server_that_stays_away_is_told(mortal: Server, exposed: Begun) -> None:
    """When the wait is over the store is unavailable; nothing was written, and the handle is good for the time after."""
    with PostgresStore(exposed.store.url, wait=0.1) as impatient:
        impatient.append(exposed.dialog, [words(b"a")], -1)
        mortal.kill()
        try:
            for use in (
                lambda: impatient.last(exposed.dialog),
                lambda: impatient.append(exposed.dialog, [words(b"b")], 0),
                lambda: impatient.transaction().__enter__(),
                lambda: PostgresStore(exposed.store.url),
            ):
                assert failing(use) == "unavailable"
        finally:
            mortal.start()
        assert impatient.append(exposed.dialog, [words(b"c")], 0)[0].seq == 1


def test_idle_connection_that_was_cut_is_replaced(exposed: Begun) -> None:
    """An administrator, or a firewall, may end idle connections: the next call does not notice."""
    exposed.say(b"a")
    run(
        exposed.store.url,
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = 'palaver'",
    )
    assert exposed.say(b"b")[0].seq == 1


def test_server_without_a_free_connection_is_busy(mortal: Server, exposed: Begun) -> None:
    """When the server lets nobody else in, a store that was open waits, and then says so with an error after which a caller asks again."""
    mortal.kill()
    mortal.start(max_connections=5)
    try:
        with PostgresStore(exposed.store.url, wait=0.1) as store, ExitStack() as others:
            with suppress(psycopg.OperationalError):
                while True:
                    others.enter_context(connected(store.url))
            with pytest.raises(StoreBusy, match="Try again"):
                store.last(exposed.dialog)
            others.close()
            assert store.last(exposed.dialog).seq == -1
    finally:
        mortal.kill()
        mortal.start()


@pytest.mark.parametrize("delivered", [False, True])
def test_unknown_outcome_is_told(exposed: Begun, monkeypatch: pytest.MonkeyPatch, delivered: bool) -> None:
    """Where the line is cut at the commit, the write may be there or not: the caller is told, and appends the same message again."""
    database = cast("PostgresStore", exposed.store)._db
    commit = database.commit
    dialog, said = Session.create(exposed.store).root, UserMessage("a")

    def cut(connection: psycopg.Connection[object]) -> None:
        if delivered:
            connection.execute("COMMIT")
            connection.execute("SELECT 1").fetchall()
        ours, theirs = socketpair()
        with ours, theirs:
            os.dup2(ours.fileno(), connection.fileno())
        commit(connection)

    monkeypatch.setattr(database, "commit", cut)
    with pytest.raises(StoreError, match="not known"):
        dialog.append(said)
    monkeypatch.undo()
    stored = Session.open(exposed.store, dialog.session_id).root
    assert [message.id for message in stored.messages] == [said.id] * delivered
    dialog.append(said)
    dialog.append(UserMessage("b"))
    assert [message.content for message in stored.reload().messages] == ["a", "b"]


# --- what PostgreSQL's types cannot hold --------------------------------------------------------------------------------------------


@given(one=st.text(), other=st.text())
def test_every_text_comes_back_unlike_others(one: str, other: str) -> None:
    """The spelling of U+0000 loses nothing: what is stored has none, comes back, and differs where the texts do."""
    for text in (one, other):
        assert "\x00" not in to_stored(text)
        assert from_stored(to_stored(text)) == text
    assert (to_stored(one) == to_stored(other)) == (one == other)
    assert to_stored("C:\\new \\0") == "C:\\new \\0"


def test_text_of_any_size_is_found(begun: Begun) -> None:
    """A text of a megabyte is found by words from its beginning and its end together; a run of five megabytes hinders nothing."""
    many = " ".join(f"word{number}x" for number in range(150_000))
    begun.say(many.encode(), b"word0x alone", ("z" * 5_000_000).encode())
    begun.store.index(lambda _kind, body: body.decode())
    assert [hit.handle.seq for hit in begun.store.search("word149999x word0x")] == [0]
    assert [hit.handle.seq for hit in begun.store.search("word0x", session_id=begun.session)] == [1, 0]


def test_search_finds_beyond_the_newest_texts(begun: Begun) -> None:
    """Hits are the newest ones and complete, whether the newest texts tell rightly how frequent a word is or not."""
    spread, early = range(0, 2_500, 20), [*range(400), *range(1_500, 2_500, 25)]
    texts = [f"text{' lamp' * (number in spread)}{' lid' * (number in early)}" for number in range(2_500)]
    begun.say(*(text.encode() for text in texts))
    begun.store.index(lambda _kind, body: body.decode())
    for query, having in (
        ("lamp", spread),
        ("lid", early),
        ("text", range(2_500)),
        ("lamp lid", sorted({*spread} & {*early})),
    ):
        newest = sorted(having, reverse=True)
        for most in (10, 64, 65, 2_500):
            assert [hit.handle.seq for hit in begun.store.search(query, limit=most)] == newest[:most]


def test_own_statements_belong_to_the_transaction(url: str) -> None:
    """What an application writes through the lent connection is there with what the store wrote, or not at all; what it did wrong is psycopg's error."""
    run(url, "CREATE TABLE orders (id integer PRIMARY KEY)")
    schema = address(url).schema
    try:
        with PostgresStore(url) as store:
            insert = f"INSERT INTO {schema}.orders VALUES (%s) RETURNING id"  # noqa: S608 - a schema of ours

            def order(number: int) -> None:
                with store.connection() as connection:
                    assert connection.execute(insert, (number,)).fetchall() == [(number,)]

            with store.transaction():
                Session.create(store, "kept")
                order(1)
            with suppress(ZeroDivisionError), store.transaction():
                Session.create(store, "undone")
                order(2)
                raise ZeroDivisionError
            order(3)
            with store.transaction():
                Session.create(store, "kept, too")
                with pytest.raises(psycopg.errors.UniqueViolation):
                    order(3)
                order(4)
            assert sorted(one.name for one in Session.list(store)) == ["kept", "kept, too"]
            with store.connection() as connection:
                assert connection.execute(f"SELECT id FROM {schema}.orders ORDER BY 1").fetchall() == [(1,), (3,), (4,)]  # noqa: S608
    finally:
        run(url, "DROP TABLE orders")
