"""Session files with parents: what is written, what comes back of it, and what a report says."""

import json
from pathlib import Path
from typing import Any

import pytest

from palaver import (
    AssistantMessage,
    Message,
    Session,
    SessionManager,
    SystemMessage,
    ToolMessage,
    ToolResultContent,
    UserMessage,
)
from palaver.ids import SessionId
from palaver.log import CallStarted, ModeChange, Quarantine, Toolset, ToolSpec, TurnEnded, TurnStarted
from palaver.log import Place as Target
from palaver.messages import (
    AudioContent,
    CustomMessage,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    UnknownContent,
)
from palaver.session import Dialog
from palaver.store import MemoryStore, Store
from palaver.transcripts import Importer, export
from tests.recorded import Recording, recordings

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x02\0\0\0\x02\x08\0\0\0\0"


def exported(store: Store, session_id: SessionId) -> bytes:
    """Give the file of a session."""
    return b"".join(export(store, session_id, "pi").pieces)


def brought_back(data: bytes, folder: Path) -> tuple[Store, SessionId]:
    """Import a file into a store of its own."""
    path = folder / "session.jsonl"
    path.write_bytes(data)
    store = MemoryStore()
    (imported,) = Importer(store).import_path(path)
    assert imported.format == "pi"
    assert not [loss for loss in imported.losses if loss.severity == "loss"]
    return store, imported.session_id


def records(data: bytes) -> list[dict[str, Any]]:
    """Give the records of a file."""
    return [json.loads(line) for line in data.splitlines()]


MESSAGES: tuple[Message, ...] = (
    SystemMessage(content="Be careful."),
    UserMessage(contents=(TextContent("see"), ImageContent((PNG,)), AudioContent((b"ID3\x04",)))),
    UserMessage(content="named", name="ann", metadata={"k": [1, None, {"x": 0.5}]}),
    AssistantMessage(
        contents=(
            ThinkingContent(content="hm", signature="sealed", provider="anthropic", model="m"),
            TextContent("text"),
            ToolCallContent(id="c1", name="f", args={"a": {"b": [1]}}),
            ToolCallContent(id="c2", name="g", args="{broken"),
        ),
        model="m",
        usage={"input_tokens": 5, "details": {"cached": 1}},
        stop_reason="content_filter",
        response_id="r1",
    ),
    ToolMessage.from_result(ToolResultContent(id="c1", content="r", metadata={"k": 1}, terminate=True, name="f")),
    ToolMessage.from_result(
        ToolResultContent(id="c2", content=(TextContent("a"), ImageContent((PNG,))), is_error=True)
    ),
    AssistantMessage(
        contents=(ThinkingContent(redacted="xyz"), UnknownContent.model_validate({"type": "later", "x": 1}))
    ),
    CustomMessage(custom_type="note", contents=(TextContent("x"),), in_context=True, metadata={"display": False}),
    AssistantMessage(contents=(), error="it broke", stop_reason="error"),
    UserMessage(content="at no time", timestamp=0.0),
)


def test_r234_every_message_comes_back_from_a_file(tmp_path: Path) -> None:
    """R234: all content types, usage and stop reason are what they were; export of what was imported is the same file."""
    dialog = Dialog(owner="x")
    dialog.append(MESSAGES)
    first = exported(dialog.store, dialog.session_id)
    store, session_id = brought_back(first, tmp_path)
    found = list(Session.open(session_id, store).root.messages)
    assert len(found) == len(MESSAGES)
    for message, again in zip(MESSAGES, found, strict=True):
        assert again == message
    assert exported(store, session_id) == first


def test_r222_the_header_comes_first_and_parents_before_their_children() -> None:
    """R222: the first line is the header, each entry names one before it, ids are unique, and the newest entry ends the file."""
    manager = SessionManager.create("/w", MemoryStore(), name="a name")
    first = manager.append_message(UserMessage(content="q"))
    second = manager.append_message(AssistantMessage(content="a"))
    manager.branch(first)
    third = manager.append_message(UserMessage(content="other"))
    manager.branch(second)
    fourth = manager.append_message(UserMessage(content="newest"))
    header, *entries, name = records(exported(manager.store, manager.session.session_id))
    assert (header["type"], header["version"], header["cwd"]) == ("session", 3, "/w")
    assert header["id"] == manager.session_id
    assert [(one["id"], one["parentId"]) for one in entries] == [
        (first, None),
        (third, first),
        (second, first),
        (fourth, second),
    ]
    assert (name["type"], name["name"], name["parentId"]) == ("session_info", "a name", fourth)
    assert entries[0]["message"]["content"] == [{"text": "q", "type": "text"}]


def test_what_the_form_has_no_type_for(tmp_path: Path) -> None:
    """Instructions, tools and what agents write are records; tools are in force again, edits are not followed, and the report says so."""
    manager = SessionManager.create("/w", MemoryStore())
    dialog = manager.dialog
    dialog.record(Toolset(tools=(ToolSpec(name="f", description="does f"),)), TurnStarted(agent="x"))
    call = AssistantMessage(contents=(ToolCallContent(id="c1", name="f", args={}),))
    dialog.append([UserMessage(content="q"), call])
    dialog.record(CallStarted(call_id="c1"), ModeChange(mode="plan", value="on"))
    dialog.append(ToolMessage.from_result(ToolResultContent(id="c1", content="r")))
    dialog.record(TurnEnded())
    dialog.pin(dialog.messages.handle(0))
    dialog.annotate(Quarantine(target=Target(dialog=dialog.dialog_id, seq=2), reason="x"))
    fork = dialog.fork()
    fork.record(ModeChange(mode="plan", value="off"))
    first = exported(manager.store, manager.session.session_id)
    report = export(manager.store, manager.session.session_id, "pi").report
    assert [change.what for change in report] == ["pin", "quarantine"]
    store, session_id = brought_back(first, tmp_path)
    assert exported(store, session_id) == first
    tools = Session.open(session_id, store).root.view().tools
    assert [(tool.name, tool.description) for tool in tools] == [("f", "does f")]


def test_a_sub_agent_is_left_out_and_reported() -> None:
    """A dialog that follows no entry of the session's is not in the file, and the report names it."""
    store = MemoryStore()
    session = Session.create(store, "s")
    session.root.put_text("q")
    node = store.node(session.root.dialog_id)
    other = type(node)(
        dialog_id=type(node.dialog_id)("ab" * 16),
        session_id=node.session_id,
        parent_id=node.dialog_id,
        relation="subagent",
    )
    store.create_dialog(other)
    session.dialog(other.dialog_id).put_text("sub")
    assert len(records(exported(store, session.session_id))) == 3
    (change,) = export(store, session.session_id, "pi").report
    assert (change.what, change.handle and change.handle.dialog) == ("dialog", other.dialog_id)


def test_an_empty_session(tmp_path: Path) -> None:
    """A session without an entry is a header and a name."""
    manager = SessionManager.create("/w", MemoryStore(), name="nothing yet")
    data = exported(manager.store, manager.session.session_id)
    assert [one["type"] for one in records(data)] == ["session", "session_info"]
    (tmp_path / "x.jsonl").write_bytes(data)


@pytest.mark.parametrize("recording", recordings("pi"))
def test_a_recorded_session_keeps_its_chain(recording: Recording, tmp_path: Path) -> None:
    """A real session of pi exports with its own ids and parents; what came of that file exports to the same bytes."""
    store = MemoryStore()
    (imported,) = Importer(store).import_path(recording.path)
    first = exported(store, imported.session_id)
    again, session_id = brought_back(first, tmp_path)
    assert exported(again, session_id) == first
    one, other = (
        [message.to_dict() for message in Session.open(key, kept).root.messages.bare()]
        for key, kept in ((imported.session_id, store), (session_id, again))
    )
    for message in (*one, *other):
        message["metadata"].pop("dialog_id", None)
    assert one == other


@pytest.mark.parametrize("recording", recordings("claude_code", "codex", "mini_swe_agent", "tau2_bench", each=1))
def test_sessions_of_other_agents_come_back_from_a_file_with_parents(recording: Recording, tmp_path: Path) -> None:
    """Whatever agent recorded a session: its file with parents is read without a loss, and written again it is the same file."""
    store = MemoryStore()
    imported = next(Importer(store, keep_source=False).import_path(recording.path))
    first = exported(store, imported.session_id)
    again, session_id = brought_back(first, tmp_path)
    assert exported(again, session_id) == first
