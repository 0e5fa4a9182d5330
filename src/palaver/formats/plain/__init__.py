"""Plain message lists: what a program has that talks to chat completions or to Anthropic's interface, written down as JSON.

Four shapes of each: an array of messages; an object with `messages` (and `system`, `tools`); an array, or JSON lines, of such objects;
JSON lines of messages. The two interfaces are told apart by what the messages hold. A message with keys that neither interface
knows is another program's record, and no list with such messages is taken for a plain one.
"""

from __future__ import annotations

from collections.abc import Iterator

from palaver.formats.events import Event
from palaver.formats.plain.reading import conversations
from palaver.formats.plain.signs import ANTHROPIC, CHAT, shows
from palaver.formats.sources import Source

__all__ = ["AnthropicMessages", "ChatCompletions"]


class ChatCompletions:
    """Lists of chat-completions messages."""

    name = CHAT
    title = "chat completions"
    signs = "messages with role and content, or objects with messages, in JSON or JSON lines"
    series = False

    def sniff(self, source: Source) -> float:
        """Tell how surely it is such a list."""
        return shows(source.opening, CHAT)

    def read(self, source: Source) -> Iterator[Event]:
        """Read every list as a conversation."""
        yield from conversations(source, CHAT)


class AnthropicMessages:
    """Lists of messages of Anthropic's interface."""

    name = ANTHROPIC
    title = "Anthropic messages"
    signs = "messages of user and assistant with blocks such as tool_use, or an object with system and messages"
    series = False

    def sniff(self, source: Source) -> float:
        """Tell how surely it is such a list."""
        return shows(source.opening, ANTHROPIC)

    def read(self, source: Source) -> Iterator[Event]:
        """Read every list as a conversation."""
        yield from conversations(source, ANTHROPIC)
