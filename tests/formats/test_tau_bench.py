"""τ-bench: every trajectory is a conversation, with a key that no other run of its task has."""

import tracemalloc
from pathlib import Path

from palaver.formats import Put, detect, open_source
from palaver.log import Custom, MessageEntry, Toolset
from palaver.messages import Role
from palaver.store.memory import MemoryStore
from tests.formats.chats import document, imported, refused, tau, views, written
from tests.formats.transcripts import read_bytes


def test_every_trajectory_is_a_conversation(tmp_path: Path) -> None:
    """Each has its messages in order, ids that say where they stood, and what stood beside them as metadata."""
    found = read_bytes(tmp_path, document(tau(3)))
    assert [one.title for one in found.conversations] == [f"task 7, trial {n}" for n in range(3)]
    assert [one.metadata["reward"] for one in found.conversations] == [1.0] * 3
    assert found.counted() == 21
    assert found.codes() == {}
    first = [put for put in found.puts if isinstance(put.entry, MessageEntry)][:7]
    said = [put.entry.message for put in first if isinstance(put.entry, MessageEntry)]
    assert [message.role for message in said][:4] == [Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL]
    assert [message.id for message in said] == [f"{found.conversations[0].key}:{n}" for n in range(7)]


def test_keys_are_stable_and_tell_runs_apart(tmp_path: Path) -> None:
    """A key is the same at every reading and wherever the run stands; runs of one task differ, the very same run twice as well."""
    runs = tau(2)
    keys = [one.key for one in read_bytes(tmp_path, document(runs)).conversations]
    assert keys == [one.key for one in read_bytes(tmp_path, document(runs)).conversations]
    assert keys[::-1] == [one.key for one in read_bytes(tmp_path, document(runs[::-1])).conversations]
    twice = [one.key for one in read_bytes(tmp_path, document([*runs, runs[0]])).conversations]
    assert twice == [*keys, f"{keys[0]}:2"]


def test_a_result_file_that_grew_adds_its_new_runs(tmp_path: Path) -> None:
    """The runs that were there add nothing; a message that was changed makes a branch."""
    store = MemoryStore()
    imported(store, written(tmp_path, document(tau(1))))
    grown = imported(store, written(tmp_path, document(tau(2))))
    assert [one.outcome for one in grown] == ["unchanged", "new"]
    changed = tau(2)
    changed[0]["traj"][3]["content"] = "a pearl"
    again = imported(store, written(tmp_path, document(changed)))
    assert [one.outcome for one in again] == ["rewritten", "unchanged"]
    assert again[0].dialogs == 2


def test_a_call_id_that_is_used_again_has_its_own_result(tmp_path: Path) -> None:
    """Two calls with one id each show their own result, and nothing is reported of them."""
    store = MemoryStore()
    found = imported(store, written(tmp_path, document(tau(1))))
    (view,) = views(store, found)
    results = [b.content for e in view.exchanges for t in e.turns for b in t.blocks if b.content.type == "tool_result"]
    assert [getattr(result, "content", "") for result in results] == ["a stone", "a tree"]
    assert not view.omissions
    assert refused(store, view) == []
    assert {loss.code for loss in found[0].losses} == {"stub"}


def test_tools_are_made_from_the_calls(tmp_path: Path) -> None:
    """The recording has no declarations: they are reconstructed, marked, and reported."""
    found = read_bytes(tmp_path, document(tau(1)))
    (tools,) = [put.entry for put in found.puts if isinstance(put.entry, Toolset)]
    assert [(tool.name, tool.stub) for tool in tools.tools] == [("look", True)]
    assert not [put for put in found.puts if isinstance(put.entry, Custom)]


def test_a_run_that_is_cut_off_keeps_its_key(tmp_path: Path) -> None:
    """The messages before the cut are read, and the whole file goes on from there."""
    whole = document(tau(1))
    cut = whole[: whole.index(b"a tree")]
    store = MemoryStore()
    (torn,) = imported(store, written(tmp_path, cut))
    assert torn.records == 5
    assert "torn_tail" in {loss.code for loss in torn.losses}
    (grown,) = imported(store, written(tmp_path, whole))
    assert (grown.session_id, grown.outcome, grown.records) == (torn.session_id, "grown", 7)


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """Reading many runs holds no more than reading a few: one is in memory at a time, once the format is found."""
    peaks = []
    for count in (50, 250):
        runs = tau(count)
        for run in runs:
            run["traj"][3]["content"] = "x" * 20_000
        with open_source(written(tmp_path, document(runs))) as source:
            reader = detect(source)
            tracemalloc.start()
            seen = sum(event.counted for event in reader.read(source) if isinstance(event, Put))
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        assert seen == 7 * count
        peaks.append(peak)
    assert peaks[1] < 1.5 * peaks[0]
