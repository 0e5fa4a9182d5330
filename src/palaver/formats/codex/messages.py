"""Codex's response items as messages: each item of a response is a fragment of it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from palaver.formats import fields
from palaver.formats.codex.names import OUTPUTS
from palaver.formats.codex.survey import call_of, is_call, said_by_harness
from palaver.messages import (
    AssistantMessage,
    Content,
    Message,
    Speaker,
    SystemMessage,
    ThinkingContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UnknownContent,
    Usage,
    UserMessage,
)
from palaver.messages.parts import blocks_of

_SEALED = re.compile(r"[A-Za-z0-9+/_=-]{64,}")  # encrypted reasoning is base64 of more than a block or two


def told(payload: Mapping[str, object], key: str, at: float) -> Message:
    """Read a message of the user, of the developer, or of the harness in the role of either.

    Raises:
        InvalidMessage: It is none.
    """
    contents = blocks_of(payload.get("content"))
    role = fields.text(payload, "role")
    if role in {"developer", "system"}:
        extra: dict[str, Any] = {} if role == "system" else {"source_role": role}
        return SystemMessage.from_dict({"id": key, "timestamp": at, "contents": contents, **extra})
    speaker = Speaker.HARNESS if said_by_harness(payload) else Speaker.HUMAN
    return UserMessage(id=key, timestamp=at, contents=contents, speaker=speaker)


def spoken(payload: Mapping[str, object], key: str, at: float, *, response: str, model: str, usage: Usage) -> Message:
    """Read an item that the model made: a fragment of a response.

    Raises:
        InvalidMessage: It is none.
    """
    phase = fields.text(payload, "phase")
    return AssistantMessage(
        id=fields.text(payload, "id") or key,
        timestamp=at,
        contents=_blocks(payload, model),
        model=model or None,
        usage=usage,
        response_id=response,
        metadata={"phase": phase} if phase else {},
        provider="openai",
    )


def _blocks(payload: Mapping[str, object], model: str) -> tuple[Content, ...]:
    kind = payload.get("type")
    if kind == "message":
        return blocks_of(payload.get("content"))
    if kind == "reasoning":
        return (_reasoning(payload, model),)
    if is_call(payload):
        return (_call(payload),)
    return (UnknownContent.model_validate(dict(payload)),)


def _reasoning(payload: Mapping[str, object], model: str) -> Content:
    texts = [fields.text(part, "text") for name in ("summary", "content") for part in fields.objects(payload, name)]
    artefact = dict(payload) if sealed(payload) else {}
    return ThinkingContent(content="\n\n".join(texts), provider="openai", model=model, artefact=artefact)


def sealed(payload: Mapping[str, object]) -> bool:
    """Tell whether reasoning can be sent back: whether its encrypted content is there, and is what a provider wrote."""
    return bool(_SEALED.fullmatch(fields.text(payload, "encrypted_content")))


def _call(payload: Mapping[str, object]) -> Content:
    name, arguments = call_of(payload)
    extra: dict[str, Any] = {}
    if payload.get("type") != "function_call":
        extra["call_type"] = payload.get("type")
    if namespace := fields.text(payload, "namespace"):
        extra["namespace"] = namespace
    call_id = fields.text(payload, "call_id") or fields.text(payload, "id")
    args: Any = {} if arguments is None else arguments
    return ToolCallContent.from_dict({"id": call_id, "name": name, "args": args, **extra})


def output(payload: Mapping[str, object], key: str, at: float) -> Message:
    """Read what a tool gave back: text, parts, or (in old rollouts) an object with `content` and `success`.

    Raises:
        InvalidMessage: It is none.
    """
    given = payload.get("tools") if "tools" in payload else payload.get("output")
    failed = False
    if isinstance(given, dict):
        failed = given.get("success") is False
        given = given.get("content", given)
    if payload.get("type") == "tool_search_output" or isinstance(given, dict | int | float):
        given = json.dumps(given, ensure_ascii=False)
    content: Any = given if isinstance(given, str) else blocks_of(given)
    result = ToolResultContent(id=fields.text(payload, "call_id"), content=content, is_error=failed)
    return ToolMessage(id=key, timestamp=at, contents=(result,))


def is_output(payload: Mapping[str, object]) -> bool:
    """Tell whether an item answers a call."""
    return fields.text(payload, "type") in OUTPUTS
