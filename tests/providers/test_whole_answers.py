"""A provider's answer as its SDK returns it, read as a message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from anthropic.types import Message as AnthropicMessage
from google.genai.interactions import Interaction
from google.genai.types import GenerateContentResponse
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from palaver.dialects import messages_of
from palaver.errors import InvalidMessage, ProviderError
from palaver.messages import AssistantMessage, UserMessage

CHAT: Mapping[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt-5",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": "I look.",
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}
                ],
            },
        }
    ],
    "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
}
RESPONSES: Mapping[str, Any] = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "gpt-5",
    "status": "completed",
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "output": [
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "I look.", "annotations": []}],
        },
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "c1",
            "name": "look",
            "arguments": '{"at": 1}',
            "status": "completed",
        },
    ],
    "usage": {
        "input_tokens": 7,
        "output_tokens": 3,
        "total_tokens": 10,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    },
}
ANTHROPIC: Mapping[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-5",
    "stop_reason": "tool_use",
    "content": [
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": 1}},
    ],
    "usage": {"input_tokens": 7, "output_tokens": 3},
}
GEMINI: Mapping[str, Any] = {
    "responseId": "r1",
    "modelVersion": "gemini-2.5-pro",
    "candidates": [
        {
            "finishReason": "STOP",
            "content": {
                "role": "model",
                "parts": [
                    {"text": "I look."},
                    {"functionCall": {"id": "c1", "name": "look", "args": {"at": 1}}, "thoughtSignature": "+/+/"},
                ],
            },
        }
    ],
    "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 3, "totalTokenCount": 10},
}
INTERACTION: Mapping[str, Any] = {
    "id": "v1_1",
    "model": "gemini-3.6-flash",
    "status": "requires_action",
    "steps": [
        {"type": "thought", "signature": "+/+/"},
        {"type": "model_output", "content": [{"type": "text", "text": "I look."}]},
        {"type": "function_call", "id": "c1", "name": "look", "arguments": {"at": 1}},
        {"type": "novelty", "new": [1]},
    ],
    "usage": {"total_input_tokens": 7, "total_output_tokens": 3, "total_tokens": 10},
}
ANSWERS: Mapping[str, tuple[Mapping[str, Any], Any]] = {
    "openai-chat": (CHAT, ChatCompletion),
    "openai-responses": (RESPONSES, Response),
    "anthropic": (ANTHROPIC, AnthropicMessage),
    "gemini": (GEMINI, GenerateContentResponse),
    "gemini-interactions": (INTERACTION, Interaction),
}


@pytest.mark.parametrize("api", ANSWERS)
def test_an_sdks_answer_is_read_like_its_json(api: str) -> None:
    """Text, call, usage and model; Gemini's signature in the alphabet of the API."""
    data, sdk = ANSWERS[api]
    ((one, whole),), ((other, same),) = messages_of(data), messages_of(sdk.model_validate(data))
    assert whole
    assert same
    for message in (one, other):
        assert isinstance(message, AssistantMessage)
        assert message.text_content() == "I look."
        assert [(call.name, call.arguments.replace(" ", "")) for call in message.tool_calls()] == [("look", '{"at":1}')]
        assert message.usage is not None
        assert (message.usage.input_tokens, message.usage.output_tokens) == (7, 3)
        assert message.model == (data.get("model") or data["modelVersion"])
    assert one.contents == other.contents


def test_what_is_not_an_answer() -> None:
    """A message and a dict of a list are not answers; a failure and half an answer are told."""
    for other in (UserMessage("hi"), {"role": "user", "content": "hi"}):
        assert [whole for _, whole in messages_of(other)] == [False]
    for wrong in (3, "hi", ChatCompletion):
        with pytest.raises(TypeError):
            list(messages_of(wrong))
    with pytest.raises(InvalidMessage, match="keys: role"):
        list(messages_of({"role": "user"}))
    with pytest.raises(ProviderError):
        list(messages_of({"choices": []}))
