"""What tests have printed at the end of a run: it travels with their reports, so that it is seen whichever process they ran in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import pytest

__all__ = ["COUNTED", "TOLD", "lines"]

TOLD = "told"
"""The property of a test that is a line to be printed."""

COUNTED = "counted: "
"""What the name of a property begins with that has numbers by what they count; those of all tests are added up under the rest of its name."""


def lines(reports: Iterable[pytest.TestReport]) -> Iterator[str]:
    """Give the lines of the tests as they ended, then the sums."""
    sums: dict[str, Counter[str]] = {}
    for report in reports:
        for name, value in report.user_properties if report.when == "teardown" else ():
            if name == TOLD:
                yield str(value)
            elif name.startswith(COUNTED) and isinstance(value, Mapping):
                sums.setdefault(name.removeprefix(COUNTED), Counter()).update(value)
    for title, numbers in sums.items():
        yield f"{title}: {', '.join(f'{number:,} {what}' for what, number in numbers.items())}"
