"""The Gemini API (ai.google.dev/api/generate-content). The model is part of the address, not of the body."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from palaver.wire.head import Outline, sampled, together, with_parameters
from palaver.wire.reasoning import signature, thought_signature
from palaver.wire.script import (
    CallPart,
    ChangeNotes,
    Declared,
    How,
    MediaPart,
    Part,
    ProviderPart,
    ResultPart,
    Speech,
    TextPart,
    ThinkingPart,
)
from palaver.wire.table import Body, Profile, Provided

OWNED = frozenset({"contents", "systemInstruction", "tools"})
"""The fields that are compiled from the view and the call; no parameter may replace them."""

_MODES: Mapping[str, str] = {"auto": "AUTO", "none": "NONE", "required": "ANY"}


def head(outline: Outline) -> Body:
    """Write the body of a generation of content without its contents."""
    out: Body = {}
    if outline.system:
        out["systemInstruction"] = {"parts": [{"text": part.text} for part in outline.system]}
    own = [{"functionDeclarations": [_declaration(tool) for tool in outline.tools]}] if outline.tools else []
    if own or outline.provided.tools:
        out["tools"] = [*own, *outline.provided.tools]
    if outline.choice:
        mode = _MODES.get(outline.choice)
        named = {"mode": "ANY", "allowedFunctionNames": [outline.choice]}
        out["toolConfig"] = {"functionCallingConfig": named if mode is None else {"mode": mode}}
    if (
        own and outline.provided.tools
    ):  # «Please enable tool_config.include_server_side_tool_invocations»: lobehub#13465
        out["toolConfig"] = {**out.get("toolConfig", {}), "includeServerSideToolInvocations": True}
    generation = {"maxOutputTokens": outline.call.max_tokens, "temperature": outline.call.temperature}
    given: Body = {name: value for name, value in generation.items() if value is not None}
    if outline.structure is not None:
        given |= {"responseMimeType": "application/json", "responseJsonSchema": outline.structure.schema}
    if token := outline.carried.get("continuationToken"):
        out["continuationToken"] = token
    body = with_parameters(out | ({"generationConfig": given} if given else {}), outline.call)
    return tuned(
        body, "generationConfig", ("temperature", "topP", "topK"), ("thinkingConfig", "thinkingLevel"), outline
    )


def tuned(body: Body, field: str, sampling: Sequence[str], level: Sequence[str], outline: Outline) -> Body:
    """Return a body whose configuration has what the model takes: no sampling parameters where it takes none, and a level that it has.

    Args:
        body: The body.
        field: The field with the configuration.
        sampling: The names of its sampling parameters.
        level: The path in it to the level of thinking. The lowest, `minimal`, becomes the lowest of the model.
        outline: The request.
    """
    config, levels = body.get(field), outline.profile.reasoning.efforts
    if not isinstance(config, Mapping):
        return body
    known = sampled(dict(config), sampling, outline.profile, outline.notes)
    if levels and "minimal" not in levels and str(_at(known, level)).lower() == "minimal":
        outline.notes.add(None, "parameter", How.CHANGED, f"{level[-1]}: {levels[0]} is the lowest of this model")
        known = _with(known, level, levels[0])
    return {**{name: value for name, value in body.items() if name != field}, **({field: known} if known else {})}


def _at(value: Any, path: Sequence[str]) -> Any:  # noqa: ANN401 - any JSON value
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _with(value: Mapping[str, Any], path: Sequence[str], new: str) -> Body:
    name, *rest = path
    return {**value, name: _with(value[name], rest, new) if rest else new}


def _declaration(tool: Declared) -> Body:
    """Write a tool; one without arguments declares none, because an object without properties is refused."""
    out: Body = {"name": tool.name, "description": tool.description}
    return out | ({"parametersJsonSchema": tool.schema} if tool.schema.get("properties") else {})


def provided(known: Mapping[str, Any], options: Body) -> Provided:
    """Declare one of the provider's own tools: its key, with the options."""
    return Provided(tuple({key: {**defaults, **options}} for key, defaults in known.items()))


def arguments(body: Body, model: str) -> Body:
    """Return the arguments of `generate_content` of Google's client."""
    settings = {name: value for name, value in body.items() if name not in {"contents", "generationConfig"}}
    return {"model": model, "contents": body["contents"], "config": settings | body.get("generationConfig", {})}


# --- contents ------------------------------------------------------------------------------------------------------------


def written(speech: Speech, _profile: Profile, _notes: ChangeNotes) -> Iterator[Body]:
    """Write a speech as one content."""
    role = "model" if speech.role == "assistant" else "user"
    yield {"role": role, "parts": [_part(part) for part in speech.parts]}


def neighbours(before: Mapping[str, Any], item: Mapping[str, Any]) -> Body | None:
    """Return two contents as one where they are one turn: no call may follow the model's words directly, and results are alone."""
    results = ["functionResponse" in content["parts"][0] for content in (before, item)]
    return together(before, item, "parts") if before["role"] == item["role"] and results[0] == results[1] else None


def _part(part: Part) -> Body:
    if isinstance(part, TextPart):
        return {"text": part.text} | _signed(part.signature)
    if isinstance(part, MediaPart):
        return _media(part)
    if isinstance(part, ThinkingPart):
        return {"text": part.content.content, "thought": True} | _signed(thought_signature(part))
    if isinstance(part, CallPart):
        named = {"functionCall": {"id": part.id, "name": part.name, "args": part.args}}
        return named | _signed(signature(part.artefact))
    if isinstance(part, ResultPart):
        return _result(part)
    return dict(part.fields) if isinstance(part, ProviderPart) else {}


def _media(part: MediaPart) -> Body:
    if part.media.url is not None:
        return {"fileData": {"fileUri": part.media.url}}
    return {"inlineData": {"mimeType": part.media_type, "data": part.data}}


def _result(part: ResultPart) -> Body:
    """Write a result: `output` or `error` for the text, as the reference of FunctionResponse says, and media as parts of their own."""
    out: Body = {"id": part.id, "name": part.name, "response": {"error" if part.error else "output": part.text}}
    media = [_media(inner) for inner in part.body if isinstance(inner, MediaPart)]
    return {"functionResponse": out | ({"parts": media} if media else {})}


def _signed(found: str) -> Body:
    return {"thoughtSignature": found} if found else {}
