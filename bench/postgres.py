"""Appending to PostgreSQL: one writer, and eight in processes of their own, against raw committed inserts into a plain table.

The server is the one of the tests (in a wheel), with its own defaults for durability: a commit waits for the flush of the log.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median

from bench.measure import Row, compared, in_turn, microseconds, numbers, postgres_programs, text
from bench.postgres_writer import insert, plain_connection
from palaver import Session, UserMessage
from palaver.log import MessageEntry, draft
from palaver.store import open_store
from tests import postgres

SIZE = 2_000
ROUNDS = 1_000
WRITERS = 8
EACH = 300
TURNS = 11


def run(folder: Path, *, quick: bool) -> list[Row]:
    """Time appends of ready entries; a machine without the server or the client gives one line that says so."""
    del folder
    programs = postgres_programs("appends to PostgreSQL", "psycopg")
    if isinstance(programs, list):
        return programs
    with postgres.server(programs, on_disk=True, shared_buffers="128MB") as server:
        return [*_alone(server.url(), quick=quick), *_many(server, quick=quick)]


def _bodies() -> list[bytes]:
    return [draft(MessageEntry(message=UserMessage.text(text(SIZE, seed))))[0].body for seed in range(32)]


def _alone(url: str, *, quick: bool) -> list[Row]:
    with closing(open_store(url)) as store, closing(plain_connection(url)) as plain:
        dialog = Session.create(store, "alone").root
        bodies, ids = _bodies(), numbers()
        ready = [draft(MessageEntry(message=UserMessage.text(text(SIZE, seed))))[0] for seed in range(32)]
        head = [-1]

        def append(number: int) -> None:
            head[0] = store.append(dialog.dialog_id, [ready[number % 32]], head[0])[0].turn_head

        rounds = ROUNDS // 10 if quick else ROUNDS
        ours, limit = in_turn(append, lambda number: insert(plain, 0, next(ids), bodies[number % 32]), rounds)
    return [compared("PostgreSQL: append of a ready entry of 2 KB, by compare-and-swap", ours, limit, "≤ 1.3")]


def _many(server: postgres.Server, *, quick: bool) -> list[Row]:
    """Let eight processes write at once, in turns: ours, raw, raw, ours …; a turn lasts until the last of them is done."""
    each = EACH // 10 if quick else EACH
    url = server.url()
    with closing(open_store(url)) as store, closing(plain_connection(url)):
        dialogs = [Session.create(store, f"writer {number}").root.dialog_id for number in range(WRITERS)]
        plain = [str(1 + number) for number in range(WRITERS)]
        with _writers(url, "ours", dialogs, each) as ours, _writers(url, "raw", plain, each) as raw:
            for writers in (ours, raw):  # statements are prepared, and what is known of dialogs is known
                _together(writers)
            pairs: list[tuple[float, float]] = []
            for turn in range(TURNS):
                first, second = (ours, raw) if turn % 2 else (raw, ours)
                times = {id(writers): _together(writers) / (WRITERS * each) for writers in (first, second)}
                pairs.append((times[id(ours)], times[id(raw)]))
    what = f"PostgreSQL: one append of 2 KB, {WRITERS} processes on {WRITERS} sessions together; median and spread of {TURNS} turns"
    ratios = sorted(mine / theirs for mine, theirs in pairs)
    told = f"{median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
    mine, theirs = (microseconds(median(times)) for times in zip(*pairs, strict=True))
    return [Row(what, mine, theirs, told, "≤ 1.25 (80 %)")]


@contextmanager
def _writers(url: str, kind: str, names: Sequence[str], each: int) -> Iterator[list[subprocess.Popen[str]]]:
    """Start writers that are ready, and end them."""
    command = [sys.executable, "-m", "bench.postgres_writer", url, kind]
    pipe = subprocess.PIPE
    writers = [subprocess.Popen([*command, name, str(each)], stdin=pipe, stdout=pipe, text=True) for name in names]
    try:
        _said(writers, "ready")
        yield writers
    finally:
        for writer in writers:
            writer.kill()
            writer.communicate()


def _said(writers: Sequence[subprocess.Popen[str]], word: str) -> None:
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == f"{word}\n"


def _together(writers: Sequence[subprocess.Popen[str]]) -> float:
    """Return how long all writers take, from the signal to the last that is done, in seconds."""
    start = time.perf_counter()
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("\n")
        writer.stdin.flush()
    _said(writers, "done")
    return time.perf_counter() - start
