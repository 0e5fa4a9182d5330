"""What only the file itself can be asked: rows that belong to nothing, the pages of the file, and what the index holds."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from palaver.errors import StoreDamaged
from palaver.store.activity import activity_faults
from palaver.store.sqlite.connections import Connections, reading
from palaver.store.sqlite.entries import SEQ_BITS, SEQ_MASK, scan
from palaver.store.sqlite.statements import Row, migrations, statements
from palaver.store.text import Indexed, Judged, Told, index_faults

Found = tuple[str, str, str]

_PAGE_ROWS = 512
_LOOKS = 3
_TOLD = 20
"""How many faults of its pages SQLite is asked for; one is enough to know that a copy is due."""


def faults(pool: Connections, extract: Told | None) -> Iterator[Found]:
    """Find what is wrong with the rows and the index; a part that cannot be read at all is a fault."""
    for part in (_pages, _rows, _times, partial(_index, extract)):
        try:
            yield from part(pool)
        except StoreDamaged as error:
            yield str(error.place), "damaged_file", str(error)


def _pages(pool: Connections) -> Iterator[Found]:
    """Let SQLite look at every page, index and table, the full-text index too (https://www.sqlite.org/pragma.html#pragma_integrity_check).

    A writer may come between the two statements of a look; damage is still there at the next one.
    """
    told = _look(pool)
    for _ in range(_LOOKS - 1):
        if not told:
            return
        again = _look(pool)
        told = [text for text in told if text in again]
    yield from (("file", "damaged_file", text) for text in told)


def _look(pool: Connections) -> list[str]:
    with reading(pool) as connection:
        # the check of FTS5 goes by what this connection last knew of the index; opening a cursor makes it read that anew
        connection.execute(statements()["tokens_opened"]).fetchall()
        rows: list[Row] = connection.execute(f"PRAGMA integrity_check({_TOLD})").fetchall()
    return [str(text) for (text,) in rows if text != "ok"]


def _rows(pool: Connections) -> Iterator[Found]:
    for place in _key_scan(pool, "headers_loose"):
        yield f"dialog number {place >> SEQ_BITS}, entry {place & SEQ_MASK}", "loose_rows", "It belongs to no dialog."
    with reading(pool) as connection:
        headers, bodies = connection.execute(statements()["row_counts"]).fetchall()[0]
        done: list[Row] = connection.execute(statements()["migrations_done"]).fetchall()
    if headers != bodies:
        yield (
            "bodies",
            "loose_rows",
            f"There are {headers} headers and {bodies} bodies; each header has one of its own.",
        )
    known = [(one.version, one.name, one.sha256) for one in migrations()]
    if done != known:
        yield "migrations", "wrong_schema", "The record of migrations is not the one that made this format."


def _times(pool: Connections) -> Iterator[Found]:
    """Compare the rough times of sessions with when they were last active."""
    with reading(pool) as connection:
        loose: list[Row] = connection.execute(statements()["activities_loose"]).fetchall()
    yield from activity_faults(loose, partial(_activities, pool))


def _activities(pool: Connections, after: int) -> list[Row]:
    with reading(pool) as connection:
        found: list[Row] = connection.execute(statements()["activities"], (after, _PAGE_ROWS)).fetchall()
    return found


def _index(extract: Told | None, pool: Connections) -> Iterator[Found]:
    """Compare the full-text index with the log."""
    for place in _key_scan(pool, "texts_loose"):
        what = "The index holds a text of an entry that is not said to be indexed."
        yield f"dialog number {place >> SEQ_BITS}, entry {place & SEQ_MASK}", "wrong_index", what
    after = -1
    while True:
        with reading(pool) as connection:
            page: list[Row] = connection.execute(statements()["watermarks"], (after, _PAGE_ROWS)).fetchall()
        for row in page:
            said = Indexed(*row)
            yield from index_faults(said, extract, partial(_judged, pool, said.number))
        if not page:
            return
        after = page[-1][0]


def _judged(pool: Connections, dialog_no: int, upto: int) -> Iterator[Judged]:
    for seq, body, deflated, kind, has_tokens in scan(pool, "texts_judged", dialog_no, range(upto)):
        yield seq, body, deflated, kind, bool(has_tokens)


def _key_scan(pool: Connections, name: str) -> Iterator[int]:
    """Give the first column of a statement's rows, a page at a time, each page after the last value of the one before."""
    after = -(1 << 62)
    while True:
        with reading(pool) as connection:
            page: list[Row] = connection.execute(statements()[name], (after, _PAGE_ROWS)).fetchall()
        yield from (row[0] for row in page)
        if not page:
            return
        after = page[-1][0]
