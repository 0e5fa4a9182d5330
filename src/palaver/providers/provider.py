"""The provider protocol: a compiled request goes in, the events of an answer come out, one closed union.

An answer that is not streamed yields the same events, with one delta per block. The last event is always :class:`End`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from palaver.messages import AssistantMessage, Content, Usage
from palaver.messages.frozen import EMPTY
from palaver.wire import Profile, Request


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More of a text.

    Attributes:
        text: The addition to the block's text; may be empty when only fields arrive.
        index: The block. An answer orders its blocks by index; indices may have gaps.
        fields: Other fields of the block, such as its citations.
    """

    text: str
    index: int = 0
    fields: Mapping[str, Any] = field(default=EMPTY, hash=False)
    type: Literal["text"] = field(default="text", init=False)


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """More of the model's thinking, if its provider shows it.

    Attributes:
        text: The addition to the block's text; may be empty when only a signature or fields arrive.
        index: The block, as in a text.
        signature: The provider's whole signature of the block, or None.
        fields: Other fields of the block: `redacted`, `provider`, `model`, `artefact`.
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
        index: The block, as in a text.
        id: The whole id of the call, or empty.
        name: The whole name of the tool as the caller declared it, or empty.
        arguments: The addition to the arguments, a piece of JSON text.
        fields: Other fields of the block, such as an artefact that its provider requires back.
    """

    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""
    fields: Mapping[str, Any] = field(default=EMPTY, hash=False)
    type: Literal["tool_call"] = field(default="tool_call", init=False)


@dataclass(frozen=True, slots=True)
class BlockEvent:
    """A block that arrives whole: an image, or a provider-specific part.

    Attributes:
        block: The block.
        index: Its index, as in a text.
    """

    block: Content
    index: int = 0
    type: Literal["block"] = field(default="block", init=False)


@dataclass(frozen=True, slots=True)
class UsageEvent:
    """The usage reported so far; a later event replaces an earlier one."""

    usage: Usage
    type: Literal["usage"] = field(default="usage", init=False)


@dataclass(frozen=True, slots=True)
class End:
    """The end of a complete answer.

    Attributes:
        message: The answer. Its blocks are the sum of the deltas.
        raw: The provider's own answer as JSON: an object for a whole answer, a tuple of its pieces for a streamed one, None without
            a provider.
    """

    message: AssistantMessage
    raw: Any = field(default=None, hash=False, compare=False, repr=False)
    type: Literal["end"] = field(default="end", init=False)


Delta: TypeAlias = TextDelta | ThinkingDelta | ToolCallDelta
"""The events that extend a block."""

Event: TypeAlias = Delta | BlockEvent | UsageEvent | End
"""Every event a provider yields; `type` tells them apart."""


@runtime_checkable
class Provider(Protocol):
    """A service that runs models.

    A provider sends a request exactly as it was compiled. It does not retry: :class:`palaver.providers.Retry` does, where every attempt is
    recorded. It reads no environment variables, although the vendor client that it creates may.
    """

    @property
    def name(self) -> str:
        """The name that errors and messages use."""

    def profile_for(self, model: str) -> Profile:
        """Return the profile to compile requests for a model with."""

    def stream(self, request: Request) -> AsyncGenerator[Event, None]:
        """Ask a model, and yield the events of its answer; the last is an End.

        The request decides whether the answer is streamed. Close the generator (`contextlib.aclosing`) to abandon an answer; that
        closes the connection.

        Raises:
            ProviderError: There is no complete answer. `partial` is the part that arrived.
        """

    async def aclose(self) -> None:
        """Close connections. The provider may be asked again."""
