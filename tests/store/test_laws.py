"""Every law of a store, over both stores."""

from pathlib import Path

import pytest

from palaver.store import Durability
from palaver.testing.store_laws import Backend, StoreLaws
from palaver.testing.store_laws.entries import AppendLaws
from palaver.testing.store_laws.life import LifeLaws, TogetherLaws
from tests.store.backends import MemoryBackend, SqliteBackend


class TestMemoryStore(StoreLaws):
    """The reference."""

    @pytest.fixture
    def backend(self) -> Backend:
        """Give a place in memory."""
        return MemoryBackend()


class TestSqliteStore(StoreLaws):
    """One file, flushed at every write."""

    @pytest.fixture
    def backend(self, tmp_path: Path) -> Backend:
        """Give a place for a file."""
        return SqliteBackend(tmp_path / "store.db", Durability.FULL)


class TestSqliteStoreNormal(AppendLaws, LifeLaws, TogetherLaws):
    """One file, flushed at checkpoints: the laws of writing, which is where it differs."""

    @pytest.fixture
    def backend(self, tmp_path: Path) -> Backend:
        """Give a place for a file."""
        return SqliteBackend(tmp_path / "store.db", Durability.NORMAL)
