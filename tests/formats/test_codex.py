"""Codex rollouts: each trap of the format, in a transcript of a few lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from palaver.log import Compaction, Custom, ErrorEntry, Instructions, ModeChange, ModelChange, Toolset
from palaver.messages import Role, Speaker, TextContent, ToolCallContent, ToolResultContent
from tests.formats.transcripts import Landed, Read, codex, event, item, jsonl, read_bytes, said, shown, tokens

TURN = ("turn_context", {"turn_id": "t", "model": "gpt-5.3-codex", "effort": "high", "approval_policy": "never"})
SEALED = "gAAAA" + "Ab1_" * 40


def call(call_id: str, **arguments: object) -> tuple[str, dict[str, Any]]:
    """Write a function call."""
    return item("function_call", call_id=call_id, name="exec_command", arguments=json.dumps(arguments))


def output(call_id: str, words: object = "done") -> tuple[str, dict[str, Any]]:
    """Write its output."""
    return item("function_call_output", call_id=call_id, output=words)


def read(folder: Path, *records: tuple[str, dict[str, Any]]) -> Read:
    """Read a rollout."""
    return read_bytes(folder, codex(*records), "rollout.jsonl")


def test_the_screens_mirror_is_left_out_and_said_so(tmp_path: Path) -> None:
    """Every text stands in a response item and in an event: it is read once."""
    found = read(
        tmp_path,
        TURN,
        said("user", "Hello."),
        event("user_message", message="Hello."),
        event("agent_message", message="Hi."),
        said("assistant", "Hi.", id="msg_1", phase="final_answer"),
        event("task_complete", last_agent_message="Hi."),
    )
    assert [(m.role, m.content) for m in found.said()] == [(Role.USER, "Hello."), (Role.ASSISTANT, "Hi.")]
    assert found.counted() == 2
    assert sum("mirror" in loss.reason for loss in found.losses) == 3
    assert found.codes() == {}
    assert found.said()[1].metadata == {"phase": "final_answer"}
    assert found.conversations[0].key == "thread-1"


def test_instructions_and_the_developers_words_are_kept_apart(tmp_path: Path) -> None:
    """The base instructions are an instructions entry; the developer speaks as the system; AGENTS.md is the harness's."""
    found = read(
        tmp_path,
        said("developer", "<permissions instructions>All.</permissions instructions>"),
        said("user", "# AGENTS.md instructions for /home/u/project\n\nBe kind."),
        said("user", "Hello."),
    )
    (instructions,) = [entry for entry in found.entries() if isinstance(entry, Instructions)]
    assert [section.text for section in instructions.sections] == ["You are Codex."]
    assert [m.role for m in found.said()] == [Role.SYSTEM, Role.USER, Role.USER]
    assert [m.speaker for m in found.said()] == [Speaker.HARNESS, Speaker.HARNESS, Speaker.HUMAN]
    assert not [loss for loss in found.losses if loss.code == "stub"]


def test_a_response_ends_where_something_else_stands(tmp_path: Path) -> None:
    """Items of one response share an id, and the last one has what the response used."""
    found = read(
        tmp_path,
        TURN,
        said("user", "Go."),
        item("reasoning", summary=[{"type": "summary_text", "text": "Hm."}], encrypted_content=SEALED),
        said("assistant", "Looking."),
        call("c1", cmd="ls"),
        call("c2", cmd="pwd"),
        output("c1"),
        output("c2"),
        tokens(100, 100),
        tokens(100, 100),
        call("c3", cmd="id"),
        output("c3"),
        tokens(120, 220),
        said("assistant", "Done."),
    )
    spoken = [m for m in found.said() if m.role is Role.ASSISTANT]
    first, second, third = spoken[0].response_id, spoken[4].response_id, spoken[5].response_id
    assert [m.response_id for m in spoken] == [first] * 4 + [second, third]
    assert len({first, second, third}) == 3
    assert [m.usage.input_tokens for m in spoken] == [0, 0, 0, 100, 120, 0]
    assert [m.model for m in spoken] == ["gpt-5.3-codex"] * 6
    assert len(Landed(found).view().exchanges) == 4


def test_reasoning_keeps_what_the_provider_sealed(tmp_path: Path) -> None:
    """An item with encrypted content is kept as the provider's artefact; one that was masked is reported."""
    whole = item("reasoning", id="rs_1", summary=[{"type": "summary_text", "text": "Hm."}], encrypted_content=SEALED)
    found = read(tmp_path, TURN, whole, item("reasoning", summary=[], encrypted_content="REDACTED"))
    first, second = (m.thinking()[0] for m in found.said())
    assert (first.content, first.artefact, first.provider, first.model) == ("Hm.", whole[1], "openai", "gpt-5.3-codex")
    assert second.artefact == {}
    assert found.codes() == {"reasoning": 1}


def test_calls_of_every_kind_are_calls(tmp_path: Path) -> None:
    """Function, custom, tool-search and local-shell calls have results; a web search is an item of its own."""
    declared = {"name": "_fetch", "description": "Fetches.", "parameters": {"type": "object", "properties": {"n": {}}}}
    found = read(
        tmp_path,
        TURN,
        item("function_call", call_id="c1", name="_fetch", namespace="mcp__github", arguments="{broken"),
        output("c1", [{"type": "input_text", "text": "one"}]),
        item("custom_tool_call", call_id="c2", name="apply_patch", input="*** Begin Patch", status="completed"),
        item("custom_tool_call_output", call_id="c2", output="Success."),
        item("tool_search_call", call_id="c3", arguments={"query": "x"}),
        item("tool_search_output", call_id="c3", tools=[{"type": "namespace", "name": "n", "tools": [declared]}]),
        item("local_shell_call", call_id="c4", action={"type": "exec", "command": ["ls"]}),
        output("c4", {"content": "no", "success": False}),
        item("web_search_call", id="ws", action={"type": "search", "query": "x"}),
    )
    calls = [block for m in found.said() for block in m.contents if isinstance(block, ToolCallContent)]
    results = [block for m in found.said() for block in m.contents if isinstance(block, ToolResultContent)]
    assert [(made.id, made.name) for made in calls] == [
        ("c1", "_fetch"),
        ("c2", "apply_patch"),
        ("c3", "tool_search"),
        ("c4", "local_shell"),
    ]
    assert calls[0].raw_args == "{broken"
    assert calls[0].error
    assert calls[1].args == {"input": "*** Begin Patch"}
    assert [result.id for result in results] == ["c1", "c2", "c3", "c4"]
    assert [result.text() for result in results[:2]] == ["one", "Success."]
    assert results[3].is_error
    assert found.said()[-1].contents[0].type == "web_search_call"
    assert found.counted() == 9
    toolset = found.entries()[0]
    assert isinstance(toolset, Toolset)
    assert [(tool.name, tool.stub, tool.description) for tool in toolset.tools] == [
        ("_fetch", False, "Fetches."),
        ("apply_patch", True, ""),
        ("tool_search", True, ""),
        ("local_shell", True, ""),
    ]


def test_a_replaced_history_is_a_compaction(tmp_path: Path) -> None:
    """Afterwards the view is the new history: items that stand in the file as they are, and texts for the rest."""
    history = [
        said("user", "First.")[1],
        said("user", "# AGENTS.md instructions, newer")[1],
        said("user", "First.")[1],
        {"type": "compaction", "encrypted_content": SEALED},
    ]
    found = read(
        tmp_path,
        TURN,
        said("user", "First."),
        call("c1", cmd="ls"),
        output("c1"),
        said("user", "First."),
        said("assistant", "Done."),
        ("compacted", {"message": "", "replacement_history": history}),
        said("user", "Second."),
    )
    (entry,) = [entry for entry in found.entries() if isinstance(entry, Compaction)]
    assert entry.foreign
    landed = Landed(found)
    assert shown(landed.view()) == [
        "user: First.",
        "user: # AGENTS.md instructions, newer",
        "user: First.",
        "user: [The summary of what came before is encrypted for the provider and cannot be read.]",
        "user: Second.",
    ]
    assert [block.content.content for block in landed.view().system if isinstance(block.content, TextContent)] == [
        "You are Codex."
    ]
    assert [tool.name for tool in landed.view().tools] == ["exec_command"]
    assert len(shown(landed.view(whole=True))) == 6


def test_an_old_compaction_has_the_users_words_and_a_summary(tmp_path: Path) -> None:
    """Where only the summary is recorded, the user's words stay in the view."""
    found = read(
        tmp_path,
        said("user", "First."),
        said("assistant", "Done."),
        ("compacted", {"message": "All done."}),
        said("user", "Next."),
    )
    assert shown(Landed(found).view()) == ["user: First.", "user: All done.", "user: Next."]


def test_turns_that_were_taken_back_are_left_behind_in_a_branch(tmp_path: Path) -> None:
    """A rollback is a fork before the first turn taken back; several rollbacks reach across branches."""
    found = read(
        tmp_path,
        said("user", "One."),
        said("assistant", "1"),
        said("user", "Two."),
        said("assistant", "2"),
        event("thread_rolled_back", num_turns=1),
        said("user", "Three."),
        said("assistant", "3"),
        event("thread_rolled_back", num_turns=2),
        said("user", "Four."),
    )
    keys = [branch.dialog for branch in found.branches]
    assert found.conversations[0].main == keys[-1]
    landed = Landed(found)
    assert [shown(landed.view(key)) for key in keys] == [
        ["user: One.", "assistant: 1", "user: Two.", "assistant: 2"],
        ["user: One.", "assistant: 1", "user: Three.", "assistant: 3"],
        ["user: Four."],
    ]


def test_what_is_no_message_is_kept_beside_them(tmp_path: Path) -> None:
    """Changes of model and mode, failures and unknown items become entries; unknown items count as items."""
    other = ("turn_context", {"model": "gpt-5.5", "effort": "low"})
    found = read(
        tmp_path,
        TURN,
        TURN,
        other,
        event("error", message="stream disconnected"),
        event("turn_aborted", reason="interrupted"),
        item("ghost_snapshot", commit="abc"),
    )
    entries = found.entries()
    assert [entry.model for entry in entries if isinstance(entry, ModelChange)] == ["gpt-5.3-codex", "gpt-5.5"]
    assert [(e.mode, e.value) for e in entries if isinstance(e, ModeChange)] == [
        ("approval", "never"),
        ("effort", "high"),
        ("effort", "low"),
    ]
    assert [entry.error for entry in entries if isinstance(entry, ErrorEntry)] == ["stream disconnected"]
    assert [entry.custom_type for entry in entries if isinstance(entry, Custom)] == [
        "codex/turn_aborted",
        "codex/ghost_snapshot",
    ]
    assert found.counted() == 1


def test_rollouts_of_the_first_versions_are_read(tmp_path: Path) -> None:
    """Items without an envelope, after a head with the instructions."""
    found = read_bytes(
        tmp_path,
        jsonl(
            {"id": "old", "timestamp": "2025-06-01T00:00:00Z", "instructions": "Be terse.", "git": {}},
            said("user", "Hello.")[1],
            call("c1", cmd="ls")[1],
            output("c1")[1],
            {"record_type": "state"},
        ),
    )
    assert found.conversations[0].key == "old"
    assert [m.role for m in found.said()] == [Role.USER, Role.ASSISTANT, Role.TOOL]
    assert found.counted() == 3


def test_odd_shapes_and_orphans_are_reported(tmp_path: Path) -> None:
    """A record that cannot be read costs itself; a result without a call is kept."""
    found = read(
        tmp_path,
        item("message", role="user", content=5),
        item("function_call", call_id=[], name={}, arguments=7),
        output("nowhere"),
        ("response_item", {}),
        ("compacted", {"replacement_history": [3, {"type": "message", "content": 4}]}),
        said("user", "Still here."),
    )
    assert found.codes()["orphan_result"] == 1
    assert found.codes()["bad_record"] == 3
    assert found.said()[-1].content == "Still here."
