"""The partitions of the tables that grow.

A session's partition is the last four digits of its id, modulo their number, and its dialogs' ids end in the same digits. So whoever has an id
names the partition's table, and the server plans for that one: found by a condition, the planner would look at all of them each time. The number
of a session begins with that of its partition, so the server checks the place of each row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import product

from palaver.store.sql.database import Rows

MOST_PARTITIONS = 256

PARTED = ("entries", "payload_refs", "texts")
"""The tables that grow with what is said."""

_BITS = 40  # of a session's number, for the sessions of a partition: 10 ** 12
_DIGITS = re.compile(r"[0-9a-f]{32}\Z")
_TABLE = re.compile(rf"^(CREATE TABLE ({'|'.join(PARTED)}) \(\n.*?^\));", re.MULTILINE | re.DOTALL)
_NUMBERING = """
CREATE FUNCTION number_session() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  NEW.session_no := NEW.session_no + (((('x' || right(NEW.session_id, 4))::bit(16)::integer % {parts})::bigint) << {bits});
  RETURN NEW;
END $$;
CREATE TRIGGER number_session BEFORE INSERT ON sessions FOR EACH ROW EXECUTE FUNCTION number_session();
"""


def part_of(values: Mapping[str, object], parts: int) -> str:
    """Return how the names of the tables end that a statement with these values is about: those of a partition; empty for all."""
    named = values.get("dialog_id") or values.get("session_id")
    if isinstance(named, str):
        return _end(int(named[-4:], 16) % parts) if _DIGITS.match(named) else ""
    number = values.get("session_no")
    return _end(number >> _BITS) if isinstance(number, int) else ""


def _end(part: int) -> str:
    return f"_{part:03}"


def in_parts(migration: str, parts: int) -> str:
    """Return the statements of a migration that make the tables that grow of so many partitions."""
    partitions = list(_expected(parts))

    def made(table: re.Match[str]) -> str:
        own = (
            f"CREATE TABLE {name} PARTITION OF {of} {bounds};\n" for of, name, bounds in partitions if of == table[2]
        )
        return f"{table[1]} PARTITION BY RANGE (session_no);\n{''.join(own)}"

    parted, count = _TABLE.subn(made, migration)
    return parted + _NUMBERING.format(parts=parts, bits=_BITS) if count else migration


def _expected(parts: int) -> Iterator[tuple[str, str, str]]:
    """Return table, name and bounds of the partitions, as PostgreSQL writes them."""
    for table, part in product(PARTED, range(parts)):
        first, stop = part << _BITS, part + 1 << _BITS
        yield table, f"{table}{_end(part)}", f"FOR VALUES FROM ('{first}') TO ('{stop}')"


def faults(rows: Rows, schema: str, parts: int) -> Iterator[tuple[str, str, str]]:
    """Return the partitions that are not what they should be, and the sessions that are not in theirs."""
    there = set(rows.all("partitions", schema=schema))
    for table, name, bounds in sorted(there ^ set(_expected(parts))):
        yield (
            name,
            "wrong_schema",
            f"This partition of {table} {'is too many' if (table, name, bounds) in there else 'is missing'}: {bounds}.",
        )
    for (session_id,) in rows.all("sessions_strayed", partitions=parts, bits=_BITS):
        yield session_id, "wrong_schema", "The session lies in another partition than its id says."
