"""Items of OpenAI's Responses interface, read as messages, and pieces written as such items.

Every item is a message of its own; the items of one response follow each other, and are one response of the model's.
Source: platform.openai.com/docs/api-reference/responses/create, ``input``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from palaver.context.fitting.pieces import Piece
from palaver.errors import InvalidMessage
from palaver.messages import (
    AssistantMessage,
    Content,
    ImageContent,
    Message,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UnknownContent,
    from_chat_dict,
    thaw,
)
from palaver.messages.parts import part_of, result_of
from palaver.view import Block
from palaver.wire.words import from_harness, left_out

__all__ = ["ITEMS", "reader", "unled", "written"]

_Dict = dict[str, Any]

_CALL, _OUTPUT, _REASONING = "function_call", "function_call_output", "reasoning"
_CUSTOM, _CUSTOM_OUTPUT = "custom_tool_call", "custom_tool_call_output"
_REFERENCE = "item_reference"

ITEMS = frozenset({_CALL, _OUTPUT, _CUSTOM, _CUSTOM_OUTPUT, _REASONING, "message", _REFERENCE})
"""Types of items that messages of other interfaces do not have; those of the provider's own tools besides end in `_call`."""


def reader() -> Callable[..., Message]:
    """Give what reads the items of a list in their order: those of one response get one id."""
    responses = 0
    within = False

    def read(item: Mapping[str, Any], **fields: Any) -> Message:  # noqa: ANN401 - fields of a message
        nonlocal responses, within
        message = _read(item, **fields)
        if not isinstance(message, AssistantMessage):
            within = False
            return message
        responses += not within
        within = True
        return message.model_copy(update={"response_id": f"response-{responses}"})

    return read


def _read(item: Mapping[str, Any], **fields: Any) -> Message:  # noqa: ANN401 - fields of a message
    kind = item.get("type") or "message"
    if not isinstance(kind, str):
        raise InvalidMessage(f"The type of an item is a text, not a {type(kind).__name__}.")
    if kind == "message":
        return from_chat_dict({key: item[key] for key in ("role", "content") if key in item}, **fields)
    if kind in {_OUTPUT, _CUSTOM_OUTPUT}:
        result = ToolResultContent(id=str(item.get("call_id") or ""), content=result_of(item.get("output")))
        return ToolMessage(contents=(result,), **fields)
    return AssistantMessage(contents=(_said(kind, item),), **fields)


def _said(kind: str, item: Mapping[str, Any]) -> Content:
    if kind == _CALL:
        return ToolCallContent(
            id=str(item.get("call_id") or ""), name=str(item.get("name") or ""), args=str(item.get("arguments") or "{}")
        )
    if kind == _CUSTOM:
        words = {"input": str(item.get("input") or "")}
        return ToolCallContent(id=str(item.get("call_id") or ""), name=str(item.get("name") or ""), args=words)
    if kind == _REASONING:
        summary = item.get("summary")
        texts = (
            [part.get("text") for part in summary if isinstance(part, Mapping)]
            if isinstance(summary, list | tuple)
            else []
        )
        said = "\n\n".join(text for text in texts if isinstance(text, str))
        return ThinkingContent(said, provider="openai", artefact=dict(item))
    return UnknownContent(type=kind, **{key: value for key, value in item.items() if key != "type"})


def unled(items: Sequence[Mapping[str, Any]], kept: Collection[int]) -> Mapping[int, Mapping[str, Any] | None]:
    """Give the items that stay without the reasoning that led to them, as they can stand then: without their ids.

    An id is looked up, and what it names is refused «without its required 'reasoning' item» (continuedev/continue#10018). Reasoning
    leads to what the model says up to its next reasoning, or to words of the user's: calls of one response may stand with their
    outputs between them. A reference is nothing without its id.

    Args:
        items: The caller's list.
        kept: The places of the items that stay as they are.
    """
    found: dict[int, Mapping[str, Any] | None] = {}
    led = True
    for index, item in enumerate(items):
        kind = item.get("type") or "message"
        if kind == _REASONING or (kind == _REFERENCE and str(item.get("id")).startswith("rs")):
            led = index in kept
        elif kind == "message" and item.get("role") != "assistant":
            led = True
        elif led or index not in kept or item.get("id") is None:
            continue
        elif kind == _REFERENCE:
            found[index] = None
        elif kind == "message" or kind.endswith("_call"):
            found[index] = {key: value for key, value in item.items() if key != "id"}
    return found


def written(piece: Piece, own: Mapping[str, Any]) -> Iterator[_Dict]:
    """Write a piece; of the caller's own item the role and the kind are taken over.

    What a model thought is not written anew: nobody else can sign it.
    """
    if piece.side in {"assistant", "tool"}:
        for _, block in piece.blocks:
            yield from _item(block, custom=str(own.get("type")).startswith("custom_"))
        return
    role = own.get("role") if own.get("role") == "developer" else piece.side
    parts = [part for _, block in piece.blocks for part in _parts(block)]
    if parts:
        yield {"type": "message", "role": role, "content": parts}


def _item(block: Block, *, custom: bool) -> Iterator[_Dict]:
    content = block.content
    if isinstance(content, TextContent):
        yield {"type": "message", "role": "assistant", "content": content.content}
    elif isinstance(content, ToolCallContent) and custom:
        said = str(content.args.get("input", ""))
        yield {"type": _CUSTOM, "call_id": content.id, "name": content.name, "input": said}
    elif isinstance(content, ToolCallContent):
        yield {"type": _CALL, "call_id": content.id, "name": content.name, "arguments": content.arguments}
    elif isinstance(content, ToolResultContent):
        yield {"type": _CUSTOM_OUTPUT if custom else _OUTPUT, "call_id": content.id, "output": content.text()}
    elif isinstance(content, UnknownContent):
        yield {"type": content.type} | thaw(content.model_extra or {})


def _parts(block: Block) -> Iterator[_Dict]:
    content = block.content
    if isinstance(content, TextContent):
        said = from_harness(block.derived, content.content) if block.derived else content.content
        yield {"type": "input_text", "text": said}
    elif isinstance(content, ImageContent):
        for part in part_of(content):
            yield {"type": "input_image", "detail": "auto", "image_url": part["image_url"]["url"]}
    else:
        yield {"type": "input_text", "text": left_out(content.type, "this interface cannot carry it", block.origin)}
