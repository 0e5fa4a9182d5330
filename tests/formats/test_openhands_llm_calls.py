"""OpenHands' logs of calls: each message once, what every call sent, and branches where a call sent something else."""

from pathlib import Path
from typing import Any

from palaver.log import Invocation, MessageEntry, Toolset
from palaver.messages import Message
from palaver.store.memory import MemoryStore
from tests.formats.chats import TOOL, as_sent, chat, document, imported, refused, series, snapshot, tar, views, written
from tests.formats.transcripts import Landed, Read, read_bytes, shown

CALLS = ["assistant: I look.", "assistant: look(c1)", "tool: c1=a stone"]


def read(folder: Path, calls: list[Any]) -> Read:
    """Read an archive of calls."""
    return read_bytes(folder, tar(calls))


def invocations(found: Read, dialog: str = "main") -> list[Invocation]:
    """Give what was recorded of the calls."""
    return [entry for entry in found.entries(dialog) if isinstance(entry, Invocation)]


def test_the_messages_of_all_calls_are_recorded_once(tmp_path: Path) -> None:
    """The union of the requests in order, the last answer included; answers have their ids, usage and dollars."""
    found = read(tmp_path, series())
    assert len(found.conversations) == 1
    assert found.conversations[0].key == "resp-1:1700000001.000"
    assert found.counted() == 7
    assert [message.response_id for message in found.said() if message.response_id] == ["resp-1", "resp-2", "resp-3"]
    assert [message.usage.cost.total for message in found.said() if message.usage] == [0.25] * 3
    assert found.codes() == {}
    assert shown(Landed(found).view())[:4] == ["user: What is there?", "assistant: I look.", *CALLS[1:]]


def test_every_call_says_what_was_sent(tmp_path: Path) -> None:
    """The number of messages, the places of the cache marks, and the parameters are those of the request."""
    calls = series()
    found = read(tmp_path, calls)
    manifests = [entry.manifest for entry in invocations(found)]
    assert [manifest["messages"] for manifest in manifests] == [2, 4, 6]
    assert [tuple(manifest["cache_marks"]) for manifest in manifests] == [(0, 1), (0, 3), (5,)]
    assert {manifest["parameters"]["temperature"] for manifest in manifests} == {0.5}
    before = [
        sum(1 for earlier in found.entries()[:place] if isinstance(earlier, MessageEntry))
        for place, entry in enumerate(found.entries())
        if isinstance(entry, Invocation)
    ]
    assert before == [2, 4, 6]


def test_a_cache_mark_stays_on_the_part_that_bore_it(tmp_path: Path) -> None:
    """The mark that a message had when it was first sent is kept beside its text."""
    first: Message = read(tmp_path, series()).said()[0]
    assert (first.contents[0].model_extra or {})["cache_control"] == {"type": "ephemeral"}


def test_tools_are_those_that_were_sent(tmp_path: Path) -> None:
    """They are declared once, and again where they change; none is a stub."""
    calls = series()
    calls[2]["kwargs"]["tools"] = [TOOL, {"type": "function", "function": {"name": "leap"}}]
    toolsets = [entry for entry in read(tmp_path, calls).entries() if isinstance(entry, Toolset)]
    assert [[tool.name for tool in entry.tools] for entry in toolsets] == [["look"], ["look", "leap"]]
    assert not any(tool.stub for entry in toolsets for tool in entry.tools)


def test_the_order_is_that_of_time(tmp_path: Path) -> None:
    """However the archive is packed, the same entries come of it."""
    assert read(tmp_path, series()).puts[1].digest == read(tmp_path, series()[::-1]).puts[1].digest
    packed = [[put.digest for put in read(tmp_path, calls).puts if put.counted] for calls in (series(), series()[::-1])]
    assert packed[0] == packed[1]


def test_a_run_that_began_anew_is_a_branch(tmp_path: Path) -> None:
    """A request that is shorter, or changed, shares what is the same; the longest run is what counts, and the newest goes on."""
    calls = series()
    talk = chat()
    calls.append(snapshot(4, [as_sent(one) for one in talk[:2]], {"role": "assistant", "content": "A fish."}))
    found = read(tmp_path, calls)
    branch = found.branch("branch:1")
    assert (branch.parent, branch.relation) == ("main", "fork")
    assert found.conversations[0].main == "branch:1"
    assert shown(Landed(found).view("branch:1")) == ["user: What is there?", "assistant: A fish."]
    assert found.counted() == 7
    assert found.codes() == {"rewritten": 1, "beside": 1}


def test_a_changed_message_in_the_middle_is_a_branch_from_there(tmp_path: Path) -> None:
    """What was sent instead stands on the branch, with the answer to it; a branch of a branch leaves where it does."""
    calls = series()
    calls[2]["messages"][3] = as_sent({"role": "tool", "tool_call_id": "c1", "content": "a pearl"})
    changed = series()[2]
    changed["messages"][3] = as_sent({"role": "tool", "tool_call_id": "c1", "content": "a pearl"})
    changed["messages"][5] = as_sent({"role": "tool", "tool_call_id": "c1", "content": "a bush"})
    changed |= {"timestamp": 1700000009.0}
    found = read(tmp_path, [*calls, changed])
    assert [(branch.dialog, branch.parent) for branch in found.branches] == [
        *(("main", None), ("branch:1", "main"), ("branch:2", "branch:1"))
    ]
    landed = Landed(found)
    assert "tool: c1=a stone" in shown(landed.view("main"))
    assert "tool: c1=a stone" not in shown(landed.view("branch:1"))
    assert shown(landed.view("branch:2"))[3] == "tool: c1=a pearl"
    assert [line for line in shown(landed.view("branch:2")) if line.startswith("tool:")][1] == "tool: c1=a bush"
    assert invocations(found, "branch:2")[0].manifest["messages"] == 6


def test_another_agents_calls_in_between_do_not_break_the_run(tmp_path: Path) -> None:
    """Calls with other instructions are a branch of their own, and the run goes on in its dialog."""
    calls = series()
    aside = [{"role": "system", "content": "Name the session."}, {"role": "user", "content": "stones"}]
    between = snapshot(5, aside, {"role": "assistant", "content": "Stones"}) | {"timestamp": 1700000002.5}
    found = read(tmp_path, [*calls, between])
    assert [branch.dialog for branch in found.branches] == ["main", "branch:1"]
    assert len(invocations(found)) == 3
    assert found.branch("branch:1").at == 0
    assert found.counted() == 7


def test_an_archive_that_grew_adds_its_new_calls(tmp_path: Path) -> None:
    """The calls that were there add nothing; the whole is what one import would have given."""
    store = MemoryStore()
    (first,) = imported(store, written(tmp_path, tar(series()[:2])))
    (grown,) = imported(store, written(tmp_path, tar(series())))
    assert (grown.session_id, grown.outcome, grown.dialogs) == (first.session_id, "grown", 1)
    (again,) = imported(store, written(tmp_path, tar(series())))
    assert (again.entries, again.outcome) == (0, "unchanged")
    assert all(refused(store, view) == [] for view in views(store, [grown]))


def test_folders_are_runs(tmp_path: Path) -> None:
    """The files of each folder of an archive are a conversation."""
    calls = series()
    other = snapshot(1, [{"role": "user", "content": "Hm?"}], {"role": "assistant", "content": "Hm."})
    other["response"]["id"] = "other"
    first, second = tar(calls, folder="a/"), tar([other], folder="b/")
    joined = first[: first.rstrip(b"\0").__len__() + -len(first.rstrip(b"\0")) % 512] + second
    found = read_bytes(tmp_path, joined)
    assert [one.key for one in found.conversations] == ["resp-1:1700000001.000", "other:1700000001.000"]


def test_a_single_call_is_a_run(tmp_path: Path) -> None:
    """A file of one call need not be in an archive."""
    found = read_bytes(tmp_path, document(series()[0]))
    assert (found.counted(), len(invocations(found))) == (3, 1)


def test_what_is_no_call_is_reported(tmp_path: Path) -> None:
    """Notes, damaged calls and calls without an answer are named; the others are read."""
    unanswered: dict[str, Any] = snapshot(6, [as_sent(one) for one in chat()[:2]], {}) | {"response": None}
    found = read(tmp_path, [*series(), b"# notes", b'{"messages": [', {"hello": 1}, unanswered])
    assert found.counted() == 7
    assert found.codes()["bad_record"] == 3
    assert any("no call" in loss.reason for loss in found.losses)
