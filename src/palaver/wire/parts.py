"""The script: exchanges spelled out as speeches, on their way to a provider.

Compiling is a row of passes. The first turns an exchange into a script; each later pass returns a changed script; the provider's module
writes the last one. A script holds only what may be sent: no metadata, no times, no ids of ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias

from palaver.log import Handle
from palaver.messages import Media, Role, ThinkingContent

__all__ = [
    "SPEAKS",
    "CallPart",
    "MediaPart",
    "Part",
    "ProviderPart",
    "ResultPart",
    "Speech",
    "SpeechRole",
    "TextPart",
    "ThinkingPart",
    "media_parts",
]

SpeechRole: TypeAlias = Literal["system", "user", "assistant", "tool"]

SPEAKS: Mapping[Role, SpeechRole] = MappingProxyType(
    {
        Role.SYSTEM: "system",
        Role.USER: "user",
        Role.ASSISTANT: "assistant",
        Role.TOOL_CALL: "assistant",
        Role.TOOL: "tool",
        Role.CUSTOM: "user",
        Role.BRANCH_SUMMARY: "user",
        Role.COMPACTION_SUMMARY: "user",
    }
)
"""The role on the wire of a message of each role."""


@dataclass(frozen=True, slots=True)
class TextPart:
    """A text.

    Attributes:
        text: The text, as it is sent.
        origin: The block that it shows, or None.
        signature: A Gemini thought signature on this text, or empty.
        phase: OpenAI's label of the text, `commentary` or `final_answer`, or empty.
    """

    text: str
    origin: Handle | None = None
    signature: str = ""
    phase: str = ""


@dataclass(frozen=True, slots=True)
class MediaPart:
    """An image or a sound.

    Attributes:
        kind: `image` or `audio`.
        media: The value in the view.
        origin: The block that holds it, or None.
        number: Its place among the media of its block, from 1.
        of: How many media its block holds.
        media_type: The type of its bytes, once they are read; empty for an address.
        data: Its bytes as base64, once they are read; empty for an address.
    """

    kind: Literal["image", "audio"]
    media: Media
    origin: Handle | None = None
    number: int = 1
    of: int = 1
    media_type: str = ""
    data: str = ""


@dataclass(frozen=True, slots=True)
class ThinkingPart:
    """A model's thinking."""

    content: ThinkingContent
    origin: Handle | None = None


@dataclass(frozen=True, slots=True)
class CallPart:
    """A tool call.

    Attributes:
        id: Its id; after pairing, the one that is sent.
        name: The tool's name; after pairing, the one that is sent.
        args: The arguments, a JSON object.
        raw: The arguments as JSON text, as the model wrote them where that is valid JSON.
        artefact: What the provider wants back with the call.
        origin: The block, or None.
    """

    id: str
    name: str
    args: Mapping[str, object]
    raw: str
    artefact: Mapping[str, object] = field(default_factory=dict, hash=False)
    origin: Handle | None = None


@dataclass(frozen=True, slots=True)
class ResultPart:
    """A tool's result.

    Attributes:
        id: The id of the call that it answers; after pairing, the one that is sent.
        name: The tool's name; after pairing, the one that is sent.
        body: What the tool returned.
        error: Whether the tool failed.
        origin: The block, or None for a result that no entry holds.
    """

    id: str
    name: str
    body: tuple[TextPart | MediaPart, ...]
    error: bool = False
    origin: Handle | None = None

    @property
    def text(self) -> str:
        """The texts of the result, one a line."""
        return "\n".join(part.text for part in self.body if isinstance(part, TextPart))


@dataclass(frozen=True, slots=True)
class ProviderPart:
    """A block that a tool of the provider's own left in an answer. It goes back unchanged.

    Attributes:
        kind: Its type, in the provider's spelling.
        fields: Its fields, without the type.
        origin: The block.
    """

    kind: str
    fields: Mapping[str, object] = field(hash=False)
    origin: Handle | None = None


Part: TypeAlias = TextPart | MediaPart | ThinkingPart | CallPart | ResultPart | ProviderPart


@dataclass(frozen=True, slots=True)
class Speech:
    """What one role says without a break.

    Attributes:
        role: Who speaks; `tool` holds results only.
        parts: What is said.
        name: The speaker's own name, or empty.
        provider: The provider whose model said it, or empty.
        model: The model that said it, or empty where none is recorded.
    """

    role: SpeechRole
    parts: tuple[Part, ...]
    name: str = ""
    provider: str = ""
    model: str = ""


def media_parts(script: Iterable[Speech]) -> Iterator[MediaPart]:
    """List all media of a script, those inside results included, oldest first."""
    for speech in script:
        for part in speech.parts:
            if isinstance(part, MediaPart):
                yield part
            elif isinstance(part, ResultPart):
                yield from (inner for inner in part.body if isinstance(inner, MediaPart))
