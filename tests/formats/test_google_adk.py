"""Sessions of Google's Agent Development Kit: events, rewinds and compactions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests.formats.reading import Read, read_bytes, read_file
from tests.formats.samples import GOLDEN, document, jsonl, value_of


def sample() -> Read:
    """Read the small file."""
    return read_file(GOLDEN / "google-adk.file")


def test_events_are_messages_with_authors() -> None:
    """An event that says something is a message with its author, model and tokens; another one is kept as it is."""
    answer = sample().said()[1]
    assert (answer.name, answer.model, answer.usage.input_tokens) == ("guide", "gemini-3-pro", 7)
    assert answer.stop_reason is not None
    assert [entry.kind for entry in sample().entries("branch:1")].count("custom") == 3


def test_rewind_is_a_branch() -> None:
    """A rewind goes on before the invocation that it names; what it left stays in the log."""
    found = sample()
    assert (found.branch("branch:1").at, found.conversations[0].main) == (7, "branch:1")
    assert "assistant: A pearl." in found.shown()
    assert "assistant: A pearl." not in found.shown("branch:1", whole=True)


def test_compaction_stands_for_the_events_of_its_times() -> None:
    """The model saw the text in place of the events between its times, and the others."""
    assert sample().shown("branch:1")[:2] == [
        "user: The user asked what is there: a stone under an oak.",
        "user: And that?",
    ]


def snake(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Return JSON with keys in snake case, as Python writes them."""
    if isinstance(value, dict):
        return {re.sub(r"(?<!^)([A-Z])", r"_\1", key).lower(): snake(inner) for key, inner in value.items()}
    return list(map(snake, value)) if isinstance(value, list) else value


def test_keys_in_snake_case_and_lines_are_read(tmp_path: Path) -> None:
    """`Session.model_dump_json` without aliases, and the lines of `adk run --jsonl`, say the same."""
    session = value_of("google-adk")
    lines = [{**event, "session_id": session["id"]} for event in session["events"]]
    for data in (document(snake(session)), jsonl(*lines)):
        other = read_bytes(tmp_path, data)
        assert other.conversations[0].key == "session-1"
        assert other.shown("branch:1") == sample().shown("branch:1")
