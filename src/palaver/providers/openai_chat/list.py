"""The dialect of OpenAI's chat completions, which many other providers speak.

Source: platform.openai.com/docs/api-reference/chat/create, `messages`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import takewhile
from typing import Any

from palaver.log import ToolSpec
from palaver.messages import (
    AssistantMessage,
    Message,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolResultContent,
    UnknownContent,
    from_chat_dict,
)
from palaver.providers.dialect import Dialect, Item, Shown, changed_text, parts_shown, text_of

_REASONING = ("reasoning_content", "thinking_blocks")
"""Keys of reasoning outside the content (DeepSeek, LiteLLM)."""


class OpenAIChat(Dialect):
    """Messages of chat completions."""

    name = "openai-chat"
    items = "messages"
    content = frozenset(
        {
            "content",
            "tool_calls",
            "function_call",
            "tool_call_id",
            "refusal",
            "audio",
            "reasoning_content",
            "thinking_blocks",
        }
    )

    def reader(self) -> Callable[..., Message]:
        """Return a function that reads the messages of one list in order."""
        return _read

    def patch(self, item: Item, message: Message, shown: Shown) -> Item | None:
        """Return a message that shows only some blocks, or shows them in another form."""
        blocks = message.contents
        if item.get("role") in {"tool", "function"}:
            return {**item, "content": text_of(shown[0])} if 0 in shown else None
        first = sum(1 for _ in takewhile(lambda block: isinstance(block, ThinkingContent), blocks))
        calls = [index for index in shown if isinstance(blocks[index], ToolCallContent)]
        out = {key: value for key, value in item.items() if key not in _REASONING or 0 in shown or not first}
        if isinstance(item.get("content"), list | tuple):
            out["content"] = parts_shown(item["content"], message, shown, changed_text, first)
        else:  # a text, a refusal or a spoken answer: one block
            said = [index for index in sorted(shown) if index >= first and index not in calls]
            changed = [index for index in said if shown[index] is not blocks[index]]
            if changed or not said:
                out["content"] = text_of(shown[changed[0]]) if changed else None
                out = {key: value for key, value in out.items() if key not in {"refusal", "audio"}}
        return out if out.get("content") or calls or any(out.get(key) for key in self.content) else None

    def say(self, text: str) -> Item:
        """Return a message of the user."""
        return {"role": "user", "content": text}

    def answer(self, result: ToolResultContent, _call: Item) -> Item:
        """Return a message with the result of a tool call."""
        return {"role": "tool", "tool_call_id": result.id, "content": result.text()}

    def declare(self, tool: ToolSpec) -> Item:
        """Return the schema of a tool."""
        said = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
        return {"type": "function", "function": said}


def _read(message: Item, **fields: Any) -> Message:  # noqa: ANN401 - fields of a message
    """Read a message. A spoken answer is its transcript, or a block with the id of the recording."""
    read = from_chat_dict(message, **fields)
    audio = message.get("audio")
    spoken = audio.get("id") if isinstance(audio, Mapping) else None
    if not isinstance(spoken, str) or not isinstance(read, AssistantMessage) or message.get("content"):
        return read
    words = str(audio.get("transcript") or "") if isinstance(audio, Mapping) else ""
    said = TextContent(content=words) if words.strip() else UnknownContent(type="spoken", audio_id=spoken)
    return read.model_copy(update={"contents": (*read.contents, said)})


DIALECT = OpenAIChat()
