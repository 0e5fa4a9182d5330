"""Assemble an answer from its events, and split a message into events. The part that has arrived is always a valid message."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterator, Mapping
from typing import Any

from palaver.errors import ProviderError
from palaver.ids import new_message_id, now
from palaver.messages import AssistantMessage, Content, TextContent, ThinkingContent, ToolCallContent, Usage
from palaver.messages.usage import NO_USAGE
from palaver.providers.provider import (
    BlockEvent,
    Delta,
    End,
    Event,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    UsageEvent,
)

NO_ARGUMENTS_YET = "The answer ends before the arguments of this call."
"""The error of a call whose arguments never arrived; it is not a call without arguments."""


class Assembly:
    """An answer while it arrives.

    Add each event; :attr:`partial` is the part that has arrived. It is always a valid message with the id and time of the complete one.
    Incomplete arguments are kept as text, with the reason why they cannot be parsed.
    """

    def __init__(self, **fields: Any) -> None:  # noqa: ANN401 - fields of a message
        """Begin an answer; `fields` are the message fields known from the start, such as its model."""
        self._fields: dict[str, Any] = {"id": new_message_id(), "timestamp": now()} | fields
        self._blocks: dict[int, _OpenBlock] = {}
        self._usage: Usage = NO_USAGE
        self._message: AssistantMessage | None = None

    def add(self, event: Event) -> None:
        """Add the next event.

        Raises:
            ProviderError: It contradicts the earlier ones: its block has another type, or the answer has ended.
        """
        if self._message is not None:
            raise self._broken(f"An event of type {event.type!r} follows the end of the answer.")
        if isinstance(event, End):
            self._message = event.message
        elif isinstance(event, UsageEvent):
            self._usage = event.usage
        else:
            self._extend(event)

    def _extend(self, event: Delta | BlockEvent) -> None:
        block = self._blocks.get(event.index)
        if block is None:
            block = self._blocks[event.index] = _OpenBlock(event.type)
        elif block.kind != event.type or isinstance(event, BlockEvent):
            raise self._broken(
                f"Block {event.index} of the answer has type {block.kind!r}, but an event of type {event.type!r} extends it."
            )
        block.add(event)

    def _broken(self, message: str) -> ProviderError:
        return ProviderError(message, kind="broken", partial=self.partial)

    @property
    def ended(self) -> bool:
        """Whether the answer is complete."""
        return self._message is not None

    @property
    def usage(self) -> Usage:
        """The usage reported so far."""
        return self._usage

    @property
    def partial(self) -> AssistantMessage:
        """The part that has arrived; the complete message once the answer has ended."""
        return self._message if self._message is not None else self.message(whole=False)

    def message(self, *, whole: bool = True, **fields: Any) -> AssistantMessage:  # noqa: ANN401 - fields of a message
        """Build a message from the part that has arrived.

        Args:
            whole: Whether nothing more arrives. If so, a call without arguments has none.
            fields: More fields of the message.
        """
        contents = tuple(self._blocks[index].content(whole=whole) for index in sorted(self._blocks))
        return AssistantMessage.from_dict({"contents": contents, "usage": self._usage, **self._fields, **fields})


class _OpenBlock:
    """One block while it arrives."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._pieces: list[str] = []
        self._fields: dict[str, Any] = {}
        self._whole: Content | None = None
        self._built: dict[bool, Content] = {}

    def add(self, delta: Delta | BlockEvent) -> None:
        """Add more of it."""
        self._built.clear()
        if isinstance(delta, BlockEvent):
            self._whole = delta.block
            return
        self._pieces.append(delta.arguments if isinstance(delta, ToolCallDelta) else delta.text)
        if isinstance(delta, ToolCallDelta):
            self._fields |= {key: value for key, value in (("id", delta.id), ("name", delta.name)) if value}
        elif isinstance(delta, ThinkingDelta) and delta.signature is not None:
            self._fields["signature"] = delta.signature
        self._fields |= delta.fields

    def content(self, *, whole: bool) -> Content:
        """Build the block from the part that has arrived, once until more arrives."""
        if self._whole is not None:
            return self._whole
        if whole not in self._built:
            self._built[whole] = self._build("".join(self._pieces), whole=whole)
        return self._built[whole]

    def _build(self, text: str, *, whole: bool) -> Content:
        if self.kind != "tool_call":
            kind = TextContent if self.kind == "text" else ThinkingContent
            return kind.from_dict({"content": text, **self._fields})
        if text.strip():
            return ToolCallContent.from_dict({"args": text, **self._fields})
        missing: dict[str, object] = {"args": {}} if whole else {"raw_args": text, "error": NO_ARGUMENTS_YET}
        return ToolCallContent.from_dict({**missing, **self._fields})


async def collect(events: AsyncIterable[Event]) -> AssistantMessage:
    """Read an answer to its end and return its message.

    Raises:
        ProviderError: The answer stops before its end, or the provider fails.
    """
    assembly = Assembly()
    async for event in events:
        assembly.add(event)
    if not assembly.ended:
        raise ProviderError("The answer stops before its end.", kind="broken", partial=assembly.partial)
    return assembly.partial


# --- the reverse ---------------------------------------------------------------------------------------------------------


def events_of(message: AssistantMessage, chunk: int = 0) -> Iterator[Delta | BlockEvent]:
    """Yield events that assemble to the blocks of a message.

    Args:
        message: The message.
        chunk: The most characters of one delta; 0 for one delta a block.
    """
    for index, block in enumerate(message.contents):
        events = tuple(_events(block, index, chunk))
        assembly = Assembly()
        for event in events:
            assembly.add(event)
        if assembly.message().contents == (block,):
            yield from events
        else:
            yield BlockEvent(block, index)  # a combination of fields that no stream produces


def _events(block: Content, index: int, chunk: int) -> Iterator[Delta | BlockEvent]:
    if isinstance(block, TextContent):
        for text, fields in _cut(block.content, _fields(block, "content"), chunk):
            yield TextDelta(text, index, fields)
    elif isinstance(block, ThinkingContent):
        for text, fields in _cut(block.content, _fields(block, "content", "signature"), chunk):
            yield ThinkingDelta(text, index, fields=fields)
        if block.signature:
            yield ThinkingDelta("", index, block.signature)
    elif isinstance(block, ToolCallContent):
        own = _fields(block, "id", "name", "args", "raw_args", "error")
        yield ToolCallDelta(index, block.id, block.name, fields=own)
        for text, _ in _cut(block.arguments, {}, chunk):
            yield ToolCallDelta(index, arguments=text)
    else:
        yield BlockEvent(block, index)


def _cut(text: str, fields: Mapping[str, Any], chunk: int) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Cut a text; the first piece has the fields, and an empty text has one piece."""
    size = chunk or max(1, len(text))
    yield text[:size], fields
    for start in range(size, len(text), size):
        yield text[start : start + size], {}


def _fields(block: Content, *without: str) -> Mapping[str, Any]:
    return {name: value for name, value in block.stored_fields() if name not in {"type", *without}}
