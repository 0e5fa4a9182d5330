"""Verify: a byte that was changed anywhere behind the back of a store is found, and its place is named."""

from __future__ import annotations

import shutil
import struct
import tracemalloc
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple

import apsw
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palaver.errors import StoreDamaged
from palaver.ids import DialogId, SessionId, derive_id
from palaver.log import Compaction, Constraint, Custom, Header, MessageEntry, Node, Pin, Place, Quarantine, Run, Span
from palaver.messages import UserMessage
from palaver.session import searchable
from palaver.store import Durability, MemoryStore, SessionRecord, SourceRecord, SqliteStore, Store
from palaver.store.activity import SLACK_SECONDS
from palaver.store.postgres import PostgresStore
from palaver.store.verifying import verify_store
from palaver.testing.store_laws.verifying import conversation, put
from tests.postgres import Server
from tests.store.postgres_backend import connected, emptied

DIALOG, FORK = (DialogId(derive_id("dialog", name)) for name in ("one", "fork"))


def fill(store: Store) -> Store:
    """Write something of everything that verify derives."""
    session = SessionId(derive_id("session", "one"))
    store.create_session(SessionRecord(session_id=session, name="n", created_at=1.0, metadata={"a": [1]}))
    store.create_dialog(Node(dialog_id=DIALOG, session_id=session, created_at=1.0, metadata={"b": 1}))
    store.update_session(session, root=DIALOG)
    put(store, DIALOG, conversation(DIALOG))
    place = Place(dialog=DIALOG, seq=2)
    marks = [
        Pin(target=place),
        Quarantine(target=place),
        Constraint(text="Never push."),
        Custom(custom_type="c", data={"x": 1}),
    ]
    put(store, DIALOG, iter([*marks, Compaction(base=3, pieces=(Run(dialog=DIALOG, start=0, stop=3),))]))
    ranges = (Span(DIALOG, 0, 5),)
    store.create_dialog(
        Node(
            dialog_id=FORK,
            session_id=session,
            parent_id=DIALOG,
            ranges=ranges,
            inherited=store.header(DIALOG, 4).number,
        )
    )
    put(
        store,
        FORK,
        iter(
            [MessageEntry(message=UserMessage(content="More.")), MessageEntry(message=UserMessage(content="And more."))]
        ),
    )
    kept = store.put_blob(b"a kept file")
    store.put_source(SourceRecord(identity="f:1", session_id=session, format="f", raw=kept))
    store.index(searchable)
    return store


class Flip(NamedTuple):
    """A change of one value: its table, the key of its row, its column, the old value and the new one."""

    table: str
    key: str
    row: Any
    column: str
    old: Any
    new: Any


def flipped(value: Any, at: int, bit: int) -> Any:  # noqa: ANN401 - any value of a column
    """Change one bit of a number or of bytes, one character of a text."""
    if isinstance(value, int):
        return value ^ (1 << (bit % 8))
    if isinstance(value, float):
        (bits,) = struct.unpack("<q", struct.pack("<d", value))
        return struct.unpack("<d", struct.pack("<q", bits ^ (1 << (at % 52))))[0]
    if isinstance(value, bytes):
        place = at % len(value)
        return value[:place] + bytes([value[place] ^ (1 << (bit % 8))]) + value[place + 1 :]
    place = at % len(value)
    return value[:place] + chr(ord(value[place]) ^ (1 << (bit % 4))) + value[place + 1 :]


def told(store: Store) -> list[str]:
    """Give the places of all faults, with their words."""
    return [f"{fault.place} {fault.code} {fault.what}" for fault in verify_store(store, extract=searchable)]


def drawn(data: st.DataObject, columns: list[tuple[str, str, str]], read: Any) -> Flip | None:  # noqa: ANN401 - a cursor's execute
    """Draw a value of the log, and its change; None where there is nothing to change."""
    table, key, column = data.draw(st.sampled_from(columns))
    rows = list(read(f"SELECT {key}, {column} FROM {table} WHERE {column} IS NOT NULL ORDER BY 1"))  # noqa: S608 - names of ours
    row, value = data.draw(st.sampled_from(rows))
    value = bytes(value) if isinstance(value, memoryview) else value
    if value in {"", b""}:
        return None
    new = flipped(value, data.draw(st.integers(0, 10_000)), data.draw(st.integers(0, 7)))
    return Flip(table, key, row, column, value, new)


HEADER = (
    "turn_head",
    "view_base",
    "open_turn",
    "kind",
    "role",
    "number",
    "calls",
    "open_calls",
    "response",
    "at",
    "size",
    "total",
    "digest",
)
"""The columns of a header."""


def may_stay_unseen(flip: Flip, kind: str) -> bool:
    """Tell what nothing else tells, or what makes no difference.

    Whether an entry that may stand in a turn or beside it belongs to one; the last bits of a deflated
    text, which mean nothing; a rough time that is near enough.
    """
    if flip.table == "activity" and flip.column == "at":
        return bool(abs(flip.old - flip.new) <= 2 * SLACK_SECONDS)
    if flip.column == "deflated":
        return zlib.decompressobj().decompress(flip.old) == _inflated(flip.new)
    return flip.column == "turn_head" and kind == "custom"


def _inflated(data: bytes) -> bytes:
    try:
        return zlib.decompressobj().decompress(data)
    except zlib.error:
        return b""


# --- SQLite ---------------------------------------------------------------------------------------------------------------------

_SQLITE = [
    *(("headers", "id", column) for column in ("id", "body_no", *HEADER)),
    *(("bodies", "body_no", "body") for _ in range(4)),
    ("bodies", "body_no", "body_no"),
    ("blobs", "blob_no", "data"),
    ("blobs", "blob_no", "digest"),
    ("dialogs", "dialog_no", "ranges"),
    ("dialogs", "dialog_no", "inherited"),
    ("dialogs", "dialog_no", "parent_id"),
    ("sessions", "session_no", "root"),
    *(("activity", "session_no", column) for column in ("session_no", "at", "at")),
    ("texts", "id", "id"),
    ("texts", "id", "deflated"),
    ("migrations", "version", "sha256"),
]


@cache
def _template() -> Path:
    path = Path(mkdtemp(prefix="palaver-verify-")) / "store.db"
    fill(SqliteStore(path, Durability.NORMAL)).close()
    return path


@pytest.fixture(scope="module", autouse=True)
def _tidy() -> Iterator[None]:
    yield
    shutil.rmtree(_template().parent)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_changed_byte_of_a_sqlite_store_is_found(tmp_path: Path, data: st.DataObject) -> None:
    """In any row of entries, payloads, tree, index or migrations: at least one fault, and where it was is among the places."""
    path = tmp_path / "store.db"
    shutil.copyfile(_template(), path)
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA foreign_keys = OFF")
    flip = drawn(data, _SQLITE, connection.execute)
    if flip is None or flip.old == flip.new:
        return
    kind = (
        connection.execute("SELECT kind FROM headers WHERE id = ?", (flip.row,)).get if flip.table == "headers" else ""
    )
    try:
        connection.execute(f"UPDATE {flip.table} SET {flip.column} = ? WHERE {flip.key} = ?", (flip.new, flip.row))  # noqa: S608 - names of ours
    except apsw.ConstraintError:
        return  # the file itself refuses it
    finally:
        connection.close()
    with SqliteStore(path, read_only=True) as store:
        found = told(store)
    if may_stay_unseen(flip, str(kind)):
        return
    assert found, flip
    if flip.table == "headers" and flip.column not in {"id", "body_no"}:
        dialog = {1: DIALOG, 2: FORK}[flip.row >> 32]
        assert any(one.startswith(f"{dialog[:12]}:{flip.row & 0xFFFFFFFF} ") for one in found), (flip, found)


def test_a_changed_byte_of_the_file_itself_is_found(tmp_path: Path) -> None:
    """Where the bodies and payloads lie in the file: a byte changed under SQLite is told with the entry's place, or the file cannot be opened."""
    whole = _template().read_bytes()
    with SqliteStore(_template(), read_only=True) as store:
        lying = {f"{DIALOG[:12]}:{seq}": body for seq, body in store.bodies(DIALOG)}
        lying |= {blob: store.blob(blob) for blob in store.blob_ids()}
    for place, data in lying.items():
        at = whole.index(data) + len(data) // 2
        path = tmp_path / "store.db"
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x15]) + whole[at + 1 :])
        with SqliteStore(path, read_only=True) as store:
            assert any(line.startswith(f"{place} ") for line in told(store)), place


def test_pages_that_make_no_sense_are_told_and_never_a_defect(tmp_path: Path) -> None:
    """Whole pages overwritten, one after the other: a fault, or a typed error on opening; never silence, never another error."""
    whole = _template().read_bytes()
    for page in range(4096, len(whole), 4096):
        path = tmp_path / "store.db"
        path.write_bytes(whole[:page] + b"\xa5" * 4096 + whole[page + 4096 :])
        try:
            with SqliteStore(path, read_only=True) as store:
                assert told(store), page
        except StoreDamaged:
            pass  # it cannot even be opened, and says so


# --- PostgreSQL -----------------------------------------------------------------------------------------------------------------

_KEY = "(dialog_no << 32 | seq)"
_POSTGRES = [
    *(("entries", _KEY, column) for column in ("seq", *HEADER)),
    *(("entries", _KEY, "body") for _ in range(4)),
    ("blobs", "digest", "data"),
    ("blobs", "digest", "digest"),
    ("dialogs", "dialog_no", "ranges"),
    ("dialogs", "dialog_no", "inherited"),
    ("activity", "session_no", "at"),
    ("texts", _KEY, "deflated"),
    ("migrations", "version", "sha256"),
]


@pytest.fixture(scope="module")
def filled(postgres_server: Server) -> Iterator[str]:
    """Give the address of a store with something of everything."""
    url = emptied(postgres_server)
    fill(PostgresStore(url)).close()
    yield url
    emptied(postgres_server)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_changed_byte_of_a_postgres_store_is_found(filled: str, data: st.DataObject) -> None:
    """The same in PostgreSQL: each change is found, and undone it is gone."""
    with connected(filled) as connection:
        flip = drawn(data, _POSTGRES, lambda sql: connection.execute(sql).fetchall())
        if flip is None or flip.old == flip.new or (isinstance(flip.new, str) and "\0" in flip.new):
            return
        kinds = connection.execute("SELECT (dialog_no << 32 | seq), kind FROM entries").fetchall()
        change = f"UPDATE {flip.table} SET {flip.column} = %s WHERE {flip.key} = %s"  # noqa: S608 - names of ours
        key = flip.row
        if flip.column == "seq":
            key = flip.row - flip.old + flip.new
        elif flip.table == "blobs" and flip.column == "digest":
            key = flip.new
        try:
            connection.execute(change, (flip.new, flip.row))
        except psycopg.errors.IntegrityError:
            return
        try:
            with PostgresStore(filled, read_only=True) as store:
                found = told(store)
        finally:
            connection.execute(change, (flip.old, key))
    connection.close()
    assert found or may_stay_unseen(flip, str({row[0]: row[1] for row in kinds}.get(flip.row))), flip


# --- memory, and what it costs ---------------------------------------------------------------------------------------------------


def test_a_changed_payload_and_a_missing_one_are_told_apart() -> None:
    """In memory, too: a payload whose bytes changed, one that is gone, and the entry that names it."""
    store = MemoryStore()
    fill(store)
    assert told(store) == []
    (picture, kept) = sorted(store.contents.blobs, key=lambda blob: len(store.contents.blobs[blob]), reverse=True)
    store.contents.blobs[picture] += b"x"
    assert told(store) == [f"{picture} damaged_blob Its bytes do not give its id."]
    del store.contents.blobs[picture], store.contents.blobs[kept]
    assert sorted(line.split()[1] for line in told(store)) == ["missing_blob", "missing_blob"]


class Growing(MemoryStore):
    """A store to which somebody appends whenever headers are read."""

    def headers(
        self, dialog_id: DialogId, start: int = 0, stop: int | None = None, *, reverse: bool = False
    ) -> Iterator[Header]:
        """Append, then give headers."""
        put(self, dialog_id, iter([MessageEntry(message=UserMessage(content="meanwhile"))]))
        return super().headers(dialog_id, start, stop, reverse=reverse)


def test_what_is_appended_meanwhile_is_no_fault() -> None:
    """A writer at the same time: what was there when a dialog was begun is judged, and nothing is called lost."""
    store = Growing()
    fill(store)
    for _ in range(2):
        assert told(store) == []


def test_an_index_that_says_otherwise_is_found() -> None:
    """A text of the index that is not the entry's: its place is named; made anew, the index is sound."""
    store = MemoryStore()
    fill(store)
    store.contents.logs[DIALOG].texts[2] = "other words"
    assert [line.split()[:2] for line in told(store)] == [[f"{DIALOG[:12]}:2", "wrong_index"]]
    store.drop_index()
    store.index(searchable)
    assert told(store) == []


def test_memory_stays_the_same_however_long_the_log(tmp_path: Path) -> None:
    """Ten times as many entries are verified in about the same memory: pages are read and let go."""
    peaks = []
    for number in (300, 3_000):
        with SqliteStore(tmp_path / f"{number}.db", Durability.NORMAL) as store:
            fill(store)
            with store.together():
                put(store, FORK, iter([MessageEntry(message=UserMessage(content="w" * 800))] * number))
            list(verify_store(store))
            tracemalloc.start()
            assert list(verify_store(store)) == []
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[1] < peaks[0] * 2 + 1_000_000
