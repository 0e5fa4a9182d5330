"""palaver branch: trees, forks, rewinds, merges, differences, and the marks on entries."""

from __future__ import annotations

from pathlib import Path

import pytest

from palaver import Session, SqliteStore
from palaver.cli.outcome import Exit
from palaver.ids import DialogId
from palaver.log import Handle
from tests.cli.commands import Palaver


def _dialogs(palaver: Palaver) -> list[str]:
    return [row["dialog"] for row in palaver("branch", "tree", "talk", "--json").rows()]


def _main(palaver: Palaver) -> str:
    (found,) = [row["dialog"] for row in palaver("branch", "tree", "talk", "--json").rows() if row["main"]]
    return str(found)


def test_two_branches_are_compared(stocked: Palaver) -> None:
    """In words and as JSON: what they begin with, and what each holds alone; an unknown one is missing."""
    one, other = _dialogs(stocked)
    row = stocked("branch", "diff", one[:12], other, "--json").row()
    assert row["ancestor"].startswith(one[:12])
    assert (len(row["one"]["messages"]), len(row["other"]["messages"])) == (2, 2)
    words = stocked("branch", "diff", one, other).out
    assert "- [0. user (user)]: And now?" in words
    assert "+ [1. assistant (assistant)]: Another answer." in words
    assert stocked("branch", "diff", one, "00000000").code == Exit.MISSING


def test_a_fork_goes_on_by_itself(stocked: Palaver) -> None:
    """It shares what was said, or the last part of it; the tree shows it below its parent."""
    main = _main(stocked)
    made = stocked("branch", "fork", "talk", "--last", 1, "--json").row()
    assert made["parent"] == main
    row = next(row for row in stocked("branch", "tree", "talk", "--json").rows() if row["dialog"] == made["dialog"])
    assert (row["parent"], row["messages"], row["relation"]) == (main, 2, "fork")


def test_a_branch_is_merged_once(stocked: Palaver) -> None:
    """The main dialog is told, once; then there is nothing to tell; the words may be the user's."""
    main = _main(stocked)
    (branch,) = [dialog for dialog in _dialogs(stocked) if dialog != main]
    row = stocked("branch", "merge", branch, "--json").row()
    assert (row["dialog"], row["entry"][:12]) == (main, main[:12])
    assert branch[:12] in row["text"]
    again = stocked("branch", "merge", branch)
    assert again.code == Exit.INPUT
    told = stocked("branch", "merge", main, "--into", branch, "--text", "In [bold]my[/bold] words.")
    assert told.out.endswith("\nIn [bold]my[/bold] words.\n")
    assert "What happened on branch" in stocked("view", "talk").out


def test_a_rewind_is_previewed_done_and_undone(stocked: Palaver) -> None:
    """Without --yes nothing is written; with it the rewound dialog is the main one; --undo goes back, previewed first, too."""
    main, before = _main(stocked), _dialogs(stocked)
    place = stocked("show", "talk", "--json").rows()[2]["handle"]
    preview = stocked("branch", "rewind", place)
    assert (preview.code, "Nothing was written" in preview.out) == (Exit.OK, True)
    row = stocked("branch", "rewind", place, "--json").row()
    assert row["dialog"] is None
    assert row["leaving"]
    assert _dialogs(stocked) == before
    made = stocked("branch", "rewind", place, "--yes", "--json").row()["dialog"]
    assert _main(stocked) == made
    assert stocked("branch", "rewind", "talk", "--undo", "--json").row() == {"to": main, "done": False}
    assert _main(stocked) == made
    assert "Back to dialog" in stocked("branch", "rewind", "talk", "--undo", "--yes").out
    assert _main(stocked) == main
    assert stocked("branch", "rewind", "talk", "--undo", "--yes").code == Exit.INPUT
    assert stocked("branch", "rewind", "000000000000:1").code == Exit.MISSING


def test_labels_are_set_listed_and_removed(stocked: Palaver) -> None:
    """An entry is named, renamed and loses its name; what is not there is missing."""
    place = f"{_main(stocked)[:12]}:1"
    assert stocked("branch", "label", "talk").out == ""
    stocked("branch", "label", place, "the question")
    assert stocked("branch", "label", place, "the first question").out == f"{place}  the first question\n"
    assert stocked("branch", "label", "talk", "--json").row() == {"handle": place, "label": "the first question"}
    assert stocked("branch", "label", place).out == ""
    assert stocked("branch", "label", f"{place}999", "x").code == Exit.MISSING
    assert stocked("branch", "label", "talk", "x").code == Exit.INPUT


# --- pins -----------------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def long(tmp_path: Path) -> Palaver:
    """Return the command line over a store with one long session."""
    command = Palaver(tmp_path)
    with SqliteStore(command.store) as store:
        dialog = Session.create(store, "long", owner="a").root
        dialog.put_text("Make it fast.")
        for turn in range(20):
            dialog.put_text(f"answer-{turn}- " + "word " * 80, role="assistant")
            dialog.put_text(f"go {turn}")
    return command


def root(command: Palaver) -> DialogId:
    """Return the session's first dialog."""
    with SqliteStore(command.store) as store:
        return Session.open("long", store).root.dialog_id


def entries(command: Palaver) -> int:
    """Count the entries of its first dialog."""
    with SqliteStore(command.store) as store:
        return store.last(root(command)).seq + 1


def test_what_is_pinned_stays_and_is_listed(long: Palaver) -> None:
    """A block's handle pins its entry, once; it is in the view after a compaction; unpinned, it leaves with the next one."""
    place = Handle(root(long), 3)
    assert long("branch", "pin", "long").out == ""
    (row,) = long("branch", "pin", f"{place}:0", "--json").rows()
    assert (row["handle"], row["dialog"], row["shown"]) == (str(place), root(long), True)
    assert row["text"].startswith("assistant: answer-1- word")
    before = entries(long)
    assert long("branch", "pin", place).out.startswith(f"{place}  assistant: answer-1- ")
    assert entries(long) == before
    long("compact", "long", "--yes", "--budget", 800)
    assert "answer-1-" in long("view", "long").out
    assert "answer-2-" not in long("view", "long").out
    assert long("branch", "pin", place, "--undo").out == ""
    long("compact", "long", "--undo")
    long("compact", "long", "--yes", "--budget", 800)
    assert "answer-1-" not in long("view", "long").out


def test_a_pin_is_made_where_the_entry_is(long: Palaver) -> None:
    """In the main dialog where that holds the entry, else in the entry's own."""
    with SqliteStore(long.store) as store:
        fork = Session.open("long", store).root.fork()
        fork.put_text("only here")
        place = fork.messages.handle(len(fork.messages) - 1)
    assert long("branch", "pin", place, "--json").row()["dialog"] == fork.dialog_id
    assert long("branch", "pin", "long").out == ""
    assert long("branch", "pin", Handle(root(long), 1), "--json").row()["dialog"] == root(long)


def test_an_erased_entry_is_listed_as_that(long: Palaver) -> None:
    """The pin of what is gone for good is listed without its words, and can be removed."""
    place = Handle(root(long), 3)
    long("branch", "pin", place)
    assert long("erase", place, "--yes").code == Exit.OK
    ran = long("branch", "pin", "long")
    assert (ran.code, "answer-1-" in ran.out) == (Exit.OK, False)
    assert long("branch", "pin", place, "--undo").out == ""


WRONG = [
    ("pin nothing", Exit.MISSING),
    ("pin 000000000000:1", Exit.MISSING),
    ("pin HERE:900", Exit.MISSING),
    ("pin HERE:2 --undo", Exit.INPUT),
    ("pin HERE:41", Exit.INPUT),
    ("pin long --undo", Exit.INPUT),
    ("quarantine long", Exit.INPUT),
    ("quarantine HERE:900", Exit.MISSING),
    ("quarantine HERE:1 --undo", Exit.INPUT),
    ("rewind HERE:900", Exit.MISSING),
]


def test_what_is_wrong_is_reported_and_not_written(long: Palaver) -> None:
    """The documented number, one line, and a log as it was; entry 41 is a label, which no view shows."""
    here = root(long)
    long("branch", "label", f"{here}:1", "name")
    before = entries(long)
    for words, code in WRONG:
        for form in ([], ["--json"]):
            ran = long("branch", *words.replace("HERE", here[:12]).split(), *form)
            assert ran.code == code, (words, ran)
            assert "Traceback" not in ran.err
    assert entries(long) == before


# --- quarantine -----------------------------------------------------------------------------------------------------------------------


def test_quarantine_is_one_step_and_not_done_twice(stocked: Palaver) -> None:
    """Several handles are one step; a wrong one among them writes nothing at all."""
    rows = stocked("show", "talk", "--json").rows()
    places = [row["handle"] for row in rows if row["kind"] == "message"][:2]
    first = stocked("branch", "quarantine", *places, "--reason", "refused")
    assert [line.endswith("--undo shows it again.") for line in first.out.splitlines()] == [True, True]
    assert "already" in stocked("branch", "quarantine", places[0]).out
    wrong = stocked("branch", "quarantine", "--undo", places[0], f"{places[1]}:99")
    assert (wrong.code, wrong.out) == (Exit.INPUT, "")
    assert "already" in stocked("branch", "quarantine", places[0]).out, "nothing of the step was done"


def test_ambiguous_names_are_refused_and_listed(tmp_path: Path) -> None:
    """Whatever changes a session refuses a name that several sessions have, and lists them; reading takes the newest."""
    command = Palaver(tmp_path)
    with SqliteStore(command.store) as store:
        ids = []
        for _ in range(2):
            made = Session.create(store, "twin")
            made.root.put_text("hello " * 50)
            ids.append(made.session_id)
    for words in (
        "erase twin --yes",
        "erase twin",
        "compact twin --yes",
        "branch fork twin",
        "branch rewind twin --undo",
        "store hold twin --reason why",
        "doctor twin --repair",
    ):
        ran = command(*words.split())
        assert (ran.code, ran.out) == (Exit.MISSING, ""), words
        assert all(one in ran.err for one in ids), words
        assert set(command(*words.split(), "--json").row()["error"]["candidates"]) == set(ids), words
    assert "hello" in command("show", "twin").out
    assert len(command("sessions", "--json").rows()) == 2
