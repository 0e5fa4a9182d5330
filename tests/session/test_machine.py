"""Random histories of sessions, with two writers and deaths in them, over all stores: the twelve laws as one machine."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from palaver.store.postgres import PostgresStore
from palaver.testing.session_machine import SessionMachine
from palaver.testing.session_place import MemoryPlace, Place, SharedPlace, SqlitePlace
from tests import postgres
from tests.store.postgres_backend import emptied


def histories(share: int, least: int, steps: int = 25) -> settings:
    """Give so large a share of the usual number of histories: few here, many in soak."""
    usual = settings().max_examples
    return settings(
        max_examples=max(usual // share, least),
        stateful_step_count=steps,
        suppress_health_check=list(HealthCheck),
        deadline=None,
    )


def test_any_history_in_memory() -> None:
    """Laws 1 to 12 over the reference store."""

    class Machine(SessionMachine):
        def place(self) -> Place:
            return MemoryPlace()

    run_state_machine_as_test(Machine, settings=histories(8, 8))


def test_any_history_in_a_file_whose_machine_dies() -> None:
    """Laws 1 to 12 over SQLite, on a disk whose power is cut anywhere in the last operation."""

    class Machine(SessionMachine):
        def place(self) -> Place:
            self.folder = TemporaryDirectory(prefix="palaver-sessions-")
            (Path(self.folder.name) / "0").mkdir()
            return SqlitePlace(Path(self.folder.name))

        def teardown(self) -> None:
            try:
                super().teardown()
            finally:
                self.folder.cleanup()

    run_state_machine_as_test(Machine, settings=histories(12, 6))


def test_any_history_on_a_server(postgres_server: postgres.Server) -> None:
    """Laws 1 to 12 over PostgreSQL, with processes that die in the middle of what they do."""

    class Machine(SessionMachine):
        def place(self) -> Place:
            url = emptied(postgres_server)
            return SharedPlace(lambda: PostgresStore(url))

    run_state_machine_as_test(Machine, settings=histories(20, 4))
