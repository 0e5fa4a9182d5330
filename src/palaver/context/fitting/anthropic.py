"""Pieces written as messages of Anthropic's interface."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from palaver.context.fitting.pieces import Piece
from palaver.context.fitting.turns import Turns
from palaver.messages import (
    Content,
    ImageContent,
    Media,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolResultContent,
    UnknownContent,
    thaw,
)
from palaver.view import Block
from palaver.wire.words import BEGINS_WITH_ASSISTANT, from_harness

__all__ = ["TURNS", "written"]

_Dict = dict[str, Any]


def written(piece: Piece, _own: Mapping[str, Any]) -> Iterator[_Dict]:
    """Write a piece."""
    role = "assistant" if piece.side == "assistant" else "user"
    parts = [part for side, block in piece.blocks for part in _parts(block, "system" if side == "system" else "")]
    if parts:
        yield {"role": role, "content": parts}


def _parts(block: Block, mark: str) -> Iterator[_Dict]:
    content = block.content
    if isinstance(content, TextContent):
        kind = block.derived or mark
        yield {"type": "text", "text": from_harness(kind, content.content) if kind else content.content}
    elif isinstance(content, ToolResultContent):
        yield {
            "type": "tool_result",
            "tool_use_id": content.id,
            "content": content.content if isinstance(content.content, str) else _inner(content.content),
        } | ({"is_error": True} if content.is_error else {})
    else:
        yield from _other(content)


def _inner(parts: Iterable[Content]) -> list[_Dict]:
    return [
        written
        for part in parts
        for written in ([{"type": "text", "text": part.content}] if isinstance(part, TextContent) else _other(part))
    ]


def _other(content: Content) -> Iterator[_Dict]:
    if isinstance(content, ThinkingContent):
        yield (
            {"type": "redacted_thinking", "data": content.redacted}
            if content.redacted
            else {"type": "thinking", "thinking": content.content, "signature": content.signature}
        )
    elif isinstance(content, ToolCallContent):
        yield {"type": "tool_use", "id": content.id, "name": content.name, "input": thaw(content.args)}
    elif isinstance(content, ImageContent):
        yield from ({"type": "image", "source": _source(media)} for media in content.images)
    elif isinstance(content, UnknownContent):
        yield {"type": content.type} | thaw(content.model_extra or {})


def _source(media: Media) -> _Dict:
    if media.url is not None:
        return {"type": "url", "url": media.url}
    data = base64.b64encode(media.data or b"").decode()
    return {"type": "base64", "media_type": media.media_type, "data": data}


def _joined(one: Mapping[str, Any], other: Mapping[str, Any]) -> _Dict:
    return {"role": one["role"], "content": [*_as_parts(one["content"]), *_as_parts(other["content"])]}


def _as_parts(content: object) -> list[_Dict]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return list(content) if isinstance(content, list | tuple) else []


TURNS = Turns("assistant", lambda: {"role": "user", "content": BEGINS_WITH_ASSISTANT}, _joined)
"""Who speaks when."""
