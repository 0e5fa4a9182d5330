"""A draft in the words of OpenAI's Responses API (platform.openai.com/docs/api-reference/responses).

The conversation is ours to keep, so nothing is stored there: `store` is false, and what a model thought goes back encrypted. Items go
without the ids that OpenAI gave them, except reasoning: an id is looked up, and one that is not found refuses the request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from palaver.wire.draft import Body, Declared, Draft, with_parameters
from palaver.wire.openai_chat import image_url, joined, response_format
from palaver.wire.parts import CallPart, MediaPart, Part, ResultPart, ServedPart, Speech, TextPart, ThinkingPart
from palaver.wire.profiles import Profile
from palaver.wire.reasoning import reasoning_item
from palaver.wire.request import How, Notes

__all__ = ["LEAST_TOKENS", "OWNED", "body", "written"]

OWNED = frozenset({"model", "input", "instructions", "tools", "previous_response_id", "conversation"})
"""The fields that are compiled from the view and the call, and that no parameter may replace."""

LEAST_TOKENS = 16
"""The least that `max_output_tokens` may be (API reference)."""

_CHOICES = frozenset({"auto", "none", "required"})
_PHASES = frozenset({"commentary", "final_answer"})


def body(draft: Draft) -> Body:
    """Write the body of a response's creation."""
    call = draft.call
    out: Body = {"model": call.model}
    if draft.system:
        out["instructions"] = joined(draft.system)
    out["input"] = list(draft.said)
    if draft.tools or draft.provided.tools:
        out["tools"] = [*(_tool(tool) for tool in draft.tools), *draft.provided.tools]
    if draft.choice:
        out["tool_choice"] = draft.choice if draft.choice in _CHOICES else {"type": "function", "name": draft.choice}
    if draft.asked is not None:
        out["text"] = {"format": {"type": "json_schema", **response_format(draft.asked)}}
    if call.max_tokens is not None:
        out["max_output_tokens"] = _limit(call.max_tokens, draft)
    if call.temperature is not None:
        out["temperature"] = call.temperature
    if call.stream:
        out["stream"] = True
    return with_parameters(out | {"store": False}, call)


def _limit(wanted: int, draft: Draft) -> int:
    if wanted < LEAST_TOKENS:
        draft.notes.add(None, "parameter", How.CHANGED, f"max_tokens: the provider takes no less than {LEAST_TOKENS}")
    return max(wanted, LEAST_TOKENS)


def _tool(tool: Declared) -> Body:
    """Write a tool. `strict` is said either way: left out, it is taken as true."""
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.schema,
        "strict": tool.strict,
    }


# --- items ---------------------------------------------------------------------------------------------------------------


def written(speech: Speech, _profile: Profile, notes: Notes) -> Iterator[Body]:
    """Write a speech as items."""
    return _WRITERS[speech.role](speech, notes)


def _instructed(speech: Speech, _notes: Notes) -> Iterator[Body]:
    yield {"type": "message", "role": "system", "content": _content(speech.parts)}


def _asked(speech: Speech, _notes: Notes) -> Iterator[Body]:
    yield {"type": "message", "role": "user", "content": _content(speech.parts)}


def _answered(speech: Speech, _notes: Notes) -> Iterator[Body]:
    """Write an assistant's words: an item each, in their order, because reasoning belongs to the item after it."""
    for part in speech.parts:
        if isinstance(part, TextPart):
            phase = {"phase": part.phase} if part.phase in _PHASES else {}
            yield {"type": "message", "role": "assistant", "content": part.text, **phase}
        elif isinstance(part, ThinkingPart):
            yield reasoning_item(part)
        elif isinstance(part, CallPart):
            yield {"type": "function_call", "call_id": part.id, "name": part.name, "arguments": part.raw}
        elif isinstance(part, ServedPart):
            yield {"type": part.kind, **{name: value for name, value in part.fields.items() if name != "id"}}


def _returned(speech: Speech, notes: Notes) -> Iterator[Body]:
    """Write results: an item each. There is no field for failure; the text says what went wrong."""
    for part in speech.parts:
        if isinstance(part, ResultPart):
            if part.error and part.origin is not None:
                notes.add(
                    part.origin, "failure", How.DROPPED, "there is no field for it; the text of the result stands"
                )
            texts = all(isinstance(inner, TextPart) for inner in part.body)
            yield {
                "type": "function_call_output",
                "call_id": part.id,
                "output": part.text if texts else _content(part.body),
            }


_WRITERS: Mapping[str, Callable[[Speech, Notes], Iterator[Body]]] = MappingProxyType(
    {"system": _instructed, "user": _asked, "assistant": _answered, "tool": _returned}
)


def _content(parts: Sequence[Part]) -> list[Body]:
    return [_PARTS[type(part)](part) for part in parts if type(part) in _PARTS]


def _text(part: TextPart) -> Body:
    return {"type": "input_text", "text": part.text}


def _media(part: MediaPart) -> Body:
    return {"type": "input_image", "detail": "auto", "image_url": image_url(part)}


_PARTS: Mapping[type, Callable[[Any], Body]] = MappingProxyType({TextPart: _text, MediaPart: _media})
