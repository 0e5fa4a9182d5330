"""Evidence retention: of what calls refer to, what is still there as content. The laws that `palaver.lab.metrics.passages` names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.context import Meter
from palaver.lab import Problem, Results, Settings, Table, run_lab
from palaver.lab.loading import loaded
from palaver.lab.looks import Looks, ShownParts
from palaver.lab.measuring import Recording
from palaver.lab.metrics import passages
from palaver.lab.recorded import recorded_dialog
from palaver.lab.sessions import LabSession
from palaver.lab.things import things
from palaver.messages import ToolResultContent
from palaver.testing.conversations import ConversationStep, played
from palaver.testing.strategies import conversations
from palaver.tokens import counter
from palaver.view import Drop, Insert, Plan, Reason, Rewrite, View, apply
from tests.lab.sessions import asking, coding

PLANTED = Path(__file__).with_name("planted.py")
MODEL = "gpt-4o"

# --- passages ----------------------------------------------------------------------------------------------------------------

LINE = "the port of the old test server is value_7 and nobody may ever change it before the move is done"


def found(text: str, name: str = "value_7") -> list[str]:
    """Give the passages of a text around a name."""
    start = text.index(name)
    return list(passages(text, start, start + len(name)))


def test_a_passage_by_hand() -> None:
    """A name with the eight plain words behind it, and with the eight before it; punctuation and other identifiers between stand where they stood."""
    assert found(LINE) == [
        ">value_7 and nobody may ever change it before the",
        "<value_7 is server test old the of port the",
    ]
    assert found("value_7") == found("the value_7 of it") == []
    assert found("x, y: value_7 = src/a.py # one two three four five six seven eight nine") == [
        ">value_7 = src/a.py # one two three four five six seven eight"
    ]


# --- views -------------------------------------------------------------------------------------------------------------------


class Held:
    """What some views of a session hold."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.names = frozenset(need.name for needs in recording.things.needs for need in needs)
        self.last = list(recording.trace.views())[-1][1]

    def quoted(self, view: View, holds: Callable[[ShownParts, str], bool] = ShownParts.quotes) -> frozenset[str]:
        """Return what a view holds as content."""
        shown = ShownParts(self.recording.looks)
        shown.take(view)
        return frozenset(name for name in self.names if holds(shown, name))

    def words(self, view: View) -> frozenset[str]:
        """Return what a view holds as words."""
        return self.quoted(view, ShownParts.holds)


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Held:
    """Give a session of a coding agent."""
    path = coding(tmp_path_factory.mktemp("evidence") / "one.jsonl", rounds=9, size=300)
    (one,) = (each for each in loaded(path) if not isinstance(each, Problem))
    return Held(LabSession.of(one, "key", "run", counter(MODEL)).recordings[0])


def dropped(view: View, drops: set[int], text: str = "") -> View:
    """Leave exchanges out, as far as they may be, and put a text before the first."""
    gone = sorted(drops - view.protected())
    inserts = (Insert(before=gone[0], text=text),) if text and gone else ()
    return apply(view, Plan(policy="p", drops=tuple(Drop(index=index) for index in gone), inserts=inserts))


_DROPS = st.sets(st.integers(0, 17))


@given(steps=conversations(least=3, most=8))
@settings(deadline=None, max_examples=15)
def test_the_whole_log_holds_all_of_it(steps: list[ConversationStep]) -> None:
    """Rule 1: where nothing is left out everything that a call refers to is there as content, whatever was said."""
    log = played(steps)
    calls = recorded_dialog(log.store, log.dialog)
    known = things(calls)
    shown = ShownParts(Looks(known, Meter(counter(MODEL))))
    for (call, view), needs in zip(calls.views(), known.needs, strict=True):
        shown.take(view)
        assert all(shown.quotes(need.name) for need in needs), call


def test_nothing_holds_nothing(held: Held) -> None:
    """Rule 2, and that there is something to hold: all of it by the whole view, none of it by an empty one."""
    assert len(held.names) > 15
    assert held.quoted(held.last) == held.names
    assert held.quoted(replace(held.last, system=(), exchanges=())) == frozenset()


@given(drops=_DROPS, data=st.data())
@settings(deadline=None, max_examples=25)
def test_a_word_list_adds_nothing(held: Held, drops: set[int], data: st.DataObject) -> None:
    """Rule 3: a list of everything that calls refer to, in any order and between any signs, has it all as words and none of it as content."""
    names = data.draw(st.permutations(sorted(held.names)))
    listed = data.draw(st.sampled_from([" ", "\n", ", ", "\n- ", '", "', " | ", "; `"])).join(names)
    bare = dropped(held.last, drops)
    full = dropped(held.last, drops, listed)
    assert held.quoted(full) == held.quoted(bare)
    if full != bare and drops - held.last.protected():
        assert held.words(full) == held.names


@given(drops=_DROPS, more=_DROPS)
@settings(deadline=None, max_examples=25)
def test_who_keeps_more_holds_no_less(held: Held, drops: set[int], more: set[int]) -> None:
    """Rules 4 and 5: of two views of which one shows all that the other does it holds no less, and neither more than stands in it."""
    much, little = dropped(held.last, drops), dropped(held.last, drops | more)
    assert held.quoted(little) <= held.quoted(much) <= held.words(much)
    assert held.quoted(little) <= held.words(little)


def test_what_is_shortened_or_brought_back_is_content(held: Held) -> None:
    """A result cut down to its beginning, and a text of it put in elsewhere, hold what they show of it; a line about it does not."""
    block, text = next(
        (block, block.content.text())
        for each in held.last.exchanges
        for block in each.blocks()
        if isinstance(block.content, ToolResultContent) and "90001" in block.content.text()
    )
    origin = block.origin
    assert origin is not None
    bare = replace(held.last, system=(), exchanges=())
    assert "90001" not in held.quoted(dropped(held.last, set(range(18))))

    def shown(form: str, reason: Reason = Reason.SHORTENED) -> View:
        edited = Plan(policy="p", rewrites=(Rewrite(target=origin, text=form, reason=reason),))
        cut = apply(held.last, edited).exchanges
        return replace(bare, exchanges=tuple(each for each in cut if origin in {one.origin for one in each.blocks()}))

    assert "90001" in held.quoted(shown(text[:150] + "\n[more]"))
    assert "90001" not in held.quoted(shown("[it set value_1 to 90001; see the file]"))
    assert "90001" in held.words(shown("[it set value_1 to 90001; see the file]"))
    for reason in Reason:  # whatever a policy says of it
        assert "90001" not in held.quoted(shown("90001 value_1 src/part_1.py", reason))
    again = dropped(held.last, set(range(18)), f"[src/part_1.py, as it was last seen]\n{text}")
    assert "90001" in held.quoted(again)


# --- runs --------------------------------------------------------------------------------------------------------------------


def run(folder: Path, *paths: Path, policies: tuple[str, ...], **words: object) -> Table:
    """Run the lab in a small room."""
    return run_lab(Settings(paths=paths, policies=policies, model=MODEL, resamples=50, **words), folder)  # type: ignore[arg-type]


def test_a_handle_is_a_lookup(tmp_path: Path) -> None:
    """Rule 6: what was replaced by a line with its handle is not there, neither as a word nor as content; one step brings it back, and is charged."""
    path = asking(tmp_path / "one.json", {2: "nothing"})
    run(tmp_path / "out", path, policies=("swe-agent(n=2,polling=1)",), budget=5_000)
    results = Results(tmp_path / "out")
    (row,) = (row for key in results.sessions() for row in results.calls(key) if row.references)
    assert row.placeholders > 0
    assert (row.references, row.in_view, row.evidence) == (1, 0, 0)
    assert (row.reached, row.evidence_reached, row.recalls) == (1, 1, 1)
    assert row.evidence_cost == row.recall_cost > 0
