"""The script: a view spelt out as speeches, on its way to a provider.

Compiling is a row of passes. The first turns the view into a script, each of the following gives a changed script, and the last
one writes it in the provider's words. A script holds only what may be sent: no metadata, no times, no ids of ours.
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
    "ResultPart",
    "ServedPart",
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
"""Who speaks on the wire where a message of each role is said."""


@dataclass(frozen=True, slots=True)
class TextPart:
    """A text.

    Attributes:
        text: The text, as it is sent.
        origin: The block it shows, or None.
        signature: A Gemini thought signature that stands on this text, or empty.
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
        kind: What it is.
        media: The value in the view.
        origin: The block it stands in, or None.
        number: Its place among the media of its block, starting at 1.
        of: How many media its block has.
        media_type: The type of its bytes, once they were read; empty for an address.
        data: Its bytes as base64, once they were read; empty for an address.
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
    """What a model thought."""

    content: ThinkingContent
    origin: Handle | None = None


@dataclass(frozen=True, slots=True)
class CallPart:
    """A tool call.

    Attributes:
        id: Its id; after pairing, the one that is sent.
        name: The tool's name; after pairing, the one that is sent.
        args: The arguments as an object; empty where they could not be read.
        raw: The arguments as JSON text, as the model wrote them.
        error: Why `raw` could not be read, or empty.
        artefact: What the provider wants back with the call.
        origin: The block, or None.
    """

    id: str
    name: str
    args: Mapping[str, object]
    raw: str
    error: str = ""
    artefact: Mapping[str, object] = field(default_factory=dict, hash=False)
    origin: Handle | None = None


@dataclass(frozen=True, slots=True)
class ResultPart:
    """A tool's result.

    Attributes:
        id: The id of the call it answers; after pairing, the one that is sent.
        name: The tool's name; after pairing, the one that is sent.
        body: What the tool gave back.
        error: True when the tool failed.
        origin: The block, or None for one that no entry holds.
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
class ServedPart:
    """What a tool of the provider's own left in an answer: it goes back as the provider wrote it.

    Attributes:
        kind: Its type, as the provider spells it.
        fields: Its fields, without the type.
        origin: The block.
    """

    kind: str
    fields: Mapping[str, object] = field(hash=False)
    origin: Handle | None = None


Part: TypeAlias = TextPart | MediaPart | ThinkingPart | CallPart | ResultPart | ServedPart


@dataclass(frozen=True, slots=True)
class Speech:
    """What one role says without a break.

    Attributes:
        role: Who speaks, in our words; `tool` holds results only.
        parts: What is said.
        name: The speaker's own name, or empty.
        provider: The provider whose model said it, or empty.
        model: The model that said it, or empty.
        stale: True when what stood before it has been edited since it was said.
    """

    role: SpeechRole
    parts: tuple[Part, ...]
    name: str = ""
    provider: str = ""
    model: str = ""
    stale: bool = False


def media_parts(script: Iterable[Speech]) -> Iterator[MediaPart]:
    """Give all media of a script, those inside results too, oldest first."""
    for speech in script:
        for part in speech.parts:
            if isinstance(part, MediaPart):
                yield part
            elif isinstance(part, ResultPart):
                yield from (inner for inner in part.body if isinstance(inner, MediaPart))
