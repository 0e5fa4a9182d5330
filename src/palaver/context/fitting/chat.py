"""Messages of chat completions read, and pieces written as such messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from palaver.context.fitting.pieces import Piece
from palaver.messages import (
    AssistantMessage,
    AudioContent,
    ImageContent,
    Message,
    TextContent,
    ToolCallContent,
    ToolResultContent,
    UnknownContent,
    from_chat_dict,
)
from palaver.messages.parts import part_of
from palaver.view import Block
from palaver.wire.parts import SpeechRole
from palaver.wire.words import from_harness, left_out

__all__ = ["read", "written"]

_Dict = dict[str, Any]


def read(message: Mapping[str, Any], **fields: Any) -> Message:  # noqa: ANN401 - fields of a message
    """Read a message; what the model said aloud is the transcript beside it, or a block that names the recording.

    Source: OpenAI API reference, chat completion message, ``audio``: an earlier spoken answer goes back by its id.
    """
    found = from_chat_dict(message, **fields)
    spoken = _spoken(message)
    if not spoken or not isinstance(found, AssistantMessage) or message.get("content"):
        return found
    words = str(spoken.get("transcript") or "")
    said = TextContent(content=words) if words.strip() else UnknownContent(type="spoken", audio_id=spoken["id"])
    return found.model_copy(update={"contents": (*found.contents, said)})


def _spoken(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give what a message says of an answer that the model spoke; nothing where none can be found by it."""
    audio = message.get("audio")
    return audio if isinstance(audio, Mapping) and isinstance(audio.get("id"), str) and audio["id"] else {}


def written(piece: Piece, own: Mapping[str, Any]) -> Iterator[_Dict]:
    """Write a piece; of the caller's own message the role, the name and, if all of it is there, what the model spoke are taken over."""
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
    spoken = _spoken(own) if piece.side == "assistant" and all(block.reason is None for block in blocks) else {}
    if spoken and not own.get("content"):
        said = []
    if said or calls or spoken:
        yield (
            {"role": role, "content": said or None}
            | ({"name": name} if isinstance(name, str) else {})
            | ({"audio": {"id": spoken["id"]}} if spoken else {})
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
