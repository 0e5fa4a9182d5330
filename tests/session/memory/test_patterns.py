"""Patterns: what a regular expression finds, in time that the text's length bounds."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.errors import InvalidInput
from palaver.session.memory.patterns import Pattern

ATOMS = st.sampled_from(["a", "b", "c", ".", "[ab]", "[^a]", "[a-c]", r"\w", r"\d", r"\s", r"\.", "^", "$", r"\b", "_"])


def grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Give larger expressions of smaller ones."""
    return st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"(?:{two[0]}|{two[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{2,}", "*?"])).map(
            lambda two: f"(?:{two[0]}){two[1]}"
        ),
    )


@given(st.recursive(ATOMS, grown, max_leaves=6), st.text("abc1_. -", max_size=12))
def test_it_finds_what_python_finds(pattern: str, text: str) -> None:
    """Any expression of what is supported, on any line: the same answer as that of `re`."""
    assert Pattern(pattern).found(text) == bool(re.search(pattern, text))


@pytest.mark.parametrize(
    "pattern",
    ["(", "a)", "*a", "+", "a{3,2}", "(?=a)", "(?P<x>a)", r"(a)\1", "[a", "\\", "a" * 501, "(" * 300 + ")" * 300],
)
def test_what_is_no_pattern_is_refused_with_the_place(pattern: str) -> None:
    """A typed error, also for what would need going back, for what is too long and for groups in groups."""
    with pytest.raises(InvalidInput):
        Pattern(pattern)


def test_a_pattern_that_multiplies_is_refused() -> None:
    """Repeats of repeats would be a machine of a million states: refused before it is built."""
    with pytest.raises(InvalidInput, match="too large"):
        Pattern("((a{99}){99}){99}")


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(.*)*x", "(a*)*b", "([a-z]+)*!"])
def test_each_character_is_read_once(pattern: str) -> None:
    """Patterns on which engines that go back take exponential time: the steps are counted, one a character."""
    steps = 0

    class Counted(Pattern):
        def _step(self, alive: frozenset[int], character: str) -> frozenset[int]:
            nonlocal steps
            steps += 1
            return super()._step(alive, character)

    text = "a" * 2_000 + "?"
    assert not Counted(pattern).found(text)
    assert steps <= len(text) + 1


def test_capitals_do_not_matter_when_they_are_not_to() -> None:
    """Case is folded in text and pattern, ranges included."""
    assert Pattern("strasse", ignore_case=True).found("Die STRASSE")
    assert Pattern("[a-f]x", ignore_case=True).found("BX")
    assert not Pattern("strasse").found("STRASSE")
