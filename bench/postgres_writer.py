"""One of several writers: it says `ready`, writes at each line that it is sent, says `done`, and ends with its input.

python -m bench.postgres_writer URL ours DIALOG COUNT      appends entries of 2 KB, so many at a line
python -m bench.postgres_writer URL raw NUMBER COUNT       inserts the same bytes into a plain table, each committed
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import repeat
from typing import TYPE_CHECKING

from bench.measure import numbers
from palaver.ids import DialogId, now
from palaver.log import Draft
from palaver.store import open_store

if TYPE_CHECKING:
    import psycopg

BODY = b"the store keeps every entry of a dialog in order and a reader may follow it; " * 27
_TABLE = "CREATE TABLE IF NOT EXISTS public.plain (writer int, id int, body bytea, PRIMARY KEY (writer, id))"


def plain_connection(url: str) -> psycopg.Connection[tuple[object, ...]]:
    """Connect to the same server, as anybody would."""
    from psycopg import connect  # noqa: PLC0415 - an extra that this environment may lack

    from palaver.store.postgres.opening import address  # noqa: PLC0415 - the same

    connection = connect(address(url).conninfo, autocommit=True, prepare_threshold=0)
    connection.execute(_TABLE)
    return connection


def insert(connection: psycopg.Connection[tuple[object, ...]], writer: int, number: int, body: bytes) -> None:
    """Insert one row and commit."""
    connection.execute("INSERT INTO public.plain VALUES (%s, %s, %s)", (writer, number, body))


def main() -> None:
    """Be one writer."""
    url, kind, name, count = sys.argv[1:]
    ids = numbers()
    if kind == "ours":
        store, dialog, entry = open_store(url), DialogId(name), Draft("message", "user", 1, (), (), "", now(), BODY)
        head = store.last(dialog).turn_head
        for _ in _told(int(count)):
            head = store.append(dialog, [entry], head)[0].turn_head
    else:
        plain = plain_connection(url)
        for _ in _told(int(count)):
            insert(plain, int(name), next(ids), BODY)


def _told(count: int) -> Iterator[None]:
    """Return so many turns at each line."""
    print("ready", flush=True)
    while sys.stdin.readline():
        yield from repeat(None, count)
        print("done", flush=True)


if __name__ == "__main__":
    main()
