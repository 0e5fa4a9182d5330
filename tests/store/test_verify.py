"""Verify: a bit that was flipped anywhere behind the back of a store is found, and its place is named."""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import apsw
import psycopg
import pytest

from palaver.errors import StoreDamaged
from palaver.ids import DialogId, SessionId, derive_dialog_id, derive_id
from palaver.log import Compaction, Custom, Header, MessageEntry, Node, Pin, Place, Run, Span
from palaver.messages import UserMessage
from palaver.store import MemoryStore, SessionRecord, SourceRecord, SqliteStore, Store, open_store, verify_store
from tests.postgres import Server
from tests.store.health import conversation, put, text_of
from tests.store.postgres_backend import connected

SESSION = SessionId(derive_id("session", "one"))
DIALOG, FORK = (derive_dialog_id(SESSION, name) for name in ("one", "fork"))


def fill(store: Store) -> None:
    """Write something of everything that verify derives."""
    record = SessionRecord(session_id=SESSION, name="n", created_at=1.0, metadata={"a": [1]})
    store.create_session(record, Node(dialog_id=DIALOG, session_id=SESSION, created_at=1.0))
    put(store, DIALOG, conversation(DIALOG))
    summary = Compaction(base=3, pieces=(Run(dialog=DIALOG, start=0, stop=3),))
    put(store, DIALOG, iter([Pin(target=Place(dialog=DIALOG, seq=2)), Custom(custom_type="c", data={"x": 1}), summary]))
    inherited = store.header(DIALOG, 4).number
    store.create_dialog(
        Node(dialog_id=FORK, session_id=SESSION, parent_id=DIALOG, ranges=(Span(DIALOG, 0, 5),), inherited=inherited)
    )
    put(store, FORK, iter([said("More."), said("And more.")]))
    kept = store.put_blob(b"a kept file")
    store.put_source(SourceRecord(identity="f:1", session_id=SESSION, format="f", raw=kept))
    store.index(text_of)


def said(text: str) -> MessageEntry:
    """Return a message of the user."""
    return MessageEntry(message=UserMessage(content=text))


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


@pytest.mark.parametrize("seed", [1, pytest.param(range(100), marks=pytest.mark.soak)])
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
                rows = run(f"SELECT {key}, {column} FROM {table} WHERE {column} IS NOT NULL")  # noqa: S608 - ours
                place, old = draw.choice([row for row in sorted(rows) if row[1] not in {"", b""}] or [(None, None)])
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


# --- bytes and pages of a file ------------------------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a file with something of everything."""
    with SqliteStore(tmp_path / "store.db") as store:
        fill(store)
    return tmp_path / "store.db"


def test_flipped_byte_of_the_file_is_found(file: Path) -> None:
    """Where bodies and payloads lie in the file: a byte changed under SQLite is told with the entry's place."""
    whole = file.read_bytes()
    with SqliteStore(file, read_only=True) as store:
        lying = {f"{DIALOG[:12]}:{seq}": body for seq, body in store.bodies(DIALOG)}
        lying |= {blob: store.blob(blob) for blob in store.blob_ids()}
    for number, (place, data) in enumerate(lying.items()):
        at = whole.index(data) + len(data) // 2
        path = file.with_name(f"{number}.db")
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x15]) + whole[at + 1 :])
        with SqliteStore(path, read_only=True) as store:
            assert any(line.startswith(f"{place} ") for line in told(store)), place


def test_senseless_pages_are_told(file: Path) -> None:
    """Whole pages overwritten, one after the other: a fault, or damage on opening; never silence, never another error."""
    whole = file.read_bytes()
    for page in range(4096, len(whole), 4096):
        path = file.with_name(f"{page}.db")
        path.write_bytes(whole[:page] + b"\xa5" * 4096 + whole[page + 4096 :])
        try:
            with SqliteStore(path, read_only=True) as store:
                assert told(store), page
        except StoreDamaged:
            pass  # it cannot even be opened, and says so


# --- what it does not do ------------------------------------------------------------------------------------------------------------


def test_damaged_payload_is_no_missing_one() -> None:
    """A payload whose bytes changed, and one that is gone, each by its name; in memory, too."""
    store = MemoryStore()
    fill(store)
    assert told(store) == []
    picture, kept = sorted(store.contents.blobs, key=lambda blob: len(store.contents.blobs[blob]), reverse=True)
    store.contents.blobs[picture] += b"x"
    assert [line.split()[:2] for line in told(store)] == [[picture, "damaged_blob"]]
    del store.contents.blobs[picture], store.contents.blobs[kept]
    assert [line.split()[1] for line in told(store)] == ["missing_blob", "missing_blob"]


class Growing(MemoryStore):
    """A store to which somebody appends whenever headers are read."""

    def headers(
        self, dialog_id: DialogId, start: int = 0, stop: int | None = None, *, reverse: bool = False
    ) -> Iterator[Header]:
        """Append, then return headers."""
        put(self, dialog_id, iter([said("meanwhile")]))
        return super().headers(dialog_id, start, stop, reverse=reverse)


def test_what_is_appended_meanwhile_is_no_fault() -> None:
    """A writer at the same time: what was there when a dialog was begun is judged, and nothing is called lost."""
    store = Growing()
    fill(store)
    assert told(store) == told(store) == []


def test_d20_memory_stays_however_long_the_log(tmp_path: Path) -> None:
    """Ten times as many entries are verified in about the same memory: pages are read and let go."""
    peaks = []
    for number in (300, 3_000):
        with SqliteStore(tmp_path / f"{number}.db") as store:
            fill(store)
            with store.transaction():
                put(store, FORK, iter([said("w" * 800)] * number))
            list(verify_store(store))
            tracemalloc.start()
            assert list(verify_store(store)) == []
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[1] < peaks[0] * 2 + 1_000_000
