"""Patterns: what a regular expression finds, in time that pattern and text bound."""

import re
from contextlib import suppress

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
    ("pattern", "said"),
    [
        ("(", "a ( that nothing closes, at character 1"),
        ("a)", "a ) that nothing opened, at character 2"),
        ("*a", "a repeat with nothing before it, at character 1"),
        ("+", "a repeat with nothing before it, at character 1"),
        ("a{3,2}", "a count that ends before it begins, at character 2"),
        ("{[^[]{x(?=a)", "a group that looks around, at character 8"),
        (r"(a)\1", "a reference to a group, at character 4"),
        ("[a", "a [ that nothing closes, at character 1"),
        ("[b-a]", "a range that ends before it begins, at character 2"),
        ("\\", "a \\ with nothing behind it"),
        ("a\nb(", "a ( that nothing closes"),
        (r"\q", "no pattern"),
        ("(?1)a", "no pattern"),
        ("(?x) a", "the flag x"),
        ("(?i-s:(?sx)a)", "the flag x"),
        ("a" * 501, "501 characters"),
        ("(" * 249 + ")" * 251, "no pattern"),
        ("(" * 300 + ")" * 200, "no pattern"),
        ("[" * 490, "no pattern"),
    ],
)
@pytest.mark.parametrize("ignore_case", [False, True])
def test_what_is_no_pattern_is_refused_with_the_place(pattern: str, said: str, *, ignore_case: bool) -> None:
    """A typed error in our words, also for what would need going back, for what is too long and for groups in groups."""
    with pytest.raises(InvalidInput) as caught:
        Pattern(pattern, ignore_case=ignore_case)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "pattern",
    [
        "((a{99}){99}){99}",
        "(((((a{100}){100}){100}){100}){100}){100}",
        "(((a?){900}){900}){900}",
        "[ab]{0,9000}c",
        "(?:a?b?){9" + "9" * 400 + "}",
        r"\w{400}" * 6,
        r"\p{L}{1000}\x{41}{1001}",
        "(?P<n>a{50}){50}",
        "[](){}]{2001}",
        r"(?i)a{0,2001}",
        r"\w{1900}",
    ],
)
def test_a_pattern_that_multiplies_is_refused(pattern: str) -> None:
    """Repeats of repeats would be a machine of a million states: refused before it is built, or before it grows."""
    with pytest.raises(InvalidInput, match="too large"):
        Pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"function\(\) {", "function() {"),
        (r'{"a": \d{1,3}}', '{"a": 12}'),
        ("^[^[]+$", "a(b"),
        ("[[:digit:][]x", "[x"),
        ("[a&&b]$", "&"),
        ("[]a]]", "]]"),
        (r"end\Z", "the end"),
        ("^a{,2}b", "aab"),
        ("(?P<name>a)(?<other>b)", "ab"),
        ("(?i:ä)ß", "Äß"),
        ("interface{}", "interface{}"),
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "x 0f8fad5b-d9cb-469f-a165-70867728950e."),
        ("不得|禁止", "代码里禁止使用全局变量"),
        (r"a\0?$", "a\0"),
    ],
)
def test_the_spellings_that_models_know_are_understood(pattern: str, text: str) -> None:
    """Braces that count nothing, brackets and ampersands in sets, names, the end: as in Python and grep."""
    assert Pattern(pattern).found(text)


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(.*)*x", "(a*)*b", "([a-z]+)*!", "(x+x+)+y", "(a?){300}b"])
def test_what_takes_others_exponential_time_comes_to_an_end(pattern: str) -> None:
    """On a file's longest line, which an engine that goes back would not be through within the life of the universe."""
    assert not Pattern(pattern).found("a" * 256_000 + "?")


@given(st.text("ab(){}[]^$|*+?,-\\0129xPpZ:<>&", max_size=30), st.text("ab[]{}", max_size=8))
def test_any_text_is_a_pattern_or_refused(pattern: str, text: str) -> None:
    """No other error, whatever the text is."""
    with suppress(InvalidInput):
        Pattern(pattern).found(text)


def test_capitals_do_not_matter_when_they_are_not_to() -> None:
    """Case is folded in text and pattern, ranges included."""
    assert Pattern("strasse", ignore_case=True).found("Die STRASSE")
    assert Pattern("[a-f]x", ignore_case=True).found("BX")
    assert not Pattern("strasse").found("STRASSE")
