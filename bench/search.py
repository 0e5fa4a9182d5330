"""Whether a search finds: the rank of the right entry for questions whose answer is known.

PALAVER_TEST_DATA names the folder of recorded sessions. Each of the 60 lines of `search_questions.tsv` is what a person would type, a part of the
name of the file, and words that the right entry has; they were written by looking at the entries, before any was asked. The limits are two other orders of the same
texts: bm25 of SQLite's FTS5, any word counts (https://www.sqlite.org/fts5.html#the_bm25_function); and that of grep, all words before any, in the order of the files.

PALAVER_LONGMEMEVAL names a file of LongMemEval (https://github.com/xiaowu0162/LongMemEval): questions, each over sessions of its own, and which of these
answer it. A session's rank is that of its first hit.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from time import perf_counter
from typing import Any

import apsw
import zstandard

from bench.measure import Row
from palaver import AssistantMessage, Session, UserMessage
from palaver.browsing.search import index
from palaver.errors import InvalidInput
from palaver.log import Handle
from palaver.session import searchable
from palaver.store import MemoryStore, SqliteStore, Store
from palaver.store.text import words
from palaver.transcripts import Importer, in_order

QUESTIONS = Path(__file__).with_name("search_questions.tsv")

_DEEP = 200
"""How far the right entry is looked for."""

_AIMS = {1: "≥ 60 %", 10: "≥ 90 %"}


def run(folder: Path, *, quick: bool) -> list[Row]:
    """Ask all questions; quick, every sixth."""
    rows: list[Row] = []
    every = 6 if quick else 1
    if recorded := os.environ.get("PALAVER_TEST_DATA"):
        rows += _recorded(folder / "store.db", Path(recorded), questions()[::every])
    if named := os.environ.get("PALAVER_LONGMEMEVAL"):
        rows += _long_memory(json.loads(_unpacked(Path(named)))[::every])
    return rows or [Row("search: neither PALAVER_TEST_DATA nor PALAVER_LONGMEMEVAL is set", "skipped")]


def questions() -> list[tuple[str, str, str]]:
    """Return what is asked, a part of the file's name, and words of the right entry, folded."""
    with QUESTIONS.open(encoding="utf-8", newline="") as file:
        lines = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [(asked, name, _squashed(right)) for asked, name, right in lines]


# --- recorded sessions ----------------------------------------------------------------------------------------------------------------


def _recorded(path: Path, recorded: Path, asked: Sequence[tuple[str, str, str]]) -> list[Row]:
    with closing(SqliteStore(path)) as store:
        _import(store, recorded)
        index(store)
        texts = dict(_texts(store))
        files = {record.session_id: record.path for record in _sources(store)}
        other = _Fts(texts)
        ours, sqlite, grep = [], [], []
        seconds = 0.0
        for query, name, right in asked:
            rights = {
                handle
                for handle, (session, said) in texts.items()
                if name in files.get(session, "") and right in _squashed(said)
            }
            started = perf_counter()
            hits = store.search(query, limit=_DEEP, ranked=True)
            seconds += perf_counter() - started
            ours.append(_rank((str(hit.handle) for hit in hits), rights))
            sqlite.append(_rank(other.search(query), rights))
            grep.append(_rank(_grepped(texts, query), rights))
    what = f"{len(asked)} questions over {len(texts):,} entries"
    return [
        *(
            Row(
                f"{what}: hit@{first}",
                _share(ours, first),
                f"bm25 {_share(sqlite, first)}, grep {_share(grep, first)}",
                aim=aim,
            )
            for first, aim in _AIMS.items()
        ),
        Row("  a question", f"{seconds / len(asked) * 1e3:,.0f} ms", aim="≤ 500 ms"),
    ]


def _import(store: Store, recorded: Path) -> None:
    importer = Importer(store, keep_source=False)
    for path in in_order(dict.fromkeys(path for path in sorted(recorded.rglob("*")) if path.is_file())):
        try:
            list(importer.import_path(path))
        except InvalidInput:
            continue  # a format that is not read


def _sources(store: Store) -> Iterator[Any]:
    return chain.from_iterable(store.sources(session.session_id) for session in store.sessions())


def _texts(store: Store) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the handle, session and text of every entry, in the order of the sessions' files."""
    paths = {record.session_id: record.path for record in _sources(store)}
    for session in sorted(paths, key=lambda name: paths[name]):
        for node in store.nodes(session):
            for seq, body in store.bodies(node.dialog_id):
                yield str(Handle(node.dialog_id, seq)), (session, searchable("", body))


def _squashed(said: str) -> str:
    return " ".join(said.split()).casefold()


def _rank(handles: Iterable[str], rights: set[str]) -> int:
    """Return the place of the first that is right, from 1; 0 where none is."""
    return next((place for place, handle in enumerate(handles, 1) if handle in rights), 0)


def _share(ranks: Sequence[int], first: int) -> str:
    return f"{100 * sum(0 < rank <= first for rank in ranks) / len(ranks):.0f} %"


class _Fts:
    """The texts in a table of FTS5 as its documentation begins."""

    def __init__(self, texts: Mapping[str, tuple[str, str]]) -> None:
        self._db = apsw.Connection(":memory:")
        self._db.execute("CREATE VIRTUAL TABLE texts USING fts5 (handle UNINDEXED, said)").fetchall()
        rows = ((handle, said.encode("utf-8", "replace").decode()) for handle, (_, said) in texts.items())
        with self._db:
            self._db.executemany("INSERT INTO texts VALUES (?, ?)", rows)

    def search(self, query: str) -> Iterator[str]:
        match = " OR ".join(f'"{word.replace(chr(34), "")}"' for word in words(query))
        ranked = "SELECT handle FROM texts WHERE said MATCH ? ORDER BY rank LIMIT ?"
        return (handle for (handle,) in self._db.execute(ranked, (match, _DEEP)))


def _grepped(texts: Mapping[str, tuple[str, str]], query: str) -> Iterator[str]:
    wanted = words(query)
    folded = {handle: said.casefold() for handle, (_, said) in texts.items()}
    yield from (handle for handle, said in folded.items() if all(word in said for word in wanted))
    yield from (handle for handle, said in folded.items() if 0 < sum(word in said for word in wanted) < len(wanted))


# --- LongMemEval ----------------------------------------------------------------------------------------------------------------------


def _unpacked(path: Path) -> bytes:
    data = path.read_bytes()
    return zstandard.ZstdDecompressor().decompressobj().decompress(data) if path.suffix == ".zst" else data


def _long_memory(cases: Sequence[Mapping[str, Any]]) -> list[Row]:
    ranks = []
    for case in cases:
        store = MemoryStore()
        sessions = {}
        for name, said in zip(case["haystack_session_ids"], case["haystack_sessions"], strict=True):
            session = Session.create(store, name)
            sessions[session.session_id] = name
            session.root.append([_message(turn) for turn in said if turn["content"].strip()])
        index(store)
        for query, rights in _asked(case):
            hits = store.search(query, limit=_DEEP, ranked=True)
            ranks.append(_rank(dict.fromkeys(sessions[hit.session_id] for hit in hits), rights))
    what = f"{len(ranks)} questions of LongMemEval, {len(cases)} haystacks"
    return [Row(f"{what}: hit@{first}", _share(ranks, first)) for first in _AIMS]


def _asked(case: Mapping[str, Any]) -> Iterator[tuple[str, set[str]]]:
    """Yield the questions of a case and the sessions that answer them; a variant of the file has several for one haystack."""
    if "questions" in case:
        yield from zip(case["questions"], map(set, case["answer_session_ids"]), strict=True)
    else:
        yield case["question"], set(case["answer_session_ids"])


def _message(turn: Mapping[str, str]) -> AssistantMessage | UserMessage:
    return (AssistantMessage if turn["role"] == "assistant" else UserMessage)(turn["content"])
