"""The convenient and foreign forms of a message's content, read into blocks and written back.

The known parts are those of OpenAI chat completions and responses, of Anthropic messages, of Vercel's AI SDK, and palaver's own blocks as dicts. A key that a
block has no field for stays on it, as ``source_<key>`` where the block has a field of that name. An unknown part, or one with an unreadable
payload, stays whole as UnknownContent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
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
from palaver.messages.frozen import EMPTY, Replaced, thaw
from palaver.messages.media import Media
from palaver.messages.roles import Role
from palaver.messages.value import Value, listed


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A view of a tool-call block, with the outcome if it is known.

    Attributes:
        id: Pairs the call with its result.
        name: The tool's name.
        arguments: The arguments; empty if the model's text could not be read.
        result: What the tool returned.
        result_str: The result as the model sees it.
        error_message: Why it failed, or None.
    """

    id: str = ""
    name: str = ""
    arguments: Mapping[str, Any] = field(default_factory=lambda: EMPTY)
    result: Any = None
    result_str: str | None = None
    error_message: str | None = None

    @property
    def success(self) -> bool:
        """Whether it ran and did not fail."""
        return self.error_message is None and (self.result is not None or self.result_str is not None)

    def equals(self, other: FunctionCall) -> bool:
        """Return whether both ask the same tool for the same thing, whatever their ids."""
        return self.name == other.name and self.arguments == other.arguments

    def is_repeated(self, earlier: Iterable[FunctionCall]) -> bool:
        """Return whether an earlier call asked for the same."""
        return any(self.equals(call) for call in earlier)

    @classmethod
    def of(cls, block: ToolCallContent) -> FunctionCall:
        """Return the view of a block."""
        extra = block.model_extra
        return cls(
            id=block.id,
            name=block.name,
            arguments=block.args,
            result=extra.get("result"),
            result_str=extra.get("result_str"),
            error_message=extra.get("error_message") or block.error,
        )

    def to_block(self) -> ToolCallContent:
        """Return the block; the outcome goes into extra fields of the same names."""
        outcome = {"result": self.result, "result_str": self.result_str, "error_message": self.error_message}
        known = {name: value for name, value in outcome.items() if value is not None}
        return ToolCallContent.from_dict({"id": self.id, "name": self.name, "args": self.arguments, **known})


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
        return tuple(map(_block_of, content))
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
    return tuple(map(call_of, listed(calls, "Tool calls")))


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
        raise InvalidMessage(f"A {type(call).__name__} is not a tool call.", hint="Pass the dict of chat completions.")
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
        raise InvalidMessage(f"A {type(part).__name__} is not a content part, unless it has strings as keys.")
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


def _words(kind: type[Block], name: str, key: str, **fields: str) -> Callable[[Fields], Block]:
    """Read a part whose words are under one key as a block with these words in a field, and with fields that all such parts share."""
    return lambda rest: _made(kind, {name: rest.pop(key), **fields}, rest)


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


def _tool_use(rest: Fields) -> Content:
    own = {"id": rest.pop("id"), "name": rest.pop("name"), "args": _arguments(rest.pop("input", None))}
    return _made(ToolCallContent, own, rest)


def _tool_result(rest: Fields) -> Content:
    own = {"id": rest.pop("tool_use_id"), "content": result_of(rest.pop("content", None))}
    return _made(ToolResultContent, own | {"is_error": bool(rest.pop("is_error", None))}, rest)


def _sdk_call(rest: Fields) -> Content:
    args = rest.pop("input") if "input" in rest else rest.pop("args", None)  # version 4 of the AI SDK has `args`
    return _made(
        ToolCallContent, {"id": rest.pop("toolCallId"), "name": rest.pop("toolName"), "args": _arguments(args)}, rest
    )


def _sdk_result(rest: Fields) -> Content:
    """Read a result of the AI SDK: `output` says what kind its value is; version 4 has the value alone, as `result`."""
    output = rest.pop("output") if "output" in rest else {"type": "json", "value": rest.pop("result")}
    kind, value = output["type"], output.get("value", output.get("reason", ""))
    parts = value if kind == "content" or isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    failed = kind.startswith(("error", "execution-denied")) or bool(rest.pop("isError", None))
    own = {"id": rest.pop("toolCallId"), "name": rest.pop("toolName"), "content": result_of(parts), "is_error": failed}
    return _made(ToolResultContent, own, rest)


_READERS: dict[str, Callable[[Fields], Content]] = {
    "text": _words(TextContent, "content", "text"),
    "input_text": _words(TextContent, "content", "text", part_type="input_text"),
    "output_text": _words(TextContent, "content", "text", part_type="output_text"),
    "refusal": _words(TextContent, "content", "refusal", part_type="refusal"),
    "image_url": _image_url,
    "input_image": _image_url,
    "input_audio": _input_audio,
    "image": _source,
    "thinking": _thinking,
    "redacted_thinking": _words(ThinkingContent, "redacted", "data", provider="anthropic"),
    "tool_use": _tool_use,
    "tool_result": _tool_result,
    "tool-call": _sdk_call,
    "tool-result": _sdk_result,
    "reasoning": _words(ThinkingContent, "content", "text"),
}


# --- and back ---------------------------------------------------------------------------------------------------------------


def part_of(block: Content) -> list[dict[str, Any]]:
    """Return a block as chat-completions parts; an image block may become several.

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


CONVENIENT = frozenset({"content", "tool_calls", "function_calls", "tool_call_id", "static"})
"""The keywords of a message's constructor that are not fields. ``static`` is ignored: stored text is never a template."""

_Contents = tuple[Any, ...]  # blocks, or their fields before they are validated


def take_convenient(role: Role, values: dict[str, Any]) -> None:
    """Replace the convenient keywords among a message's fields by blocks in ``contents``."""
    content, call_id = values.pop("content", None), values.pop("tool_call_id", None)
    calls = (*calls_of(values.pop("tool_calls", None)), *calls_of(values.pop("function_calls", None)))
    values.pop("static", None)
    metadata = values.get("metadata")
    known = metadata if isinstance(metadata, Mapping) else {}  # anything else is refused by validation
    said: _Contents = blocks_of(content)
    if role is Role.TOOL and said and not any(isinstance(block, ToolResultContent) for block in said):
        answered = known.get("tool_call_id", "") if call_id is None else call_id
        said = (ToolResultContent(id=answered, content=result_of(content), name=values.get("name")),)
    elif call_id is not None:
        values["metadata"] = {**known, "tool_call_id": call_id}
    values["contents"] = (*listed(values.get("contents"), "Contents"), *said, *calls)


def content_of(contents: Iterable[Content]) -> str | list[dict[str, Any]] | None:
    """Return the convenient form: a string for one text, parts for more, None for calls or thinking alone.

    For the result of one call it is the result's content in the same form.
    """
    said = _said(contents)
    if len(said) == 1 and isinstance(said[0], TextContent):
        return said[0].content
    if len(said) == 1 and isinstance(said[0], ToolResultContent):
        inner = said[0].content
        return inner if isinstance(inner, str) else [part for block in inner for part in part_of(block)]
    return [part for block in said for part in part_of(block)] or None


def with_content(contents: Iterable[Content], content: object) -> tuple[Content, ...]:
    """Replace what was said, keeping the thinking before it, the calls, and the frame of a single tool result."""
    blocks = tuple(contents)
    said = _said(blocks)
    if len(said) == 1 and isinstance(said[0], ToolResultContent):
        new: tuple[Content, ...] = (said[0].model_copy(update={"content": result_of(content)}),)
    else:
        new = blocks_of(content)
    thoughts = tuple(takewhile(lambda block: isinstance(block, ThinkingContent), blocks))
    return (*thoughts, *new, *(block for block in blocks[len(thoughts) :] if block not in said))


def _said(contents: Iterable[Content]) -> list[Content]:
    return [block for block in contents if not isinstance(block, ThinkingContent | ToolCallContent)]


def changes_in(contents: Iterable[Content]) -> Iterable[Replaced]:
    """Return the changes recorded in blocks, with places that start at ``contents``."""
    for index, block in enumerate(contents):
        place = f"contents[{index}]"
        yield from (change.under(place) for change in block.changes)
        if isinstance(block, ToolResultContent) and isinstance(block.content, tuple):
            for number, part in enumerate(block.content):
                yield from (change.under(f"{place}.content[{number}]") for change in part.changes)
