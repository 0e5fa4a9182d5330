"""Counting tokens: of text, blocks, messages, tool schemas and whole requests, for any model, offline.

Only OpenAI publishes its tokenizer. For every other family the count is an estimate: the o200k_base count times a factor of the family, plus what providers
put around messages, calls and results. Each family states an error bound; both were
measured on recorded sessions. What a provider reports corrects the budget: `Budget.corrected`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
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
from palaver.tokens.names import read_name

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


# --- blocks, messages, requests ------------------------------------------------------------------------------------------------------


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


_SPEECH_BYTES_PER_SECOND = 4_000
"""The assumed rate of a compressed recording: 32 kbit/s, the low end for speech, so that its length errs high."""


def seconds(data: bytes | None, size: int) -> float:
    """Return how many seconds a recording of `size` bytes has: a WAV file by the byte rate in its header, any other by 32 kbit/s."""
    rate = 0
    if data and (data[:4], data[8:12]) == (b"RIFF", b"WAVE"):
        rate = int.from_bytes(data[28:32], "little")
    return size / (rate or _SPEECH_BYTES_PER_SECOND)


def _image(image: Media, family: Family) -> int:
    """Count an image by its pixels, or as the largest possible one where nobody has seen its bytes."""
    known = image.width > 0 and image.height > 0
    return family.image.tokens(image.width, image.height) if known else family.image.unknown


def _sound(sound: Media, family: Family) -> int:
    """Count a recording by its length; one at an address counts a minute."""
    length = seconds(sound.data, sound.size) if sound.size else 60.0
    return math.ceil(length * family.audio_per_second)


def _unknown(value: object, counter: Counter) -> int:
    """Count an unknown block as its JSON, long strings without white space by their length."""
    sealed: list[str] = []
    return counter.text(_json(_without_sealed(value, sealed.append))) + sum(_opaque(len(text)) for text in sealed)


def _without_sealed(value: object, seal: Callable[[str], None]) -> object:
    """Copy a JSON value without its sealed strings, which ``seal`` receives."""
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
