"""Tokens, words and snippets."""

from hypothesis import assume, given
from hypothesis import strategies as st

from palaver.store import text

TEXTS = st.text(st.characters(codec="utf-8"), max_size=80).map(text.composed)


def terms(said: str) -> list[tuple[str, tuple[str, ...]]]:
    """Return what a query for each token of a text demands."""
    return [term for token in text.tokens(said) for term in text.terms(token)]


def test_terms_of_code_and_ideographs() -> None:
    """Identifiers have parts, ideographs stand alone, punctuation is none; a run of letters that no one types is cut."""
    assert terms("getUserName(foo_bar) -> HTTPServer2 你好! ✅") == [
        ("getusername", ("get", "user", "name")),
        ("foo", ()),
        ("bar", ()),
        ("httpserver2", ("http", "server2")),
        ("你", ()),
        ("好", ()),
        ("✅", ()),
    ]
    ((whole, parts),) = terms("Ab" * 1000)
    assert len(whole) == len("".join(parts)) == text.TOKEN_CHARACTERS


@given(TEXTS)
def test_law_12_no_term_is_an_operator(said: str) -> None:
    """What goes into an index is letters, digits and pictographs, folded, and never empty."""
    for whole, parts in terms(said):
        for token in (whole, *parts):
            assert token == token.casefold() != ""
            assert not set(token) & set(" \"'*()^:+-\x00\t\n{}")


@given(TEXTS | st.text("aB1_ é你.", max_size=200))
def test_columns_are_the_terms_of_the_text(said: str) -> None:
    """The quick way over a whole text gives what the tokens one by one give."""
    found = terms(said)
    parts, wholes = text.columns(said)
    assert parts.split(" ") == ([token for whole, pieces in found for token in pieces or (whole,)] or [""])
    assert wholes.split(" ") == ([whole for whole, pieces in found if pieces] or [""])


@given(TEXTS, TEXTS, TEXTS)
def test_tokens_do_not_depend_on_surroundings(before: str, said: str, after: str) -> None:
    """A delimited piece of text has the same tokens wherever it stands: that is why a phrase of them finds it."""
    alone = text.tokens(said)
    assert text.tokens(f"{before} {said} {after}") == [*text.tokens(before), *alone, *text.tokens(after)]


@given(TEXTS)
def test_words_are_what_stands_between_blanks(query: str) -> None:
    """Words are folded, unlike each other, and each has a token."""
    found = text.words(query)
    assert len(set(found)) == len(found)
    assert all(text.tokens(word) and word == text.fold(word) for word in found)


@given(st.text(st.characters(codec="utf-8"), max_size=500), st.data())
def test_snippet_is_part_of_its_text(said: str, data: st.DataObject) -> None:
    """Without its marks a snippet is a stretch of the text, blanks for what cannot be printed, and every mark is closed."""
    composed = text.composed(said)
    candidates = text.words(said)
    assume(candidates)
    word = data.draw(st.sampled_from(candidates))
    given_back = text.snippet(composed, [word])
    assert given_back.count(text.OPEN) == given_back.count(text.CLOSE) >= 1
    inside = given_back.replace(text.OPEN, "").replace(text.CLOSE, "").removeprefix("…").removesuffix("…")
    line = "".join(character if character.isprintable() else " " for character in composed)
    assert inside in line or inside in f"…{line}…"


def test_snippet_marks_whole_characters() -> None:
    """Where one character folds into two, the mark stands around the whole of it."""
    assert text.snippet("die STRASSE, die Straße", ["strasse"]) == "die \x02STRASSE\x03, die \x02Straße\x03"
    assert text.snippet("ﬁnd", ["f"]) == "\x02ﬁ\x03nd"


def test_snippet_stays_short() -> None:
    """Of a long text only what surrounds the first match is shown."""
    found = text.snippet("a " * 5000 + "needle" + " b" * 5000, ["needle"])
    assert "\x02needle\x03" in found
    assert len(found) < text.SNIPPET_CHARACTERS + 20
    assert found.startswith("…")
    assert found.endswith("…")


def test_snippet_prefers_words_that_stand_alone() -> None:
    """What stands inside a longer word is marked only when there is nothing better."""
    assert text.snippet("Repositories import os", ["os"]) == "Repositories import \x02os\x03"
    assert text.snippet("Repositories", ["os"]) == "Rep\x02os\x03itories"
    assert text.snippet("日本語", ["本"]) == "日\x02本\x03語"
    assert text.snippet("x__init__.py", ["__init__.py"]) == "x\x02__init__.py\x03"
