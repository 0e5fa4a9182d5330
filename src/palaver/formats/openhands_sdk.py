"""The events of OpenHands' SDK as messages (OpenHands/software-agent-sdk, `openhands/sdk/event`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from palaver.formats import fields
from palaver.formats.lists import kept
from palaver.messages import (
    AssistantMessage,
    Content,
    Message,
    Speaker,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
)
from palaver.messages.forms import blocks_of, result_of

KINDS = frozenset(
    {"MessageEvent", "ActionEvent", "ObservationEvent", "SystemPromptEvent", "AgentErrorEvent"}
    | {"UserRejectObservation", "Condensation"}
)
"""The kinds of events that are read; others are kept as they are."""

_READ = frozenset(
    {"id", "timestamp", "source", "kind", "llm_message", "thought", "action", "tool_name", "tool_call_id", "tool_call"}
    | {"llm_response_id", "reasoning_content", "thinking_blocks", "error", "rejection_reason", "extended_content"}
    | {"observation", "action_id"}
)


def message_of(value: Mapping[str, object], about: Mapping[str, Any], *, first: bool) -> Message:
    """Read an event in which something was said, called or answered.

    Args:
        value: The event.
        about: The message's id and time.
        first: Whether it is the first event of its response; each repeats what the model thought.

    Raises:
        InvalidMessage: Its content is not a list of blocks.
    """
    match fields.text(value, "kind"):
        case "MessageEvent":
            return _said(value, {**about, "metadata": kept(value, _READ)})
        case "ActionEvent":
            return _call(value, {**about, "metadata": kept(value, _READ)}, first=first)
    return _result(value, about)


def _said(value: Mapping[str, object], about: dict[str, Any]) -> Message:
    said = fields.mapping(value, "llm_message")
    blocks = (*blocks_of(said.get("content")), *blocks_of(value.get("extended_content")))
    about["metadata"] |= kept(said, {"content", "role"})
    if said.get("role") == "assistant":
        return AssistantMessage(contents=blocks, **about)
    speaker = Speaker.HARNESS if value.get("source") == "environment" else Speaker.HUMAN
    return UserMessage(contents=blocks, speaker=speaker, **about)


def _call(value: Mapping[str, object], about: dict[str, Any], *, first: bool) -> Message:
    made, response = fields.mapping(value, "tool_call"), fields.text(value, "llm_response_id")
    said: list[Content] = []
    if first:
        reasoning = fields.text(value, "reasoning_content")
        thoughts: Any = fields.items(value, "thinking_blocks")
        if reasoning and not thoughts:
            thoughts = [{"type": "thinking", "thinking": reasoning}]
        said += [*blocks_of(thoughts), *blocks_of(value.get("thought"))]
    name = fields.text(value, "tool_name") or fields.text(made, "name")
    args = made.get("arguments") or kept(fields.mapping(value, "action"), {"kind"})
    rest = kept(made, {"id", "name", "arguments", "origin"})
    call = ToolCallContent.from_dict(
        {**rest, "id": fields.text(value, "tool_call_id") or fields.text(made, "id"), "name": name, "args": args}
    )
    return AssistantMessage(contents=(*said, call), response_id=response or None, fragment=bool(response), **about)


def _result(value: Mapping[str, object], about: Mapping[str, Any]) -> Message:
    seen = fields.mapping(value, "observation")
    failure = fields.text(value, "error") or fields.text(value, "rejection_reason")
    block = ToolResultContent(
        id=fields.text(value, "tool_call_id"),
        content=failure or result_of(seen.get("content") if "content" in seen else seen.get("output")),
        is_error=bool(failure) or seen.get("is_error") is True,
        name=fields.text(value, "tool_name") or None,
    )
    rest = {**kept(value, _READ), **kept(seen, {"content", "output", "kind", "is_error"})}
    return ToolMessage(contents=(block,), metadata=rest, **about)
