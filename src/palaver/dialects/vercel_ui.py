"""The messages of Vercel's AI SDK as a page keeps them: `UIMessage`, versions 5 and 6.

An assistant's message has all steps of a turn: texts, reasoning, and each tool call with its result in one part. Source:
ai-sdk.dev/docs/reference/ai-sdk-core/ui-message, and `ui-messages.ts` of the package `ai`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from palaver.errors import InvalidMessage
from palaver.log import ToolSpec
from palaver.messages import (
    AssistantMessage,
    AudioContent,
    Content,
    ImageContent,
    Message,
    Role,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UnknownContent,
    thaw,
)
from palaver.messages.forms import extra_fields, result_of
from palaver.plurals import a_type
from palaver.wire.script import ChangeNotes, How

NAME = "vercel-ui"
_TOOL, _DYNAMIC, _STEP = "tool-", "dynamic-tool", "step-start"
_FAILED = {"output-error": "errorText", "output-denied": "approval"}
"""The states of a tool part whose call failed, and the key that says why."""

_ROLES = frozenset({"system", "user", "assistant"})


class VercelUI:
    """Messages of a page that uses the AI SDK."""

    name = NAME

    def reader(self) -> Callable[..., Sequence[Message]]:
        """Return a function that reads the messages of one list in order."""
        return _read

    def write(self, messages: Sequence[Message], notes: ChangeNotes) -> list[Mapping[str, Any]]:
        """Write messages: an answer, its results and the answers after them are one item."""
        items: list[dict[str, Any]] = []
        calls: dict[str, dict[str, Any]] = {}
        for message in messages:
            if message.role is Role.TOOL or message.is_assistant_side:
                if not items or items[-1]["role"] != "assistant":
                    items.append({"id": message.id, "role": "assistant", "parts": []})
                parts = items[-1]["parts"]
                if message.is_assistant_side:
                    parts.append({"type": _STEP})
            else:
                role = "system" if message.role is Role.SYSTEM else "user"
                parts = []
                items.append({"id": message.id, "role": role, "parts": parts})
            if message.metadata and "metadata" not in items[-1]:
                items[-1]["metadata"] = thaw(message.metadata)
            for content in message.contents:
                parts += _written(content, calls, notes)
        return [item for item in items if item["parts"]]

    def declare(self, tool: ToolSpec) -> Mapping[str, Any]:
        """Return the schema of a tool, as the SDK's `tool()` takes it."""
        return {"name": tool.name, "description": tool.description, "inputSchema": thaw(tool.parameters)}


# --- reading ------------------------------------------------------------------------------------------------------------


def _read(item: Any, **fields: Any) -> Sequence[Message]:  # noqa: ANN401 - JSON, and fields of messages
    if not isinstance(item, Mapping):
        raise InvalidMessage(f"A message of the AI SDK is an object, not {a_type(item)}.")
    role, parts = item.get("role"), item.get("parts")
    if not isinstance(role, str) or role not in _ROLES:
        raise InvalidMessage(f"The role is {role!r}.", hint=f"Roles of the AI SDK: {', '.join(sorted(_ROLES))}.")
    if not isinstance(parts, list | tuple):
        raise InvalidMessage("The message has no list of parts.")
    about = {key: value for key, value in item.items() if key not in {"id", "role", "parts"}}
    metadata = about.pop("metadata", None)
    said = {**fields, "metadata": {**(metadata if isinstance(metadata, Mapping) else {}), **about}}
    if isinstance(item.get("id"), str) and item["id"]:
        said["id"] = item["id"]
    if role != "assistant":
        contents = tuple(content for part in parts for content in _content(part))
        return (Message.from_dict({**said, "role": role, "contents": contents}),)
    return tuple(_steps(parts, said))


def _steps(parts: Sequence[Any], said: Mapping[str, Any]) -> Iterator[Message]:
    """Yield the answer of each step, and the results of its calls."""
    step: list[Content] = []
    results: list[ToolResultContent] = []
    fields = dict(said)

    def close() -> Iterator[Message]:
        nonlocal fields
        if step:
            yield AssistantMessage(contents=tuple(step), **fields)
            fields = {key: value for key, value in said.items() if key == "timestamp"}
        for result in results:
            yield ToolMessage(contents=(result,), **{key: value for key, value in said.items() if key == "timestamp"})
        step.clear()
        results.clear()

    for part in parts:
        kind = part.get("type") if isinstance(part, Mapping) else None
        # an answer ends where its results begin: what follows a finished call in the same step was written after it
        if kind == _STEP or (results and not _is_tool(kind)):
            yield from close()
        step += _content(part)
        if _is_tool(kind):
            results += _result(part)
    yield from close()


def _is_tool(kind: object) -> bool:
    return isinstance(kind, str) and (kind.startswith(_TOOL) or kind == _DYNAMIC)


def _content(part: object) -> Sequence[Content]:
    if not isinstance(part, Mapping) or not isinstance(part.get("type"), str):
        raise InvalidMessage(f"A part of a message is an object with a type, not {a_type(part)}.")
    kind: str = part["type"]
    if kind == _STEP:
        return ()
    rest = {key: value for key, value in part.items() if key != "type"}
    if kind in _WORDS and isinstance(rest.get("text"), str):
        text, block = rest.pop("text"), _WORDS[kind]
        return (block.from_dict({"content": text, **extra_fields(block, rest)}),)
    if kind == "file" and (media := _media(rest)):
        return (media,)
    if _is_tool(kind) and isinstance(rest.get("toolCallId"), str):
        return (_call(kind, rest),)
    return (UnknownContent(**{"type": kind, **rest}),)


_WORDS: Mapping[str, type[TextContent | ThinkingContent]] = {"text": TextContent, "reasoning": ThinkingContent}


def _media(rest: Mapping[str, Any]) -> Content | None:
    """Return a file as a block, if it is an image or a sound."""
    url, kind = rest.get("url"), str(rest.get("mediaType", ""))
    if isinstance(url, str) and kind.startswith("image/"):
        return ImageContent.from_url(url)
    if isinstance(url, str) and kind.startswith("audio/") and url.startswith("data:"):
        return AudioContent.from_base64(url.partition(",")[2], kind)
    return None


_OWN = frozenset({"toolCallId", "toolName", "state", "input", "output", "errorText", "preliminary"})


def _call(kind: str, rest: Mapping[str, Any]) -> ToolCallContent:
    given = rest.get("input", rest.get("rawInput"))
    args = given if isinstance(given, str | Mapping) else {} if given is None else json.dumps(given)
    name = rest.get("toolName") if kind == _DYNAMIC else kind.removeprefix(_TOOL)
    more = {key: value for key, value in rest.items() if key not in _OWN}
    if kind == _DYNAMIC:
        more["dynamic"] = True
    fields = {"id": rest["toolCallId"], "name": str(name or ""), "args": args}
    return ToolCallContent.from_dict({**fields, **extra_fields(ToolCallContent, more)})


def _result(part: Mapping[str, Any]) -> Iterator[ToolResultContent]:
    state, name = str(part.get("state")), str(part.get("toolName") or str(part.get("type")).removeprefix(_TOOL))
    said: dict[str, Any] = {"id": str(part.get("toolCallId", "")), "name": name}
    if state == "output-available":
        output = part.get("output")
        text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
        metadata = {} if isinstance(output, str) else {"output": output}
        yield ToolResultContent.from_dict({**said, "content": result_of(text), "metadata": metadata})
    elif state in _FAILED:
        why = part.get(_FAILED[state])
        text = str(why.get("reason") or "Denied.") if isinstance(why, Mapping) else str(why or "")
        yield ToolResultContent.from_dict({**said, "content": text, "is_error": True, "metadata": {"state": state}})


# --- writing ------------------------------------------------------------------------------------------------------------


def _written(  # noqa: PLR0911 - one for each kind of block
    content: Content, calls: dict[str, dict[str, Any]], notes: ChangeNotes
) -> list[dict[str, Any]]:
    """Write a block as parts; a result goes into the part of its call."""
    match content:
        case TextContent():
            return [{"type": "text", "text": content.content, **_more(content)}]
        case ThinkingContent():
            if content.content or not (content.redacted or content.artefact):
                return [{"type": "reasoning", "text": content.content, **_more(content)}]
            notes.add(None, "thinking", How.DROPPED, "the AI SDK's messages have no encrypted thinking")
            return []
        case ToolCallContent():
            more = _more(content)
            dynamic = more.pop("dynamic", False)
            own = {"type": _DYNAMIC, "toolName": content.name} if dynamic else {"type": f"{_TOOL}{content.name}"}
            part = {**own, "toolCallId": content.id, "state": "input-available", "input": thaw(content.args), **more}
            calls[content.id] = part
            return [part]
        case ToolResultContent():
            _answer(content, calls.pop(content.id, None), notes)
            return []
        case ImageContent() | AudioContent():
            return [
                {"type": "file", "mediaType": kind or "image/*", "url": f"data:{kind};base64,{data}" if kind else data}
                for data, kind in content.to_base64()
            ]
        case _:
            return [thaw(content.model_dump(mode="json", exclude_defaults=True)) | {"type": content.type}]


def _answer(result: ToolResultContent, part: dict[str, Any] | None, notes: ChangeNotes) -> None:
    if part is None:
        notes.add(None, "tool result", How.DROPPED, "its call is not in the list")
    elif result.is_error:
        state = result.metadata.get("state", "output-error")
        part["state"] = state
        if state == "output-error":
            part["errorText"] = result.text()
    else:
        part["state"] = "output-available"
        known = thaw(result.metadata).get("output")
        part["output"] = known if _says(known, result) else _output(result)


def _says(output: object, result: ToolResultContent) -> bool:
    """Return whether a kept output is still what the result says: a policy may have shortened it."""
    return output is not None and json.dumps(output, ensure_ascii=False) == result.content


def _output(result: ToolResultContent) -> object:
    if isinstance(result.content, str) or all(isinstance(block, TextContent) for block in result.content):
        return result.text()
    return [
        thaw(block.model_dump(mode="json", exclude_defaults=True)) | {"type": block.type} for block in result.content
    ]


def _more(content: Content) -> dict[str, Any]:
    more: dict[str, Any] = thaw(dict(content.model_extra or {}))
    return more


DIALECT = VercelUI()
