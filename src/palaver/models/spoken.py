"""A message as the events of an answer, cut into pieces of any length: the way back from :class:`palaver.models.Assembly`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from palaver.messages import (
    AssistantMessage,
    Content,
    TextContent,
    ThinkingContent,
    ToolCallContent,
)
from palaver.models.assembly import Assembly
from palaver.models.events import BlockEvent, Delta, TextDelta, ThinkingDelta, ToolCallDelta

__all__ = ["spoken"]


def spoken(message: AssistantMessage, chunk: int = 0) -> Iterator[Delta | BlockEvent]:
    """Give the events that a message's blocks come as.

    Args:
        message: The message.
        chunk: Characters that one delta has at most; 0 for a delta a block.
    """
    for index, block in enumerate(message.contents):
        events = tuple(_spelt(block, index, chunk))
        if _assembled(events) == (block,):
            yield from events
        else:
            yield BlockEvent(block, index)  # made by hand in a way that no answer is


def _assembled(events: tuple[Delta | BlockEvent, ...]) -> tuple[Content, ...]:
    assembly = Assembly()
    for event in events:
        assembly.add(event)
    return assembly.made().contents


def _spelt(block: Content, index: int, chunk: int) -> Iterator[Delta | BlockEvent]:
    if isinstance(block, TextContent):
        for text, fields in _cut(block.content, _fields(block, {"content"}), chunk):
            yield TextDelta(text, index, fields)
    elif isinstance(block, ThinkingContent):
        for text, fields in _cut(block.content, _fields(block, {"content", "signature"}), chunk):
            yield ThinkingDelta(text, index, fields=fields)
        if block.signature:
            yield ThinkingDelta("", index, block.signature)
    elif isinstance(block, ToolCallContent):
        more = _fields(block, {"id", "name", "args", "raw_args", "error"})
        yield ToolCallDelta(index, block.id, block.name, fields=more)
        for text, _ in _cut(block.arguments, {}, chunk):
            yield ToolCallDelta(index, arguments=text)
    else:
        yield BlockEvent(block, index)


def _cut(text: str, fields: Mapping[str, Any], chunk: int) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Cut a text; the first piece has the fields, and there is one even of an empty text."""
    size = chunk or max(1, len(text))
    yield text[:size], fields
    for start in range(size, len(text), size):
        yield text[start : start + size], {}


def _fields(block: Content, without: set[str]) -> Mapping[str, Any]:
    return {name: value for name, value in block.stored_fields() if name not in without | {"type"}}
