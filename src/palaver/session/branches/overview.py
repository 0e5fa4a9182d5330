"""Overviews for people: a dialog's messages, a line each, and the tree below a dialog."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from palaver.messages import (
    Content,
    ImageContent,
    Message,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolResultContent,
)
from palaver.session.branches.tree import DialogTreeNode

__all__ = ["message_line", "tree_lines"]

_SHOWN_DIGITS = 8


def message_line(index: int, message: Message, max_length: int) -> str:
    """Give one message on one line, its words cut after `max_length` characters."""
    said = " ".join(" ".join(map(_gist, message.contents)).split())
    preview = said if len(said) <= max_length else said[:max_length] + "..."
    return f"[{index}. {message.name} ({message.role.value})]: {preview}"


def _gist(block: Content) -> str:
    if isinstance(block, TextContent):
        return block.content
    if isinstance(block, ToolCallContent):
        return f"[call {block.name}({block.arguments})]"
    if isinstance(block, ToolResultContent):
        return block.text()
    if isinstance(block, ThinkingContent):
        return "[thinking]"
    if isinstance(block, ImageContent):
        return "[image]" if len(block.images) == 1 else f"[{len(block.images)} images]"
    return f"[{block.type}]"


def tree_lines(root: DialogTreeNode, count: Callable[[str], int]) -> Iterator[str]:
    """Give the tree below a node, a line a dialog, each under its parent; `count` gives a dialog's number of messages."""
    waiting = [(0, root)]
    while waiting:
        depth, node = waiting.pop()
        window = f" (last_n={node.last_n}, first_k={node.first_k})" if node.last_n else ""
        branch = "  " * depth + "└─ " if depth else ""
        yield (
            f"{branch}[{node.dialog_id[:_SHOWN_DIGITS]}] owner={node.owner} "
            f"msgs={count(node.dialog_id)} split@{node.split_point}{window}"
        )
        waiting.extend((depth + 1, child) for child in reversed(node.children))
