"""Checks on the rows themselves: orphaned rows, headers that do not match their checksum, and the texts of the index."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any

from palaver.errors import InvalidInput, StoreDamaged
from palaver.ids import BlobId
from palaver.log import digests_in, references, rule
from palaver.store import text
from palaver.store.records import SHORT_DIGITS
from palaver.store.sql import log
from palaver.store.sql.database import Database, Row, Rows
from palaver.store.sql.rows import Place, node_sum
from palaver.store.sql.statements import Migration

Found = tuple[str, str, str]

_LOOSE = {
    "headers_loose": ("loose_rows", "It belongs to no dialog, or has a number that none has."),
    "texts_loose": ("wrong_index", "The index holds a text of an entry that is not indexed."),
    "tokens_loose": ("wrong_index", "The index holds its text and no tokens of it."),
    "watermarks": ("wrong_index", "The index says that it holds more entries than there are."),
}
_UNNAMED = "The payloads that it is said to name are not those that it names."


def faults(db: Database, done: tuple[Migration, ...], extract: Callable[[str, bytes], str] | None) -> Iterator[Found]:
    """Find what is wrong with the rows and the index; a part that cannot be read at all is a fault."""
    for part in (db.faults(), _rows(db, done), _sources(db), _dialogs(db, extract)):
        try:
            yield from part
        except StoreDamaged as error:
            yield str(error.place), "damaged_file", str(error)


def _rows(db: Database, done: tuple[Migration, ...]) -> Iterator[Found]:
    with db.reading() as rows:
        loose = [(check, row) for check in _LOOSE for row in rows.all(check)]
        undated = rows.all("activity_loose")
        migrated = [tuple(row) for row in rows.all("migrations_done")]
    for statement, (dialog_no, seq) in loose:
        yield f"dialog number {dialog_no}, entry {seq}", *_LOOSE[statement]
    for (session_no,) in undated:
        yield f"session number {session_no}", "wrong_activity", "The session, or when it was last active, is lost."
    if migrated != [(migration.version, migration.name, migration.sha256) for migration in done]:
        yield "migrations", "wrong_schema", "The record of migrations is not the one that made this format."


def _sources(db: Database) -> Iterator[Found]:
    with db.reading() as rows:
        for number, session_no, session_id, identity, raw, index in rows.all("sources_all"):
            place = {"of": session_id, "session_no": session_no, "dialog_no": 0, "seq": number}
            if _named(rows, place) != source_names(rows, session_id, raw, index):
                yield f"source {identity}", "loose_rows", _UNNAMED


def source_names(rows: Rows, session_id: str, raw: str | None, index: str | None) -> set[BlobId]:
    """Return the payloads that a source names: its own, and those in the list of its pieces."""
    found = None if raw is None else rows.one("blob_get", of=session_id, digest=bytes.fromhex(raw))
    pieces = set[BlobId]() if found is None else digests_in(found[0])
    return {BlobId(one) for one in (raw, index) if one is not None} | pieces


def _named(rows: Rows, place: dict[str, Any]) -> set[BlobId]:
    return {BlobId(digest.hex()) for (digest,) in rows.all("references_of", **place)}


def _dialogs(db: Database, extract: Callable[[str, bytes], str] | None) -> Iterator[Found]:
    """Look at every row of every dialog: its checksum, what it names, and its text in the index."""
    for dialog_id, session_no, dialog_no, upto, *shares, check in db.pages("dialogs_indexed", 0, key=2):
        if node_sum(dialog_id, *shares) != check:
            what = "What it says of the entries that it shares does not match its checksum."
            yield dialog_id[:SHORT_DIGITS], "wrong_ranges", what
        yield from _dialog(db, (dialog_id, session_no, dialog_no), upto, extract)


def _dialog(db: Database, place: Place, upto: int, extract: Callable[[str, bytes], str] | None) -> Iterator[Found]:
    dialog_id, session_no, dialog_no = place
    numbers = {"session_no": session_no, "dialog_no": dialog_no}
    length = 0
    for row in log.pages(db, dialog_id, 0, None, "headers_up"):
        length = row[0] + 1
        if log.header_in(row) is None:
            what = "Its header does not match its checksum; it is derived from its body when it is read, or lost."
            yield f"{dialog_id[:SHORT_DIGITS]}:{row[0]}", "wrong_header", what
    for entry in log.judged(db, dialog_id, 0, length):
        seq, body = entry[:2]
        at = f"{dialog_id[:SHORT_DIGITS]}:{seq}"
        with db.reading() as rows:
            named = _named(rows, {**numbers, "dialog_id": dialog_id, "seq": seq})
            why = _indexed(rows, numbers, entry, extract) if seq < upto else ""
        if body is not None and named != references(body):
            yield at, "loose_rows", _UNNAMED
        if why:
            yield at, "wrong_index", why


def _indexed(rows: Rows, numbers: dict[str, int], entry: Row, extract: Callable[[str, bytes], str] | None) -> str:
    """Return how the text in the index differs from the entry's; empty when it does not, or the entry cannot be read."""
    seq, body, kind, _digest = entry
    row = rows.one("text_get", **numbers, seq=seq)
    try:
        kept = "" if row is None else text.inflated(row[0])
    except (zlib.error, UnicodeDecodeError) as error:
        return f"The text that the index keeps of it cannot be read: {error}."
    if extract is None or body is None or (not kept and b'"erased":' in body):  # the index forgets what was erased
        return ""
    try:
        said = text.composed(extract(kind, body)) if rule(kind).searched else ""
    except InvalidInput:
        return ""  # its body is not an entry: reported where bodies are judged
    return "" if kept == said.encode("utf-8", "replace").decode() else "The index keeps another text of it."
