"""An empty store of each kind, for tests that every store passes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver.store import Durability, MemoryStore, SqliteStore, Store, open_store
from tests import postgres

KINDS = ("memory", "sqlite", "postgres")


def empty_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Yield an empty store of the kind that a fixture requests, and close it afterwards."""
    kind: Store
    if request.param == "memory":
        kind = MemoryStore()
    elif request.param == "sqlite":
        kind = SqliteStore(tmp_path / "s.db", Durability.NORMAL)
    else:
        server: postgres.Server = request.getfixturevalue("postgres_server")
        kind = open_store(server.url(), create=True)
    yield kind
    kind.close()
