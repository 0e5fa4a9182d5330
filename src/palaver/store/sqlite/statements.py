"""The SQL of the store, from the files beside this module, read once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from palaver.store.statements import Migration, migrations_in, named_in

Row = tuple[Any, ...]
"""A row as SQLite gives it: what each column holds is known where its statement is used."""


@cache
def statements() -> Mapping[str, str]:
    """Give the named statements."""
    return MappingProxyType(dict(named_in(__package__)))


@cache
def migrations() -> tuple[Migration, ...]:
    """Give the migrations, oldest first."""
    return migrations_in(__package__)
