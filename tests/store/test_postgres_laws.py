"""Every law of a store, over PostgreSQL: the server of the wheel, and that of the system where there is one."""

from collections.abc import Iterator

import pytest

from palaver.store import Durability
from palaver.testing.store_laws import Backend, StoreLaws
from palaver.testing.store_laws.entries import AppendLaws
from palaver.testing.store_laws.life import LifeLaws, TogetherLaws
from tests import postgres
from tests.store.postgres_backend import PostgresBackend


@pytest.fixture(scope="module")
def system_server() -> Iterator[postgres.Server]:
    """Run the system's own server, if there is one."""
    programs = postgres.debian_programs()
    reason = postgres.why_missing(programs)
    if programs is None or reason is not None:
        pytest.skip(reason or "")
    with postgres.server(programs) as running:
        yield running


class TestPostgresStore(StoreLaws):
    """A schema, flushed at every write."""

    @pytest.fixture
    def backend(self, postgres_server: postgres.Server) -> Backend:
        """Give a place in a database."""
        return PostgresBackend(postgres_server)


class TestPostgresStoreNormal(AppendLaws, LifeLaws, TogetherLaws):
    """A schema, flushed by the server when it likes: the laws of writing, which is where it differs."""

    @pytest.fixture
    def backend(self, postgres_server: postgres.Server) -> Backend:
        """Give a place in a database."""
        return PostgresBackend(postgres_server, Durability.NORMAL)


class TestSystemPostgresStore(StoreLaws):
    """The PostgreSQL that this system brings, an older one."""

    @pytest.fixture
    def backend(self, system_server: postgres.Server) -> Backend:
        """Give a place in a database."""
        return PostgresBackend(system_server)
