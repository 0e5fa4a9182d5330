"""The laws of a store as a test suite, for any implementation: each sentence of `palaver.store.protocol` has a test.

A backend opens its store and lets tests read and damage its data::

    class TestMyStore(StoreLaws):
        @pytest.fixture
        def backend(self, tmp_path: Path) -> Backend:
            return MyBackend(tmp_path)

Laws about capabilities that a store lacks (`Store.capabilities`) are skipped by name.
"""

from palaver.testing.store_laws.backend import Backend, Begun, begin
from palaver.testing.store_laws.entries import EntryLaws
from palaver.testing.store_laws.erasing import ErasingLaws
from palaver.testing.store_laws.life import LifeLaws
from palaver.testing.store_laws.search import SearchLaws
from palaver.testing.store_laws.sessions import SessionLaws
from palaver.testing.store_laws.tree import TreeLaws
from palaver.testing.store_laws.values import ValueLaws

__all__ = ["Backend", "Begun", "StoreLaws", "begin"]


class StoreLaws(SessionLaws, TreeLaws, EntryLaws, SearchLaws, LifeLaws, ErasingLaws, ValueLaws):
    """All the laws of a store."""
