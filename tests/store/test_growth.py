"""Law 11: what an operation costs follows from what it gives or writes, however much a store holds.

SQLite's cost is counted in steps of its machine, which are the same at each run; PostgreSQL's in rows that the plans of its statements read.
"""

import json
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import apsw
import pytest

from palaver.ids import DialogId, SessionId, derive_dialog_id, derive_id
from palaver.log import Node, Span
from palaver.store import Durability, SessionRecord, SqliteStore, Store
from palaver.store.postgres.database import PostgresRows
from palaver.store.postgres.opening import address
from palaver.store.sqlite.opening import SqliteOpener
from palaver.testing.store_laws import Begun, begin
from palaver.testing.store_laws.backend import label
from tests.postgres import Server
from tests.store.postgres_backend import connected, emptied

FEW, MANY = 80, 1_600


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], int]:
    """Return what counts the steps, in hundreds, that SQLite takes for something."""
    taken = count()
    set_up = SqliteOpener.set_up

    def counted(opener: SqliteOpener, connection: apsw.Connection) -> None:
        set_up(opener, connection)
        connection.set_progress_handler(lambda: bool(next(taken)) and False, 100)

    monkeypatch.setattr(SqliteOpener, "set_up", counted)

    def cost(use: Callable[[], object]) -> int:
        before = next(taken)
        for _ in range(20):
            use()
        return next(taken) - before - 1

    return cost


def grown(store: Store, size: int) -> Begun:
    """Fill a store: so many entries in a dialog, forks of it, sessions, and texts that a word finds."""
    begun = begin(store)
    with store.transaction():
        begun.say(*(b"word %d" % number for number in range(size)))
        for _ in range(10):
            store.annotate(begun.dialog, label())
        for number in range(size):
            begun.fork(Span(begun.dialog, 0, 1))
            name = SessionId(derive_id("session", str(number)))
            store.create_session(
                SessionRecord(session_id=name, name=f"name {number % (size // 10)}", created_at=number)
            )
    store.index(lambda _kind, body: body.decode())
    return begun


_WRITES: dict[str, Callable[[Begun], object]] = {
    "append": lambda begun: begun.say(b"one more"),
    "annotate": lambda begun: begun.store.annotate(begun.dialog, label()),
    "fork": lambda begun: begun.fork(Span(begun.dialog, 0, 3)),
    "session": lambda begun: begin(begun.store),
    "payload": lambda begun: begun.store.put_blob(begun.session, b"a payload"),
}
_READS: dict[str, Callable[[Begun], object]] = {
    "last": lambda begun: begun.store.last(begun.dialog),
    "newest": lambda begun: next(begun.store.headers(begun.dialog, reverse=True)),
    "kind": lambda begun: list(begun.store.latest_of_kind(begun.dialog, "label")),
    "kinds": lambda begun: list(begun.store.latest_of_kind(begun.dialog, {"label", "pin", "toolset"})),
    "node": lambda begun: begun.store.node(begun.dialog),
    "page": lambda begun: list(begun.store.sessions(limit=20)),
    "next page": lambda begun: list(begun.store.sessions(limit=20, after=begun.store.session(begun.session))),
    "by name": lambda begun: list(begun.store.sessions(name="name 3", limit=20)),
    "prefix": lambda begun: begun.store.resolve(begun.dialog[:12]),
    "search": lambda begun: begun.store.search("word", limit=10),
    "search in": lambda begun: begun.store.search("word", session_id=begun.session, limit=10),
}


def test_law_11_cost_is_flat(tmp_path: Path, steps: Callable[[Callable[[], object]], int]) -> None:
    """With twenty times as much of everything, an operation takes about as many steps."""
    costs: dict[str, list[int]] = {}
    for size in (FEW, MANY):
        with SqliteStore(tmp_path / f"{size}.db", Durability.NORMAL) as store:
            begun = grown(store, size)
            for name, use in {**_READS, **_WRITES}.items():
                costs.setdefault(name, []).append(steps(partial(use, begun)))
    assert not {name: both for name, both in costs.items() if both[1] > 1.5 * both[0] + 20}


# --- trees --------------------------------------------------------------------------------------------------------------------------


def chain(begun: Begun, length: int) -> list[DialogId]:
    """Fork a fork of a fork, each with an entry of its own."""
    ranges: tuple[Span, ...] = (Span(begun.dialog, 0, 1),)
    made = [begun.dialog]
    begun.say(b"root", b"unseen")
    with begun.store.transaction():
        for number in range(length):
            name = derive_dialog_id(begun.session, str(number))
            node = Node(
                dialog_id=name, session_id=begun.session, parent_id=made[-1], ranges=ranges, inherited=len(made)
            )
            begun.store.create_dialog(node)
            begun.say(b"own", b"unseen", dialog=name)
            ranges = (*ranges, Span(name, 0, 1))
            made.append(name)
    return made


def test_law_11_chain_of_forks(tmp_path: Path, steps: Callable[[Callable[[], object]], int]) -> None:
    """Ten times as long a chain is read in ten times as many steps, from its end or as a whole; each row is as long as the first."""
    costs: list[list[int]] = []
    for length in (50, 500):
        path = tmp_path / f"{length}.db"
        with SqliteStore(path, Durability.NORMAL) as store:
            begun = begin(store)
            made = chain(begun, length)
            assert [span.dialog for span in store.node(made[-1]).ranges] == made[:-1]
            with store._db.lent() as connection:
                assert connection.execute("SELECT max(length(ranges)) FROM dialogs").get < 120

        def opened(what: Callable[[Store], object], path: Path = path) -> None:
            with SqliteStore(path) as store:
                what(store)

        whole = partial(opened, lambda store, session=begun.session: store.nodes(session))  # type: ignore[misc]
        end = partial(opened, lambda store, made=made: store.node(made[-1]))  # type: ignore[misc]
        costs.append([steps(whole), steps(end)])
    assert all(many < 15 * few for few, many in zip(*costs, strict=True)), costs


# --- PostgreSQL -----------------------------------------------------------------------------------------------------------------------

SESSIONS, PAGE = 20_000, 50

_FILL = f"""
INSERT INTO sessions (session_id, tenant, name, subject, workdir, created_at, metadata)
SELECT md5(n::text), '', 'name ' || n % ({SESSIONS} / 10), 'subject ' || n % ({SESSIONS} / 100), '', n, '{{}}' FROM generate_series(1, {SESSIONS}) AS n;
INSERT INTO activity SELECT session_no, created_at FROM sessions;
INSERT INTO dialogs (dialog_id, session_no, place, owner, shared, ranges, inherited, created_at, relation, metadata, check_sum)
SELECT md5('d' || session_no), session_no, 0, '', 0, '[]', 0, created_at, '', '{{}}', 0 FROM sessions;
INSERT INTO entries (session_no, dialog_no, seq, turn_head, view_base, open_turn, kind, role, number, response, at, size, total, digest, check_sum, body)
SELECT session_no, dialog_no, seq, seq, -1, -1, 'message', 'user', 1, '', seq, 2, 2 * seq + 2, '', 0, '{{}}'
FROM dialogs, generate_series(0, CASE WHEN place = 0 AND session_no = (SELECT min(session_no) FROM sessions) THEN {SESSIONS} ELSE 3 END) AS seq;
ANALYZE;
"""  # noqa: S608 - figures of this file

_ASKED: dict[str, Any] = {"at": 1e300, "session_id": "", "limit": PAGE}
_LONG = {"start": 0, "stop": SESSIONS, "rows": PAGE}


def rows_read(plan: dict[str, Any]) -> float:
    """Return how many rows the scans of a plan read, with those that they threw away."""
    own = 0.0
    if "Relation Name" in plan:
        thrown = plan.get("Rows Removed by Filter", 0) + plan.get("Rows Removed by Index Recheck", 0)
        own = (plan["Actual Rows"] + thrown) * plan["Actual Loops"]
    return own + sum(map(rows_read, plan.get("Plans", [])))


_STATEMENTS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("sessions_listed", "AND s.trashed_at IS NULL", _ASKED),
    ("sessions_listed", "AND s.trashed_at IS NULL", _ASKED | {"at": SESSIONS / 2, "session_id": "7"}),
    ("sessions_listed", "AND s.trashed_at IS NOT NULL", _ASKED),
    ("sessions_beginning", "", {"prefix": "abcdef", "beyond": "abcdefg", "limit": 2}),
    ("newest", "", {}),
    ("headers_down", "", _LONG),
    ("bodies_up", "", _LONG | {"bytes": 1 << 20}),
    ("latest_of_kind", "", _LONG | {"kind": "label"}),
)


def test_law_11_few_rows_are_read(postgres_server: Server) -> None:
    """Of twenty thousand sessions, and of a dialog of as many messages, no statement reads more than a thousand rows."""
    url = emptied(postgres_server)
    with connected(url) as connection:
        connection.execute("SET max_parallel_workers_per_gather TO 0")
        connection.execute(_FILL)
        longest = "SELECT session_no, dialog_no, dialog_id FROM dialogs ORDER BY session_no LIMIT 1"
        session_no, dialog_no, dialog_id = connection.execute(longest).fetchone() or (0, 0, "")
        rows = PostgresRows(connection, address(url).schema, 1)
        for name, where, values in _STATEMENTS:
            asked = rows.sql[name].replace("/*where*/", where)
            numbers = {"session_no": session_no, "dialog_no": dialog_no, "dialog_id": dialog_id}
            explain = f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {asked}"
            (told,) = next(rows.ask(explain, values | numbers))
            (explained,) = told if isinstance(told, list) else json.loads(str(told))
            assert rows_read(explained["Plan"]) <= 20 * PAGE, json.dumps(explained, indent=1)
    emptied(postgres_server)
