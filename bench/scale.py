"""A store of very many sessions: a page of the list, opening and searching one, against the same in a store of a thousand.

The sessions are made through the store's own writes, in large steps, a minute or more apart in time as the sessions of one person or team are;
each is one dialog of two messages, and every entry is indexed. Their words are drawn from a few thousand, so that a word is in many sessions.
A large schema of PostgreSQL is filled by COPY (`bench.bulk`); that this gives the rows that the store writes is seen first, row by row.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

from bench import bulk
from bench.bulk import Made
from bench.measure import Row, compared, in_turn
from palaver import AssistantMessage, Session, UserMessage
from palaver.ids import DialogId, SessionId, derive_id
from palaver.log import Draft, MessageEntry, Node, draft
from palaver.session import searchable
from palaver.store import Durability, SessionRecord, SqliteStore, Store
from tests import postgres

SMALL = 1_000
LARGE = 100_000
FULL = 1_000_000
QUICK = 5_000
ROUNDS = 60
_STEP = 2_000
_VOCABULARY = 4_000
_SECONDS = 90.0  # between two sessions
_BEGINNING = 1_700_000_000.0


def run(folder: Path, *, quick: bool) -> list[Row]:
    """Compare a store of a thousand sessions with one of a hundred thousand."""
    return _sqlite(folder, QUICK if quick else LARGE)


def run_full(folder: Path, *, quick: bool) -> list[Row]:
    """Compare a store of a thousand sessions with one of a million; it takes half an hour and 3 GB."""
    return _sqlite(folder, QUICK if quick else FULL)


def run_postgres(folder: Path, *, quick: bool) -> list[Row]:
    """Compare a schema of a thousand sessions with one of a hundred thousand."""
    del folder
    return _postgres(QUICK if quick else LARGE)


def run_postgres_full(folder: Path, *, quick: bool) -> list[Row]:
    """Compare a schema of a thousand sessions with one of a million; it takes a quarter of an hour and 8 GB."""
    del folder
    return _postgres(QUICK if quick else FULL)


def _postgres(count: int) -> list[Row]:
    programs = postgres.wheel_programs()
    reason = postgres.why_missing(programs)
    if programs is None or reason is not None or find_spec("psycopg") is None:
        return [Row("sessions in PostgreSQL", f"not measured: {reason or 'psycopg is not installed'}")]
    from palaver.store.postgres import PostgresStore  # noqa: PLC0415 - psycopg may be missing

    with postgres.server(programs, on_disk=True, shared_buffers="512MB", max_wal_size="2GB") as server:
        small, copied, large = (partial(PostgresStore, server.url(), Durability.NORMAL) for _ in range(3))
        same = list(made(0, SMALL))
        for make in (small, copied, large):
            make().close()
        with closing(small()) as store:
            fill(store, same)
        bulk.fill(copied().url, lambda start, stop: same[start:stop], SMALL)
        wrong = bulk.differing(small().url, copied().url)
        bulk.fill(large().url, made, count, os.cpu_count() or 1)
        told = f"different in {', '.join(wrong)}" if wrong else "the same in every table"
        what = f"PostgreSQL: {SMALL:,} sessions by COPY, against those that the store writes"
        return [Row(what, told), *_rows(small, large, count, "PostgreSQL: ")]


def _sqlite(folder: Path, count: int) -> list[Row]:
    small, large = (partial(SqliteStore, folder / f"{name}.db", Durability.NORMAL) for name in ("small", "large"))
    for make, size in ((small, SMALL), (large, count)):
        with closing(make()) as store:
            fill(store, made(0, size))
    return _rows(small, large, count, "")


def _rows(small: Callable[[], Store], large: Callable[[], Store], count: int, where: str) -> list[Row]:
    """Open two stores that are filled, and do the same in both in turn."""
    with _closing(small()) as one, _closing(large()) as other:
        middle = other.session(session_of(count // 2)), one.session(session_of(SMALL // 2))
        jobs: dict[str, tuple[Callable[[int], object], Callable[[int], object]]] = {
            "a page of 50 sessions, the newest": (partial(_page, other, None), partial(_page, one, None)),
            "a page of 50 sessions, from the middle": (
                partial(_page, other, middle[0]),
                partial(_page, one, middle[1]),
            ),
            "open a session by id, its view": (partial(_open, other, count, "id"), partial(_open, one, SMALL, "id")),
            "open a session by the first digits": (
                partial(_open, other, count, "digits"),
                partial(_open, one, SMALL, "digits"),
            ),
            "open a session by name": (partial(_open, other, count, "name"), partial(_open, one, SMALL, "name")),
            "search in a session, a rare word": (partial(_search, other, count, ""), partial(_search, one, SMALL, "")),
            "search in a session, a word of every session": (
                partial(_search, other, count, "common"),
                partial(_search, one, SMALL, "common"),
            ),
        }
        return [
            compared(f"{where}{what}, {count:,} sessions against {SMALL:,}", *in_turn(ours, limit, ROUNDS), "≤ 2")
            for what, (ours, limit) in jobs.items()
        ]


@contextmanager
def _closing(store: Store) -> Iterator[Store]:
    with closing(store):
        yield store


def session_of(number: int) -> SessionId:
    """Give the id of a session by its number."""
    return SessionId(derive_id("scale", str(number)))


def made(start: int, stop: int) -> Iterator[Made]:
    """Give the sessions from a number (inclusive) to another (exclusive)."""
    words = [f"w{number:x}" for number in range(_VOCABULARY)]
    for number in range(start, stop):
        chance = random.Random(number)  # noqa: S311 - words, no secrets
        at = _BEGINNING + number * _SECONDS
        session_id, dialog_id = session_of(number), DialogId(derive_id("dialog", str(number)))
        yield Made(
            SessionRecord(
                session_id=session_id,
                name=f"session {number}",
                subject=f"user {number % 997}",
                created_at=at,
                root=dialog_id,
            ),
            Node(dialog_id=dialog_id, session_id=session_id, owner="assistant", created_at=at),
            tuple(_said(at, " ".join(chance.choices(words, k=12)), number)),
        )


def fill(store: Store, sessions: Iterable[Made]) -> None:
    """Write sessions, in steps of two thousand, and index what they say."""
    waiting = iter(sessions)
    while step := list(islice(waiting, _STEP)):
        with store.together():
            for session, dialog, said in step:
                store.create_session(replace(session, root=None))
                store.create_dialog(dialog)
                store.update_session(session.session_id, root=session.root)
                store.append(dialog.dialog_id, said, -1)
        while store.index(searchable, limit=100_000):
            pass


def _said(at: float, said: str, number: int) -> Iterator[Draft]:
    yield draft(MessageEntry(message=UserMessage.text(f"common {said}"), at=at))[0]
    yield draft(MessageEntry(message=AssistantMessage(content=f"common r{number} {said}"), at=at + 5))[0]


def _page(store: Store, after: SessionRecord | None, _number: int) -> object:
    return list(store.sessions(limit=50, after=after))


def _chosen(count: int, number: int) -> int:
    return number * 7_919 % count


def _open(store: Store, count: int, by: str, number: int) -> object:
    chosen = _chosen(count, number)
    names = {"id": session_of(chosen), "digits": session_of(chosen)[:12], "name": f"session {chosen}"}
    return Session.open(names[by], store).root.view()


def _search(store: Store, count: int, word: str, number: int) -> object:
    chosen = _chosen(count, number)
    store.index(searchable, session_id=session_of(chosen))
    found = store.search(word or f"r{chosen}", session_id=session_of(chosen))
    assert found
    return found
