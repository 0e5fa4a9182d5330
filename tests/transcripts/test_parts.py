"""Sub-agents with files of their own: each is a dialog of the session that started it, never doubled, never in its way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from palaver.errors import StoreFull
from palaver.store.memory import MemoryStore
from palaver.testing.logs import sketch
from palaver.transcripts import Imported, Importer, examine, export_bundle, import_bundle
from palaver.transcripts.parts import in_order
from palaver.view import fold
from tests.formats.transcripts import Claude, call, text
from tests.transcripts.test_importing import FullStore


def parent(turns: int = 1) -> bytes:
    """A session that starts an agent, and goes on."""
    session = Claude()
    session.user("u1", "Look around.")
    session.model("a1", "m1", call("task1", "Task", prompt="Find the tests.", subagent_type="Explore"))
    session.result("r1", "task1", "There are 12.")
    for turn in range(turns):
        session.model(f"b{turn}", f"n{turn}", text(f"answer {turn}"))
        session.user(f"v{turn}", f"question {turn}")
    return session.bytes()


def agent(turns: int = 1, prompt: str = "Find the tests.") -> bytes:
    """The file of the agent."""
    session = Claude()
    more: dict[str, Any] = {"isSidechain": True, "agentId": "abc123"}
    session.user("s1", prompt, **more)
    for turn in range(turns):
        session.model(f"t{turn}", f"o{turn}", call(f"grep{turn}", "Grep", pattern="def test"), **more)
        session.result(f"w{turn}", f"grep{turn}", f"found {turn}", **more)
    return session.bytes()


def imported(store: MemoryStore, folder: Path, name: str, data: bytes) -> Imported:
    """Write a file and import it."""
    path = folder / name
    path.write_bytes(data)
    (one,) = Importer(store).import_path(path)
    return one


def test_an_agents_file_is_a_dialog_of_the_session_that_started_it(tmp_path: Path) -> None:
    """It shares nothing, names its call and its kind, and the session goes on with its own dialog; again adds nothing, grown adds what is new."""
    store = MemoryStore()
    whole = imported(store, tmp_path, "s.jsonl", parent())
    part = imported(store, tmp_path, "agent-abc123.jsonl", agent())
    first, sub = store.nodes(whole.session_id)

    assert (part.session_id, part.main, part.dialogs) == (whole.session_id, whole.main, 2)
    assert (sub.parent_id, sub.relation, sub.owner, sub.ranges) == (first.dialog_id, "subagent", "Explore", ())
    assert sub.metadata["call"] == "task1"
    assert sketch(fold(store, sub.dialog_id))[0] == "user[Find the tests.]"
    assert store.session(whole.session_id).root == whole.main
    assert imported(store, tmp_path, "agent-abc123.jsonl", agent()).entries == 0
    assert imported(store, tmp_path, "agent-abc123.jsonl", agent(3)).outcome == "grown"
    grown = imported(store, tmp_path, "s.jsonl", parent(3))
    assert (grown.outcome, grown.dialogs, grown.main) == ("grown", 2, whole.main)
    assert examine(store, whole.session_id).healthy


def test_a_session_with_its_agents_is_one_bundle(tmp_path: Path) -> None:
    """Export, import and export again give the same bytes, and the files of both are in it; importing them there adds nothing."""
    store, other = MemoryStore(), MemoryStore()
    whole = imported(store, tmp_path, "s.jsonl", parent())
    imported(store, tmp_path, "agent-abc123.jsonl", agent())
    data = b"".join(export_bundle(store, whole.session_id))
    rest = iter([data])
    import_bundle(other, lambda _size: next(rest, b""))

    assert b"".join(export_bundle(other, whole.session_id)) == data
    assert len(other.sources(whole.session_id)) == 2
    assert imported(other, tmp_path, "agent-abc123.jsonl", agent()).entries == 0


def test_an_agent_that_no_call_names_hangs_on_the_session(tmp_path: Path) -> None:
    """Words that no call gave lead to no call; the file names the session all the same."""
    store = MemoryStore()
    whole = imported(store, tmp_path, "s.jsonl", parent())
    imported(store, tmp_path, "agent-abc123.jsonl", agent(prompt="Warmup"))
    first, sub = store.nodes(whole.session_id)

    assert (sub.parent_id, sub.relation) == (first.dialog_id, "subagent")
    assert "call" not in sub.metadata


def test_what_progress_showed_of_an_agent_is_named(tmp_path: Path) -> None:
    """Newer sessions record some of it within the progress of the call: both stand side by side, under one dialog, and the report says so."""
    store = MemoryStore()
    session = Claude()
    session.user("u1", "Look around.")
    session.model("a1", "m1", call("task1", "Task", prompt="Find the tests.", subagent_type="Explore"))
    inner = {"type": "user", "message": {"role": "user", "content": [text("Find the tests.")]}}
    session.record(
        "progress",
        "p1",
        data={"type": "agent_progress", "agentId": "abc123", "message": inner},
        parentToolUseID="task1",
        toolUseID="x",
    )
    session.result("r1", "task1")
    whole = imported(store, tmp_path, "s.jsonl", session.bytes())
    part = imported(store, tmp_path, "agent-abc123.jsonl", agent())
    first, shown, sub = store.nodes(whole.session_id)

    assert (shown.parent_id, sub.parent_id) == (first.dialog_id, first.dialog_id)
    assert (shown.owner, sub.owner, sub.metadata["call"]) == ("Explore", "Explore", "task1")
    assert [loss.reason for loss in part.losses if loss.code == "beside"] == [
        f"What the progress of its call showed of it is dialog {shown.dialog_id[:12]}."
    ]


def test_an_agent_without_its_session_is_a_session_of_its_own(tmp_path: Path) -> None:
    """Nothing is lost when the session is not there: it is reported, and it stays so when the session comes later."""
    store = MemoryStore()
    alone = imported(store, tmp_path, "agent-abc123.jsonl", agent())
    whole = imported(store, tmp_path, "s.jsonl", parent())
    again = imported(store, tmp_path, "agent-abc123.jsonl", agent(2))

    assert alone.session_id != whole.session_id
    assert "part" in {loss.code for loss in alone.losses}
    assert (again.session_id, again.outcome) == (alone.session_id, "grown")
    assert len(store.nodes(whole.session_id)) == 1


@pytest.mark.parametrize("room", range(1, 6))
def test_an_agent_whose_import_was_cut_off_is_taken_up(tmp_path: Path, room: int) -> None:
    """The session stays as it is, and the same import completes the agent's dialog."""
    store = FullStore(100)
    whole = imported(store, tmp_path, "s.jsonl", parent())
    store.room = room
    with pytest.raises(StoreFull):
        imported(store, tmp_path, "agent-abc123.jsonl", agent(4))
    assert store.session(whole.session_id).trashed_at is None
    store.room = 100
    part = imported(store, tmp_path, "agent-abc123.jsonl", agent(4))
    _, *subs = store.nodes(whole.session_id)

    assert len(subs) == 1
    assert len(fold(store, subs[0].dialog_id).exchanges) == 5
    assert part.main == whole.main
    assert imported(store, tmp_path, "s.jsonl", parent()).outcome == "unchanged"


def test_files_of_agents_come_after_the_others() -> None:
    """A folder's files, in whatever order a shell gives them, are imported so that an agent finds its session."""
    names = ["agent-1.jsonl", "b.jsonl", "agent-0.jsonl", "a.jsonl.zst"]
    assert [path.name for path in in_order(map(Path, names))] == [
        "b.jsonl",
        "a.jsonl.zst",
        "agent-1.jsonl",
        "agent-0.jsonl",
    ]
