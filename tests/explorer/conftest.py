"""What the tests of the explorer get."""

from pathlib import Path

import pytest

from tests.cli.commands import Palaver


@pytest.fixture
def palaver(tmp_path: Path) -> Palaver:
    """Return the command line over a store that is not there yet."""
    return Palaver(tmp_path)
