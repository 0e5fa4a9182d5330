"""What a block says, as text: for searching, quoting and comparing; never for a request."""

from __future__ import annotations

from palaver.messages.blocks import Content, TextContent, ThinkingContent, ToolCallContent, ToolResultContent

__all__ = ["words_of"]


def words_of(content: Content) -> str:
    """Give the words in a block: a text, a result, a call's name and arguments; empty for media and what is unknown."""
    match content:
        case TextContent() | ThinkingContent():
            return content.content
        case ToolCallContent():
            return f"{content.name} {content.arguments}"
        case ToolResultContent():
            return content.text()
        case _:
            return ""
