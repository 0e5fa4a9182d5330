"""What a provider's answer consists of while it comes: one closed union of events.

An answer that comes whole is the same events, a delta for each of its blocks. The last event is always :class:`End`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from palaver.messages import AssistantMessage, Content, Usage
from palaver.messages.frozen import EMPTY

__all__ = ["BlockEvent", "Delta", "End", "Event", "TextDelta", "ThinkingDelta", "ToolCallDelta", "UsageEvent"]


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More of a text.

    Attributes:
        text: What is added to the block's text; may be empty where only fields come.
        index: The block it belongs to. Blocks of an answer stand in the order of their indices, some of which may be left out.
        fields: What else the block has, such as the label of its part in the answer.
    """

    text: str
    index: int = 0
    fields: Mapping[str, Any] = field(default=EMPTY, hash=False)
    type: Literal["text"] = field(default="text", init=False)


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """More of what the model thinks, as far as its provider shows it.

    Attributes:
        text: What is added to the block's text; may be empty where only a signature or fields come.
        index: The block it belongs to, as in a text.
        signature: The provider's proof of the block, whole; None where this delta brings none.
        fields: What else the block has: `redacted`, `provider`, `model`, `artefact`.
    """

    text: str
    index: int = 0
    signature: str | None = None
    fields: Mapping[str, Any] = field(default=EMPTY, hash=False)
    type: Literal["thinking"] = field(default="thinking", init=False)


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """More of a tool call.

    Attributes:
        index: The block it belongs to, as in a text.
        id: The call's id, whole; empty where this delta brings none.
        name: The tool's name as it was declared to us, whole; empty where this delta brings none.
        arguments: What is added to the arguments, a piece of JSON text.
        fields: What else the block has, such as the artefact that its provider wants back.
    """

    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""
    fields: Mapping[str, Any] = field(default=EMPTY, hash=False)
    type: Literal["tool_call"] = field(default="tool_call", init=False)


@dataclass(frozen=True, slots=True)
class BlockEvent:
    """A block that comes whole: an image, or a part of the provider's own that palaver keeps without reading it.

    Attributes:
        block: The block.
        index: Its place, as of a text.
    """

    block: Content
    index: int = 0
    type: Literal["block"] = field(default="block", init=False)


@dataclass(frozen=True, slots=True)
class UsageEvent:
    """What the answer used, as far as the provider said; a later one replaces it."""

    usage: Usage
    type: Literal["usage"] = field(default="usage", init=False)


@dataclass(frozen=True, slots=True)
class End:
    """The answer is whole.

    Attributes:
        message: All of it. Its blocks are those that the deltas add up to.
        raw: The provider's own answer as JSON: an object for one that came whole, a tuple of its pieces for one that was streamed;
            None where there is no provider.
    """

    message: AssistantMessage
    raw: Any = field(default=None, hash=False, compare=False)
    type: Literal["end"] = field(default="end", init=False)


Delta: TypeAlias = TextDelta | ThinkingDelta | ToolCallDelta
"""The events that add to a block."""

Event: TypeAlias = Delta | BlockEvent | UsageEvent | End
"""Everything a provider may yield, told apart by `type`."""
