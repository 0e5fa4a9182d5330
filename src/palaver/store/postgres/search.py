"""The full-text index, as rows: brought up to date behind a watermark, and asked.

The tokens are palaver's own (`palaver.store.text`), as lexemes that no dictionary of the server touches: each is quoted, and none holds a
quote. Beside them each row has its session's number as a lexeme that no token can be, so that a search in one session is one look-up
whatever else the store holds.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

from palaver.ids import DialogId, SessionId
from palaver.log import Handle, rule
from palaver.store import text
from palaver.store.postgres.connections import Connection, Connections, ask
from palaver.store.postgres.entries import scan
from palaver.store.postgres.sessions import session_no
from palaver.store.postgres.statements import Row, statements
from palaver.store.postgres.texts import given, held
from palaver.store.postgres.transactions import reading, writing
from palaver.store.protocol import Hit

Extract = Callable[[str, bytes], str]

_BATCH_ENTRIES = 256
_BATCH_CHARACTERS = 1 << 20
_DEFLATE_LEVEL = 1
_TERMS = 32  # of a long query only this many terms narrow the search down; the text decides about the rest
_PAGE = 64
_GROWTH = 4

# The limits of a tsvector: https://www.postgresql.org/docs/current/textsearch-limitations.html
_POSITION_LIMIT = 16_383
_POSITIONS_OF_ONE = 255
_VECTOR_BYTES = 500_000  # of 1 MB: what a lexeme and a position weigh is counted generously, not exactly
_LEXEME_OVERHEAD, _POSITION_BYTES = 8, 2


class _Batch(NamedTuple):
    """Some entries of one dialog, from `start` (inclusive) to `stop` (exclusive), and the texts found in them by number."""

    dialog_no: int
    session_no: int
    start: int
    stop: int
    texts: list[tuple[int, str]]


def index(pool: Connections, extract: Extract, limit: int | None, session_id: SessionId | None) -> int:
    """Take entries into the index until nothing waits or `limit` is reached."""
    done = 0
    with reading(pool) as connection:
        if session_id is None:
            behind: list[Row] = ask(connection, "behind").fetchall()
        else:
            behind = ask(connection, "behind_in", (held(session_id),)).fetchall()
    for dialog_no, session, upto, length in behind:
        stop = length if limit is None else min(length, upto + limit - done)
        for batch in _batches(pool, extract, _Batch(dialog_no, session, upto, stop, [])):
            if not _add(pool, batch):
                break  # another process indexes this dialog
            done += batch.stop - batch.start
    return done


def _batches(pool: Connections, extract: Extract, wanted: _Batch) -> Iterator[_Batch]:
    """Read and extract outside of any transaction: others write meanwhile."""
    batch, characters = wanted, 0
    for seq, body, kind, _digest in scan(pool, "judged_up", wanted.dialog_no, range(wanted.start, wanted.stop)):
        if rule(given(kind)).searched and body is not None and (found := extract(given(kind), body)):
            batch.texts.append((seq, text.composed(found)))
            characters += len(found)
        following = seq + 1
        if following - batch.start >= _BATCH_ENTRIES or characters >= _BATCH_CHARACTERS:
            yield batch._replace(stop=following)
            batch, characters = wanted._replace(start=following, texts=[]), 0
    if batch.start < wanted.stop:
        yield batch


def _add(pool: Connections, batch: _Batch) -> bool:
    """Write a batch and move the watermark, unless another process moved it."""
    texts = [
        (batch.dialog_no, seq, zlib.compress(said.encode("utf-8", "replace"), _DEFLATE_LEVEL))
        for seq, said in batch.texts
    ]
    tokens = [row for seq, said in batch.texts for row in _rows(batch, seq, said)]
    with writing(pool) as connection:
        (upto,) = ask(connection, "watermark_lock", (batch.dialog_no,)).fetchone() or (0,)
        if upto != batch.start:
            return False
        with connection.cursor() as cursor:
            cursor.executemany(statements()["text_add"], texts)
            cursor.executemany(statements()["tokens_add"], tokens)
        ask(connection, "watermark_set", (batch.stop, batch.dialog_no))
    return True


def _rows(batch: _Batch, seq: int, said: str) -> Iterator[Row]:
    """Give the rows of an entry's tokens: one, or several when they do not fit into one."""
    vectors = list(_vectors(_session(batch.session_no), said))
    for part, vector in enumerate(vectors):
        yield batch.dialog_no, seq, part, len(vectors) > 1, vector


def _vectors(session: str, said: str) -> Iterator[str]:
    """Give the text form of as many tsvectors as the tokens of a text need."""
    places: dict[str, list[int]] = {}
    weight = place = 0
    for whole, parts in text.tokens(said):
        for lexeme in (whole, *parts):
            place += 1
            held = places.setdefault(lexeme, [])
            if not held:
                weight += len(lexeme.encode()) + _LEXEME_OVERHEAD
            if len(held) < _POSITIONS_OF_ONE and place <= _POSITION_LIMIT:
                held.append(place)
                weight += _POSITION_BYTES
        if weight >= _VECTOR_BYTES:
            yield _vector(session, places)
            places, weight, place = {}, 0, 0
    yield _vector(session, places)


def _vector(session: str, places: dict[str, list[int]]) -> str:
    told = (
        f"{_quoted(lexeme)}:{','.join(map(str, held))}" if held else _quoted(lexeme) for lexeme, held in places.items()
    )
    return " ".join((session, *told))


def _session(number: int) -> str:
    """Give the lexeme that stands for a session: no token holds a number sign."""
    return f"'#{number}'"


def _quoted(lexeme: str) -> str:
    """Quote a lexeme; a token has neither quote nor backslash, which this does not rely upon."""
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"


def _terms(query: str) -> Iterator[str]:
    """Give what a query demands of the index: each run of letters and digits as it stands, or all its parts."""
    for whole, parts in text.tokens(text.composed(query)):
        if parts:
            yield f"({_quoted(whole)} | {' & '.join(map(_quoted, parts))})"
        else:
            yield _quoted(whole)


def queries(query: str, session: int | None) -> dict[str, str]:
    """Give the tsqueries for a query that has words: for whole entries, for rows of split ones, and for the rank."""
    terms = list(islice(dict.fromkeys(_terms(query)), _TERMS))
    wanted, some = " & ".join(terms), f"({' | '.join(terms)})"
    within = "" if session is None else f"{_session(session)} & "
    return {"whole": f"{within}{wanted}", "some": f"{within}{some}", "rank": wanted}


def search(connection: Connection, query: str, session_id: SessionId | None, limit: int) -> Iterator[Hit]:
    """Give the entries that hold all the words of a query, best first."""
    only = None if session_id is None else session_no(connection, session_id)
    wanted = text.words(query)
    if not wanted or limit <= 0:
        return
    for row in _candidates(connection, queries(query, only)):
        dialog_id, session, kind, role, deflated, rank = row[2:]
        said = zlib.decompress(deflated).decode()
        if not text.holds(said.casefold(), wanted):
            continue
        yield Hit(
            handle=Handle(DialogId(dialog_id), row[1]),
            session_id=SessionId(given(session)),
            kind=given(kind),
            role=given(role),
            snippet=text.snippet(said, wanted),
            score=rank,
        )
        limit -= 1
        if not limit:
            return


def _candidates(connection: Connection, asked: dict[str, str]) -> Iterator[Row]:
    """Give what the index knows of, best first, in pages that grow: most searches end within the first."""
    offset, rows = 0, _PAGE
    while True:
        page = ask(connection, "search", asked | {"offset": offset, "rows": rows}).fetchall()
        yield from page
        if len(page) < rows:
            return
        offset, rows = offset + rows, rows * _GROWTH
