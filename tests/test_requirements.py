"""Every scenario and conflict has a test that names it."""

import re

from tools.requirements import PAGE, ROWS, found


def test_every_row_is_named_by_a_test() -> None:
    """Each number of an example, conflict or report is in the name or docstring of a test; `./run demand` runs all reports."""
    tests = found()
    missing = [(letter, n) for letter in "ACD" for n in range(1, ROWS[letter][0] + 1) if (letter, n) not in tests]
    assert missing == []
    for (letter, number), named in tests.items():
        in_demand = any(test.startswith(("demand/", "context/test_scenarios.py")) for test in named)
        assert letter != "D" or in_demand, number


def test_the_page_has_every_row() -> None:
    """docs/reference/requirements.md lists each row with its tests, or as one without."""
    text = PAGE.read_text(encoding="utf-8")
    for letter, (count, _) in ROWS.items():
        listed = {int(number) for number in re.findall(rf"^\|{letter}(\d+)\|", text, re.MULTILINE)}
        without = re.search(rf"No test names \d+ of {count}: (.*)\.$", text, re.MULTILINE)
        for first, last in re.findall(rf"{letter}(\d+)(?:-{letter}(\d+))?", without[1] if without else ""):
            listed |= set(range(int(first), int(last or first) + 1))
        assert listed == set(range(1, count + 1))
