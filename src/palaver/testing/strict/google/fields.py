"""The models and fields of the Gemini API.

After https://ai.google.dev/gemini-api/docs/generate-content/thought-signatures, …/generate-content/latest-model and the ``google-genai`` package 3.6, in
November 2026.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from palaver.testing.strict.seal import Json, Seal
from palaver.testing.strict.server import Refused

__all__ = ["CACHED", "MODELS", "GeminiRequest", "check_fields", "error_body", "in_camel_case", "refuse"]

_STATUS: Final = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND"}

MODELS: Final = (
    "gemini-4-argon", "gemini-4-carbon", "gemini-4-hydrogen", "gemini-4-neon", "gemini-3.8-flash", "gemini-3.7-flash", "gemini-3.6-flash",
    "gemini-3.5-flash", "gemini-3.5-flash-lite", "gemini-3.1-pro-preview", "gemini-3-flash-preview", "gemini-3-pro", "gemini-2.5-pro", "gemini-2.5-flash",
)  # fmt: skip
"""The models, newest first. Those from 3 on check signatures and send ids."""

_TOP: Final = frozenset(
    {"contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "safetySettings", "cachedContent", "labels", "store", "serviceTier",
     "continuationToken", "model", "generateContentRequest"}
)  # fmt: skip
_DATA: Final = (
    "text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult", "toolCall", "toolResponse",
)  # fmt: skip
_PART: Final = frozenset({*_DATA, "thought", "thoughtSignature", "videoMetadata", "mediaResolution", "partMetadata"})
_MINIMAL_UNTIL: Final = (3, 6)
CACHED: Final = (
    "CachedContent can not be used with GenerateContent request setting system_instruction, tools or tool_config.\n\n"
    "Proposed fix: move those values to CachedContent from GenerateContent request."
)


_FREE: Final = frozenset(
    {"args", "response", "parameters", "parametersJsonSchema", "responseSchema", "responseJsonSchema", "labels"}
)
"""Fields whose contents have names of their own."""


def in_camel_case(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return a body with the names of fields in the form of JSON: the API reads `system_instruction`, too (https://protobuf.dev/programming-guides/json)."""
    if isinstance(value, list):
        return [in_camel_case(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    named = {re.sub(r"_([a-z])", lambda found: found[1].upper(), name): inner for name, inner in value.items()}
    return {name: inner if name in _FREE else in_camel_case(inner) for name, inner in named.items()}


@dataclass(frozen=True, slots=True)
class GeminiRequest:
    """A request that is checked: its body, model, and the seal of the server."""

    body: Json
    model: str
    seal: Seal

    @property
    def version(self) -> tuple[int, int]:
        """The version of the model, for comparisons."""
        number = re.match(r"gemini-(\d+)(?:\.(\d+))?", self.model)
        return (int(number[1]), int(number[2] or 0)) if number else (0, 0)

    @property
    def signs(self) -> bool:
        """Whether the model sends ids and checks signatures."""
        return self.version >= (3, 0)


def error_body(status: int, message: str) -> Json:
    """Return the body of an error."""
    return {"error": {"code": status, "message": message, "status": _STATUS.get(status, "INVALID_ARGUMENT")}}


def refuse(message: str, status: int = 400) -> NoReturn:
    """Refuse the request."""
    raise Refused(status, error_body(status, message))


def check_fields(subject: GeminiRequest) -> None:
    """Check the names of fields, the cache, and the parameters of thinking."""
    body = subject.body
    for name in body:
        if name not in _TOP:
            refuse(f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.')
    if not body.get("contents"):
        refuse("* GenerateContentRequest.contents: contents is not specified")
    for at, content in enumerate(body["contents"]):
        _check_content(subject, f"contents[{at}]", content)
    if body.get("cachedContent"):
        if any(body.get(name) for name in ("systemInstruction", "tools", "toolConfig")):
            refuse(CACHED)
        if subject.seal.open("cache", str(body["cachedContent"]).removeprefix("cachedContents/")) is None:
            refuse("CachedContent not found (or permission denied)", 403)
    _check_thinking(subject, (body.get("generationConfig") or {}).get("thinkingConfig") or {})


def _check_content(subject: GeminiRequest, where: str, content: Json) -> None:
    role = content.get("role", "user")
    if role not in ("user", "model", "function"):
        refuse("Please use a valid role: user, model.")
    if not content.get("parts"):
        refuse(f"* GenerateContentRequest.{where}.parts: contents.parts must not be empty.")
    for number, part in enumerate(content["parts"]):
        _check_part(subject, f"{where}.parts[{number}]", part)


def _check_part(subject: GeminiRequest, place: str, part: Json) -> None:
    plain = {name: value for name, value in part.items() if name != "seal"}
    if "seal" in part and subject.seal.open("own", part["seal"]) == plain:
        return  # a part that only this server knows, as it was sent
    for name in part:
        if name not in _PART:
            refuse(f"Invalid JSON payload received. Unknown name \"{name}\" at '{place}': Cannot find field.")
    data = [name for name in _DATA if name in part]
    if not data and "thoughtSignature" not in part:
        refuse(f"* GenerateContentRequest.{place}.data: required oneof field 'data' must have one initialized field")
    if len(data) > 1:
        refuse(f"Invalid value at '{place}' (oneof), oneof field 'data' is already set.")


def _check_thinking(subject: GeminiRequest, config: Mapping[str, object]) -> None:
    level = str(config.get("thinkingLevel", "")).lower()
    if level and config.get("thinkingBudget") is not None:
        refuse("You can only set only one of thinking budget and thinking level.")
    if level == "minimal" and subject.version > _MINIMAL_UNTIL:
        refuse("Thinking level MINIMAL is not supported for this model.")
    if level == "xhigh" and subject.model != "gemini-4-hydrogen":
        refuse("Thinking level XHIGH is not supported for this model.")
