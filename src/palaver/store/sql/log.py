"""Reading entries, as rows: a page at a time; a damaged header is derived again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from palaver.errors import InvalidInput, StoreDamaged
from palaver.ids import DialogId
from palaver.log import NOTHING, Handle, Header, Span
from palaver.store.records import MOST_ENTRIES, SHORT_DIGITS, derived_header, header_in, require_written, unknown
from palaver.store.sql.database import Database, Row, Rows
from palaver.store.sql.rows import Place, end

_FIRST_ROWS, _PAGE_ROWS = 32, 512  # most readers that go backwards soon have what they look for
_PAGE_BYTES = 1 << 20
_DERIVED_AT_ONCE = (
    64  # damaged headers before one, more than a page of SQLite has: whoever reads in order derives any number
)


def one_header(rows: Rows, dialog_id: DialogId, seq: int) -> Header:
    """Read one header."""
    place, row = _row(rows, "header_get", dialog_id, seq)
    if row is None:
        raise StoreDamaged(str(Handle(dialog_id, seq)), "its header is lost")
    return header_in(row) or repaired(rows, place, row)


def one_body(rows: Rows, dialog_id: DialogId, seq: int) -> bytes:
    """Read one body."""
    place, row = _row(rows, "body_get", dialog_id, seq)
    return _written(rows, place, seq, *(row or (None, None)))


def _written(ask: Rows | Database, place: Place, seq: int, body: object, digest: object) -> bytes:
    numbers = {"session_no": place[1], "dialog_no": place[2], "seq": seq}
    return require_written(Handle(place[0], seq), body, digest, lambda: ask.one("header_get", **numbers))


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
    """Return headers of own entries; those of one kind, newest first, with the statement `latest_of_kind`."""
    place, bounds = _bounds(db, dialog_id, start, stop)
    return _sound(db, place, pages(db, place, bounds, statement, reverse=reverse, **more))


def bodies(db: Database, dialog_id: DialogId, start: int, stop: int | None) -> Iterator[tuple[int, bytes]]:
    """Return numbers and bodies of own entries; one that is lost or damaged is left out."""
    place, bounds = _bounds(db, dialog_id, start, stop)
    return ((seq, body) for seq, body in _bodies(db, place, bounds) if body is not None)


def _bodies(db: Database, place: Place, bounds: range) -> Iterator[tuple[int, bytes | None]]:
    for seq, body, _kind, digest in judged(db, place, bounds):
        try:
            yield seq, _written(db, place, seq, body, digest)
        except StoreDamaged:
            yield seq, None


def judged(db: Database, place: Place, bounds: range) -> Iterator[Row]:
    """Return number, body (None when it was lost), kind and digest of entries."""
    return pages(db, place, bounds, "bodies_up", bytes=_PAGE_BYTES)


def damaged(db: Database, dialog_id: DialogId) -> Iterator[Span]:
    """Return entries whose body does not match its digest, one by one, and each gap in the log as a whole."""
    place, bounds = _bounds(db, dialog_id, 0, None)
    expected = 0
    for seq, body in _bodies(db, place, bounds):
        if seq > expected:
            yield Span(dialog_id, expected, seq)
        if body is None:
            yield Span(dialog_id, seq, seq + 1)
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

    Raises:
        StoreDamaged: The rows are out of order. Each row must be within what is left to read, so reading always ends.
    """
    start, stop, size = bounds.start, min(bounds.stop, MOST_ENTRIES), _FIRST_ROWS
    numbers = {"session_no": place[1], "dialog_no": place[2], **more}
    while start < stop:
        page = db.all(statement, **numbers, start=start, stop=stop, rows=size)
        if not page:
            return
        for row in page:
            seq = row[0]
            if type(seq) is not int or not start <= seq < stop:
                raise StoreDamaged(str(Handle(place[0], start)), f"entry {seq!r} is out of order")
            if reverse:
                stop = seq
            else:
                start = seq + 1
            yield row
        size = min(4 * size, _PAGE_ROWS)


# --- damaged headers ----------------------------------------------------------------------------------------------------------------


def _sound(db: Database, place: Place, found: Iterable[Row]) -> Iterator[Header]:
    last = NOTHING
    for row in found:
        made = header_in(row)
        if made is None:
            with db.reading() as rows:
                made = repaired(rows, place, row, last)
        yield made
        last = made


def repaired(rows: Rows, place: Place, row: Row, last: Header = NOTHING) -> Header:
    """Return the header of a row that does not match its checksum: it is derived again from its body and the header before it.

    Args:
        rows: Where to read.
        place: The dialog.
        row: The row.
        last: A header that was read already; it is used if it is the one before.

    Raises:
        StoreDamaged: Its body, or one of a damaged header before it, is lost or not an entry; or too many before it are damaged.
    """
    if type(row[0]) is not int:
        raise StoreDamaged(f"dialog {place[0][:SHORT_DIGITS]}", f"it holds an entry {row[0]!r}")
    numbers = {"session_no": place[1], "dialog_no": place[2]}
    waiting = [row]
    if last.seq != row[0] - 1:
        last, before = _last_sound(
            place, row[0], rows.all("headers_down", **numbers, start=0, stop=row[0], rows=_DERIVED_AT_ONCE)
        )
        waiting += before
    for damaged_row in reversed(waiting):
        handle = str(Handle(place[0], damaged_row[0]))
        body = rows.one("body_get", **numbers, seq=damaged_row[0])
        if body is None or body[0] is None:
            raise StoreDamaged(handle, "its header is damaged, and its body is lost")
        try:
            hint = Header._make(damaged_row[:-1])._replace(calls=(), open_calls=())
            last = derived_header(hint, body[0], last)
        except InvalidInput as error:
            raise StoreDamaged(handle, f"header and body are damaged ({error})") from error
    return last


def _last_sound(place: Place, seq: int, before: Iterable[Row]) -> tuple[Header, list[Row]]:
    """Return the newest sound header before an entry, and the rows of the damaged ones between, newest first."""
    waiting: list[Row] = []
    for expected, row in zip(range(seq - 1, -1, -1), before, strict=False):
        if row[0] != expected:
            break
        sound = header_in(row)
        if sound is not None:
            return sound, waiting
        waiting.append(row)
    if len(waiting) == seq:
        return NOTHING, waiting
    why = "the one before it is lost" if len(waiting) < _DERIVED_AT_ONCE else f"so are the {len(waiting)} before it"
    raise StoreDamaged(str(Handle(place[0], seq)), f"its header is damaged, and {why}")
