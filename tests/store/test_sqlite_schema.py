"""The SQL of the SQLite store: named, numbered, complete, and without a walk over the log."""

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import apsw
import pytest

from palaver.store import SqliteStore, erasing_rows
from palaver.store.sqlite.statements import migrations, statements

ROOM = Path(str(files("palaver.store.sqlite")))
WALKS = {"session_list", "behind", "lag", "search", "search_within"}
"""Statements that look at every session in doubt, every dialog or every match: listings, and the search."""

ERASES = {"bodies_naming", "gone_all", "lease_names", "receipts_all", "sources_naming", "written_upto"}
"""Statements of erasures and sweeps alone, which look at all that could name what is erased, count dialogs, and read the receipts."""

VERIFIES = {
    "activities_loose",
    "headers_loose",
    "migrations_done",
    "row_counts",
    "texts_judged",
    "texts_loose",
    "tokens_opened",
    "watermarks",
}
"""Statements of `verify` alone, which looks at everything."""


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[apsw.Connection]:
    """Give a look at the tables of a new store."""
    SqliteStore(tmp_path / "store.db").close()
    connection = apsw.Connection(str(tmp_path / "store.db"))
    yield connection
    connection.close()


def test_migrations_are_numbered_without_gaps() -> None:
    """The first is 1, and each raises the format by one."""
    assert [migration.version for migration in migrations()] == list(range(1, len(migrations()) + 1))


def test_every_statement_is_used_and_every_used_one_is_there() -> None:
    """No statement lies about unused, and no code names one that is not there."""
    shared = Path(erasing_rows.__file__).read_text("utf-8")
    code = "".join(path.read_text("utf-8") for path in ROOM.glob("*.py"))
    named = re.findall(
        r"(?:sql|statements\(\))\[\"(\w+)\"\]|scan\((?:pool, )?\"(\w+)\"|\"(headers_\w+)\"|rows\.(?:all|each)\(\"(\w+)\"",
        code + shared,
    )
    used = {name for group in named for name in group if name} | {
        name for name in statements() if f'"{name}"' in shared
    }
    assert used == set(statements())


@pytest.mark.parametrize("name", sorted(statements()))
def test_every_statement_can_be_prepared(connection: apsw.Connection, name: str) -> None:
    """Each statement fits the tables, and those of the daily work find their rows by a key."""
    for sql in statements()[name].split(";\n"):
        bindings = dict.fromkeys(re.findall(r":(\w+)", sql), 1) or (1,) * sql.count("?")
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", bindings)]
        if name not in WALKS | ERASES | VERIFIES and not sql.lstrip().startswith("DELETE"):
            assert not [step for step in plan if step.startswith("SCAN") and "CONSTANT ROW" not in step], plan
