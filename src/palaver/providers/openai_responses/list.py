"""The dialect of OpenAI's Responses: a list of items, in which the items of one response follow each other.

Source: platform.openai.com/docs/api-reference/responses/create, `input`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import chain
from typing import Any

from palaver.errors import InvalidMessage
from palaver.log import ToolSpec
from palaver.messages import (
    AssistantMessage,
    Content,
    Message,
    Speaker,
    ThinkingContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UnknownContent,
    from_chat_dict,
)
from palaver.messages.forms import result_of
from palaver.plurals import a_type
from palaver.providers.dialect import Dialect, Item, Shown, changed_text, grouped, parts_shown, text_of
from palaver.providers.openai_responses.items import CONSENT, CONSENTED, consent_call

_CALL, _OUTPUT, _REASONING, _REFERENCE = "function_call", "function_call_output", "reasoning", "item_reference"
_CUSTOM, _CUSTOM_OUTPUT = "custom_tool_call", "custom_tool_call_output"
_TOOLS = "additional_tools"
_OWN = ("caller", "namespace", "async")
"""What a call says besides: it goes back with it."""


class OpenAIResponses(Dialect):
    """Items of OpenAI's Responses."""

    name = "openai-responses"
    items = "input"
    system = "instructions"

    def reader(self) -> Callable[..., Message]:
        """Return a function that reads the items of one list in order."""
        return grouped(_read)

    def patch(self, item: Item, message: Message, shown: Shown) -> Item | None:
        """Return an item that shows only some blocks, or shows them in another form."""
        if not shown:
            return None
        if item.get("type") == CONSENTED:
            return item
        if "output" in item and item.get("type") != "message":
            return {**item, "output": text_of(shown[0])}
        kind = "output_text" if item.get("role") == "assistant" else "input_text"
        if not isinstance(item.get("content"), list | tuple):
            return {**item, "content": text_of(shown[0])}
        write = partial(changed_text, kind=kind)
        return {**item, "content": parts_shown(item["content"], message, shown, write)}

    def say(self, text: str) -> Item:
        """Return an item of the user."""
        return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}

    def answer(self, result: ToolResultContent, call: Item) -> Item:
        """Return an item with the result of a tool call."""
        if call.get("type") == CONSENT:
            return {"type": CONSENTED, "approval_request_id": result.id, "approve": not result.is_error}
        kind = _CUSTOM_OUTPUT if call.get("type") == _CUSTOM else _OUTPUT
        return {"type": kind, "call_id": result.id, "output": result.text()}

    def declare(self, tool: ToolSpec) -> Item:
        """Return the schema of a tool."""
        said = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
        return {"type": "function", **said, "strict": False}

    def unlink(self, item: Item) -> Item | None:
        """Return an item without its id: OpenAI refuses a stored item «without its required 'reasoning' item»."""
        if item.get("type") == _REFERENCE:
            return None
        return item if item.get("type") == _REASONING else {key: value for key, value in item.items() if key != "id"}

    def tools(self, body: Item) -> object:
        """Return the schemas of a request's tools, those that items add included."""
        added = (
            item["tools"]
            for item in body.get("input") or ()
            if isinstance(item, Mapping) and item.get("type") == _TOOLS
        )
        return [*(body.get("tools") or ()), *chain.from_iterable(added)]

    def by_model(self, item: Item) -> bool:
        """Return whether the model says an item."""
        kind = item.get("type")
        return item.get("role") == "assistant" or (isinstance(kind, str) and kind.endswith(("_call", _REASONING)))


def _read(item: Item, **fields: Any) -> Message:  # noqa: ANN401 - fields of a message
    kind = item.get("type") or "message"
    if not isinstance(kind, str):
        raise InvalidMessage(f"The type of an item is a text, not {a_type(kind)}.")
    if kind == "message":
        return from_chat_dict({key: item[key] for key in ("role", "content") if key in item}, **fields)
    if kind in {_OUTPUT, _CUSTOM_OUTPUT}:
        result = ToolResultContent(id=_text(item, "call_id"), content=result_of(item.get("output")))
        return ToolMessage(contents=(result,), **fields)
    if kind == CONSENTED:
        answer = ToolResultContent(
            id=_text(item, "approval_request_id"), content=_text(item, "reason"), is_error=not item.get("approve")
        )
        return ToolMessage(contents=(answer,), **fields)
    if kind.endswith("_output"):  # the caller writes it: what his shell or screen shows
        fields = {"speaker": Speaker.TOOL, **fields}
    return AssistantMessage(contents=(_said(kind, item),), **fields)


def _said(kind: str, item: Item) -> Content:
    if kind in {_CALL, _CUSTOM}:
        arguments = item.get("arguments") if kind == _CALL else {"input": _text(item, "input")}
        args = arguments if isinstance(arguments, str | Mapping) else ""
        own = {"artefact": dict(item)} if kind == _CUSTOM else {name: item[name] for name in _OWN if item.get(name)}
        return ToolCallContent.from_dict(
            {"id": _text(item, "call_id"), "name": _text(item, "name"), "args": args, **own}
        )
    if kind == CONSENT:
        return consent_call(item)
    if kind == _REASONING:
        summary = item.get("summary")
        parts = summary if isinstance(summary, list | tuple) else ()
        texts = [part.get("text") for part in parts if isinstance(part, Mapping)]
        words = "\n\n".join(text for text in texts if isinstance(text, str))
        return ThinkingContent(words, provider="openai", artefact=dict(item))
    return UnknownContent(type=kind, **{key: value for key, value in item.items() if key != "type"})


def _text(item: Item, key: str) -> str:
    found = item.get(key)
    return found if isinstance(found, str) else ""


DIALECT = OpenAIResponses()
