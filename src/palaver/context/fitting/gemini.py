"""Contents of Gemini's interface, read as messages, and pieces written as such contents.

Google gives calls no ids unless asked to; then a response answers the first open call of its name.
Source: ai.google.dev/api/caching, `Content` and `Part`; ai.google.dev/gemini-api/docs/thought-signatures.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from palaver.context.fitting.pieces import Piece
from palaver.context.fitting.turns import Turns
from palaver.errors import InvalidInput, InvalidMessage
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
    thaw,
)
from palaver.view import Block
from palaver.wire.words import BEGINS_WITH_ASSISTANT, from_harness, left_out

__all__ = ["TURNS", "camel", "reader", "written"]

_Dict = dict[str, Any]

_UNNAMED = "call-without-id-"
_TEXT, _THOUGHT, _SIGNATURE = "text", "thought", "thoughtSignature"

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
"""The keys of contents and parts that Google's client writes in snake case."""
_HOLDERS = frozenset({"parts", "functionCall", "functionResponse", "inlineData", "fileData"})
"""The keys under which more such keys stand. What is under others (arguments, responses) is the caller's, and stays as it is."""


def camel(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give a content with the keys that its JSON has, whichever its client wrote, and bytes in base64; the very object when it has them."""
    changed = {_CAMEL.get(key, key): _camel(_CAMEL.get(key, key), value) for key, value in content.items()}
    same = changed.keys() == content.keys() and all(changed[key] is content[key] for key in content)
    return content if same else changed


def _camel(key: str, value: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if key not in _HOLDERS:
        return value
    if isinstance(value, Mapping):
        return camel(value)
    if isinstance(value, list | tuple):
        parts = [camel(part) if isinstance(part, Mapping) else part for part in value]
        return value if all(part is one for part, one in zip(parts, value, strict=True)) else parts
    return value


# --- reading ----------------------------------------------------------------------------------------------------------------


def reader() -> Callable[..., Message]:
    """Give what reads the contents of a list in their order: what answers a call is told by the calls before."""
    waiting: list[tuple[str, str]] = []
    made = 0

    def fresh() -> str:
        nonlocal made
        made += 1
        return f"{_UNNAMED}{made}"

    def call_id(call: Mapping[str, Any]) -> str:
        found = str(call.get("id") or fresh())
        waiting.append((found, str(call.get("name"))))
        return found

    def result_id(result: Mapping[str, Any]) -> str:
        named, name = result.get("id"), str(result.get("name"))
        found = next((each for each in waiting if named == each[0] or (not named and name == each[1])), None)
        if found is None:
            return str(named or fresh())
        waiting.remove(found)
        return found[0]

    def read(content: Mapping[str, Any], **fields: Any) -> Message:  # noqa: ANN401 - fields of a message
        role, parts = content.get("role") or "user", content.get("parts") or ()
        if role not in {"user", "model", "function"} or not isinstance(parts, list | tuple):
            raise InvalidMessage(
                f"A content has the role `user` or `model` and a list of parts, not the role {role!r} and a {type(parts).__name__}."
            )
        blocks = tuple(_block(part, call_id, result_id) for part in parts)
        if role == "model":
            return AssistantMessage(contents=blocks, **fields)
        answers = bool(blocks) and all(isinstance(block, ToolResultContent) for block in blocks)
        return ToolMessage(contents=blocks, **fields) if answers else UserMessage(contents=blocks, **fields)

    return read


def _block(part: object, call_id: Callable[..., str], result_id: Callable[..., str]) -> Content:
    if isinstance(part, str):
        return TextContent(part)
    if not isinstance(part, Mapping):
        raise InvalidMessage(f"A part is an object, not a {type(part).__name__}.")
    signed = {_SIGNATURE: part[_SIGNATURE]} if part.get(_SIGNATURE) else {}
    call, result = part.get("functionCall"), part.get("functionResponse")
    if isinstance(call, Mapping):
        args = call.get("args")
        return ToolCallContent(
            id=call_id(call),
            name=str(call.get("name") or ""),
            args=args if isinstance(args, Mapping) else {},
            artefact=signed,
        )
    if isinstance(result, Mapping):
        said, failed = _said(result.get("response"))
        name = str(result.get("name") or "")
        return ToolResultContent(id=result_id(result), name=name, content=said, is_error=failed)
    if isinstance(part.get(_TEXT), str):
        if part.get(_THOUGHT):
            return ThinkingContent(part[_TEXT], provider="google", artefact=signed)
        return TextContent.from_dict({"content": part[_TEXT], **signed})
    return _media(part)


def _said(response: object) -> tuple[str, bool]:
    """Give what a tool said, and whether it failed: `output` or `error`, as the reference has it, or else the whole as JSON."""
    if isinstance(response, Mapping) and len(response) == 1:
        ((key, said),) = response.items()
        if key in {"output", "error"}:
            return (said if isinstance(said, str) else canonical_json(said).decode()), key == "error"
    return canonical_json({} if response is None else response).decode(), False


def _media(part: Mapping[str, Any]) -> Content:
    data = part.get("inlineData")
    if isinstance(data, Mapping):
        try:
            return ImageContent([Media.from_text(str(data.get("data")), "image", str(data.get("mimeType") or ""))])
        except InvalidInput:  # no image, or none that palaver knows: the part is kept as it is
            pass
    kind = next((key for key in part if key not in {_THOUGHT, _SIGNATURE}), "part")
    return UnknownContent(type=f"gemini.{kind}", part=dict(part))


# --- writing ----------------------------------------------------------------------------------------------------------------


def written(piece: Piece, _own: Mapping[str, Any]) -> Iterator[_Dict]:
    """Write a piece."""
    model = piece.side == "assistant"
    parts = [part for side, block in piece.blocks for part in _parts(block, "system" if side == "system" else "")]
    if parts:
        yield {"role": "model" if model else "user", "parts": parts}


def _parts(block: Block, mark: str) -> Iterator[_Dict]:
    content = block.content
    if isinstance(content, TextContent):
        kind = block.derived or mark
        signed = (content.model_extra or {}).get(_SIGNATURE) if block.reason is None else None
        yield {_TEXT: from_harness(kind, content.content) if kind else content.content} | _signed(signed)
    elif isinstance(content, ToolCallContent):
        call = {"name": content.name, "args": thaw(content.args)}
        yield {"functionCall": _named(content.id) | call} | _signed(content.artefact.get(_SIGNATURE))
    elif isinstance(content, ToolResultContent):
        said = {"error" if content.is_error else "output": content.text()}
        yield {"functionResponse": _named(content.id) | {"name": content.name, "response": said}}
    elif isinstance(content, ThinkingContent):
        yield {_TEXT: content.content, _THOUGHT: True} | _signed(content.artefact.get(_SIGNATURE))
    elif isinstance(content, ImageContent):
        yield from map(_image, content.images)
    elif isinstance(content, UnknownContent) and "part" in (content.model_extra or {}):
        yield dict(thaw(content.model_extra["part"]))
    else:
        yield {_TEXT: left_out(content.type, "this interface cannot carry it", block.origin)}


def _named(call_id: str) -> _Dict:
    return {} if call_id.startswith(_UNNAMED) or not call_id else {"id": call_id}


def _signed(signature: object) -> _Dict:
    return {_SIGNATURE: signature} if isinstance(signature, str) and signature else {}


def _image(image: Media) -> _Dict:
    if image.url is not None:
        return {"fileData": {"fileUri": image.url}}
    data, media_type = image.to_base64()
    return {"inlineData": {"mimeType": media_type, "data": data}}


def _joined(one: Mapping[str, Any], other: Mapping[str, Any]) -> _Dict:
    parts: Sequence[Any] = [*(one.get("parts") or ()), *(other.get("parts") or ())]
    return {"role": one.get("role") or "user", "parts": list(parts)}


TURNS = Turns("model", lambda: {"role": "user", "parts": [{_TEXT: BEGINS_WITH_ASSISTANT}]}, _joined)
"""Who speaks when."""
