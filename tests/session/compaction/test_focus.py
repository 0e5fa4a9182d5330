"""A focus: which words find what, in any script; what stays when there is no room for all; and what is said of words that find nothing."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver import Dialog
from palaver.cli.compacting import lines_of
from palaver.session.compaction.focusing import focused

SAID = {
    3: "Our API wants the key.",
    7: "苍鹭的迁徙路线在这里。",
    9: "The capital has keys of brass.",
    11: "see src/heron/map.py and C++ code",
    13: "นกกระสาบินไปทางใต้",
}
MODEL = "gpt-4o"


def talked(said: dict[int, str] | None = None, turns: int = 24) -> Dialog:
    """Give a dialog in whose answers a few things stand."""
    dialog = Dialog(owner="a")
    dialog.put_text("Begin.")
    for turn in range(turns):
        words = (SAID if said is None else said).get(turn, "")
        dialog.put_text(f"answer-{turn}- {words} {'filler ' * 60}", role="assistant")
        dialog.put_text(f"next, {turn}")
    return dialog


def named(dialog: Dialog, focus: str) -> set[int]:
    """Give the answers that a focus finds."""
    view = dialog.view()
    shown = [str(view.exchanges[place]) for place in focused(view, focus).found]
    return {turn for turn in range(24) if any(f"answer-{turn}-" in one for one in shown)}


@pytest.mark.parametrize(
    ("focus", "answers"),
    [
        ("API", {3}),
        ("api", {3}),
        ("'API',", {3}),
        ("the key", {3, 9}),  # `the` stands in both, `key` in keys only by itself
        ("key", {3}),
        ("heron", {11}),
        ("src/heron/map.py", {11}),
        ("c++", {11}),
        ("苍鹭", {7}),
        ("苍鹭的迁徙路线", {7}),
        ("关于苍鹭", {7}),  # as a whole it stands nowhere, two of its characters do
        ("นกกระสา", {13}),
        ("API 苍鹭", {3, 7}),
        ("filler API", {3}),  # a word of every answer tells nothing apart
        ("nowhere", set()),
        ("", set()),
        (". , …", set()),
    ],
)
def test_words_of_any_length_and_script_find_what_holds_them(focus: str, answers: set[int]) -> None:
    """Up to three letters by themselves, longer ones inside others, too; without spaces as a whole, or by each two characters."""
    assert named(talked(), focus) == answers


def test_what_is_found_stays_in_the_view() -> None:
    """By the focus alone: without it the same exchange leaves."""
    for focus, turn in (("API", 3), ("苍鹭", 7)):
        made = talked().compact(focus=focus, budget=1_200, model=MODEL)
        assert (made.found, made.kept, made.missing) == (1, 1, ())
        assert f"answer-{turn}-" in str(made.composed.view.exchanges)
        assert f"answer-{turn}-" not in str(talked().compact(budget=1_200, model=MODEL).composed.view.exchanges)


def test_the_rarest_word_stays_longest() -> None:
    """Ten newer exchanges hold one word, an old one the other: where there is room for few, the old one is among them."""
    dialog = talked({2: "the heron", **dict.fromkeys(range(6, 16), "the gull")})
    made = dialog.compact(focus="gull heron", budget=1_000, model=MODEL)
    assert made.found == 11
    assert 0 < made.kept < 11
    assert "answer-2-" in str(made.composed.view.exchanges)
    assert f"{made.kept} exchanges with 'gull heron' stay as they are, of 11; there is no room for more." in str(
        lines_of(made)
    )


def test_two_are_found_and_one_fits() -> None:
    """Room for one of two is not room for none."""
    dialog = talked({2: f"heron {'long ' * 300}", 5: f"heron {'long ' * 300}"})
    kept = {dialog.compact(focus="heron", budget=budget, model=MODEL).kept for budget in range(300, 1_200, 50)}
    assert kept == {0, 1, 2}


@pytest.mark.parametrize(
    ("focus", "said"),
    [
        ("pelican", "Nothing that the model sees now holds a word of 'pelican'."),
        ("…", "Nothing that the model sees now holds a word of '…'."),
        ("API pelican", "Nothing holds 'pelican'."),
        ("API", "1 exchange with 'API' stays as it is."),
    ],
)
def test_words_that_find_nothing_are_told(focus: str, said: str) -> None:
    """In the preview's lines, which command and chat show, and in its fields."""
    made = talked().compact(focus=focus, budget=1_500, model=MODEL)
    assert f"  {said}" in lines_of(made)
    assert ("pelican" in made.missing) == ("pelican" in focus)
    assert made.to_dict()["missing"] == list(made.missing)


def test_no_room_is_told() -> None:
    """Something holds the word, and nothing of it stays."""
    made = talked({2: f"heron {'long ' * 2_000}"}).compact(focus="heron", budget=500, model=MODEL)
    assert (made.found, made.kept) == (1, 0)
    assert "  1 exchange holds a word of 'heron'; there is no room for it." in lines_of(made)


@settings(max_examples=40)
@given(st.lists(st.text(max_size=12), min_size=1, max_size=8), st.text(max_size=20))
def test_whatever_is_typed(texts: list[str], focus: str) -> None:
    """Each exchange at most once and there; a word is missing or finds something; never more than half, unless a few are all there is."""
    dialog = Dialog(owner="a")
    for text in texts:
        dialog.put_text(f"x{text}")
    view = dialog.view()
    found = focused(view, focus)
    assert len(set(found.found)) == len(found.found) <= max(1, len(view.exchanges) // 2)
    assert set(found.found) <= set(range(len(view.exchanges)))
    for word in found.missing:
        assert focused(view, word).found == ()
