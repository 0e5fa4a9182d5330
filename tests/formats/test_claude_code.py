"""Claude Code sessions: each trap of the format, in a session of a few lines."""

from pathlib import Path
from typing import Any

from palaver.log import Compaction, ContextEdit, Custom, Instructions, Toolset
from palaver.messages import Role, Speaker, thaw
from palaver.providers import profile
from palaver.wire import Call, compile  # noqa: A004 - the word for it
from tests.formats.reading import Read, events_of, read_bytes
from tests.formats.samples import Claude, call, text


def read(folder: Path, session: Claude) -> Read:
    """Read a session."""
    return read_bytes(folder, session.bytes(), "session.jsonl")


def small() -> Claude:
    """Return a session of one question, one call and one answer."""
    session = Claude()
    session.user("u1", "List the files.")
    session.model("a1", "msg_1", text("Looking."))
    session.model("a2", "msg_1", call("toolu_1"))
    session.result("r1", "toolu_1", "a.txt")
    session.model("a3", "msg_2", text("There is a.txt."))
    return session


def test_fragments_share_an_id_and_count_usage_once(tmp_path: Path) -> None:
    """The last line of a response alone has its usage, and the view shows one response."""
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
    said = ["assistant: One.", "assistant: Bash(t1)", "assistant: Bash(t2)", "tool: t1=done", "tool: t2=done"]
    assert found.shown() == ["user: Go.", *said]


def test_parallel_calls_are_no_branch(tmp_path: Path) -> None:
    """Chained calls whose results hang off their own call are one dialog, also when the user added words to a result."""
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
    speakers = [(message.role, message.speaker) for message in found.said()]
    assert speakers[3:5] == [(Role.TOOL, Speaker.TOOL), (Role.USER, Speaker.HUMAN)]
    assert not [exchange for exchange in found.view().exchanges if exchange.open]


def test_rewind_is_a_fork(tmp_path: Path) -> None:
    """Of two continuations with words of the user the first keeps the dialog; the later one is the dialog to go on with."""
    session = small()
    session.user("u2", "Delete it.")
    session.model("a4", "msg_3", text("Deleted."))
    session.user("u3", "Rather keep it.", after="a3")
    session.model("a5", "msg_4", text("Kept."))
    session.user("u4", "Something else.", after=None)
    found = read(tmp_path, session)
    fork = found.branch("fork:u3")
    assert (fork.parent, fork.relation) == ("main", "fork")
    assert fork.at == [put.record for put in found.puts].index("a3") + 1
    assert found.branch("fork:u4").at == 0
    assert found.conversations[0].main == "fork:u4"
    assert [message.id for message in found.said()][-2:] == ["u2", "a4"]
    assert found.shown("fork:u3")[-3:] == ["assistant: There is a.txt.", "user: Rather keep it.", "assistant: Kept."]
    assert found.shown("fork:u4") == ["user: Something else."]


def sidechain(agent: str | None) -> Claude:
    """Return a session whose sub-agent is recorded as a sidechain."""
    about: dict[str, Any] = {"isSidechain": True} | ({"agentId": agent} if agent else {})
    session = Claude()
    session.user("u1", "Review this.")
    session.model("a1", "msg_1", call("t1", "Task", prompt="Read everything.", subagent_type="reviewer"))
    session.user("s1", "Read everything.", after=None, **about)
    session.model("s2", "msg_s", call("ts", "Read", path="a"), **about)
    session.result("s3", "ts", "content", **about)
    session.result("r1", "t1", "It is fine.", after="a1")
    session.records[-1]["toolUseResult"] = {"agentId": agent} if agent else {}
    return session


def test_sidechain_is_a_dialog_of_the_sub_agent(tmp_path: Path) -> None:
    """It shares nothing with the dialog that started it, and names the call where the file links both."""
    for agent in [None, "abc123"]:
        found = read(tmp_path, sidechain(agent))
        key = f"agent:{agent}" if agent else "side:s1"
        branch = found.branch(key)
        assert (branch.parent, branch.at, branch.relation) == ("main", 0, "subagent"), agent
        assert (branch.owner, branch.metadata) == (("reviewer", {"call": "t1"}) if agent else (key, {})), agent
        assert [message.id for message in found.said(key)] == ["s1", "s2", "s3"], agent
        assert [message.id for message in found.said()] == ["u1", "a1", "r1"], agent
        assert (found.counted(), found.conversations[0].main) == (6, "main"), agent


def test_compaction_shows_what_the_agent_saw(tmp_path: Path) -> None:
    """Afterwards the view is the summary and what follows; the whole is still there."""
    for logical in ["a3", "not-in-the-file"]:
        session = small()
        about = {"subtype": "compact_boundary", "compactMetadata": {"trigger": "auto", "preTokens": 9000}}
        session.record("system", "b1", after=None, logicalParentUuid=logical, content="Compacted", **about)
        assert read(tmp_path, session).codes()["missing_summary"] == 1, logical
        session.user("c1", "This session is being continued: a.txt was found.", isCompactSummary=True)
        session.user("u2", "And now?")
        session.model("a4", "msg_3", text("Nothing."))
        found = read(tmp_path, session)
        (entry,) = [entry for entry in found.entries() if isinstance(entry, Compaction)]
        assert (entry.foreign, entry.policy, entry.tokens_before) == (True, "claude-code", 9000), logical
        assert entry.tokens_after < entry.tokens_before, logical
        summary = "user: This session is being continued: a.txt was found."
        assert found.shown() == [summary, "user: And now?", "assistant: Nothing."], logical
        assert len(found.shown(whole=True)) == 7, logical
        assert sum(gone.messages for gone in found.view().omissions) == 4, logical
        assert ([branch.dialog for branch in found.branches], found.counted()) == (["main"], 8), logical


def test_the_providers_compaction_is_kept(tmp_path: Path) -> None:
    """«threshold compaction block lost»: a block of Anthropic's own compaction, and what it says it cleared, stay; requests to Anthropic begin with the block."""
    session = small()
    block = {"type": "compaction", "content": "a.txt was found.", "encrypted_content": "c2VhbGVk"}
    session.user("u2", "And now?")
    session.model("a4", "msg_3", block)
    session.model("a5", "msg_3", text("Nothing."))
    edits = {"applied_edits": [{"type": "clear_tool_uses_20250919", "cleared_tool_uses": 1}]}
    session.records[-1]["message"]["context_management"] = edits
    session.user("u3", "Sure?")
    found = read(tmp_path, session)
    (kept,) = [part for message in found.said() for part in message.contents if part.type == "compaction"]
    assert {"type": kept.type, **(kept.model_extra or {})} == block
    assert found.said()[-2].metadata == {"context_management": edits}
    assert found.codes() == {}
    request = compile(found.view(), profile("anthropic", "claude-opus-4-6"), Call(model="claude-opus-4-6"), _none)
    assert thaw(request.body["messages"][0]["content"]) == [block, {"type": "text", "text": "Nothing."}]


def _none(digest: str) -> bytes:
    raise AssertionError(digest)


def test_microcompaction_clears_results(tmp_path: Path) -> None:
    """Cleared results are shown as Claude Code showed them; one that is not there is reported."""
    session = small()
    about = {"preTokens": 90, "compactedToolIds": ["toolu_1", "toolu_0"]}
    session.record("system", "m1", subtype="microcompact_boundary", microcompactMetadata=about)
    session.user("u2", "And now?")
    found = read(tmp_path, session)
    assert [len(entry.edits) for entry in found.entries() if isinstance(entry, ContextEdit)] == [1]
    assert found.codes() == {"dangling_edit": 1}
    assert "tool: toolu_1=[Old tool result content cleared]" in found.shown()
    assert "tool: toolu_1=a.txt" in found.shown(whole=True)


def test_missing_parents_and_repeated_ids_are_reported(tmp_path: Path) -> None:
    """A record without its parent, or its own, follows the one before it; the same record twice counts once, another of its id is kept."""
    session = small()
    session.records.append(session.records[-1] | {"version": "2.1.40"})
    assert (read(tmp_path, session).codes(), read(tmp_path, session).counted()) == ({"duplicate_id": 1}, 5)
    session.model("a3", "msg_9", text("Other words."))
    session.user("u2", "And now?", after="gone")
    session.user("u3", "So?", after="u3")
    found = read(tmp_path, session)
    assert found.codes() == {"duplicate_id": 2, "dangling_parent": 2}
    assert [message.text_content() for message in found.said()][-3:] == ["Other words.", "And now?", "So?"]


def test_file_without_parents_is_read_in_its_order(tmp_path: Path) -> None:
    """Where no record names its parent, every prompt would be a new beginning: the order of the file counts."""
    session = Claude()
    for number in range(4):
        session.user(f"u{number}", f"Question {number}", after=None)
        session.model(f"a{number}", f"m{number}", text("Yes."), after=None)
    found = read(tmp_path, session)
    assert ([branch.dialog for branch in found.branches], found.codes()) == (["main"], {"no_parents": 1})
    assert found.counted() == 8


def snapshot(*texts: str, **fields: object) -> dict[str, Any]:
    """Return the attachment in which Claude Code 2.1.332 keeps what it told the model."""
    return {"type": "prompt_snapshot", "systemPrompt": list(texts), "contextRendering": "announced", **fields}


def test_prompt_snapshot_is_instructions_and_tools(tmp_path: Path) -> None:
    """The system prompt and the tools are in force from there on; a second snapshot of the same adds nothing but its tools."""
    tool = {"name": "Bash", "description": "Run.", "input_schema": {"type": "object"}}
    session = Claude()
    session.user("u1", "Go.")
    session.record("attachment", "a1", attachment=snapshot("You are an agent.", "# Memory"))
    session.model("m1", "r1", text("Done."))
    session.record("attachment", "a2", attachment=snapshot("You are an agent.", "# Memory", tools=[tool]))
    found = read(tmp_path, session)
    told = [[one.text for one in entry.sections] for entry in found.entries() if isinstance(entry, Instructions)]
    assert told == [["You are an agent.", "# Memory"]]
    assert [[one.name for one in entry.tools] for entry in found.entries() if isinstance(entry, Toolset)] == [["Bash"]]
    assert not [loss for loss in found.losses if loss.code == "no_instructions"]
    kept = [entry.data for entry in found.entries() if isinstance(entry, Custom)]
    assert kept == [{"type": "prompt_snapshot", "contextRendering": "announced"}] * 2


def test_sub_agents_type_is_beside_its_file(tmp_path: Path) -> None:
    """The file `agent-x.meta.json` beside `agent-x.jsonl` names the agent that ran; without it, or damaged, the file is read alone."""
    session = Claude()
    session.record("user", "u1", message={"role": "user", "content": "Look."}, isSidechain=True, agentId="x1")
    path = tmp_path / "agent-x1.jsonl"
    path.write_bytes(session.bytes())
    owners = []
    for meta in (None, b"{", b'{"agentType": 3}', b'{"agentType": "Explore", "description": "look"}'):
        if meta is not None:
            (tmp_path / "agent-x1.meta.json").write_bytes(meta)
        found = Read(path, list(events_of(path)))
        owners.append(found.branches[0].owner)
    assert owners == ["claude-code", "claude-code", "claude-code", "Explore"]
