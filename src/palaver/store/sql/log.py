"""Entries as rows, read a page at a time. A damaged header is derived again, or lost."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from struct import Struct
from struct import error as StructError  # noqa: N812 - a class, in spite of its name
from typing import Any
from zlib import crc32

from palaver.errors import InvalidInput, StoreDamaged
from palaver.ids import DialogId, SessionId
from palaver.log import NOTHING, Handle, Header, Span, body_digest, derived_header, lost_header, require_written
from palaver.store.protocol import TAIL_BYTES
from palaver.store.records import SHORT_DIGITS, stored_json, unknown
from palaver.store.sql.database import Database, Row, Rows
from palaver.store.sql.rows import missing

MOST_ENTRIES = 1 << 31
"""Numbers of entries are below: a larger one is damage."""

_FIRST_ROWS, _PAGE_ROWS = 32, 512  # most readers that go backwards soon have what they look for
_PAGE_BYTES = 1 << 20
_STATE = ("at", "number", "total", "turn_head", "view_base", "open_turn", "open_calls")
_DERIVED_AT_ONCE = (
    64  # damaged headers before one, more than a page of SQLite has: whoever reads in order derives any number
)


def newest(rows: Rows, dialog_id: DialogId, *, strict: bool = False) -> Header:
    """Return the newest header of a dialog; `NOTHING` when it has none.

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
    if row[0] is None:
        return NOTHING
    try:
        return header_in(row) or repaired(rows, dialog_id, row)
    except StoreDamaged:
        if strict:
            raise
        return _lost(rows, dialog_id, row[0], newest=True)


def require_newest(rows: Rows, dialog_id: DialogId, known: Header) -> None:
    """Let the transaction fail, at the latest when it ends, unless a header is the newest of its dialog and as it was.

    Raises:
        NotAsRequired: It is not.
    """
    if known.seq < 0:
        rows.require("is_empty", dialog_id=dialog_id)
    else:
        digest, check_sum = known.digest, header_sum(known)
        rows.require("is_newest", dialog_id=dialog_id, seq=known.seq, check_sum=check_sum, digest=digest)


def one_header(rows: Rows, dialog_id: DialogId, seq: int) -> Header:
    """Read one header; of a lost one, what follows from the headers before it."""
    row = _row(rows, "header_get", dialog_id, seq)
    with suppress(StoreDamaged):
        if row is not None:
            return header_in(row) or repaired(rows, dialog_id, row)
    return _lost(rows, dialog_id, seq)


def one_body(rows: Rows, dialog_id: DialogId, seq: int) -> bytes:
    """Read one body."""
    row = _row(rows, "body_get", dialog_id, seq)
    return _written(rows, dialog_id, seq, *(row or (None, None)))


def _written(ask: Rows | Database, dialog_id: DialogId, seq: int, body: object, digest: object) -> bytes:
    if isinstance(body, bytes) and body_digest(body) == digest:  # as nearly all are
        return body

    def is_whole(made: bytes) -> bool:
        row = ask.one("header_get", dialog_id=dialog_id, seq=seq)
        return row is not None and header_in((*row[:_DIGEST_AT], made, *row[_DIGEST_AT + 1 :])) is not None

    return require_written(Handle(dialog_id, seq), body, digest, is_whole)


def _row(rows: Rows, statement: str, dialog_id: DialogId, seq: int) -> Row | None:
    """Return the row of an entry; None for one that was lost."""
    row = rows.one(statement, dialog_id=dialog_id, seq=seq) if 0 <= seq < MOST_ENTRIES else None
    if row is None and not 0 <= seq <= newest(rows, dialog_id).seq:
        raise unknown("handle", str(Handle(dialog_id, seq)))
    return row


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
    return _sound(db, dialog_id, pages(db, dialog_id, start, stop, statement, reverse=reverse, **more))


def tail(rows: Rows, dialog_id: DialogId, start: int, most: int) -> tuple[tuple[Header, bytes], ...]:
    """Read the newest entries with their bodies, back to the first that cannot be read."""
    begin = min(max(0, start), MOST_ENTRIES)
    found = rows.all("tail", dialog_id=dialog_id, start=begin, rows=most, bytes=TAIL_BYTES)
    if not found:
        newest(rows, dialog_id)  # raises if there is no such dialog
    return _readable(rows, dialog_id, found)


def tail_of_root(
    rows: Rows, session_id: SessionId, most: int
) -> Callable[[DialogId], tuple[tuple[Header, bytes], ...]]:
    """Ask for the tail of a session's root, and return what reads it once the root is known."""
    values = {"session_id": session_id, "rows": most, "bytes": TAIL_BYTES}
    found = rows.ask(rows.sql["tail_of_root"], values)
    # another dialog may have become the root between two statements
    return lambda dialog_id: _readable(rows, dialog_id, (row for root, *row in found if root == dialog_id))


def _readable(rows: Rows, dialog_id: DialogId, found: Iterable[Sequence[Any]]) -> tuple[tuple[Header, bytes], ...]:
    """Return the newest entries, oldest first, back to the first that cannot be read."""
    sound: list[tuple[Header, bytes]] = []
    for *row, body in found:
        header = header_in(row)
        if header is None or (sound and header.seq != sound[-1][0].seq - 1):
            break
        try:
            sound.append((header, _written(rows, dialog_id, header.seq, body, header.digest)))
        except StoreDamaged:
            break
    return tuple(reversed(sound))


def bodies(db: Database, dialog_id: DialogId, start: int, stop: int | None) -> Iterator[tuple[int, bytes]]:
    """Return numbers and bodies of own entries; one that is lost or damaged is left out."""
    return _bodies(db, dialog_id, judged(db, dialog_id, start, stop))


def _bodies(db: Database, dialog_id: DialogId, rows: Iterable[Row]) -> Iterator[tuple[int, bytes]]:
    for seq, body, _kind, digest in rows:
        try:
            written = _written(db, dialog_id, seq, body, digest)
        except StoreDamaged:  # one bad body must not hide the rest; `verify` and the doctor report it
            continue
        yield seq, written


def judged(db: Database, dialog_id: DialogId, start: int, stop: int | None) -> Iterator[Row]:
    """Return number, body (None when it was lost), kind and digest of entries."""
    return pages(db, dialog_id, start, stop, "bodies_up", bytes=_PAGE_BYTES)


def damaged(db: Database, dialog_id: DialogId) -> Iterator[Span]:
    """Return entries whose body does not match its digest, one by one, and each run of entries whose headers are lost as a whole."""
    with db.reading() as rows:
        length = newest(rows, dialog_id).seq + 1
    intact = bodies(db, dialog_id, 0, length)
    expected, seq = 0, -1
    for header in headers(db, dialog_id, 0, length):
        while seq < header.seq:
            seq, _body = next(intact, (length, b""))
        if header.seq > expected:
            yield Span(dialog_id, expected, header.seq)
        if header.seq < seq:
            yield Span(dialog_id, header.seq, header.seq + 1)
        expected = header.seq + 1
    if expected < length:
        yield Span(dialog_id, expected, length)


def pages(
    db: Database,
    dialog_id: DialogId,
    start: int,
    stop: int | None,
    statement: str,
    *,
    reverse: bool = False,
    **more: object,
) -> Iterator[Row]:
    """Return rows of a dialog's entries, whose first column is their number.

    The first page is read at once. No statement and no transaction stays open between two pages: a slow reader hinders nobody.

    Raises:
        NotFound: There is no such dialog.
        StoreDamaged: The rows are out of order. Each row must be within what is left to read, so reading always ends.
    """
    begin, size = max(0, start), _FIRST_ROWS if reverse else _PAGE_ROWS
    values = {"dialog_id": dialog_id, **more}
    below = MOST_ENTRIES if stop is None else min(stop, MOST_ENTRIES)
    with db.reading() as rows:
        if stop is None and "bytes" in more:  # how many rows such a page has says nothing about what follows
            below = newest(rows, dialog_id).seq + 1
        first = rows.all(statement, **values, start=begin, stop=below, rows=size) if begin < below else []
        if not first or (stop is None and len(first) == size):  # what is written from now on is not read
            below = min(below, newest(rows, dialog_id).seq + 1)
    return _pages(db, statement, values, range(begin, below), first, reverse=reverse)


def _pages(
    db: Database, statement: str, values: dict[str, Any], bounds: range, page: list[Row], *, reverse: bool
) -> Iterator[Row]:
    start, stop, size = bounds.start, bounds.stop, _FIRST_ROWS if reverse else _PAGE_ROWS
    while page:
        for row in page:
            seq = row[0]
            if type(seq) is not int or not start <= seq < stop:
                raise StoreDamaged(str(Handle(values["dialog_id"], start)), f"entry {seq!r} is out of order")
            if reverse:
                stop = seq
            else:
                start = seq + 1
            yield row
        ended = start >= stop or (len(page) < size and "bytes" not in values)
        # a reader that stops early pays for few rows, one that goes through for few statements
        size = min(4 * size, _PAGE_ROWS)
        page = [] if ended else db.all(statement, **values, start=start, stop=stop, rows=size)


# --- damaged headers ----------------------------------------------------------------------------------------------------------------


def _sound(ask: Rows | Database, dialog_id: DialogId, raw: Iterable[Row]) -> Iterator[Header]:
    """Return the headers of rows. One that can neither be read nor derived again is lost: it is left out."""
    last = NOTHING
    for row in raw:
        try:
            last = header_in(row) or repaired(ask, dialog_id, row, last)
        except StoreDamaged:
            continue
        yield last


def repaired(ask: Rows | Database, dialog_id: DialogId, row: Row, last: Header = NOTHING) -> Header:
    """Return the header of a row that does not match its checksum: it is derived again from its body and the header before it.

    Args:
        ask: Where to read.
        dialog_id: The dialog.
        row: The row.
        last: A header that was read already; it is used if it is the one before.

    Raises:
        StoreDamaged: Its body, or one of a damaged header before it, is lost or not an entry; or too many before it are damaged.
    """
    if type(row[0]) is not int:
        raise StoreDamaged(f"dialog {dialog_id[:SHORT_DIGITS]}", f"it holds an entry {row[0]!r}")
    waiting = [row]
    if last.seq != row[0] - 1:
        rows = ask.all("headers_down", dialog_id=dialog_id, start=0, stop=row[0], rows=_DERIVED_AT_ONCE)
        last, before = _last_sound(dialog_id, row[0], rows)
        waiting += before
    for damaged_row in reversed(waiting):
        handle = str(Handle(dialog_id, damaged_row[0]))
        body = ask.one("body_get", dialog_id=dialog_id, seq=damaged_row[0])
        if body is None or body[0] is None:
            raise StoreDamaged(handle, "its header is damaged, and its body is lost")
        try:
            hint = Header._make(damaged_row[:-1])._replace(calls=(), open_calls=())
            last = derived_header(hint, body[0], last)
            header_sum(last)  # raises for what the damaged row alone says of an erased entry, and of another type
        except (InvalidInput, TypeError, ValueError, AttributeError, StructError) as error:
            raise StoreDamaged(handle, f"header and body are damaged ({error})") from error
    return last


def _lost(rows: Rows, dialog_id: DialogId, seq: int, *, newest: bool = False) -> Header:
    """Return the header of a lost entry: that of a message without content, which leaves everything as it is.

    Args:
        rows: Where to read.
        dialog_id: The dialog.
        seq: The entry's number.
        newest: Whether the number is lost, too: then it is the one after the newest header that can be read.

    Raises:
        StoreDamaged: None of the many headers before it can be read either.
    """
    before = rows.all("headers_down", dialog_id=dialog_id, start=0, stop=seq, rows=_DERIVED_AT_ONCE)
    last = next(_sound(rows, dialog_id, before), NOTHING)
    if last is NOTHING and len(before) == _DERIVED_AT_ONCE:
        raise StoreDamaged(str(Handle(dialog_id, seq)), f"its header is lost, and so are the {len(before)} before it")
    made = lost_header(last.seq + 1 if newest else seq)
    return made._replace(**{name: getattr(last, name) for name in _STATE})


def _last_sound(dialog_id: DialogId, seq: int, before: Iterable[Row]) -> tuple[Header, list[Row]]:
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
    raise StoreDamaged(str(Handle(dialog_id, seq)), f"its header is damaged, and {why}")


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
