"""Fixtures of the scenarios; they note the stores and profiles that they cover for the table (tests/conftest.py prints it)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import postgres
from tests.demand.ground import Place, Proof
from tests.store.postgres_backend import emptied

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def proof(request: pytest.FixtureRequest) -> Proof:
    """Give the judge of requests; whom it judged for goes into the table."""
    return Proof(request.node.user_properties)


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path, proof: Proof) -> Iterator[Place]:
    """Give a place for a store of each kind."""
    with _placed(request, tmp_path, proof) as made:
        yield made


@pytest.fixture(params=["sqlite", "postgres"])
def lasting(request: pytest.FixtureRequest, tmp_path: Path, proof: Proof) -> Iterator[Place]:
    """Give a place for a store of each kind that outlives a process."""
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
    """Give a function that has a process do something and die; it gives the exit code, -9 for a kill."""
    command = [sys.executable, "-m", "tests.demand.dying"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        sent, said = process.stdin, process.stdout

        def deed(name: str, /, **wanted: object) -> int:
            sent.write(json.dumps({"deed": name, **wanted}) + "\n")
            sent.flush()
            return int(said.readline())

        yield deed
        sent.close()
