"""Codex rollouts: each trap of the format, in a rollout of a few lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from palaver.formats.codex.messages import SUMMARY_PREFIX
from palaver.log import Compaction
from palaver.messages import Role, TextContent, ToolCallContent, ToolResultContent, thaw
from palaver.providers import profile
from palaver.wire import Call, compile  # noqa: A004 - the word for it
from tests.formats.reading import Read, read_bytes
from tests.formats.samples import codex, event, item, jsonl, said, tokens

TURN = ("turn_context", {"turn_id": "t", "model": "gpt-5.3-codex", "effort": "high", "approval_policy": "never"})
SEALED = "gAAAA" + "Ab1_" * 40
UNREADABLE = "user: [The summary of what came before is encrypted for the provider and cannot be read.]"


def call(call_id: str, **arguments: object) -> tuple[str, dict[str, Any]]:
    """Return a function call."""
    return item("function_call", call_id=call_id, name="exec_command", arguments=json.dumps(arguments))


def output(call_id: str, words: object = "done") -> tuple[str, dict[str, Any]]:
    """Return its output."""
    return item("function_call_output", call_id=call_id, output=words)


def read(folder: Path, *records: tuple[str, dict[str, Any]]) -> Read:
    """Read a rollout."""
    return read_bytes(folder, codex(*records), "rollout.jsonl")


def test_mirror_of_the_screen_is_left_out_and_reported(tmp_path: Path) -> None:
    """Every text stands in a response item and in an event: it is read once."""
    mirror = [event("agent_message", message="Hi."), event("task_complete", last_agent_message="Hi.")]
    answer = said("assistant", "Hi.", id="msg_1", phase="final_answer")
    found = read(tmp_path, TURN, said("user", "Hello."), event("user_message", message="Hello."), answer, *mirror)
    assert [(m.role, m.content) for m in found.said()] == [(Role.USER, "Hello."), (Role.ASSISTANT, "Hi.")]
    assert found.counted() == 2
    assert sum("mirror" in loss.reason for loss in found.losses) == 3
    assert found.codes() == {}
    assert found.said()[1].metadata == {"phase": "final_answer"}
    assert found.conversations[0].key == "thread-1"


def test_response_ends_where_something_else_stands(tmp_path: Path) -> None:
    """Items of one response share an id, and the last one has what the response used."""
    thought = item("reasoning", summary=[{"type": "summary_text", "text": "Hm."}], encrypted_content=SEALED)
    first = [thought, said("assistant", "Looking."), call("c1", cmd="ls"), call("c2", cmd="pwd")]
    used = [tokens(100, 100), tokens(100, 100)]
    rest = [call("c3", cmd="id"), output("c3"), tokens(120, 220), said("assistant", "Done.")]
    found = read(tmp_path, TURN, said("user", "Go."), *first, output("c1"), output("c2"), *used, *rest)
    spoken = [m for m in found.said() if m.role is Role.ASSISTANT]
    ids = [m.response_id for m in spoken]
    assert ids == [ids[0]] * 4 + [ids[4], ids[5]]
    assert len(set(ids)) == 3
    assert [m.usage.input_tokens for m in spoken] == [0, 0, 0, 100, 120, 0]
    assert [m.model for m in spoken] == ["gpt-5.3-codex"] * 6
    assert len(found.view().exchanges) == 4


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
    found = read(
        tmp_path,
        TURN,
        item("function_call", call_id="c1", name="_fetch", namespace="mcp__github", arguments="{broken"),
        output("c1", [{"type": "input_text", "text": "one"}]),
        item("custom_tool_call", call_id="c2", name="apply_patch", input="*** Begin Patch", status="completed"),
        item("custom_tool_call_output", call_id="c2", output="Success."),
        item("tool_search_call", call_id="c3", arguments={"query": "x"}),
        item("tool_search_output", call_id="c3", tools=[{"type": "namespace", "name": "n", "tools": []}]),
        item("local_shell_call", call_id="c4", action={"type": "exec", "command": ["ls"]}),
        output("c4", {"content": "no", "success": False}),
        item("web_search_call", id="ws", action={"type": "search", "query": "x"}),
    )
    blocks = [block for m in found.said() for block in m.contents]
    calls = [block for block in blocks if isinstance(block, ToolCallContent)]
    results = [block for block in blocks if isinstance(block, ToolResultContent)]
    assert [made.name for made in calls] == ["_fetch", "apply_patch", "tool_search", "local_shell"]
    assert [made.id for made in calls] == [result.id for result in results] == ["c1", "c2", "c3", "c4"]
    assert (calls[0].raw_args, bool(calls[0].error)) == ("{broken", True)
    assert calls[1].args == {"input": "*** Begin Patch"}
    assert [result.text() for result in results[:2]] == ["one", "Success."]
    assert results[3].is_error
    assert found.said()[-1].contents[0].type == "web_search_call"
    assert found.counted() == 9


def test_replaced_history_is_a_compaction(tmp_path: Path) -> None:
    """Afterwards the view is the new history: items that stand in the file as they are, and texts for the rest."""
    first, agents = said("user", "First."), said("user", "# AGENTS.md instructions, newer")
    history = [first[1], agents[1], first[1], {"type": "compaction", "encrypted_content": "REDACTED"}]
    replaced = ("compacted", {"message": "", "replacement_history": history})
    acted = [call("c1", cmd="ls"), output("c1")]
    found = read(tmp_path, TURN, first, *acted, first, said("assistant", "Done."), replaced, said("user", "Second."))
    (entry,) = [entry for entry in found.entries() if isinstance(entry, Compaction)]
    assert entry.foreign
    newer = "user: # AGENTS.md instructions, newer"
    assert found.shown() == ["user: First.", newer, "user: First.", UNREADABLE, "user: Second."]
    system = [block.content for block in found.view().system]
    assert [content.content for content in system if isinstance(content, TextContent)] == ["You are Codex."]
    assert len(found.shown(whole=True)) == 6


@pytest.mark.parametrize("kind", ["compaction", "compaction_summary"])
def test_the_providers_compaction_is_kept(tmp_path: Path, kind: str) -> None:
    """«items before newest compaction dropped x Responses»: the item of a new history, or of an answer, is a block of the model's, and goes back to OpenAI as it came, with the words that go with it."""
    first, block = said("user", "First."), {"type": kind, "id": "cmp_1", "encrypted_content": SEALED}
    replaced = ("compacted", {"message": "", "replacement_history": [first[1], block]})
    talk = [TURN, first, said("assistant", "Done.")]
    inline = [*talk, said("user", "More."), ("response_item", block), said("assistant", "Went on.")]
    for records, words in (
        ([*talk, replaced], ["First.", "Second."]),
        ([*inline, replaced], ["First.", "Second."]),
        (inline, ["Went on.", "Second."]),
    ):
        found = read(tmp_path, *records, said("user", "Second."))
        kept = [part for message in found.said() for part in message.contents if part.type == "compaction"]
        assert [part.model_extra for part in kept] == [{"id": "cmp_1", "encrypted_content": SEALED}]
        request = compile(
            found.view(), profile("openai-responses", "gpt-5.3-codex"), Call(model="gpt-5.3-codex"), _none
        )
        assert {"type": "compaction", "encrypted_content": SEALED} in thaw(request.body["input"])
        told = [item["content"] for item in request.body["input"] if item["type"] == "message"]
        assert [part if isinstance(part, str) else part[0]["text"] for part in told] == words
        assert found.codes() == {}


def _none(digest: str) -> bytes:
    raise AssertionError(digest)


def test_old_compaction_has_the_users_words_and_a_summary(tmp_path: Path) -> None:
    """Where only the summary is recorded, the user's words stay in the view."""
    talk = [said("user", "First."), said("assistant", "Done."), ("compacted", {"message": "All done."})]
    found = read(tmp_path, *talk, said("user", "Next."))
    assert found.shown() == ["user: First.", "user: All done.", "user: Next."]
    history = [talk[0][1], said("user", f"{SUMMARY_PREFIX}\nAll done.")[1]]
    newer = ("compacted", {"message": f"{SUMMARY_PREFIX}\nAll done.", "replacement_history": history})
    assert read(tmp_path, *talk[:2], newer, said("user", "Next.")).shown() == found.shown(), (
        "it is there twice, and shown once"
    )


def test_rollback_leaves_turns_behind_in_a_branch(tmp_path: Path) -> None:
    """It is a fork before the first turn taken back; several rollbacks reach across branches."""
    found = read(
        tmp_path,
        *(said("user", "One."), said("assistant", "1"), said("user", "Two."), said("assistant", "2")),
        event("thread_rolled_back", num_turns=1),
        *(said("user", "Three."), said("assistant", "3")),
        event("thread_rolled_back", num_turns=2),
        said("user", "Four."),
    )
    keys = [branch.dialog for branch in found.branches]
    assert found.conversations[0].main == keys[-1]
    assert [found.shown(key) for key in keys] == [
        ["user: One.", "assistant: 1", "user: Two.", "assistant: 2"],
        ["user: One.", "assistant: 1", "user: Three.", "assistant: 3"],
        ["user: Four."],
    ]


def test_rollouts_of_the_first_versions_are_read(tmp_path: Path) -> None:
    """Items without an envelope, after a head with the instructions."""
    head = {"id": "old", "timestamp": "2025-06-01T00:00:00Z", "instructions": "Be terse.", "git": {}}
    items = [said("user", "Hello.")[1], call("c1", cmd="ls")[1], output("c1")[1]]
    found = read_bytes(tmp_path, jsonl(head, *items, {"record_type": "state"}))
    assert found.conversations[0].key == "old"
    assert [m.role for m in found.said()] == [Role.USER, Role.ASSISTANT, Role.TOOL]
    assert found.counted() == 3
