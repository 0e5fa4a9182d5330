"""Every requirement is said in words and shown by a test, or says why none shows it."""

import re

from tools.requirements import PAGES, ROOT, rows, rows_of, shown

COUNTS = {"R": 335, "C": 29, "A": 40, "D": 25, "T": 21}
HAZARDS = 59 + 7
"""What a conversation may go through, and kinds of bad input."""


def test_every_row_is_named_by_a_test() -> None:
    """A row without a test has a reason; `./run test tests/demand` runs all reports."""
    tests = shown()
    numbered = [f"{letter}{number}" for letter, count in COUNTS.items() for number in range(1, count + 1)]
    assert list(rows())[: len(numbered)] == numbered
    assert len(rows()) == len(numbered) + HAZARDS
    assert [row for row, (_, reason) in rows().items() if row not in tests and not reason] == []
    assert set(tests) <= set(rows())
    for row, named in tests.items():
        in_demand = any(test.startswith(("demand/", "context/test_scenarios.py")) for test in named)
        assert not re.fullmatch(r"D\d+", row) or in_demand, row


def test_the_page_has_every_row_in_words() -> None:
    """Each row is on its page with at most 14 words."""
    text = "".join(path.read_text(encoding="utf-8") for path in PAGES)
    for row, (asks, _) in rows().items():
        assert f"|{row}|{asks}|" in text
        assert 0 < len(asks.split()) <= 14, row


def test_only_a_list_at_the_beginning_names_rows() -> None:
    """Ranges count whole; the result R1 of a text, and any other number in it, is no row."""
    assert list(rows_of("A4, law 12, R9-R11: as R12 says.")) == ["A4", "R9", "R10", "R11"]
    assert list(rows_of("«fork, identical prefix», R3: both")) == ["fork, identical prefix", "R3"]
    assert list(rows_of("D24: the parent gets R1 and C2: no pending call.")) == ["D24"]
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
