"""The server from the wheel, for tests: where there can be none, they skip."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.postgres import Server, server, wheel_programs, why_missing

__all__ = ["wheel_server"]


@contextmanager
def wheel_server() -> Iterator[Server]:
    """Make a server from the wheel's programs; where there can be none, the test skips, and says why."""
    programs = wheel_programs()
    reason = why_missing(programs)
    if programs is None or reason is not None:
        pytest.skip(reason or "")
    with server(programs) as running:
        yield running
