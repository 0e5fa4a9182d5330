"""pi sessions: lists of version 1, trees of later ones."""

from __future__ import annotations

from pathlib import Path

from palaver.log import BranchSummary, Compaction, Custom, Instructions, Label, ModeChange, ModelChange, Toolset
from palaver.messages import CustomMessage, Role, Speaker, StopReason, words_of
from tests.formats.reading import Read, read_bytes
from tests.formats.samples import Pi, pi_call, text


def read(folder: Path, session: Pi) -> Read:
    """Read a session."""
    return read_bytes(folder, session.bytes())


def test_list_is_read_in_order(tmp_path: Path) -> None:
    """Messages, usage, cost, stop reasons and results are those of the file."""
    session = Pi().user("Read a.").model(text("Reading."), pi_call("t1"), stopReason="toolUse").result("t1", "abc")
    session.model(stopReason="aborted", errorMessage="Request was aborted")
    found = read(tmp_path, session)
    _, answer, result, aborted = found.said()
    assert [m.role for m in found.said()] == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT]
    assert (answer.usage.input_tokens, answer.usage.output_tokens, answer.usage.cost.total) == (108, 9, 0.3)
    assert (answer.stop_reason, answer.model) == (StopReason.TOOL_CALLS, "claude-sonnet-4-5")
    assert (result.tool_results()[0].text(), result.tool_results()[0].metadata) == ("abc", {"lines": 3})
    assert (aborted.stop_reason, aborted.error) == (StopReason.ABORT, "Request was aborted")
    assert (found.counted(), found.codes()) == (4, {})
    (conversation,) = found.conversations
    assert (conversation.key, conversation.model) == ("session-1", "claude-sonnet-4-5")


def test_thinking_keeps_what_its_provider_wants_back(tmp_path: Path) -> None:
    """A signature stays a signature; OpenAI's reasoning item, kept as text, becomes an artefact again."""
    first = {"type": "thinking", "thinking": "Hm.", "thinkingSignature": "c2ln"}
    second = {"type": "thinking", "thinking": "Oh.", "thinkingSignature": '{"type":"reasoning","id":"rs_1"}'}
    (message,) = read(tmp_path, Pi().model(first, second, {"type": "later", "x": 1})).said()
    signed, sealed = message.thinking()
    assert (signed.signature, signed.artefact) == ("c2ln", {})
    assert (sealed.signature, sealed.artefact) == ("", {"type": "reasoning", "id": "rs_1"})
    assert message.contents[2].type == "later"


def test_command_of_the_user_is_tool_output(tmp_path: Path) -> None:
    """It is shown as pi shows it; one that was kept from the model stays so."""
    shell = {"role": "bashExecution", "command": "ls", "output": "a", "exitCode": 2, "cancelled": False}
    session = Pi().user("Go.").add("message", message=shell)
    found = read(tmp_path, session.add("message", message=shell | {"excludeFromContext": True}))
    seen, unseen = found.said()[1:]
    assert isinstance(seen, CustomMessage)
    assert isinstance(unseen, CustomMessage)
    assert seen.text_content() == "Ran `ls`\n```\na\n```\n\nCommand exited with code 2"
    assert (seen.in_context, unseen.in_context, seen.speaker) == (True, False, Speaker.TOOL)
    assert len(found.shown()) == 2


def test_compaction_of_version_1_counts_places_in_the_file(tmp_path: Path) -> None:
    """`firstKeptEntryIndex` counts all entries of the file, the header first."""
    session = Pi().user("One.").model(text("1")).user("Two.").model(text("2"))
    session.add("compaction", summary="One was said.", firstKeptEntryIndex=3, tokensBefore=900).user("Three.")
    found = read(tmp_path, session)
    (entry,) = [entry for entry in found.entries() if isinstance(entry, Compaction)]
    assert (entry.foreign, entry.tokens_before, entry.policy) == (True, 900, "pi")
    assert found.shown() == ["user: One was said.", "user: Two.", "assistant: 2", "user: Three."]
    assert found.view().model == "claude-sonnet-4-5"


def test_tree_is_taken_apart_into_dialogs(tmp_path: Path) -> None:
    """The entry that follows its parent first goes on; a later one is a fork, whose compaction keeps what it inherited."""
    session = Pi(tree=True).user("One.", key="1").model(text("1"), key="2").user("Two.", key="3")
    session.model(text("2"), key="4").user("Rather three.", key="5", after="2").model(text("3"), key="6")
    session.add("compaction", key="7", summary="Sum.", firstKeptEntryId="2", tokensBefore=9)
    session.user("Four.", key="8").user("From the start.", key="9", after=None)
    found = read(tmp_path, session)
    parents = [(branch.dialog, branch.parent) for branch in found.branches]
    assert parents == [("main", None), ("fork:5", "main"), ("fork:9", "main")]
    assert found.conversations[0].main == "fork:9"
    said = ["user: Sum.", "assistant: 1", "user: Rather three.", "assistant: 3", "user: Four."]
    assert found.shown("fork:5") == said
    assert found.shown("fork:9") == ["user: From the start."]
    assert found.shown() == ["user: One.", "assistant: 1", "user: Two.", "assistant: 2"]


def test_everything_else_is_kept(tmp_path: Path) -> None:
    """Models, levels, labels, summaries of branches, entries of extensions and names."""
    session = Pi(tree=True).user("One.", key="1")
    session.add("model_change", key="2", provider="openai", modelId="gpt-5")
    session.add("thinking_level_change", key="3", thinkingLevel="high")
    session.add("label", key="4", targetId="1", label="here").add("label", key="5", targetId="x", label="nowhere")
    session.add("branch_summary", key="6", fromId="1", summary="Left.")
    session.add("custom", key="7", customType="mine", data={"a": 1})
    session.add("custom_message", key="8", customType="mine", content="Seen.", display=True)
    session.add("session_info", key="9", name="My name").add("from_the_future", key="10", x=1)
    found = read(tmp_path, session)
    entries = found.entries()
    assert [entry.model for entry in entries if isinstance(entry, ModelChange)] == ["gpt-5"]
    assert [entry.value for entry in entries if isinstance(entry, ModeChange)] == ["high"]
    assert [(entry.target.seq, entry.label) for entry in entries if isinstance(entry, Label)] == [(0, "here")]
    assert [entry.summary for entry in entries if isinstance(entry, BranchSummary)] == ["Left."]
    assert [entry.custom_type for entry in entries if isinstance(entry, Custom)] == ["mine", "pi/from_the_future"]
    assert found.codes() == {"dangling_edit": 1}
    assert found.conversations[0].title == "My name"
    assert "user: Seen." in found.shown()
    assert found.counted() == 1


def test_missing_parents_and_repeated_ids_are_reported(tmp_path: Path) -> None:
    """An entry whose parent is missing follows the one before; two entries of one id are both kept."""
    session = Pi(tree=True).user("One.", key="1").user("Two.", key="2", after="gone")
    found = read(tmp_path, session.user("Again.", key="1", after="2"))
    assert found.codes() == {"dangling_parent": 1, "duplicate_id": 1}
    assert len(found.said()) == 3
    assert [branch.dialog for branch in found.branches] == ["main"]


def test_equal_response_ids_never_merge(tmp_path: Path) -> None:
    """Each record is a whole response, even if its server repeats an id."""
    session = Pi().user("One.").model(text("1"), responseId="chatcmpl-7").user("Two.")
    found = read(tmp_path, session.model(text("2"), responseId="chatcmpl-7").model(text("3"), responseId="chatcmpl-7"))
    answers = [m for m in found.said() if m.role is Role.ASSISTANT]
    assert [m.response_id for m in answers] == ["chatcmpl-7"] * 3
    assert found.shown() == ["user: One.", "assistant: 1", "user: Two.", "assistant: 2", "assistant: 3"]
    assert len(found.view().exchanges) == 5


def test_system_messages_are_instructions_and_tools(tmp_path: Path) -> None:
    """Base text, named sections that later messages replace or remove, and tools, as pi 1.6 records them, are in force from there on."""
    look, read_ = ({"name": name, "description": "D", "parameters": {"type": "object"}} for name in ("look", "read"))
    first = {
        "role": "system",
        "content": "Base.",
        "sections": {"rules": "R1", "cwd": "/p"},
        "toolsAdded": [look, read_],
    }
    later = {
        "role": "system",
        "content": [{"type": "text", "text": "More."}],
        "sections": {"rules": "R2", "cwd": None},
        "toolsRemoved": [{"name": "look"}],
    }
    session = (
        Pi(tree=True)
        .add("message", key="s1", message=first)
        .user("Go.", key="u1")
        .add("message", key="s2", message=later)
    )
    found = read(tmp_path, session.user("On.", key="u2"))
    told = [
        [(one.name, one.text) for one in entry.sections] for entry in found.entries() if isinstance(entry, Instructions)
    ]
    assert told == [
        [("system", "Base."), ("rules", "R1"), ("cwd", "/p")],
        [("system", "Base."), ("system 2", "More."), ("rules", "R2")],
    ]
    tools = [[tool.name for tool in entry.tools] for entry in found.entries() if isinstance(entry, Toolset)]
    assert tools == [["look", "read"], ["read"]]
    assert (found.codes(), found.counted(), found.losses) == ({}, 4, [])


def test_each_branch_has_its_own_instructions(tmp_path: Path) -> None:
    """A fork starts from what was said where it leaves, not from what its sibling was told later."""
    session = Pi(tree=True).add(
        "message", key="s1", message={"role": "system", "content": "", "sections": {"rules": "R1"}}
    )
    session.user("One.", key="u1").add(
        "message", key="s2", message={"role": "system", "content": "", "sections": {"rules": "R2"}}
    )
    session.add("message", key="s3", after="u1", message={"role": "system", "content": "", "sections": {"cwd": "/q"}})
    found = read(tmp_path, session.user("Two.", key="u2"))
    fork = [entry for entry in found.entries("fork:s3") if isinstance(entry, Instructions)]
    assert [(one.name, one.text) for one in fork[0].sections] == [("rules", "R1"), ("cwd", "/q")]


def test_compaction_states_the_instructions_again(tmp_path: Path) -> None:
    """Its own system message replaces all before it."""
    session = Pi(tree=True).add(
        "message", key="s1", message={"role": "system", "content": "", "sections": {"rules": "R1"}}
    )
    session.user("One.", key="u1")
    again = {"role": "system", "content": "", "sections": {"rules": "R3"}}
    session.add("compaction", key="k", summary="S.", firstKeptEntryId="u1", tokensBefore=9, systemMessage=again)
    found = read(tmp_path, session.user("Two.", key="u2"))
    newest = [entry for entry in found.entries() if isinstance(entry, Instructions)][-1]
    assert [(one.name, one.text) for one in newest.sections] == [("rules", "R3")]
    assert [words_of(block.content) for block in found.view().system] == ["R3"]
