"""pi sessions: lists of version 1, trees of later ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from palaver.log import BranchSummary, Compaction, Custom, Label, ModeChange, ModelChange
from palaver.messages import CustomMessage, Role, Speaker, StopReason
from tests.formats.transcripts import STAMP, Landed, Read, jsonl, read_bytes, shown

HEAD = {
    "type": "session",
    "id": "session-1",
    "timestamp": STAMP.format(0),
    "cwd": "/home/u/project",
    "provider": "anthropic",
    "modelId": "claude-sonnet-4-5",
    "thinkingLevel": "off",
}
USAGE = {
    "input": 3,
    "output": 9,
    "cacheRead": 100,
    "cacheWrite": 5,
    "cost": {"input": 0.1, "output": 0.2, "total": 0.3},
}


class Session:
    """Writes a session; with `tree`, each entry has an id and follows the one before unless told otherwise."""

    def __init__(self, *, tree: bool = False) -> None:
        head = {name: HEAD[name] for name in ("type", "id", "timestamp", "cwd")} | {"version": 3} if tree else HEAD
        self.records: list[dict[str, Any]] = [head]
        self._tree = tree
        self._last: str | None = None

    def add(self, kind: str, *, key: str = "", after: str | None = "", **values: Any) -> Session:  # noqa: ANN401
        """Add an entry."""
        record: dict[str, Any] = {"type": kind, "timestamp": STAMP.format(len(self.records))}
        if self._tree:
            record |= {"id": key, "parentId": self._last if after == "" else after}
            self._last = key
        self.records.append(record | values)
        return self

    def user(self, words: str, **where: Any) -> Session:  # noqa: ANN401
        """Add words of the user."""
        message = {"role": "user", "content": [{"type": "text", "text": words}], "timestamp": 1767323041000}
        return self.add("message", message=message, **where)

    def model(self, *blocks: dict[str, Any], key: str = "", after: str | None = "", **values: Any) -> Session:  # noqa: ANN401
        """Add a response."""
        about = {
            "api": "anthropic-messages",
            "provider": "anthropic",
            "model": "claude-sonnet-4-5",
            "usage": USAGE,
            "stopReason": "stop",
        }
        return self.add(
            "message", message={"role": "assistant", "content": list(blocks)} | about | values, key=key, after=after
        )

    def result(self, call: str, words: str, **where: Any) -> Session:  # noqa: ANN401
        """Add a tool's result."""
        message = {
            "role": "toolResult",
            "toolCallId": call,
            "toolName": "read",
            "content": [{"type": "text", "text": words}],
            "isError": False,
            "details": {"lines": 3},
        }
        return self.add("message", message=message, **where)

    def read(self, folder: Path) -> Read:
        """Write and read it."""
        return read_bytes(folder, jsonl(*self.records))


def text(words: str) -> dict[str, Any]:
    """Write a text block."""
    return {"type": "text", "text": words}


def call(call_id: str) -> dict[str, Any]:
    """Write a call."""
    return {"type": "toolCall", "id": call_id, "name": "read", "arguments": {"path": "a"}}


def test_a_list_is_read_in_order(tmp_path: Path) -> None:
    """Messages, usage, cost, stop reasons and results are those of the file."""
    session = Session().user("Read a.").model(text("Reading."), call("t1"), stopReason="toolUse").result("t1", "abc")
    session.model(stopReason="aborted", errorMessage="Request was aborted")
    found = session.read(tmp_path)
    asked, answer, result, aborted = found.said()
    assert [m.role for m in found.said()] == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT]
    assert (answer.usage.input_tokens, answer.usage.output_tokens, answer.usage.cost.total) == (108, 9, 0.3)
    assert (answer.stop_reason, answer.model) == (StopReason.TOOL_CALLS, "claude-sonnet-4-5")
    assert result.tool_results()[0].text() == "abc"
    assert result.tool_results()[0].metadata == {"lines": 3}
    assert (aborted.stop_reason, aborted.error) == (StopReason.ABORT, "Request was aborted")
    assert asked.timestamp == 1767323041.0
    assert found.counted() == 4
    assert found.codes() == {}
    (conversation,) = found.conversations
    assert (conversation.key, conversation.model, conversation.workdir) == (
        "session-1",
        "claude-sonnet-4-5",
        "/home/u/project",
    )


def test_thinking_keeps_what_its_provider_wants_back(tmp_path: Path) -> None:
    """A signature stays a signature; OpenAI's reasoning item, kept as text, becomes an artefact again."""
    first = {"type": "thinking", "thinking": "Hm.", "thinkingSignature": "c2ln"}
    second = {"type": "thinking", "thinking": "Oh.", "thinkingSignature": '{"type":"reasoning","id":"rs_1"}'}
    (message,) = Session().model(first, second, {"type": "later", "x": 1}).read(tmp_path).said()
    signed, sealed = message.thinking()
    assert (signed.signature, signed.artefact) == ("c2ln", {})
    assert (sealed.signature, sealed.artefact) == ("", {"type": "reasoning", "id": "rs_1"})
    assert message.contents[2].type == "later"


def test_a_command_of_the_user_is_shown_as_pi_shows_it(tmp_path: Path) -> None:
    """Its output is nobody's instruction; one that was kept from the model stays so."""
    shell = {
        "role": "bashExecution",
        "command": "ls",
        "output": "a",
        "exitCode": 2,
        "cancelled": False,
        "truncated": False,
    }
    hidden = shell | {"excludeFromContext": True}
    found = Session().user("Go.").add("message", message=shell).add("message", message=hidden).read(tmp_path)
    seen, unseen = found.said()[1:]
    assert isinstance(seen, CustomMessage)
    assert isinstance(unseen, CustomMessage)
    assert seen.text_content() == "Ran `ls`\n```\na\n```\n\nCommand exited with code 2"
    assert (seen.in_context, unseen.in_context, seen.speaker) == (True, False, Speaker.TOOL)
    assert len(shown(Landed(found).view())) == 2


def test_a_compaction_of_version_1_counts_places_in_the_file(tmp_path: Path) -> None:
    """`firstKeptEntryIndex` counts all entries of the file, the header first."""
    session = Session().user("One.").model(text("1")).user("Two.").model(text("2"))
    session.add("compaction", summary="One was said.", firstKeptEntryIndex=3, tokensBefore=900).user("Three.")
    found = session.read(tmp_path)
    (entry,) = [entry for entry in found.entries() if isinstance(entry, Compaction)]
    assert (entry.foreign, entry.tokens_before, entry.policy) == (True, 900, "pi")
    assert shown(Landed(found).view()) == ["user: One was said.", "user: Two.", "assistant: 2", "user: Three."]
    assert Landed(found).view().model == "claude-sonnet-4-5"


def test_a_tree_is_taken_apart_into_dialogs(tmp_path: Path) -> None:
    """The entry that follows its parent first goes on; a later one is a fork; a compaction in it keeps what it inherited."""
    session = (
        Session(tree=True)
        .user("One.", key="1")
        .model(text("1"), key="2")
        .user("Two.", key="3")
        .model(text("2"), key="4")
    )
    session.user("Rather three.", key="5", after="2").model(text("3"), key="6")
    session.add("compaction", key="7", summary="Sum.", firstKeptEntryId="2", tokensBefore=9)
    session.user("Four.", key="8").user("From the start.", key="9", after=None)
    found = session.read(tmp_path)
    assert [(b.dialog, b.parent, b.relation) for b in found.branches] == [
        ("main", None, "root"),
        ("fork:5", "main", "fork"),
        ("fork:9", "main", "fork"),
    ]
    assert found.conversations[0].main == "fork:9"
    landed = Landed(found)
    assert shown(landed.view("fork:5")) == [
        "user: Sum.",
        "assistant: 1",
        "user: Rather three.",
        "assistant: 3",
        "user: Four.",
    ]
    assert shown(landed.view("fork:9")) == ["user: From the start."]
    assert shown(landed.view()) == ["user: One.", "assistant: 1", "user: Two.", "assistant: 2"]


def test_everything_else_is_kept(tmp_path: Path) -> None:
    """Models, levels, labels, summaries of branches, entries of extensions and names."""
    session = Session(tree=True).user("One.", key="1")
    session.add("model_change", key="2", provider="openai", modelId="gpt-5")
    session.add("thinking_level_change", key="3", thinkingLevel="high")
    session.add("label", key="4", targetId="1", label="here").add("label", key="5", targetId="x", label="nowhere")
    session.add("branch_summary", key="6", fromId="1", summary="Left.")
    session.add("custom", key="7", customType="mine", data={"a": 1})
    session.add("custom_message", key="8", customType="mine", content="Seen.", display=True)
    session.add("session_info", key="9", name="My name").add("from_the_future", key="10", x=1)
    found = session.read(tmp_path)
    entries = found.entries()
    assert [entry.model for entry in entries if isinstance(entry, ModelChange)] == ["gpt-5"]
    assert [entry.value for entry in entries if isinstance(entry, ModeChange)] == ["high"]
    assert [(entry.target.seq, entry.label) for entry in entries if isinstance(entry, Label)] == [(1, "here")]
    assert [entry.summary for entry in entries if isinstance(entry, BranchSummary)] == ["Left."]
    assert [entry.custom_type for entry in entries if isinstance(entry, Custom)] == ["mine", "pi/from_the_future"]
    assert found.codes() == {"dangling_edit": 1}
    assert found.conversations[0].title == "My name"
    assert "user: Seen." in shown(Landed(found).view())
    assert found.counted() == 1


def test_missing_parents_and_repeated_ids_are_reported(tmp_path: Path) -> None:
    """An entry whose parent is missing follows the one before; two entries of one id are both kept."""
    session = (
        Session(tree=True).user("One.", key="1").user("Two.", key="2", after="gone").user("Again.", key="1", after="2")
    )
    found = session.read(tmp_path)
    assert found.codes() == {"dangling_parent": 1, "duplicate_id": 1}
    assert len(found.said()) == 3
    assert [branch.dialog for branch in found.branches] == ["main"]


@pytest.mark.parametrize(
    "message", [None, 3, {"role": "nobody"}, {"role": "user", "content": 3}, {"role": "assistant", "content": [7]}]
)
def test_odd_shapes_are_reported(tmp_path: Path, message: object) -> None:
    """An entry that cannot be read costs itself only."""
    found = Session().user("One.").add("message", message=message).user("Two.").read(tmp_path)
    assert found.codes() == {"bad_record": 1}
    assert [m.content for m in found.said()] == ["One.", "Two."]
