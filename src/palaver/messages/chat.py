"""Messages in the dict forms of two interfaces, read without loss.

What a message has no field for is kept: a key of the dict as an extra field, as ``source_<key>`` where a message means something
else by that name; a key of a part on its block.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from palaver.messages.blocks import Content, ThinkingContent, ToolResultContent
from palaver.messages.message import Message
from palaver.messages.parts import beside, blocks_of, call_of, calls_of, result_of
from palaver.messages.roles import Role, StopReason, read_role
from palaver.messages.usage import Usage

__all__ = ["from_anthropic_dict", "from_chat_dict", "stop_reason_of"]

# Provider words -> ours. OpenAI chat completions finish_reason; Anthropic stop_reason; Gemini FinishReason; pi stopReason.
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
    "blocklist": StopReason.CONTENT_FILTER,
    "prohibited_content": StopReason.CONTENT_FILTER,
    "spii": StopReason.CONTENT_FILTER,
    "refusal": StopReason.ERROR,
    "malformed_function_call": StopReason.ERROR,
    "error": StopReason.ERROR,
    "abort": StopReason.ABORT,
    "aborted": StopReason.ABORT,
}


def stop_reason_of(word: str | None) -> StopReason | None:
    """Read a provider's word for why the model stopped; None if it is not known."""
    return _STOP_REASONS.get(word.lower()) if word else None


def from_chat_dict(message: Mapping[str, Any], **fields: Any) -> Message:  # noqa: ANN401 - fields of a message
    """Read one message of chat completions; ``fields`` are set as they are, such as an id the caller derived.

    An empty message is allowed, since recorded ones exist. The role ``function`` of old recordings is read as TOOL, ``developer``
    as SYSTEM; either word stays as ``source_role``. Reasoning that LiteLLM and DeepSeek put beside the content becomes thinking, and a
    refusal, which OpenAI puts there, the text that it is.

    Raises:
        InvalidMessage: It is none.
    """
    rest = dict(message)
    own = _own(rest)
    call_id, content = rest.pop("tool_call_id", None), rest.pop("content", None)
    if own["role"] is Role.TOOL:
        result = ToolResultContent(id=call_id or "", content=result_of(content), name=own.get("name"))
        contents: tuple[Content, ...] = (result,)
    else:
        contents = (*_reasoning(rest), *(_refusal(own, rest) if content is None else blocks_of(content)))
        if call_id is not None:
            rest["source_tool_call_id"] = call_id
    calls = calls_of(rest.pop("tool_calls", None))
    legacy = rest.pop("function_call", None)
    if legacy:
        calls = (*calls, call_of({"function": legacy}))
    return Message.from_dict(beside(Message, rest) | own | {"contents": (*contents, *calls)} | fields)


def from_anthropic_dict(message: Mapping[str, Any], **fields: Any) -> Message:  # noqa: ANN401 - fields of a message
    """Read one message of Anthropic's interface: a request's, or the response object with its id, model and usage.

    A user message of tool results alone becomes a TOOL message. ``fields`` are set as they are.

    Raises:
        InvalidMessage: It is none.
    """
    rest = dict(message)
    own = _own(rest)
    contents = blocks_of(rest.pop("content", None))
    if own["role"] is Role.USER and contents and all(isinstance(block, ToolResultContent) for block in contents):
        own["role"] = Role.TOOL
    if rest.get("type") == "message":
        del rest["type"]
        own["response_id"] = rest.pop("id", None)
    word = rest.get("stop_reason")
    if isinstance(word, str):
        own["stop_reason"] = stop_reason_of(word)  # the word itself stays: it says more
    return Message.from_dict(beside(Message, rest) | own | {"contents": contents} | fields)


def _own(rest: dict[str, Any]) -> dict[str, Any]:
    """Take out the keys that mean the same to both interfaces and to a message; a role that is renamed stays as well."""
    word = rest.pop("role", None)
    own: dict[str, Any] = {"role": Role.TOOL if word == "function" else read_role(word)}
    if own["role"] != word:
        rest["source_role"] = word
    for key in ("name", "model"):
        if isinstance(rest.get(key), str):
            own[key] = rest.pop(key)
    if isinstance(rest.get("usage"), Mapping):
        own["usage"] = Usage(rest.pop("usage"))
    return own


def _reasoning(rest: dict[str, Any]) -> tuple[Content, ...]:
    """Take out the reasoning beside the content: signed blocks if there are any, else its text."""
    signed, text = rest.get("thinking_blocks"), rest.get("reasoning_content")
    if isinstance(signed, list) and signed:
        return blocks_of(rest.pop("thinking_blocks"))
    return (ThinkingContent(content=rest.pop("reasoning_content")),) if isinstance(text, str) and text else ()


def _refusal(own: Mapping[str, Any], rest: Mapping[str, Any]) -> tuple[Content, ...]:
    """Give the words with which the model refused; they stand beside a content that is null, and the key stays as an extra field.

    Source: OpenAI API reference, chat completion message, ``refusal``.
    """
    said = rest.get("refusal") if own["role"] is Role.ASSISTANT else None
    return blocks_of([{"type": "refusal", "refusal": said}]) if isinstance(said, str) and said else ()
