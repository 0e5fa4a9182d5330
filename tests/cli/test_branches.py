"""The commands for branches: diff, merge, rewind, label, and files with parents."""

import json

from palaver.cli.outcome import Exit
from tests.cli.commands import Palaver


def _dialogs(palaver: Palaver) -> list[str]:
    return [row["dialog"] for row in palaver("tree", "talk", "--json").rows()]


def _main(palaver: Palaver) -> str:
    (found,) = [row["dialog"] for row in palaver("tree", "talk", "--json").rows() if row["main"]]
    return str(found)


def test_diff(stocked: Palaver) -> None:
    """Two branches of a session are told apart, in words and as JSON; an unknown one is missing."""
    one, other = _dialogs(stocked)
    row = stocked("diff", "talk", one[:12], other, "--json").row()
    assert row["ancestor"].startswith(one[:12])
    assert (len(row["one"]["messages"]), len(row["other"]["messages"])) == (2, 2)
    words = stocked("diff", "talk", one, other).out
    assert "- [0. user (user)]: And now?" in words
    assert "+ [1. assistant (assistant)]: Another answer." in words
    assert stocked("diff", "talk", one, "00000000").code == Exit.MISSING


def test_merge(stocked: Palaver) -> None:
    """A branch is told to the dialog to go on with, once; then there is nothing to tell."""
    main = _main(stocked)
    (branch,) = [dialog for dialog in _dialogs(stocked) if dialog != main]
    row = stocked("merge", "talk", branch, "--json").row()
    assert (row["dialog"], row["entry"][:12]) == (main, main[:12])
    assert branch[:12] in row["text"]
    again = stocked("merge", "talk", branch)
    assert again.code == Exit.INPUT
    assert "was not told" in again.err
    told = stocked("merge", "talk", main, "--into", branch, "--text", "In [bold]my[/bold] words.")
    assert told.out.endswith("\nIn [bold]my[/bold] words.\n")
    assert "What happened on branch" in stocked("view", "talk").out


def test_rewind_is_looked_at_done_and_undone(stocked: Palaver) -> None:
    """Without --yes nothing is written; with it the rewound dialog is the main one; --undo goes back, and is looked at first too."""
    main = _main(stocked)
    before = _dialogs(stocked)
    handles = [
        row["handle"] for row in map(json.loads, stocked("show", "talk", "--entries", "--json").out.splitlines())
    ]
    place = handles[2]
    preview = stocked("rewind", "talk", "--to", place)
    assert (preview.code, "Nothing was written" in preview.out) == (Exit.OK, True)
    row = stocked("rewind", "talk", "--to", place, "--json").row()
    assert row["dialog"] is None
    assert row["tokens"]["after"] < row["tokens"]["before"]
    assert _dialogs(stocked) == before
    made = stocked("rewind", "talk", "--to", place, "--yes", "--json").row()["dialog"]
    assert _main(stocked) == made
    assert stocked("rewind", "talk", "--undo", "--json").row()["dialog"] is None
    assert _main(stocked) == made
    assert "goes on" in stocked("rewind", "talk", "--undo", "--yes").out
    assert _main(stocked) == main
    assert stocked("rewind", "talk", "--undo", "--yes").code == Exit.INPUT
    assert stocked("rewind", "talk").code == Exit.INPUT
    assert stocked("rewind", "talk", "--to", place, "--undo").code == Exit.INPUT
    assert stocked("rewind", "talk", "--to", "000000000000:1").code == Exit.MISSING


def test_label(stocked: Palaver) -> None:
    """An entry is named, listed, renamed and loses its name; what is not there is missing."""
    place = f"{_main(stocked)[:12]}:1"
    assert stocked("label", "talk").out == ""
    stocked("label", "talk", place, "the question")
    assert stocked("label", "talk", place, "the first question").out == f"{place}  the first question\n"
    assert stocked("label", "talk", "--json").row() == {"handle": place, "label": "the first question"}
    assert stocked("label", "talk", place).out == ""
    assert stocked("label", "talk", f"{place}999", "x").code == Exit.MISSING
    assert stocked("label", "talk", "nonsense", "x").code == Exit.INPUT


def test_a_file_with_parents_imports_again(stocked: Palaver) -> None:
    """`export --to pi` gives a file that `import` reads, with all branches, and exporting that gives the same file."""
    first, second = stocked.folder / "one.jsonl", stocked.folder / "two.jsonl"
    assert stocked("export", "talk", "--to", "pi", "-o", first).code == Exit.OK
    row = stocked("import", first, "--json").row()
    assert (row["format"], row["dialogs"]) == ("pi", 2)
    assert stocked("export", row["session"], "--to", "pi", "-o", second).code == Exit.OK
    assert first.read_bytes() == second.read_bytes()
