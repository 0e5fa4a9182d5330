"""Convert pi's messages (versions 1 to 3 of the format, up to pi 1.6.0, based on its session files and recorded sessions)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from palaver.errors import InvalidMessage
from palaver.formats import fields
from palaver.formats.events import NOTHING
from palaver.log import Instructions, Section
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
    clean_text,
    stop_reason_of,
)

NAME = "pi"

ROLES = frozenset(
    {"system", "user", "assistant", "toolResult", "bashExecution", "custom", "branchSummary", "compactionSummary"}
)
"""Roles of messages."""


class PiPrompt(NamedTuple):
    """The instructions and tools in force at a point of the conversation.

    Attributes:
        base: The texts, in order.
        sections: The named sections, in order.
        tools: The tools, by name.
    """

    base: tuple[str, ...] = ()
    sections: Mapping[str, str] = NOTHING  # type: ignore[assignment] # nothing is of every type
    tools: Mapping[str, Mapping[str, object]] = NOTHING  # type: ignore[assignment]

    def after(self, said: Mapping[str, object]) -> PiPrompt:
        """Return what is in force after a system message: later texts are added, sections replaced by name or removed."""
        texts = [block.content for block in _blocks(said.get("content")) if isinstance(block, TextContent)]
        named = {**self.sections, **fields.mapping(said, "sections")}
        added = {fields.text(tool, "name"): tool for tool in fields.objects(said, "toolsAdded")}
        removed = {fields.text(tool, "name") for tool in fields.objects(said, "toolsRemoved")}
        return PiPrompt(
            (*self.base, *filter(None, texts)),
            {name: text for name, text in named.items() if isinstance(text, str)},
            {name: tool for name, tool in {**self.tools, **added}.items() if name not in removed},
        )

    def instructions(self, at: float) -> Instructions:
        """Return the instructions as an entry: the texts, then the sections that say something."""
        base = ((f"system {number}" if number > 1 else "system", text) for number, text in enumerate(self.base, 1))
        said = [*base, *((name, text) for name, text in self.sections.items() if text)]
        return Instructions(
            sections=tuple(Section(name=clean_text(n, "", []), text=clean_text(t, "", [])) for n, t in said), at=at
        )


def read(said: Mapping[str, object], key: str, at: float) -> Message:  # noqa: PLR0911 - one return per role
    """Read a message.

    Args:
        said: The message.
        key: The id of its entry.
        at: When its entry was written, used if the message has no time.

    Raises:
        InvalidMessage: It is not a message.
    """
    about: dict[str, Any] = {"id": key, "timestamp": fields.moment(said.get("timestamp")) or at}
    role, summary = fields.text(said, "role"), fields.text(said, "summary")
    match role:
        case "assistant":
            return _assistant(said, about)
        case "toolResult":
            return _result(said, about)
        case "bashExecution":
            return _shell(said, about)
        case "user":
            return UserMessage(contents=_blocks(said.get("content")), **about)
        case "branchSummary":
            return BranchSummaryMessage(summary=summary, from_id=fields.text(said, "fromId"), **about)
        case "compactionSummary":
            return CompactionSummaryMessage(summary=summary, tokens_before=fields.number(said, "tokensBefore"), **about)
        case "custom" | "hookMessage":
            kind = fields.text(said, "customType") or role
            return CustomMessage(custom_type=kind, in_context=True, contents=_blocks(said.get("content")), **about)
    raise InvalidMessage(f"There is no role {role[:40]!r}.")


def _assistant(said: Mapping[str, object], about: dict[str, Any]) -> Message:
    model, provider = fields.text(said, "model"), fields.text(said, "provider")
    api = fields.text(said, "api")
    return AssistantMessage(
        contents=_blocks(said.get("content"), provider, model),
        model=model or None,
        provider=provider or None,
        usage=Usage(fields.mapping(said, "usage")),
        stop_reason=stop_reason_of(fields.text(said, "stopReason") or None),
        error=fields.text(said, "errorMessage"),
        response_id=fields.text(said, "responseId") or None,
        metadata={"api": api} if api else {},
        **about,
    )


def _result(said: Mapping[str, object], about: dict[str, Any]) -> Message:
    blocks = _blocks(said.get("content"))
    first = next(iter(fields.objects(said, "content")), NOTHING)
    bare = len(blocks) == 1 and first.keys() <= {"type", "text"}  # a block with further fields keeps them
    only = blocks[0].content if bare and isinstance(blocks[0], TextContent) else None
    content: Any = "" if not blocks else blocks if only is None else only
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
    """Read a command that the user ran, in the text that pi shows the model. Its output is not an instruction."""
    output, code = fields.text(said, "output"), said.get("exitCode")
    text = f"Ran `{fields.text(said, 'command')}`\n" + (f"```\n{output}\n```" if output else "(no output)")
    if said.get("cancelled") is True:
        text += "\n\n(command cancelled)"
    elif isinstance(code, int) and code:
        text += f"\n\nCommand exited with code {code}"
    if said.get("truncated") is True and (path := fields.text(said, "fullOutputPath")):
        text += f"\n\n[Output truncated. Full output: {path}]"
    return CustomMessage(
        custom_type="bashExecution",
        in_context=said.get("excludeFromContext") is not True,
        contents=(TextContent(text),),
        speaker=Speaker.TOOL,
        metadata={name: said[name] for name in ("command", "exitCode") if name in said},
        **about,
    )


# --- blocks ---------------------------------------------------------------------------------------------------------------


def _blocks(content: object, provider: str = "", model: str = "") -> tuple[Content, ...]:
    if content is None or isinstance(content, str):
        return (TextContent(content=content),) if content else ()
    if not isinstance(content, list):
        raise InvalidMessage(f"Content of type {type(content).__name__} is neither text nor a list of blocks.")
    return tuple(_block(part, provider, model) for part in content)


def _block(part: object, provider: str, model: str) -> Content:
    if not isinstance(part, dict):
        raise InvalidMessage(f"A {type(part).__name__} is not a content block.")
    kind = str(part.get("type"))
    rest = {name: value for name, value in part.items() if name not in _OWN.get(kind, ())}
    if kind == "text":
        return TextContent.from_dict({**rest, "content": part.get("text", "")})
    if kind == "thinking":
        return ThinkingContent.from_dict({**rest, **_thinking(part), "provider": provider, "model": model})
    if kind == "toolCall":
        sealed, args = part.get("thoughtSignature"), part.get("arguments")
        own = {name: part.get(name, "") for name in ("id", "name")} | {"args": {} if args is None else args}
        return ToolCallContent.from_dict({**rest, **own, "artefact": {"thoughtSignature": sealed} if sealed else {}})
    if kind == "image" and isinstance(part.get("data"), str):
        image = Media.from_text(part["data"], "image", fields.text(part, "mimeType"))
        return ImageContent.from_dict({**rest, "images": (image,)})
    return UnknownContent.from_dict({**part, "type": kind})


_OWN = {
    "text": ("type", "text"),
    "thinking": ("type", "thinking", "thinkingSignature", "redacted"),
    "toolCall": ("type", "id", "name", "arguments", "thoughtSignature"),
    "image": ("type", "data", "mimeType"),
}
"""The fields of each block that map to fields of ours. Others stay on the block."""


def _thinking(part: Mapping[str, object]) -> dict[str, object]:
    """Read thinking. Where Anthropic has a signature, pi keeps OpenAI's whole reasoning item as JSON text."""
    signature = fields.text(part, "thinkingSignature")
    artefact: object = None
    if signature.startswith("{"):
        try:
            artefact = json.loads(signature)
        except (ValueError, RecursionError):  # then it is a signature that happens to begin so
            artefact = None
    item = artefact if isinstance(artefact, dict) else {}
    redacted = part.get("redacted") is True
    return {
        "content": fields.text(part, "thinking"),
        "signature": "" if item or redacted else signature,
        "redacted": signature if redacted else "",
        "artefact": item,
    }
