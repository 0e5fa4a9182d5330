"""Messages of Converse: read, written back, fitted, and refused where they are wrong."""

from __future__ import annotations

from typing import Any

import pytest

from palaver import fit, read_messages, write_messages
from palaver.errors import InvalidMessage
from palaver.messages import Role

PNG = {"__bytes_encoded__": True, "data": "iVBORw0KGgo="}


def conversation() -> list[dict[str, Any]]:
    """Return messages with each kind of content that is read, and some that are kept as they are."""
    call = {"toolUseId": "c1", "name": "weather", "input": {"town": "Oslo"}}
    return [
        {
            "role": "user",
            "content": [
                {"text": "Is it cold?"},
                {"image": {"format": "png", "source": {"bytes": PNG}}},
                {"document": {"format": "pdf", "name": "a", "source": {"bytes": {**PNG, "data": "JVBERg=="}}}},
                {"cachePoint": {"type": "default"}},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "sig"}}},
                {"reasoningContent": {"redactedContent": {**PNG, "data": "eHl6"}}},
                {"text": "I look."},
                {"toolUse": call},
                {"toolUse": {**call, "toolUseId": "c2", "reasoningSignature": "q"}},
            ],
            "metadata": {"usage": {"inputTokens": 7, "outputTokens": 2, "totalTokens": 9}},
        },
        {
            "role": "user",
            "content": [
                {"toolResult": {"toolUseId": "c1", "status": "success", "content": [{"json": {"degrees": -4}}]}},
                {
                    "toolResult": {
                        "toolUseId": "c2",
                        "status": "error",
                        "content": [{"text": "Here"}, {"image": {"format": "png", "source": {"bytes": PNG}}}],
                    }
                },
                {"text": "Mind the wind."},
            ],
        },
        {"role": "assistant", "content": [{"text": "Yes."}]},
    ]


def test_messages_come_back_as_they_were() -> None:
    """What is read and written back is equal: bytes, JSON of tools, contents that nothing is known of, metadata."""
    given = conversation()
    written = write_messages(read_messages(given), "bedrock")
    assert (written.items, list(written.report)) == (given, [])


def test_bytes_are_read_like_their_text() -> None:
    """Bytes as boto3 has them say what their base64 says."""
    given = {"role": "user", "content": [{"image": {"format": "png", "source": {"bytes": b"\x89PNG\r\n\x1a\n"}}}]}
    (message,) = read_messages([given], "bedrock")
    assert write_messages([message], "bedrock").items[0]["content"] == conversation()[0]["content"][1:2]


def test_messages_are_read_as_what_they_say() -> None:
    """Roles, thinking, calls, results and failures are read; what a person adds to results is text."""
    read = read_messages(conversation(), "bedrock")
    assert [message.role for message in read] == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT]
    thoughts = [(block.content, block.signature, block.redacted) for block in read[1].thinking()]
    assert thoughts == [("Hm.", "sig", ""), ("", "", "eHl6")]
    assert [(result.id, result.is_error) for result in read[2].tool_results()] == [("c1", False), ("c2", True)]
    assert read[2].tool_results()[0].text() == '{"degrees": -4}'


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses", "anthropic", "gemini", "agent-framework"])
def test_providers_and_converse_read_each_other(dialect: str) -> None:
    """Every call and result is in each other dialect's list, and back in messages whose roles alternate."""
    theirs = read_messages(write_messages(read_messages(conversation(), "bedrock"), dialect).items, dialect)
    items = write_messages(theirs, "bedrock").items
    parts = [part for item in items for part in item["content"]]
    assert [part["toolUse"]["input"] for part in parts if "toolUse" in part] == [{"town": "Oslo"}] * 2
    assert [part["toolResult"]["toolUseId"] for part in parts if "toolResult" in part] == ["c1", "c2"]
    assert [item["role"] for item in items] == ["user", "assistant", "user", "assistant"]


def test_a_list_fits() -> None:
    """Untouched messages are the caller's own objects; a shortened result is text, and no call lacks its result."""
    given: list[dict[str, Any]] = []
    for number in range(40):
        call = {"toolUseId": f"c{number}", "name": "weather", "input": {}}
        said = {"toolUseId": f"c{number}", "status": "success", "content": [{"json": {"sky": "Grey. " * 300}}]}
        given += [
            {"role": "user", "content": [{"text": f"What is the weather in town {number}?"}]},
            {"role": "assistant", "content": [{"toolUse": call}]},
            {"role": "user", "content": [{"toolResult": said}]},
            {"role": "assistant", "content": [{"text": f"Grey in town {number}."}]},
        ]
    fitted = fit(given, model="gpt-5", budget=16_000)
    assert fitted.tokens <= 16_000 < fitted.tokens_before
    assert fitted.messages[-1] is given[-1]
    parts = [part for item in fitted.messages for part in item["content"]]
    results = [part["toolResult"] for part in parts if "toolResult" in part]
    calls = [part["toolUse"]["toolUseId"] for part in parts if "toolUse" in part]
    assert calls == [result["toolUseId"] for result in results]
    assert {tuple(result["content"][0]) for result in results} == {("text",), ("json",)}


@pytest.mark.parametrize(
    "item",
    [
        {"role": "system", "content": [{"text": "Look."}]},
        {"role": "user", "content": "Hello"},
        {"role": "user", "content": ["Hello"]},
    ],
)
def test_wrong_items_are_refused(item: Any) -> None:  # noqa: ANN401 - anything
    """What is not a message is named by its place."""
    with pytest.raises(InvalidMessage, match="Item 1 of the messages"):
        read_messages([conversation()[0], item], "bedrock")
