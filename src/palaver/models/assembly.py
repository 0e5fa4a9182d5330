"""Putting an answer together from its events, such that what has come so far is a valid message at any moment."""

from __future__ import annotations

import re
from collections.abc import AsyncIterable, Mapping
from typing import Any

from palaver.errors import BrokenAnswer
from palaver.ids import new_message_id, now
from palaver.messages import (
    AssistantMessage,
    Content,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    Usage,
)
from palaver.messages.usage import NO_USAGE
from palaver.models.events import BlockEvent, Delta, End, Event, ThinkingDelta, ToolCallDelta, UsageEvent

__all__ = ["NO_ARGUMENTS_YET", "Assembly", "collect", "joined"]

NO_ARGUMENTS_YET = "The answer ends before the arguments of this call."
"""The fault of a call of which nothing but the name has come: it is not a call without arguments."""

_SURROGATE = re.compile("[\ud800-\udfff]")


class Assembly:
    """An answer while it comes.

    Add each event; :attr:`partial` is what has come so far. It is always a valid message, with the same id and time as the whole one:
    arguments that are cut off are kept as text with the reason why they cannot be read.
    """

    def __init__(self, **fields: Any) -> None:  # noqa: ANN401 - fields of a message
        """Begin an answer; ``fields`` are those of the message that are known from the start, such as its model."""
        self._fields: dict[str, Any] = {"id": new_message_id(), "timestamp": now()} | fields
        self._blocks: dict[int, _Block] = {}
        self._usage: Usage = NO_USAGE
        self._message: AssistantMessage | None = None

    def add(self, event: Event) -> None:
        """Take the next event.

        Raises:
            BrokenAnswer: It cannot follow the earlier ones: its block is of another kind, or the answer has ended.
        """
        if self._message is not None:
            raise BrokenAnswer(
                f"An event of type {event.type!r} came after the end of the answer.", partial=self._message
            )
        if isinstance(event, End):
            self._message = event.message
        elif isinstance(event, UsageEvent):
            self._usage = event.usage
        else:
            self._grow(event)

    def _grow(self, event: Delta | BlockEvent) -> None:
        block = self._blocks.get(event.index)
        if block is None:
            block = self._blocks[event.index] = _Block(event.type)
        elif block.kind != event.type or isinstance(event, BlockEvent):
            raise BrokenAnswer(
                f"Block {event.index} of the answer is of type {block.kind!r}, and {event.type!r} came for it.",
                partial=self.partial,
            )
        block.add(event)

    @property
    def ended(self) -> bool:
        """Whether the answer is whole."""
        return self._message is not None

    @property
    def usage(self) -> Usage:
        """What was used, as far as it was said."""
        return self._usage

    @property
    def partial(self) -> AssistantMessage:
        """What has come so far; the whole message once the answer has ended."""
        return self._message if self._message is not None else self.made(whole=False)

    def made(self, *, whole: bool = True, **fields: Any) -> AssistantMessage:  # noqa: ANN401 - fields of a message
        """Make a message of what has come, with more of its fields.

        Args:
            whole: Whether nothing more comes: a call without arguments has none then.
            fields: Fields of the message.
        """
        contents = tuple(self._blocks[index].made(whole=whole) for index in sorted(self._blocks))
        own: dict[str, Any] = {"contents": contents, "usage": self._usage}
        return AssistantMessage.from_dict(own | self._fields | fields)


class _Block:
    """One block while it comes; what was made of it is kept until more comes."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._pieces: list[str] = []
        self._fields: dict[str, Any] = {}
        self._whole: Content | None = None
        self._made: dict[bool, Content] = {}

    def add(self, delta: Delta | BlockEvent) -> None:
        """Take more of it."""
        self._made.clear()
        if isinstance(delta, BlockEvent):
            self._whole = delta.block
            return
        self._pieces.append(delta.arguments if isinstance(delta, ToolCallDelta) else delta.text)
        if isinstance(delta, ToolCallDelta):
            self._fields |= {key: value for key, value in (("id", delta.id), ("name", delta.name)) if value}
        elif isinstance(delta, ThinkingDelta) and delta.signature is not None:
            self._fields["signature"] = delta.signature
        self._fields |= delta.fields

    def made(self, *, whole: bool) -> Content:
        """Make the block of what has come."""
        if self._whole is not None:
            return self._whole
        if whole not in self._made:
            self._made[whole] = _MAKERS[self.kind](joined(self._pieces), self._fields, whole=whole)
        return self._made[whole]


def _text(text: str, fields: Mapping[str, Any], *, whole: bool) -> Content:
    del whole
    return TextContent.from_dict({"content": text, **fields})


def _thinking(text: str, fields: Mapping[str, Any], *, whole: bool) -> Content:
    del whole
    return ThinkingContent.from_dict({"content": text, **fields})


def _call(text: str, fields: Mapping[str, Any], *, whole: bool) -> Content:
    if not whole and not text.strip():
        return ToolCallContent.from_dict({"raw_args": text, "error": NO_ARGUMENTS_YET, **fields})
    return ToolCallContent.from_dict({"args": text if text.strip() else {}, **fields})


_MAKERS = {"text": _text, "thinking": _thinking, "tool_call": _call}


def joined(pieces: list[str]) -> str:
    """Join the pieces of a text.

    Providers cut between the halves of a character outside the basic plane, each half escaped in JSON of its own: these are put
    together again (RFC 8259, section 7). A half that stays alone is left for the message to replace.
    """
    text = "".join(pieces)
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


async def collect(events: AsyncIterable[Event]) -> AssistantMessage:
    """Read an answer to its end and give its message.

    Raises:
        BrokenAnswer: It stops before its end.
        ProviderError: Whatever else the provider raises.
    """
    assembly = Assembly()
    async for event in events:
        assembly.add(event)
    if not assembly.ended:
        raise BrokenAnswer("The answer stops before its end.", partial=assembly.partial)
    return assembly.partial
