"""Random histories of the PostgreSQL store, against an oracle of plain dicts and lists."""

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from palaver.testing.store_laws import Backend
from palaver.testing.store_machine import StoreMachine
from tests import postgres
from tests.store.postgres_backend import PostgresBackend

# A history empties tables, so a third of the usual number: a few seconds here, hundreds of histories in soak.
_FEWER = settings(max_examples=max(1, settings.default.max_examples // 3) if settings.default else 1)


@pytest.mark.timeout(600)
def test_random_histories(postgres_server: postgres.Server) -> None:
    """Any history of two handles on one schema agrees with the oracle after every step, and at the end as a whole."""

    class PostgresMachine(StoreMachine):
        def place(self) -> Backend:
            return PostgresBackend(postgres_server)

    run_state_machine_as_test(PostgresMachine, settings=_FEWER)
