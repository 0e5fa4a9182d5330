"""One store over several databases: which has what, what remembers its place, and what only one of them can do."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from palaver import Session, UserMessage
from palaver.erasure import erase
from palaver.errors import InvalidInput, MissingFile, StoreError
from palaver.ids import new_session_id
from palaver.session import searchable
from palaver.store import MemoryStore, SourceRecord, SqliteStore, Store, open_store, verify_store
from palaver.store.lease import acquire, renew
from palaver.store.routed import RoutedStore
from palaver.testing.store_laws import Begun, begin
from palaver.testing.store_laws.backend import label
from palaver.transfer.copies import copy_store
from palaver.transfer.sync import sync
from tests.stores import fingerprint

COUNT = 3


@pytest.fixture
def urls(tmp_path: Path) -> list[str]:
    """Return the addresses of databases that are not there yet."""
    return [f"sqlite://{tmp_path}/{number}.db" for number in range(COUNT)]


@pytest.fixture
def store(urls: Sequence[str]) -> Iterator[RoutedStore]:
    """Return an empty store over several databases."""
    with cast("RoutedStore", open_store(" ".join(urls))) as store:
        yield store


def spread(store: Store, count: int = 12) -> list[Begun]:
    """Begin sessions in all parts of a store, by turns; the first and the last are in different ones."""
    digits = [(2 * number + 1) * (1 << 15) // count for number in range(count)]
    return [begin(store, f"{number:04x}") for start in range(3) for number in digits[start::3]]


def test_session_lies_in_the_database_of_its_id(store: RoutedStore) -> None:
    """Its record, dialogs, entries, payloads, sources and texts are in one database, and the sessions in all of them."""
    for number, begun in enumerate(spread(store)):
        begun.say(b"number %d" % number, dialog=begun.fork())
        blob = store.put_blob(begun.session, b"payload %d" % number)
        store.put_source(SourceRecord(identity=f"i{number}", session_id=begun.session, format="f", raw=blob))
        home = int(begun.session[-4:], 16) * COUNT >> 16
        for part, single in enumerate(store.stores):
            there = begun.session in {record.session_id for record in single.sessions()}
            assert there is single.has_blob(begun.session, blob) is (single.source(f"i{number}") is not None)
            assert there is (part == home)
    assert {len(list(single.sessions())) for single in store.stores} == {4}


def test_lists_and_searches_ask_all_databases(store: RoutedStore) -> None:
    """Sessions come by their last activity, hits by the times of their entries, ids and dialogs by their digits; each once."""
    known = spread(store)
    for number, begun in enumerate(known):
        store.annotate(begun.dialog, label(b"needle %d" % number, at=float(10 + number)))
    assert store.index(searchable_body) == len(known)
    assert store.index_lag() == 0
    expected = sorted(known, key=lambda begun: store.session(begun.session).updated_at, reverse=True)
    assert [record.session_id for record in store.sessions()] == [begun.session for begun in expected]
    assert [hit.session_id for hit in store.search("needle")] == [begun.session for begun in expected]
    assert store.search("needle", limit=5) == store.search("needle")[:5]
    assert {hit.session_id for hit in store.search("needle", ranked=True)} == {begun.session for begun in known}
    assert [store.resolve(begun.dialog[:12]) for begun in known] == [begun.dialog for begun in known]
    assert [store.sessions_beginning(begun.session[:12]) for begun in known] == [(begun.session,) for begun in known]


def searchable_body(_kind: str, body: bytes) -> str:
    """Return the whole body as its text."""
    return body.decode()


def test_transaction_writes_to_one_database(store: RoutedStore) -> None:
    """The first session chooses it; a write to another is refused and says so, and the block goes on; leases of a session are with it."""
    first, *_others, last = spread(store)
    lease = acquire(store, f"turn {first.dialog}", holder="me", seconds=60)
    with store.transaction():
        renew(store, lease, seconds=60)
        first.say(b"a")
        for write in (
            lambda: last.say(b"b"),
            lambda: store.put_blob(last.session, b"payload"),
            lambda: acquire(store, f"turn {last.dialog}", holder="me", seconds=60),
            lambda: store.index(searchable_body),
        ):
            with pytest.raises(StoreError, match="another") as told:
                write()
            assert told.value.reason == "unsupported"
        assert last.said() == []
        first.say(b"c")
    assert (first.said(), last.said()) == ([b"a", b"c"], [])
    with store.transaction():
        last.say(b"d")
    assert last.said() == [b"d"]


def test_database_remembers_its_place(urls: Sequence[str]) -> None:
    """A list in another order, with one too few or too many, or with one of another store, is refused, also by readers; the right one is not."""
    open_store(" ".join(urls)).close()
    other = [url.replace(".db", "-other.db") for url in urls]
    open_store(" ".join(other)).close()
    new = urls[0].replace("0.db", "new.db")
    wrong = ([*reversed(urls)], urls[:2], [*urls, new], [urls[0], other[1], urls[2]], [urls[0], urls[0], urls[2]])
    for listed in wrong:
        for read_only in (False, True):
            with pytest.raises((InvalidInput, MissingFile)):
                open_store(" ".join(listed), read_only=read_only, create=not read_only)
    for read_only in (False, True):
        open_store(" ".join(urls), read_only=read_only).close()


def test_database_with_sessions_becomes_no_part(urls: Sequence[str]) -> None:
    """A store that was used alone has sessions of all digits: it is refused, and the others stay unmarked."""
    with closing(open_store(urls[1])) as single:
        begin(single)
    with pytest.raises(InvalidInput, match="has sessions already"):
        open_store(" ".join(urls))
    open_store(" ".join([urls[0], urls[2]])).close()


def test_first_opening_that_was_cut_off_is_finished(urls: Sequence[str]) -> None:
    """Where only some databases were marked, the next opening marks the others."""
    single = [SqliteStore(Path(url.removeprefix("sqlite://"))) for url in urls]
    name = new_session_id()

    single[0].change_lease("palaver part", lambda lease, _now: replace(lease, holder=f"1 of {COUNT} of store {name}"))
    with RoutedStore(single) as store:
        assert {part.lease("palaver part").holder.split()[-1] for part in store.stores} == {name}
    open_store(" ".join(urls)).close()


@pytest.mark.parametrize("embedded", [True, False])
def test_session_in_a_wrong_database_is_found(store: RoutedStore, *, embedded: bool) -> None:
    """A session that was written around the router is found by a verification, in stores of any kind."""
    store = store if embedded else RoutedStore([MemoryStore() for _ in range(COUNT)])
    assert list(verify_store(store, extract=searchable)) == []
    begin(store.stores[0], "ffff")
    (fault,) = [fault for fault in verify_store(store, extract=searchable) if fault.code == "wrong_schema"]
    assert "is in database 1; its id says 3" in fault.what


def test_stores_of_any_number_are_copied_into_another(store: RoutedStore, tmp_path: Path) -> None:
    """From one database to three, to five, and back to one: everything is there, and equal; what both got since is synchronised."""
    alone = MemoryStore()
    for number, begun in enumerate(spread(alone)):
        blob = alone.put_blob(begun.session, b"payload")
        begun.say(b'{"digest": "%s"}' % blob.encode(), b"number %d" % number)
        begun.fork()
    session = Session.create(alone, "last")
    session.root.append(UserMessage("How many lamps?"))
    five = cast("RoutedStore", open_store(" ".join(f"sqlite://{tmp_path}/five-{number}.db" for number in range(5))))
    back = MemoryStore()
    for source, target in ((alone, store), (store, five), (five, back)):
        done = copy_store(source, target)
        assert (done.equal, done.sessions) == (True, 13)
    assert fingerprint(alone) == fingerprint(store) == fingerprint(five) == fingerprint(back)
    Session.open(five, "last").root.append(UserMessage("And how many chairs?"))
    begin(store, "8000").say(b"meanwhile")
    sync(store, five)
    assert fingerprint(store) == fingerprint(five) != fingerprint(back)
    five.close()


def test_erasures_lie_with_what_they_erase(store: RoutedStore) -> None:
    """Each session is erased by itself, its receipt is in its database, and a finished one is updated there; all are listed."""
    for begun in spread(store, 6):
        receipt = erase(store, session=begun.session)
        assert receipt.complete
        home = int(begun.session[-4:], 16) * COUNT >> 16
        for part, single in enumerate(store.stores):
            assert (receipt.id in {kept.receipt_id for kept in single.receipts()}) is (part == home)
    assert len(store.receipts()) == len(list(store.all_gone())) // 2 == 6
    for begun in spread(store, 6):
        store.update_session(begun.session, subject="Ann")
    with pytest.raises(StoreError, match="another"):
        erase(store, subject="Ann")
    assert len(list(store.sessions(subject="Ann"))) == 6


def test_session_is_opened_or_created_once(store: RoutedStore) -> None:
    """A name is looked for in every database; what is created under its lock lies where its new id says."""
    sessions = [Session.open(store, f"session {number % 8}", create=True) for number in range(16)]
    for session in sessions:
        session.root.append(UserMessage("How many lamps?"))
    assert len({session.session_id for session in sessions}) == len(list(store.sessions())) == 8
    assert len(Session.open(store, "session 3").root.messages) == 2


def test_source_stays_with_its_session(store: RoutedStore) -> None:
    """A foreign conversation became one session: a session of another database is refused, so that none is listed twice."""
    first, *_others, last = spread(store)
    record = SourceRecord(identity="i", session_id=first.session, format="f")
    store.put_source(record)
    with pytest.raises(StoreError, match="another database"):
        store.put_source(SourceRecord(identity="i", session_id=last.session, format="f"))
    assert (store.source("i"), store.sources(last.session)) == (record, ())
