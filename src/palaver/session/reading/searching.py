"""What of an entry is searched: what was said, asked of tools and given back by them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from palaver.log import (
    BranchSummary,
    Compaction,
    Constraint,
    Derived,
    Entry,
    ErrorEntry,
    Inbox,
    Instructions,
    Label,
    LateResult,
    MessageEntry,
    decode_entry,
)
from palaver.messages import Content, Message, TextContent, ThinkingContent, ToolCallContent, ToolResultContent

__all__ = ["searchable"]


def searchable(kind: str, body: bytes) -> str:  # noqa: ARG001 - what a store's index asks with
    """Give the text of an entry for a full-text index: the texts in it, a line each."""
    return "\n".join(_texts(decode_entry(body)))


def _texts(entry: Entry) -> Iterator[str]:
    match entry:
        case MessageEntry(message=message) | Inbox(message=message) | LateResult(message=message):
            yield from _said(message)
        case Instructions(sections=sections):
            yield from (section.text for section in sections)
        case Compaction(pieces=pieces):
            yield from (piece.text for piece in pieces if isinstance(piece, Derived))
        case BranchSummary(summary=text) | ErrorEntry(error=text):
            yield text
        case Label(label=str(text)) | Constraint(text=text):
            yield text
        case _:
            pass


def _said(message: Message) -> Iterator[str]:
    if not message.contents:
        yield message.text_content()  # a summary keeps its words beside its blocks
    for block in message.contents:
        yield from _in_block(block)


def _in_block(block: Content) -> Iterator[str]:
    if isinstance(block, TextContent | ThinkingContent):
        yield block.content
    elif isinstance(block, ToolCallContent):
        yield block.name
        yield from _in_json(block.args if block.raw_args is None else block.raw_args)
    elif isinstance(block, ToolResultContent):
        yield block.text()


def _in_json(value: object) -> Iterator[str]:
    """Give the keys and plain values in JSON; strings as they are, so that a path or a line of code is found as it was written."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key)
            yield from _in_json(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _in_json(item)
    elif value is not None:
        yield json.dumps(value)
