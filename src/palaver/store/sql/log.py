"""Reading entries, as rows: a page at a time; a damaged header is derived again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from palaver.errors import InvalidInput, StoreDamaged
from palaver.ids import DialogId
from palaver.log import NOTHING, Handle, Header, body_digest
from palaver.store.records import derived_header, header_in, unknown
from palaver.store.sql.database import Database, Row, Rows
from palaver.store.sql.rows import Place, end

_FIRST_ROWS, _PAGE_ROWS = 32, 512  # most readers that go backwards soon have what they look for
_PAGE_BYTES = 1 << 20
MOST = 1 << 31  # sequence numbers are below


def one_header(rows: Rows, dialog_id: DialogId, seq: int) -> Header:
    """Read one header."""
    place, row = _row(rows, "header_get", dialog_id, seq)
    if row is None:
        raise unknown("handle", str(Handle(dialog_id, seq)))
    return header_in(row) or repaired(rows, place, row)


def one_body(rows: Rows, dialog_id: DialogId, seq: int) -> bytes:
    """Read one body."""
    _place, row = _row(rows, "body_get", dialog_id, seq)
    if row is None or row[0] is None:
        raise StoreDamaged(str(Handle(dialog_id, seq)), "its header is there, its body is not")
    body: bytes = row[0]
    return body


def _row(rows: Rows, statement: str, dialog_id: DialogId, seq: int) -> tuple[Place, Row | None]:
    place, length = end(rows, dialog_id)
    if not 0 <= seq < length:
        raise unknown("handle", str(Handle(dialog_id, seq)))
    return place, rows.one(statement, session_no=place[1], dialog_no=place[2], seq=seq)


def headers(
    db: Database,
    dialog_id: DialogId,
    start: int,
    stop: int | None,
    statement: str = "headers_up",
    *,
    reverse: bool = False,
    **more: object,
) -> Iterator[Header]:
    """Return headers of own entries; those of some kinds, newest first, with the statement `latest_of_kind`."""
    place, bounds = _bounds(db, dialog_id, start, stop)
    return _sound(db, place, pages(db, place, bounds, statement, reverse=reverse, **more))


def bodies(db: Database, dialog_id: DialogId, start: int, stop: int | None) -> Iterator[tuple[int, bytes]]:
    """Return numbers and bodies of own entries; one that was lost is left out."""
    place, bounds = _bounds(db, dialog_id, start, stop)
    return ((row[0], row[1]) for row in judged(db, place, bounds) if row[1] is not None)


def judged(db: Database, place: Place, bounds: range) -> Iterator[Row]:
    """Return number, body (None when it was lost), kind and digest of entries."""
    return pages(db, place, bounds, "bodies_up", bytes=_PAGE_BYTES)


def damaged(db: Database, dialog_id: DialogId) -> Iterator[int]:
    """Return the numbers of entries that are missing or whose body does not match its digest."""
    place, bounds = _bounds(db, dialog_id, 0, None)
    expected = 0
    for seq, body, _kind, digest in judged(db, place, bounds):
        yield from range(expected, seq)
        if body is None or body_digest(body) != digest:
            yield seq
        expected = seq + 1


def _bounds(db: Database, dialog_id: DialogId, start: int, stop: int | None) -> tuple[Place, range]:
    with db.reading() as rows:
        place, length = end(rows, dialog_id)
    return place, range(max(0, start), length if stop is None else min(stop, length))


def pages(
    db: Database, place: Place, bounds: range, statement: str, *, reverse: bool = False, **more: object
) -> Iterator[Row]:
    """Return rows of a dialog's entries, whose first column is their number.

    No statement and no transaction stays open between two pages: a slow reader hinders nobody.
    """
    start, stop, size = bounds.start, min(bounds.stop, MOST), _FIRST_ROWS
    numbers = {"session_no": place[1], "dialog_no": place[2], **more}
    while start < stop:
        page = db.all(statement, **numbers, start=start, stop=stop, rows=size)
        if not page:
            return
        yield from page
        size = min(4 * size, _PAGE_ROWS)
        if reverse:
            stop = page[-1][0]
        else:
            start = page[-1][0] + 1


# --- damaged headers ----------------------------------------------------------------------------------------------------------------


def _sound(db: Database, place: Place, found: Iterable[Row]) -> Iterator[Header]:
    for row in found:
        made = header_in(row)
        if made is None:
            with db.reading() as rows:
                made = repaired(rows, place, row)
        yield made


def repaired(rows: Rows, place: Place, row: Row) -> Header:
    """Return the header of a row that does not match its checksum: it is derived again from its body and the header before it.

    Raises:
        StoreDamaged: Its body, or one of a damaged header before it, is lost or not an entry.
    """
    seq, waiting, last = row[0], [row], NOTHING
    numbers = {"session_no": place[1], "dialog_no": place[2]}
    while waiting[-1][0] > 0:
        before = rows.one("header_get", **numbers, seq=waiting[-1][0] - 1)
        if before is None:
            raise StoreDamaged(str(Handle(place[0], seq)), "its header is damaged, and the one before it is lost")
        sound = header_in(before)
        if sound is not None:
            last = sound
            break
        waiting.append(before)
    for one in reversed(waiting):
        found = rows.one("body_get", **numbers, seq=one[0])
        if found is None or found[0] is None:
            raise StoreDamaged(str(Handle(place[0], one[0])), "its header is damaged, and its body is lost")
        try:
            hint = Header._make(one[:-1])._replace(calls=(), open_calls=())
            last = derived_header(hint, found[0], last)
        except InvalidInput as error:
            raise StoreDamaged(str(Handle(place[0], one[0])), f"header and body are damaged ({error})") from error
    return last
