"""The SQL of a store, from the files of its package: named statements, and migrations in their order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

from palaver.errors import StoreError

_NAMED = re.compile(r"^-- name: (?P<name>\w+)\n(?P<sql>.*?)(?=^-- name: |\Z)", re.MULTILINE | re.DOTALL)
_NUMBERED = re.compile(r"(?P<version>\d{4})_\w+\.sql\Z")


class Migration(NamedTuple):
    """One numbered change of the schema.

    Attributes:
        version: The format that the store has afterwards; the first is 1, and no number is left out.
        name: The file's name.
        sql: Its statements.
    """

    version: int
    name: str
    sql: str

    @property
    def sha256(self) -> str:
        """Give the digest of the statements, hexadecimal: it is recorded in the store."""
        return sha256(self.sql.encode()).hexdigest()


def require_kept(migration: Migration, before: Mapping[str, int], after: Mapping[str, int]) -> None:
    """Insist that a migration kept every row of what was there; called before it is committed.

    Args:
        migration: The migration that was done and is not committed.
        before: How many rows each table had before.
        after: How many it has now.

    Raises:
        StoreError: Some are missing, or there are more; what was done is to be undone.
    """
    wrong = {name: (count, after.get(name)) for name, count in before.items() if after.get(name) != count}
    if wrong:
        told = ", ".join(f"{name} {was} before and {now or 0} after" for name, (was, now) in wrong.items())
        raise StoreError(
            f"Migration {migration.name} would not keep what is there: {told}. It was undone.",
            hint="Use the palaver that wrote the store, and report this.",
        )


def named_in(package: str) -> Iterator[tuple[str, str]]:
    """Give the name and the text of each statement in the folder `sql` of a package, comments included."""
    for entry in _sql_files(package, "sql"):
        for found in _NAMED.finditer(entry.read_text("utf-8")):
            yield found["name"], found["sql"].strip()


def migrations_in(package: str) -> tuple[Migration, ...]:
    """Give the migrations in the folder `migrations` of a package, oldest first."""
    named = ((entry, _NUMBERED.match(entry.name)) for entry in _sql_files(package, "migrations"))
    return tuple(
        Migration(int(found["version"]), entry.name, entry.read_text("utf-8")) for entry, found in named if found
    )


def _sql_files(package: str, folder: str) -> list[Traversable]:
    """Give the SQL files of a folder of a package, by name."""
    found = (entry for entry in files(package).joinpath(folder).iterdir() if entry.name.endswith(".sql"))
    return sorted(found, key=lambda entry: entry.name)
