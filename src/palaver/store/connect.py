"""From an address to a store."""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

from palaver.errors import InvalidInput, MissingExtra, MissingFile
from palaver.store.memory import MemoryStore
from palaver.store.protocol import Durability, Store
from palaver.store.sqlite import SqliteStore

StoreLike: TypeAlias = Store | str | os.PathLike[str]
"""A store, or the address of one."""

_POSTGRES = {"postgres", "postgresql"}
_MEMORY = {"memory:", ":memory:"}  # SQLite spells it the second way; nobody means a file of that name


def open_store(
    url: str, *, create: bool = True, read_only: bool = False, durability: Durability = Durability.FULL
) -> Store:
    """Open the store at an address.

    Args:
        url: `memory:`, `sqlite:///absolute/path`, the path of a file, where `~` is the home folder, or
            `postgresql://user@host/database?schema=name`, which needs the extra `postgres`.
        create: False to raise when nothing is there.
        read_only: True to refuse every write.
        durability: What an acknowledged write survives; a store in memory has its own.

    Raises:
        InvalidInput: The address names no kind of store.
        MissingExtra: The extra `postgres` is needed and not installed.
        MissingFile: Nothing is there, and `create` is False.
        StoreError: What is there cannot be opened.
    """
    if url in _MEMORY:
        if not create:
            raise MissingFile(url, what="store", hint="A store in memory is always a new one.")
        return MemoryStore()
    if url.partition(":")[0] in _POSTGRES:
        return _postgres(url, durability, read_only=read_only, create=create)
    return SqliteStore(_file(url), durability, read_only=read_only, create=create)


def opened_store(store: StoreLike | None, *, create: bool) -> tuple[Store, bool]:
    """Return a store, and whether it was opened here, so that the caller closes it; None is a new one in memory.

    Raises:
        MissingFile: Nothing is at the address, and `create` is False.
        StoreError: What is there cannot be opened.
    """
    if store is None or isinstance(store, str | os.PathLike):
        return open_store("memory:" if store is None else os.fspath(store), create=create), True
    return store, False


def _postgres(url: str, durability: Durability, *, read_only: bool, create: bool) -> Store:
    """Open a store in PostgreSQL. psycopg takes as long to import as everything else together, so it is imported here."""
    if find_spec("psycopg") is None:
        raise MissingExtra("A store in PostgreSQL", "postgres", package="psycopg")
    store: Store = import_module("palaver.store.postgres").PostgresStore(
        url, durability, read_only=read_only, create=create
    )
    return store


def _file(url: str) -> Path:
    scheme, separator, rest = url.partition(":")
    if not separator or "/" in scheme or len(scheme) == 1:
        if not url.strip():
            raise InvalidInput("A store needs an address: a file's path, sqlite:///absolute/path or memory:.")
        return Path(url).expanduser()
    if scheme != "sqlite":
        raise InvalidInput(
            f"{url!r} is not the address of a store.",
            hint="Give a file's path, sqlite:///absolute/path, postgresql://host/database or memory:.",
        )
    parts = urlsplit(url)
    path = unquote(parts.path)
    if parts.netloc or not path.startswith("/") or path == "/" or not rest.startswith("///"):
        raise InvalidInput(f"{url!r} does not name a file.", hint="An address looks like sqlite:///absolute/path.")
    return Path(path)
