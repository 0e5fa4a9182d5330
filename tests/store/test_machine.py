"""Random histories of both stores, against an oracle of plain dicts and lists."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import settings

from palaver.testing.store_laws import Backend
from palaver.testing.store_machine import StoreMachine
from tests.store.backends import MemoryBackend, SqliteBackend


class MemoryMachine(StoreMachine):
    """The reference."""

    def place(self) -> Backend:
        """Give a place in memory."""
        return MemoryBackend()


class SqliteMachine(StoreMachine):
    """One file, two handles."""

    def place(self) -> Backend:
        """Give a place in a folder of its own."""
        self.folder = TemporaryDirectory(prefix="palaver-machine-")
        return SqliteBackend(Path(self.folder.name) / "store.db")

    def teardown(self) -> None:
        """Compare, close, and take the folder away."""
        try:
            super().teardown()
        finally:
            self.folder.cleanup()


TestMemoryMachine = MemoryMachine.TestCase
TestSqliteMachine = SqliteMachine.TestCase

# A step opens files and flushes them, so a third of the usual number of histories: a few seconds here, hundreds of histories in soak.
_FEWER = settings(max_examples=max(1, settings.default.max_examples // 3) if settings.default else 1)
TestSqliteMachine.settings = _FEWER
