"""The dialect of Google's Gemini. Responses of functions are words of the user; user and model alternate, and the user begins.

Calls may have no ids: then a response answers the first open call of its name.
Source: ai.google.dev/api/caching, `Content` and `Part`; ai.google.dev/gemini-api/docs/thought-signatures.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from palaver.errors import InvalidInput, InvalidMessage
from palaver.log import ToolSpec
from palaver.messages import (
    AssistantMessage,
    Content,
    ImageContent,
    Media,
    Message,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UnknownContent,
    UserMessage,
    canonical_json,
)
from palaver.plurals import a_type
from palaver.providers.dialect import Dialect, Item, Shown, changed_text, parts_shown

_UNNAMED = "call-without-id-"
_SIGNATURE = "thoughtSignature"

_CAMEL: Mapping[str, str] = MappingProxyType(
    {
        "function_call": "functionCall",
        "function_response": "functionResponse",
        "inline_data": "inlineData",
        "file_data": "fileData",
        "mime_type": "mimeType",
        "file_uri": "fileUri",
        "display_name": "displayName",
        "thought_signature": _SIGNATURE,
        "executable_code": "executableCode",
        "code_execution_result": "codeExecutionResult",
        "video_metadata": "videoMetadata",
    }
)
"""Keys that Google's client writes in snake case."""

_NESTED = frozenset({"parts", "functionCall", "functionResponse", "inlineData", "fileData"})
"""Keys that contain more such keys. What other keys contain, such as arguments, is the caller's."""


class Gemini(Dialect):
    """Contents of Gemini."""

    name = "gemini"
    items = "contents"
    system = "systemInstruction"
    model_role = "model"
    content = frozenset({"parts"})

    def spelled(self, item: Item) -> Item:
        """Return a content with the keys of Gemini's JSON, and bytes as base64; the same object if it has them already."""
        return _with_keys(item)

    def reader(self) -> Callable[..., Message]:
        """Return a function that reads the contents of one list in order."""
        return _ContentReader().read

    def patch(self, item: Item, message: Message, shown: Shown) -> Item | None:
        """Return a content that shows only some parts, or shows them in another form."""
        return {**item, "parts": parts_shown(item["parts"], message, shown, _changed)} if shown else None

    def say(self, text: str) -> Item:
        """Return a content of the user."""
        return {"role": "user", "parts": [{"text": text}]}

    def answer(self, result: ToolResultContent, _call: Item) -> Item:
        """Return a content with the response of a function."""
        named = {} if result.id.startswith(_UNNAMED) else {"id": result.id}
        said = {"error" if result.is_error else "output": result.text()}
        return {"role": "user", "parts": [{"functionResponse": {**named, "name": result.name, "response": said}}]}

    def declare(self, tool: ToolSpec) -> Item:
        """Return the schema of a tool."""
        said = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
        return {"functionDeclarations": [said]}

    def join(self, one: Item, other: Item) -> Item:
        """Return two neighbours of one role as one content."""
        return {"role": one.get("role") or "user", "parts": [*(one.get("parts") or ()), *(other.get("parts") or ())]}


def _changed(part: Any, content: Content) -> Any:  # noqa: ANN401 - any part
    response = part.get("functionResponse") if isinstance(part, Mapping) else None
    if isinstance(response, Mapping) and isinstance(content, ToolResultContent):
        said = {"error" if content.is_error else "output": content.text()}
        return {**part, "functionResponse": {**response, "response": said}}
    changed = changed_text(part, content)
    return {key: value for key, value in changed.items() if key not in {"type", _SIGNATURE}}


def _with_keys(content: Item) -> Item:
    changed = {_CAMEL.get(key, key): _camel(_CAMEL.get(key, key), value) for key, value in content.items()}
    same = changed.keys() == content.keys() and all(changed[key] is content[key] for key in content)
    return content if same else changed


def _camel(key: str, value: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if key not in _NESTED:
        return value
    if isinstance(value, Mapping):
        return _with_keys(value)
    if isinstance(value, list | tuple):
        parts = [_with_keys(part) if isinstance(part, Mapping) else part for part in value]
        return value if all(part is one for part, one in zip(parts, value, strict=True)) else parts
    return value


class _ContentReader:
    """Reads the contents of one list in order, and remembers the calls that wait for a response."""

    def __init__(self) -> None:
        self._open: list[tuple[str, str]] = []
        self._made = 0

    def read(self, content: Item, **fields: Any) -> Message:  # noqa: ANN401 - fields of a message
        """Read a content."""
        role, parts = content.get("role") or "user", content.get("parts") or ()
        if role not in ("user", "model", "function") or not isinstance(parts, list | tuple):
            raise InvalidMessage(
                f"A content has the role `user` or `model` and a list of parts, not the role {role!r} and {a_type(parts)}."
            )
        blocks = tuple(map(self._block, parts))
        if role == "model":
            return AssistantMessage(contents=blocks, **fields)
        answers = bool(blocks) and all(isinstance(block, ToolResultContent) for block in blocks)
        return (ToolMessage if answers else UserMessage)(contents=blocks, **fields)

    def _block(self, part: object) -> Content:
        if isinstance(part, str):
            return TextContent(part)
        if not isinstance(part, Mapping):
            raise InvalidMessage(f"A part is an object, not {a_type(part)}.")
        signed = {_SIGNATURE: part[_SIGNATURE]} if part.get(_SIGNATURE) else {}
        call, response, text = part.get("functionCall"), part.get("functionResponse"), part.get("text")
        if isinstance(call, Mapping):
            args, name = call.get("args"), str(call.get("name") or "")
            call_id = self._called(call, name)
            return ToolCallContent(call_id, name, args=args if isinstance(args, Mapping) else {}, artefact=signed)
        if isinstance(response, Mapping):
            said, failed = _response(response.get("response"))
            name = str(response.get("name") or "")
            return ToolResultContent(id=self._answered(response, name), name=name, content=said, is_error=failed)
        if isinstance(text, str):
            thought = ThinkingContent(text, provider="google", artefact=signed) if part.get("thought") else None
            return thought or TextContent.from_dict({"content": text, **signed})
        return _media(part)

    def _called(self, call: Item, name: str) -> str:
        call_id = str(call.get("id") or self._fresh())
        self._open.append((call_id, name))
        return call_id

    def _answered(self, response: Item, name: str) -> str:
        given = response.get("id")
        call = next(
            (waiting for waiting in self._open if given == waiting[0] or (not given and name == waiting[1])), None
        )
        if call is None:
            return str(given or self._fresh())
        self._open.remove(call)
        return call[0]

    def _fresh(self) -> str:
        self._made += 1
        return f"{_UNNAMED}{self._made}"


def _response(response: object) -> tuple[str, bool]:
    """Return what a function said and whether it failed: its `output` or `error`, or else all of it as JSON."""
    if isinstance(response, Mapping) and len(response) == 1:
        ((key, said),) = response.items()
        if key in {"output", "error"}:
            return (said if isinstance(said, str) else canonical_json(said).decode()), key == "error"
    return canonical_json({} if response is None else response).decode(), False


def _media(part: Item) -> Content:
    data = part.get("inlineData")
    if isinstance(data, Mapping):
        try:
            return ImageContent([Media.from_text(str(data.get("data")), "image", str(data.get("mimeType") or ""))])
        except InvalidInput:  # not an image that palaver knows: the part stays as it is
            pass
    kind = next((key for key in part if key not in {"thought", _SIGNATURE}), "part")
    return UnknownContent(type=f"gemini.{kind}", part=dict(part))


DIALECT = Gemini()
