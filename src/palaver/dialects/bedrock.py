"""Messages of Amazon Bedrock's Converse, as Strands Agents keeps them. Bytes are base64 in `{"__bytes_encoded__": true, "data": …}`, as in its sessions.

A message is one message: of results where it has some. Source: docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Message.html,
`strands/types`. No package is needed.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from palaver.dialects.frames import Part, PartPlace, changed, difference
from palaver.errors import InvalidInput, InvalidMessage
from palaver.log import ToolSpec
from palaver.messages import (
    Content,
    ImageContent,
    Message,
    Role,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolResultContent,
    UnknownContent,
    thaw,
)
from palaver.messages.media import Media
from palaver.plurals import a_type
from palaver.wire.script import ChangeNotes, How

NAME = "bedrock"
_ENCODED = "__bytes_encoded__"
_BYTES = PartPlace("image", ("source", "bytes", "data"), ImageContent)
_PART = "part"
"""The key of a part that is kept whole."""


class Bedrock:
    """Messages of Converse."""

    name = NAME

    def reader(self) -> Callable[..., Sequence[Message]]:
        """Return a function that reads the messages of one list in order."""
        return _read

    def write(self, messages: Sequence[Message], notes: ChangeNotes) -> list[Mapping[str, Any]]:
        """Write messages: neighbours of one role are one item, unless they were read from several."""
        items: list[Part] = []
        before: object = None
        for message in messages:
            role = "assistant" if message.is_assistant_side else "user"
            kept = message.metadata.get(NAME)
            batch = role if kept is None else message.metadata.get("batch_id", message.id)
            parts = [part for content in message.contents for part in _part(content, notes)]
            if batch == before:
                items[-1]["content"] += parts
            elif parts or kept is not None:
                items.append({**changed({"role": role}, thaw(kept or {})), "content": parts})
                before = batch
        return list(items)

    def declare(self, tool: ToolSpec) -> Mapping[str, Any]:
        """Return the specification of a tool, as Strands has it."""
        return {"name": tool.name, "description": tool.description, "inputSchema": {"json": thaw(tool.parameters)}}


# --- reading ------------------------------------------------------------------------------------------------------------


def _encoded(value: Any) -> Any:  # noqa: ANN401 - JSON with bytes
    """Return JSON."""
    if isinstance(value, bytes | bytearray):
        return {_ENCODED: True, "data": base64.b64encode(value).decode()}
    if isinstance(value, Mapping):
        return {key: _encoded(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_encoded(each) for each in value]
    return value


def _read(item: Any, **fields: Any) -> Sequence[Message]:  # noqa: ANN401 - a dict, and fields of messages
    parts = item.get("content") if isinstance(item, Mapping) else None
    if not isinstance(parts, list | tuple) or item.get("role") not in ("user", "assistant"):
        raise InvalidMessage(
            f"A message of Converse has a role and a list of contents, this one is {a_type(item)}.",
            hint="The roles are user and assistant.",
        )
    if wrong := [part for part in parts if not isinstance(part, Mapping)]:
        raise InvalidMessage(f"A content of a message is an object, not {a_type(wrong[0])}.")
    about = {key: _encoded(value) for key, value in item.items() if key != "content"}
    role = Role(item["role"])
    if role is Role.USER and any("toolResult" in part for part in parts):
        role = Role.TOOL
    contents = tuple(_content(_encoded(part), role) for part in parts)
    metadata = {NAME: difference(about, {"role": about["role"]})}
    return (Message.from_dict({**fields, "role": role, "contents": contents, "metadata": metadata}),)


def _content(part: Part, role: Role) -> Content:
    """Return a part as a block; whole if it cannot be written back from one."""
    found: Content | None = None
    if len(part) == 1:
        ((key, value),) = part.items()
        try:
            found = _known(key, value, role)
        except (InvalidInput, InvalidMessage, ValueError):
            found = None
    if found is None or _part(found, ChangeNotes()) != [part]:
        return UnknownContent(type=NAME, part=part)
    return found


def _known(key: str, value: Any, role: Role) -> Content | None:  # noqa: ANN401, PLR0911 - JSON, and one for each kind of part
    if key == "text" and isinstance(value, str):
        return TextContent(value)
    if not isinstance(value, Mapping):
        return None
    if key == "image":
        return _image(value)
    if key == "reasoningContent":
        return _thinking(value)
    if key == "toolUse" and role is Role.ASSISTANT:
        args = value.get("input")
        made = {"id": str(value.get("toolUseId") or ""), "name": str(value.get("name") or ""), "args": args}
        if not isinstance(args, str | Mapping):
            return None
        plain = _asked(ToolCallContent.from_dict(made))
        return ToolCallContent.from_dict({**made, **_kept(value, plain)})
    if key == "toolResult" and role is Role.TOOL:
        return _result(value)
    return None


def _kept(value: Mapping[str, Any], plain: Mapping[str, Any]) -> Part:
    kept = difference(value, plain)
    return {NAME: kept} if kept else {}


def _image(value: Mapping[str, Any]) -> Content | None:
    data = _BYTES.get(value)
    if not isinstance(data, str):
        return None
    return ImageContent(images=(Media.from_text(data, "image", f"image/{value.get('format')}"),))


def _thinking(value: Mapping[str, Any]) -> Content | None:
    said = value.get("reasoningText")
    if isinstance(said, Mapping) and isinstance(said.get("text"), str):
        signed = {"signature": said["signature"]} if isinstance(said.get("signature"), str) else {}
        return ThinkingContent.from_dict({"content": said["text"], "provider": "anthropic", **signed})
    secret = value.get("redactedContent")
    data = secret.get("data") if isinstance(secret, Mapping) else None
    return ThinkingContent(redacted=data, provider="anthropic") if isinstance(data, str) else None


def _result(value: Mapping[str, Any]) -> Content | None:
    parts = value.get("content")
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        return None
    blocks = tuple(_content(part, Role.TOOL) for part in parts)
    fields: Part = {"id": str(value.get("toolUseId") or ""), "is_error": value.get("status") == "error"}
    alone = blocks[0].content if len(blocks) == 1 and isinstance(blocks[0], TextContent) else None
    if len(parts) == 1 and parts[0].keys() == {"json"}:
        fields |= {"content": json.dumps(parts[0]["json"], ensure_ascii=False), "metadata": {NAME: parts[0]["json"]}}
    else:
        fields["content"] = blocks if alone is None else alone
    plain = _returned(ToolResultContent.from_dict(fields))
    return ToolResultContent.from_dict({**fields, **_kept(value, plain)})


# --- writing ------------------------------------------------------------------------------------------------------------


def _part(content: Content, notes: ChangeNotes) -> Sequence[Part]:  # noqa: PLR0911 - one for each kind of block
    """Write a block as parts."""
    match content:
        case TextContent():
            return [{"text": content.content}]
        case ToolCallContent():
            return [{"toolUse": changed(_asked(content), _frame(content))}]
        case ToolResultContent():
            return [{"toolResult": changed(_returned(content), _frame(content))}]
        case UnknownContent() if content.type == NAME:
            return [thaw((content.model_extra or {})[_PART])]
        case ThinkingContent() if content.redacted:
            return [{"reasoningContent": {"redactedContent": {_ENCODED: True, "data": content.redacted}}}]
        case ThinkingContent() if content.content:
            signed = {"signature": content.signature} if content.signature else {}
            return [{"reasoningContent": {"reasoningText": {"text": content.content, **signed}}}]
        case ImageContent():
            return [_picture(data, kind, notes) for data, kind in content.to_base64()]
        case _:
            notes.add(None, content.type, How.DROPPED, "Converse has no content for it")
            return []


def _frame(content: Content) -> Part:
    kept: Part = thaw((content.model_extra or {}).get(NAME) or {})
    return kept


def _picture(data: str, kind: str, notes: ChangeNotes) -> Part:
    if not kind:
        notes.add(None, "image", How.REPLACED, "Converse takes no address of an image")
        return {"text": f"[an image: {data}]"}
    return {"image": {"format": kind.partition("/")[2], "source": {"bytes": {_ENCODED: True, "data": data}}}}


def _asked(call: ToolCallContent) -> Part:
    return {"toolUseId": call.id, "name": call.name, "input": thaw(call.args) if call.error is None else call.arguments}


def _returned(result: ToolResultContent) -> Part:
    notes = ChangeNotes()
    if not isinstance(result.content, str):
        parts: Sequence[Part] = [part for block in result.content for part in _part(block, notes)]
    else:
        value = thaw(result.metadata).get(NAME)
        same = NAME in result.metadata and json.dumps(value, ensure_ascii=False) == result.content
        parts = [{"json": value} if same else {"text": result.content}]
    return {"toolUseId": result.id, "content": list(parts), "status": "error" if result.is_error else "success"}


DIALECT = Bedrock()
