"""A dialect of a framework or a page: how it writes a conversation as a list of messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from palaver.log import ToolSpec
from palaver.messages import Message
from palaver.wire.script import ChangeNotes

__all__ = ["MessageDialect"]


class MessageDialect(Protocol):
    """How a framework or a page writes a conversation. An item of its list may say what several messages say."""

    @property
    def name(self) -> str:
        """Its name, such as `vercel-ui`."""
        ...

    def reader(self) -> Callable[..., Sequence[Message]]:
        """Return a function that reads the items of one list in order.

        It takes an item, as JSON or as the framework's object, and fields for messages to which the item gives none, such as `timestamp`. It returns
        the item's messages and raises InvalidMessage for a value that is not an item of this dialect. It keeps unknown content as UnknownContent.
        """
        ...

    def write(self, messages: Sequence[Message], notes: ChangeNotes) -> list[Mapping[str, Any]]:
        """Write messages as items in JSON, and note what the dialect cannot express. Results come directly after their calls."""
        ...

    def declare(self, tool: ToolSpec) -> Mapping[str, Any]:
        """Return the schema of a tool in JSON."""
        ...
