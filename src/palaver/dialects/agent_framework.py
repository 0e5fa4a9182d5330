"""Messages of Microsoft's Agent Framework: the JSON of `Message.to_dict`, and its message objects.

Source: `agent_framework/_types.py`, learn.microsoft.com/agent-framework. The package itself is not needed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic_core import to_jsonable_python

from palaver.dialects.frames import Part, PartFrames, PartPlace, changed, difference
from palaver.errors import InvalidMessage
from palaver.log import ToolSpec
from palaver.messages import (
    AudioContent,
    Content,
    ImageContent,
    Message,
    Role,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolResultContent,
    thaw,
)
from palaver.plurals import a_type
from palaver.wire.script import ChangeNotes, How

NAME = "agent-framework"
_BESIDE: Part = {"additional_properties": {}}
"""What each message and each part has beside what it says."""

_PARTS = PartFrames(
    NAME,
    "type",
    (
        PartPlace("text", ("text",), TextContent),
        PartPlace("text_reasoning", ("text",), ThinkingContent),
        PartPlace("uri", ("uri",), ImageContent),
        PartPlace("data", ("uri",), ImageContent),
        PartPlace("uri", ("uri",), AudioContent),
        PartPlace("data", ("uri",), AudioContent),
    ),
    media_type="media_type",
    beside=_BESIDE,
)
_ROLES = {role.value: role for role in (Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL)}


class AgentFramework:
    """Messages of the Agent Framework. Each is one message."""

    name = NAME

    def reader(self) -> Callable[..., Sequence[Message]]:
        """Return a function that reads the messages of one list in order."""
        return _read

    def write(self, messages: Sequence[Message], notes: ChangeNotes) -> list[Mapping[str, Any]]:
        """Write messages; the results of one answer are one item, unless they were read from several."""
        items: list[Part] = []
        batch: object = None
        for message in messages:
            before, batch = batch, _batch(message)
            results = [_returned(result) for result in message.tool_results()]
            parts = [part for content in message.contents for part in _said(content, notes)]
            if results and batch != before:
                items.append(_item(message, "tool", results))
            elif results:
                items[-1]["contents"] += results
            if message.role is Role.TOOL and (results or batch == before):
                items[-1]["contents"] += parts
            elif parts or (not results and NAME in message.metadata):
                items.append(_item(message, "", parts))
                batch = None
        return list(items)

    def declare(self, tool: ToolSpec) -> Mapping[str, Any]:
        """Return the schema of a tool, as `FunctionTool.to_json_schema_spec` writes it."""
        function = {"name": tool.name, "description": tool.description, "parameters": thaw(tool.parameters)}
        return {"type": "function", "function": function}


# --- reading ------------------------------------------------------------------------------------------------------------


def _read(item: Any, **fields: Any) -> Sequence[Message]:  # noqa: ANN401 - JSON or an object, and fields of messages
    if not isinstance(item, Mapping) and type(item).__module__.startswith("agent_framework."):
        item = to_jsonable_python(item.to_dict(), fallback=repr)
    parts = item.get("contents") if isinstance(item, Mapping) else None
    if not isinstance(parts, list | tuple) or not isinstance(item.get("role"), str):
        raise InvalidMessage(
            f"A message of the Agent Framework is a Message or its to_dict(), not {a_type(item)}.",
            hint="It has a role and a list of contents.",
        )
    if wrong := [part for part in parts if not isinstance(part, Mapping)]:
        raise InvalidMessage(f"A content of a message is an object, not {a_type(wrong[0])}.")
    role = _ROLES.get(item["role"], Role.USER)
    author = item.get("author_name")
    name = {"name": author} if isinstance(author, str) and author else {}
    contents = tuple(_content(part, role) for part in parts)
    message = Message.from_dict({**fields, **name, "role": role, "contents": contents})
    about = {key: value for key, value in item.items() if key != "contents"}
    kept = difference(about, _about(message))
    return (message.model_copy(update={"metadata": {NAME: kept}}),)


def _content(part: Mapping[str, Any], role: Role) -> Content:
    kind = part.get("type")
    if kind == "function_call" and role is Role.ASSISTANT and not part.get("informational_only"):
        return _call(part)
    if kind == "function_result" and role is Role.TOOL:
        return _result(part)
    return _PARTS.read(part)


def _call(part: Mapping[str, Any]) -> Content:
    args = part.get("arguments")
    fields: Part = {"id": str(part.get("call_id") or ""), "name": str(part.get("name") or "")}
    fields["args"] = args if isinstance(args, str | Mapping) else {}
    kept: Part = {"object": True} if isinstance(args, Mapping) else {}
    kept |= difference(part, _asked(ToolCallContent.from_dict({**fields, NAME: kept})))
    return ToolCallContent.from_dict({**fields, **({NAME: kept} if kept else {})})


def _result(part: Mapping[str, Any]) -> Content:
    said, items = part.get("result"), part.get("items")
    blocks: tuple[Content, ...] = ()
    if isinstance(items, list | tuple) and all(isinstance(item, Mapping) for item in items):
        blocks = tuple(map(_PARTS.read, items))
    text = _text(said)
    alone = blocks == (TextContent(content=text),)
    fields: Part = {
        "id": str(part.get("call_id") or ""),
        "content": blocks if blocks and not alone else text,
        "is_error": part.get("exception") is not None,
    }
    kept = difference(part, _returned(ToolResultContent.from_dict(fields)))
    return ToolResultContent.from_dict({**fields, **({NAME: kept} if kept else {})})


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# --- writing ------------------------------------------------------------------------------------------------------------


def _about(message: Message) -> Part:
    """Return a message without its contents."""
    role = "assistant" if message.is_assistant_side else message.role.value if message.role.value in _ROLES else "user"
    return {"type": "message", "role": role, **_BESIDE}


def _batch(message: Message) -> object:
    """Return what messages with results of one item have in common."""
    return message.metadata.get("batch_id", message.id) if NAME in message.metadata else message.role


def _item(message: Message, role: str, parts: list[Part]) -> Part:
    about = _about(message) | ({"role": role} if role else {})
    return {**changed(about, thaw(message.metadata.get(NAME) or {})), "contents": parts}


def _said(content: Content, notes: ChangeNotes) -> Sequence[Part]:
    if isinstance(content, ToolResultContent):
        return ()
    if isinstance(content, ToolCallContent):
        return (_asked(content),)
    parts = _parts(content)
    if any(
        "additional_properties" not in part and "type" not in (_PARTS.frame(content) or {}).get("part", {})
        for part in parts
    ):
        notes.add(None, content.type, How.DROPPED, "the Agent Framework has no content for it")
        return ()
    return parts


def _parts(content: Content) -> list[Part]:
    """Write a block as parts. One from elsewhere has the type of its address, and its signature."""
    parts = _PARTS.write(content)
    if _PARTS.frame(content) is not None:
        return parts
    if isinstance(content, ThinkingContent) and content.signature:
        return [{**part, "protected_data": content.signature} for part in parts]
    return [_medium(part) if isinstance(part.get("uri"), str) else part for part in parts]


def _medium(part: Part) -> Part:
    return {"media_type": "image/*", **part, "type": "data" if part["uri"].startswith("data:") else "uri"}


def _asked(call: ToolCallContent) -> Part:
    kept = thaw((call.model_extra or {}).get(NAME) or {})
    args = thaw(call.args) if kept.pop("object", False) and call.error is None else call.arguments
    plain = {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": args, **_BESIDE}
    return changed(plain, kept)


def _returned(result: ToolResultContent) -> Part:
    blocks = (TextContent(content=result.content),) if isinstance(result.content, str) else result.content
    items = [part for block in blocks for part in _parts(block)]
    text = "\n".join([block.content for block in blocks if isinstance(block, TextContent) and block.content])
    plain = {"type": "function_result", "call_id": result.id, "result": text, "items": items, **_BESIDE}
    if result.is_error:
        plain["exception"] = text
    kept = thaw((result.model_extra or {}).get(NAME) or {})
    value = kept.get("more", {}).get("result", text)
    if value != text and _text(value) != text:  # a policy has cut it since
        del kept["more"]["result"]
    return changed(plain, kept)


DIALECT = AgentFramework()
