"""A store in PostgreSQL in 16 partitions against one in plain tables, both with the same entries.

python -m bench.partitions ENTRIES    the same with so many entries; 10,000,000 need 40 GB in /tmp and an hour

A few hundred sessions are written by palaver and then multiplied by the server, under new ids. Each has a word of its own to be searched for.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from bench.measure import Row, compared, in_turn, text
from palaver import Session, UserMessage
from palaver.ids import DialogId, SessionId
from palaver.log import Draft, MessageEntry, draft
from palaver.session import searchable
from palaver.store import Store, open_store
from tests import postgres

if TYPE_CHECKING:
    import psycopg

PARTITIONS = 16
ENTRIES = 100_000
LENGTH = 100
WRITTEN = 200
ROUNDS = 300
_MULTIPLY = (
    "CREATE TEMP TABLE ids AS SELECT name, md5(random()::text) AS session_id, ''::text AS dialog_id FROM written",
    "UPDATE ids SET dialog_id = left(md5(random()::text), 28) || right(session_id, 4)",
    """
    CREATE TEMP TABLE pairs AS
    WITH made AS (
      INSERT INTO sessions (session_id, tenant, name, subject, workdir, created_at, root, metadata)
      SELECT i.session_id, '', i.name || ' again', '', '', 0, i.dialog_id, '{}' FROM ids AS i
      RETURNING session_no, root
    ), dated AS (
      INSERT INTO activity SELECT session_no, extract(epoch FROM clock_timestamp()) FROM made
    ), grown AS (
      INSERT INTO dialogs
        (dialog_id, session_no, place, owner, shared, ranges, inherited, created_at, relation, metadata, check_sum)
      SELECT m.root, m.session_no, 0, '', 0, '[]', 0, 0, 'root', '{}', 0 FROM made AS m
      RETURNING session_no, dialog_no, dialog_id
    )
    SELECT g.session_no, g.dialog_no, s.session_no AS old_session, d.dialog_no AS old_dialog
    FROM grown AS g JOIN ids AS i USING (dialog_id) JOIN sessions AS s USING (name) JOIN dialogs AS d ON d.dialog_id = s.root
    """,
    """
    INSERT INTO entries
    SELECT
      p.session_no, p.dialog_no, e.seq, e.turn_head, e.view_base, e.open_turn, e.kind, e.role, e.number, e.calls, e.open_calls, e.response,
      e.at, e.size, e.total, e.digest, e.speaker, e.blocks, e.continues, e.check_sum, e.body
    FROM pairs AS p JOIN entries AS e ON e.session_no = p.old_session AND e.dialog_no = p.old_dialog
    ORDER BY p.session_no, e.seq
    """,
    """
    INSERT INTO texts (session_no, dialog_no, seq, deflated, tokens, said)
    SELECT
      p.session_no, p.dialog_no, x.seq, x.deflated,
      array_to_tsvector(array_replace(tsvector_to_array(x.tokens), '#' || x.session_no, '#' || p.session_no)), x.said
    FROM pairs AS p JOIN texts AS x ON x.session_no = p.old_session AND x.dialog_no = p.old_dialog
    ORDER BY p.session_no, x.seq
    """,
    "INSERT INTO indexed SELECT session_no, dialog_no, 100 FROM pairs",
    "DROP TABLE ids, pairs",
)
"""What was written by palaver, once more under new ids."""


class Place(NamedTuple):
    """A session and its dialog."""

    session: SessionId
    dialog: DialogId


def run(folder: Path, *, quick: bool) -> list[Row]:
    """Fill both stores, and time what a conversation does in each; a machine without the server or the client gives one line that says so."""
    del folder
    programs = postgres.wheel_programs()
    reason = postgres.why_missing(programs)
    if programs is None or reason is not None or find_spec("psycopg") is None:
        return [Row("partitions of PostgreSQL", f"not measured: {reason or 'psycopg is not installed'}")]
    entries = ENTRIES // 10 if quick else ENTRIES
    with postgres.server(programs, on_disk=True, **SETTINGS) as server:
        return measured(*filled(server, entries), entries)


SETTINGS = {
    "shared_buffers": "1GB",
    "max_wal_size": "8GB",
    "maintenance_work_mem": "512MB",
    "checkpoint_timeout": "30min",
}


def filled(server: postgres.Server, entries: int) -> tuple[str, str]:
    """Return the addresses of the store in partitions and of the plain one, both filled."""
    parted, plain = f"{server.url()}&partitions={PARTITIONS}", server.url()
    for url in (parted, plain):
        fill(url, entries)
    return parted, plain


def fill(url: str, entries: int) -> None:
    """Write some sessions, and let the server multiply them."""
    written = min(WRITTEN, entries // LENGTH)
    with closing(open_store(url)) as store:
        for number in range(written):
            dialog = Session.create(store, f"session {number}").root
            store.append(dialog.dialog_id, _drafts(number), store.last(dialog.dialog_id).turn_head)
        store.index(searchable)
    with _connected(url) as connection:
        index = "SELECT pg_get_indexdef('texts_tokens'::regclass)"
        made = connection.execute(index).fetchall()[0][0].replace("ON ONLY", "ON")
        connection.execute("DROP INDEX texts_tokens; SET synchronous_commit = off; SET work_mem = '256MB'")
        connection.execute("CREATE TEMP TABLE written AS SELECT name FROM sessions")
        for _ in range(entries // LENGTH // written - 1):
            _multiply(connection)
        connection.execute(made)
        connection.execute("VACUUM ANALYZE")
        connection.execute("CHECKPOINT")


def _multiply(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    """Write what was written by palaver once more, under new ids."""
    for statement in _MULTIPLY:
        connection.execute(statement)


def _drafts(number: int) -> list[Draft]:
    said = (text(200, number * LENGTH + seq) + (f" word{number}x" if seq == 7 else "") for seq in range(LENGTH))
    return [draft(MessageEntry(message=UserMessage.text(words)))[0] for words in said]


def _connected(url: str) -> psycopg.Connection[tuple[str, ...]]:
    from psycopg import connect  # noqa: PLC0415 - an extra that this environment may lack

    from palaver.store.postgres.opening import address  # noqa: PLC0415 - the same

    where = address(url)
    return connect(where.conninfo, autocommit=True, options=f"-csearch_path={where.schema}")


def measured(parted: str, plain: str, entries: int) -> list[Row]:
    """Time both in turn, without and with kept plans."""
    rows = []
    for more in ("", "&prepared=yes"):
        with ExitStack() as opened:
            sides = [
                _Side(opened.enter_context(closing(open_store(url + more))), _places(url)) for url in (parted, plain)
            ]
            for what, rounds, jobs in _jobs(sides):
                in_turn(*jobs, rounds)  # statements of each partition are prepared, and pages are read
                ours, limit = in_turn(*jobs, rounds)
                rows.append(compared(f"{what}; {entries:,} entries{', kept plans' * bool(more)}", ours, limit, "≤ 1.1"))
    return rows


def _places(url: str) -> list[Place]:
    with _connected(url) as connection:
        found = connection.execute("SELECT session_id, root FROM sessions ORDER BY session_id LIMIT 2000").fetchall()
    places = [Place(SessionId(session), DialogId(dialog)) for session, dialog in found]
    Random(1).shuffle(places)  # noqa: S311 - an order, not a secret
    return places


class _Side:
    """One store, with sessions in some order."""

    def __init__(self, store: Store, places: Sequence[Place]) -> None:
        self.store = store
        self.places = places
        self._ready = _drafts(0)[0]
        self._known = {place.dialog: store.last(place.dialog) for place in places[:64]}

    def append(self, number: int) -> None:
        """Append a ready entry to one of 64 sessions in use."""
        dialog = self.places[number % len(self._known)].dialog
        last = self._known[dialog]
        self._known[dialog] = self.store.append(dialog, [self._ready], last.turn_head, last)[0]

    def open(self, number: int) -> None:
        """Open a session, and read its messages."""
        list(Session.open(self.store, self.places[number % len(self.places)].session).root.messages)

    def list(self, number: int) -> None:
        """List the 50 newest sessions."""
        del number
        list(self.store.sessions(limit=50))

    def search(self, number: int) -> None:
        """Search all sessions for a rare word."""
        self.store.search(f"word{number % WRITTEN}x")

    def search_one(self, number: int) -> None:
        """Search one session."""
        self.store.search("reader follow", session_id=self.places[number % len(self.places)].session)


def _jobs(sides: Sequence[_Side]) -> Iterator[tuple[str, int, tuple[Callable[[int], object], Callable[[int], object]]]]:
    for name, rounds, what in (
        ("append", ROUNDS, "append an entry by compare-and-swap"),
        ("open", ROUNDS, "open a session, read its 100 messages"),
        ("list", ROUNDS // 3, "list 50 sessions"),
        ("search", ROUNDS // 3, "search all sessions for a rare word"),
        ("search_one", ROUNDS // 3, "search a session"),
    ):
        ours, limit = (getattr(side, name) for side in sides)
        yield f"{PARTITIONS} partitions: {what}", rounds, (ours, limit)


def main() -> None:
    """Measure with as many entries as were asked for."""
    programs = postgres.wheel_programs()
    assert programs is not None
    entries = int(sys.argv[1])
    with postgres.server(programs, on_disk=True, **SETTINGS) as server:
        urls = filled(server, entries)
        for row in (row for _round in range(3) for row in measured(*urls, entries)):
            print(row.what, row.ours, row.limit, row.ratio, sep=" | ", flush=True)


if __name__ == "__main__":
    main()
