"""With many sessions: whatever the planner guesses, a page of a list and the opening of a session look at few rows."""

import json
import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql

from palaver.store.postgres import PostgresStore
from palaver.store.postgres.statements import statements
from tests import postgres
from tests.store.postgres_backend import connected, emptied

COUNT = 20_000
PAGE = 50
MOST = 20 * PAGE
"""Rows that all scans of a statement may read together; sessions of one name are ten, of one subject a hundred."""

_FILL = f"""
INSERT INTO sessions (session_id, name, subject, workdir, created_at, metadata)
SELECT md5(n::text), 'name ' || n % ({COUNT} / 10), 'subject ' || n % ({COUNT} / 100), '', n * 90.0, '{{}}' FROM generate_series(1, {COUNT}) AS n;
INSERT INTO activity SELECT session_no, created_at FROM sessions;
INSERT INTO dialogs (dialog_id, session_no, place, owner, ranges, inherited, created_at, relation, metadata)
SELECT md5('d' || session_no), session_no, 0, '', '[]', 0, created_at, '', '{{}}' FROM sessions;
INSERT INTO entries
SELECT dialog_no, seq, seq, -1, -1, 'message', 'user', 1, NULL, NULL, '', created_at + seq, 2, 2 * seq + 2, ''::bytea, '{{}}'::bytea
FROM dialogs, generate_series(0, 3) AS seq;
INSERT INTO entries
SELECT 1, seq, seq, -1, -1, 'message', 'user', 1, NULL, NULL, '', seq, 2, 2 * seq + 2, ''::bytea, '{{}}'::bytea
FROM generate_series(4, {COUNT}) AS seq;
ANALYZE;
"""  # noqa: S608 - figures of this file

_ASKED: dict[str, Any] = {
    "after_at": 1e300, "after_id": "", "off": 120.0, "doubt": 480.0, "limit": PAGE, "name": None, "subject": None,
}  # fmt: skip
_MIDDLE = _ASKED | {"after_at": COUNT * 45.0, "after_id": "7"}
_LONG = {"dialog_no": 1, "start": 0, "stop": COUNT, "rows": 512}


@pytest.fixture(scope="module")
def filled(postgres_server: postgres.Server) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """Give a connection to a schema with twenty thousand sessions."""
    url = emptied(postgres_server)
    PostgresStore(url).close()
    connection = connected(url)
    connection.execute("SET max_parallel_workers_per_gather TO 0")
    connection.execute(_FILL)
    yield connection
    connection.close()
    emptied(postgres_server)


def read(plan: dict[str, Any]) -> float:
    """Give how many rows the scans of a plan read, with those that they threw away."""
    own = 0.0
    if "Relation Name" in plan:
        rows = (
            plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0) + plan.get("Rows Removed by Index Recheck", 0)
        )
        own = rows * plan["Actual Loops"]
    return own + sum(read(part) for part in plan.get("Plans", []))


def numbered(name: str, bindings: dict[str, object]) -> tuple[str, list[object]]:
    """Give a statement with numbers for its values, as PREPARE takes it, and the values in their order."""
    order: list[str] = []
    unnamed = iter(bindings)

    def place(found: re.Match[str]) -> str:
        key = found[1] or next(unnamed)
        if key not in order:
            order.append(key)
        return f"${order.index(key) + 1}"

    return re.sub(r"%(?:\((\w+)\))?s", place, statements()[name]), [bindings[key] for key in order]


@pytest.mark.parametrize("mode", ["force_generic_plan", "force_custom_plan"])
@pytest.mark.parametrize(
    ("name", "bindings"),
    [
        ("session_list", _ASKED),
        ("session_list", _MIDDLE),
        ("session_list_named", _ASKED | {"name": "name 7"}),
        ("session_list_about", _ASKED | {"subject": "subject 7"}),
        ("session_list_trashed", _ASKED),
        ("sessions_get", {"ids": [f"{n:032x}" for n in range(PAGE)]}),
        ("activities", {"after": COUNT // 2, "rows": PAGE}),
        ("headers_holding", _LONG),
        ("headers_of_kind", _LONG | {"kind": "inbox"}),
    ],
    ids=["newest", "middle", "named", "about", "trashed", "records", "verify", "holding", "sought"],
)
def test_few_rows_are_read(
    filled: psycopg.Connection[tuple[object, ...]], name: str, bindings: dict[str, object], mode: str
) -> None:
    """Of twenty thousand sessions, and of a dialog of as many messages, no statement reads more than a thousand rows, whether its plan was made for these values or for any."""
    asked, values = numbered(name, bindings)
    filled.execute("SELECT set_config('plan_cache_mode', %s, false)", (mode,))
    filled.execute(f"PREPARE asked AS {asked}", prepare=False)
    given = sql.SQL(", ").join(sql.Literal(value) for value in values)
    told = filled.execute(
        sql.SQL("EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) EXECUTE asked ({})").format(given), prepare=False
    ).fetchone()
    filled.execute("DEALLOCATE asked")
    assert told is not None
    (explained,) = told[0] if isinstance(told[0], list) else json.loads(str(told[0]))
    assert read(explained["Plan"]) <= MOST, json.dumps(explained, indent=1)
