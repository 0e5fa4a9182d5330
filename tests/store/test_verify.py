"""Verify: a bit that was flipped anywhere behind the back of a store is found, and its place is named."""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import apsw
import psycopg
import pytest

from palaver.errors import StoreDamaged
from palaver.ids import DialogId, new_dialog_id
from palaver.log import (
    Compaction,
    Custom,
    Header,
    Instructions,
    Label,
    MessageEntry,
    Node,
    Pin,
    Place,
    Run,
    Section,
    Span,
    TurnEnded,
    TurnStarted,
    decode_entry,
    draft,
)
from palaver.messages import ImageContent, UserMessage
from palaver.store import MemoryStore, SourceRecord, SqliteStore, Store, open_store, verify_store
from palaver.store.sql.log import header_sum
from palaver.testing.conversations import picture
from palaver.testing.logs import Log, model, result, user
from palaver.testing.store_laws import Backend, Begun
from palaver.transfer.copies import copy_store
from tests.postgres import Server
from tests.store.postgres_backend import connected


def written() -> tuple[Log, DialogId]:
    """Write something of everything that verify derives, in memory, with a fork."""
    log = Log()
    log.put(Instructions(sections=(Section(name="role", text="Be brief."),)), TurnStarted(agent="a"))
    log.put(UserMessage(contents=(ImageContent(images=[picture(1, 600)]),)), model("", "c1", "c2", response="r1"))
    log.put(result("c1"), result("c2"), Label(target=Place(dialog=log.dialog, seq=2), label="the picture"))
    log.put(model("A dot.", response="r2"), TurnEnded(), Pin(target=Place(dialog=log.dialog, seq=2)))
    log.put(Custom(custom_type="c", data={"x": 1}))
    log.put(Compaction(base=3, pieces=(Run(dialog=log.dialog, start=0, stop=3),)))
    fork = Node(
        dialog_id=new_dialog_id(log.session),
        session_id=log.session,
        parent_id=log.dialog,
        ranges=(Span(log.dialog, 0, 5),),
        inherited=log.store.header(log.dialog, 4).number,
    )
    log.store.create_dialog(fork)
    log.store.append(
        fork.dialog_id, [draft(MessageEntry(message=user(text)))[0] for text in ("More.", "And more.")], -1
    )
    kept = log.store.put_blob(log.session, b"a kept file")
    log.store.put_source(SourceRecord(identity="f:1", session_id=log.session, format="f", raw=kept))
    log.store.update_session(log.session, name="n", root=log.dialog)
    return log, fork.dialog_id


LOG, FORK = written()
DIALOG = LOG.dialog


def fill(store: Store) -> None:
    """Copy what was written into a store, and index it."""
    assert copy_store(LOG.store, store).equal
    store.index(text_of)


def text_of(_kind: str, body: bytes) -> str:
    """Return a text of an entry for the index."""
    return repr(decode_entry(body))


def told(store: Store) -> list[str]:
    """Return the places of all faults, with their words."""
    return [f"{fault.place} {fault.code} {fault.what}" for fault in verify_store(store, extract=text_of)]


# --- one bit in the rows ----------------------------------------------------------------------------------------------------------


def flipped(value: Any, draw: Random) -> Any:  # noqa: ANN401 - any value of a column
    """Change one bit of a number or of bytes, one character of a text."""
    if isinstance(value, int):
        return value ^ (1 << draw.randrange(8))
    if isinstance(value, float):
        (bits,) = struct.unpack("<q", struct.pack("<d", value))
        return struct.unpack("<d", struct.pack("<q", bits ^ (1 << draw.randrange(52))))[0]
    at = draw.randrange(len(value))
    if isinstance(value, bytes):
        return value[:at] + bytes([value[at] ^ (1 << draw.randrange(8))]) + value[at + 1 :]
    return value[:at] + chr(ord(value[at]) ^ (1 << draw.randrange(3))) + value[at + 1 :]


@contextmanager
def looking(url: str) -> Iterator[Callable[..., list[tuple[Any, ...]]]]:
    """Return what executes statements behind a store's back; the value of each `?` follows."""
    if url.startswith("postgresql:"):
        with connected(url) as server:

            def run(sql: str, *values: object) -> list[tuple[Any, ...]]:
                cursor = server.execute(sql.replace("?", "%s"), values)
                return list(cursor.fetchall()) if cursor.description else []

            yield run
    else:
        connection = apsw.Connection(url)
        yield lambda sql, *values: list(connection.execute(sql, values))
        connection.close()


_ENTRY = "(dialog_no << 32 | seq)"
_COLUMNS = {
    "sqlite": [("headers", _ENTRY, "body_no"), ("bodies", "body_no", "body"), ("bodies", "body_no", "body_no")],
    "postgres": [("entries", _ENTRY, "body")],
}
_EVERYWHERE = [
    ("blob_bytes", "digest", "data"),
    ("blob_bytes", "digest", "digest"),
    ("payload_refs", _ENTRY, "digest"),
    ("dialogs", "dialog_no", "ranges"),
    ("dialogs", "dialog_no", "inherited"),
    ("dialogs", "dialog_no", "parent_id"),
    ("sessions", "session_no", "root"),
    ("activity", "session_no", "updated_at"),
    ("indexed", "dialog_no", "upto"),
    ("texts", _ENTRY, "seq"),
    ("texts", _ENTRY, "deflated"),
    ("migrations", "version", "sha256"),
]


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of a store with something of everything."""
    server: Server | None = request.getfixturevalue("postgres_server") if request.param == "postgres" else None
    url = server.url() if server else str(tmp_path / "store.db")
    store = open_store(url)
    fill(store)
    store.close()
    return url


@pytest.mark.parametrize("seed", [1, pytest.param(range(100), marks=[pytest.mark.soak, pytest.mark.timeout(1200)])])
def test_flipped_bit_is_found(url: str, seed: int | range) -> None:
    """In any column of entries, payloads, tree, index or migrations: at least one fault, and that of a header at its entry; undone, none."""
    kind = "postgres" if url.startswith("postgresql:") else "sqlite"
    headers = "entries" if kind == "postgres" else "headers"
    columns = [*((headers, _ENTRY, name) for name in (*Header._fields, "check_sum")), *_COLUMNS[kind], *_EVERYWHERE]
    store = open_store(url)
    assert told(store) == []
    with looking(url) as run:
        for number in (seed,) if isinstance(seed, int) else seed:
            draw = Random(number)  # noqa: S311 - no secret
            for table, key, column in columns:
                rows = sorted(run(f"SELECT {key}, {column} FROM {table} WHERE {column} IS NOT NULL"))  # noqa: S608 - ours
                place, old = draw.choice([row for row in rows if row[1] not in {"", b""}] or [(None, None)])
                if place is None:
                    continue
                new = old - abs(old) / 2 if column == "updated_at" else flipped(old, draw)
                there = new if key == column else place - old + new if column == "seq" else place
                change = f"UPDATE {table} SET {column} = ? WHERE {key} = ? AND {column} = ?"  # noqa: S608 - ours
                try:
                    run(change, new, place, old)
                except (apsw.ConstraintError, psycopg.errors.IntegrityError):
                    continue  # the database itself refuses it
                found = told(store)
                run(change, old, there, new)
                assert found or column == "deflated", (table, column, old, new)
                if table == headers and column not in {"seq", "body_no"}:
                    at = f"{(DIALOG if place >> 32 == rows[0][0] >> 32 else FORK)[:12]}:{place & 0xFFFFFFFF} "
                    assert any(one.startswith(at) for one in found), (column, old, new, found)
            assert told(store) == []
    store.close()


# --- what damage does to the rest ----------------------------------------------------------------------------------------------------


@pytest.fixture
def filled(store: Store) -> Begun:
    """Return a store of each kind with all of it."""
    fill(store)
    return Begun(store, LOG.session, DIALOG)


def test_damaged_body_is_named_and_alone(filled: Begun, backend: Backend, kind: str) -> None:
    """A changed or lost body is named and not returned; everything before and after it is read as ever, in other dialogs too, and appending continues."""
    before = dict(filled.store.bodies(DIALOG))
    backend.damage(DIALOG, 7)
    wanted = {(f"{DIALOG[:12]}:7", "damaged_body")}
    if kind != "memory":  # which loses nothing
        backend.lose(DIALOG, 4)
        wanted |= {(f"{DIALOG[:12]}:4", "damaged_body")}
    for place, _ in wanted:
        with pytest.raises(StoreDamaged):
            filled.store.body(DIALOG, int(place[13:]))
    after = dict(filled.store.bodies(DIALOG))
    assert not after.keys() & {int(place[13:]) for place, _ in wanted}
    assert {seq for seq, body in before.items() if after.get(seq) != body} == {int(place[13:]) for place, _ in wanted}
    assert [span.start for span in filled.store.verify(DIALOG)] == sorted(int(place[13:]) for place, _ in wanted)
    for scope in (None, LOG.session):
        faults = {(fault.place, fault.code) for fault in verify_store(filled.store, scope)}
        assert {fault for fault in faults if fault[1] not in {"loose_rows", "wrong_index"}} == wanted
    assert filled.store.verify(FORK) == ()
    assert filled.say(b"next")[0].seq == len(before)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_damaged_header_is_derived_again(filled: Begun, backend: Backend) -> None:
    """A flipped header drops no entry: it follows from its body; the damage is named, and with its body it is lost, and what cannot follow without it."""
    before = list(filled.store.headers(DIALOG))
    last = len(before) - 1
    for seq in (2, 3, last):
        backend.damage_header(DIALOG, seq)
    assert list(filled.store.headers(DIALOG)) == before
    assert list(filled.store.headers(DIALOG, reverse=True)) == before[::-1]
    assert (filled.store.header(DIALOG, 3), filled.store.last(DIALOG)) == (before[3], before[last])
    assert filled.say(b"next")[0].total == before[last].total + 4
    found = {fault.place for fault in verify_store(filled.store) if fault.code == "wrong_header"}
    assert found == {f"{DIALOG[:12]}:{seq}" for seq in (2, 3, last)}
    backend.lose(DIALOG, 2)
    whole = list(filled.store.headers(DIALOG))
    assert [header.seq for header in whole] == [seq for seq in range(last + 2) if seq not in {2, 3}]
    assert list(filled.store.headers(DIALOG, reverse=True)) == whole[::-1]
    assert filled.store.verify(DIALOG) == (Span(DIALOG, 2, 4),)
    assert (f"{DIALOG[:12]}:2", "lost_header") in {(fault.place, fault.code) for fault in verify_store(filled.store)}
    assert [filled.store.header(DIALOG, seq).total for seq in (2, 3)] == [before[1].total] * 2


def read_all_ways(store: Store, dialog: DialogId) -> list[list[str]]:
    """Read the dialog in every way, and return the faults of each way to verify. What cannot be read says so; nothing returns without end."""

    def counted(things: Callable[[], Iterable[object]]) -> int:
        try:
            number = sum(1 for _ in islice(things(), 2_000))
        except StoreDamaged:
            return -1
        assert number < 2_000
        return number

    tracemalloc.start()
    counted(lambda: [store.last(dialog)])
    counted(lambda: store.headers(dialog))
    counted(lambda: store.headers(dialog, reverse=True))
    counted(lambda: store.latest_of_kind(dialog, "compaction"))
    counted(lambda: store.bodies(dialog))
    counted(lambda: store.verify(dialog))
    faults = [[fault.code for fault in islice(verify_store(store, scope), 2_000)] for scope in (None, LOG.session)]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 32_000_000
    return faults


@pytest.mark.parametrize("fitting", [False, True])
@pytest.mark.parametrize("bit", [5, 10, 20, 30, 31, 62, 63])
def test_gap_in_a_log_is_one_fault(url: str, bit: int, fitting: bool) -> None:
    """An entry far from the others, by a flipped bit or on purpose with a checksum that fits: reading ends, and few faults say it."""
    table = "entries" if url.startswith("postgresql:") else "headers"
    with closing(open_store(url)) as store, looking(url) as run:
        old = store.last(DIALOG)
        new = old._replace(seq=old.seq - (1 << 63) if bit == 63 else old.seq ^ (1 << bit))
        if table == "entries" and bit >= 31:
            pytest.skip("PostgreSQL refuses such a number: the column has 32 bits")
        change = f"UPDATE {table} SET seq = ?, check_sum = ? WHERE check_sum = ?"  # noqa: S608 - ours
        run(change, new.seq, header_sum(new if fitting else old), header_sum(old))
        everything, of_session = read_all_ways(store, DIALOG)
        assert 0 < len(everything) < 10
        assert len(of_session) < 10
        run(change, old.seq, header_sum(old), header_sum(new if fitting else old))
        assert told(store) == []


def test_flipped_number_in_a_file_ends_reading(quick_path: Path) -> None:
    """Any bit of any number of an entry in the pages of the file: every way to read ends, in little memory, or says what is damaged."""
    path, damaged = quick_path / "sound.db", quick_path / "damaged.db"
    with SqliteStore(path) as store:
        fill(store)
        said = draft(MessageEntry(message=user("w")))[0]
        store.append(FORK, [said] * 120, store.last(FORK).turn_head)
        length = store.last(FORK).seq + 1
    content = path.read_bytes()
    for seq in (*range(29, 36), 64, length - 2, length - 1):
        place = content.index(bytes([seq, seq]) + b"\xff\xff" + b"messageuser")
        for bit in range(8):
            damaged.write_bytes(content[:place] + bytes([content[place] ^ (1 << bit)]) + content[place + 1 :])
            with SqliteStore(damaged) as store:
                everything, _of_session = read_all_ways(store, FORK)
            assert everything
            damaged.unlink()


# --- while others write, and at length ----------------------------------------------------------------------------------------------


def test_what_is_appended_meanwhile_is_no_fault() -> None:
    """A writer at the same time: what was there when a dialog was begun is judged, and nothing is called lost."""

    class Growing(MemoryStore):
        """A store to which somebody appends whenever headers are read."""

        def headers(self, dialog_id: DialogId, *args: Any, **more: Any) -> Iterator[Header]:  # noqa: ANN401
            self.append(dialog_id, [draft(MessageEntry(message=user("meanwhile")))[0]], self.last(dialog_id).turn_head)
            return super().headers(dialog_id, *args, **more)

    store, log = Growing(), written()[0]
    store.contents = log.store.contents
    assert told(store) == told(store) == []


def test_memory_stays_however_long_the_log(tmp_path: Path) -> None:
    """D20: ten times as many entries are verified in about the same memory: pages are read and let go."""
    peaks = []
    for number in (150, 1_500):
        with SqliteStore(tmp_path / f"{number}.db") as store:
            fill(store)
            said = draft(MessageEntry(message=user("w" * 800)))[0]
            store.append(FORK, [said] * number, store.last(FORK).turn_head)
            list(verify_store(store))
            tracemalloc.start()
            assert list(verify_store(store)) == []
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[1] < peaks[0] * 2 + 1_000_000
