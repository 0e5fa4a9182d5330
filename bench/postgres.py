"""Appending to PostgreSQL: one writer, and eight in processes of their own, against raw committed inserts into a plain table.

    python -m bench.postgres URL KIND NUMBER COUNT     is one of the eight: it says `ready`, waits for a line, and says how long it took

The server is the one of the tests (in a wheel), with its own defaults for durability: a commit waits for the flush of the log.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from bench.measure import Row, compared, in_turn, numbers, text
from palaver import Session, UserMessage
from palaver.ids import DialogId
from palaver.log import MessageEntry, draft
from palaver.store import Store, open_store
from tests import postgres

if TYPE_CHECKING:
    import psycopg

SIZE = 2_000
ROUNDS = 1_500
WRITERS = 8
EACH = 500
TURNS = 5
_TABLE = "CREATE TABLE IF NOT EXISTS public.plain (writer int, id int, body bytea, PRIMARY KEY (writer, id))"


def run(folder: Path, *, quick: bool) -> list[Row]:
    """Time appends of ready entries; a machine without the server or the client gives one line that says so."""
    del folder
    programs = postgres.wheel_programs()
    reason = postgres.why_missing(programs)
    if programs is None or reason is not None or find_spec("psycopg") is None:
        return [Row("appends to PostgreSQL", f"not measured: {reason or 'psycopg is not installed'}")]
    with postgres.server(programs, on_disk=True, shared_buffers="128MB") as server:
        return [*_alone(server.url(), quick=quick), *_many(server, quick=quick)]


def _bodies() -> list[bytes]:
    return [draft(MessageEntry(message=UserMessage.text(text(SIZE, seed))))[0].body for seed in range(32)]


def _plain(url: str) -> psycopg.Connection[tuple[object, ...]]:
    """Connect to the same server, as anybody would."""
    from psycopg import connect  # noqa: PLC0415 - an extra that this environment may lack

    from palaver.store.postgres.address import address  # noqa: PLC0415 - the same

    connection = connect(address(url).conninfo, autocommit=True, prepare_threshold=0)
    connection.execute(_TABLE)
    return connection


def _insert(connection: psycopg.Connection[tuple[object, ...]], writer: int, number: int, body: bytes) -> None:
    connection.execute("INSERT INTO public.plain VALUES (%s, %s, %s)", (writer, number, body))


def _alone(url: str, *, quick: bool) -> list[Row]:
    with closing(open_store(url)) as store, closing(_plain(url)) as plain:
        dialog = Session.create(store, "alone").root
        bodies, ids = _bodies(), numbers()
        ready = [draft(MessageEntry(message=UserMessage.text(text(SIZE, seed))))[0] for seed in range(32)]
        head = [-1]

        def append(number: int) -> None:
            head[0] = store.append(dialog.dialog_id, [ready[number % 32]], head[0])[0].turn_head

        rounds = ROUNDS // 10 if quick else ROUNDS
        ours, limit = in_turn(append, lambda number: _insert(plain, 0, next(ids), bodies[number % 32]), rounds)
    return [compared("PostgreSQL: append of a ready entry of 2 KB, by compare-and-swap", ours, limit, "≤ 1.3")]


def _many(server: postgres.Server, *, quick: bool) -> list[Row]:
    """Let eight processes write at once, in turns: ours, raw, ours, raw …; a turn lasts until the last of them has ended."""
    each = EACH // 10 if quick else EACH
    url = server.url()
    with closing(open_store(url)) as store, closing(_plain(url)):
        dialogs = [Session.create(store, f"writer {number}").root.dialog_id for number in range(WRITERS)]
        ours: list[float] = []
        limit: list[float] = []
        for turn in range(TURNS):
            plain = [str(1 + turn * WRITERS + number) for number in range(WRITERS)]
            for kind, names, times in (("ours", dialogs, ours), ("raw", plain, limit)):
                times.append(_together(url, kind, names, each) / (WRITERS * each))
    what = f"PostgreSQL: one append of 2 KB, {WRITERS} processes on {WRITERS} sessions together"
    return [compared(what, median(ours), median(limit), "≤ 1.25 (80 %)")]


def _together(url: str, kind: str, names: Sequence[str], each: int) -> float:
    """Give how long all writers take, from the signal to the end of the last, in seconds."""
    command = [sys.executable, "-m", "bench.postgres", url, kind]
    pipe = subprocess.PIPE
    writers = [subprocess.Popen([*command, name, str(each)], stdin=pipe, stdout=pipe, text=True) for name in names]
    try:
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
        start = time.perf_counter()
        for writer in writers:
            assert writer.stdin is not None
            writer.stdin.write("\n")
            writer.stdin.flush()
        assert [writer.wait() for writer in writers] == [0] * len(writers)
        return time.perf_counter() - start
    finally:
        for writer in writers:
            writer.kill()
            writer.communicate()


def _append(store: Store, dialog: DialogId, count: int) -> None:
    entry = draft(MessageEntry(message=UserMessage.text(text(SIZE, 1))))[0]
    head = store.last(dialog).turn_head
    for _ in range(count):
        head = store.append(dialog, [entry], head)[0].turn_head


def _write(url: str, kind: str, name: str, count: int) -> None:
    """Be one writer."""
    job: Callable[[], None]
    if kind == "ours":
        store = open_store(url)
        store.last(DialogId(name))
        job = partial(_append, store, DialogId(name), count)
    else:
        body, plain = _bodies()[1], _plain(url)

        def job() -> None:
            for number in range(count):
                _insert(plain, int(name), number, body)

    print("ready", flush=True)
    sys.stdin.readline()
    job()


if __name__ == "__main__":
    _write(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
