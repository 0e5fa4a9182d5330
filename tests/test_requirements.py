"""Every scenario and conflict has a test that names it."""

import re

import pytest

from tools.requirements import PAGE, ROWS, found


@pytest.mark.parametrize("letter", ["A", "C", "D"])
def test_every_row_is_named_by_a_test(letter: str) -> None:
    """Each number of an example, conflict or report is in the name or docstring of a test."""
    tests = found()
    count, _ = ROWS[letter]
    assert [number for number in range(1, count + 1) if (letter, number) not in tests] == []


def test_users_reports_are_in_the_demand_suite() -> None:
    """`./run demand` runs all of them."""
    tests = found()
    assert [
        n
        for n in range(1, 26)
        if not any(test.startswith(("demand/", "context/test_scenarios.py")) for test in tests["D", n])
    ] == []


def test_the_page_has_every_row() -> None:
    """docs/reference/requirements.md lists each row with its tests, or as one without."""
    text = PAGE.read_text(encoding="utf-8")
    for letter, (count, _) in ROWS.items():
        listed = {int(number) for number in re.findall(rf"^\|{letter}(\d+)\|", text, re.MULTILINE)}
        without = re.search(rf"No test names \d+ of {count}: (.*)\.$", text, re.MULTILINE)
        for first, last in re.findall(rf"{letter}(\d+)(?:-{letter}(\d+))?", without[1] if without else ""):
            listed |= set(range(int(first), int(last or first) + 1))
        assert listed == set(range(1, count + 1))
