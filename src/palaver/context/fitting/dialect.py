"""Dialects: which interface a list of messages is written for, and how it is read and written back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from palaver.context.fitting import anthropic, chat
from palaver.context.fitting.pieces import Piece
from palaver.errors import InvalidInput
from palaver.log import ToolSpec
from palaver.messages import Message, from_anthropic_dict, from_chat_dict

__all__ = ["DIALECTS", "Dialect", "dialect", "tool_specs"]


@dataclass(frozen=True, slots=True)
class Dialect:
    """One interface's way of writing messages.

    Attributes:
        name: The name, which is also that of the profile its lists are held to.
        read: Reads a message; keywords are fields of it that are set as they are.
        write: Writes a piece as messages, none where nothing of it can be said.
        turns: True when neighbours of one role are one message, results are the user's words, and the user speaks first.
    """

    name: str
    read: Callable[..., Message]
    write: Callable[[Piece, Mapping[str, Any]], Iterator[dict[str, Any]]]
    turns: bool


DIALECTS: Mapping[str, Dialect] = MappingProxyType(
    {
        each.name: each
        for each in (
            Dialect("openai-chat", from_chat_dict, chat.written, turns=False),
            Dialect("anthropic", from_anthropic_dict, anthropic.written, turns=True),
        )
    }
)
"""The dialects, by name."""

_ROLES = MappingProxyType(dict.fromkeys(("system", "developer", "tool", "function"), "openai-chat"))
_KEYS = MappingProxyType(dict.fromkeys(("tool_calls", "tool_call_id", "function_call"), "openai-chat"))
_PARTS = MappingProxyType(
    dict.fromkeys(("image_url", "input_audio", "refusal", "file"), "openai-chat")
    | dict.fromkeys(("tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document"), "anthropic")
)
"""What only one of the two interfaces has."""


def dialect(
    name: str | None, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]], model: str
) -> Dialect:
    """Give the dialect of that name, or the one in which a list is written.

    A list that could be either (texts alone) is taken for Anthropic's where its tools or its model are.

    Raises:
        InvalidInput: There is no dialect of that name.
    """
    if name is not None:
        if name not in DIALECTS:
            raise InvalidInput(f"There is no dialect {name!r}.", hint=f"Dialects: {', '.join(DIALECTS)}.")
        return DIALECTS[name]
    usual = "anthropic" if "claude" in model.lower() else "openai-chat"
    return DIALECTS[next(_signs(messages, tools), usual)]


def _signs(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for message in messages:
        yield from (_KEYS[key] for key in message if message[key] is not None and key in _KEYS)
        if message.get("role") in _ROLES:
            yield _ROLES[message["role"]]
        content = message.get("content")
        if isinstance(content, list | tuple):
            kinds = (part.get("type") for part in content if isinstance(part, Mapping))
            yield from (_PARTS[kind] for kind in kinds if isinstance(kind, str) and kind in _PARTS)
    for tool in tools:
        if "input_schema" in tool or "function" in tool:
            yield "anthropic" if "input_schema" in tool else "openai-chat"


def tool_specs(tools: Sequence[Mapping[str, Any]]) -> tuple[ToolSpec, ...]:
    """Read tool schemas in either dialect; one that a provider runs itself is known by its name alone.

    Raises:
        InvalidInput: One of them is no object.
    """
    return tuple(map(_spec, tools))


def _spec(tool: object) -> ToolSpec:
    if not isinstance(tool, Mapping):
        raise InvalidInput(
            f"A {type(tool).__name__} is no tool's schema.", hint="Pass the dicts that the provider gets."
        )
    inner = tool.get("function")
    said: Mapping[str, Any] = inner if isinstance(inner, Mapping) else tool
    schema = said.get("parameters", said.get("input_schema"))
    return ToolSpec(
        name=str(said.get("name") or said.get("type") or ""),
        description=str(said.get("description") or ""),
        parameters=schema if isinstance(schema, Mapping) else {},
    )
