"""Law 16 for files: what a reader does not know is in the log, or the report says that it is not."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from palaver.errors import UnsupportedTranscript
from tests.formats.reading import Read, read_bytes
from tests.formats.samples import JSON, packed, value_of
from tests.formats.test_golden import plain

WORDS = "words that no reader knows"

MIRRORS = {
    "claude-code": {
        "toolUseResult": "a result as the screen shows it",
        "data": "what the screen shows while a tool runs",
    },
    "codex": {"payload": "an event is the screen's form of an item; a note counts the records"},
    "gemini-cli": {"args response": "a later version of a message repeats its calls and results"},
    "opencode": {"metadata model": "a result as the screen shows it, and the model of a sub-agent"},
    "tau2-bench": {"tasks": "a note counts the tasks", "raw_data message": "the message in the client's own format"},
    "mini-swe-agent": {"config environment": "the settings of the harness"},
    "openhands-llm-calls": {"messages cache_control": "each call sends the messages of the call before it again"},
    "moatless": {
        "file_context files": "the harness's state; a note counts it",
        "build_action execute_action input usage response choices": "the requests as they were sent; a note counts them",
        "action output properties execution_completion": "the response has the call, and the observation its message",
    },
    "vercel-ui": {"parts": "the beginning of a step has no content"},
    "openhands-events": {
        "args action": "the response has the call",
        "tool_call_metadata model_response choices message tool_calls function usage": "each event of a response repeats it",
    },
    "copilot-cli": {
        "arguments": "the answer has the call",
        "input": "what a hook was passed",
        "toolTelemetry metrics": "measurements",
    },
    "inspect": {
        "eval plan results": "about the whole log, which the source has",
        "attachments": "texts that messages refer to",
        "events output choices message usage tools parameters": "the trace; a note counts the events",
    },
    "llm-log": {
        "messages": "each request sends the messages of the one before it again",
        "outputs": "repeats the response",
    },
    "smolagents": {"content": "the text of calls that are read from it"},
}
"""Objects that repeat others, or are no conversation: what is added to one of them may stay unread."""


def places(value: Any, *, lists: bool, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401
    """Return the path of every object, or of every list with an object in it."""
    if isinstance(value, dict):
        if not lists:
            yield path
        for name, inner in value.items():
            yield from places(inner, lists=lists, path=(*path, name))
    elif isinstance(value, list):
        if lists and any(isinstance(inner, dict) for inner in value):
            yield path
        for number, inner in enumerate(value):
            yield from places(inner, lists=lists, path=(*path, number))


def reported(found: Read) -> set[str]:
    """Return what a report counts as lost or skipped."""
    return {loss.reason for loss in found.losses if loss.severity == "loss" or loss.code in {"skipped", "bad_record"}}


def is_silent(folder: Path, kind: str, value: Any, before: set[str]) -> bool:  # noqa: ANN401
    """Return whether the words are neither in the log nor in the report."""
    try:
        found = read_bytes(folder, packed(kind, value))
    except UnsupportedTranscript:
        return False
    return WORDS not in json.dumps([plain(event) for event in found.events]) and not reported(found) - before


@pytest.mark.parametrize("lists", [pytest.param(False, id="key"), pytest.param(True, id="block")])
@pytest.mark.parametrize("kind", JSON)
def test_unknown_content_is_kept_or_reported(tmp_path: Path, kind: str, lists: bool) -> None:
    """An unknown key in any object, and an unknown block in any list, is in an entry, or the report does not call all of it read."""
    whole = value_of(kind)
    before = reported(read_bytes(tmp_path, packed(kind, whole)))
    mirrors = {name for names in MIRRORS.get(kind, {}) for name in names.split()}
    silent = set()
    for path in places(whole, lists=lists):
        value = target = copy.deepcopy(whole)
        for name in path:
            target = target[name]
        if lists:
            target.append({"type": "unheard", "text": WORDS})
        else:
            target["unheard"] = {"text": WORDS}
        names = [name for name in path if isinstance(name, str)]
        if is_silent(tmp_path, kind, value, before) and (names or [""])[-1] not in mirrors:
            silent.add(".".join(names))
    assert silent == set()
