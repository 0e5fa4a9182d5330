"""The SQL of the store, from the files beside this module: named statements, and migrations in their order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType
from typing import Any, NamedTuple

Row = tuple[Any, ...]
"""A row as PostgreSQL gives it: what each column holds is known where its statement is used."""

_NAMED = re.compile(r"^-- name: (?P<name>\w+)\n(?P<sql>.*?)(?=^-- name: |\Z)", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"^--.*\n", re.MULTILINE)
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


def _sql_files(folder: str) -> Iterator[Traversable]:
    """Give the SQL files of a folder of this package, by name."""
    found = (entry for entry in files(__package__).joinpath(folder).iterdir() if entry.name.endswith(".sql"))
    return iter(sorted(found, key=lambda entry: entry.name))


@cache
def statements() -> Mapping[str, str]:
    """Give the named statements, read once, without their comments: a per cent sign in one would be a placeholder."""
    return MappingProxyType(
        {
            found["name"]: _COMMENT.sub("", found["sql"]).strip().rstrip(";")
            for entry in _sql_files("sql")
            for found in _NAMED.finditer(entry.read_text("utf-8"))
        }
    )


@cache
def migrations() -> tuple[Migration, ...]:
    """Give the migrations, oldest first, read once."""
    named = ((entry, _NUMBERED.match(entry.name)) for entry in _sql_files("migrations"))
    return tuple(
        Migration(int(found["version"]), entry.name, entry.read_text("utf-8")) for entry, found in named if found
    )
