"""Headers and bodies, as rows. An entry's id is its dialog's number and its own: `dialog_no << 32 | seq`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

import apsw

from palaver.errors import StoreDamaged, UnknownHandle
from palaver.ids import DialogId
from palaver.log import NOTHING, Draft, Handle, Header, body_digest, next_header
from palaver.store.erasing_rows import unknown_dialog
from palaver.store.records import appended, check_taken, ids_in
from palaver.store.sqlite import activity
from palaver.store.sqlite.connections import Connections, reading
from palaver.store.sqlite.rows import SqliteRows
from palaver.store.sqlite.statements import Row, statements

SEQ_BITS = 32
SEQ_MASK = (1 << SEQ_BITS) - 1

_PAGE_ROWS = 512
_PAGE_BYTES = 1 << 20
_WITHOUT_BODIES = frozenset({"headers_up", "headers_down", "headers_holding", "headers_of_kind"})
_MOST = 1 << SEQ_BITS


def entry_id(dialog_no: int, seq: int) -> int:
    """Give the rowid of an entry; a number beyond what a dialog can hold gives the place after its last."""
    return (dialog_no << SEQ_BITS) + min(max(seq, 0), _MOST)


def header(row: Row) -> Header:
    """Make a header of its row."""
    seq, turn_head, view_base, open_turn, kind, role, number, calls, open_calls, *rest = row
    return Header(seq, turn_head, view_base, open_turn, kind, role, number, ids_in(calls), ids_in(open_calls), *rest)


def newest(connection: apsw.Connection, dialog_id: DialogId) -> tuple[int, Header]:
    """Give a dialog's number and its newest header, `NOTHING` when it has none."""
    sql = statements()
    dialog_no = connection.execute(sql["dialog_no"], (dialog_id,)).get
    if dialog_no is None:
        raise unknown_dialog(SqliteRows(connection), dialog_id)
    place = dialog_no << SEQ_BITS
    row = connection.execute(sql["newest_header"], (place, place + _MOST)).fetchone()
    return dialog_no, NOTHING if row is None else header(row)


def end(connection: apsw.Connection, dialog_id: DialogId) -> tuple[int, int]:
    """Give a dialog's number and how many own entries it holds."""
    row = connection.execute(statements()["dialog_end"], (dialog_id,)).fetchone()
    if row is None:
        raise unknown_dialog(SqliteRows(connection), dialog_id)
    return row[0], row[1]


def append(
    connection: apsw.Connection, dialog_id: DialogId, drafts: Sequence[Draft], turn_head: int
) -> tuple[Header, ...]:
    """Append entries of a turn, in an open transaction."""
    dialog_no, last = newest(connection, dialog_id)
    headers = appended(dialog_id, last, drafts, turn_head)
    for made, draft in zip(headers, drafts, strict=True):
        _write(connection, dialog_no, made, draft.body)
    if headers:
        activity.spoken_in(connection, dialog_no, headers[-1].at)
    return headers


def annotate(connection: apsw.Connection, dialog_id: DialogId, draft: Draft) -> Header:
    """Add an entry beside a turn, in an open transaction."""
    dialog_no, last = newest(connection, dialog_id)
    made = next_header(draft, last, turn=False)
    _write(connection, dialog_no, made, draft.body)
    activity.spoken_in(connection, dialog_no, made.at)
    return made


def _write(connection: apsw.Connection, dialog_no: int, made: Header, body: bytes) -> None:
    sql = statements()
    place = entry_id(dialog_no, made.seq)
    calls = json.dumps(made.calls) if made.calls else None
    open_calls = json.dumps(made.open_calls) if made.open_calls else None
    connection.execute(sql["body_add"], (body,))
    connection.execute(sql["header_add"], (place, *made[1:7], calls, open_calls, *made[9:]))


def take(connection: apsw.Connection, dialog_id: DialogId, taken: Sequence[tuple[Header, bytes]]) -> None:
    """Write entries of another store as they are, in an open transaction."""
    dialog_no, last = newest(connection, dialog_id)
    check_taken(last, taken)
    for made, body in taken:
        _write(connection, dialog_no, made, body)
    if taken:
        activity.spoken_in(connection, dialog_no, taken[-1][0].at)


def blob_ids(pool: Connections) -> Iterator[str]:
    """Give the ids of all payloads, in order, a page at a time."""
    after: bytes = b""
    while True:
        with reading(pool) as connection:
            page: list[Row] = connection.execute(statements()["blob_ids"], (after, _PAGE_ROWS)).fetchall()
        if not page:
            return
        yield from (digest.hex() for (digest,) in page)
        after = page[-1][0]


def one_header(connection: apsw.Connection, dialog_id: DialogId, seq: int) -> Header:
    """Read one header."""
    dialog_no, length = end(connection, dialog_id)
    row = (
        connection.execute(statements()["header_get"], (entry_id(dialog_no, seq),)).fetchone()
        if 0 <= seq < length
        else None
    )
    if row is None:
        raise UnknownHandle(str(Handle(dialog_id, seq)))
    return header(row)


def one_body(connection: apsw.Connection, dialog_id: DialogId, seq: int) -> bytes:
    """Read one body."""
    dialog_no, length = end(connection, dialog_id)
    if not 0 <= seq < length:
        raise UnknownHandle(str(Handle(dialog_id, seq)))
    body = connection.execute(statements()["body_get"], (entry_id(dialog_no, seq),)).get
    if not isinstance(body, bytes):
        raise StoreDamaged(str(Handle(dialog_id, seq)), "its header is there, its body is not")
    return body


def scan(
    pool: Connections, name: str, dialog_no: int, bounds: range, *more: str, reverse: bool = False
) -> Iterator[Row]:
    """Give rows of a dialog's entries whose numbers, their first column, lie in `bounds`, a page at a time.

    No statement stays open between two rows: a reader that takes its time neither pins the write-ahead log nor hinders an append.
    """
    start, stop = bounds.start, bounds.stop
    while start < stop:
        with reading(pool) as connection:
            rows = connection.execute(
                statements()[name], (entry_id(dialog_no, start), entry_id(dialog_no, stop), _PAGE_ROWS, *more)
            )
            page: list[Row] = rows.fetchall() if name in _WITHOUT_BODIES else _filled(rows)
            rows.close()  # a statement left in the middle would keep its snapshot, and the connection could not write
        yield from page
        if not page:
            return
        if reverse:
            stop = page[-1][0]
        else:
            start = page[-1][0] + 1


def _filled(rows: Iterable[Row]) -> list[Row]:
    """Take rows until the bodies in their second column are enough for one page; a missing body weighs nothing."""
    page, held = [], 0
    for row in rows:
        page.append(row)
        held += len(row[1] or b"")
        if held >= _PAGE_BYTES:
            break
    return page


def damaged(pool: Connections, dialog_no: int) -> Iterator[int]:
    """Give the numbers of entries whose body does not give the digest in its header, or that are missing."""
    expected = 0
    for seq, body, digest in scan(pool, "to_verify", dialog_no, range(_MOST)):
        yield from range(expected, seq)
        if body is None or body_digest(body) != digest:
            yield seq
        expected = seq + 1
