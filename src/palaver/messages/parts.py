"""Content parts and tool calls of other interfaces, read into blocks and written for chat completions.

The known parts are those of OpenAI chat completions and responses, of Anthropic messages, and palaver's own blocks as dicts. A key
that a block has no field for stays on it, as ``source_<key>`` where the block has a field of that name. An unknown part, or one with
an unreadable payload, stays whole as UnknownContent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from palaver.errors import InvalidInput, InvalidMessage
from palaver.messages.blocks import (
    AudioContent,
    Content,
    ImageContent,
    ResultContent,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolResultContent,
    UnknownContent,
)
from palaver.messages.calls import FunctionCall
from palaver.messages.frozen import EMPTY, thaw
from palaver.messages.media import Media
from palaver.messages.value import Value

__all__ = ["blocks_of", "call_of", "calls_of", "extra_fields", "part_of", "result_of"]

Fields = dict[str, Any]
Block = TypeVar("Block", bound=Value)

_OWN: dict[str, tuple[type[Value], str]] = {
    "text": (TextContent, "content"),
    "image": (ImageContent, "images"),
    "audio": (AudioContent, "audio"),
    "thinking": (ThinkingContent, "content"),
    "tool_call": (ToolCallContent, "name"),
    "tool_result": (ToolResultContent, "id"),
}
"""The types of palaver's own blocks, and the key that tells such a block from a foreign part of the same type."""


def blocks_of(content: object) -> tuple[Content, ...]:
    """Read content in any known form: None, a string, one block or part, or a list of them.

    Raises:
        InvalidMessage: It is none of these.
    """
    if isinstance(content, str):
        return (TextContent(content=content),)
    if content is None:
        return ()
    if isinstance(content, Value | Mapping):
        return (_block_of(content),)
    if isinstance(content, Iterable) and not isinstance(content, bytes | bytearray | memoryview):
        return tuple(_block_of(part) for part in content)
    raise InvalidMessage(
        f"Content of type {type(content).__name__} is neither text nor a list of parts.",
        hint="Pass a string, blocks, or content parts.",
    )


def result_of(content: object) -> str | tuple[ResultContent, ...]:
    """Read the content of a tool's result: text, or blocks; a block that cannot be in a result is kept whole.

    Raises:
        InvalidMessage: It is not content.
    """
    if content is None or isinstance(content, str):
        return content or ""
    return tuple(
        _unknown(block.type, block.model_dump(mode="json"))
        if isinstance(block, ThinkingContent | ToolCallContent | ToolResultContent)
        else block
        for block in blocks_of(content)
    )


def calls_of(calls: object) -> tuple[ToolCallContent, ...]:
    """Read a list of tool calls; None is an empty one.

    Raises:
        InvalidMessage: It is not a list of tool calls.
    """
    if calls is None:
        return ()
    if isinstance(calls, str | bytes | Mapping) or not isinstance(calls, Iterable):
        raise InvalidMessage(f"Tool calls come as a list, not as a {type(calls).__name__}.")
    return tuple(call_of(call) for call in calls)


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
        return ToolCallContent.from_dict(call)
    rest = dict(call)
    function = rest.pop("function", None)
    if isinstance(function, Mapping):  # chat completions keeps name and arguments there
        rest |= {key if key in {"name", "arguments"} else f"function_{key}": value for key, value in function.items()}
    elif function is not None:
        rest["name"] = function
    if rest.get("type") == "function":
        del rest["type"]
    own = {"id": rest.pop("id", None) or "", "name": rest.pop("name", None) or ""}
    return _made(ToolCallContent, own | {"args": _arguments(rest.pop("arguments", None))}, rest)


def _arguments(arguments: object) -> object:
    """Return arguments as a mapping or as text; JSON of another type becomes text, which is then found malformed."""
    if arguments is None:
        return EMPTY
    return arguments if isinstance(arguments, str | Mapping) else json.dumps(arguments, default=str)


def extra_fields(kind: type[Value], rest: Mapping[str, Any]) -> Fields:
    """Rename the keys that `kind` has fields for, so that none is read as one."""
    return {f"source_{key}" if key in kind.model_fields else key: value for key, value in rest.items()}


def _made(kind: type[Block], own: Fields, rest: Mapping[str, Any]) -> Block:
    return kind.from_dict(own | extra_fields(kind, rest))


def _block_of(part: object) -> Content:
    if isinstance(part, str):
        return TextContent(content=part)
    if isinstance(part, Value):
        return part  # type: ignore[return-value] # another value is refused when the message is validated
    if not isinstance(part, Mapping) or not all(isinstance(key, str) for key in part):
        raise InvalidMessage(f"A {type(part).__name__} is no content part, unless it has strings as keys.")
    kind = part.get("type", "text" if "text" in part else None)
    if not isinstance(kind, str):
        raise InvalidMessage(f"A content part needs a type; this one has the keys {sorted(map(str, part))}.")
    own, mark = _OWN.get(kind, (None, ""))
    if own is not None and mark in part:
        return own.from_dict(part)  # type: ignore[return-value] # a row of _OWN is a block
    reader = _READERS.get(kind)
    if reader is None:
        return _unknown(kind, part)
    try:
        return reader({key: value for key, value in part.items() if key != "type"})
    except (InvalidInput, KeyError, AttributeError, TypeError):  # whatever is wrong with it, it is kept
        return _unknown(kind, part)


def _unknown(kind: str, part: Mapping[str, Any]) -> UnknownContent:
    """Keep a part whole, wrapped if its type is one of palaver's own."""
    if kind in _OWN or "changes" in part:
        return UnknownContent(type="unreadable", part=dict(part))
    return UnknownContent.from_dict({"type": kind, **part})


# --- readers: each receives the keys of a part beside its type, removes those it reads, and keeps the rest as extra fields ---


def _text(rest: Fields) -> Content:
    return _made(TextContent, {"content": rest.pop("text")}, rest)


def _named_text(kind: str) -> Callable[[Fields], Content]:
    """Read a text part whose type says more than text; the type stays as ``part_type``."""
    key = "refusal" if kind == "refusal" else "text"
    return lambda rest: _made(TextContent, {"content": rest.pop(key), "part_type": kind}, rest)


def _image_url(rest: Fields) -> Content:
    image = rest.pop("image_url")
    if isinstance(image, Mapping):
        rest |= {key: value for key, value in image.items() if key != "url"}
        image = image["url"]
    return _made(ImageContent, {"images": (Media.from_text(image),)}, rest)


def _input_audio(rest: Fields) -> Content:
    sound = rest.pop("input_audio")
    medium = Media.from_text(sound["data"], "audio", f"audio/{sound.get('format', '')}")
    return _made(AudioContent, {"audio": (medium,)}, rest)


def _source(rest: Fields) -> Content:
    source = rest.pop("source")
    data = source[{"url": "url", "base64": "data"}[source["type"]]]
    return _made(ImageContent, {"images": (Media.from_text(data, "image", source.get("media_type", "")),)}, rest)


def _thinking(rest: Fields) -> Content:
    own = {"content": rest.pop("thinking"), "signature": rest.pop("signature", None) or "", "provider": "anthropic"}
    return _made(ThinkingContent, own, rest)


def _redacted_thinking(rest: Fields) -> Content:
    return _made(ThinkingContent, {"redacted": rest.pop("data"), "provider": "anthropic"}, rest)


def _tool_use(rest: Fields) -> Content:
    own = {"id": rest.pop("id"), "name": rest.pop("name"), "args": _arguments(rest.pop("input", None))}
    return _made(ToolCallContent, own, rest)


def _tool_result(rest: Fields) -> Content:
    own = {"id": rest.pop("tool_use_id"), "content": result_of(rest.pop("content", None))}
    return _made(ToolResultContent, own | {"is_error": bool(rest.pop("is_error", None))}, rest)


_READERS: dict[str, Callable[[Fields], Content]] = {
    "text": _text,
    "input_text": _named_text("input_text"),
    "output_text": _named_text("output_text"),
    "refusal": _named_text("refusal"),
    "image_url": _image_url,
    "input_image": _image_url,
    "input_audio": _input_audio,
    "image": _source,
    "thinking": _thinking,
    "redacted_thinking": _redacted_thinking,
    "tool_use": _tool_use,
    "tool_result": _tool_result,
}


# --- and back ---------------------------------------------------------------------------------------------------------------


def part_of(block: Content) -> list[dict[str, Any]]:
    """Return a block as chat-completions parts; an image block may give several.

    Media whose bytes are not in memory, and blocks that chat completions has no part for, become palaver's own dict.
    """
    if isinstance(block, TextContent):
        return [{"type": "text", "text": block.content}]
    if isinstance(block, ImageContent) and all(image.url or image.data is not None for image in block.images):
        addresses = [f"data:{kind};base64,{data}" if kind else data for data, kind in block.to_base64()]
        return [{"type": "image_url", "image_url": {"url": address}} for address in addresses]
    if isinstance(block, AudioContent) and all(sound.data is not None for sound in block.audio):
        formats = [(data, kind.removeprefix("audio/").replace("mpeg", "mp3")) for data, kind in block.to_base64()]
        return [{"type": "input_audio", "input_audio": {"data": data, "format": kind}} for data, kind in formats]
    return [thaw(block.model_dump(mode="json", exclude_defaults=True)) | {"type": block.type}]
