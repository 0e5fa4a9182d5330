"""What only the server can be asked: rows that belong to nothing, and what the index holds."""

from __future__ import annotations

from collections.abc import Iterator

from palaver.errors import StoreDamaged
from palaver.store.postgres.connections import Connections, ask
from palaver.store.postgres.entries import scan
from palaver.store.postgres.statements import Row, migrations
from palaver.store.postgres.texts import given
from palaver.store.postgres.transactions import reading
from palaver.store.text import Told, differs

Found = tuple[str, str, str]

_PAGE_ROWS = 512


def faults(pool: Connections, extract: Told | None) -> Iterator[Found]:
    """Find what is wrong with the rows and the index; a part that cannot be read at all is a fault."""
    try:
        yield from _rows(pool)
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


def _index(pool: Connections, extract: Told | None) -> Iterator[Found]:
    """Compare the full-text index with the log."""
    after = -1
    while True:
        with reading(pool) as connection:
            page: list[Row] = ask(connection, "watermarks", (after, _PAGE_ROWS)).fetchall()
        for row in page:
            yield from _indexed(pool, extract, *row)
        if not page:
            return
        after = page[-1][0]


def _indexed(
    pool: Connections, extract: Told | None, dialog_no: int, dialog_id: str | None, upto: int, length: int
) -> Iterator[Found]:
    """Compare what is indexed of a dialog with its entries."""
    place = f"dialog number {dialog_no}" if dialog_id is None else dialog_id[:12]
    if dialog_id is None or not 0 <= upto <= length:
        yield place, "wrong_index", f"The index says that it holds {upto} of its {length} entries."
        return
    for seq, body, deflated, kind, has_tokens in scan(pool, "texts_judged", dialog_no, range(upto)):
        kept = None if deflated is None else bytes(deflated)
        why = differs(extract, given(kind), None if body is None else bytes(body), kept, tokens=has_tokens)
        if why:
            yield f"{place}:{seq}", "wrong_index", why
