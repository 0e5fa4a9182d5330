"""What a schedule decided, from the command line."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copytree

import pytest

from palaver import AssistantMessage, Session, ToolCallContent, ToolMessage, ToolResultContent
from palaver.cli.outcome import Exit
from palaver.context import PriceSheet, Scheduled
from tests.cli.commands import run

_MODEL = "claude-sonnet-4-5"
_ROUNDS = 12


@pytest.fixture(scope="module")
def scheduled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a store with a session in which each call was scheduled, and one flushed."""
    path = tmp_path_factory.mktemp("scheduled") / "s.db"
    policy = Scheduled("palaver", _MODEL, prices=PriceSheet(read=0.5, write=0.6, missed=0.0), newest=2)
    with Session.create(path, "book") as session:
        dialog = session.root
        dialog.put_text("Read the pages.")
        for number in range(_ROUNDS):
            composed = dialog.compose(policy)
            dialog.record_call(dialog.request("anthropic", _MODEL), composed.plan.details)
            call = ToolCallContent(id=f"c{number}", name="read", args={"page": number})
            page = ToolResultContent(id=call.id, name="read", content=f"{number} a line of the page\n" * 100)
            dialog.append([AssistantMessage(contents=(call,)), ToolMessage.from_result(page)])
    return path


def test_view_explains_what_was_decided_before_a_call(scheduled: Path) -> None:
    """With --call and --explain: what waited, its rent, the price, and why it was flushed or kept; the request stays the output."""
    done = run("view", "book", "--store", str(scheduled), "--call", str(_ROUNDS), "--explain")
    assert done.code == Exit.OK
    assert json.loads(done.out)["messages"]
    said = " ".join(done.err.split())
    assert "schedule: " in said
    assert "waited; " in said
    assert "rent " in said
    assert "price " in said


def test_calls_give_decisions_as_json(scheduled: Path) -> None:
    """Each row has the decision before its call; a call that nothing was scheduled for has none."""
    done = run("calls", "book", "--store", str(scheduled), "--json")
    rows = done.rows()
    whys = [row["decision"]["edits"]["why"] for row in rows]
    assert len(rows) == _ROUNDS
    assert whys[0] == "nothing"
    assert "paid" in whys


def test_view_says_what_a_schedule_would_do_now(scheduled: Path) -> None:
    """With --policy: the notes of the schedule, by the model's prices and the calls that the log has. Another model has no cache."""
    same = run("view", "book", "--store", str(scheduled), "--policy", "scheduled", "--model", _MODEL, "--explain")
    other = run("view", "book", "--store", str(scheduled), "--policy", "scheduled", "--model", "gpt-5", "--explain")
    assert same.code == other.code == Exit.OK
    assert "schedule: kept; 2 edits" in " ".join(same.err.split())
    assert "schedule: lost; 2 edits" in " ".join(other.err.split())


def test_view_says_that_an_undo_holds_a_schedule(scheduled: Path, tmp_path: Path) -> None:
    """Behind an undo nothing would be edited, and a note says why; with a budget that the view does not fit, as ever; by the next compaction it is over."""
    store = copytree(scheduled.parent, tmp_path / "copy") / scheduled.name
    with Session.open("book", store) as session:
        dialog = session.root
        dialog.compact(budget=4_000, model=_MODEL).approve()
        dialog.undo()
    words = ("view", "book", "--store", str(store), "--policy", "scheduled", "--model", _MODEL, "--explain")
    assert "schedule: held; a compaction was taken back" in " ".join(run(*words).err.split())
    assert "schedule: held" not in run(*words, "--budget", "4000").err
    with Session.open("book", store) as session:
        session.root.compact(budget=4_000, model=_MODEL).approve()
    assert "schedule: held" not in run(*words).err
