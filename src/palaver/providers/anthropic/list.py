"""The dialect of Anthropic's Messages. Results are words of the user; user and model alternate, and the user begins.

Source: docs.anthropic.com/en/api/messages, `messages`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from palaver.log import ToolSpec
from palaver.messages import Content, Message, ToolResultContent, from_anthropic_dict
from palaver.providers.dialect import Dialect, Item, Shown, changed_text, parts_shown, text_of
from palaver.wire.binding import COMPACTION


class Anthropic(Dialect):
    """Messages of Anthropic."""

    name = "anthropic"
    items = "messages"
    system = "system"
    model_role = "assistant"
    beside = {"max_tokens": 1, "tools": [{"name": "any", "input_schema": {"type": "object"}}]}  # noqa: RUF012 - read only

    def reader(self) -> Callable[..., Message]:
        """Return a function that reads the messages of one list in order."""
        return from_anthropic_dict

    def patch(self, item: Item, message: Message, shown: Shown) -> Item | None:
        """Return a message that shows only some blocks, or shows them in another form."""
        if not shown:
            return None
        if isinstance(item.get("content"), list | tuple):
            return {**item, "content": parts_shown(item["content"], message, shown, _changed)}
        return {**item, "content": text_of(shown[0])}

    def say(self, text: str) -> Item:
        """Return a message of the user."""
        return {"role": "user", "content": [{"type": "text", "text": text}]}

    def answer(self, result: ToolResultContent, _call: Item) -> Item:
        """Return a message with the result of a tool call."""
        failed = {"is_error": True} if result.is_error else {}
        part = {"type": "tool_result", "tool_use_id": result.id, "content": result.text(), **failed}
        return {"role": "user", "content": [part]}

    def opens(self, item: Item) -> bool:
        """Return whether a list may begin with an item: the user's, or what the provider made of the conversation before."""
        content = item.get("content")
        first = content[0] if isinstance(content, list | tuple) and content else None
        return not self.by_model(item) or (isinstance(first, Mapping) and first.get("type") == COMPACTION)

    def declare(self, tool: ToolSpec) -> Item:
        """Return the schema of a tool."""
        return {"name": tool.name, "description": tool.description, "input_schema": dict(tool.parameters)}

    def join(self, one: Item, other: Item) -> Item:
        """Return two neighbours of one role as one message."""
        return {"role": one["role"], "content": [*_parts(one["content"]), *_parts(other["content"])]}


def _changed(part: Any, content: Content) -> Any:  # noqa: ANN401 - any part
    if isinstance(part, Mapping) and part.get("type") == "tool_result" and isinstance(content, ToolResultContent):
        return {**part, "content": content.text()}
    return changed_text(part, content)


def _parts(content: object) -> list[Any]:
    return list(content) if isinstance(content, list | tuple) else [{"type": "text", "text": content}]


DIALECT = Anthropic()
