"""Convert a tool's return value to content for a model: text, JSON, images and sound, within a limit of bytes."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any, TypeAlias

from pydantic_core import PydanticSerializationError, to_json

from palaver.messages import AudioContent, ImageContent, Media, TextContent, ToolResultContent, UnknownContent
from palaver.messages.frozen import EMPTY, freeze
from palaver.messages.media import sniff
from palaver.tools.outcomes import ToolReply

Part: TypeAlias = TextContent | ImageContent | AudioContent | UnknownContent
_BLOCKS = (TextContent, ImageContent, AudioContent, UnknownContent)
_NOTHING = "(no output)"
_ERROR_BYTES = 4_000


def result_of(value: Any, max_bytes: int) -> ToolResultContent:  # noqa: ANN401 - whatever a tool returned
    """Return a tool's return value as a block without id, cut to `max_bytes` with a note.

    Every value has a block: values that JSON cannot express appear as Python prints them. This may run code of the value.
    """
    reply = value if isinstance(value, ToolReply | ToolResultContent) else ToolReply(value)
    content, cut = _bounded(_content(reply.content), max_bytes)
    metadata = freeze({**cut, **reply.metadata})
    return ToolResultContent("", content, is_error=reply.is_error, metadata=metadata, terminate=reply.terminate)


def _content(value: Any) -> str | tuple[Part, ...]:  # noqa: ANN401 - anything
    if value is None:
        return _NOTHING
    if isinstance(value, str):
        return str(value) or _NOTHING
    part = _part(value)
    if part is not None:
        return part.content if isinstance(part, TextContent) else (part,)
    if isinstance(value, list | tuple) and any(_part(item) is not None for item in value):
        return tuple(_part(item) or TextContent(_text(item)) for item in value)
    return _text(value)


def _part(value: Any) -> Part | None:  # noqa: ANN401 - anything
    """Return a value as a block, or None for a value that becomes text."""
    if isinstance(value, _BLOCKS):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return _of_bytes(bytes(value))
    if isinstance(value, Media):
        return AudioContent(audio=[value]) if value.media_type.startswith("audio/") else ImageContent(images=[value])
    pillow = sys.modules.get("PIL.Image")  # a program with a Pillow image has imported Pillow
    if pillow is not None and isinstance(value, pillow.Image):
        return ImageContent(images=[Media.from_pil(value)])
    return None


def _of_bytes(data: bytes) -> Part:
    if sniff(data, "image"):
        return ImageContent(images=[Media.from_bytes(data, "image")])
    if sniff(data, "audio"):
        return AudioContent(audio=[Media.from_bytes(data, "audio")])
    try:
        return TextContent(data.decode() or _NOTHING)
    except UnicodeDecodeError:
        return TextContent(f"({len(data):,} bytes that are not text, an image or sound)")


def _text(value: Any) -> str:  # noqa: ANN401 - anything
    """Return a value as JSON, or as Python prints it if JSON cannot express it."""
    if isinstance(value, str | PurePath):
        return str(value)
    if isinstance(value, BaseException):
        return f"{type(value).__name__}: {value}"
    try:
        text = to_json(value, bytes_mode="base64", inf_nan_mode="null", fallback=_printed).decode()
    except (PydanticSerializationError, ValueError, TypeError, RecursionError):
        return _printed(value)
    return str(json.loads(text)) if text.startswith('"') else text  # a date or an enum, without quotes


def _printed(value: Any) -> str:  # noqa: ANN401 - anything
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - a __str__ may raise anything
        return f"<{type(value).__qualname__}>"


def describe_error(error: BaseException) -> str:
    """Return the class of an exception, its message and its cause."""
    try:
        said = "".join(traceback.format_exception_only(error)).strip()
        cause = error.__cause__
        said += "" if cause is None else f"\ncaused by {type(cause).__name__}: {cause}".removesuffix(": ")
    except Exception:  # noqa: BLE001 - a __str__ may raise anything
        said = type(error).__name__
    return cut_text(said, _ERROR_BYTES)


# --- limits -------------------------------------------------------------------------------------------


def _bounded(content: str | Iterable[Part], max_bytes: int) -> tuple[str | tuple[Part, ...], Mapping[str, Any]]:
    """Return content cut to a size, and metadata about the cut."""
    parts = (TextContent(content),) if isinstance(content, str) else tuple(content)
    sizes = [_size(part) for part in parts]
    if sum(sizes) <= max_bytes:
        return content if isinstance(content, str) else parts, EMPTY
    kept: list[Part] = []
    left = max_bytes
    for part, size in zip(parts, sizes, strict=True):
        if isinstance(part, TextContent):
            kept.append(TextContent(cut_text(part.content, max(left, 0))))
        elif size <= left:
            kept.append(part)
        else:
            kept.append(TextContent(f"[{part.type} of {size:,} bytes left out: the limit is {max_bytes:,} bytes]"))
        left -= size
    facts = {"cut": {"bytes": sum(sizes), "kept": max_bytes}}
    first = kept[0]
    return first.content if isinstance(content, str) and isinstance(first, TextContent) else tuple(kept), facts


def cut_text(text: str, max_bytes: int) -> str:
    """Return a text; if it has too many UTF-8 bytes, replace its middle by a note."""
    raw = text.encode("utf-8", "surrogatepass") if len(text) * 4 > max_bytes else b""
    if len(raw) <= max_bytes:
        return text
    half = max_bytes // 2
    head = raw[:half].decode("utf-8", "ignore")
    tail = raw[len(raw) - half :].decode("utf-8", "ignore")
    return f"{head}\n[… {len(raw) - 2 * half:,} of {len(raw):,} bytes cut: the limit is {max_bytes:,} bytes …]\n{tail}"


def _size(part: Part) -> int:
    if isinstance(part, TextContent):
        return len(part.content.encode("utf-8", "surrogatepass"))
    if isinstance(part, ImageContent):
        return sum(image.size for image in part.images)
    if isinstance(part, AudioContent):
        return sum(sound.size for sound in part.audio)
    return len(to_json(part, fallback=_printed))
