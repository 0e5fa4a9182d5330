"""Claude Code's records as messages: Anthropic's blocks, and what its harness wrote between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from palaver.errors import InvalidMessage
from palaver.formats import fields
from palaver.formats.claude_code.names import SYNTHETIC
from palaver.formats.claude_code.survey import said_by_harness
from palaver.messages import (
    AssistantMessage,
    Message,
    Speaker,
    ToolMessage,
    ToolResultContent,
    Usage,
    UserMessage,
    stop_reason_of,
)
from palaver.messages.parts import blocks_of


def said(value: Mapping[str, object]) -> Mapping[str, object]:
    """Give the message within a record.

    Raises:
        InvalidMessage: It holds none.
    """
    found = value.get("message")
    if not isinstance(found, dict):
        raise InvalidMessage("It holds no message.")
    return found


def provider(model: str) -> str:
    """Give the provider of a model, or empty: Claude Code can be pointed at other ones."""
    return "anthropic" if model.startswith("claude") else ""


def assistant(value: Mapping[str, object], key: str, at: float, *, last: bool) -> Message:
    """Read an assistant record: one fragment of a response, usually a single block.

    Args:
        value: The record.
        key: The message's id.
        at: When, in seconds since 1970-01-01 UTC.
        last: True for the last fragment of its response in the file, which alone keeps the usage: every fragment repeats it, and
            only the last one has the final count of what the model wrote.

    Raises:
        InvalidMessage: It is none.
    """
    message = said(value)
    model = fields.text(message, "model")
    synthetic = model == SYNTHETIC
    usage = Usage(fields.mapping(message, "usage")) if last and not synthetic else Usage()
    return AssistantMessage(
        id=key,
        timestamp=at,
        contents=blocks_of(message.get("content")),
        model=None if synthetic else model or None,
        usage=usage,
        stop_reason=None if synthetic else stop_reason_of(fields.text(message, "stop_reason") or None),
        response_id=fields.text(message, "id") or None,
        speaker=Speaker.HARNESS if synthetic else Speaker.MODEL,
        provider=provider(model) or None,
    )


def user(value: Mapping[str, object], key: str, at: float) -> Iterator[Message]:
    """Read a user record: results of tools, words of the user or of the harness, or both; each becomes a message.

    Raises:
        InvalidMessage: It is none.
    """
    contents = blocks_of(said(value).get("content"))
    results = tuple(block for block in contents if isinstance(block, ToolResultContent))
    rest = tuple(block for block in contents if not isinstance(block, ToolResultContent))
    if results:
        yield ToolMessage(id=key, timestamp=at, contents=results)
    if rest or not results:
        speaker = Speaker.HARNESS if said_by_harness(value) else Speaker.HUMAN
        yield UserMessage(id=f"{key}.1" if results else key, timestamp=at, contents=rest, speaker=speaker)


def error_text(value: Mapping[str, object]) -> str:
    """Give what an error record says, in the words of whoever reported it."""
    inner = fields.mapping(value, "error")
    while isinstance(inner.get("error"), dict):
        inner = fields.mapping(inner, "error")
    status = fields.mapping(value, "error").get("status")
    return fields.text(inner, "message") or (f"HTTP status {status}" if isinstance(status, int) else "unknown error")
