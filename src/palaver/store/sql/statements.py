"""The SQL of a store, from the files of its package: named statements, and migrations in their order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import product
from typing import NamedTuple

from palaver.errors import StoreError
from palaver.log import Header

_NAMED = re.compile(r"^-- name: (?P<name>\w+)\n(?P<sql>.*?)(?=^-- name: |\Z)", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"^--.*\n", re.MULTILINE)
_NUMBERED = re.compile(r"(?P<version>\d{4})_\w+\.sql\Z")

_HEADER = {
    "header": ", ".join(f"e.{name}" for name in (*Header._fields, "check_sum")),
    "names": ", ".join(Header._fields),
    "values": ", ".join(f":{name}" for name in Header._fields),
}


_OWN = "({e}.session_no, {e}.dialog_no) = (SELECT session_no, dialog_no FROM {s}dialogs WHERE dialog_id = {id})"
"""The condition of a dialog's own entries, by its id: its numbers need not be known."""

_IDS = {"own": ":dialog_id", "root": "(SELECT root FROM {s}sessions WHERE session_id = :session_id)"}


class Migration(NamedTuple):
    """One numbered change of the schema.

    Attributes:
        version: The format that the store has afterwards; the first is 1, without gaps.
        name: The file's name.
        sql: Its statements.
    """

    version: int
    name: str
    sql: str

    @property
    def sha256(self) -> str:
        """SHA-256 of the statements, hexadecimal; the store records it."""
        return sha256(self.sql.encode()).hexdigest()


def statements(package: str, words: Mapping[str, str]) -> dict[str, str]:
    """Return the statements that all stores share and those of a package, by name.

    Args:
        package: The package whose folder `queries` has more statements.
        words: The meaning of `{word}` in this database.
    """
    known = {**_HEADER, **words}
    for (name, dialog_id), alias in product(_IDS.items(), ("e", "f")):
        known[f"{name}_{alias}"] = _OWN.replace("{id}", dialog_id).replace("{e}", alias).replace("{s}", words["s"])
    texts = {}
    for folder in (files(__package__), files(package)):
        for file in _sql_files(folder.joinpath("queries")):
            for match in _NAMED.finditer(file.read_text("utf-8")):
                sql = re.sub(r"\{(\w+)\}", lambda word: known[word[1]], _COMMENT.sub("", match["sql"]))
                texts[match["name"]] = sql.strip().rstrip(";")
    return texts


def migrations(package: str) -> tuple[Migration, ...]:
    """Return the migrations in the folder `migrations` of a package, oldest first."""
    named = ((file, _NUMBERED.match(file.name)) for file in _sql_files(files(package).joinpath("migrations")))
    return tuple(Migration(int(found["version"]), file.name, file.read_text("utf-8")) for file, found in named if found)


def check_format(place: str, version: int, newest: int, *, writable: bool) -> bool:
    """Return whether a store must be upgraded.

    Raises:
        StoreError: A later palaver wrote it, or it must be upgraded and was opened read-only.
    """
    if version > newest:
        raise StoreError(
            f"{place} has format {version}; this palaver reads up to {newest}.",
            reason="too_new",
            hint="Install a newer palaver. Nothing was changed.",
        )
    if version < newest and not writable:
        raise StoreError(
            f"{place} has format {version}; reading needs format {newest}.",
            reason="read_only",
            hint="Open it once for writing, which upgrades it.",
        )
    return version < newest


def check_keys(place: str, *, encrypted: bool, keys: bool) -> None:
    """Refuse to open an encrypted store without keys, and to write in clear where somebody gave some.

    Raises:
        StoreError: It is encrypted, and there are no keys (`no_key`); or there are, and it is not (`not_encrypted`).
    """
    if encrypted and not keys:
        raise StoreError(
            f"{place} is encrypted.",
            reason="no_key",
            hint="Open it with its keys: open_store(url, keys=...). Commands take them from PALAVER_KEYS and PALAVER_PASSPHRASE_FILE.",
        )
    if keys and not encrypted:
        raise StoreError(
            f"{place} is not encrypted, and was opened with keys.",
            reason="not_encrypted",
            hint="Whether a store is encrypted is decided when it is made. Copy it into a new one with keys.",
        )


KEPT = ("sessions", "dialogs", "headers", "entries", "bodies", "blobs", "sources")
"""Tables whose content cannot be derived again, as far as a database has them."""


def require_kept(migration: Migration, before: Mapping[str, int], after: Mapping[str, int]) -> None:
    """Refuse to commit a migration that did not keep every row; called before the commit.

    Raises:
        StoreError: Rows are missing, or there are more.
    """
    wrong = {name: (count, after.get(name)) for name, count in before.items() if after.get(name) != count}
    if wrong:
        told = ", ".join(f"{name} {was} before and {now or 0} after" for name, (was, now) in wrong.items())
        raise StoreError(
            f"Migration {migration.name} would lose rows: {told}. It was undone.",
            hint="Use the palaver that wrote the store, and report this.",
        )


def _sql_files(folder: Traversable) -> Iterator[Traversable]:
    found = (file for file in folder.iterdir() if file.name.endswith(".sql"))
    yield from sorted(found, key=lambda file: file.name)
