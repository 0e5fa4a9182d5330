"""Counting tokens: of text, blocks, messages, tool schemas and whole requests, for any model, offline.

Only OpenAI publishes its tokenizer, so for every other family the count is an estimate: the o200k_base count times a factor
of the family, plus what providers put around messages, calls and results. Each family states an error bound; both were
measured on recorded sessions. What a provider reports corrects the budget: `Budget.corrected`.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, assert_never

from palaver.messages import (
    AudioContent,
    Content,
    ImageContent,
    Media,
    Message,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolResultContent,
    UnknownContent,
    thaw,
)
from palaver.tokens import o200k
from palaver.tokens.catalogue import ModelInfo
from palaver.tokens.families import FAMILIES, Family, family_of
from palaver.tokens.genai import read_name

__all__ = [
    "Counter",
    "ModelCounter",
    "count_block",
    "count_message",
    "count_request",
    "count_tools",
    "counter",
    "pixel_size",
    "seconds",
]

_OPAQUE_CHARACTERS_PER_TOKEN = 16 / 3
"""Base64 that a model never sees as text (signatures, encrypted reasoning, files): four bytes a token, three of them in
four characters. Codex estimates encrypted reasoning so."""

_OPAQUE_FROM = 1_024
"""Strings of unknown blocks count as opaque from this many characters on, if they have no white space."""


class Counter(Protocol):
    """Anything that counts tokens for one model. Bring your own by having these two."""

    @property
    def family(self) -> Family:
        """What comes on top of text: overheads and media."""

    def text(self, text: str, /) -> int:
        """Count a text. The same text always counts the same, and no text counts 0."""


@dataclass(frozen=True, slots=True)
class ModelCounter:
    """Counts for one model: o200k_base times a factor.

    Attributes:
        model: The model's name, as asked for.
        family: The family's factor, overheads and error bound.
    """

    model: str
    family: Family

    def text(self, text: str, /) -> int:
        """Count a text, rounded up."""
        return math.ceil(o200k.count(text) * self.family.factor)


def counter(model: str | ModelInfo) -> ModelCounter:
    """Return the counter of a model; the family of an unknown one follows from its name, else it is counted generously."""
    if isinstance(model, ModelInfo):
        return ModelCounter(model.name, FAMILIES[model.family])
    return ModelCounter(model, family_of(read_name(model).bare))


# --- what is counted ------------------------------------------------------------------------------------------------------


def count_block(block: Content, counter: Counter) -> int:
    """Count one content block, with what its provider puts around it."""
    match block:
        case TextContent():
            return counter.text(block.content)
        case ThinkingContent():
            return _thinking(block, counter)
        case ToolCallContent():
            return counter.family.per_call + counter.text(block.name) + counter.text(_arguments(block, counter.family))
        case ToolResultContent():
            return counter.family.per_result + _result(block, counter)
        case ImageContent() | AudioContent():
            return _media(block, counter.family)
        case UnknownContent():
            return _unknown(thaw(block.model_extra or {}), counter)
        case _:
            assert_never(block)


def count_message(message: Message, counter: Counter) -> int:
    """Count one message as it would be sent: its blocks, and the overhead of a message."""
    blocks = sum(count_block(block, counter) for block in message.contents)
    if not message.contents:
        blocks = counter.text(message.text_content())
    return counter.family.per_message + blocks


def count_tools(schemas: Iterable[Mapping[str, object]], counter: Counter) -> int:
    """Count tool schemas, in whichever provider's form they are; none counts 0."""
    family = counter.family
    counts = [family.per_tool + math.ceil(counter.text(_json(schema)) * family.schema_share) for schema in schemas]
    return sum(counts) + (family.per_tools if counts else 0)


def count_request(
    messages: Iterable[Message],
    counter: Counter,
    *,
    system: str = "",
    tools: Iterable[Mapping[str, object]] = (),
) -> int:
    """Count a whole request: instructions, tool schemas, messages, and the overhead of a request."""
    said = sum(count_message(message, counter) for message in messages)
    instructions = counter.family.per_message + counter.text(system) if system else 0
    return counter.family.per_request + instructions + count_tools(tools, counter) + said


def _thinking(block: ThinkingContent, counter: Counter) -> int:
    """Count thinking by its text; where only an encrypted form is there, by its length."""
    if block.content:
        return counter.text(block.content)
    sealed = block.artefact.get("encrypted_content")
    return _opaque(len(block.redacted) or len(sealed if isinstance(sealed, str) else block.signature))


def _arguments(block: ToolCallContent, family: Family) -> str:
    """Return a call's arguments as the model reads them; malformed ones as they were written."""
    if family.json_arguments or block.error is not None:
        return block.arguments
    return "\n".join(f"{key} {value if isinstance(value, str) else _json(value)}" for key, value in block.args.items())


def _result(block: ToolResultContent, counter: Counter) -> int:
    """Count a tool's result."""
    if isinstance(block.content, str):
        return counter.text(block.content)
    return sum(count_block(part, counter) for part in block.content)


def _media(block: ImageContent | AudioContent, family: Family) -> int:
    """Count the images or sounds of a block."""
    if isinstance(block, ImageContent):
        return sum(_image(image, family) for image in block.images)
    return sum(_sound(sound, family) for sound in block.audio)


def _image(image: Media, family: Family) -> int:
    """Count an image by its pixels, or as large as can be where its bytes are not at hand."""
    size = pixel_size(image.data) if image.data else None
    return family.image.tokens(*size) if size else family.image.unknown


def _sound(sound: Media, family: Family) -> int:
    """Count a recording by its length; one at an address counts a minute."""
    length = seconds(sound.data, sound.size) if sound.size else 60.0
    return math.ceil(length * family.audio_per_second)


def _unknown(value: object, counter: Counter) -> int:
    """Count an unknown block as its JSON, long strings without white space by their length."""
    sealed: list[str] = []
    return counter.text(_json(_without_sealed(value, sealed.append))) + sum(_opaque(len(text)) for text in sealed)


def _without_sealed(value: object, seal: Callable[[str], None]) -> object:
    """Copy a JSON value without its sealed strings, which are given to ``seal``."""
    if isinstance(value, Mapping):
        return {key: _without_sealed(item, seal) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_sealed(item, seal) for item in value]
    if isinstance(value, str) and len(value) >= _OPAQUE_FROM and not any(map(str.isspace, value)):
        seal(value)
        return ""
    return value


def _opaque(characters: int) -> int:
    """Count base64 that the model reads as bytes."""
    return math.ceil(characters / _OPAQUE_CHARACTERS_PER_TOKEN)


def _json(value: object) -> str:
    """Write JSON as it goes over the wire."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


_PNG = struct.Struct(">8s4x4sII")  # signature, IHDR, width, height (PNG specification, 5.2 and 11.2.1)
_GIF = struct.Struct("<6sHH")  # signature, width, height (GIF89a, 17 and 18)
_RIFF = struct.Struct("<4s4x4s4s")  # RIFF, form, first chunk (RFC 9649, 2.4)
_WEBP_LOSSY = struct.Struct("<HH")  # width and height, 14 bits each (RFC 6386, 9.1)
_WEBP_LOSSLESS = struct.Struct("<I")  # width - 1 and height - 1, 14 bits each (RFC 9649, 3.4)
_WEBP_EXTENDED = struct.Struct("<HBHB")  # width - 1 and height - 1, 24 bits each (RFC 9649, 2.7)
_JPEG_FRAME = struct.Struct(">HH")  # height, width (ITU-T T.81, B.2.2)
_WAV = struct.Struct("<4s4x4s16xI")  # RIFF, WAVE, and the bytes a second of the format chunk behind it

_FOURTEEN_BITS = 0x3FFF
_MARK = 0xFF

_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""JPEG markers that open a frame: SOF0 to SOF15 without DHT, JPG and DAC (ITU-T T.81, table B.1)."""

_SPEECH_BYTES_PER_SECOND = 4_000
"""What a compressed recording is taken to have: 32 kbit/s, the low end for speech, so that its length errs high."""


def pixel_size(data: bytes) -> tuple[int, int] | None:
    """Read width and height, in pixels, from the head of a PNG, JPEG, GIF or WebP.

    Args:
        data: The image, or at least its first bytes.

    Returns:
        (width, height), both at least 1, or None when the bytes are none of these formats or end too early.
    """
    size = _png(data) or _gif(data) or _webp(data) or _jpeg(data)
    return size if size and min(size) > 0 else None


def seconds(data: bytes | None, size: int) -> float:
    """Return how long a recording is.

    Args:
        data: The recording, or None when its bytes are not at hand.
        size: Its length in bytes.

    Returns:
        Seconds: of a WAV file by the byte rate of its header, of anything else by 32 kbit/s.
    """
    rate = _SPEECH_BYTES_PER_SECOND
    if data and len(data) >= _WAV.size:
        riff, form, stated = _WAV.unpack_from(data)
        if (riff, form) == (b"RIFF", b"WAVE") and stated:
            rate = stated
    return size / rate


def _png(data: bytes) -> tuple[int, int] | None:
    """Read the image header, which is the first chunk."""
    if len(data) < _PNG.size:
        return None
    signature, chunk, width, height = _PNG.unpack_from(data)
    return (width, height) if (signature, chunk) == (b"\x89PNG\r\n\x1a\n", b"IHDR") else None


def _gif(data: bytes) -> tuple[int, int] | None:
    """Read the logical screen."""
    if len(data) < _GIF.size:
        return None
    signature, width, height = _GIF.unpack_from(data)
    return (width, height) if signature in {b"GIF87a", b"GIF89a"} else None


def _webp(data: bytes) -> tuple[int, int] | None:
    """Read the first chunk, of which there are three kinds."""
    if len(data) < 30 or _RIFF.unpack_from(data)[:2] != (b"RIFF", b"WEBP"):  # noqa: PLR2004 - where the sizes end
        return None
    match _RIFF.unpack_from(data)[2]:
        case b"VP8X":
            wide, wider, high, higher = _WEBP_EXTENDED.unpack_from(data, 24)
            return 1 + wide + (wider << 16), 1 + high + (higher << 16)
        case b"VP8L":
            (bits,) = _WEBP_LOSSLESS.unpack_from(data, 21)
            return 1 + (bits & _FOURTEEN_BITS), 1 + (bits >> 14 & _FOURTEEN_BITS)
        case b"VP8 ":
            width, height = _WEBP_LOSSY.unpack_from(data, 26)
            return width & _FOURTEEN_BITS, height & _FOURTEEN_BITS
        case _:
            return None


def _jpeg(data: bytes) -> tuple[int, int] | None:
    """Walk the segments to the first frame header."""
    if not data.startswith(b"\xff\xd8"):
        return None
    for marker, place in _segments(data):
        if marker in _FRAMES and place + 7 <= len(data):
            height, width = _JPEG_FRAME.unpack_from(data, place + 3)
            return width, height
    return None


def _segments(data: bytes) -> Iterator[tuple[int, int]]:
    """Return the marker of each JPEG segment and where its length field begins."""
    place = 2
    while place + 4 <= len(data) and data[place] == _MARK:
        if data[place + 1] == _MARK:  # a fill byte
            place += 1
            continue
        yield data[place + 1], place + 2
        place += 2 + int.from_bytes(data[place + 2 : place + 4], "big")
