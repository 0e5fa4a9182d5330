"""The laws of a store over every store."""

from pathlib import Path

import pytest

from palaver.store import Durability
from palaver.testing.store_laws import Backend, StoreLaws
from tests.postgres import Server
from tests.store.backends import MemoryBackend, RoutedBackend, SqliteBackend
from tests.store.postgres_backend import PostgresBackend


class TestMemoryStore(StoreLaws):
    """The reference."""

    @pytest.fixture
    def backend(self) -> Backend:
        """Return a store in memory."""
        return MemoryBackend()


class TestSqliteStore(StoreLaws):
    """One file, flushed at every write."""

    @pytest.fixture
    def backend(self, tmp_path: Path) -> Backend:
        """Return a store in a new file."""
        return SqliteBackend(tmp_path / "store.db", Durability.FULL)


class TestPostgresStore(StoreLaws):
    """One schema of a server."""

    @pytest.fixture
    def backend(self, postgres_server: Server) -> Backend:
        """Return a store in an empty schema."""
        return PostgresBackend(postgres_server)


class TestPartitionedStore(StoreLaws):
    """One schema of a server, whose tables have partitions."""

    @pytest.fixture
    def backend(self, postgres_server: Server) -> Backend:
        """Return a store in an empty schema."""
        return PostgresBackend(postgres_server, more="&partitions=3")


class TestRoutedStore(StoreLaws):
    """Three files as one store."""

    @pytest.fixture
    def backend(self, tmp_path: Path) -> Backend:
        """Return a store in new files."""
        return RoutedBackend([SqliteBackend(tmp_path / f"{number}.db") for number in range(3)])


class TestRoutedPostgresStore(StoreLaws):
    """Two schemas of a server as one store, one of them in partitions."""

    @pytest.fixture
    def backend(self, postgres_server: Server) -> Backend:
        """Return a store in empty schemas."""
        return RoutedBackend([PostgresBackend(postgres_server, more=more) for more in ("", "&partitions=3")])
