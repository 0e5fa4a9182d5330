"""The words of a block, as the commands print them."""

from __future__ import annotations

from palaver.messages import Content, TextContent, ToolCallContent, ToolResultContent


def words(block: Content) -> str | None:
    """Give a block's words whole: its text, a result's text, or a call's name and arguments; None when it has none."""
    if isinstance(block, TextContent):
        return block.content
    if isinstance(block, ToolResultContent):
        return block.text()
    if isinstance(block, ToolCallContent):
        return f"{block.name} {block.arguments}"
    return None
