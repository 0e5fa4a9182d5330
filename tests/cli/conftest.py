"""What the tests of the command line get."""

from pathlib import Path

import pytest

from tests.cli.commands import Palaver, talk


@pytest.fixture
def palaver(tmp_path: Path) -> Palaver:
    """Give the command line over a store that is not there yet."""
    return Palaver(tmp_path)


@pytest.fixture
def stocked(palaver: Palaver) -> Palaver:
    """Give the command line over a store that holds the session `talk`."""
    palaver.imported(talk())
    return palaver
