"""Filling a schema of PostgreSQL with the rows that the store itself would write, by COPY: for sizes that take hours one write at a time."""

from __future__ import annotations

import multiprocessing
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any, LiteralString, NamedTuple, TypeAlias

from palaver.log import NOTHING, Draft, Node, next_header
from palaver.session import searchable
from palaver.store import SessionRecord
from palaver.store.records import checked
from palaver.store.text import composed

if TYPE_CHECKING:
    import psycopg

_STEP = 10_000
_TABLES: Mapping[LiteralString, LiteralString] = {
    "sessions": "session_no, session_id, name, subject, workdir, created_at, trashed_at, root, metadata",
    "activity": "session_no, at",
    "dialogs": "dialog_no, dialog_id, session_no, place, owner, parent_id, ranges, split_point, last_n, first_k, inherited, created_at,"
    " relation, metadata",
    "entries": "dialog_no, seq, turn_head, view_base, open_turn, kind, role, number, calls, open_calls, response, at, size, total, digest, body",
    "indexed": "dialog_no, upto",
    "texts": "dialog_no, seq, deflated",
    "tokens": "dialog_no, seq, part, split, found",
}


class Made(NamedTuple):
    """A session of one dialog, and what is said in it."""

    session: SessionRecord
    dialog: Node
    said: tuple[Draft, ...]


Make: TypeAlias = Callable[[int, int], Iterable[Made]]


def fill(url: str, make: Make, count: int, workers: int = 1) -> None:
    """Fill an empty schema, and let the server look at it as it does by itself after a while (VACUUM, ANALYZE).

    The numbers are those that the store would give: one after the other. Secondary indexes are taken away meanwhile, and made again.

    Args:
        url: The address of the store, whose schema is made.
        make: Gives the sessions from a place (inclusive) to another (exclusive); with several workers it is called in processes of their own.
        count: How many sessions.
        workers: How many processes make rows.
    """
    with closing(_connected(url)) as connection:
        connection.execute("SET maintenance_work_mem TO '512MB'")
        indexes = connection.execute(
            "SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index JOIN pg_class AS c ON c.oid = indexrelid"
            " WHERE c.relnamespace = current_schema()::regnamespace AND NOT indisunique"
        ).fetchall()
        for name, _definition in indexes:
            connection.execute(f"DROP INDEX {name}")
        steps = range(0, count, _STEP)
        with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
            work = map if workers == 1 else pool.map
            list(work(partial(_step, url, make, count), steps))
        for table in ("sessions", "dialogs"):
            connection.execute(
                "SELECT setval(pg_get_serial_sequence(%s, %s), %s)", (table, f"{table.removesuffix('s')}_no", count)
            )
        for _name, definition in indexes:
            connection.execute(definition)
        connection.execute("VACUUM (ANALYZE)")


def _connected(url: str) -> psycopg.Connection[Any]:
    from psycopg import connect  # noqa: PLC0415 - an extra that this environment may lack

    from palaver.store.postgres.address import address  # noqa: PLC0415 - the same

    where = address(url)
    return connect(where.conninfo, autocommit=True, options=f"-csearch_path={where.schema} -csynchronous_commit=off")


def _step(url: str, make: Make, count: int, start: int) -> None:
    """Copy some of the sessions."""
    stop = min(start + _STEP, count)
    rows: dict[LiteralString, list[tuple[Any, ...]]] = {table: [] for table in _TABLES}
    for number, one in enumerate(make(start, stop), start + 1):
        for table, row in _rows(number, one):
            rows[table].append(row)
    with closing(_connected(url)) as connection, connection.transaction(), connection.cursor() as cursor:
        for table, waiting in rows.items():
            with cursor.copy(f"COPY {table} ({_TABLES[table]}) FROM STDIN") as copy:
                for row in waiting:
                    copy.write_row(row)


def _rows(number: int, made: Made) -> Iterator[tuple[LiteralString, tuple[Any, ...]]]:
    """Give the rows of a session, whose number and whose dialog's are the same, by the store's own makers of rows."""
    from palaver.store.postgres import entries, search, sessions, tree  # noqa: PLC0415 - psycopg may be missing
    from palaver.store.postgres.statements import ENTRY  # noqa: PLC0415 - as above

    record = sessions._bindings(checked(made.session))  # noqa: SLF001 - these rows must be those
    yield "sessions", (number, *(record[name] for name in _names("sessions")[1:]))
    node = tree._bindings(checked(made.dialog)) | {"session_no": number}  # noqa: SLF001 - as above
    yield "dialogs", (number, *(node[name] for name in _names("dialogs")[1:]))
    last = NOTHING
    for draft in made.said:
        before, last = last, next_header(draft, last)
        row = dict(zip(ENTRY, entries._values(number, before, last, bytes(draft.body)), strict=True))  # noqa: SLF001 - as above
        yield "entries", (number, last.seq, *(row[name] for name in _names("entries")[2:]))
        said = composed(searchable(draft.kind, bytes(draft.body)))
        yield "texts", (number, last.seq, zlib.compress(said.encode("utf-8", "replace"), search._DEFLATE_LEVEL))  # noqa: SLF001 - as above
        batch = search._Batch(number, number, 0, 0, [])  # noqa: SLF001 - as above
        for found in search._rows(batch, last.seq, said):  # noqa: SLF001 - as above
            yield "tokens", found
    yield "indexed", (number, last.seq + 1)
    yield "activity", (number, made.session.created_at)  # all that is said is said within the slack


def _names(table: LiteralString) -> list[str]:
    return _TABLES[table].split(", ")


def differing(one: str, other: str) -> list[str]:
    """Give the tables in which two schemas do not hold the same rows."""
    from psycopg import connect, sql  # noqa: PLC0415 - as above

    from palaver.store.postgres.address import address  # noqa: PLC0415 - as above

    schemas = (address(one).schema, address(other).schema)
    query = sql.SQL(
        "(SELECT {0} FROM {1} EXCEPT SELECT {0} FROM {2}) UNION ALL (SELECT {0} FROM {2} EXCEPT SELECT {0} FROM {1}) LIMIT 1"
    )
    with closing(connect(address(one).conninfo, autocommit=True)) as connection:
        return [
            table
            for table, columns in _TABLES.items()
            if connection.execute(
                query.format(sql.SQL(columns), *(sql.Identifier(schema, table) for schema in schemas))
            ).fetchall()
        ]
