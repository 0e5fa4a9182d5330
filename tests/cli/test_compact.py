"""palaver compact and palaver constraints: previews, approvals, the way back; a list that is read and changed."""

import json
from pathlib import Path

import pytest

from palaver import Session, SqliteStore
from palaver.context.summary import HEADINGS
from tests.cli.commands import Palaver

GOOD = "\n\n".join(f"## {heading}\nwhat was said of it" for heading in HEADINGS)


@pytest.fixture
def long(tmp_path: Path) -> Palaver:
    """Give the command line over a store with one long session."""
    command = Palaver(tmp_path)
    with SqliteStore(command.store) as store:
        dialog = Session.create(store, "long", owner="a").root
        dialog.put_text("Make it fast. You must never push to main. The stars must be far away.")
        for turn in range(30):
            dialog.put_text(f"answer {turn} " + "word " * 120, role="assistant")
            dialog.put_text(f"the heron {turn}" if turn == 4 else f"go {turn}")
    return command


def newest(command: Palaver) -> int:
    """Give the number of the newest entry."""
    with SqliteStore(command.store) as store:
        return store.last(Session.open("long", store).root.dialog_id).seq


def test_a_preview_is_shown_and_nothing_is_written(long: Palaver) -> None:
    """Sizes, what would go, what would stand for it; as words and as JSON; where nobody can be asked the same."""
    before = newest(long)
    shown = long("compact", "long", "--preview", "--focus", "heron")
    assert shown.code == 0
    assert "messages leave the view, none the log" in shown.out
    assert "1 exchange with 'heron' stays" in shown.out
    assert "What stands in their place:" in shown.out
    assert "Nothing was written" in shown.out
    row = long("compact", "long", "--json").row()
    assert row["tokens_after"] < row["tokens_before"]
    assert row["entry"] is None
    assert row["omitted"]
    assert long("compact", "long").out.endswith("Nothing was written.\n")
    assert newest(long) == before


def test_yes_does_it_and_undo_takes_it_back(long: Palaver) -> None:
    """One entry each; what left is recalled by the place that the preview names."""
    done = long("compact", "long", "--yes", "--budget", 2_000, "--policy", "letta", "--json").row()
    assert done["policy"] == "letta"
    assert done["tokens_after"] <= 2_000
    assert done["entry"]
    place = done["omitted"][0]["place"]
    assert long("recall", place).code == 0
    assert long("view", "long", "--json").row()["tokens"] <= 2_100
    back = long("compact", "long", "--undo", "--json").row()
    assert back["tokens_after"] > back["tokens_before"]
    again = long("compact", "long", "--undo")
    assert again.code == 3
    assert "undone" in again.err
    assert "Compacted by entry" in long("compact", "long", "-y").out


def test_a_model_may_summarise_and_a_bad_one_costs_nothing(long: Palaver) -> None:
    """A script in the place of a model: its summary is in the preview; what refuses is told, and the record stands alone."""
    script = long.file("good.json", json.dumps([GOOD]))
    shown = long("compact", "long", "--preview", "--summarizer", f"scripted:{script}")
    assert "what was said of it" in shown.out
    script = long.file("bad.json", json.dumps(["I am sorry."] * 2))
    shown = long("compact", "long", "--yes", "--summarizer", f"scripted:{script}")
    assert shown.code == 0
    assert "no summary: it has none of the sections" in shown.out
    assert long("compact", "long", "--summarizer", "nobody/x").code == 3


def test_r293_the_summary_of_a_preview_is_what_is_committed(long: Palaver) -> None:
    """A preview that paid for a summary says how to have it; kept in a file, changed by hand and taken back, it is in the view word for word."""
    script = long.file("two.json", json.dumps([GOOD, GOOD.replace("what was", "something else"), GOOD]))
    shown = long("compact", "long", "--preview", "--summarizer", f"scripted:{script}")
    assert "This summary is kept nowhere: --yes asks for another one." in shown.out
    kept = long.file("summary.md", "")
    before = newest(long)
    shown = long("compact", "long", "--preview", "--summarizer", f"scripted:{script}", "--keep-summary", str(kept))
    assert f"`--summary {kept} --yes` commits it as it stands." in shown.out
    assert newest(long) == before
    text = Path(kept).read_text(encoding="utf-8")
    assert text.strip() == GOOD
    Path(kept).write_text(text.replace("what was said", "WHAT I CHANGED"), encoding="utf-8")
    row = long("compact", "long", "--yes", "--summary", str(kept), "--json").row()
    assert (row["refused"], row["summary"].count("WHAT I CHANGED")) == ("", 6)
    assert "WHAT I CHANGED" in long("view", "long").out
    assert long("compact", "long", "--summary", str(kept), "--summarizer", "x/y").code == 2
    assert long("compact", "long", "--summary", str(kept) + ".not").code == 3
    nobody = long("compact", "long", "--preview", "--keep-summary", str(kept))
    assert (nobody.code, "name one with --summarizer" in nobody.err) == (2, True)
    nowhere = long("compact", "long", "--preview", "--summarizer", "nobody/x", "--keep-summary", "no/folder/x.md")
    assert (nowhere.code, "There is no folder no/folder" in nowhere.err) == (3, True)
    bad = long.file("bad.md", "Sure!")
    assert "none of the sections" in long("compact", "long", "--preview", "--summary", str(bad), "--budget", 1_500).out


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("compact", "nothing"), 4),
        (("compact", "long", "--policy", "letta2"), 4),
        (("compact", "long", "--budget", "1"), 6),
        (("compact", "long", "--budget", "0"), 2),
        (("compact", "long", "--yes", "--undo"), 2),
        (("compact", "long", "--undo"), 3),
        (("compact", "long", "--dialog", "ffffff"), 4),
        (("constraints", "long", "--remove", "nothing like it"), 4),
        (("constraints", "long", "--remove", "99"), 4),
        (("constraints", "long", "--add", "  "), 3),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, tuple) else str(one),
)
def test_what_is_wrong_is_told_by_the_exit_code(long: Palaver, words: tuple[str, ...], code: int) -> None:
    """No traceback, the documented number, and nothing written."""
    before = newest(long)
    ran = long(*words)
    assert ran.code == code, ran
    assert "Traceback" not in ran.err
    assert newest(long) == before


def test_constraints_are_listed_and_changed(long: Palaver) -> None:
    """By their words or their number; what was changed holds in the next command, and behind a compaction."""
    assert [row["text"] for row in long("constraints", "long", "--json").rows()] == [
        "You must never push to main.",
        "The stars must be far away.",
    ]
    ran = long("constraints", "long", "--remove", "2", "--add", "Write in English.")
    assert ran.code == 0
    assert "2. Write in English." in ran.out
    assert "[" in ran.out.splitlines()[0]
    long("compact", "long", "--yes")
    rows = long("constraints", "long", "--json").rows()
    assert [row["text"] for row in rows] == ["You must never push to main.", "Write in English."]
    assert rows[0]["said_at"]
    assert rows[1]["said_at"] is None
    assert "Write in English." in long("view", "long").out
