"""The full-text index, as rows: updated from a watermark on, and searched."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from palaver.ids import DialogId, SessionId
from palaver.log import Handle, rule
from palaver.store import text
from palaver.store.protocol import Hit
from palaver.store.sql import log
from palaver.store.sql.database import Database, Row
from palaver.store.sql.rows import Place, session_no

_BATCH_ENTRIES = 256
_BATCH_CHARACTERS = 1 << 20  # a batch holds the write lock for some tens of milliseconds
_PAGE = 64
_NEVER = 1 << 62


class _Read(NamedTuple):
    """An entry that was read for the index: its number, its digest, and its text, if it has any."""

    seq: int
    digest: bytes
    said: str


def index(db: Database, extract: Callable[[str, bytes], str], limit: int | None, session_id: SessionId | None) -> int:
    """Add entries to the index until none waits or `limit` is reached, and return how many."""
    with db.reading() as rows:
        number = None if session_id is None else rows.one("session_no", session_id=session_id)
        if session_id is not None and number is None:
            return 0
        behind = rows.all("behind", session_no=number and number[0])
    done = 0
    for dialog_id, session, dialog_no, upto, length in behind:
        stop = length if limit is None else min(length, upto + limit - done)
        place = (dialog_id, session, dialog_no)
        for batch in _batches(db, extract, place, range(upto, stop)):
            if not _add(db, place, batch):
                break  # another process indexes this dialog, or erases in it
            done += len(batch)
    return done


def _batches(db: Database, extract: Callable[[str, bytes], str], place: Place, bounds: range) -> Iterator[list[_Read]]:
    """Read and extract outside of any transaction: others write meanwhile."""
    batch: list[_Read] = []
    characters = 0
    for seq, body, kind, digest in log.judged(db, place[0], bounds.start, bounds.stop):
        said = extract(kind, body) if rule(kind).searched and body is not None else ""
        batch.append(_Read(seq, digest, text.composed(said)))
        characters += len(said)
        if len(batch) >= _BATCH_ENTRIES or characters >= _BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _add(db: Database, place: Place, batch: list[_Read]) -> bool:
    """Write a batch and move the watermark, unless another process moved it or erased one of the entries."""
    numbers = {"session_no": place[1], "dialog_no": place[2]}
    start, stop = batch[0].seq, batch[-1].seq + 1
    made = []
    for seq, _digest, said in batch:
        if said:
            made.append({**numbers, "seq": seq, "deflated": text.deflated(said), **db.tokens(*text.columns(said))})
    with db.writing() as rows:
        if rows.one("dialog_lock_index", dialog_no=place[2]) is None:
            return False
        (upto,) = rows.one("watermark_lock", **numbers) or (-1,)
        now = rows.all("bodies_up", dialog_id=place[0], start=start, stop=stop, rows=len(batch), bytes=_NEVER)
        if upto != start or [row[3] for row in now] != [read.digest for read in batch]:
            return False
        rows.many("text_add", made)
        rows.run("watermark_set", **numbers, upto=stop)
    return True


def search(
    db: Database,
    query: str,
    session_id: SessionId | None,
    limit: int,
    *,
    ranked: bool = False,
    which: Callable[[Hit], bool] | None = None,
) -> Iterator[Hit]:
    """Return the entries with all words of a query, newest first; ranked, those with any, best first."""
    with db.reading() as rows:
        only = None if session_id is None else session_no(rows, session_id)
    wanted = text.sought(query) if ranked else text.words(query)
    if not wanted or limit <= 0:
        return

    def read(numbers: Sequence[int]) -> Iterator[text.Candidate[tuple[Hit, str]]]:
        for start in range(0, len(numbers), _PAGE):
            page = {row[0]: row for row in _numbered(db, numbers[start : start + _PAGE], only)}
            order = (page[number] for number in numbers[start : start + _PAGE] if number in page)
            for number, hit, said in _hits(order, only, which):
                yield text.Candidate(number, hit.session_id, hit.kind, said, (hit, said))

    best: Iterator[tuple[float, tuple[str, ...], tuple[Hit, str]]]
    if ranked:
        best = text.ranked(query, lambda phrase: _postings(db, phrase, only), read)
    else:
        every = ((hit, said) for _, hit, said in _hits(_newest(db, query, only), only, which))
        best = ((0.0, wanted, (hit, said)) for hit, said in every if text.holds(said.casefold(), wanted))
    for score, held, (hit, said) in islice(best, limit):
        yield replace(hit, score=score, snippet=text.snippet(said, held, 1 if ranked else None))


def _hits(
    found: Iterable[Row], only: int | None, which: Callable[[Hit], bool] | None
) -> Iterator[tuple[int, Hit, str]]:
    """Yield the entries that may be hits: their numbers in the index, and their texts; without a session not those in the trash."""
    for number, dialog_id, seq, session, kind, role, at, trashed, deflated in found:
        hit = Hit(handle=Handle(DialogId(dialog_id), seq), session_id=SessionId(session), kind=kind, role=role, at=at)
        if (only is not None or trashed is None) and (which is None or which(hit)):
            yield number, hit, text.inflated(deflated)


def _postings(db: Database, phrase: str, session: int | None) -> list[tuple[int, bool]]:
    with db.reading() as rows:
        return db.matching(rows, phrase, session, _NEVER, text.MOST_POSTINGS, begun=text.begins(phrase))


def _numbered(db: Database, numbers: Sequence[int], session: int | None) -> list[Row]:
    """Return the indexed entries of some numbers, newest first; whole numbers need no quoting."""
    with db.reading() as rows:
        return rows.where("hits", f"x.text_no IN ({', '.join(map(str, numbers))})", session_no=session)


def _newest(db: Database, query: str, session: int | None) -> Iterator[Row]:
    """Return the indexed entries, newest first, a page at a time: most searches end within the first."""
    before, most = _NEVER, _PAGE
    numbers: list[int] | None = None
    while numbers is None or len(numbers) == most:
        if numbers:
            before, most = numbers[-1], text.MOST_POSTINGS
        with db.reading() as rows:
            numbers = [number for number, _ in db.matching(rows, query, session, before, most, begun=False)]
        for start in range(0, len(numbers), _PAGE):
            yield from _numbered(db, numbers[start : start + _PAGE], session)
