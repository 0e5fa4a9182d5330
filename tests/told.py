"""Lines and counts that tests print at the end of a run. They travel with the reports, so they arrive from every process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import pytest

__all__ = ["COUNTED", "TOLD", "lines"]

TOLD = "told"
"""The property of a test that holds a line to print."""

COUNTED = "counted: "
"""The prefix of a property that holds counts; the rest of its name is the title under which counts of all tests are added."""


def lines(reports: Iterable[pytest.TestReport]) -> Iterator[str]:
    """Return the lines in the order in which the tests ended, then the sums."""
    sums: dict[str, Counter[str]] = {}
    for report in reports:
        for name, value in report.user_properties if report.when == "teardown" else ():
            if name == TOLD:
                yield str(value)
            elif name.startswith(COUNTED) and isinstance(value, Mapping):
                sums.setdefault(name.removeprefix(COUNTED), Counter()).update(value)
    for title, numbers in sums.items():
        yield f"{title}: {', '.join(f'{number:,} {what}' for what, number in numbers.items())}"
