"""The SQL of the store, from the files beside this module, read once."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

from palaver.store.statements import Migration, migrations_in, named_in

Row = tuple[Any, ...]
"""A row as PostgreSQL gives it: what each column holds is known where its statement is used."""

_COMMENT = re.compile(r"^--.*\n", re.MULTILINE)
_VALUE = re.compile(r"%\((\w+)\)s")


@cache
def statements() -> Mapping[str, str]:
    """Give the named statements without their comments: a per cent sign in one would be a placeholder."""
    named = named_in(__package__)
    return MappingProxyType({name: _COMMENT.sub("", sql).strip().rstrip(";") for name, sql in named})


@cache
def migrations() -> tuple[Migration, ...]:
    """Give the migrations, oldest first."""
    return migrations_in(__package__)


class Numbered(NamedTuple):
    """A statement as libpq takes it.

    Attributes:
        name: Its name as a prepared statement.
        sql: Its text, with numbers for the values.
        types: The object ids of the values' types.
        formats: 1 for a value in binary form, 0 for one as text.
        parameters: The name of each value, and what encodes it.
    """

    name: bytes
    sql: bytes
    types: list[int]
    formats: list[int]
    parameters: tuple[tuple[str, Callable[[Any], bytes | None]], ...]


def _as_text(value: object) -> bytes:
    return str(value).encode()


def _as_text_or_none(value: object) -> bytes | None:
    return None if value is None else str(value).encode()


def _as_float(value: float) -> bytes:
    return repr(value).encode()


def _as_bytes(value: bytes) -> bytes:
    return value


# https://github.com/postgres/postgres/blob/master/src/include/catalog/pg_type.dat: the ids of built-in types never change.
_INT8, _INT4, _TEXT, _FLOAT8, _BYTEA = 20, 23, 25, 701, 17
_LARGE = {"dialog_no", "size", "total"}
_TEXTS = {"kind", "role", "response"}
_MAYBE = {"calls", "open_calls"}
_BINARY = {"after_digest", "digest", "body"}


def _encoding(name: str) -> tuple[int, int, Callable[[Any], bytes | None]]:
    """Give the type of a value of an entry by its name, its format, and what encodes it."""
    if name in _BINARY:
        return _BYTEA, 1, _as_bytes
    if name == "at":
        return _FLOAT8, 0, _as_float
    if name in _MAYBE:
        return _TEXT, 0, _as_text_or_none
    return (_TEXT if name in _TEXTS else _INT8 if name in _LARGE else _INT4), 0, _as_text


@cache
def numbered(name: str) -> Numbered:
    """Give a named statement that writes an entry as libpq takes it."""
    names: dict[str, int] = {}

    def number(found: re.Match[str]) -> str:
        return f"${names.setdefault(found[1], len(names) + 1)}"

    sql = _VALUE.sub(number, statements()[name]).replace("%%", "%")
    encodings = [_encoding(one) for one in names]
    return Numbered(
        name=f"palaver_{name}".encode(),
        sql=sql.encode(),
        types=[one[0] for one in encodings],
        formats=[one[1] for one in encodings],
        parameters=tuple((one, encoding[2]) for one, encoding in zip(names, encodings, strict=True)),
    )
