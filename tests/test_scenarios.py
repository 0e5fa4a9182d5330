"""Every scenario has a test, and what the page says of them is so."""

import re
from pathlib import Path

import pytest

from tests.demand.table import NAMES
from tools.scenarios import ACCEPTANCE, PAGE, found, named


@pytest.mark.parametrize(("letter", "count"), [("D", 25), ("A", 40)])
def test_every_scenario_has_a_named_test(letter: str, count: int) -> None:
    """D1 to D25 and A1 to A40: each number stands in the name of a test; those of D in tests/demand."""
    tests = found()
    assert [number for number in range(1, count + 1) if (letter, number) not in tests] == []
    if letter == "D":
        assert [n for n in range(1, 26) if not any("/demand/" in test for test in tests["D", n])] == []


def test_the_page_names_tests_that_there_are() -> None:
    """Every test that docs/scenarios.md names exists, and every scenario has a row; `python -m tools.scenarios` writes it."""
    text = PAGE.read_text(encoding="utf-8")
    there = {test for _, _, test in named()}
    assert set(re.findall(r"`(tests/\S+::\w+)`", text)) <= there
    rows = set(re.findall(r"^\| ([AD]\d+) ", text, re.MULTILINE))
    assert rows == {f"A{n}" for n in ACCEPTANCE} | {name for name in NAMES if name != "D7b"}


def test_the_guarantee_names_tests_that_there_are() -> None:
    """Every test that docs/guarantee.md names is a function of the file that it names."""
    text = Path("docs/guarantee.md").read_text(encoding="utf-8")
    for file, test in re.findall(r"`((?:tests|src)/[\w/]+\.py)(?:::(\w+))?`", text):
        assert Path(file).is_file(), file
        assert not test or f"def {test}(" in Path(file).read_text(encoding="utf-8"), (file, test)
