"""The laws of a store, one test for each sentence of `palaver.store.protocol`, to run over any backend.

A backend says where its store lies and how to look behind its back; it gets every law, and may override none::

    class TestMyStore(StoreLaws):
        @pytest.fixture
        def backend(self, tmp_path: Path) -> Backend:
            return MyBackend(tmp_path)

Laws about what a store lacks (`Store.capabilities`) are skipped, and the skip says which capability it is.
"""

from palaver.testing.store_laws.backend import Backend, Begun, begin
from palaver.testing.store_laws.entries import AppendLaws, HealthLaws, ReadLaws
from palaver.testing.store_laws.erasing import ErasingLaws
from palaver.testing.store_laws.life import LifeLaws, TogetherLaws
from palaver.testing.store_laws.payloads import PayloadLaws
from palaver.testing.store_laws.search import SearchLaws
from palaver.testing.store_laws.sessions import SessionLaws, SourceLaws
from palaver.testing.store_laws.sweeping import SweepingLaws
from palaver.testing.store_laws.tree import TreeLaws
from palaver.testing.store_laws.verifying import VerifyLaws

__all__ = ["Backend", "Begun", "StoreLaws", "begin"]


class StoreLaws(
    SessionLaws,
    SourceLaws,
    TreeLaws,
    AppendLaws,
    ReadLaws,
    HealthLaws,
    PayloadLaws,
    SearchLaws,
    LifeLaws,
    TogetherLaws,
    ErasingLaws,
    SweepingLaws,
    VerifyLaws,
):
    """All the laws of a store."""
