"""palaver compact: previews, commits, and the way back."""

from __future__ import annotations

import json

from tests.cli.commands import Palaver

SUMMARY = "The user wants it fast and never pushed to main."


def test_a_preview_writes_nothing(long: Palaver) -> None:
    """Sizes, what would leave, what would stand for it; as words and as JSON."""
    before = long("show", "long", "--json").rows()
    shown = long("compact", "long")
    assert shown.code == 0
    assert "messages leave the view, none leaves the log" in shown.out
    assert "In their place:" in shown.out
    assert "messages, left out; a short record or a summary is shown instead" in shown.out
    assert shown.out.endswith("Nothing was written: --yes does it.\n")
    row = long("compact", "long", "--json").row()
    assert row["tokens_after"] <= row["tokens_before"] / 2
    assert row["entry"] is None
    assert row["omitted"]
    assert long("show", "long", "--json").rows() == before


def test_commit_undo_and_redo(long: Palaver) -> None:
    """One entry each; what left is shown by the place that the preview names; nothing is undone twice."""
    whole = long("view", "long", "--json").row()["tokens"]
    done = long("compact", "long", "--yes", "--budget", 2_000, "--policy", "letta", "--json").row()
    assert done["policy"] == "letta"
    assert done["tokens_after"] <= 2_000
    assert done["entry"]
    assert "answer-0-" in long("show", done["omitted"][0]["place"]).out
    small = long("view", "long", "--json").row()["tokens"]
    assert small <= 2_100
    assert ": left out; a short record or a summary is shown instead" in long("view", "long").out
    assert long("compact", "long", "--undo", "--json").row()["entry"]
    assert long("view", "long", "--json").row()["tokens"] == whole
    assert "Redone by entry" in long("compact", "long", "--redo").out
    assert long("view", "long", "--json").row()["tokens"] == small
    assert long("compact", "long", "--undo").code == 0
    again = long("compact", "long", "--undo")
    assert (again.code, "no compaction" in again.err) == (3, True)


def test_a_wrong_option_is_named_alone(long: Palaver) -> None:
    """What is said is about the option that is wrong."""
    assert "--undo" not in (focus := long("compact", "long", "--focus", "tests")).err
    assert "--focus" not in (both := long("compact", "long", "--undo", "--redo")).err
    assert focus.code == both.code == 2


def test_a_model_may_summarise(long: Palaver) -> None:
    """Its summary stands beside the record; one that fails is reported, and the record stands alone."""
    script = long.file(
        "good.json", json.dumps([{"text": SUMMARY, "usage": {"prompt_tokens": 40, "completion_tokens": 5}}])
    )
    shown = long("compact", "long", "--summarizer", f"scripted:{script}", "--focus", "herons")
    assert SUMMARY in shown.out
    assert "asked scripted for a summary: 40 tokens read" in shown.out
    script = long.file("bad.json", json.dumps([""] * 3))
    shown = long("compact", "long", "--yes", "--summarizer", f"scripted:{script}")
    assert shown.code == 0
    assert "no summary: " in shown.out
    assert long("compact", "long", "--summarizer", "nobody/x").code == 3
