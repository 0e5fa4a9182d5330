"""Random histories of every store, against an oracle of plain dicts and lists."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from palaver.testing.store_laws import Backend
from tests.postgres import Server
from tests.store.backends import MemoryBackend, SqliteBackend
from tests.store.machine import StoreMachine
from tests.store.postgres_backend import PostgresBackend


class MemoryMachine(StoreMachine):
    """The reference."""

    def place(self) -> Backend:
        """Return a place in memory."""
        return MemoryBackend()


class SqliteMachine(StoreMachine):
    """One file, two handles."""

    def place(self) -> Backend:
        """Return a place in a folder of its own."""
        self.folder = TemporaryDirectory(prefix="palaver-machine-")
        return SqliteBackend(Path(self.folder.name) / "store.db")

    def teardown(self) -> None:
        """Compare, close, and remove the folder."""
        try:
            super().teardown()
        finally:
            self.folder.cleanup()


TestMemoryMachine = MemoryMachine.TestCase
TestSqliteMachine = SqliteMachine.TestCase

# A step opens files and flushes them, or asks a server, so there are fewer histories: some seconds here, hundreds of histories in soak.
_USUAL = settings().max_examples
TestSqliteMachine.settings = settings(max_examples=max(1, _USUAL // 6))


def test_postgres_machine(postgres_server: Server) -> None:
    """The same over a server, whose fixture a class of hypothesis cannot take."""

    class PostgresMachine(StoreMachine):
        def place(self) -> Backend:
            return PostgresBackend(postgres_server)

    run_state_machine_as_test(PostgresMachine, settings=settings(max_examples=max(1, _USUAL // 16)))
