"""Every scenario and conflict has a test that names it."""

import re

from tools.requirements import PAGE, ROOT, ROWS, rows_of, shown


def test_every_row_is_named_by_a_test() -> None:
    """Each number of an example, conflict or report is in the docstring of a test; `./run demand` runs all reports."""
    tests = shown()
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


def test_only_a_list_at_the_beginning_names_rows() -> None:
    """Ranges count whole; the result R1 of a text, and any other number in it, is no row."""
    assert list(rows_of("A4, law 12, R9-R11: as R12 says.")) == [("A", 4), ("R", 9), ("R", 10), ("R", 11)]
    assert list(rows_of("D24: the parent gets R1 and C2: no pending call.")) == [("D", 24)]
    for text in (
        "R1 is durable: before it.",
        "`U, A[c1], R1` cut: valid.",
        "S000, R2: read.",
        "R2, and more: read.",
        "R2",
    ):
        assert list(rows_of(text)) == []


def test_names_say_the_property_and_no_number() -> None:
    """A name is under 60 characters, once in its file, and has no number of a requirement: the docstring has those."""
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        if "node_modules" not in path.parts:
            names = re.findall(r"^ *(?:async )?def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
            assert len(set(names)) == len(names), path
            assert [name for name in names if len(name) >= 60 or re.search(r"_[rcadt]\d+(_|$)", name)] == [], path
