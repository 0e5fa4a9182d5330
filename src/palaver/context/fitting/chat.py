"""Pieces written as messages of chat completions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from palaver.context.fitting.pieces import Piece
from palaver.messages import AudioContent, ImageContent, TextContent, ToolCallContent, ToolResultContent
from palaver.messages.parts import part_of
from palaver.view import Block
from palaver.wire.parts import SpeechRole
from palaver.wire.words import from_harness, left_out

__all__ = ["written"]

_Dict = dict[str, Any]


def written(piece: Piece, own: Mapping[str, Any]) -> Iterator[_Dict]:
    """Write a piece; of the caller's own message the role and the name are taken over."""
    if piece.side == "tool":
        for _, block in piece.blocks:
            content = block.content
            if isinstance(content, ToolResultContent):
                yield {"role": "tool", "tool_call_id": content.id, "content": content.text()}
        return
    blocks = tuple(block for _, block in piece.blocks)
    calls = [_call(block.content) for block in blocks if isinstance(block.content, ToolCallContent)]
    said = _content(tuple(_parts(blocks, piece.side)))
    role = own.get("role") if own.get("role") == "developer" else piece.side
    name = own.get("name") if piece.side == "user" else None
    if said or calls:
        yield (
            {"role": role, "content": said or None}
            | ({"name": name} if isinstance(name, str) else {})
            | ({"tool_calls": calls} if calls else {})
        )


def _content(parts: Sequence[_Dict]) -> str | list[_Dict]:
    """Give one text as a string, and everything else as parts."""
    return parts[0]["text"] if len(parts) == 1 and "text" in parts[0] else list(parts)


def _parts(blocks: Sequence[Block], side: SpeechRole) -> Iterator[_Dict]:
    for block in blocks:
        content = block.content
        if isinstance(content, TextContent):
            said = from_harness(block.derived, content.content) if block.derived and side == "user" else content.content
            yield {"type": "text", "text": said}
        elif isinstance(content, ImageContent | AudioContent) and side == "user":
            yield from part_of(content)
        elif not isinstance(content, ToolCallContent) and side == "user":
            yield {"type": "text", "text": left_out(content.type, "chat completions cannot carry it", block.origin)}


def _call(call: ToolCallContent) -> _Dict:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
