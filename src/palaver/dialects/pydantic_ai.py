"""Messages of pydantic-ai: the JSON of `ModelMessagesTypeAdapter`, and its message objects.

A request has one message for each of its parts, a response is one message. Source: `pydantic_ai.messages`, ai.pydantic.dev/message-history.
The package itself is not needed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any

from pydantic import ConfigDict, TypeAdapter

from palaver.dialects.frames import Part, PartFrames, PartPlace, changed, difference
from palaver.errors import InvalidMessage
from palaver.log import ToolSpec
from palaver.messages import (
    AudioContent,
    Content,
    ImageContent,
    Message,
    Role,
    Speaker,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolResultContent,
    UnknownContent,
    thaw,
)
from palaver.plurals import a_type
from palaver.wire.script import ChangeNotes, How

NAME = "pydantic-ai"
_INSTRUCTIONS = "instructions"

_PARTS = PartFrames(
    NAME,
    "part_kind",
    (
        PartPlace("text", ("content",), TextContent),
        PartPlace("speech", ("transcript",), TextContent),
        PartPlace("thinking", ("content",), ThinkingContent),
        PartPlace("file", ("content", "data"), ImageContent, safe=True),
        PartPlace("file", ("content", "data"), AudioContent, safe=True),
    ),
    media_type="media_type",
)
"""Parts of responses."""

_CONTENTS = PartFrames(
    NAME,
    "kind",
    (
        PartPlace("text-content", ("content",), TextContent),
        PartPlace("image-url", ("url",), ImageContent),
        PartPlace("audio-url", ("url",), AudioContent),
        PartPlace("binary", ("data",), ImageContent, safe=True),
        PartPlace("binary", ("data",), AudioContent, safe=True),
    ),
    media_type="media_type",
)
"""What the content of a user's prompt and of a result consists of."""

_SAID = {
    "system-prompt": (Role.SYSTEM, None),
    "user-prompt": (Role.USER, None),
    "speech": (Role.USER, None),
    "retry-prompt": (Role.USER, Speaker.HARNESS),
    "retry-feedback": (Role.USER, Speaker.HARNESS),
}
"""The parts of a request that say something, other than results: role and speaker."""

_SIGNERS = {"anthropic": "anthropic", "bedrock": "anthropic", "openai": "openai"}
"""Names of providers that are not Google's."""


class PydanticAI:
    """Messages of pydantic-ai."""

    name = NAME

    def reader(self) -> Callable[..., Sequence[Message]]:
        """Return a function that reads the messages of one list in order."""
        return _HistoryReader().read

    def write(self, messages: Sequence[Message], notes: ChangeNotes) -> list[Mapping[str, Any]]:
        """Write messages: what stands between two answers is one request, unless it was read from several."""
        items: list[Part] = []
        names = {call.id: call.name for message in messages for call in message.tool_calls()}
        for message in messages:
            about: Part = thaw(message.metadata.get(NAME) or {})
            kind = "response" if message.is_assistant_side else "request"
            usage = {"usage": thaw(message.usage)} if message.usage and "item" in about else {}
            if "item" in about or kind == "response" or not items or items[-1]["kind"] != kind:
                items.append({"kind": kind, **about.get("item", _item(message)), **usage, "parts": []})
            parts = items[-1]["parts"]
            parts += () if about.get(_INSTRUCTIONS) else _written(message, about, names, notes)
            for index, part in about.get("beside", ()):
                parts.insert(index, part)
        return [item for item in items if item["parts"]]

    def declare(self, tool: ToolSpec) -> Mapping[str, Any]:
        """Return the definition of a tool, with the fields of `ToolDefinition`."""
        schema = thaw(tool.parameters)
        return {"name": tool.name, "description": tool.description, "parameters_json_schema": schema}


# --- reading ------------------------------------------------------------------------------------------------------------


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:  # noqa: ANN401 - a class
    """Return what writes objects of a class as `ModelMessagesTypeAdapter` does."""
    return TypeAdapter(list[kind], config=ConfigDict(ser_json_bytes="base64"))


class _HistoryReader:
    """Reads one list. Instructions that change are a message of the system, too."""

    def __init__(self) -> None:
        self._instructions = ""

    def read(self, item: Any, **fields: Any) -> Sequence[Message]:  # noqa: ANN401 - JSON or an object, and fields of messages
        """Return the messages of an item."""
        if not isinstance(item, Mapping) and type(item).__module__.startswith("pydantic_ai."):
            kind: Any = type(item)
            (item,) = _adapter(kind).dump_python([item], mode="json")
        parts = item.get("parts") if isinstance(item, Mapping) else None
        if not isinstance(parts, list | tuple) or str(item.get("kind")) not in {"request", "response"}:
            raise InvalidMessage(
                f"A message of pydantic-ai is a ModelRequest, a ModelResponse or its JSON, not {a_type(item)}.",
                hint="Pass all_messages(), or its JSON.",
            )
        if wrong := [part for part in parts if not isinstance(part, Mapping)]:
            raise InvalidMessage(f"A part of a message is an object, not {a_type(wrong[0])}.")
        about = {key: value for key, value in item.items() if key != "parts"}
        said = {**_time(about), **fields}
        if item["kind"] == "response":
            return (_answer(parts, about, said),)
        return tuple(self._asked(parts, about, said))

    def _asked(self, parts: Sequence[Mapping[str, Any]], about: Part, said: Part) -> Iterator[Message]:
        """Yield a message for each part of a request that says something; the first one keeps the others."""
        beside = [[index, part] for index, part in enumerate(parts) if not _speaks(part)]
        first: Part = {"item": about, **({"beside": beside} if beside else {})}
        instructions = about.get("instructions")
        if isinstance(instructions, str) and instructions not in {"", self._instructions}:
            self._instructions = instructions
            fields = {"role": Role.SYSTEM, "content": instructions, "metadata": {NAME: {**first, _INSTRUCTIONS: True}}}
            yield Message.from_dict({**said, **fields})
            first, said = {}, {key: value for key, value in said.items() if key == "timestamp"}
        for part in filter(_speaks, parts):
            yield _message(part, first, {**_time(part), **said})
            first, said = {}, {key: value for key, value in said.items() if key == "timestamp"}
        if first:
            yield Message.from_dict(
                {**said, "role": Role.CUSTOM, "custom_type": NAME, "contents": (), "metadata": {NAME: first}}
            )


def _time(fields: Mapping[str, Any]) -> Part:
    try:
        return {"timestamp": datetime.fromisoformat(str(fields.get("timestamp"))).timestamp()}
    except ValueError:
        return {}


def _answer(parts: Sequence[Mapping[str, Any]], about: Part, said: Part) -> Message:
    if isinstance(about.get("usage"), Mapping):
        said["usage"] = about.pop("usage")
    if isinstance(about.get("model_name"), str):
        said["model"] = about["model_name"]
    contents = tuple(map(_block, parts))
    return Message.from_dict(
        {**said, "role": Role.ASSISTANT, "contents": contents, "metadata": {NAME: {"item": about}}}
    )


def _block(part: Mapping[str, Any]) -> Content:
    if part.get("part_kind") != "tool-call":
        maker = part.get("provider_name")
        thinking: Part = {"provider": _maker(maker)} if isinstance(maker, str) else {}
        if part.get("id") == "redacted_thinking":
            thinking["redacted"] = part.get("signature") or ""
        elif thinking.get("provider", "anthropic") == "anthropic" and isinstance(part.get("signature"), str):
            thinking["signature"] = part["signature"]
        return _PARTS.read(part, **thinking)
    args = part.get("args")
    fields: Part = {"id": str(part.get("tool_call_id") or ""), "name": str(part.get("tool_name") or "")}
    fields["args"] = args if isinstance(args, str | Mapping) else {}
    made = ToolCallContent.from_dict(fields)
    kept: Part = {"text": True} if isinstance(args, str) else {}
    kept |= difference(part, _call(made, text=bool(kept)))
    return ToolCallContent.from_dict({**fields, NAME: kept}) if kept else made


def _maker(name: str) -> str:
    return "google" if name.startswith("google") else _SIGNERS.get(name, name)


def _speaks(part: Mapping[str, Any]) -> bool:
    kind = str(part.get("part_kind"))
    return kind == "tool-return" or (kind in _SAID and bool(part.get("content", part.get("transcript"))))


def _message(part: Mapping[str, Any], about: Part, said: Part) -> Message:
    kind, content = str(part["part_kind"]), part.get("content", part.get("transcript"))
    frame = {key: value for key, value in part.items() if key != ("transcript" if kind == "speech" else "content")}
    kept: Part = {**about, "part": frame}
    if kind == "tool-return" or (kind == "retry-prompt" and part.get("tool_name")):
        outcome = part.get("outcome")
        result = ToolResultContent.from_dict({
            "id": str(part.get("tool_call_id") or ""),
            "name": str(part.get("tool_name") or "") or None,
            "content": _result(content, kept),
            "is_error": kind == "retry-prompt" or (outcome is not None and outcome != "success"),
        })  # fmt: skip
        return Message.from_dict({**said, "role": Role.TOOL, "contents": (result,), "metadata": {NAME: kept}})
    role, speaker = _SAID[kind]
    if kind == "user-prompt" and isinstance(content, list | tuple):
        kept["list"] = True
        contents = tuple(map(_item_of, content))
    else:
        words = _words(content, kept)
        contents = (TextContent(words),) if words else ()
    spoken = {} if speaker is None else {"speaker": speaker}
    return Message.from_dict({**said, **spoken, "role": role, "contents": contents, "metadata": {NAME: kept}})


def _item_of(value: object) -> Content:
    """Read an item of a content."""
    if isinstance(value, str):
        return TextContent(value)
    if isinstance(value, Mapping) and "kind" in value:
        return _CONTENTS.read(value)
    return TextContent.from_dict({"content": _json(value), NAME: {"json": True}})


def _result(content: object, kept: Part) -> str | tuple[Content, ...]:
    """Read what a tool returned: a text, media, or any JSON as its text."""
    items = content if isinstance(content, list | tuple) else [content]
    blocks = tuple(map(_item_of, items))
    if not any(isinstance(block, ImageContent | AudioContent | UnknownContent) for block in blocks):
        return _words(content, kept)
    if items is not content:
        kept["single"] = True
    return blocks


def _words(content: object, kept: Part) -> str:
    if isinstance(content, str):
        return content
    kept["json"] = True
    return _json(content)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


# --- writing ------------------------------------------------------------------------------------------------------------


def _item(message: Message) -> Part:
    """Return the fields of an item for a message from elsewhere."""
    if not message.is_assistant_side:
        return {}
    figures = {"input_tokens": message.usage.input_tokens, "output_tokens": message.usage.output_tokens}
    return {"model_name": message.model} | ({"usage": figures} if message.usage else {})


def _call(call: ToolCallContent, *, text: bool) -> Part:
    args = call.arguments if text or call.error is not None else thaw(call.args)
    return {"part_kind": "tool-call", "tool_name": call.name, "args": args, "tool_call_id": call.id}


def _written(message: Message, about: Part, names: Mapping[str, str], notes: ChangeNotes) -> list[Part]:
    """Write a message as parts."""
    if message.is_assistant_side:
        return [part for content in message.contents for part in _said(content, notes)]
    frame = about.get("part")
    parts = [_returned(result, about, names) for result in message.tool_results()]
    contents = [content for content in message.contents if not isinstance(content, ToolResultContent)]
    if message.role is Role.SYSTEM:
        text = message.text_content()
        return [
            *parts,
            *([{**(frame or {"part_kind": "system-prompt"}), "content": _value(text, about)}] if text else []),
        ]
    if not contents:
        return parts
    if about.get("list") or any(not isinstance(content, TextContent) for content in contents):
        said: object = [value for content in contents for value in _values(content, notes)]
    else:
        said = _value("".join(content.content for content in contents if isinstance(content, TextContent)), about)
    kind = (frame or {"part_kind": "user-prompt"})["part_kind"]
    return [*parts, {**(frame or {"part_kind": kind}), "transcript" if kind == "speech" else "content": said}]


def _returned(result: ToolResultContent, about: Part, names: Mapping[str, str]) -> Part:
    if isinstance(result.content, str):
        said: object = _value(result.content, about)
    elif not about and all(isinstance(block, TextContent) for block in result.content):
        said = result.text()  # a list of texts would be a value in JSON there
    else:
        values = [value for block in result.content for value in _values(block, ChangeNotes())]
        said = values[0] if about.get("single") and len(values) == 1 else values
    name = result.name or names.get(result.id) or "unknown"
    plain = {"part_kind": "tool-return", "tool_name": name, "tool_call_id": result.id}
    if result.is_error:
        plain["outcome"] = "failed"
    return {**about.get("part", plain), "content": said}


def _value(text: str, about: Mapping[str, Any]) -> object:
    """Return the JSON that a text was made from, unless a policy has cut it since."""
    if about.get("json"):
        try:
            return json.loads(text)
        except ValueError:
            pass
    return text


def _values(content: Content, notes: ChangeNotes) -> Sequence[object]:
    kept = _CONTENTS.frame(content) or {}
    if isinstance(content, TextContent) and "at" not in kept:
        return [_value(content.content, kept)]
    return _known(_CONTENTS, content, notes)


def _known(frames: PartFrames, content: Content, notes: ChangeNotes) -> Sequence[Part]:
    """Write a block, unless it is another framework's."""
    parts = frames.write(content)
    if isinstance(content, UnknownContent) and not any({"kind", "part_kind"} & part.keys() for part in parts):
        notes.add(None, content.type, How.DROPPED, "pydantic-ai has no part for it")
        return []
    return parts


def _said(content: Content, notes: ChangeNotes) -> Sequence[Part]:
    kept = _PARTS.frame(content) or {}
    if isinstance(content, ToolCallContent):
        return [changed(_call(content, text=bool(kept.get("text"))), kept)]
    if isinstance(content, ThinkingContent) and not kept:
        artefact = content.artefact
        sealed = (
            content.redacted
            or content.signature
            or artefact.get("encrypted_content")
            or artefact.get("thoughtSignature")
        )
        known = {"id": "redacted_thinking" if content.redacted else artefact.get("id"), "signature": sealed}
        known |= {"provider_name": content.provider or None}
        return [
            {
                "part_kind": "thinking",
                "content": content.content,
                **{key: value for key, value in known.items() if value},
            }
        ]
    if isinstance(content, ImageContent | AudioContent) and not kept:
        return [{"part_kind": "file", "content": part} for part in _CONTENTS.write(content) if part["kind"] == "binary"]
    return _known(_PARTS, content, notes)


DIALECT = PydanticAI()
