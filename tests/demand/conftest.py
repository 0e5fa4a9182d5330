"""Fixtures of the scenarios: where a session lies, and processes that die."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.demand.ground import Place
from tests.forking import forking
from tests.store.postgres_backend import emptied


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.soak)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Return a place for a store: SQLite's, and in the soak PostgreSQL's, too; the laws of stores hold for all."""
    sqlite = request.param == "sqlite"
    made = Place(str(tmp_path / "store.db") if sqlite else emptied(request.getfixturevalue("postgres_server")))
    yield made
    made.close()


@pytest.fixture(scope="session")
def kill() -> Iterator[Callable[..., int]]:
    """Return a function that has a process do something and die; it gives the exit code, -9 for a kill."""
    with forking("tests.demand.dying") as deed:
        yield deed
