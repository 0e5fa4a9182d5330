"""OpenHands' logs of calls: each message once, what every call sent, and branches where a call sent something else."""

from pathlib import Path
from typing import Any

from palaver.log import Invocation
from tests.formats.reading import Read, read_bytes
from tests.formats.samples import as_sent, calls, chat, document, series, snapshot, tar


def read(folder: Path, found: list[Any]) -> Read:
    """Read an archive of calls."""
    return read_bytes(folder, calls(found))


def invocations(found: Read, dialog: str = "main") -> list[Invocation]:
    """Return what was recorded of the calls."""
    return [entry for entry in found.entries(dialog) if isinstance(entry, Invocation)]


def test_messages_of_all_calls_are_recorded_once(tmp_path: Path) -> None:
    """The union of the requests in order, the last answer included; answers have their ids, usage and dollars."""
    found = read(tmp_path, series())
    assert [one.key for one in found.conversations] == ["resp-1:1700000001.000"]
    assert found.counted() == 7
    assert [message.response_id for message in found.said() if message.response_id] == ["resp-1", "resp-2", "resp-3"]
    assert [message.usage.cost.total for message in found.said() if message.usage] == [0.25] * 3
    assert found.codes() == {}
    first = ["user: What is there?", "assistant: I look.", "assistant: look(c1)", "tool: c1=a stone"]
    assert found.shown()[:4] == first
    mark = (found.said()[0].contents[0].model_extra or {})["cache_control"]
    assert mark == {"type": "ephemeral"}


def test_run_that_began_anew_is_a_branch(tmp_path: Path) -> None:
    """A request that is shorter, or changed, shares what is the same; the longest run counts, and the newest goes on."""
    again = snapshot(4, [as_sent(one) for one in chat()[:2]], {"role": "assistant", "content": "A fish."})
    found = read(tmp_path, [*series(), again])
    branch = found.branch("branch:1")
    assert (branch.parent, branch.relation, found.conversations[0].main) == ("main", "fork", "branch:1")
    assert found.shown("branch:1") == ["user: What is there?", "assistant: A fish."]
    assert (found.counted(), found.codes()) == (7, {"rewritten": 1, "beside": 1})


def test_changed_message_is_a_branch_from_there(tmp_path: Path) -> None:
    """What was sent instead stands on the branch, with the answer to it; a branch of a branch leaves where it does."""
    found, changed = series(), series()[2]
    for one in (found[2], changed):
        one["messages"][3] = as_sent({"role": "tool", "tool_call_id": "c1", "content": "a pearl"})
    changed["messages"][5] = as_sent({"role": "tool", "tool_call_id": "c1", "content": "a bush"})
    seen = read(tmp_path, [*found, changed | {"timestamp": 1700000009.0}])
    parents = [(branch.dialog, branch.parent) for branch in seen.branches]
    assert parents == [("main", None), ("branch:1", "main"), ("branch:2", "branch:1")]
    results = [[line for line in seen.shown(key) if line.startswith("tool")] for key, _ in parents]
    assert [one[0] for one in results] == ["tool: c1=a stone", "tool: c1=a pearl", "tool: c1=a pearl"]
    assert results[2][1] == "tool: c1=a bush"
    assert invocations(seen, "branch:2")[0].manifest["messages"] == 6


def test_folders_of_an_archive_are_runs(tmp_path: Path) -> None:
    """A single call, in an archive or not, is a run, too."""
    other = snapshot(1, [{"role": "user", "content": "Hm?"}], {"role": "assistant", "content": "Hm."})
    other["response"]["id"] = "other"
    files = {f"a/{number}.json": one for number, one in enumerate(series())}
    found = read_bytes(tmp_path, tar({**files, "b/0.json": other}))
    assert [one.key for one in found.conversations] == ["resp-1:1700000001.000", "other:1700000001.000"]
    alone = read_bytes(tmp_path, document(series()[0]))
    assert (alone.counted(), len(invocations(alone))) == (3, 1)
