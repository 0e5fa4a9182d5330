"""Entries as rows, read a page at a time. A damaged header is derived again, or lost."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from struct import Struct
from struct import error as StructError  # noqa: N812 - a class, in spite of its name
from typing import Any
from zlib import crc32

from palaver.errors import InvalidInput, StoreDamaged
from palaver.ids import DialogId
from palaver.log import NOTHING, Handle, Header, Span, derived_header, lost_header, require_written
from palaver.store.records import SHORT_DIGITS, stored_json, unknown
from palaver.store.sql.database import Database, Row, Rows
from palaver.store.sql.rows import Place, missing

MOST_ENTRIES = 1 << 31
"""Numbers of entries are below: a larger one is damage."""

_FIRST_ROWS, _PAGE_ROWS = 32, 512  # most readers that go backwards soon have what they look for
_PAGE_BYTES = 1 << 20
_STATE = ("at", "number", "total", "turn_head", "view_base", "open_turn", "open_calls")
_DERIVED_AT_ONCE = (
    64  # damaged headers before one, more than a page of SQLite has: whoever reads in order derives any number
)


def newest(rows: Rows, dialog_id: DialogId, *, strict: bool = False) -> tuple[Place, Header]:
    """Return the place of a dialog, and its newest header; `NOTHING` when it has none.

    When the newest header is lost, the dialog ends in a lost entry after the newest that can be read.

    Args:
        rows: Where to read.
        dialog_id: The dialog.
        strict: Whether a lost header is an error: nothing may be written after it.

    Raises:
        StoreDamaged: The newest header is lost, and that is an error; or none of the many before it can be read either.
    """
    row = rows.one("newest", dialog_id=dialog_id)
    if row is None:
        raise missing(rows, "dialog", dialog_id)
    place = (dialog_id, row[0], row[1])
    if row[2] is None:
        return place, NOTHING
    try:
        return place, header_in(row[2:]) or repaired(rows, place, row[2:])
    except StoreDamaged:
        if strict:
            raise
        return place, _lost(rows, place, row[2], newest=True)


def end(rows: Rows, dialog_id: DialogId) -> tuple[Place, int]:
    """Return the place of a dialog, and how many own entries it has."""
    place, last = newest(rows, dialog_id)
    return place, last.seq + 1


def one_header(rows: Rows, dialog_id: DialogId, seq: int) -> Header:
    """Read one header; of a lost one, what follows from the headers before it."""
    place, row = _row(rows, "header_get", dialog_id, seq)
    with suppress(StoreDamaged):
        if row is not None:
            return header_in(row) or repaired(rows, place, row)
    return _lost(rows, place, seq)


def one_body(rows: Rows, dialog_id: DialogId, seq: int) -> bytes:
    """Read one body."""
    place, row = _row(rows, "body_get", dialog_id, seq)
    return _written(rows, place, seq, *(row or (None, None)))


def _written(ask: Rows | Database, place: Place, seq: int, body: object, digest: object) -> bytes:
    def is_whole(made: bytes) -> bool:
        row = ask.one("header_get", session_no=place[1], dialog_no=place[2], seq=seq)
        return row is not None and header_in((*row[:_DIGEST_AT], made, *row[_DIGEST_AT + 1 :])) is not None

    return require_written(Handle(place[0], seq), body, digest, is_whole)


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
    return _bodies(db, place, bounds)


def _bodies(db: Database, place: Place, bounds: range) -> Iterator[tuple[int, bytes]]:
    for seq, body, _kind, digest in judged(db, place, bounds):
        with suppress(StoreDamaged):  # one bad body must not hide the rest; `verify` and the doctor report it
            yield seq, _written(db, place, seq, body, digest)


def judged(db: Database, place: Place, bounds: range) -> Iterator[Row]:
    """Return number, body (None when it was lost), kind and digest of entries."""
    return pages(db, place, bounds, "bodies_up", bytes=_PAGE_BYTES)


def damaged(db: Database, dialog_id: DialogId) -> Iterator[Span]:
    """Return entries whose body does not match its digest, one by one, and each run of entries whose headers are lost as a whole."""
    place, bounds = _bounds(db, dialog_id, 0, None)
    intact = _bodies(db, place, bounds)
    expected, seq = 0, -1
    for header in _sound(db, place, pages(db, place, bounds, "headers_up")):
        while seq < header.seq:
            seq, _body = next(intact, (bounds.stop, b""))
        if header.seq > expected:
            yield Span(dialog_id, expected, header.seq)
        if header.seq < seq:
            yield Span(dialog_id, header.seq, header.seq + 1)
        expected = header.seq + 1
    if expected < bounds.stop:
        yield Span(dialog_id, expected, bounds.stop)


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
        size = min(
            4 * size, _PAGE_ROWS
        )  # a reader that stops early pays for few rows, one that goes through for few statements


# --- damaged headers ----------------------------------------------------------------------------------------------------------------


def _sound(ask: Rows | Database, place: Place, raw: Iterable[Row]) -> Iterator[Header]:
    """Return the headers of rows. One that can neither be read nor derived again is lost: it is left out."""
    last = NOTHING
    for row in raw:
        try:
            last = header_in(row) or repaired(ask, place, row, last)
        except StoreDamaged:
            continue
        yield last


def repaired(ask: Rows | Database, place: Place, row: Row, last: Header = NOTHING) -> Header:
    """Return the header of a row that does not match its checksum: it is derived again from its body and the header before it.

    Args:
        ask: Where to read.
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
            place, row[0], ask.all("headers_down", **numbers, start=0, stop=row[0], rows=_DERIVED_AT_ONCE)
        )
        waiting += before
    for damaged_row in reversed(waiting):
        handle = str(Handle(place[0], damaged_row[0]))
        body = ask.one("body_get", **numbers, seq=damaged_row[0])
        if body is None or body[0] is None:
            raise StoreDamaged(handle, "its header is damaged, and its body is lost")
        try:
            hint = Header._make(damaged_row[:-1])._replace(calls=(), open_calls=())
            last = derived_header(hint, body[0], last)
            header_sum(last)  # raises for what the damaged row alone says of an erased entry, and of another type
        except (InvalidInput, TypeError, ValueError, AttributeError, StructError) as error:
            raise StoreDamaged(handle, f"header and body are damaged ({error})") from error
    return last


def _lost(rows: Rows, place: Place, seq: int, *, newest: bool = False) -> Header:
    """Return the header of a lost entry: that of a message without content, which leaves everything as it is.

    Args:
        rows: Where to read.
        place: The dialog.
        seq: The entry's number.
        newest: Whether the number is lost, too: then it is the one after the newest header that can be read.

    Raises:
        StoreDamaged: None of the many headers before it can be read either.
    """
    numbers = {"session_no": place[1], "dialog_no": place[2]}
    before = rows.all("headers_down", **numbers, start=0, stop=seq, rows=_DERIVED_AT_ONCE)
    last = next(_sound(rows, place, before), NOTHING)
    if last is NOTHING and len(before) == _DERIVED_AT_ONCE:
        raise StoreDamaged(str(Handle(place[0], seq)), f"its header is lost, and so are the {len(before)} before it")
    made = lost_header(last.seq + 1 if newest else seq)
    return made._replace(**{name: getattr(last, name) for name in _STATE})


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


# --- a header as a row ---------------------------------------------------------------------------------------------------------------

_DIGEST_AT = Header._fields.index("digest")
_LISTS = tuple(Header._fields.index(name) for name in ("calls", "open_calls"))
_QUOTES = 2  # of one id
_NUMBERS = Struct("<7qd")


def _ids_text(ids: Sequence[str]) -> str | None:
    return json.dumps(ids) if ids else None


def _ids_in(text: str) -> tuple[str, ...]:
    """Read a list of ids. One id, as most lists have, is read without a JSON decoder."""
    if text.count('"') == _QUOTES and "\\" not in text and text[:2] == '["' and text[-2:] == '"]':
        return (text[2:-2],)
    return tuple(stored_json(text, list, "a list of call ids"))


def header_sum(header: Header) -> int:
    """Return the checksum that a store keeps with a header: CRC-32 over all its fields."""
    seq, turn_head, view_base, open_turn, kind, role, number, calls, open_calls, response, at, size, total, digest = (
        header[:14]
    )
    numbers = _NUMBERS.pack(seq, turn_head, view_base, open_turn, number, size, total, at)
    texts = "\0".join((kind, role, response, *header[14:], *calls, "", *open_calls))
    return crc32(texts.encode("utf-8", "surrogatepass"), crc32(numbers + digest))


def header_values(header: Header) -> dict[str, Any]:
    """Return a header as the values of a statement."""
    values = header._asdict()
    values["calls"], values["open_calls"] = _ids_text(header.calls), _ids_text(header.open_calls)
    values["check_sum"] = header_sum(header)
    return values


def header_in(row: Sequence[Any]) -> Header | None:
    """Return the header of a row; None when it is not what its checksum says."""
    *values, check = row
    try:
        for column in _LISTS:
            values[column] = () if values[column] is None else _ids_in(values[column])
        made = Header._make(values)
        return made if header_sum(made) == check and 0 <= made.seq < MOST_ENTRIES else None
    except Exception:  # noqa: BLE001 - whatever a damaged value makes of it
        return None
