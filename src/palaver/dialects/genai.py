"""The messages of OpenTelemetry's conventions for generative AI: roles, and parts with a type.

They follow semconv 1.41: github.com/open-telemetry/semantic-conventions-genai, docs/gen-ai/gen-ai-events.md, which has the status "Development".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from palaver.errors import InvalidMessage
from palaver.messages import (
    AssistantMessage,
    Content,
    Message,
    Speaker,
    SystemMessage,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
    thaw,
    words_of,
)
from palaver.messages.forms import blocks_of
from palaver.plurals import a_type
from palaver.view import Exchange, View
from palaver.wire.binding import COMPACTION

EVENT = "gen_ai.client.inference.operation.details"
"""The name of the event that has a model call."""

COMPACTED = "gen_ai.conversation.compacted"
"""The attribute of a model call, and of its turn, whose request has a shorter form of the conversation. It is true or absent."""

COMPACTIONS = frozenset({"record", "summary"})
"""The derived texts that are parts of the type `compaction`."""


def messages_of(view: View) -> Iterator[dict[str, Any]]:
    """Yield the conversation of a view."""
    view.load()
    for exchange in view.exchanges:
        yield from messages_in(exchange)


def messages_in(exchange: Exchange) -> Iterator[dict[str, Any]]:
    """Yield the messages of an exchange."""
    for turn in exchange.turns:
        yield {"role": turn.role.value, "parts": [part_of(block.content, block.derived) for block in turn.blocks]}


def part_of(content: Content, derived: str = "") -> dict[str, Any]:
    """Return a block as a part of the conventions' messages."""
    made: dict[str, Any] = {"type": content.type}
    match content:
        case _ if derived in COMPACTIONS:
            made = {"type": COMPACTION, "content": words_of(content)}
        case TextContent():
            made["content"] = content.content
        case ThinkingContent():
            made = {"type": "reasoning", "content": content.content}
        case ToolCallContent():
            made |= {"id": content.id, "name": content.name, "arguments": thaw(content.args)}
        case ToolResultContent():
            made = {"type": "tool_call_response", "id": content.id, "response": content.text()}
        case _ if content.type == COMPACTION:  # what is encrypted says nothing
            facts = content.model_extra or {}
            made |= {key: facts[key] for key in ("id", "content") if isinstance(facts.get(key), str)}
        case _:
            pass
    return made


# --- reading --------------------------------------------------------------------------------------------------------------


def message_of(value: object, **about: Any) -> Message:  # noqa: ANN401 - fields of a message
    """Read a message. Its other keys go to the metadata.

    Raises:
        InvalidMessage: It has no list of parts, or a part is not an object.
    """
    parts = value.get("parts") if isinstance(value, Mapping) else None
    if not isinstance(value, Mapping) or not isinstance(parts, list):
        raise InvalidMessage(f"A message is an object with a list of parts, not {a_type(value)} with {a_type(parts)}.")
    blocks = blocks_of([_block(part) for part in parts])
    more = {key: item for key, item in value.items() if key not in {"role", "parts", "name", "finish_reason"}}
    name = value.get("name")
    about |= {"contents": blocks, "metadata": more, **({"name": name} if isinstance(name, str) and name else {})}
    match value.get("role"):
        case "assistant" | "model":
            return AssistantMessage(**about)
        case "system" | "developer":
            return SystemMessage(**about)
        case _ if blocks and all(isinstance(block, ToolResultContent) for block in blocks):
            return ToolMessage(**about)
    return UserMessage(**about, speaker=Speaker.SUMMARY if is_compaction(value) else None)


def _block(part: object) -> object:
    """Return a part as a block, or unchanged where it is of another type."""
    if not isinstance(part, Mapping):
        return part
    made = {key: item for key, item in part.items() if key not in {"arguments", "response", "result"}}
    match part.get("type"):
        case "reasoning":
            made["type"] = "thinking"
        case "compaction" if isinstance(part.get("content"), str):
            made["type"] = "text"
        case "tool_call":
            made |= {"id": part.get("id") or "", "args": part.get("arguments") or {}}
        case "tool_call_response":
            said = part.get("response", part.get("result"))
            text = said if isinstance(said, str) else "" if said is None else json.dumps(said, ensure_ascii=False)
            made |= {"type": "tool_result", "id": part.get("id") or "", "content": text}
        case "blob" | "uri" if part.get("modality") == "image":
            data = f"data:{part.get('mime_type') or 'image/png'};base64,{part.get('content')}"
            made = {"type": "image_url", "image_url": {"url": part.get("uri") or data}}
        case _:
            return part
    return made


def is_compaction(value: object) -> bool:
    """Return whether a message is a text that stands for earlier messages."""
    parts = value.get("parts") if isinstance(value, Mapping) else None
    types = (
        [part.get("type") if isinstance(part, Mapping) else None for part in parts] if isinstance(parts, list) else []
    )
    return bool(types) and all(kind == COMPACTION for kind in types)


def essence_of(value: object) -> object:
    """Return what a message says as JSON: its role, texts, calls and results. It is the same for an answer and for the form in which it is sent back."""
    if not isinstance(value, Mapping) or not isinstance(value.get("parts"), list):
        return value
    parts = [part for part in value["parts"] if not isinstance(part, Mapping) or part.get("type") != "reasoning"]
    return [value.get("role"), [part for part in parts if part != {"type": "text", "content": ""}]]


def answered_in(value: object) -> Iterator[str]:
    """Yield the ids of the calls that a message answers."""
    for part in (value.get("parts") or ()) if isinstance(value, Mapping) else ():
        if isinstance(part, Mapping) and part.get("type") == "tool_call_response":
            yield str(part.get("id"))
