"""Stand-ins for the tests."""

from collections.abc import Iterator

import pytest

from palaver.testing import strict


@pytest.fixture
def claude() -> Iterator[strict.StrictServer]:
    """Return a running stand-in of the Messages API."""
    with strict.anthropic() as server:
        yield server
