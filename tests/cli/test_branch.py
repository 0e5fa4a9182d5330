"""palaver branch: trees, forks, rewinds, merges, differences, and the marks on entries."""

from __future__ import annotations

from palaver import Session, SqliteStore
from palaver.cli.outcome import Exit
from tests.cli.commands import Palaver


def dialogs(palaver: Palaver) -> list[str]:
    """Return the dialogs of the session `talk`, the main one first."""
    rows = palaver("branch", "tree", "talk", "--json").rows()
    return [row["dialog"] for row in sorted(rows, key=lambda row: not row["main"])]


def test_two_branches_are_compared(stocked: Palaver) -> None:
    """In words and as JSON: what they begin with, and what each holds alone; an unknown one is missing."""
    other, one = dialogs(stocked)
    row = stocked("branch", "diff", one[:12], other, "--json").row()
    assert row["ancestor"].startswith(one[:12])
    assert (len(row["one"]["messages"]), len(row["other"]["messages"])) == (2, 2)
    words = stocked("branch", "diff", one, other).out
    asked, answered = row["one"]["messages"][0], row["other"]["messages"][1]
    assert f"- {one[:12]}:8  user: And now?" in words
    assert f"+ {other[:12]}:1  assistant: Another answer." in words
    assert (asked, answered) == (f"{one[:12]}:8", f"{other[:12]}:1")
    assert stocked("branch", "diff", one, "00000000").code == Exit.MISSING


def test_a_fork_goes_on_by_itself(stocked: Palaver) -> None:
    """It shares what was said, or the last part of it; the tree shows it below its parent."""
    main = dialogs(stocked)[0]
    made = stocked("branch", "fork", "talk", "--last", 1, "--json").row()
    assert made["parent"] == main
    row = next(row for row in stocked("branch", "tree", "talk", "--json").rows() if row["dialog"] == made["dialog"])
    assert (row["parent"], row["messages"], row["relation"]) == (main, 2, "fork")
    made = stocked("branch", "fork", "talk:0", "--json").row()
    row = next(row for row in stocked("branch", "tree", "talk", "--json").rows() if row["dialog"] == made["dialog"])
    assert (row["parent"], row["messages"], row["main"]) == (main, 1, False)
    assert stocked("branch", "fork", "talk:0", "--last", 1).code == Exit.USAGE


def test_a_branch_is_merged_once(stocked: Palaver) -> None:
    """The main dialog is told, once; then there is nothing to tell; the words may be the user's."""
    main, branch = dialogs(stocked)
    row = stocked("branch", "merge", branch, "--json").row()
    assert (row["dialog"], row["entry"][:12]) == (main, main[:12])
    assert branch[:12] in row["text"]
    again = stocked("branch", "merge", branch)
    assert again.code == Exit.INPUT
    told = stocked("branch", "merge", main, "--into", branch, "--text", "In [bold]my[/bold] words.")
    assert told.out.endswith("\nIn [bold]my[/bold] words.\n")
    assert "What happened on branch" in stocked("view", "talk").out


def test_a_rewind_is_previewed_done_and_undone(stocked: Palaver) -> None:
    """Without --yes nothing is written and the handles of what leaves are listed; with it the rewound dialog is the main one; --undo goes back, previewed first, too."""
    main, *others = dialogs(stocked)
    place = stocked("show", "talk", "--json").rows()[2]["handle"]
    preview = stocked("branch", "rewind", place)
    assert (preview.code, "Nothing was written" in preview.out) == (Exit.OK, True)
    row = stocked("branch", "rewind", place, "--json").row()
    assert row["dialog"] is None
    assert [line.split()[1] for line in preview.out.splitlines() if line.startswith("- ")] == row["leaving"]
    assert row["leaving"]
    assert dialogs(stocked) == [main, *others]
    made = stocked("branch", "rewind", place, "--yes", "--json").row()["dialog"]
    assert dialogs(stocked)[0] == made
    assert stocked("branch", "rewind", "talk", "--undo", "--json").row() == {"to": main, "done": False}
    assert dialogs(stocked)[0] == made
    assert "Back to dialog" in stocked("branch", "rewind", "talk", "--undo", "--yes").out
    assert dialogs(stocked)[0] == main
    assert stocked("branch", "rewind", "talk", "--undo", "--yes").code == Exit.INPUT
    assert stocked("branch", "rewind", "000000000000:1").code == Exit.MISSING


def test_labels_are_set_listed_and_removed(stocked: Palaver) -> None:
    """An entry is named, renamed and loses its name; what is not there is missing."""
    place = f"{dialogs(stocked)[0][:12]}:1"
    assert stocked("branch", "label", "talk").out == "Nothing is labelled.\n"
    stocked("branch", "label", place, "the question")
    assert stocked("branch", "label", place, "the first question").out == f"{place}  the first question\n"
    assert stocked("branch", "label", "talk", "--json").row() == {"handle": place, "label": "the first question"}
    assert stocked("branch", "label", place).out == "Nothing is labelled.\n"
    assert stocked("branch", "label", f"{place}999", "x").code == Exit.MISSING
    assert stocked("branch", "label", "talk", "x").code == Exit.INPUT


# --- pins -----------------------------------------------------------------------------------------------------------------------------


def test_what_is_pinned_stays_and_is_listed(long: Palaver) -> None:
    """A block's handle pins its entry, once; it is in the view after a compaction; unpinned, it leaves with the next one."""
    place = long("show", "long", "--json").rows()[3]["handle"]
    assert long("branch", "pin", "long").out == "Nothing is pinned.\n"
    (row,) = long("branch", "pin", f"{place}:0", "--json").rows()
    assert (row["handle"], row["shown"]) == (place, True)
    assert row["text"].startswith("assistant: answer-1- word")
    before = len(long("show", "long", "--json").rows())
    assert long("branch", "pin", place).out.startswith(f"{place}  assistant: answer-1- ")
    assert len(long("show", "long", "--json").rows()) == before
    for undo, shown in ((False, True), (True, False)):
        if undo:
            assert long("branch", "pin", place, "--undo").out == "Nothing is pinned.\n"
        long("compact", "long", "--yes", "--budget", 1_200)
        view = long("view", "long").out
        assert ("answer-1-" in view, "answer-2-" in view) == (shown, False)
        long("compact", "long", "--undo")


def test_ambiguous_names_are_refused_and_listed(palaver: Palaver) -> None:
    """Whatever changes a session refuses a name that several sessions have, and lists them; reading takes the newest."""
    with SqliteStore(palaver.store) as store:
        made = [Session.create(store, "twin") for _ in range(2)]
        for one in made:
            one.root.put_text("hello " * 50)
        ids = [one.session_id for one in made]
    for words in (
        "erase twin --yes",
        "compact twin --yes",
        "branch fork twin",
        "branch rewind twin --undo",
        "store hold twin --reason why",
        "doctor twin --repair",
    ):
        ran = palaver(*words.split())
        assert (ran.code, ran.out) == (Exit.MISSING, ""), words
        assert all(one in ran.err for one in ids), words
        assert set(palaver(*words.split(), "--json").row()["error"]["candidates"]) == set(ids), words
    assert "hello" in palaver("show", "twin").out
    assert len(palaver("sessions", "--json").rows()) == 2
