"""Messages in the dict forms of two interfaces, read without loss.

A key that a message has no field for stays as an extra field, as ``source_<key>`` where a message has a field of that name. A key of
a part stays on its block.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from palaver.messages.blocks import Content, ThinkingContent, ToolResultContent
from palaver.messages.forms import blocks_of, call_of, calls_of, extra_fields, result_of
from palaver.messages.message import Message
from palaver.messages.roles import Role, stop_reason_of
from palaver.messages.usage import Usage


def from_chat_dict(message: Mapping[str, Any], **fields: Any) -> Message:  # noqa: ANN401 - fields of a message
    """Read one message of chat completions; `fields` are set as they are, such as an id the caller derived.

    An empty message is allowed, since recorded ones exist. The role ``function`` of old recordings is read as TOOL, ``developer``
    as SYSTEM; the word stays as ``source_role``. Reasoning beside the content (LiteLLM, DeepSeek) becomes thinking, and a refusal
    beside it (OpenAI API reference, chat completion message) becomes text.

    Raises:
        InvalidMessage: It is not a message.
    """
    rest = dict(message)
    own = _own_fields(rest)
    call_id, content = rest.pop("tool_call_id", None), rest.pop("content", None)
    parts = () if content is None or isinstance(content, str) else blocks_of(content)
    if own["role"] is Role.TOOL and parts and all(isinstance(part, ToolResultContent) for part in parts):
        contents: tuple[Content, ...] = parts  # the AI SDK's tool messages have results as parts
    elif own["role"] is Role.TOOL:
        result = ToolResultContent(id=call_id or "", content=result_of(content), name=own.get("name"))
        contents = (result,)
    else:
        refusal = rest.get("refusal") if own["role"] is Role.ASSISTANT else None
        if content is None and isinstance(refusal, str) and refusal:
            content = [{"type": "refusal", "refusal": refusal}]
        contents = (*_reasoning(rest), *blocks_of(content))
        if call_id is not None:
            rest["source_tool_call_id"] = call_id
    calls = calls_of(rest.pop("tool_calls", None))
    legacy = rest.pop("function_call", None)
    if legacy:
        calls = (*calls, call_of({"function": legacy}))
    return Message.from_dict(extra_fields(Message, rest) | own | {"contents": (*contents, *calls)} | fields)


def from_anthropic_dict(message: Mapping[str, Any], **fields: Any) -> Message:  # noqa: ANN401 - fields of a message
    """Read one message of Anthropic's interface: a request's, or the response object with its id, model and usage.

    A user message of tool results alone becomes a TOOL message. `fields` are set as they are.

    Raises:
        InvalidMessage: It is not a message.
    """
    rest = dict(message)
    own = _own_fields(rest)
    contents = blocks_of(rest.pop("content", None))
    if own["role"] is Role.USER and contents and all(isinstance(block, ToolResultContent) for block in contents):
        own["role"] = Role.TOOL
    if rest.get("type") == "message":
        del rest["type"]
        own["response_id"] = rest.pop("id", None)
    word = rest.get("stop_reason")
    if isinstance(word, str):
        own["stop_reason"] = stop_reason_of(word)  # the word itself stays: it is more precise
    return Message.from_dict(extra_fields(Message, rest) | own | {"contents": contents} | fields)


def _own_fields(rest: dict[str, Any]) -> dict[str, Any]:
    """Remove the keys that mean the same to both interfaces and to a message; a renamed role also stays."""
    word = rest.pop("role", None)
    own: dict[str, Any] = {"role": Role.TOOL if word == "function" else Role(word)}
    if own["role"] != word:
        rest["source_role"] = word
    for key in ("name", "model"):
        if isinstance(rest.get(key), str):
            own[key] = rest.pop(key)
    if isinstance(rest.get("usage"), Mapping):
        own["usage"] = Usage(rest.pop("usage"))
    return own


def _reasoning(rest: dict[str, Any]) -> tuple[Content, ...]:
    """Remove the reasoning outside the content: signed blocks if there are any, else its text."""
    signed, text = rest.get("thinking_blocks"), rest.get("reasoning_content")
    if isinstance(signed, list) and signed:
        return blocks_of(rest.pop("thinking_blocks"))
    return (ThinkingContent(content=rest.pop("reasoning_content")),) if isinstance(text, str) and text else ()
