"""A draft in the words of OpenAI's Chat Completions API (platform.openai.com/docs/api-reference/chat)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from palaver.wire.answers import Asked
from palaver.wire.draft import Body, Declared, Draft, with_parameters
from palaver.wire.parts import CallPart, MediaPart, Part, ResultPart, Speech, TextPart
from palaver.wire.profiles import Profile
from palaver.wire.request import How, Notes

__all__ = ["OWNED", "body", "image_url", "joined", "response_format", "sound", "written"]

OWNED = frozenset({"model", "messages", "tools"})
"""The fields that are compiled from the view and the call, and that no parameter may replace."""

_CHOICES = frozenset({"auto", "none", "required"})
_FORMATS: Mapping[str, str] = MappingProxyType({"audio/mp3": "mp3", "audio/wav": "wav"})


def body(draft: Draft) -> Body:
    """Write the body of a chat completion."""
    call = draft.call
    messages = [_system(draft.system)] if draft.system else []
    out: Body = {"model": call.model, "messages": [*messages, *draft.said]}
    if draft.tools:
        out["tools"] = [_tool(tool) for tool in draft.tools]
    if draft.choice:
        out["tool_choice"] = (
            draft.choice if draft.choice in _CHOICES else {"type": "function", "function": {"name": draft.choice}}
        )
    if draft.asked is not None:
        out["response_format"] = {"type": "json_schema", "json_schema": response_format(draft.asked)}
    if call.max_tokens is not None:
        out["max_completion_tokens"] = call.max_tokens
    if call.temperature is not None:
        out["temperature"] = call.temperature
    if call.stream:
        out |= {"stream": True, "stream_options": {"include_usage": True}}
    return with_parameters({**out, **draft.provided.fields}, call)


def joined(texts: Sequence[TextPart]) -> str:
    """Give texts as one, with an empty line between them."""
    return "\n\n".join(part.text for part in texts)


def _system(texts: Sequence[TextPart]) -> Body:
    return {"role": "system", "content": joined(texts)}


def _tool(tool: Declared) -> Body:
    function: Body = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
    return {"type": "function", "function": function | ({"strict": True} if tool.strict else {})}


def response_format(asked: Asked) -> Body:
    """Write the structure of an answer, as both of OpenAI's APIs have it."""
    described = {"description": asked.description} if asked.description else {}
    return {"name": asked.name, **described, "schema": asked.schema, "strict": asked.strict}


# --- messages ------------------------------------------------------------------------------------------------------------


def written(speech: Speech, profile: Profile, notes: Notes) -> Iterator[Body]:
    """Write a speech as messages."""
    return _WRITERS[speech.role](speech, profile, notes)


def _instructed(speech: Speech, _profile: Profile, _notes: Notes) -> Iterator[Body]:
    yield {"role": "system", "content": joined([part for part in speech.parts if isinstance(part, TextPart)])}


def _asked(speech: Speech, profile: Profile, notes: Notes) -> Iterator[Body]:
    yield {"role": "user", "content": _content(speech.parts), **_named(speech, profile, notes)}


def _answered(speech: Speech, profile: Profile, notes: Notes) -> Iterator[Body]:
    """Write an assistant's words: one message, its texts before its calls."""
    texts = [part for part in speech.parts if isinstance(part, TextPart)]
    calls = [_call(part) for part in speech.parts if isinstance(part, CallPart)]
    named = _named(speech, profile, notes)
    out: Body = {"role": "assistant", "content": _content(texts) if texts else None, **named}
    yield out | ({"tool_calls": calls} if calls else {})


def _returned(speech: Speech, _profile: Profile, notes: Notes) -> Iterator[Body]:
    """Write results: a message each. There is no field for failure; the text says what went wrong."""
    for part in speech.parts:
        if isinstance(part, ResultPart):
            if part.error and part.origin is not None:
                notes.add(
                    part.origin, "failure", How.DROPPED, "there is no field for it; the text of the result stands"
                )
            yield {"role": "tool", "tool_call_id": part.id, "content": part.text}


_WRITERS: Mapping[str, Callable[[Speech, Profile, Notes], Iterator[Body]]] = MappingProxyType(
    {"system": _instructed, "user": _asked, "assistant": _answered, "tool": _returned}
)


def _call(part: CallPart) -> Body:
    return {"id": part.id, "type": "function", "function": {"name": part.name, "arguments": part.raw}}


def _content(parts: Sequence[Part]) -> str | list[Body]:
    """Give one text as a string, as most servers of this API like it best, and everything else as parts."""
    if len(parts) == 1 and isinstance(parts[0], TextPart):
        return parts[0].text
    return [_PARTS[type(part)](part) for part in parts if type(part) in _PARTS]


def _text(part: TextPart) -> Body:
    return {"type": "text", "text": part.text}


def _media(part: MediaPart) -> Body:
    if part.kind == "audio":
        return sound(part)
    return {"type": "image_url", "image_url": {"url": image_url(part)}}


def sound(part: MediaPart) -> Body:
    """Write a sound."""
    return {"type": "input_audio", "input_audio": {"data": part.data, "format": _FORMATS[part.media_type]}}


def image_url(part: MediaPart) -> str:
    """Give an image as an address: its own, or one that carries its bytes (RFC 2397)."""
    return part.media.url or f"data:{part.media_type};base64,{part.data}"


_PARTS: Mapping[type, Callable[[Any], Body]] = MappingProxyType({TextPart: _text, MediaPart: _media})


# --- names ---------------------------------------------------------------------------------------------------------------


def _named(speech: Speech, profile: Profile, notes: Notes) -> Body:
    """Give the speaker's name where there is one, with what the provider does not take in it replaced."""
    if not speech.name:
        return {}
    pattern = profile.turns.name
    spelt = (
        speech.name
        if pattern is None or pattern.fullmatch(speech.name)
        else re.sub(r"[^a-zA-Z0-9_-]+", "_", speech.name)[:64]
    )
    if spelt != speech.name:
        notes.add(
            speech.parts[0].origin,
            "name",
            How.RENAMED,
            f"{speech.name!r} is {spelt!r}: not of the form that the provider takes",
        )
    return {"name": spelt}
