"""Snippets; the laws of searching hold the tokens."""

from hypothesis import assume, given
from hypothesis import strategies as st

from palaver.store import text


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


def test_snippet_marks_the_best_words() -> None:
    """A mark stands around whole characters, and around a part of a word only when nothing stands alone; a long text is cut around it."""
    for said, word, wanted in (
        ("die STRASSE, die Straße", "strasse", "die \x02STRASSE\x03, die \x02Straße\x03"),
        ("ﬁnd", "f", "\x02ﬁ\x03nd"),
        ("Repositories import os", "os", "Repositories import \x02os\x03"),
        ("Repositories", "os", "Rep\x02os\x03itories"),
        ("x__init__.py", "__init__.py", "x\x02__init__.py\x03"),
    ):
        assert text.snippet(said, [word]) == wanted
    found = text.snippet("a " * 5000 + "needle" + " b" * 5000, ["needle"])
    assert "\x02needle\x03" in found
    assert found[0] == found[-1] == "…"
    assert len(found) < text.SNIPPET_CHARACTERS + 20


def test_ranked_lists_originals_before_copies() -> None:
    """What a record repeats comes first where it was said, however many words the record has."""
    texts = [(3, "compaction", "grey and blue"), (2, "message", "blue"), (1, "message", "grey")]
    found = text.ranked(
        "grey blue",
        lambda _: ((number, True) for number, *_ in texts),
        lambda _: (text.Candidate(number, "session", kind, said, number) for number, kind, said in texts),
    )
    assert [number for _, _, number in found] == [2, 1, 3]


def test_snippet_of_a_ranked_hit_shows_its_rarest_word() -> None:
    """The words around the first of those named first are shown, and all are marked."""
    said = "the " * 200 + "needle of the haystack"
    assert text.snippet(said, ["needle", "the"], 1).endswith("\x02needle\x03 of \x02the\x03 haystack")
