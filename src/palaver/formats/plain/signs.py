"""What plain message lists are recognised by, and by what the two interfaces are told apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from palaver.formats import fields
from palaver.formats.lists import first_element
from palaver.formats.sources import Opening

CHAT, ANTHROPIC = "chat-completions", "anthropic-messages"

_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
_KEYS = frozenset(
    {
        # chat completions, request and answer (platform.openai.com/docs/api-reference/chat), with what LiteLLM and DeepSeek add
        *("role", "content", "name", "tool_calls", "tool_call_id", "function_call", "refusal", "audio", "annotations"),
        *("weight", "reasoning_content", "reasoning", "thinking_blocks", "provider_specific_fields", "cache_control"),
        # Anthropic's Messages, request and answer (docs.anthropic.com/en/api/messages)
        *("id", "type", "model", "stop_reason", "stop_sequence", "usage", "container", "context_management"),
        # what people write beside a message
        *("timestamp", "created_at", "metadata"),
    }
)
_CHAT_KEYS = frozenset({"tool_calls", "tool_call_id", "function_call", "refusal", "reasoning_content"})
_CHAT_ROLES = frozenset({"system", "developer", "tool", "function"})
_CHAT_PARTS = frozenset({"image_url", "input_audio", "file"})
_BLOCKS = frozenset(
    {"tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document", "server_tool_use"}
)
_PLAIN = 0.6  # nothing contradicts, and any other format would say more


def shows(opening: Opening, name: str) -> float:
    """Tell how surely an opening shows a list of this interface's messages."""
    about, messages = shown(opening)
    if 2 * sum(map(_plain, messages)) <= len(messages):  # a few odd ones among them are reported when they are read
        return 0.0
    return _PLAIN if name == _interface(about, messages) else 0.0


def shown(opening: Opening) -> tuple[Mapping[str, object], Sequence[object]]:
    """Give the first conversation that an opening shows: what stands beside its messages, and the first of them."""
    if opening.text.lstrip().startswith("["):
        first = opening.elements[0] if opening.elements else first_element(opening.text)
        nested = first.get("messages")
        return (first, nested) if isinstance(nested, list) else ({}, opening.elements or _some(first))
    if by_line(opening):
        nested = opening.records[0].get("messages")
        return (opening.records[0], nested) if isinstance(nested, list) else ({}, opening.records)
    messages = fields.items(opening.fields, "messages")
    return opening.fields, messages or _some(first_element(opening.text, "messages"))


def _some(message: Mapping[str, object]) -> Sequence[object]:
    return (dict(message),) if message else ()


def by_line(opening: Opening) -> bool:
    """Tell whether the first line is an object of its own; then every line is one."""
    first = opening.text.lstrip().partition("\n")[0].rstrip()
    return bool(opening.records) and first.endswith("}") and tuple(opening.records[0]) == _deduplicated(opening.keys)


def _deduplicated(keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(keys))


def _plain(message: object) -> bool:
    if not isinstance(message, dict) or fields.text(message, "role") not in _ROLES or not message.keys() <= _KEYS:
        return False
    said = "content" in message or "tool_calls" in message or "function_call" in message
    content = message.get("content")
    return said and message.get("type", "message") == "message" and (content is None or isinstance(content, str | list))


def _interface(about: Mapping[str, object], messages: Sequence[object]) -> str:
    """Tell whose messages they are; where nothing tells, chat completions, which more programs speak."""
    chat = anthropic = 0
    for message in messages:
        if not isinstance(message, dict):
            continue
        kinds = {str(part.get("type")) for part in fields.objects(message, "content")}
        chat += fields.text(message, "role") in _CHAT_ROLES or any(message.get(key) for key in _CHAT_KEYS)
        chat += bool(kinds & _CHAT_PARTS)
        anthropic += bool(kinds & _BLOCKS) or message.get("type") == "message"
    anthropic += "system" in about and about["system"] is not None
    tools = fields.objects(about, "tools")
    chat += any("function" in tool for tool in tools)
    anthropic += any("input_schema" in tool for tool in tools)
    return ANTHROPIC if anthropic > chat else CHAT
