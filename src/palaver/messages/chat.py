"""Messages in the dict forms of two interfaces, read without loss.

What a message has no field for is kept: keys of the dict stay as extra fields, keys of a part on its block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from palaver.errors import InvalidMessage
from palaver.messages.blocks import ToolResultContent
from palaver.messages.message import Message
from palaver.messages.parts import blocks_of, call_of
from palaver.messages.roles import Role, StopReason
from palaver.messages.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["from_anthropic_dict", "from_chat_dict", "stop_reason_of"]

# Provider words -> ours. OpenAI chat completions finish_reason; Anthropic stop_reason; Gemini FinishReason.
_STOP_REASONS = {
    "stop": StopReason.STOP,
    "end_turn": StopReason.STOP,
    "stop_sequence": StopReason.STOP,
    "pause_turn": StopReason.STOP,
    "length": StopReason.LENGTH,
    "max_tokens": StopReason.LENGTH,
    "model_context_window_exceeded": StopReason.LENGTH,
    "tool_calls": StopReason.TOOL_CALLS,
    "function_call": StopReason.TOOL_CALLS,
    "tool_use": StopReason.TOOL_CALLS,
    "tooluse": StopReason.TOOL_CALLS,
    "content_filter": StopReason.CONTENT_FILTER,
    "safety": StopReason.CONTENT_FILTER,
    "recitation": StopReason.CONTENT_FILTER,
    "refusal": StopReason.ERROR,
    "malformed_function_call": StopReason.ERROR,
    "error": StopReason.ERROR,
    "abort": StopReason.ABORT,
    "aborted": StopReason.ABORT,
}


def stop_reason_of(word: str | None) -> StopReason | None:
    """Read a provider's word for why the model stopped; None if it is not known."""
    return _STOP_REASONS.get(word.lower()) if word else None


def from_chat_dict(message: Mapping[str, Any]) -> Message:
    """Read one message of chat completions.

    An empty message is allowed, since recorded ones exist. The role ``function`` of old recordings is read as TOOL, answering a
    call without an id; ``developer`` as SYSTEM. Either stays as the extra field ``source_role``.

    Raises:
        InvalidMessage: It is none.
    """
    fields = _fields(message)
    content = fields.pop("content", None)
    calls = [call_of(call) for call in fields.pop("tool_calls", None) or ()]
    legacy = fields.pop("function_call", None)
    if legacy:
        calls.append(call_of({"function": legacy}))
    call_id = fields.pop("tool_call_id", None)
    if fields["role"] is Role.TOOL:
        inner = "" if content is None else content if isinstance(content, str) else blocks_of(content)
        said: tuple[Any, ...] = (ToolResultContent(id=call_id or "", content=inner, name=fields.get("name")),)
    else:
        said = blocks_of(content)
        if call_id is not None:
            fields["tool_call_id_of_source"] = call_id
    return Message(**fields, contents=(*said, *calls))


def from_anthropic_dict(message: Mapping[str, Any]) -> Message:
    """Read one message of Anthropic's interface: a request's, or the response object with its id, model and usage.

    A user message of tool results alone becomes a TOOL message.

    Raises:
        InvalidMessage: It is none.
    """
    fields = _fields(message)
    contents = blocks_of(fields.pop("content", None))
    if fields["role"] is Role.USER and contents and all(isinstance(block, ToolResultContent) for block in contents):
        fields["role"] = Role.TOOL
    if fields.get("type") == "message":
        del fields["type"]
    if fields["role"] is Role.ASSISTANT:
        if "id" in fields:
            fields["response_id"] = fields.pop("id")
        word = fields.pop("stop_reason", None)
        fields["stop_reason"] = stop_reason_of(word)
        if word is not None and fields["stop_reason"] != word:
            fields["source_stop_reason"] = word
    return Message(**fields, contents=contents)


def _fields(message: Mapping[str, Any]) -> dict[str, Any]:
    """Copy the keys, the role read and, where it changes, kept."""
    fields = dict(message)
    word = fields.get("role")
    try:
        fields["role"] = Role.TOOL if word == "function" else Role(word)
    except ValueError:
        raise InvalidMessage(f"There is no role {word!r}.", hint=f"Roles are: {', '.join(Role)}.") from None
    if fields["role"] != word:
        fields["source_role"] = word
    if "usage" in fields:
        fields["usage"] = Usage(fields["usage"] or {})
    if fields.get("name") is None:
        fields.pop("name", None)
    return fields
