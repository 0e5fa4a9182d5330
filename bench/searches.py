"""Searches in PostgreSQL, in one table and in 16 partitions, against SQLite: words and beginnings of words that many texts have, few, or none.

The texts have 60 words each. The n-th word of 40,000 is n times rarer than the first, about as in prose; a tenth of them begin alike. The server is the one of the
tests (in a wheel), with 128 MB of shared buffers.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, closing
from itertools import accumulate
from pathlib import Path
from random import Random
from time import perf_counter

from bench.measure import Row, compared, in_turn, postgres_programs
from palaver import Session, UserMessage
from palaver.log import MessageEntry, draft
from palaver.session import searchable
from palaver.store import Store, open_store
from tests import postgres

TEXTS = 200_000
IN_A_SESSION = 2_000
ROUNDS = 5

_WORDS, _LENGTH = 40_000, 60
_RARE = "vzyx"
_AIM = "≤ 0.3 s"


def run(folder: Path, *, quick: bool) -> list[Row]:
    """Search three stores with the same texts; a machine without the server or the client gives one line that says so."""
    programs = postgres_programs("searches in PostgreSQL", "psycopg")
    if isinstance(programs, list):
        return programs
    with postgres.server(programs, on_disk=True, shared_buffers="128MB") as server, ExitStack() as stack:
        urls = {"one table": server.url(), "16 partitions": server.url() + "&partitions=16"}
        other = stack.enter_context(closing(open_store(str(folder / "searches.db"))))
        words = _vocabulary()
        rows = []
        filled = _filled(other, words, TEXTS // 10 if quick else TEXTS)
        for what, url in urls.items():
            store = stack.enter_context(closing(open_store(url)))
            seconds = _filled(store, words, TEXTS // 10 if quick else TEXTS)
            rows.append(compared(f"PostgreSQL, {what}: appending", seconds[0], filled[0]))
            rows.append(compared("  indexing", seconds[1], filled[1]))
            rows += _searched(store, other, words)
    return rows


def _vocabulary() -> list[str]:
    chance = Random(7)  # noqa: S311 - words, not secrets
    syllables = [first + second for first in "bcdfglmnprst" for second in "aeiou"]
    words: dict[str, None] = {}
    while len(words) < _WORDS:
        words["".join(chance.choices(syllables, k=chance.randint(2, 4)))] = None
    return list(words)


def _filled(store: Store, words: list[str], texts: int) -> tuple[float, float]:
    """Fill a store, and return how long appending and indexing took, in seconds."""
    chance = Random(8)  # noqa: S311 - words, not secrets
    weights = list(accumulate(1 / number for number in range(1, len(words) + 1)))
    started = perf_counter()
    for first in range(0, texts, IN_A_SESSION):
        dialog = Session.create(store, f"session {first // IN_A_SESSION}").root
        head = -1
        for page in range(first, min(texts, first + IN_A_SESSION), 500):
            said = (
                " ".join(chance.choices(words, cum_weights=weights, k=_LENGTH)) + f" {_RARE}" * (number % 50_000 == 777)
                for number in range(page, page + 500)
            )
            drafts = [draft(MessageEntry(message=UserMessage.text(one)))[0] for one in said]
            head = store.append(dialog.dialog_id, drafts, head)[-1].turn_head
    appended = perf_counter()
    store.index(searchable)
    return appended - started, perf_counter() - appended


def _searched(store: Store, other: Store, words: list[str]) -> list[Row]:
    asked: Mapping[str, str] = {
        "no text has": "zzzz",
        "few have": _RARE,
        "the most frequent word": words[0],
        "the tenth": words[10],
        "the hundredth": words[100],
        "the thousandth": words[1000],
        "a beginning of many": words[0][:3],
        "two words": f"{words[3]} {words[1000]}",
    }
    ways = {"in all, ranked": (False, True), "in all, newest first": (False, False), "in one session": (True, True)}
    rows = []
    for how, (inside, ranked) in ways.items():
        for what, query in asked.items():

            def ask(one: Store, query: str = query, *, inside: bool = inside, ranked: bool = ranked) -> None:
                session = Session.open(one, "session 9").session_id if inside else None
                one.search(query, session_id=session, limit=10, ranked=ranked)

            ours, limit = in_turn(lambda _, ask=ask: ask(store), lambda _, ask=ask: ask(other), ROUNDS)  # type: ignore[misc]
            rows.append(compared(f"  {how}: {what}", ours, limit, _AIM))
    return rows
