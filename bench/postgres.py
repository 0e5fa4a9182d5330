"""Appending to PostgreSQL, against raw committed inserts into a plain table.

The server is the one of the tests (in a wheel), with its own defaults for durability: a commit waits for the flush of the log.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from bench.measure import Row, compared, in_turn, numbers, postgres_programs, text
from palaver import Session, UserMessage
from palaver.log import MessageEntry, draft
from palaver.store import open_store
from tests import postgres

if TYPE_CHECKING:
    import psycopg

SIZE = 2_000
ROUNDS = 1_000


def run(folder: Path, *, quick: bool) -> list[Row]:
    """Time appends of ready entries; a machine without the server or the client gives one line that says so."""
    del folder
    programs = postgres_programs("appends to PostgreSQL", "psycopg")
    if isinstance(programs, list):
        return programs
    with postgres.server(programs, on_disk=True, shared_buffers="128MB") as server:
        return [_alone(server.url(), quick=quick)]


def _alone(url: str, *, quick: bool) -> Row:
    with closing(open_store(url)) as store, closing(_plain_connection(url)) as plain:
        dialog = Session.create(store, "alone").root
        ready = [draft(MessageEntry(message=UserMessage.text(text(SIZE, seed))))[0] for seed in range(32)]
        head, ids = [-1], numbers()

        def append(number: int) -> None:
            head[0] = store.append(dialog.dialog_id, [ready[number % 32]], head[0])[0].turn_head

        def insert(number: int) -> None:
            plain.execute("INSERT INTO public.plain VALUES (%s, %s)", (next(ids), ready[number % 32].body))

        rounds = ROUNDS // 10 if quick else ROUNDS
        ours, limit = in_turn(append, insert, rounds)
    return compared("PostgreSQL: append of a ready entry of 2 KB, by compare-and-swap", ours, limit, "≤ 1.3")


def _plain_connection(url: str) -> psycopg.Connection[tuple[object, ...]]:
    """Connect to the same server, as anybody would."""
    from psycopg import connect  # noqa: PLC0415 - an extra that this environment may lack

    from palaver.store.postgres.opening import address  # noqa: PLC0415 - the same

    connection = connect(address(url).conninfo, autocommit=True, prepare_threshold=0)
    connection.execute("CREATE TABLE public.plain (id int PRIMARY KEY, body bytea)")
    return connection
