"""Entries, as rows: appending, reading, and deriving a damaged header again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from palaver.errors import InvalidInput, PalaverError, StoreDamaged
from palaver.ids import DialogId
from palaver.log import NOTHING, Draft, Handle, Header, body_digest, next_header
from palaver.store.erasing import Gone
from palaver.store.records import (
    appended,
    check_taken,
    derived_header,
    header_sum,
    ids_in,
    ids_text,
    references,
    unknown,
)
from palaver.store.sql.database import Database, Row, Rows

Place: TypeAlias = tuple[DialogId, int, int]
"""A dialog's id, its session's number and its own."""

_FIRST_ROWS, _PAGE_ROWS = 32, 512  # most readers that go backwards soon have what they look for
_PAGE_BYTES = 1 << 20
_MOST = 1 << 31  # sequence numbers are below
_CALLS, _OPEN_CALLS = (Header._fields.index(name) for name in ("calls", "open_calls"))


# --- headers as rows ----------------------------------------------------------------------------------------------------------------------


def header_in(row: Row) -> Header | None:
    """Return the header of a row; None when it is not what its checksum says."""
    *values, check = row
    try:
        values[_CALLS], values[_OPEN_CALLS] = ids_in(values[_CALLS]), ids_in(values[_OPEN_CALLS])
        made = Header._make(values)
        return made if header_sum(made) == check else None
    except Exception:  # noqa: BLE001 - whatever a damaged value makes of it
        return None


def told(row: Row) -> Header:
    """Return what a row that does not match its checksum says: a hint for deriving it again."""
    return Header._make(row[:-1])._replace(calls=(), open_calls=())


def header_values(made: Header) -> dict[str, Any]:
    """Return a header as the values of a statement."""
    values = made._asdict()
    values["calls"], values["open_calls"] = ids_text(made.calls), ids_text(made.open_calls)
    values["check_sum"] = header_sum(made)
    return values


# --- finding ----------------------------------------------------------------------------------------------------------------------


def unknown_dialog(rows: Rows, dialog_id: str) -> PalaverError:
    """Return the error for a dialog that is not there: erased, or never there."""
    found = rows.one("gone_get", thing="dialog", name=dialog_id)
    return unknown("dialog", dialog_id) if found is None else erased("dialog", dialog_id, found)


def erased(what: str, name: str, row: Row) -> PalaverError:
    """Return the error for what a row says was erased."""
    return Gone(*row).error(what, name)


def end(rows: Rows, dialog_id: DialogId) -> tuple[Place, int]:
    """Return the place of a dialog, and how many own entries it holds."""
    row = rows.one("dialog_end", dialog_id=dialog_id)
    if row is None:
        raise unknown_dialog(rows, dialog_id)
    return (dialog_id, row[0], row[1]), row[2]


def newest(rows: Rows, dialog_id: DialogId) -> tuple[Place, Header]:
    """Return the place of a dialog, and its newest header; `NOTHING` when it has none."""
    row = rows.one("newest", dialog_id=dialog_id)
    if row is None:
        raise unknown_dialog(rows, dialog_id)
    place = (dialog_id, row[0], row[1])
    return place, NOTHING if row[2] is None else _sound(rows, place, row[2:])


# --- writing ----------------------------------------------------------------------------------------------------------------------


def append(db: Database, dialog_id: DialogId, drafts: Sequence[Draft], turn_head: int) -> tuple[Header, ...]:
    """Append entries of a turn."""
    if not drafts:
        with db.reading() as rows:
            return appended(dialog_id, newest(rows, dialog_id)[1], (), turn_head)
    bodies = [bytes(one.body) for one in drafts]
    return _write(db, dialog_id, bodies, lambda last: appended(dialog_id, last, drafts, turn_head))


def annotate(db: Database, dialog_id: DialogId, draft: Draft) -> Header:
    """Append an entry beside a turn."""
    return _write(db, dialog_id, [bytes(draft.body)], lambda last: (next_header(draft, last, turn=False),))[0]


def take(db: Database, dialog_id: DialogId, taken: Sequence[tuple[Header, bytes]]) -> None:
    """Write entries of another store as they are."""

    def follow(last: Header) -> tuple[Header, ...]:
        check_taken(last, taken)
        return tuple(header for header, _body in taken)

    if taken:
        _write(db, dialog_id, [bytes(body) for _header, body in taken], follow)


def _write(
    db: Database, dialog_id: DialogId, bodies: Sequence[bytes], follow: Callable[[Header], tuple[Header, ...]]
) -> tuple[Header, ...]:
    """Write what follows the newest header, in one transaction that keeps other writers out of the dialog."""
    with db.writing() as rows:
        rows.run("dialog_lock", dialog_id=dialog_id)
        (_id, session_no, dialog_no), last = newest(rows, dialog_id)
        made = follow(last)
        place = {"session_no": session_no, "dialog_no": dialog_no}
        for header, body in zip(made, bodies, strict=True):
            rows.run("entry_add", **place, **header_values(header), body=body)
            for named in references(body):
                rows.run("reference_add", **place, seq=header.seq, digest=bytes.fromhex(named))
        rows.run("touch", session_no=session_no, at=max(header.at for header in made))
        return made


# --- reading ----------------------------------------------------------------------------------------------------------------------


def one_header(rows: Rows, dialog_id: DialogId, seq: int) -> Header:
    """Read one header."""
    place, length = end(rows, dialog_id)
    row = None
    if 0 <= seq < length:
        row = rows.one("header_get", session_no=place[1], dialog_no=place[2], seq=seq)
    if row is None:
        raise unknown("handle", str(Handle(dialog_id, seq)))
    return _sound(rows, place, row)


def one_body(rows: Rows, dialog_id: DialogId, seq: int) -> bytes:
    """Read one body."""
    place, length = end(rows, dialog_id)
    if not 0 <= seq < length:
        raise unknown("handle", str(Handle(dialog_id, seq)))
    row = rows.one("body_get", session_no=place[1], dialog_no=place[2], seq=seq)
    if row is None or row[0] is None:
        raise StoreDamaged(str(Handle(dialog_id, seq)), "its header is there, its body is not")
    body: bytes = row[0]
    return body


def headers(
    db: Database, dialog_id: DialogId, start: int, stop: int | None, *, reverse: bool = False
) -> Iterator[Header]:
    """Return headers of own entries."""
    place, bounds = _bounds(db, dialog_id, start, stop)
    pages = _pages(db, place, bounds, "headers_down" if reverse else "headers_up", reverse=reverse)
    return _all_sound(db, place, pages)


def latest_of_kind(
    db: Database, dialog_id: DialogId, kinds: Collection[str], start: int, stop: int | None
) -> Iterator[Header]:
    """Return headers of some kinds, newest first."""
    place, bounds = _bounds(db, dialog_id, start, stop)
    pages = _pages(db, place, bounds, "latest_of_kind", reverse=True, kinds=sorted(kinds))
    return _all_sound(db, place, pages)


def bodies(db: Database, dialog_id: DialogId, start: int, stop: int | None) -> Iterator[tuple[int, bytes]]:
    """Return numbers and bodies of own entries; one that was lost is left out."""
    place, bounds = _bounds(db, dialog_id, start, stop)
    pages = _pages(db, place, bounds, "bodies_up", bytes=_PAGE_BYTES)
    return ((row[0], row[1]) for page in pages for row in page if row[1] is not None)


def raw_headers(db: Database, place: Place) -> Iterator[list[Row]]:
    """Return the rows of all headers of a dialog, as they are."""
    return _pages(db, place, range(_MOST), "headers_up")


def judged(db: Database, place: Place, bounds: range) -> Iterator[Row]:
    """Return number, body (None when it was lost), kind and digest of entries."""
    for page in _pages(db, place, bounds, "bodies_up", bytes=_PAGE_BYTES):
        yield from page


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


def _pages(
    db: Database, place: Place, bounds: range, statement: str, *, reverse: bool = False, **more: object
) -> Iterator[list[Row]]:
    """Return rows of a dialog's entries, whose first column is their number, a page at a time.

    No statement and no transaction stays open between two pages: a slow reader hinders nobody.
    """
    start, stop, size = bounds.start, min(bounds.stop, _MOST), _FIRST_ROWS
    numbers = {"session_no": place[1], "dialog_no": place[2], **more}
    while start < stop:
        with db.reading() as rows:
            page = rows.all(statement, **numbers, start=start, stop=stop, rows=size)
        if not page:
            return
        yield page
        size = min(4 * size, _PAGE_ROWS)
        if reverse:
            stop = page[-1][0]
        else:
            start = page[-1][0] + 1


# --- damaged headers ----------------------------------------------------------------------------------------------------------------


def _all_sound(db: Database, place: Place, pages: Iterable[list[Row]]) -> Iterator[Header]:
    for page in pages:
        for row in page:
            made = header_in(row)
            if made is None:
                with db.reading() as rows:
                    made = _sound(rows, place, row)
            yield made


def _sound(rows: Rows, place: Place, row: Row) -> Header:
    """Return the header of a row; one that does not match its checksum is derived again from its body and the header before it.

    Raises:
        StoreDamaged: Its body, or one of a damaged header before it, is lost or not an entry.
    """
    made = header_in(row)
    if made is not None:
        return made
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
            last = derived_header(told(one), found[0], last)
        except InvalidInput as error:
            raise StoreDamaged(str(Handle(place[0], one[0])), f"header and body are damaged ({error})") from error
    return last
