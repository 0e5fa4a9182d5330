"""Constraints in a dialog: found by code, changed by entries, and there after everything that a dialog goes through."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver import Dialog, MemoryStore, NotFound, Session, SqliteStore
from palaver.context.presets import LLLM, PRESETS, Preset, SWEAgent
from palaver.errors import InvalidInput
from palaver.log import Constraint
from palaver.testing.logs import Log
from palaver.view import fold

FOUND = "You must never push to main."
MISTAKEN = "The stars must be far away."
ADDED = "Write in English."


def begun(store: MemoryStore | SqliteStore | None = None) -> Dialog:
    """Give a dialog whose list was changed by hand."""
    dialog = Session.create(store or MemoryStore(), "s", owner="a").root
    dialog.put_text(f"Make it fast. {FOUND} {MISTAKEN}")
    dialog.constraints.remove(MISTAKEN)
    dialog.constraints.add(ADDED)
    return dialog


def longer(dialog: Dialog, turns: int = 24) -> Dialog:
    """Talk on."""
    for turn in range(turns):
        dialog.put_text(f"answer {turn} " + "word " * 120, role="assistant")
        dialog.put_text(f"go {turn}")
    return dialog


def test_the_list_is_what_code_found_and_what_was_changed() -> None:
    """Each with the place where it was said; what was put on by hand has none, and each change is an entry."""
    dialog = begun()
    first, second = dialog.constraints
    assert (first.text, second.text) == (FOUND, ADDED)
    assert first.at == f"{dialog.dialog_id}:0:0"
    assert second.at == ""
    assert len(dialog.messages) == 1
    with pytest.raises(InvalidInput):
        dialog.constraints.add(ADDED)
    with pytest.raises(InvalidInput):
        dialog.constraints.add(" ")
    with pytest.raises(InvalidInput):
        dialog.constraints.add("x" * 2_001)
    with pytest.raises(NotFound) as caught:
        dialog.constraints.remove("Write in english.")
    assert caught.value.close == (ADDED,)
    dialog.constraints.add(MISTAKEN)
    assert dialog.constraints.texts == (FOUND, MISTAKEN, ADDED)


def test_forks_and_later_processes_have_it(tmp_path: Path) -> None:
    """As it was when the fork was made, and in a store that is opened again; what is changed then is each side's own."""
    with SqliteStore(tmp_path / "s.db") as store:
        dialog = begun(store)
        child = dialog.fork()
        dialog.constraints.remove(FOUND)
        child.constraints.remove(ADDED)
        assert dialog.constraints.texts == (ADDED,)
        assert child.constraints.texts == (FOUND,)
        ids = dialog.dialog_id, child.dialog_id
    with SqliteStore(tmp_path / "s.db") as store:
        session = Session.open("s", store)
        assert [session.dialog(one).constraints.texts for one in ids] == [(ADDED,), (FOUND,)]


@pytest.mark.parametrize("preset", PRESETS, ids=lambda each: each.name)
def test_no_policy_summarises_a_constraint_away(preset: type[Preset]) -> None:
    """Law of item 9: committed five times over, forked, undone: the list is the same, and every record tells all of it, and only it."""
    dialog = longer(begun())
    for budget in (3_000, 2_500, 2_000, 1_800, 1_700):
        made = dialog.compact(policy=preset.name, budget=budget)
        if made.worthwhile:
            made.approve()
        longer(dialog, 8)
        assert dialog.constraints.texts == (FOUND, ADDED)
    made = dialog.compact(policy=preset.name, budget=1_700)
    made.approve()
    assert dialog.fork().constraints.texts == dialog.constraints.texts == (FOUND, ADDED)
    said = "\n".join(text for text in made.inserted if "The user said:" in text)
    if preset not in {LLLM, SWEAgent}:  # a notice says where to look, and the facts go with it
        assert ADDED in said
        assert f'"{MISTAKEN}"' not in said
    dialog.undo()
    assert dialog.constraints.texts == (FOUND, ADDED)


def test_a_model_reads_it_in_the_record_wherever_it_was_said() -> None:
    """What was added by hand is told by the next record; a summary beside it cannot take it out."""
    dialog = longer(begun())
    dialog.compact(budget=2_500).approve()
    assert ADDED in str(dialog.view().exchanges)
    dialog.constraints.remove(ADDED)
    longer(dialog)
    dialog.compact(budget=2_500).approve()
    assert ADDED not in str([block.content for x in dialog.view().exchanges for block in x.blocks()])


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.booleans()), max_size=10), st.integers(0, 10))
def test_the_newest_entry_about_a_sentence_wins_wherever_the_view_begins(
    changes: list[tuple[str, bool]], at: int
) -> None:
    """Any changes in any order: the view has each sentence once, as the newest entry says; earlier views have what was then."""
    log = Log()
    for text, stands in changes:
        log.put(Constraint(text=text, stands=stands))
    upto = min(at, len(changes))
    view = fold(log.store, log.dialog, upto - 1)
    assert {one.text: one.stands for one in view.constraints} == dict(changes[:upto])
    assert len({one.text for one in view.constraints}) == len(view.constraints)
