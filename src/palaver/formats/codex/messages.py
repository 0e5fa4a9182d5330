"""Convert Codex's records and response items to messages. Each item is a fragment of a response.

Based on recorded sessions of versions 0.139 to 0.142, sessions of version 0.171, and on the protocol types in Codex's sources.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from palaver.formats import fields
from palaver.formats.events import NOTHING
from palaver.log import ToolSpec
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
from palaver.messages.forms import blocks_of
from palaver.wire.binding import COMPACTION

NAME = "codex"

ENVELOPES = frozenset({"session_meta", "turn_context", "response_item", "event_msg", "compacted"})
"""Types of records."""

_CALLS = frozenset({"function_call", "custom_tool_call", "tool_search_call", "local_shell_call"})
SPOKEN = frozenset({"reasoning", "web_search_call", "image_generation_call"}) | _CALLS
"""Types of response items from the model, besides its messages."""

OUTPUTS = frozenset(
    {"function_call_output", "custom_tool_call_output", "tool_search_output", "local_shell_call_output"}
)
"""Types of response items that answer a call."""

_COMPACTIONS = frozenset({COMPACTION, "compaction_summary"})
"""Types of the provider's own compactions; older versions write the second."""

_HARNESS_MARKS = (
    "# AGENTS.md instructions",
    "<user_instructions>",
    "<environment_context>",
    "<permissions instructions>",
    "<skill>",
    "<subagent_notification>",
    "<turn_aborted>",
    "<user_shell_command>",
)
"""The prefixes of text that the harness inserts in the role `user`."""

SUMMARY_PREFIX = (
    "Another language model started to solve this problem and produced a summary of its thinking process. You also have access to the state of "
    "the tools that were used by that language model. Use this to build on the work that has already been done and avoid duplicating work. Here is "
    "the summary produced by the other language model, use the information in this summary to assist with your own analysis:"
)
"""The line before a summary, by which Codex recognises one in the user's role (version 0.169)."""

_SEALED = re.compile(r"[A-Za-z0-9+/_=-]{64,}")  # encrypted reasoning is base64 of more than a block or two


def envelope(value: Mapping[str, object]) -> tuple[str, Mapping[str, object]]:
    """Return a record's type and payload. Rollouts before September 2025 have bare items and a different first record."""
    kind = fields.text(value, "type")
    if kind in ENVELOPES or isinstance(value.get("payload"), dict):
        return kind, fields.mapping(value, "payload")
    if kind:
        return "response_item", value
    if "id" in value and "timestamp" in value:
        return "session_meta", {**value, "base_instructions": {"text": fields.text(value, "instructions")}}
    return "", value


def is_spoken(kind: str, payload: Mapping[str, object]) -> bool:
    """Return whether an item is part of a response of the model."""
    inner = fields.text(payload, "type")
    if inner in _COMPACTIONS:
        return kind == "response_item" and is_compaction(payload)
    return kind == "response_item" and (inner in SPOKEN or (inner == "message" and payload.get("role") == "assistant"))


def is_compaction(payload: Mapping[str, object]) -> bool:
    """Return whether an item is a compaction that can be sent back."""
    return fields.text(payload, "type") in _COMPACTIONS and is_sealed(payload)


def said_by_harness(payload: Mapping[str, object]) -> bool:
    """Return whether the harness inserted an item of the role `user`. Since version 0.171 each part says where it comes from."""
    about = fields.objects(
        fields.mapping(payload, "internal_chat_message_metadata_passthrough"), "content_item_metadata"
    )
    if origins := {fields.text(fields.mapping(part, "provenance"), "type") for part in about}:
        return "user" not in origins
    first = next(iter(fields.objects(payload, "content")), NOTHING)
    return fields.text(first, "text").startswith(_HARNESS_MARKS)


def tools(payload: Mapping[str, object]) -> Iterator[ToolSpec]:
    """Yield the tools that an item declares (`additional_tools`, since version 0.171), each with its group.

    Raises:
        ValueError: One has no name.
    """
    for declared in fields.objects(payload, "tools"):
        inside = fields.objects(declared, "tools")
        group = {name: fields.text(declared, name) for name in ("name", "description")} if inside else None
        for tool in inside or (declared,):
            yield ToolSpec.model_validate({"group": group, **{key: tool[key] for key in tool if key != "type"}})


def prompt(payload: Mapping[str, object], key: str, at: float) -> Message:
    """Read a message of the user or the developer, or of the harness in either role.

    Raises:
        InvalidMessage: It is not one.
    """
    contents = blocks_of(payload.get("content"))
    role = fields.text(payload, "role")
    if role in {"developer", "system"}:
        extra: dict[str, Any] = {} if role == "system" else {"source_role": role}
        return SystemMessage.from_dict({"id": key, "timestamp": at, "contents": contents, **extra})
    speaker = Speaker.HARNESS if said_by_harness(payload) else Speaker.HUMAN
    return UserMessage(id=key, timestamp=at, contents=contents, speaker=speaker)


def spoken(payload: Mapping[str, object], key: str, at: float, *, response: str, model: str, usage: Usage) -> Message:
    """Read an item from the model: a fragment of a response.

    Raises:
        InvalidMessage: It is not one.
    """
    phase = fields.text(payload, "phase")
    return AssistantMessage(
        id=fields.text(payload, "id") or key,
        timestamp=at,
        contents=_blocks(payload, model),
        model=model or None,
        provider="openai",
        usage=usage,
        response_id=response,
        fragment=bool(response),
        metadata={"phase": phase} if phase else {},
    )


def _blocks(payload: Mapping[str, object], model: str) -> tuple[Content, ...]:
    kind = payload.get("type")
    if kind == "message":
        return blocks_of(payload.get("content"))
    if kind == "reasoning":
        texts = [fields.text(part, "text") for name in ("summary", "content") for part in fields.objects(payload, name)]
        artefact = dict(payload) if is_sealed(payload) else {}
        return (ThinkingContent(content="\n\n".join(texts), provider="openai", model=model, artefact=artefact),)
    if kind in _CALLS:
        return (_call(payload),)
    return (UnknownContent.from_dict({**payload, "type": COMPACTION} if kind in _COMPACTIONS else payload),)


def is_sealed(payload: Mapping[str, object]) -> bool:
    """Return whether reasoning can be sent back, that is, has a provider's encrypted content."""
    return bool(_SEALED.fullmatch(fields.text(payload, "encrypted_content")))


def _call(payload: Mapping[str, object]) -> Content:
    kind = fields.text(payload, "type")
    name: str = fields.text(payload, "name") or kind.removesuffix("_call")
    args: Any = payload.get("arguments")
    if kind == "custom_tool_call":
        args = {"input": payload.get("input")}
    elif kind == "local_shell_call":
        name, args = "local_shell", payload.get("action")
    call: dict[str, Any] = {"id": fields.text(payload, "call_id") or fields.text(payload, "id"), "name": name}
    if kind != "function_call":
        call["call_type"] = kind
    if namespace := fields.text(payload, "namespace"):
        call["namespace"] = namespace
    return ToolCallContent.from_dict({**call, "args": {} if args is None else args})


def output(payload: Mapping[str, object], key: str, at: float) -> Message:
    """Read a tool's result: text, parts, or (in old rollouts) an object with `content` and `success`.

    Raises:
        InvalidMessage: It is not an output.
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
