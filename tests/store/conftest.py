"""Stores of every kind for the tests of this room."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from palaver.store import Store
from palaver.testing.store_laws import Backend, Begun, begin
from tests.damage.history import History, history
from tests.postgres import Server
from tests.store.backends import MemoryBackend, SqliteBackend
from tests.store.postgres_backend import PostgresBackend

KINDS = ("memory", "sqlite", "postgres")


@pytest.fixture
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], Backend]:
    """Return what makes an empty place of a kind; in PostgreSQL it is the same one each time."""
    numbers = count()

    def made(kind: str) -> Backend:
        if kind == "memory":
            return MemoryBackend()
        if kind == "sqlite":
            return SqliteBackend(tmp_path / f"store-{next(numbers)}.db")
        server: Server = request.getfixturevalue("postgres_server")
        return PostgresBackend(server)

    return made


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """Return each kind of store."""
    each: str = request.param
    return each


@pytest.fixture
def backend(make: Callable[[str], Backend], kind: str) -> Backend:
    """Return a place of each kind."""
    return make(kind)


@pytest.fixture
def store(backend: Backend) -> Iterator[Store]:
    """Return an empty store of each kind."""
    store = backend.open()
    yield store
    store.close()


@pytest.fixture
def begun(store: Store) -> Begun:
    """Return a store of each kind with one dialog."""
    return begin(store)


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of a store that is not there yet, of each kind that outlives a process."""
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    server: Server = request.getfixturevalue("postgres_server")
    return server.url()


@pytest.fixture(scope="session")
def known() -> History:
    """Return a history with one of everything that writes."""
    return history()


@pytest.fixture
def quick_path() -> Iterator[Path]:
    """Return a folder in memory where there is such: what is lost is simulated, and flushing a real disk only takes time."""
    memory = Path("/dev/shm")  # noqa: S108 - the folder in it is new
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)
