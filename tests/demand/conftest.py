"""Fixtures of the scenarios; they note the stores and profiles that they cover for the table (tests/conftest.py prints it)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import postgres
from tests.demand.ground import Place, Proof
from tests.forking import forking
from tests.store.postgres_backend import emptied


@pytest.fixture
def proof(request: pytest.FixtureRequest) -> Proof:
    """Return the judge of requests; whom it judged for goes into the table."""
    return Proof(request.node.user_properties)


_OTHERS = [pytest.param(kind, marks=pytest.mark.soak) for kind in ("memory", "postgres")]


@pytest.fixture(params=["sqlite", *_OTHERS])
def place(request: pytest.FixtureRequest, tmp_path: Path, proof: Proof) -> Iterator[Place]:
    """Return a place for a store: SQLite's, and in the soak one of each kind; the laws of stores hold for all."""
    with _placed(request, tmp_path, proof) as made:
        yield made


@pytest.fixture(params=["sqlite", "postgres"])
def lasting(request: pytest.FixtureRequest, tmp_path: Path, proof: Proof) -> Iterator[Place]:
    """Return a place for a store of each kind that outlives a process."""
    with _placed(request, tmp_path, proof) as made:
        yield made


@contextmanager
def _placed(request: pytest.FixtureRequest, folder: Path, proof: Proof) -> Iterator[Place]:
    address = ""
    if request.param == "sqlite":
        address = str(folder / "store.db")
    elif request.param == "postgres":
        server: postgres.Server = request.getfixturevalue("postgres_server")
        address = emptied(server)
    made = Place(request.param, address)
    proof.note("store", request.param)
    yield made
    made.close()


@pytest.fixture(scope="session")
def kill() -> Iterator[Callable[..., int]]:
    """Return a function that has a process do something and die; it gives the exit code, -9 for a kill."""
    with forking("tests.demand.dying") as deed:
        yield deed
