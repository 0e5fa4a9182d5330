"""Messages that the frameworks' own packages make: read from objects and from JSON, written back, and loaded by the packages."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from palaver import fit, read_messages, write_messages
from palaver.messages import Role

ai = pytest.importorskip("pydantic_ai.messages", reason="pydantic-ai is not installed: ./run integrations")

PNG = b"\x89PNG\r\n\x1a\n\xff\xfe\xfd\xfb\xef"
AT = datetime(2026, 11, 1, 12, tzinfo=UTC)


def conversation() -> list[Any]:
    """Return messages with every part and every kind of content that a run of pydantic-ai records."""
    picture = ai.BinaryContent(PNG, media_type="image/png")
    prompt = [
        "What is this?",
        ai.ImageUrl("https://example.org/a.png", vendor_metadata={"detail": "low"}),
        picture,
        ai.BinaryContent(b"ID3\x04", media_type="audio/mpeg"),
        ai.BinaryContent(b"%PDF-1.7", media_type="application/pdf"),
        ai.DocumentUrl("https://example.org/a.pdf"),
        ai.TextContent("A note", metadata={"note": 1}),
        ai.CachePoint(),
    ]
    return [
        ai.ModelRequest(
            [ai.SystemPromptPart("Be brief.", timestamp=AT), ai.UserPromptPart(prompt, timestamp=AT)],
            instructions="Look first.",
        ),
        ai.ModelResponse(
            [
                ai.ThinkingPart("Hm.", signature="sig", provider_name="anthropic"),
                ai.ThinkingPart("", id="redacted_thinking", signature="xyz", provider_name="anthropic"),
                ai.TextPart("I look.", provider_details={"x": 1}),
                ai.ToolCallPart("weather", {"town": "Oslo"}, tool_call_id="c1"),
                ai.ToolCallPart("weather", '{"town": "Rome"}', tool_call_id="c2", id="fc_1"),
                ai.ToolCallPart("weather", '{"town": ', tool_call_id="c3"),
                ai.ToolCallPart("weather", None, tool_call_id="c4"),
                ai.NativeToolCallPart("web_search", {"q": "Oslo"}, tool_call_id="n1", provider_name="anthropic"),
                ai.NativeToolReturnPart(
                    "web_search", {"hits": []}, tool_call_id="n1", provider_name="anthropic", timestamp=AT
                ),
                ai.FilePart(ai.BinaryImage(PNG, media_type="image/png"), id="f1"),
            ],
            model_name="claude-opus-4-5",
            provider_name="anthropic",
            timestamp=AT,
            finish_reason="tool_call",
        ),
        ai.ModelRequest(
            [
                ai.ToolReturnPart(
                    "weather", {"degrees": -4, "sky": None}, tool_call_id="c1", timestamp=AT, metadata={"m": 1}
                ),
                ai.ToolReturnPart("weather", ["Here", picture, {"n": 1}], tool_call_id="c2", timestamp=AT),
                ai.ToolReturnPart("weather", "It is not JSON.", tool_call_id="c3", timestamp=AT, outcome="failed"),
                ai.ToolReturnPart("weather", picture, tool_call_id="c4", timestamp=AT),
                ai.UserPromptPart("And?", timestamp=AT),
            ],
            instructions="Look first.",
            timestamp=AT,
            metadata={"page": 1},
        ),
        ai.ModelResponse([ai.TextPart("Minus four.")], timestamp=AT, model_name="gpt-5"),
        ai.ModelRequest([ai.UserPromptPart("", timestamp=AT), ai.UserPromptPart("Thanks", timestamp=AT)]),
    ]


def as_json(messages: list[Any]) -> list[Any]:
    """Return messages as pydantic-ai stores them."""
    stored: list[Any] = json.loads(ai.ModelMessagesTypeAdapter.dump_json(messages))
    return stored


def test_what_pydantic_ai_writes_comes_back() -> None:
    """JSON of all parts is equal after reading and writing, and the package loads it."""
    given = as_json(conversation())
    written = write_messages(read_messages(given), "pydantic-ai")
    assert (written.items, list(written.report)) == (given, [])
    assert as_json(ai.ModelMessagesTypeAdapter.validate_python(written.items)) == written.items


def test_objects_are_read_like_their_json() -> None:
    """Dataclasses say what their JSON says, and need no dialect's name."""
    made = conversation()
    assert (
        write_messages(read_messages(made), "pydantic-ai").items
        == write_messages(read_messages(as_json(made)), "pydantic-ai").items
    )


def test_messages_are_what_pydantic_ai_says_they_are() -> None:
    """Parts of a request are messages of their roles; a response is one message with thinking, calls and the provider's own parts."""
    read = read_messages(conversation())
    roles = [
        Role.SYSTEM,
        Role.SYSTEM,
        Role.USER,
        Role.ASSISTANT,
        *[Role.TOOL] * 4,
        Role.USER,
        Role.ASSISTANT,
        Role.USER,
    ]
    assert [message.role for message in read] == roles
    assert [message.text_content() for message in read[:2]] == ["Look first.", "Be brief."]
    answer = read[3]
    assert [(block.content, block.signature, block.redacted) for block in answer.thinking()] == [
        ("Hm.", "sig", ""),
        ("", "", "xyz"),
    ]
    assert [call.arguments for call in answer.tool_calls()] == [
        '{"town":"Oslo"}',
        '{"town": "Rome"}',
        '{"town": ',
        "{}",
    ]
    assert answer.timestamp == AT.timestamp()
    results = [result for message in read for result in message.tool_results()]
    assert [(result.id, result.is_error) for result in results] == [
        ("c1", False),
        ("c2", False),
        ("c3", True),
        ("c4", False),
    ]
    assert len(results[1].content) == 3


@pytest.mark.parametrize(
    "dialect", ["openai-chat", "openai-responses", "anthropic", "gemini", "langchain", "vercel-ui"]
)
def test_providers_and_pydantic_ai_read_each_other(dialect: str) -> None:
    """Every call and result is in each other dialect's list, and back in messages that pydantic-ai loads."""
    theirs = read_messages(write_messages(read_messages(conversation()), dialect).items, dialect)
    items = write_messages(theirs, "pydantic-ai").items
    parts = [part for message in ai.ModelMessagesTypeAdapter.validate_python(items) for part in message.parts]
    assert sum(part.part_kind == "tool-call" for part in parts) == 4
    assert [part.tool_name for part in parts if part.part_kind == "tool-return"] == ["weather"] * 4


def test_a_list_fits() -> None:
    """Untouched messages are the caller's own objects, the others are loaded by pydantic-ai, and no call lacks its return."""
    given: list[Any] = []
    for number in range(40):
        call = ai.ToolCallPart("weather", {"town": number}, tool_call_id=f"c{number}")
        returned = ai.ToolReturnPart("weather", {"sky": "Grey. " * 300}, tool_call_id=f"c{number}")
        given += [
            ai.ModelRequest([ai.UserPromptPart(f"What is the weather in town {number}?")]),
            ai.ModelResponse([call]),
            ai.ModelRequest([returned]),
            ai.ModelResponse([ai.TextPart(f"Grey in town {number}.")]),
        ]
    fitted = fit(given, model="gpt-5", budget=6_000)
    assert fitted.tokens <= 6_000 < fitted.tokens_before
    assert fitted.messages[-1] is given[-1]
    own = [item for item in fitted.messages if not isinstance(item, dict)]
    assert all(any(item is message for message in given) for item in own)
    sent = [item if item in own else ai.ModelMessagesTypeAdapter.validate_python([item])[0] for item in fitted.messages]
    parts = [part for message in sent for part in message.parts]
    calls = [part.tool_call_id for part in parts if part.part_kind == "tool-call"]
    assert calls == [part.tool_call_id for part in parts if part.part_kind == "tool-return"]
