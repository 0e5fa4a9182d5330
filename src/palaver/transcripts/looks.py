"""How a record of a format with one record a line is looked at: what is in it, told to a scan, nothing built from it.

A look reads what a request would repeat: texts, calls, results, images, thoughts. It is told nothing else, and keeps nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias

from pydantic_core import from_json

__all__ = ["LOOKS", "Look", "Watch"]


NUL = rb"\u0000"
SURROGATE = range(0xD800, 0xE000)


class Watch(Protocol):
    """Who is told: a scan."""

    def record(self, place: str, name: str, parent: str) -> None:
        """A record has an id, and names the one before it."""
        ...

    def said(self, response: str | None) -> None:
        """Somebody speaks."""
        ...

    def text(self, place: str, text: str) -> None:
        """A text says nothing."""
        ...

    def call(self, place: str, call_id: str, name: str, error: str = "") -> None:
        """A call is made."""
        ...

    def result(self, place: str, call_id: str) -> None:
        """A call is answered."""
        ...

    def image(self, place: str, media_type: str, data: str) -> None:
        """There is an image."""
        ...

    def thought(self, place: str, said: str, signature: str, thinker: str) -> None:
        """There is a thought."""
        ...


Look: TypeAlias = Callable[["Watch", str, Mapping[str, Any]], None]
"""Looks at a record: (who is told, its place, the record)."""


def _claude_code(watch: Watch, place: str, value: Mapping[str, Any]) -> None:
    if "uuid" in value:
        watch.record(place, value["uuid"], value.get("parentUuid") or value.get("logicalParentUuid") or "")
    kind = value.get("type")
    if kind == "progress":
        data = value.get("data") or {}
        inner = data.get("message") if data.get("type") == "agent_progress" else None
        if isinstance(inner, dict) and inner.get("type") in {"user", "assistant"}:
            _claude_message(watch, place, inner)
    elif kind in {"user", "assistant"} and not value.get("isApiErrorMessage"):
        _claude_message(watch, place, value)


def _claude_message(watch: Watch, place: str, value: Mapping[str, Any]) -> None:
    message = value["message"]
    content = message.get("content")
    if value["type"] == "assistant":
        watch.said(message.get("id") or value.get("uuid"))
    if isinstance(content, str):
        watch.said(None)
        if not content or content.isspace():
            watch.text(place, content)
        return
    thinker = "claude" if str(message.get("model", "claude")).startswith("claude") else ""
    for block in content or ():
        _anthropic_block(watch, place, block, thinker)


def _anthropic_block(watch: Watch, place: str, block: Mapping[str, Any], thinker: str) -> None:
    kind = block["type"]
    if kind == "text":
        said = block["text"]
        if not said or said.isspace():
            watch.text(place, said)
    elif kind == "tool_use":
        watch.call(place, block["id"], block["name"], _no_object(block.get("input")))
    elif kind == "tool_result":
        _anthropic_result(watch, place, block)
    elif kind == "thinking":
        watch.thought(place, block.get("thinking") or "", block.get("signature") or "", thinker)
    elif kind == "image":
        _anthropic_image(watch, place, block)


def _anthropic_result(watch: Watch, place: str, block: Mapping[str, Any]) -> None:
    watch.result(place, block["tool_use_id"])
    inner = block.get("content")
    for part in inner if isinstance(inner, list) else ():
        if part.get("type") == "image":
            _anthropic_image(watch, place, part)


def _anthropic_image(watch: Watch, place: str, block: Mapping[str, Any]) -> None:
    source = block.get("source") or {}
    if source.get("type") == "base64":
        watch.image(place, source.get("media_type") or "", source.get("data") or "")


def _codex(watch: Watch, place: str, value: Mapping[str, Any]) -> None:
    if value.get("type") != "response_item":
        return
    item = value["payload"]
    kind = item["type"]
    if kind == "message":
        watch.said(None)
        for part in item.get("content") or ():
            _openai_part(watch, place, part)
    elif kind in {"function_call", "custom_tool_call"}:
        watch.call(place, item["call_id"], item["name"], _unread(item.get("arguments")))
    elif kind in {"function_call_output", "custom_tool_call_output"}:
        watch.result(place, item["call_id"])
        output = item.get("output")
        for part in output if isinstance(output, list) else ():
            _openai_part(watch, place, part)
    elif kind == "reasoning" and item.get("encrypted_content"):
        watch.thought(place, "", "", "gpt")


def _openai_part(watch: Watch, place: str, part: Mapping[str, Any]) -> None:
    kind = part.get("type")
    if kind in {"input_text", "output_text", "text"}:
        said = part["text"]
        if not said or said.isspace():
            watch.text(place, said)
    elif kind == "input_image" and str(part.get("image_url", "")).startswith("data:"):
        head, _, data = part["image_url"].partition(",")
        watch.image(place, head[5:].partition(";")[0], data)


def _unread(arguments: object) -> str:
    """Say why arguments that are written as JSON cannot be read; empty when they can."""
    if not isinstance(arguments, str) or arguments == "":
        return ""  # a free-form tool is given a text, and some are given nothing
    try:
        found = from_json(arguments)
    except ValueError as error:
        return str(error)
    return _no_object(found)


def _no_object(arguments: object) -> str:
    return "" if isinstance(arguments, dict) else f"they are {type(arguments).__name__}, no object"


def _pi(watch: Watch, place: str, value: Mapping[str, Any]) -> None:
    if "id" in value and "parentId" in value:
        watch.record(place, value["id"], value["parentId"] or "")
    if value.get("type") != "message":
        return
    message = value["message"]
    role, content = message["role"], message.get("content")
    if role == "toolResult":
        watch.result(place, message["toolCallId"])
    else:
        watch.said(place if role == "assistant" else None)
    if isinstance(content, str):
        if not content or content.isspace():
            watch.text(place, content)
        return
    provider = message.get("provider")
    thinker = {"anthropic": "claude", "openai": "gpt", "google": "gemini"}.get(provider, "") if provider else ""
    failed = message.get("stopReason") in {"error", "aborted"}
    for block in content or ():
        _pi_block(watch, place, block, "" if failed else thinker)


def _pi_block(watch: Watch, place: str, block: Mapping[str, Any], thinker: str) -> None:
    kind = block["type"]
    if kind == "text":
        said = block["text"]
        if not said or said.isspace():
            watch.text(place, said)
    elif kind == "toolCall":
        watch.call(place, block["id"], block["name"], _no_object(block.get("arguments")))
    elif kind == "thinking":
        watch.thought(place, block.get("thinking") or "", block.get("thinkingSignature") or "", thinker)
    elif kind == "image":
        watch.image(place, block.get("mimeType") or "", block.get("data") or "")


LOOKS: Mapping[str, Look] = MappingProxyType({"claude-code": _claude_code, "codex": _codex, "pi": _pi})
"""The formats that are looked at line by line; what every other holds, its reader tells."""
