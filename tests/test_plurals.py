"""What people read says how many of something there are in good English."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from palaver.plurals import counted

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "docs").glob("*.svg")])
ONE_OF_SEVERAL = re.compile(r"(?<![\w.,:-])1[ \xa0](?!is\b|was\b|has\b)[a-z]+s\b")
"""The number 1 before a plural. Behind a point, a comma, a colon or a stroke stands a part of another number or of a name."""

OF_MODELS = {"memory.md": ["1 places"]}
"""What a tool answers to a model, page by page: words that stay as they were measured."""


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 messages"),
        (1, "1 message"),
        (2, "2 messages"),
        (1_000, "1,000 messages"),
        (1_234_567, "1,234,567 messages"),
    ],
)
def test_only_one_is_singular(count: int, words: str) -> None:
    """One has the noun as it is; none, two and many have it with an s; long numbers have separators."""
    assert counted(count, "message") == words


@pytest.mark.parametrize(
    ("one", "more"), [("entry", "entries"), ("history", "histories"), ("day", "days"), ("more line", "more lines")]
)
def test_a_y_becomes_ies_behind_a_consonant(one: str, more: str) -> None:
    """A noun on y behind a consonant has ies, behind a vowel s; of several words the last one changes."""
    assert [counted(count, one) for count in (0, 1, 2)] == [f"0 {more}", f"1 {one}", f"2 {more}"]


def test_other_plurals_are_given() -> None:
    """What is given for the others stands behind all numbers but 1, be it a noun or a verb."""
    said = [counted(count, "stretch is", "stretches are") for count in (0, 1, 21)]
    assert said == ["0 stretches are", "1 stretch is", "21 stretches are"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_has_one_of_several(page: Path) -> None:
    """No page says `1 messages`: what it shows is what the commands and objects print, so they do not say it either."""
    assert ONE_OF_SEVERAL.findall(page.read_text(encoding="utf-8")) == OF_MODELS.get(page.name, [])


def test_one_of_several_is_found() -> None:
    """The search finds the number 1 before a plural, and takes neither 11 nor 0.1 nor a verb for it."""
    wrong = ["1 messages", "(1 entries", "talk: 1 dialogs", "<1 sources>"]
    assert all(map(ONE_OF_SEVERAL.search, wrong))
    assert not any(map(ONE_OF_SEVERAL.search, ["11 messages", "0.1 seconds", "2,1 things", "1 message", "1 is less"]))
