"""Our messages as pi's, and what pi's form has no place for beside them, so that reading gives the very message back."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from palaver.formats.pi import messages
from palaver.formats.pi.names import OURS
from palaver.messages import (
    AssistantMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    Content,
    CustomMessage,
    ImageContent,
    Message,
    StopReason,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
    canonical_json,
    thaw,
)

__all__ = ["written"]

_STOPS: Mapping[StopReason, str] = {
    StopReason.STOP: "stop",
    StopReason.LENGTH: "length",
    StopReason.TOOL_CALLS: "toolUse",
    StopReason.ERROR: "error",
    StopReason.ABORT: "aborted",
}
"""pi's words for why a model stopped; the others are kept beside."""


def written(message: Message, key: str, at: float) -> dict[str, Any] | None:
    """Give pi's form of a message, with `palaver` holding the fields that pi has no place for; None where it has no such message.

    Args:
        message: The message, its media in memory.
        key: The id of its entry.
        at: When its entry was written, as the record says it.
    """
    said = _said(message)
    if said is None:
        return None
    if message.timestamp > 0:
        said["timestamp"] = int(message.timestamp * 1000)
    have = messages.read(said, key, at).to_dict()
    want = message.to_dict()
    beside = {name: want.get(name) for name in sorted({*have, *want}) if have.get(name) != want.get(name)}
    return said | {OURS: beside} if beside else said


def _said(message: Message) -> dict[str, Any] | None:  # noqa: PLR0911 - one for each class of the family
    match message:
        case UserMessage():
            return {"role": "user", "content": _blocks(message.contents)}
        case AssistantMessage():
            return _answer(message)
        case ToolMessage(contents=(ToolResultContent() as result,)):
            return _result(result)
        case CustomMessage():
            about = {name: thaw(message.metadata[name]) for name in ("display", "details") if name in message.metadata}
            content = _blocks(message.contents)
            return {"role": "custom", "customType": message.custom_type, "content": content, "display": True} | about
        case BranchSummaryMessage():
            return {"role": "branchSummary", "summary": message.summary, "fromId": message.from_id or ""}
        case CompactionSummaryMessage():
            said = {"role": "compactionSummary", "summary": message.summary}
            return said | {"tokensBefore": message.tokens_before}
        case _:
            return None


def _answer(message: AssistantMessage) -> dict[str, Any]:
    extra = message.__pydantic_extra__ or {}
    said: dict[str, Any] = {"role": "assistant", "content": _blocks(message.contents)}
    told = {
        "provider": extra.get("provider"),
        "model": message.model,
        "usage": thaw(dict(message.usage)),
        "stopReason": None if message.stop_reason is None else _STOPS.get(message.stop_reason),
        "errorMessage": message.error,
        "responseId": message.response_id,
    }
    return said | {name: value for name, value in told.items() if value}


def _result(result: ToolResultContent) -> dict[str, Any]:
    content = (TextContent(result.content),) if isinstance(result.content, str) else result.content
    said: dict[str, Any] = {"role": "toolResult", "toolCallId": result.id, "toolName": result.name or ""}
    said |= {"content": _blocks(content), "isError": result.is_error}
    return said | ({"details": thaw(dict(result.metadata))} if result.metadata else {})


def _blocks(contents: tuple[Content, ...]) -> list[dict[str, Any]]:
    return [_block(content) for content in contents]


def _block(content: Content) -> dict[str, Any]:
    match content:
        case TextContent():
            return {"type": "text", "text": content.content}
        case ThinkingContent():
            return {"type": "thinking", "thinking": content.content} | _sealed(content)
        case ToolCallContent():
            return {"type": "toolCall", "id": content.id, "name": content.name, "arguments": thaw(dict(content.args))}
        case ImageContent(images=(image,)) if image.data is not None:
            data = base64.b64encode(image.data).decode()
            return {"type": "image", "data": data, "mimeType": image.media_type}
        case _:
            return {"type": "text", "text": f"[{content.type}]"}  # who reads ours has the block itself beside


def _sealed(content: ThinkingContent) -> dict[str, Any]:
    if content.redacted:
        return {"thinkingSignature": content.redacted, "redacted": True}
    signature = canonical_json(content.artefact).decode() if content.artefact else content.signature
    return {"thinkingSignature": signature} if signature else {}
