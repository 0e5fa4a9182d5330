"""A draft in the words of the Gemini API (ai.google.dev/api/generate-content). The model stands in the address, not in the body."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from palaver.wire.draft import Body, Declared, Draft, with_parameters
from palaver.wire.parts import CallPart, MediaPart, ResultPart, ServedPart, Speech, TextPart, ThinkingPart
from palaver.wire.profiles import Profile
from palaver.wire.reasoning import signature, thought_signature
from palaver.wire.request import Notes

__all__ = ["OWNED", "body", "written"]

OWNED = frozenset({"contents", "systemInstruction", "tools"})
"""The fields that are compiled from the view and the call, and that no parameter may replace."""

_ROLES: Mapping[str, str] = MappingProxyType({"user": "user", "tool": "user", "assistant": "model"})
_MODES: Mapping[str, str] = MappingProxyType({"auto": "AUTO", "none": "NONE", "required": "ANY"})


def body(draft: Draft) -> Body:
    """Write the body of a generation of content."""
    out: Body = {"contents": list(draft.said)}
    if draft.system:
        out["systemInstruction"] = {"parts": [_text(part) for part in draft.system]}
    own = [{"functionDeclarations": [_declaration(tool) for tool in draft.tools]}] if draft.tools else []
    if own or draft.provided.tools:
        out["tools"] = [*own, *draft.provided.tools]
    if draft.choice:
        mode = _MODES.get(draft.choice)
        named = {"mode": "ANY", "allowedFunctionNames": [draft.choice]}
        out["toolConfig"] = {"functionCallingConfig": named if mode is None else {"mode": mode}}
    if own and draft.provided.tools:  # «Please enable tool_config.include_server_side_tool_invocations»: lobehub#13465
        out["toolConfig"] = {**out.get("toolConfig", {}), "includeServerSideToolInvocations": True}
    generation = {"maxOutputTokens": draft.call.max_tokens, "temperature": draft.call.temperature, **_format(draft)}
    given = {name: value for name, value in generation.items() if value is not None}
    return with_parameters(out | ({"generationConfig": given} if given else {}), draft.call)


def _format(draft: Draft) -> Body:
    if draft.asked is None:
        return {}
    return {"responseMimeType": "application/json", "responseJsonSchema": draft.asked.schema}


def _declaration(tool: Declared) -> Body:
    """Write a tool; one without arguments declares none, because an object without properties is refused."""
    out: Body = {"name": tool.name, "description": tool.description}
    return out | {"parameters": tool.schema} if tool.schema.get("properties") else out


# --- contents ------------------------------------------------------------------------------------------------------------


def written(speech: Speech, _profile: Profile, _notes: Notes) -> Iterator[Body]:
    """Write a speech as one content."""
    yield {"role": _ROLES[speech.role], "parts": [_PARTS[type(part)](part) for part in speech.parts]}


def _text(part: TextPart) -> Body:
    return {"text": part.text} | _signed(part.signature)


def _media(part: MediaPart) -> Body:
    if part.media.url is not None:
        return {"fileData": {"fileUri": part.media.url}}
    return {"inlineData": {"mimeType": part.media_type, "data": part.data}}


def _thought(part: ThinkingPart) -> Body:
    return {"text": part.content.content, "thought": True} | _signed(thought_signature(part))


def _call(part: CallPart) -> Body:
    return {"functionCall": {"id": part.id, "name": part.name, "args": part.args}} | _signed(signature(part.artefact))


def _result(part: ResultPart) -> Body:
    """Write a result: `output` or `error` for the text, as the reference of FunctionResponse says, and media as parts of their own."""
    out: Body = {"id": part.id, "name": part.name, "response": {"error" if part.error else "output": part.text}}
    media = [_media(inner) for inner in part.body if isinstance(inner, MediaPart)]
    return {"functionResponse": out | ({"parts": media} if media else {})}


def _signed(found: str) -> Body:
    return {"thoughtSignature": found} if found else {}


def _served(part: ServedPart) -> Body:
    return dict(part.fields)


_PARTS: Mapping[type, Callable[[Any], Body]] = MappingProxyType(
    {
        TextPart: _text,
        MediaPart: _media,
        ThinkingPart: _thought,
        CallPart: _call,
        ResultPart: _result,
        ServedPart: _served,
    }
)
