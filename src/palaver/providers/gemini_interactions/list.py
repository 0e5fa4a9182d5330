"""The dialect of Gemini's Interactions: a list of steps, in which the steps of one answer follow each other.

Source: the types of the `google-genai` package, `interactions.Step`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
from palaver.messages.forms import blocks_of
from palaver.plurals import a_type
from palaver.providers.dialect import Dialect, Item, Shown, changed_text, grouped, parts_shown, text_of

_CALL, _RESULT, _THOUGHT, _USER, _OUTPUT = "function_call", "function_result", "thought", "user_input", "model_output"


class GeminiInteractions(Dialect):
    """Steps of Gemini's Interactions."""

    name = "gemini-interactions"
    items = "input"
    system = "system_instruction"

    def reader(self) -> Callable[..., Message]:
        """Return a function that reads the steps of one list in order."""
        return grouped(_read)

    def patch(self, item: Item, message: Message, shown: Shown) -> Item | None:
        """Return a step that shows only some blocks, or shows them in another form. A thought is signed: it goes back whole or not at all."""
        if not shown or (item.get("type") == _THOUGHT and shown[0] is not message.contents[0]):
            return None
        if item.get("type") == _RESULT:
            return {**item, "result": text_of(shown[0])}
        if not isinstance(item.get("content"), list | tuple):
            return {**item, "content": [{"type": "text", "text": text_of(shown[0])}]}
        return {**item, "content": parts_shown(item["content"], message, shown, changed_text)}

    def say(self, text: str) -> Item:
        """Return a step of the user."""
        return {"type": _USER, "content": [{"type": "text", "text": text}]}

    def answer(self, result: ToolResultContent, call: Item) -> Item:
        """Return a step with the result of a function; it has to name the function."""
        failed = {"is_error": True} if result.is_error else {}
        name = result.name or call.get("name") or ""
        return {"type": _RESULT, "call_id": result.id, "name": name, "result": result.text(), **failed}

    def declare(self, tool: ToolSpec) -> Item:
        """Return the schema of a tool."""
        said = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
        return {"type": "function", **said}

    def by_model(self, item: Item) -> bool:
        """Return whether the model says a step: any but what the user says and what functions return."""
        return item.get("type") not in {_USER, _RESULT}

    def opens(self, item: Item) -> bool:
        """Return whether a list may begin with a step."""
        return not self.by_model(item)


def _read(step: Item, **fields: Any) -> Message:  # noqa: ANN401 - fields of a message
    kind = step.get("type")
    if not isinstance(kind, str):
        raise InvalidMessage(f"The type of a step is a text, not {a_type(kind)}.")
    if kind == _USER:
        return UserMessage(contents=_pieces(step.get("content")), **fields)
    if kind == _RESULT:
        return ToolMessage(contents=(_result(step),), **fields)
    return AssistantMessage(contents=_said(kind, step), **fields)


def _said(kind: str, step: Item) -> tuple[Content, ...]:
    if kind == _OUTPUT and not step.get("error"):
        return _pieces(step.get("content"))
    if kind == _CALL:
        args = step.get("arguments")
        arguments = args if isinstance(args, Mapping) else {}
        return (ToolCallContent(id=_text(step, "id"), name=_text(step, "name"), args=arguments),)
    if kind == _THOUGHT:
        parts = step.get("summary")
        texts = (
            [part.get("text") for part in parts if isinstance(part, Mapping)] if isinstance(parts, list | tuple) else []
        )
        words = "\n\n".join(text for text in texts if isinstance(text, str))
        return (ThinkingContent(words, provider="google", artefact=dict(step)),)
    return blocks_of((dict(step),))


def _result(step: Item) -> ToolResultContent:
    result = step.get("result")
    pieces = result if isinstance(result, list | tuple) else ()
    content: Any = result if isinstance(result, str) else _pieces(result)
    if isinstance(result, Mapping) or not all(map(_is_piece, pieces)):
        content = canonical_json(result).decode()
    name, failed = _text(step, "name"), step.get("is_error") is True
    return ToolResultContent(id=_text(step, "call_id"), name=name, content=content, is_error=failed)


def _is_piece(piece: object) -> bool:
    return isinstance(piece, Mapping) and not isinstance(_piece(piece), UnknownContent)


def _pieces(content: object) -> tuple[Content, ...]:
    if isinstance(content, str):
        return (TextContent(content),)
    if not isinstance(content, list | tuple | None):
        raise InvalidMessage(f"The content of a step is a list, not {a_type(content)}.")
    return tuple(map(_piece, content or ()))


def _piece(piece: object) -> Content:
    if isinstance(piece, str):
        return TextContent(piece)
    if not isinstance(piece, Mapping):
        raise InvalidMessage(f"A piece of content is an object, not {a_type(piece)}.")
    if piece.get("type") == "text" and isinstance(piece.get("text"), str):
        return TextContent(piece["text"])
    if piece.get("type") == "image":
        try:
            return ImageContent([Media.from_text(str(piece.get("data")), "image", str(piece.get("mime_type") or ""))])
        except InvalidInput:  # not an image that palaver knows: the piece stays as it is
            pass
    return UnknownContent(type=f"gemini.{piece.get('type') or 'piece'}", piece=dict(piece))


def _text(step: Item, key: str) -> str:
    found = step.get(key)
    return found if isinstance(found, str) else ""


DIALECT = GeminiInteractions()
