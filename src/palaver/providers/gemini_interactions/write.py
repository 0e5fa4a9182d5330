"""Gemini's Interactions API (ai.google.dev/gemini-api/docs/interactions-overview).

The conversation is ours to keep, so the provider stores nothing: `store` is false, and every step goes back. Thoughts and the steps of Google's own
tools are signed, so they go back as they came.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from palaver.messages import thaw
from palaver.providers.gemini.write import tuned
from palaver.wire.head import Outline, with_parameters
from palaver.wire.reasoning import thought_step
from palaver.wire.script import (
    CallPart,
    ChangeNotes,
    Declared,
    MediaPart,
    Part,
    ProviderPart,
    ResultPart,
    Speech,
    TextPart,
    ThinkingPart,
)
from palaver.wire.table import Body, Profile, Provided

OWNED = frozenset({"model", "agent", "input", "system_instruction", "tools", "previous_interaction_id"})
"""The fields that are compiled from the view and the call, or would refer to a state outside the log; no parameter may set them."""

_CHOICES: Mapping[str, str] = {"auto": "auto", "none": "none", "required": "any"}


def head(outline: Outline) -> Body:
    """Write the body of an interaction without its input."""
    call = outline.call
    out: Body = {"model": call.model}
    if outline.system:
        out["system_instruction"] = "\n\n".join(part.text for part in outline.system)
    if outline.tools or outline.provided.tools:
        out["tools"] = [*(_tool(tool) for tool in outline.tools), *outline.provided.tools]
    generation = {"max_output_tokens": call.max_tokens, "temperature": call.temperature}
    config: Body = {name: value for name, value in generation.items() if value is not None}
    if outline.choice:
        named = {"allowed_tools": {"mode": "any", "tools": [outline.choice]}}
        config["tool_choice"] = _CHOICES.get(outline.choice, named)
    if config:
        out["generation_config"] = config
    if outline.structure is not None:
        schema = outline.structure.schema
        out["response_format"] = {"type": "text", "mime_type": "application/json", "schema": schema}
    if call.stream:
        out["stream"] = True
    if token := outline.carried.get("continuation_token"):
        out["continuation_token"] = token
    body = with_parameters(out | {"store": False}, call)
    return tuned(body, "generation_config", ("temperature", "top_p", "top_k"), ("thinking_level",), outline)


def _tool(tool: Declared) -> Body:
    """Write a tool; one without arguments declares none, because an object without properties is refused."""
    out: Body = {"type": "function", "name": tool.name, "description": tool.description}
    return out | ({"parameters": tool.schema} if tool.schema.get("properties") else {})


def provided(known: Mapping[str, Any], options: Body) -> Provided:
    """Declare one of the provider's own tools."""
    return Provided(({**known, **options},))


# --- steps ---------------------------------------------------------------------------------------------------------------


def written(speech: Speech, _profile: Profile, _notes: ChangeNotes) -> Iterator[Body]:
    """Write a speech as steps. The model's words without a break are one step, every other part is one of its own."""
    if speech.role in {"system", "user"}:
        yield {"type": "user_input", "content": _content(speech.parts)}
        return
    for words, parts in groupby(speech.parts, key=lambda part: isinstance(part, TextPart)):
        if words:
            yield {"type": "model_output", "content": _content(tuple(parts))}
        else:
            yield from map(_step, parts)


def _step(part: Part) -> Body:
    if isinstance(part, ThinkingPart):
        return thought_step(part)
    if isinstance(part, CallPart):
        return {"type": "function_call", "id": part.id, "name": part.name, "arguments": part.args}
    if isinstance(part, ResultPart):
        return _result(part)
    if isinstance(part, ProviderPart):
        return {"type": part.kind, **thaw(part.fields)}
    return {"type": "model_output", "content": _content((part,))}


def _result(part: ResultPart) -> Body:
    """Write a result. It always names its function: «a function result that does not name its function» is refused."""
    texts = all(isinstance(inner, TextPart) for inner in part.body)
    said = part.text if texts else _content(part.body)
    out = {"type": "function_result", "call_id": part.id, "name": part.name, "result": said}
    return out | ({"is_error": True} if part.error else {})


def _content(parts: Sequence[Part]) -> list[Body]:
    return [_piece(part) for part in parts if isinstance(part, TextPart | MediaPart)]


def _piece(part: TextPart | MediaPart) -> Body:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if part.media.url is not None:
        return {"type": part.kind, "uri": part.media.url}
    return {"type": part.kind, "data": part.data, "mime_type": part.media_type}
