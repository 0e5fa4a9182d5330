"""OpenAI's Chat Completions API (platform.openai.com/docs/api-reference/chat)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from palaver.messages import thaw
from palaver.wire.head import Outline, Structure, sampled, with_parameters
from palaver.wire.reasoning import signature
from palaver.wire.script import (
    CallPart,
    ChangeNotes,
    Declared,
    How,
    MediaPart,
    Part,
    ResultPart,
    Speech,
    TextPart,
    ThinkingPart,
)
from palaver.wire.table import Body, Profile, Provided

OWNED = frozenset({"model", "messages", "tools"})
"""The fields that are compiled from the view and the call; no parameter may replace them."""

CHOICES = frozenset({"auto", "none", "required"})
_FORMATS: Mapping[str, str] = {"audio/mp3": "mp3", "audio/wav": "wav"}


def head(outline: Outline) -> Body:
    """Write the body of a chat completion without its messages."""
    call = outline.call
    out: Body = {"model": call.model}
    if outline.tools:
        out["tools"] = [_tool(tool) for tool in outline.tools]
    if outline.choice:
        named = {"type": "function", "function": {"name": outline.choice}}
        out["tool_choice"] = outline.choice if outline.choice in CHOICES else named
    if outline.structure is not None:
        out["response_format"] = {"type": "json_schema", "json_schema": response_format(outline.structure)}
    if call.max_tokens is not None:
        out["max_completion_tokens"] = call.max_tokens
    if call.temperature is not None:
        out["temperature"] = call.temperature
    if call.stream:
        out |= {"stream": True, "stream_options": {"include_usage": True}}
    body = with_parameters({**out, **outline.provided.fields}, call)
    fields, effort = ("temperature", "top_p", "logprobs", "top_logprobs"), body.get("reasoning_effort")
    return sampled(body, fields, outline.profile, outline.notes, effort)


def provided(_known: Mapping[str, Any], options: Body) -> Provided:
    """Declare the search of the web: a field of the body."""
    return Provided(fields={"web_search_options": options})


def joined(texts: Sequence[Part]) -> str:
    """Return texts as one, with an empty line between them."""
    return "\n\n".join(part.text for part in texts if isinstance(part, TextPart))


def _tool(tool: Declared) -> Body:
    function: Body = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
    return {"type": "function", "function": function | ({"strict": True} if tool.strict else {})}


def response_format(structure: Structure) -> Body:
    """Write the structure of an answer, as both of OpenAI's APIs have it."""
    described = {"description": structure.description} if structure.description else {}
    return {"name": structure.name, **described, "schema": structure.schema, "strict": structure.strict}


# --- messages ------------------------------------------------------------------------------------------------------------


def written(speech: Speech, profile: Profile, notes: ChangeNotes) -> Iterator[Body]:
    """Write a speech as messages."""
    if speech.role == "system":
        yield {"role": "system", "content": joined(speech.parts)}
    elif speech.role == "user":
        yield {"role": "user", "content": _content(speech.parts), **_named(speech, profile, notes)}
    elif speech.role == "assistant":  # one message, its texts before its calls
        texts = [part for part in speech.parts if isinstance(part, TextPart)]
        calls = [_call(part, profile) for part in speech.parts if isinstance(part, CallPart)]
        named = _named(speech, profile, notes)
        out: Body = {"role": "assistant", "content": _content(texts) if texts else None, **named}
        out |= {"tool_calls": calls} if calls else {}
        yield out | (_reasoned(speech, out, profile, notes) if profile.reasoning.form == "fields" else {})
    else:
        for part in speech.parts:
            if isinstance(part, ResultPart):
                noted_failure(part, notes)
                yield {"role": "tool", "tool_call_id": part.id, "content": part.text}


NO_REASONING = " "
"""Stands in the field of reasoning where a server wants it and the message has none of its own: it refuses a message without the field, not an empty one."""


def _reasoned(speech: Speech, message: Body, profile: Profile, notes: ChangeNotes) -> Body:
    """Return the reasoning of a message, in the field in which its server wants it back."""
    rules = profile.reasoning
    thoughts = [part.content for part in speech.parts if isinstance(part, ThinkingPart)]
    text = "\n\n".join(thought.content for thought in thoughts)
    if thoughts and rules.field == "content":
        thinking = {"type": "thinking", "thinking": [{"type": "text", "text": text}], "closed": True}
        said = message["content"]
        rest = [{"type": "text", "text": said}] if isinstance(said, str) else said or []
        return {"content": [thinking, *rest]}
    if thoughts and rules.field == "reasoning_details":
        return {rules.field: [detail for thought in thoughts for detail in thaw(thought.artefact)[rules.field]]}
    if thoughts:
        own = {str(thought.artefact.get("field") or "") for thought in thoughts} & {"reasoning", "reasoning_content"}
        return {next(iter(own)) if len(own) == 1 and not rules.wanted else rules.field: text}
    if rules.wanted == "all" or (rules.wanted == "calls" and "tool_calls" in message):
        why = "the server wants it in each such message, and this one has none of its model's"
        notes.add(speech.parts[0].origin, "thinking", How.ADDED, why)
        return {rules.field: NO_REASONING}
    return {}


def noted_failure(part: ResultPart, notes: ChangeNotes) -> None:
    """Note a failure that no field of the API says; the text says what went wrong."""
    if part.error and part.origin is not None:
        notes.add(part.origin, "failure", How.DROPPED, "there is no field for it; the text of the result stands")


def _call(part: CallPart, profile: Profile) -> Body:
    """Write a call, with Google's signature where there is one (ai.google.dev/gemini-api/docs/openai)."""
    out: Body = {"id": part.id, "type": "function", "function": {"name": part.name, "arguments": part.raw}}
    signed = signature(part.artefact) if profile.reasoning.signed_calls else ""
    return out | ({"extra_content": {"google": {"thought_signature": signed}}} if signed else {})


def _content(parts: Sequence[Part]) -> str | list[Body]:
    """Return one text as a string, as most compatible servers like it best, and everything else as parts."""
    if len(parts) == 1 and isinstance(parts[0], TextPart):
        return parts[0].text
    return [_part(part) for part in parts if isinstance(part, TextPart | MediaPart)]


def _part(part: TextPart | MediaPart) -> Body:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if part.kind == "audio":
        return {"type": "input_audio", "input_audio": {"data": part.data, "format": _FORMATS[part.media_type]}}
    return {"type": "image_url", "image_url": {"url": image_url(part)}}


def image_url(part: MediaPart) -> str:
    """Return an image as an address: its own, or one that contains its bytes (RFC 2397)."""
    return part.media.url or f"data:{part.media_type};base64,{part.data}"


def _named(speech: Speech, profile: Profile, notes: ChangeNotes) -> Body:
    """Return the speaker's name where there is one, in characters that the provider accepts."""
    pattern, name = profile.turns.name, speech.name
    if not name or pattern is None or pattern.fullmatch(name):
        return {"name": name} if name else {}
    spelled = re.sub(r"[^a-zA-Z0-9_-]+", "_", name)[:64]
    why = f"{name!r} is {spelled!r}: not of the form that the provider takes"
    notes.add(speech.parts[0].origin, "name", How.RENAMED, why)
    return {"name": spelled}
