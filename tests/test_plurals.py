"""Counts in output: the noun agrees with the number."""

import pytest

from palaver.plurals import counted


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
    """Every number but 1 has the plural; long numbers have separators."""
    assert counted(count, "message") == words


@pytest.mark.parametrize(
    ("one", "more"), [("entry", "entries"), ("history", "histories"), ("day", "days"), ("more line", "more lines")]
)
def test_y_after_a_consonant_becomes_ies(one: str, more: str) -> None:
    """After a vowel it becomes ys; of several words the last one changes."""
    assert [counted(count, one) for count in (0, 1, 2)] == [f"0 {more}", f"1 {one}", f"2 {more}"]


def test_other_plurals_are_given() -> None:
    """The caller's plural follows every number but 1."""
    shown = [counted(count, "stretch is", "stretches are") for count in (0, 1, 21)]
    assert shown == ["0 stretches are", "1 stretch is", "21 stretches are"]
