"""The SQL of the store, from the files beside this module, read once."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

from palaver.store.activity import SLACK_SECONDS
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


# https://github.com/postgres/postgres/blob/master/src/include/catalog/pg_type.dat: the ids of built-in types never change.
_INT8, _INT4, _TEXT, _FLOAT8, _BYTEA = 20, 23, 25, 701, 17


def _as_text(value: object) -> bytes:
    return str(value).encode()


def _as_text_or_none(value: str | None) -> bytes | None:
    return None if value is None else value.encode()


def _as_float(value: float) -> bytes:
    return repr(value).encode()


def _as_bytes(value: bytes) -> bytes:
    return value


class Value(NamedTuple):
    """How a value is given to libpq.

    Attributes:
        type: The object id of its type.
        encode: What makes bytes of it; None for NULL.
    """

    type: int
    encode: Callable[[Any], bytes | None]


_LARGE, _NUMBER, _TIME = Value(_INT8, _as_text), Value(_INT4, _as_text), Value(_FLOAT8, _as_float)
_WORD, _WORD_OR_NULL, _BYTES = Value(_TEXT, str.encode), Value(_TEXT, _as_text_or_none), Value(_BYTEA, _as_bytes)

ENTRY: Mapping[str, Value] = MappingProxyType(
    {
        "dialog_no": _LARGE,
        "after": _NUMBER,
        "after_digest": _BYTES,
        "turn_head": _NUMBER,
        "view_base": _NUMBER,
        "open_turn": _NUMBER,
        "kind": _WORD,
        "role": _WORD,
        "number": _NUMBER,
        "calls": _WORD_OR_NULL,
        "open_calls": _WORD_OR_NULL,
        "response": _WORD,
        "at": _TIME,
        "size": _LARGE,
        "total": _LARGE,
        "digest": _BYTES,
        "body": _BYTES,
    }
)
"""The values of the statements that write an entry, in their order."""

_ENCODERS = tuple(value.encode for value in ENTRY.values())


def encoded(values: Row) -> list[Any]:
    """Give the values of an entry as libpq takes them: bytes in binary form, all others as text, None for NULL."""
    return [encode(value) for encode, value in zip(_ENCODERS, values, strict=True)]


class Numbered(NamedTuple):
    """A statement that writes an entry, as libpq takes it: with numbers for the values of `ENTRY`, all of which it is given.

    Attributes:
        name: Its name as a prepared statement.
        sql: Its text.
        types: The object ids of the values' types.
        formats: 1 for a value in binary form, 0 for one as text.
    """

    name: bytes
    sql: bytes
    types: list[int]
    formats: list[int]


@cache
def numbered(name: str, then: str = "") -> Numbered:
    """Give a named statement that writes an entry as libpq takes it; with the name of what follows it, both as one statement."""
    written = f"WITH placed AS ({statements()[name]}) {statements()[then]}" if then else statements()[name]
    places = {"slack": repr(SLACK_SECONDS)} | {value: f"${place}" for place, value in enumerate(ENTRY, 1)}
    sql = _VALUE.sub(lambda found: places[found[1]], written).replace("%%", "%")
    types = [value.type for value in ENTRY.values()]
    return Numbered(f"palaver_{name}_{then}".encode(), sql.encode(), types, [int(one == _BYTEA) for one in types])
