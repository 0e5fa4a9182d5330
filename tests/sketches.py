"""Views in short texts, to compare them with what is expected."""

from __future__ import annotations

from palaver.messages import TextContent, ToolCallContent, ToolResultContent
from palaver.view import Block, Exchange, View


def sketch(view: View) -> list[str]:
    """Return a view in one line for each exchange: roles, texts, calls and results."""
    return [_exchange(exchange) for exchange in view.exchanges]


def text_of(block: Block) -> str:
    """Return the text of a text block or of a result; empty for any other block."""
    content = block.content
    if isinstance(content, ToolResultContent):
        return content.text()
    return content.content if isinstance(content, TextContent) else ""


def _exchange(exchange: Exchange) -> str:
    return " ".join(f"{turn.role.value}[{', '.join(map(_block, turn.blocks))}]" for turn in exchange.turns)


def _block(block: Block) -> str:
    content = block.content
    if isinstance(content, ToolCallContent):
        return f"call {content.id}"
    if isinstance(content, ToolResultContent):
        return f"{block.derived or 'result'} {content.id}"
    return content.content if isinstance(content, TextContent) else content.type
