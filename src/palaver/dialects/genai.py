"""The messages of OpenTelemetry's conventions for generative AI: roles, and parts with a type. They are written, not read.

They follow semconv 1.41: github.com/open-telemetry/semantic-conventions-genai, docs/gen-ai/gen-ai-events.md, which has the status "Development".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from palaver.messages import Content, TextContent, ThinkingContent, ToolCallContent, ToolResultContent, thaw, words_of
from palaver.view import Exchange, View
from palaver.wire.binding import COMPACTION

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
