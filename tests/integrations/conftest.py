"""Every store that an adapter can lie on."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest

from palaver.store import MemoryStore, SqliteStore, Store
from palaver.store.postgres import PostgresStore
from tests.store.postgres_backend import emptied


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def new_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Store]]:
    """Return a function that gives an empty store; the one that it gave before is not used any more."""
    numbers = count()
    with ExitStack() as stack:

        def make() -> Store:
            store: Store
            if request.param == "memory":
                store = MemoryStore()
            elif request.param == "sqlite":
                store = SqliteStore(tmp_path / f"{next(numbers)}.db")
            else:
                store = PostgresStore(emptied(request.getfixturevalue("postgres_server")))
            stack.callback(store.close)
            return store

        yield make


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Return an empty store in a file: what an adapter does with a store's entries does not depend on which one it is."""
    with SqliteStore(tmp_path / "store.db") as made:
        yield made


@pytest.fixture(params=["sqlite", "postgres"])
def two_stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Store, Store]]:
    """Return one store through two connections, as two processes have it."""
    if request.param == "sqlite":
        with SqliteStore(tmp_path / "both.db") as one, SqliteStore(tmp_path / "both.db") as other:
            yield one, other
        return
    address = emptied(request.getfixturevalue("postgres_server"))
    with PostgresStore(address) as one, PostgresStore(address) as other:
        yield one, other
