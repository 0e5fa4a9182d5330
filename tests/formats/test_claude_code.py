"""Claude Code sessions: each trap of the format, in a transcript of a few lines."""

from pathlib import Path
from typing import Any

import pytest

from palaver.log import Compaction, ContextEdit, Custom, ErrorEntry, MessageEntry, ModeChange, ModelChange, Toolset
from palaver.messages import ImageContent, Role, Speaker, ToolResultContent
from tests.formats.transcripts import Claude, Landed, Read, call, read_bytes, shown, text


def read(folder: Path, session: Claude) -> Read:
    """Read a session."""
    return read_bytes(folder, session.bytes(), "session.jsonl")


def small() -> Claude:
    """Write a session of one question, one call and one answer."""
    session = Claude()
    session.user("u1", "List the files.")
    session.model("a1", "msg_1", text("Looking."))
    session.model("a2", "msg_1", call("toolu_1"))
    session.result("r1", "toolu_1", "a.txt")
    session.model("a3", "msg_2", text("There is a.txt."))
    return session


def test_a_plain_session_is_read_in_order(tmp_path: Path) -> None:
    """Roles, contents, ids and times are those of the file, and the session knows its folder, version and first model."""
    found = read(tmp_path, small())
    assert [message.role for message in found.said()] == [
        Role.USER,
        Role.ASSISTANT,
        Role.ASSISTANT,
        Role.TOOL,
        Role.ASSISTANT,
    ]
    assert [message.id for message in found.said()] == ["u1", "a1", "a2", "r1", "a3"]
    assert [message.timestamp for message in found.said()] == [1767323041.0 + n for n in range(5)]
    assert found.counted() == 5
    (conversation,) = found.conversations
    assert (conversation.key, conversation.workdir, conversation.main) == ("session-1", "/home/u/project", "main")
    assert (conversation.model, conversation.metadata["version"]) == ("claude-opus-4-6", "2.1.36")
    assert found.codes() == {}


def test_every_entry_names_its_record(tmp_path: Path) -> None:
    """A put carries the record's id and digest, its entry the format, the id and the record's number."""
    found = read(tmp_path, small())
    puts = [put for put in found.puts if isinstance(put.entry, MessageEntry)]
    sources = [put.entry.source for put in puts]
    assert [(s.format, s.record, s.ordinal) for s in sources if s] == [
        ("claude-code", uuid, n) for n, uuid in enumerate(("u1", "a1", "a2", "r1", "a3"))
    ]
    assert len({put.digest for put in puts}) == 5
    assert all(len(put.digest) == 16 for put in puts)


def test_fragments_of_a_response_share_its_id_and_count_its_usage_once(tmp_path: Path) -> None:
    """The lines of a response share the response id; the last one alone has the usage, whose output is the final count."""
    session = Claude()
    session.user("u1", "Go.")
    session.model("a1", "msg_1", text("One."), output=9)
    session.model("a2", "msg_1", call("t1"), output=9)
    session.result("r1", "t1")
    session.model("a3", "msg_1", call("t2"), output=160)
    session.result("r2", "t2")
    found = read(tmp_path, session)
    fragments = [message for message in found.said() if message.role is Role.ASSISTANT]
    assert {message.response_id for message in fragments} == {"msg_1"}
    assert [message.usage.output_tokens for message in fragments] == [0, 0, 160]
    assert [message.usage.input_tokens for message in fragments] == [0, 0, 103]
    view = Landed(found).view()
    assert shown(view) == [
        "user: Go.",
        "assistant: One.",
        "assistant: Bash(t1)",
        "assistant: Bash(t2)",
        "tool: t1=done",
        "tool: t2=done",
    ]


def test_parallel_calls_are_no_branch(tmp_path: Path) -> None:
    """Chained calls whose results hang off their own call are one dialog, even when the user added words to one result."""
    session = Claude()
    session.user("u1", "Go.")
    session.model("a1", "msg_1", call("t1"))
    session.model("a2", "msg_1", call("t2"))
    added = [{"tool_use_id": "t1", "type": "tool_result", "content": "one"}, text("And mind the tests.")]
    session.user("r1", added, after="a1")
    session.result("r2", "t2", "two", after="a2")
    session.model("a3", "msg_2", text("Done."))
    session.user("u2", "Thanks.")
    found = read(tmp_path, session)
    assert [branch.dialog for branch in found.branches] == ["main"]
    assert found.counted() == 7
    roles = [(message.role, message.speaker) for message in found.said()]
    assert roles[3:5] == [(Role.TOOL, Speaker.TOOL), (Role.USER, Speaker.HUMAN)]
    assert not [block for block in Landed(found).view().exchanges if block.open]


def test_a_rewind_is_a_fork_that_shares_what_came_before(tmp_path: Path) -> None:
    """Of two continuations with words of the user the first keeps the dialog, and the later one is the fork to go on with."""
    session = small()
    session.user("u2", "Delete it.")
    session.model("a4", "msg_3", text("Deleted."))
    session.user("u3", "Rather keep it.", after="a3")
    session.model("a5", "msg_4", text("Kept."))
    found = read(tmp_path, session)
    fork = found.branch("fork:u3")
    assert (fork.parent, fork.relation) == ("main", "fork")
    assert fork.at == [put.record for put in found.puts].index("a3") + 1
    assert found.conversations[0].main == "fork:u3"
    assert [message.id for message in found.said()][-2:] == ["u2", "a4"]
    landed = Landed(found)
    assert shown(landed.view("fork:u3"))[-3:] == [
        "assistant: There is a.txt.",
        "user: Rather keep it.",
        "assistant: Kept.",
    ]
    assert "user: Delete it." not in shown(landed.view("fork:u3"))


def test_a_rewind_to_the_beginning_shares_no_words(tmp_path: Path) -> None:
    """A second root with words of the user begins anew, with nothing but the tools."""
    session = small()
    session.user("u2", "Something else.", after=None)
    found = read(tmp_path, session)
    assert found.branch("fork:u2").at == 1
    assert shown(Landed(found).view("fork:u2")) == ["user: Something else."]


def test_a_grown_file_begins_with_what_it_was(tmp_path: Path) -> None:
    """Reading a longer file gives the same puts in the same dialogs, and more; only what is derived or counts usage may differ."""
    session = small()
    session.user("u2", "Delete it.")
    before = read(tmp_path, session)
    session.user("u3", "Rather keep it.", after="a3")
    session.model("a5", "msg_4", call("t9", "Write", path="x"))
    after = read(tmp_path, session)
    kept = [(put.dialog, put.record, put.digest) for put in before.puts if not put.derived]
    assert [(put.dialog, put.record, put.digest) for put in after.puts if not put.derived][: len(kept)] == kept


def test_progress_in_the_chain_is_passed_through(tmp_path: Path) -> None:
    """Progress records stand between a message and its parent; they become no entries, and are reported as one note."""
    session = Claude()
    session.record("progress", "p0", data={"type": "hook_progress", "hookEvent": "SessionStart"})
    session.user("u1", "Go.")
    session.model("a1", "msg_1", call("t1"))
    session.record("progress", "p1", data={"type": "bash_progress", "output": "x"})
    session.result("r1", "t1", after="a1")
    session.model("a2", "msg_2", text("Done."), after="p1")
    found = read(tmp_path, session)
    assert [message.id for message in found.said()] == ["u1", "a1", "r1", "a2"]
    notes = [loss.reason for loss in found.losses if loss.code == "skipped"]
    assert any(note.startswith("1 progress/bash_progress record: ") for note in notes)
    assert all(loss.severity == "note" for loss in found.losses if loss.code == "skipped")


def sidechain(agent: str | None) -> Claude:
    """Write a session whose sub-agent is recorded as a sidechain."""
    about: dict[str, Any] = {"isSidechain": True} | ({"agentId": agent} if agent else {})
    session = Claude()
    session.user("u1", "Review this.")
    session.model("a1", "msg_1", call("t1", "Task", prompt="Read everything.", subagent_type="reviewer"))
    session.user("s1", "Read everything.", after=None, **about)
    session.model("s2", "msg_s", call("ts", "Read", path="a"), **about)
    session.result("s3", "ts", "content", **about)
    session.result("r1", "t1", "It is fine.", after="a1")
    return session


@pytest.mark.parametrize("agent", [None, "abc123"])
def test_a_sidechain_is_a_dialog_of_the_sub_agent(tmp_path: Path, agent: str | None) -> None:
    """A sidechain shares nothing with the dialog of the call that started it, and names that call."""
    found = read(tmp_path, sidechain(agent))
    key = f"agent:{agent}" if agent else "side:s1"
    branch = found.branch(key)
    assert (branch.parent, branch.at, branch.relation, branch.owner) == ("main", 0, "subagent", "reviewer")
    assert branch.metadata == {"call": "t1"}
    assert [message.id for message in found.said(key)] == ["s1", "s2", "s3"]
    assert [message.id for message in found.said()] == ["u1", "a1", "r1"]
    assert found.counted() == 6
    assert found.conversations[0].main == "main"
    tools = [[tool.name for tool in entry.tools] for put in found.puts if isinstance(entry := put.entry, Toolset)]
    assert tools == [["Task"], ["Read"]]


def test_a_file_of_a_sub_agent_alone_is_a_session_of_its_own(tmp_path: Path) -> None:
    """A file that holds nothing but a sidechain has it as its first dialog."""
    session = sidechain("abc123")
    session.records = [record for record in session.records if record["isSidechain"]]
    found = read(tmp_path, session)
    assert [(branch.dialog, branch.parent, branch.relation) for branch in found.branches] == [("main", None, "root")]
    assert found.counted() == 3
    assert found.conversations[0].key == "session-1/agent:abc123"


def test_what_a_sub_agent_said_within_progress_is_its_dialog(tmp_path: Path) -> None:
    """Messages within the progress of a call become the sub-agent's dialog, and do not count as records of the conversation."""
    session = Claude()
    session.user("u1", "Review this.")
    session.model("a1", "msg_1", call("t1", "Task", prompt="Read.", subagent_type="Explore"))
    for number, message in enumerate(
        (
            {"type": "user", "uuid": "i1", "message": {"role": "user", "content": [text("Read.")]}},
            {
                "type": "assistant",
                "uuid": "i2",
                "message": {"role": "assistant", "id": "m", "model": "claude-x", "content": [call("ti")]},
            },
            {
                "type": "user",
                "uuid": "i3",
                "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "ti", "content": "y"}]},
            },
        )
    ):
        data = {"type": "agent_progress", "agentId": "ag", "prompt": "Read.", "message": message}
        session.record("progress", f"p{number}", data=data, parentToolUseID="t1")
    session.result("r1", "t1", "Fine.", after="a1")
    found = read(tmp_path, session)
    branch = found.branch("agent:ag")
    assert (branch.relation, branch.owner, branch.metadata) == ("subagent", "Explore", {"call": "t1"})
    assert [message.role for message in found.said("agent:ag")] == [Role.USER, Role.ASSISTANT, Role.TOOL]
    assert found.counted() == 3


def compacted(logical: str) -> Claude:
    """Write a session that was compacted."""
    session = small()
    about = {"subtype": "compact_boundary", "compactMetadata": {"trigger": "auto", "preTokens": 9000}}
    session.record("system", "b1", after=None, logicalParentUuid=logical, content="Conversation compacted", **about)
    session.user("c1", "This session is being continued: a.txt was found.", isCompactSummary=True)
    session.user("u2", "And now?")
    session.model("a4", "msg_3", text("Nothing."))
    return session


@pytest.mark.parametrize("logical", ["a3", "not-in-the-file"])
def test_a_compaction_shows_what_the_agent_saw(tmp_path: Path, logical: str) -> None:
    """After a compaction the default view is the summary and what follows; the whole is still there."""
    found = read(tmp_path, compacted(logical))
    assert [branch.dialog for branch in found.branches] == ["main"]
    (entry,) = [entry for entry in found.entries() if isinstance(entry, Compaction)]
    assert (entry.foreign, entry.policy, entry.tokens_before) == (True, "claude-code", 9000)
    assert entry.tokens_after < entry.tokens_before
    assert found.counted() == 8
    landed = Landed(found)
    assert shown(landed.view()) == [
        "user: This session is being continued: a.txt was found.",
        "user: And now?",
        "assistant: Nothing.",
    ]
    assert len(shown(landed.view(whole=True))) == 7
    assert [tool.name for tool in landed.view().tools] == ["Bash"]
    assert sum(gone.messages for gone in landed.view().omissions) == 4


def test_a_compaction_in_a_fork_leaves_out_what_the_fork_inherited(tmp_path: Path) -> None:
    """What a fork shares with its parent is compacted with it."""
    session = small()
    session.user("u2", "Delete it.")
    session.user("u3", "Keep it.", after="a3")
    session.record("system", "b1", after=None, logicalParentUuid="u3", subtype="compact_boundary", compactMetadata={})
    session.user("c1", "Summary.", isCompactSummary=True)
    session.user("u4", "Go on.")
    landed = Landed(read(tmp_path, session))
    assert shown(landed.view("fork:u3")) == ["user: Summary.", "user: Go on."]
    assert shown(landed.view())[-1] == "user: Delete it."


def test_a_boundary_without_its_summary_is_reported(tmp_path: Path) -> None:
    """A file that ends between the boundary and the summary says so."""
    session = small()
    session.record("system", "b1", after=None, logicalParentUuid="a3", subtype="compact_boundary", compactMetadata={})
    assert read(tmp_path, session).codes() == {"missing_summary": 1}


def test_a_microcompaction_clears_results(tmp_path: Path) -> None:
    """Cleared results are shown as Claude Code showed them from then on; a result that is not there is reported."""
    session = small()
    about = {
        "preTokens": 90,
        "tokensSaved": 10,
        "compactedToolIds": ["toolu_1", "toolu_0"],
        "clearedAttachmentUUIDs": [],
    }
    session.record(
        "system", "m1", subtype="microcompact_boundary", content="Context microcompacted", microcompactMetadata=about
    )
    session.user("u2", "And now?")
    found = read(tmp_path, session)
    assert [len(entry.edits) for entry in found.entries() if isinstance(entry, ContextEdit)] == [1]
    assert found.codes() == {"dangling_edit": 1}
    landed = Landed(found)
    assert "tool: toolu_1=[Old tool result content cleared]" in shown(landed.view())
    assert "tool: toolu_1=a.txt" in shown(landed.view(whole=True))


def test_words_of_the_harness_are_not_the_users(tmp_path: Path) -> None:
    """Meta records, output of local commands and synthetic answers are the harness's, and no model said the latter."""
    session = small()
    session.user("u2", "Base directory for this skill: x", isMeta=True)
    session.user("u3", "<local-command-stdout>See ya!</local-command-stdout>")
    session.model("a4", "id", text("No response requested."), model="<synthetic>", isApiErrorMessage=False)
    found = read(tmp_path, session)
    assert [message.speaker for message in found.said()[-3:]] == [Speaker.HARNESS] * 3
    assert found.said()[-1].model is None
    assert [entry.model for entry in found.entries() if isinstance(entry, ModelChange)] == ["claude-opus-4-6"]


def test_an_api_error_is_an_error_and_no_message(tmp_path: Path) -> None:
    """Error records count as records of the format, and become error entries."""
    session = small()
    session.model(
        "e1", "id", text("API Error: 529 Overloaded"), model="<synthetic>", isApiErrorMessage=True, error="unknown"
    )
    error = {"status": 529, "error": {"type": "error", "error": {"message": "Overloaded"}}}
    session.record("system", "e2", subtype="api_error", error=error, level="error")
    found = read(tmp_path, session)
    assert [entry.error for entry in found.entries() if isinstance(entry, ErrorEntry)] == [
        "API Error: 529 Overloaded",
        "Overloaded",
    ]
    assert found.counted() == 6
    assert len(found.said()) == 5


def test_a_missing_parent_is_reported_and_the_file_order_kept(tmp_path: Path) -> None:
    """A record whose parent is not in the file follows the record before it, and nothing is lost."""
    session = small()
    session.user("u2", "And now?", after="gone")
    session.model("a4", "msg_3", text("Nothing."))
    found = read(tmp_path, session)
    assert found.codes() == {"dangling_parent": 1}
    assert [message.id for message in found.said()][-2:] == ["u2", "a4"]


def test_a_repeated_id_is_reported_and_no_words_are_lost(tmp_path: Path) -> None:
    """The same record twice counts once; another record of the same id is kept beside the first."""
    session = small()
    session.records.append(session.records[-1] | {"version": "2.1.40"})
    assert read(tmp_path, session).codes() == {"duplicate_id": 1}
    assert read(tmp_path, session).counted() == 5
    session.model("a3", "msg_9", text("Other words."))
    found = read(tmp_path, session)
    assert found.codes() == {"duplicate_id": 2}
    assert "Other words." in [message.content for message in found.said()]


def test_results_without_a_call_or_with_a_second_one_are_kept_and_reported(tmp_path: Path) -> None:
    """A result that no call explains stays in the log."""
    session = small()
    session.result("r2", "toolu_0", "late")
    session.result("r3", "toolu_1", "again")
    found = read(tmp_path, session)
    assert found.codes() == {"orphan_result": 1, "duplicate_result": 1}
    assert sum(isinstance(block, ToolResultContent) for message in found.said() for block in message.contents) == 3


def test_two_records_on_one_line_are_both_read(tmp_path: Path) -> None:
    """Two writers without a line's end between them lose nothing."""
    data = small().bytes().replace(b"\n", b"", 1)
    found = read_bytes(tmp_path, data)
    assert found.codes() == {"glued_records": 1}
    assert found.counted() == 5


def test_tools_are_reconstructed_from_the_calls_and_marked(tmp_path: Path) -> None:
    """Each tool called is declared before the first message, as a stub that accepts every call seen."""
    session = small()
    session.model("a4", "msg_3", call("t2", "Bash", command="pwd", timeout=5))
    session.result("r2", "t2")
    found = read(tmp_path, session)
    first = found.puts[0]
    assert isinstance(first.entry, Toolset)
    assert (first.derived, first.digest) == (True, b"")
    (tool,) = first.entry.tools
    assert (tool.name, tool.stub) == ("Bash", True)
    assert tool.parameters == {
        "type": "object",
        "properties": {"command": {"type": "string"}, "timeout": {"type": "integer"}},
        "required": ["command"],
    }
    assert [loss.severity for loss in found.losses if loss.code == "stub"] == ["note", "note"]


def test_titles_modes_models_and_queued_words_are_kept(tmp_path: Path) -> None:
    """The user's title wins; a changed permission mode or model is an entry; queued words and unknown records are kept whole."""
    session = Claude()
    session.other(type="summary", summary="A summary", leafUuid="x")
    session.user("u1", "Plan it.", permissionMode="plan")
    session.model("a1", "msg_1", text("Planned."))
    session.other(
        type="queue-operation", operation="enqueue", content="Also this.", timestamp=STAMP_1, sessionId="session-1"
    )
    session.other(type="queue-operation", operation="dequeue", timestamp=STAMP_1, sessionId="session-1")
    session.user("u2", "Do it.", permissionMode="default")
    session.model("a2", "msg_2", text("Done."), model="claude-haiku-4-5")
    session.other(type="custom-title", customTitle="My title", sessionId="session-1")
    session.other(type="from-the-future", what=[1, 2])
    found = read(tmp_path, session)
    assert found.conversations[0].title == "My title"
    assert [entry.value for entry in found.entries() if isinstance(entry, ModeChange)] == ["plan", "default"]
    assert [entry.model for entry in found.entries() if isinstance(entry, ModelChange)] == [
        "claude-opus-4-6",
        "claude-haiku-4-5",
    ]
    kept = [entry for entry in found.entries() if isinstance(entry, Custom)]
    assert [entry.custom_type for entry in kept] == ["claude-code/queue-operation", "claude-code/from-the-future"]
    assert kept[1].data["what"] == [1, 2]


STAMP_1 = "2026-01-02T03:04:01.000Z"


def test_pictures_become_media_and_unknown_blocks_stay_whole(tmp_path: Path) -> None:
    """A base64 picture is an image by its bytes; a block of a new type keeps all its fields."""
    png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    session = Claude()
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": png}}
    session.user("u1", [picture, {"type": "hologram", "depth": 3}])
    (message,) = read(tmp_path, session).said()
    image, unknown = message.contents
    assert isinstance(image, ImageContent)
    assert image.images[0].media_type == "image/png"
    assert (unknown.type, unknown.model_extra) == ("hologram", {"depth": 3})


def test_surrogates_and_nul_are_repaired_and_reported(tmp_path: Path) -> None:
    """Text that no provider takes is repaired where it enters, and the place is named."""
    session = Claude()
    session.user("u1", "a\ud99cb\0c")
    found = read(tmp_path, session)
    assert found.codes() == {"surrogate": 1, "nul": 1}
    assert found.said()[0].content == "a\ufffdb\ufffdc"
    assert {loss.place for loss in found.losses if loss.code in {"surrogate", "nul"}} == {"line 1"}


def test_records_of_an_odd_shape_are_reported_one_by_one(tmp_path: Path) -> None:
    """A record that cannot be read costs itself and nothing else."""
    session = small()
    for number, message in enumerate((5, None, {"role": "user", "content": 7}, {"role": "user", "content": [3]})):
        session.record("user", f"x{number}", message=message)
    session.record("assistant", "x9", message={"content": [{"type": "tool_use", "id": 5, "name": [], "input": 3}]})
    session.user("u2", "Still here.", timestamp=None, cwd=3)
    found = read(tmp_path, session)
    assert found.codes() == {"bad_record": 4}
    assert found.said()[-1].content == "Still here."


def test_a_file_without_parents_is_read_in_its_order(tmp_path: Path) -> None:
    """Where no record names its parent, every prompt would be a new beginning: the order of the file counts instead."""
    session = Claude()
    for number in range(4):
        session.user(f"u{number}", f"Question {number}", after=None)
        session.model(f"a{number}", f"m{number}", text("Answer"), after=None)
    found = read(tmp_path, session)
    assert [branch.dialog for branch in found.branches] == ["main"]
    assert found.codes() == {"no_parents": 1}
    assert len(found.said()) == 8
