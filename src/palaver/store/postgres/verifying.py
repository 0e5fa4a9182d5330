"""What only the server can be asked: rows that belong to nothing, and what the index holds."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from palaver.errors import StoreDamaged
from palaver.store.activity import activity_faults
from palaver.store.postgres.connections import Connections, ask
from palaver.store.postgres.entries import scan
from palaver.store.postgres.statements import Row, migrations
from palaver.store.postgres.texts import given
from palaver.store.postgres.transactions import reading
from palaver.store.text import Indexed, Judged, Told, index_faults

Found = tuple[str, str, str]

_PAGE_ROWS = 512


def faults(pool: Connections, extract: Told | None) -> Iterator[Found]:
    """Find what is wrong with the rows and the index; a part that cannot be read at all is a fault."""
    try:
        yield from _rows(pool)
        with reading(pool) as connection:
            loose = ask(connection, "activities_loose").fetchall()
        yield from activity_faults(loose, partial(_activities, pool))
        yield from _index(pool, extract)
    except StoreDamaged as error:
        yield str(error.place), "unreadable", str(error)


def _rows(pool: Connections) -> Iterator[Found]:
    with reading(pool) as connection:
        loose = ask(connection, "entries_loose").fetchall()
        texts = ask(connection, "texts_loose").fetchall()
        done = [tuple(row) for row in ask(connection, "migrations_done").fetchall()]
    for dialog_no, seq in loose:
        yield f"dialog number {dialog_no}, entry {seq}", "loose_rows", "It belongs to no dialog."
    for dialog_no, seq in texts:
        what = "The index holds a text of an entry that is not said to be indexed."
        yield f"dialog number {dialog_no}, entry {seq}", "wrong_index", what
    if done != [(one.version, one.name, one.sha256) for one in migrations()]:
        yield "migrations", "wrong_schema", "The record of migrations is not the one that made this format."


def _activities(pool: Connections, after: int) -> list[Row]:
    with reading(pool) as connection:
        return [(no, given(name), *rest) for no, name, *rest in ask(connection, "activities", (after, _PAGE_ROWS))]


def _index(pool: Connections, extract: Told | None) -> Iterator[Found]:
    """Compare the full-text index with the log."""
    after = -1
    while True:
        with reading(pool) as connection:
            page: list[Row] = ask(connection, "watermarks", (after, _PAGE_ROWS)).fetchall()
        for row in page:
            said = Indexed(*row)
            yield from index_faults(said, extract, partial(_judged, pool, said.number))
        if not page:
            return
        after = page[-1][0]


def _judged(pool: Connections, dialog_no: int, upto: int) -> Iterator[Judged]:
    for seq, body, deflated, kind, has_tokens in scan(pool, "texts_judged", dialog_no, range(upto)):
        yield seq, _bytes(body), _bytes(deflated), given(kind), bool(has_tokens)


def _bytes(value: bytes | None) -> bytes | None:
    return None if value is None else bytes(value)
