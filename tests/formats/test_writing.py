"""Transcripts written for other tools: importing one gives the conversation that was exported, save for what the report names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from palaver.formats.writing import Heading, Tool, uuid
from palaver.messages import Content, Role, TextContent, ThinkingContent, ToolCallContent, ToolResultContent
from palaver.messages.blocks import MediaBlock
from palaver.providers import profile
from palaver.store.memory import MemoryStore
from palaver.store.records import payloads_of
from palaver.transcripts.exporting import TOOLS
from palaver.view import Block, View, fold
from palaver.wire import Report, validate
from palaver.wire.media import Load
from palaver.wire.script import ChangeNotes, marked
from tests.formats.reading import imported, written
from tests.recorded import Recording, recordings
from tests.wire.any_views import closed_views, load
from tests.wire.scenes import Scene

EVERY = pytest.mark.parametrize("tool", TOOLS)


def said(view: View, report: Report, *, failures: bool) -> Iterator[tuple[object, ...]]:
    """Return what a view says, piece by piece, without the blocks that a report names, what says nothing and, if asked, that results are failures."""
    named = {change.handle for change in report}
    kept = not any(change.what == "instructions" and change.handle is None for change in report)
    blocks: list[tuple[Role, Block]] = [(Role.USER, block) for block in view.system if kept]
    for exchange in view.exchanges:
        for turn in exchange.turns:
            blocks += [(turn.role, block) for block in turn.blocks]
    for role, block in blocks:
        by = Role.ASSISTANT if role is Role.ASSISTANT else Role.USER
        if block.origin is None or block.origin not in named:
            yield from ((by, *piece) for piece in _pieces(block.content) if failures or piece != ("failure",))


def _pieces(content: Content) -> Iterator[tuple[object, ...]]:
    match content:
        case TextContent(content=text) if text.strip():
            yield (
                "text",
                (marked(text) or ("", text))[1].replace("<\\", "<").strip(),
            )  # a mark escapes what looks like it
        case ThinkingContent() if content.content or content.signature or content.redacted:
            yield "thinking", content.content, content.signature, content.redacted
        case ToolCallContent():  # ids may be renamed; a result stands in the place of its call
            yield "call", content.name, json.loads(content.json_arguments)
        case ToolResultContent(content=inside):
            yield "result", content.text().strip()
            yield from [("failure",)] if content.is_error else []
            for part in inside if isinstance(inside, tuple) else ():
                yield from _pieces(part) if isinstance(part, MediaBlock) else ()
        case MediaBlock():
            yield from (("medium", one.digest or one.url) for one in content.media)


def exported(tool: Tool, view: View, read: Load) -> tuple[bytes, Report]:
    """Write a view as a tool's transcript."""
    notes = ChangeNotes()
    heading = Heading(session=uuid(view.dialog_id), created=1e9, folder="/work", title="talk", model="claude-opus-4-6")
    lines = [json.dumps(line.record).encode() for line in tool.written(view, heading, read, notes)]
    return b"\n".join(lines), Report(tuple(notes))


def check(folder: Path, name: str, view: View, read: Load) -> None:
    """Export a view, import the transcript, and compare; what was added or changed is in the report."""
    data, report = exported(TOOLS[name], view, read)
    failures = name != "codex"  # the Responses API has no field for one
    expected = list(said(view, report, failures=failures))
    if not expected:
        return
    store = MemoryStore()
    (one,) = imported(store, written(folder, data))
    assert one.main is not None
    got = list(said(fold(store, one.main), Report(), failures=failures))
    left = iter(got)
    assert all(piece in left for piece in expected)
    assert len(got) == len(expected) or len(report)
    if name == "claude-code":
        check_request(data)
    if name == "pi":
        check_calls(data)


def check_calls(data: bytes) -> None:
    """Check that every provider that pi sends its file to takes the calls: each has an id and a result of its own, and a name they take."""
    said = [record["message"] for record in map(json.loads, data.splitlines()) if "message" in record]
    parts = [part for each in said if each["role"] == "assistant" for part in each["content"]]
    calls = [part for part in parts if part["type"] == "toolCall"]
    answers = [each["toolCallId"] for each in said if each["role"] == "toolResult"]
    ids = [call["id"] for call in calls]
    assert len(set(ids)) == len(ids)
    assert sorted(ids) == sorted(answers)
    names = [*(call["name"] for call in calls), *(each["toolName"] for each in said if each["role"] == "toolResult")]
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in names)


def check_request(data: bytes) -> None:
    """Claude Code sends the messages of its file, those of one role together; Anthropic accepts them."""
    sent: list[Mapping[str, Any]] = [
        record["message"] for record in map(json.loads, data.splitlines()) if "message" in record
    ]
    messages = [
        {"role": role, "content": [block for one in group for block in _listed(one["content"])]}
        for role, group in groupby(sent, lambda one: one["role"])
    ]
    tools = [{"name": "any", "input_schema": {"type": "object"}}]
    body = {"model": "claude-opus-4-6", "max_tokens": 1, "messages": messages, "tools": tools}
    assert validate(body, profile("anthropic"), as_history=True) == ()


def _listed(content: object) -> Any:  # noqa: ANN401 - blocks as JSON
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


CALLED = ToolCallContent(id="c 1", name="look up!", args={})
ANSWER = ToolResultContent(id="c 1", content="x")


@EVERY
def test_transcript_that_a_tool_would_refuse_is_repaired(tmp_path: Path, tool: str) -> None:
    """A view without a leading user's message, with calls of one id and a name that no provider takes, is written as they take it."""
    scene = Scene().model_says("Hello.").user("go")
    scene.model_says(CALLED, results=[ANSWER]).model_says(CALLED, results=[ANSWER]).user("and?")
    check(tmp_path, tool, scene.view(), load)


@EVERY
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(view=closed_views())
def test_written_transcript_says_what_the_view_says(tmp_path: Path, tool: str, view: View) -> None:
    """Whatever other models, tools and programs put into it."""
    check(tmp_path, tool, view, load)


@EVERY
@pytest.mark.parametrize("recording", recordings("claude_code", "codex", "pi", "openhands_llm_calls", each=1))
def test_recorded_session_comes_back(tmp_path: Path, tool: str, recording: Recording) -> None:
    """Everything that was said, and what the recorded agent saw after its compactions."""
    store = MemoryStore()
    for one in imported(store, recording.path)[:3]:
        assert one.main is not None
        for whole in (True, False):
            check(tmp_path, tool, fold(store, one.main, whole=whole), payloads_of(store, one.session_id))
