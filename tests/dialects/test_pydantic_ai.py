"""Messages of pydantic-ai without the package: its JSON is read, written back, and refused where it is wrong."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from palaver import read_messages, write_messages
from palaver.errors import InvalidMessage
from palaver.messages import Role

AT = "2026-11-01T12:00:00Z"


def conversation() -> list[dict[str, Any]]:
    """Return a stored history: instructions, a prompt, a call of the model's and one of the provider's, results, an answer."""
    call = {
        "tool_name": "weather",
        "args": '{"town": "Oslo"}',
        "tool_call_id": "c1",
        "id": None,
        "part_kind": "tool-call",
    }
    search = {"tool_name": "web_search", "args": {"q": "Oslo"}, "tool_call_id": "n1", "part_kind": "builtin-tool-call"}
    usage = {"input_tokens": 7, "cache_read_tokens": 3, "output_tokens": 2, "output_reasoning_tokens": 1, "details": {}}
    returned = {"tool_name": "weather", "content": {"degrees": -4}, "tool_call_id": "c1", "outcome": "success"}
    baseline = {"instructions": [], "part_kind": "instruction-baseline"}
    return [
        {
            "kind": "request",
            "instructions": "Look first.",
            "parts": [baseline, {"content": "Is it cold?", "timestamp": AT, "part_kind": "user-prompt"}],
        },
        {
            "kind": "response",
            "model_name": "gpt-5",
            "usage": usage,
            "parts": [{"content": "I look.", "id": None, "part_kind": "text"}, search, call],
        },
        {
            "kind": "request",
            "instructions": "Look first.",
            "parts": [
                {**returned, "part_kind": "tool-return"},
                {"content": "Answer in a word.", "tool_name": None, "part_kind": "retry-prompt"},
            ],
        },
        {"kind": "response", "parts": [{"content": "Yes.", "part_kind": "text"}]},
    ]


def test_a_history_comes_back_as_it_was() -> None:
    """What is read and written back is equal: parts that nothing is known of, usage and metadata, too."""
    given = conversation()
    before = copy.deepcopy(given)
    written = write_messages(read_messages(given), "pydantic-ai")
    assert given == before
    assert (written.items, list(written.report)) == (given, [])


def test_parts_are_read_as_who_said_them() -> None:
    """Instructions are read once, a retry is the harness's, usage and model are the answer's."""
    read = read_messages(conversation())
    roles = [Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL, Role.USER, Role.ASSISTANT]
    assert [message.role for message in read] == roles
    assert (read[4].speaker, read[2].model) == ("harness", "gpt-5")
    assert (read[2].usage.input_tokens, read[2].usage.cache_read_tokens, read[2].usage.reasoning_tokens) == (7, 3, 1)
    assert read[3].tool_results()[0].text() == '{"degrees": -4}'


def test_wrong_items_are_refused() -> None:
    """What is not a message is named by its place."""
    with pytest.raises(InvalidMessage, match="Item 1 of the messages: A message of pydantic-ai is"):
        read_messages([conversation()[0], {"kind": "answer", "parts": []}])
    with pytest.raises(InvalidMessage, match="A part of a message is an object, not a str"):
        read_messages([{"kind": "request", "parts": ["Hello"]}])
