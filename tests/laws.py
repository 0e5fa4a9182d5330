"""Counting what the laws were held over: `./run soak` ends with a table of them.

A test names its laws in its name, `test_law_4_…` or `test_laws_4_5_…`, or in its docstring, "Laws 1, 8 and 9: …".
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

_IN_NAME = re.compile(r"(?:laws?_|(?<=\d)_)0*(\d+)(?=_|$)")
_IN_DOCSTRING = re.compile(r"\blaws? (\d+(?:(?:, and |, | and )\d+)*)", re.IGNORECASE)
_EXAMPLES = re.compile(r"(\d+) passing\b")
_made = [0]


def laws_of(item: pytest.Item) -> list[int]:
    """Return the laws that a test names."""
    test = getattr(item, "function", None)
    name = getattr(test, "__name__", "")
    named = _IN_NAME.findall(name) if "law" in name else []
    for several in _IN_DOCSTRING.findall(getattr(test, "__doc__", None) or ""):
        named += re.findall(r"\d+", several)
    return sorted({int(number) for number in named})


def checked(times: int) -> None:
    """Count the checks that a test made one by one."""
    _made[0] += times


def checks_of(item: pytest.Item) -> int:
    """Return how many checks a test made: what it counted, the examples of hypothesis, or one."""
    counted, _made[0] = _made[0], 0
    examples = sum(map(int, _EXAMPLES.findall(getattr(item, "hypothesis_statistics", ""))))
    return counted or examples or 1


def table(reports: Iterable[pytest.TestReport]) -> Iterator[str]:
    """Return the lines of a table: for each law, and for all other tests, the cases and the checks they made."""
    counts: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0])
    for report in reports:
        properties: dict[str, Any] = dict(report.user_properties)
        for law in properties.get("laws", [0]):
            counts[law][0] += 1
            counts[law][1] += properties.get("checks", 1)
    yield f"{'law':>5} {'cases':>7} {'checks':>11}"
    for law, (cases, checks) in sorted(counts.items(), key=lambda row: row[0] or 99):
        yield f"{law or 'other':>5} {cases:>7,} {checks:>11,}"
