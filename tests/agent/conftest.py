"""What holds for every test of agents."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from palaver.tools.portal import run_sync
from tests.agent.helper import OPENED


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Close the connections that a test opened."""
    yield
    while OPENED:
        run_sync(OPENED.pop().aclose)
