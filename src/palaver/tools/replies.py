"""What a tool returned, as what a model can read: text, JSON, images and sound, never more bytes than agreed."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, TypeAlias

from pydantic_core import PydanticSerializationError, to_json

from palaver.messages import AudioContent, ImageContent, Media, TextContent, ToolResultContent, UnknownContent
from palaver.messages.frozen import EMPTY, freeze
from palaver.messages.media import sniff
from palaver.tools.outcome import ToolReply

__all__ = ["Reply", "bounded", "cut_text", "reply_of"]

Part: TypeAlias = TextContent | ImageContent | AudioContent | UnknownContent
_BLOCKS = (TextContent, ImageContent, AudioContent, UnknownContent)
_SHOWN_BYTES = 32
NOTHING = "(no output)"


@dataclass(frozen=True, slots=True)
class Reply:
    """A result, ready to become a block; it can cross to another process."""

    content: str | tuple[Part, ...] = ""
    is_error: bool = False
    terminate: bool = False
    metadata: Mapping[str, Any] = field(default_factory=lambda: EMPTY)

    def block(self, call_id: str, name: str) -> ToolResultContent:
        """Make the block that answers a call."""
        return ToolResultContent(
            call_id, self.content, is_error=self.is_error, metadata=self.metadata, terminate=self.terminate, name=name
        )

    def text(self) -> str:
        """Give the text of the content, parts joined by a line break."""
        return self.block("", "").text()


def reply_of(value: Any, max_bytes: int) -> Reply:  # noqa: ANN401 - whatever a tool returned
    """Turn what a tool returned into a reply of at most `max_bytes` (and a line that says what was cut).

    Any value has a reply; what JSON cannot say is said as Python shows it. May run code of the value's own.
    """
    if isinstance(value, ToolReply):
        inner = reply_of(value.content, max_bytes)
        return Reply(
            inner.content,
            is_error=value.is_error or inner.is_error,
            terminate=value.terminate or inner.terminate,
            metadata=freeze({**inner.metadata, **value.metadata}, "", []),
        )
    if isinstance(value, ToolResultContent):
        content, cut = bounded(value.content, max_bytes)
        return Reply(
            content,
            is_error=value.is_error,
            terminate=value.terminate,
            metadata=freeze({**value.metadata, **cut}, "", []),
        )
    content, cut = bounded(_content(value), max_bytes)
    return Reply(content, metadata=freeze(cut, "", []))


def _content(value: Any) -> str | tuple[Part, ...]:  # noqa: ANN401 - anything
    if value is None:
        return NOTHING
    if isinstance(value, str):
        return str(value) or NOTHING
    part = _part(value)
    if part is not None:
        return part.content if isinstance(part, TextContent) else (part,)
    if isinstance(value, list | tuple) and any(_part(each) is not None for each in value):
        return tuple(_part(each) or TextContent(_text(each)) for each in value)
    return _text(value)


def _part(value: Any) -> Part | None:  # noqa: ANN401 - anything
    """Give the block that a value is, or None for what is to be written as text."""
    if isinstance(value, _BLOCKS):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return _of_bytes(bytes(value))
    if isinstance(value, Media):
        return AudioContent(audio=[value]) if value.media_type.startswith("audio/") else ImageContent(images=[value])
    pillow = sys.modules.get("PIL.Image")  # whoever has a Pillow image has imported Pillow
    if pillow is not None and isinstance(value, pillow.Image):
        return ImageContent(images=[Media.from_pil(value)])
    return None


def _of_bytes(data: bytes) -> Part:
    """Show an image as one, sound as such, text as text, and say of anything else that it is none of these."""
    if sniff(data, "image"):
        return ImageContent(images=[Media.from_bytes(data, "image")])
    if sniff(data, "audio"):
        return AudioContent(audio=[Media.from_bytes(data, "audio")])
    try:
        text = data.decode()
    except UnicodeDecodeError:
        start = data[:_SHOWN_BYTES].hex(" ")
        return TextContent(f"({len(data):,} bytes that are no text, no image and no sound; they begin with {start})")
    return TextContent(text or NOTHING)


def _text(value: Any) -> str:  # noqa: ANN401 - anything
    """Write a value as JSON, or as Python shows it where JSON cannot."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, BaseException):
        return f"{type(value).__name__}: {value}"
    if isinstance(value, PurePath):
        return str(value)
    try:
        text = to_json(value, bytes_mode="base64", inf_nan_mode="null", fallback=_shown).decode()
    except (PydanticSerializationError, ValueError, TypeError, RecursionError):
        return _shown(value)
    return (
        str(json.loads(text)) if text.startswith('"') else text
    )  # a date, an enum, an object: as text, without quotes


def _shown(value: Any) -> str:  # noqa: ANN401 - anything
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - somebody's __str__ may raise anything; the type is what is left
        return f"<{type(value).__qualname__}>"


# --- never more than agreed --------------------------------------------------------------------------------------------


def bounded(content: str | Iterable[Part], max_bytes: int) -> tuple[str | tuple[Part, ...], Mapping[str, Any]]:
    """Cut content down to a size, saying so where it was cut, and give what was cut as metadata."""
    if isinstance(content, str):
        text = cut_text(content, max_bytes)
        return text, EMPTY if text is content else _cut_facts(_size(content), max_bytes)
    left = max_bytes
    kept: list[Part] = []
    whole = 0
    for part in content:
        size = _part_size(part)
        whole += size
        if isinstance(part, TextContent):
            text = cut_text(part.content, max(left, 0))
            kept.append(part if text is part.content else TextContent(text))
        elif size <= left:
            kept.append(part)
        else:
            kept.append(
                TextContent(f"[{_named(part)} of {size:,} bytes left out: the result may have {max_bytes:,} bytes]")
            )
        left -= size
    return tuple(kept), EMPTY if whole <= max_bytes else _cut_facts(whole, max_bytes)


def cut_text(text: str, max_bytes: int) -> str:
    """Keep the two ends of a text that is longer than a number of UTF-8 bytes, and say between them what is missing."""
    if len(text) * 4 <= max_bytes:
        return text
    size = _size(text)
    if size <= max_bytes:
        return text
    raw = text.encode("utf-8", "surrogatepass")
    half = max_bytes // 2
    head = raw[:half].decode("utf-8", "ignore")
    tail = raw[size - half :].decode("utf-8", "ignore") if half else ""
    return f"{head}\n[… {size - 2 * half:,} of {size:,} bytes cut out here: the result may have {max_bytes:,} bytes …]\n{tail}"


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _part_size(part: Part) -> int:
    if isinstance(part, TextContent):
        return _size(part.content)
    if isinstance(part, ImageContent):
        return sum(each.size for each in part.images)
    if isinstance(part, AudioContent):
        return sum(each.size for each in part.audio)
    return len(to_json(part, fallback=_shown))


def _named(part: Part) -> str:
    return {"image": "an image", "audio": "sound"}.get(part.type, "a block")


def _cut_facts(whole: int, kept: int) -> Mapping[str, Any]:
    return {"cut": {"bytes": whole, "kept": kept}}
