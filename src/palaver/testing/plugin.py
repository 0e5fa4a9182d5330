"""The pytest plugin: cassettes, requests that strict servers accept, what a policy keeps, and kills at every step.

pytest loads this module in every run where palaver is installed. So it imports nothing of palaver but what a test asks for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from palaver.providers import Provider
    from palaver.testing.cassettes import Cassette
    from palaver.testing.checks import Outcome


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup("palaver").addoption(
        "--palaver-record",
        choices=("once", "always", "never"),
        default="once",
        help="When palaver_cassette asks providers: once, where a cassette is missing (default); always, anew; never.",
    )


@pytest.fixture
def palaver_cassette(request: pytest.FixtureRequest) -> Iterator[Callable[[Any], Provider]]:
    """Return a function that takes a provider, or what makes one, and returns it behind the test's cassette.

    The cassette is `cassettes/FILE/TEST.palaver` beside the test's file. The first run records it; later runs play it back without a network or key.
    """
    from palaver.testing.cassettes import Cassette  # noqa: PLC0415 - other people's tests do not need it

    name = re.sub(r"[^\w.-]+", "-", request.node.name).strip("-")
    path = request.path.parent / "cassettes" / request.path.stem / f"{name}.palaver"
    cassette: Cassette = Cassette(path, request.config.getoption("--palaver-record"))
    yield cassette.provider
    cassette.save()


@pytest.fixture
def palaver_valid() -> Callable[..., None]:
    """Return a function that fails where the strict server of an API refuses a request: `palaver_valid(body, api="anthropic")`."""
    from palaver.testing.checks import require_valid  # noqa: PLC0415 - likewise

    return require_valid


@pytest.fixture
def palaver_kept() -> Callable[..., list[int]]:
    """Return a function that returns the indexes of the messages that a policy keeps unchanged: `palaver_kept(messages, model=..., budget=...)`."""
    from palaver.testing.checks import kept  # noqa: PLC0415 - likewise

    return kept


@pytest.fixture
def palaver_survives(tmp_path: Path) -> Callable[[Callable[[Any], object]], list[Outcome]]:
    """Return a function that kills a loop at every step: `palaver_survives(loop)`, where `loop(store)` begins or resumes."""
    from palaver.testing.checks import survive  # noqa: PLC0415 - likewise

    return lambda loop: survive(loop, tmp_path)
