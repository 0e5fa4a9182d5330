"""Dialects: which interface a list of messages is written for, and how it is read and written back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from palaver.context.fitting import anthropic, chat, gemini, responses
from palaver.context.fitting.given import WANTED
from palaver.context.fitting.pieces import Piece
from palaver.context.fitting.turns import Turns
from palaver.errors import InvalidInput, InvalidMessage
from palaver.log import ToolSpec
from palaver.messages import Message, from_anthropic_dict

__all__ = ["DIALECTS", "Dialect", "dialect", "tool_specs"]


@dataclass(frozen=True, slots=True)
class Dialect:
    """One interface's way of writing messages.

    Attributes:
        name: The name, which is also that of the profile its lists are held to.
        key: Where the list stands in a request.
        says: The keys of a message that hold what it says.
        reader: Gives what reads the messages of one list, in their order; keywords are fields of a message that are set as they are.
        write: Writes a piece as messages, none where nothing of it can be said.
        turns: How it writes turns, where neighbours of one role are one message, results are the user's words, and the user speaks first;
            None where it does not.
        beside: What else a request must have, for its list to be judged.
        unled: Gives, by place, the caller's items that can only be found with something that does not stay before them, as they can
            stand without it; None for one that cannot. Takes his list and the places of what stays.
        alone: Whether a message means the same whatever stands before it in the list.
        system: Where the instructions stand in a request that is compiled; empty where they are messages.
    """

    name: str
    key: str
    says: frozenset[str]
    reader: Callable[[], Callable[..., Message]]
    write: Callable[[Piece, Mapping[str, Any]], Iterator[dict[str, Any]]]
    turns: Turns | None = None
    beside: Mapping[str, Any] = field(default_factory=dict)
    unled: Callable[[Sequence[Mapping[str, Any]], Collection[int]], Mapping[int, Mapping[str, Any] | None]] = (
        lambda _items, _kept: {}
    )
    alone: bool = True
    system: str = ""

    def require(self, messages: Sequence[Mapping[str, Any]], why: str) -> None:
        """Insist that all messages are written in this dialect: one whose words stand elsewhere would be taken for an empty one.

        Args:
            messages: The messages.
            why: What the list is taken for this dialect's for, as errors say it; empty where nothing in it speaks for one.

        Raises:
            InvalidMessage: One has none of the keys that hold what is said.
        """
        for index, message in enumerate(messages):
            if not self.says & message.keys() and not (self.key == "input" and isinstance(message.get("type"), str)):
                keys = ", ".join(map(str, message)) or "none"
                wanted = "content" if "content" in self.says else ", ".join(self.says)
                said = f"Item {index} of the messages has no {wanted}; its keys: {keys}."
                because = f": {why}" if why else ""
                raise InvalidMessage(said, hint=f"The list is read as that of {self.name}{because}. {WANTED}")

    def by_model(self, message: Mapping[str, Any]) -> bool:
        """Tell whether a message is the model's."""
        if self.turns is not None:
            return message.get("role") == self.turns.model
        kind = message.get("type")
        return message.get("role") == "assistant" or (isinstance(kind, str) and kind.endswith("_call"))

    def instructions(self, body: Mapping[str, Any]) -> str:
        """Give the instructions that stand beside the list in a request."""
        found = body.get(self.system) or ()
        if isinstance(found, str):
            return found
        parts = found.get("parts", ()) if isinstance(found, Mapping) else found
        return "\n\n".join(part["text"] for part in parts)


_CONTENT, _PARTED = frozenset({"content"}), frozenset({"parts"})
_CHAT = _CONTENT | {
    "tool_calls",
    "function_call",
    "tool_call_id",
    "refusal",
    "audio",
    "reasoning_content",
    "thinking_blocks",
}
_ANY = {"name": "any", "input_schema": {"type": "object"}}

DIALECTS: Mapping[str, Dialect] = MappingProxyType(
    {
        each.name: each
        for each in (
            Dialect("openai-chat", "messages", _CHAT, lambda: chat.read, chat.written),
            Dialect(
                "openai-responses",
                "input",
                _CONTENT,
                responses.reader,
                responses.written,
                unled=responses.unled,
                alone=False,
                system="instructions",
            ),
            Dialect(
                "anthropic",
                "messages",
                _CONTENT,
                lambda: from_anthropic_dict,
                anthropic.written,
                anthropic.TURNS,
                beside={"max_tokens": 1, "tools": [_ANY]},
                system="system",
            ),
            Dialect(
                "gemini",
                "contents",
                _PARTED,
                gemini.reader,
                gemini.written,
                gemini.TURNS,
                alone=False,
                system="systemInstruction",
            ),
        )
    }
)
"""The dialects, by name."""

_ROLES = MappingProxyType(dict.fromkeys(("tool", "function"), "openai-chat") | {"model": "gemini"})
_KEYS = MappingProxyType(
    dict.fromkeys(("tool_calls", "tool_call_id", "function_call"), "openai-chat") | {"parts": "gemini"}
)
_PARTS = MappingProxyType(
    dict.fromkeys(("image_url", "input_audio", "refusal", "file"), "openai-chat")
    | dict.fromkeys(("tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document"), "anthropic")
    | dict.fromkeys(("input_text", "output_text", "input_image", "input_file"), "openai-responses")
)
"""What only one of the interfaces has."""
_INSTRUCTED = frozenset({"system", "developer"})
"""Roles that both of OpenAI's interfaces have, and no other."""


def dialect(
    name: str | None, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]], model: str
) -> Dialect:
    """Give the dialect of that name, or the one in which a list is written.

    A list that could be either (texts alone) is taken for Anthropic's where its tools or its model are.

    Raises:
        InvalidInput: There is no dialect of that name.
        InvalidMessage: One of the messages is not written in it.
    """
    if name is not None and name not in DIALECTS:
        raise InvalidInput(f"There is no dialect {name!r}.", hint=f"Dialects: {', '.join(DIALECTS)}.")
    usual = "anthropic" if "claude" in model.lower() else "openai-chat"
    if any(message.get("role") in _INSTRUCTED for message in messages):
        usual = "openai-chat"
    found, why = (name, "dialect_name says so") if name else next(_told(messages, tools), (usual, ""))
    said = DIALECTS[found]
    said.require(messages, why)
    return said


def _told(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Give the dialects that something in a request speaks for, each with what that is."""
    for index, message in enumerate(messages):
        yield from ((sign, f"item {index} is written so") for sign in _signs(message))
    for index, tool in enumerate(tools):
        yield from ((sign, f"item {index} of the tools is written so") for sign in _tool_signs(tool))


def _signs(message: Mapping[str, Any]) -> Iterator[str]:
    """Give the dialects that a message speaks for."""
    kind = message.get("type")
    if isinstance(kind, str) and (kind in responses.ITEMS or kind.endswith("_call")) and "stop_reason" not in message:
        yield "openai-responses"
    yield from (_KEYS[key] for key in message if message[key] is not None and key in _KEYS)
    if message.get("role") in _ROLES:
        yield _ROLES[message["role"]]
    content = message.get("content")
    if isinstance(content, list | tuple):
        kinds = (part.get("type") for part in content if isinstance(part, Mapping))
        yield from (_PARTS[kind] for kind in kinds if isinstance(kind, str) and kind in _PARTS)


def _tool_signs(tool: Mapping[str, Any]) -> Iterator[str]:
    """Give the dialects that a tool's schema speaks for."""
    yield from (_TOOLS[key] for key in _TOOLS if key in tool)
    if tool.get("type") in {"function", "custom"}:
        yield "openai-responses"


_TOOLS = MappingProxyType(
    {
        "input_schema": "anthropic",
        "function": "openai-chat",
        "custom": "openai-chat",
        "functionDeclarations": "gemini",
        "function_declarations": "gemini",
    }
)
"""The keys of tools that only one of the interfaces has."""


def tool_specs(tools: Sequence[Mapping[str, Any]]) -> tuple[ToolSpec, ...]:
    """Read tool schemas in any dialect; one that a provider runs itself is known by its name alone.

    Raises:
        InvalidInput: One of them is no object.
    """
    return tuple(spec for tool in tools for spec in _specs(tool))


def _specs(tool: object) -> Iterator[ToolSpec]:
    declared = next((tool[key] for key in _DECLARED if key in tool), None) if isinstance(tool, Mapping) else None
    yield from map(_spec, declared if isinstance(declared, list | tuple) else [tool])


_DECLARED = ("functionDeclarations", "function_declarations")


def _spec(tool: object) -> ToolSpec:
    if not isinstance(tool, Mapping):
        raise InvalidInput(
            f"A {type(tool).__name__} is no tool's schema.", hint="Pass the dicts that the provider gets."
        )
    inner = (tool.get(key) for key in ("function", "custom"))
    said: Mapping[str, Any] = next((each for each in inner if isinstance(each, Mapping)), tool)
    schema = next((said[key] for key in _SCHEMAS if key in said), None)
    return ToolSpec(
        name=str(said.get("name") or said.get("type") or ""),
        description=str(said.get("description") or ""),
        parameters=schema if isinstance(schema, Mapping) else {},
    )


_SCHEMAS = ("parameters", "input_schema", "parametersJsonSchema", "parameters_json_schema", "format")
"""Where a tool says what it is called with; the last is that of a custom tool, which may hold a grammar."""
