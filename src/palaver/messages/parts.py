"""Content parts of other interfaces, read into blocks and written for chat completions.

Known are the parts of OpenAI chat completions and responses, of Anthropic messages, and palaver's own blocks as dicts. A key that
no block has a field for stays on the block; a part that is not known, or whose payload is unreadable, stays whole as UnknownContent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from palaver.errors import InvalidMedia, InvalidMessage
from palaver.messages.blocks import (
    AudioContent,
    Content,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolResultContent,
    UnknownContent,
)
from palaver.messages.calls import FunctionCall
from palaver.messages.frozen import thaw
from palaver.messages.media import Media
from palaver.messages.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["blocks_of", "call_of", "part_of"]

Part = Mapping[str, Any]

_OWN = {
    "text": (TextContent, "content"),
    "image": (ImageContent, "images"),
    "audio": (AudioContent, "audio"),
    "thinking": (ThinkingContent, "content"),
    "tool_call": (ToolCallContent, "name"),
    "tool_result": (ToolResultContent, "id"),
}


def blocks_of(content: object) -> tuple[Content, ...]:
    """Read content in any known form: None, a string, one block or part, or a list of them.

    Raises:
        InvalidMessage: It is none of these.
    """
    if content is None:
        return ()
    if isinstance(content, str):
        return (TextContent(content=content),)
    if isinstance(content, Value | Mapping):
        return (_block_of(content),)
    if isinstance(content, Iterable) and not isinstance(content, bytes | bytearray | memoryview):
        return tuple(_block_of(part) for part in content)
    raise InvalidMessage(
        f"Content of type {type(content).__name__} is neither text nor a list of parts.",
        hint="Pass a string, blocks, or content parts.",
    )


def call_of(call: object) -> ToolCallContent:
    """Read a tool call: a block, a FunctionCall, a chat-completions tool call, or ``{id, name, arguments}``.

    Raises:
        InvalidMessage: It is none of these.
    """
    if isinstance(call, ToolCallContent):
        return call
    if isinstance(call, FunctionCall):
        return call.to_block()
    if not isinstance(call, Mapping):
        raise InvalidMessage(f"A {type(call).__name__} is no tool call.", hint="Pass the dict of chat completions.")
    if call.get("type") == "tool_call":
        return ToolCallContent.model_validate(call)
    rest = dict(call)
    if rest.get("type") == "function":
        del rest["type"]
    function = rest.pop("function", None)
    if isinstance(function, Mapping):
        rest |= {f"function_{key}": value for key, value in function.items() if key not in {"name", "arguments"}}
        rest |= {key: function[key] for key in ("name", "arguments") if key in function}
    elif function is not None:
        rest["name"] = function
    arguments = rest.pop("arguments", None)
    if rest.get("id") is None:
        rest["id"] = ""
    return ToolCallContent(**rest, args="" if arguments is None else arguments)


def _block_of(part: object) -> Content:
    """Read one block or part."""
    if isinstance(part, str):
        return TextContent(content=part)
    if isinstance(part, Value):
        return part  # type: ignore[return-value] # a value of another kind is refused when the message is validated
    if not isinstance(part, Mapping):
        raise InvalidMessage(f"A {type(part).__name__} is no content part.")
    kind = part.get("type", "text" if "text" in part else None)
    if not isinstance(kind, str):
        raise InvalidMessage(f"A content part needs a type; this one has the keys {sorted(map(str, part))}.")
    own, mark = _OWN.get(kind, (None, ""))
    if own is not None and mark in part:
        return own.model_validate(part)  # type: ignore[no-any-return]
    reader = _READERS.get(kind)
    if reader is None:
        return _unknown(kind, part)
    rest = {key: value for key, value in part.items() if key != "type"}
    try:
        return reader(rest)
    except (InvalidMedia, KeyError, AttributeError, TypeError):
        return _unknown(kind, part)


def _unknown(kind: str, part: Part) -> UnknownContent:
    """Keep a part whole; one of a type that palaver itself uses is wrapped, so that it is not read as that."""
    if kind in _OWN:
        return UnknownContent(type="unreadable", part=dict(part))
    return UnknownContent(**dict(part))


def _text(rest: dict[str, Any]) -> Content:
    return TextContent(content=rest.pop("text"), **rest)


def _typed_text(kind: str) -> Callable[[dict[str, Any]], Content]:
    """Read a text part whose type says more than text; the type stays as ``part_type``."""

    def read(rest: dict[str, Any]) -> Content:
        return TextContent(content=rest.pop("refusal" if kind == "refusal" else "text"), part_type=kind, **rest)

    return read


def _image_url(rest: dict[str, Any]) -> Content:
    image = rest.pop("image_url")
    if isinstance(image, Mapping):
        rest |= {key: value for key, value in image.items() if key != "url"}
        image = image["url"]
    return ImageContent(images=(Media.from_text(image),), **rest)


def _input_audio(rest: dict[str, Any]) -> Content:
    sound = rest.pop("input_audio")
    return AudioContent(audio=(Media.from_text(sound["data"], "audio", f"audio/{sound.get('format', '')}"),), **rest)


def _source(rest: dict[str, Any]) -> Content:
    source = rest.pop("source")
    if source["type"] == "url":
        return ImageContent(images=(Media.from_text(source["url"]),), **rest)
    if source["type"] != "base64":
        raise InvalidMedia(f"An image source of type {source['type']!r} is not known.")
    return ImageContent(images=(Media.from_text(source["data"], "image", source.get("media_type", "")),), **rest)


def _thinking(rest: dict[str, Any]) -> Content:
    return ThinkingContent(
        content=rest.pop("thinking"), signature=rest.pop("signature", "") or "", provider="anthropic", **rest
    )


def _redacted_thinking(rest: dict[str, Any]) -> Content:
    return ThinkingContent(redacted=rest.pop("data"), provider="anthropic", **rest)


def _tool_use(rest: dict[str, Any]) -> Content:
    return ToolCallContent(id=rest.pop("id"), name=rest.pop("name"), args=rest.pop("input"), **rest)


def _tool_result(rest: dict[str, Any]) -> Content:
    call_id, content, failed = rest.pop("tool_use_id"), rest.pop("content", None), rest.pop("is_error", None)
    inner = "" if content is None else content if isinstance(content, str) else blocks_of(content)
    return ToolResultContent(id=call_id, content=inner, is_error=bool(failed), **rest)


_READERS: dict[str, Callable[[dict[str, Any]], Content]] = {
    "text": _text,
    "input_text": _typed_text("input_text"),
    "output_text": _typed_text("output_text"),
    "refusal": _typed_text("refusal"),
    "image_url": _image_url,
    "input_image": _image_url,
    "input_audio": _input_audio,
    "image": _source,
    "thinking": _thinking,
    "redacted_thinking": _redacted_thinking,
    "tool_use": _tool_use,
    "tool_result": _tool_result,
}


def part_of(block: Content) -> list[dict[str, Any]]:
    """Write a block as chat-completions parts; one image block may give several.

    Media whose bytes are not in memory, and blocks that chat completions has no part for, are written as palaver's own dict.
    """
    if isinstance(block, TextContent):
        return [{"type": "text", "text": block.content}]
    if isinstance(block, ImageContent) and all(image.url or image.data is not None for image in block.images):
        return [{"type": "image_url", "image_url": {"url": _address(image)}} for image in block.images]
    if isinstance(block, AudioContent) and all(sound.data is not None for sound in block.audio):
        return [{"type": "input_audio", "input_audio": _sound(sound)} for sound in block.audio]
    return [thaw(block.model_dump(mode="json", exclude_defaults=True) | {"type": block.type})]


def _address(image: Media) -> str:
    data, media_type = image.to_base64()
    return f"data:{media_type};base64,{data}" if media_type else data


def _sound(sound: Media) -> dict[str, str]:
    data, media_type = sound.to_base64()
    return {"data": data, "format": {"audio/mpeg": "mp3"}.get(media_type, media_type.removeprefix("audio/"))}
