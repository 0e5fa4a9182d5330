"""pi's messages as ours."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from palaver.errors import InvalidMessage
from palaver.formats import fields
from palaver.formats.pi.names import OURS
from palaver.messages import (
    AssistantMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    Content,
    CustomMessage,
    ImageContent,
    Media,
    Message,
    Speaker,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UnknownContent,
    Usage,
    UserMessage,
    stop_reason_of,
)


def read(said: Mapping[str, object], key: str, at: float) -> Message:
    """Read a message.

    Args:
        said: The message.
        key: The id of its entry.
        at: When its entry was written; the message's own time is the better one.

    Raises:
        InvalidMessage: It is none.
    """
    message = _read(said, {"id": key, "timestamp": fields.moment(said.get("timestamp")) or at})
    beside = said.get(OURS)
    return Message.from_dict(_without_none({**message.to_dict(), **beside})) if isinstance(beside, dict) else message


def _without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what a message that was written has not and its form would give it."""
    return {name: value for name, value in values.items() if value is not None}


def _read(said: Mapping[str, object], about: dict[str, Any]) -> Message:
    role = said.get("role")
    if role == "assistant":
        return _assistant(said, about)
    if role == "toolResult":
        return _result(said, about)
    if role == "bashExecution":
        return _shell(said, about)
    return _told(str(role), said, about)


def _told(role: str, said: Mapping[str, object], about: dict[str, Any]) -> Message:
    summary = fields.text(said, "summary")
    if role == "user":
        return UserMessage(contents=_blocks(said.get("content"), "", ""), **about)
    if role == "branchSummary":
        return BranchSummaryMessage(summary=summary, from_id=fields.text(said, "fromId"), **about)
    if role == "compactionSummary":
        return CompactionSummaryMessage(summary=summary, tokens_before=fields.number(said, "tokensBefore"), **about)
    if role in {"custom", "hookMessage"}:
        kind = fields.text(said, "customType") or role
        contents = _blocks(said.get("content"), "", "")
        return CustomMessage(custom_type=kind, in_context=True, contents=contents, **about)
    raise InvalidMessage(f"There is no role {role[:40]!r}.")


def _assistant(said: Mapping[str, object], about: dict[str, Any]) -> Message:
    model, provider = fields.text(said, "model"), fields.text(said, "provider")
    api = fields.text(said, "api")
    return AssistantMessage(
        contents=_blocks(said.get("content"), provider, model),
        model=model or None,
        usage=Usage(fields.mapping(said, "usage")),
        stop_reason=stop_reason_of(fields.text(said, "stopReason") or None),
        error=fields.text(said, "errorMessage"),
        response_id=fields.text(said, "responseId") or None,
        provider=provider or None,
        metadata={"api": api} if api else {},
        **about,
    )


def _result(said: Mapping[str, object], about: dict[str, Any]) -> Message:
    blocks = _blocks(said.get("content"), "", "")
    plain = blocks[0].content if len(blocks) == 1 and isinstance(blocks[0], TextContent) else None
    content: Any = "" if not blocks else blocks if plain is None else plain
    details = said.get("details")
    result = ToolResultContent(
        id=fields.text(said, "toolCallId"),
        content=content,
        is_error=said.get("isError") is True,
        metadata=details if isinstance(details, dict) else {},
        name=fields.text(said, "toolName") or None,
    )
    return ToolMessage(contents=(result,), **about)


def _shell(said: Mapping[str, object], about: dict[str, Any]) -> Message:
    """Read a command that the user ran, in the words in which pi shows it to the model; its output is nobody's instruction."""
    output, code = fields.text(said, "output"), said.get("exitCode")
    text = f"Ran `{fields.text(said, 'command')}`\n" + (f"```\n{output}\n```" if output else "(no output)")
    if said.get("cancelled") is True:
        text += "\n\n(command cancelled)"
    elif isinstance(code, int) and code:
        text += f"\n\nCommand exited with code {code}"
    if said.get("truncated") is True and (path := fields.text(said, "fullOutputPath")):
        text += f"\n\n[Output truncated. Full output: {path}]"
    metadata = {name: said[name] for name in ("command", "exitCode") if name in said}
    return CustomMessage(
        custom_type="bashExecution",
        in_context=said.get("excludeFromContext") is not True,
        contents=(TextContent(text),),
        speaker=Speaker.TOOL,
        metadata=metadata,
        **about,
    )


def _blocks(content: object, provider: str, model: str) -> tuple[Content, ...]:
    if content is None or isinstance(content, str):
        return (TextContent(content=content),) if content else ()
    if not isinstance(content, list):
        raise InvalidMessage(f"Content of type {type(content).__name__} is neither text nor a list of blocks.")
    return tuple(_block(part, provider, model) for part in content)


def _block(part: object, provider: str, model: str) -> Content:
    if not isinstance(part, dict):
        raise InvalidMessage(f"A {type(part).__name__} is no content block.")
    kind = part.get("type")
    rest = {name: value for name, value in part.items() if name not in _OWN.get(str(kind), ())}
    if kind == "text":
        return TextContent.model_validate({**rest, "content": part.get("text", "")})
    if kind == "thinking":
        return _thinking(part, provider, model, rest)
    if kind == "toolCall":
        return _call(part, rest)
    if kind == "image" and isinstance(part.get("data"), str):
        image = Media.from_text(part["data"], "image", fields.text(part, "mimeType"))
        return ImageContent.model_validate({**rest, "images": (image,)})
    return UnknownContent.model_validate({**part, "type": str(kind)})


_OWN = {
    "text": ("type", "text"),
    "thinking": ("type", "thinking", "thinkingSignature", "redacted"),
    "toolCall": ("type", "id", "name", "arguments", "thoughtSignature"),
    "image": ("type", "data", "mimeType"),
}
"""The fields of each block that ours has fields for; the others stay on the block."""


def _call(part: Mapping[str, Any], rest: dict[str, Any]) -> Content:
    sealed, args = part.get("thoughtSignature"), part.get("arguments")
    own = {
        "id": part.get("id", ""),
        "name": part.get("name", ""),
        "args": {} if args is None else args,
        "artefact": {"thoughtSignature": sealed} if sealed else {},
    }
    return ToolCallContent.model_validate({**rest, **own})


def _thinking(part: Mapping[str, object], provider: str, model: str, rest: dict[str, Any]) -> Content:
    """Read thinking; pi keeps OpenAI's whole reasoning item, as JSON text, where Anthropic has a signature."""
    signature = fields.text(part, "thinkingSignature")
    artefact: object = None
    if signature.startswith("{"):
        try:
            artefact = json.loads(signature)
        except (ValueError, RecursionError):  # then it is a signature that happens to begin so
            artefact = None
    kept: dict[str, Any] = artefact if isinstance(artefact, dict) else {}
    redacted = part.get("redacted") is True
    own = {
        "content": fields.text(part, "thinking"),
        "signature": "" if kept or redacted else signature,
        "redacted": signature if redacted else "",
        "provider": provider,
        "model": model,
        "artefact": kept,
    }
    return ThinkingContent.model_validate({**rest, **own})
