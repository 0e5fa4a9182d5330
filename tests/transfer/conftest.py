"""Stores for the tests of transfer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver.store import Store
from tests.stores import KINDS, empty_store


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Return an empty store of each kind."""
    yield from empty_store(request, tmp_path)
