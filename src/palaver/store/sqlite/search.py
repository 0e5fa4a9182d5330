"""The full-text index, as rows: brought up to date behind a watermark, and asked."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

import apsw

from palaver.ids import DialogId, SessionId
from palaver.log import Handle, rule
from palaver.store import text
from palaver.store.protocol import Hit
from palaver.store.sqlite.connections import Connections, reading, writing
from palaver.store.sqlite.entries import SEQ_MASK, entry_id, scan
from palaver.store.sqlite.sessions import session_no
from palaver.store.sqlite.statements import Row, statements

Extract = Callable[[str, bytes], str]

_BATCH_ENTRIES = 256
_BATCH_CHARACTERS = 1 << 20  # a batch holds the write lock for some tens of milliseconds
_DEFLATE_LEVEL = 1
_TERMS = 32  # of a long query only this many terms narrow the search down; the text decides about the rest


class _Batch(NamedTuple):
    """Some entries of one dialog, from `start` (inclusive) to `stop` (exclusive), and the texts found in them by entry id."""

    dialog_no: int
    start: int
    stop: int
    texts: list[tuple[int, str]]


def index(pool: Connections, extract: Extract, limit: int | None, session_id: SessionId | None) -> int:
    """Take entries into the index until nothing waits or `limit` is reached."""
    done = 0
    with reading(pool) as connection:
        sql = statements()
        behind: list[Row] = (
            connection.execute(sql["behind"]).fetchall()
            if session_id is None
            else connection.execute(sql["behind_in"], (session_id,)).fetchall()
        )
    for dialog_no, upto, length in behind:
        stop = length if limit is None else min(length, upto + limit - done)
        for batch in _batches(pool, extract, dialog_no, upto, stop):
            if not _add(pool, batch):
                break  # another process indexes this dialog
            done += batch.stop - batch.start
    return done


def _batches(pool: Connections, extract: Extract, dialog_no: int, start: int, stop: int) -> Iterator[_Batch]:
    """Read and extract outside of any transaction: others write meanwhile."""
    texts: list[tuple[int, str]] = []
    first, characters = start, 0
    for seq, body, kind in scan(pool, "to_index", dialog_no, range(start, stop)):
        if rule(kind).searched and body is not None and (found := extract(kind, body)):
            texts.append((entry_id(dialog_no, seq), text.composed(found)))
            characters += len(found)
        following = seq + 1
        if following - first >= _BATCH_ENTRIES or characters >= _BATCH_CHARACTERS:
            yield _Batch(dialog_no, first, following, texts)
            texts, first, characters = [], following, 0
    if first < stop:
        yield _Batch(dialog_no, first, stop, texts)


def _add(pool: Connections, batch: _Batch) -> bool:
    """Write a batch and move the watermark, unless another process moved it."""
    rows = [
        (place, zlib.compress(said.encode("utf-8", "replace"), _DEFLATE_LEVEL), *text.columns(said))
        for place, said in batch.texts
    ]
    sql = statements()
    with writing(pool) as connection:
        if (connection.execute(sql["watermark_get"], (batch.dialog_no,)).get or 0) != batch.start:
            return False
        for place, deflated, parts, wholes in rows:
            connection.execute(sql["text_add"], (place, deflated))
            connection.execute(sql["tokens_add"], (place, parts, wholes))
        connection.execute(sql["watermark_set"], (batch.dialog_no, batch.stop))
    return True


def _terms(query: str) -> Iterator[str]:
    """Give what a query demands of the index: each run of letters and digits as it stands, or its parts in a row."""
    for whole, parts in text.tokens(text.composed(query)):
        yield f'("{whole}" OR "{" ".join(parts)}")' if parts else f'"{whole}"'


def match(query: str) -> str:
    """Give the FTS5 expression for a query that has words; every token is quoted, and none holds a quote."""
    return " AND ".join(islice(dict.fromkeys(_terms(query)), _TERMS))


def search(connection: apsw.Connection, query: str, session_id: SessionId | None, limit: int) -> Iterator[Hit]:
    """Give the entries that hold all the words of a query, best first."""
    only = None if session_id is None else session_no(connection, session_id)
    wanted = text.words(query)
    if not wanted or limit <= 0:
        return
    found = _everywhere(connection, query) if only is None else _within(connection, query, only, wanted)
    for place, said in found:
        if not text.holds(said.casefold(), wanted):
            continue
        yield replace(place, snippet=text.snippet(said, wanted))
        limit -= 1
        if not limit:
            return


def _everywhere(connection: apsw.Connection, query: str) -> Iterator[tuple[Hit, str]]:
    """Give candidates of all sessions as the index ranks them, each with its text."""
    for place, dialog_id, session, kind, role, deflated, rank in connection.execute(
        statements()["search"], {"match": match(query)}
    ):
        handle = Handle(DialogId(dialog_id), place & SEQ_MASK)
        said = zlib.decompress(deflated).decode()
        yield Hit(handle=handle, session_id=SessionId(session), kind=kind, role=role, snippet="", score=-rank), said


def _within(connection: apsw.Connection, query: str, number: int, wanted: Sequence[str]) -> Iterator[tuple[Hit, str]]:
    """Give candidates of one session, best first: what it costs depends on the session alone, however many others there are."""
    sql = statements()
    found: list[tuple[Hit, str]] = []
    places: list[Row] = connection.execute(sql["search_places"], (number,)).fetchall()
    for dialog_no, dialog_id, session in places:
        bounds = (entry_id(dialog_no, 0), entry_id(dialog_no + 1, 0))
        for place, kind, role, deflated in connection.execute(sql["search_within"], (match(query), *bounds)):
            said = zlib.decompress(deflated).decode()
            handle = Handle(DialogId(dialog_id), place & SEQ_MASK)
            score = text.weight(said.casefold(), wanted)
            hit = Hit(handle=handle, session_id=SessionId(session), kind=kind, role=role, snippet="", score=score)
            found.append((hit, said))
    yield from sorted(found, key=lambda one: (-one[0].score, one[0].handle))
