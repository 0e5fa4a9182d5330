"""How the conversation of a request is read, message by message, for what its provider counts over all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from palaver.messages import freeze
from palaver.wire.profiles import Calls

__all__ = ["CONVERSATIONS", "Conversation", "Item"]

Item: TypeAlias = Mapping[str, Any]
"""A message, an item or a content, as the provider calls it."""


class Conversation(NamedTuple):
    """The conversation in the requests of one provider.

    Attributes:
        field: The field of the body that holds it.
        spoken: Tells whether an item is the model's.
        asks: Tells whether an item is the user's words, and no results.
        ids: Gives the ids of an item that no other item of a request may have.
        images: Counts the images of an item.
        marked: Tells whether an item carries a cache mark in this field; where no rule counts them, none does.
        tied: Gives the ids that bind an item to another one that may stand anywhere; none where only neighbours belong together.
        anything: What a user might say.
    """

    field: str
    spoken: Callable[[object], bool]
    asks: Callable[[object], bool]
    ids: Callable[[object, Calls], tuple[str, ...]]
    images: Callable[[object], int]
    marked: Callable[[object, str], bool]
    tied: Callable[[object], tuple[str, ...]]
    anything: Item


def _listed(item: object, field: str) -> Iterator[Item]:
    """Give the objects of a list in a field; none where there is no such list."""
    found = item.get(field) if isinstance(item, Mapping) else None
    return (each for each in found if isinstance(each, Mapping)) if isinstance(found, list | tuple) else iter(())


def _said_by(item: object, role: str) -> bool:
    return isinstance(item, Mapping) and item.get("role") == role


def _texts(values: Iterator[object]) -> tuple[str, ...]:
    return tuple(value for value in values if isinstance(value, str))


def _unmarked(_item: object, _field: str) -> bool:
    return False


def _untied(_item: object) -> tuple[str, ...]:
    return ()


# --- Chat Completions ------------------------------------------------------------------------------------------------------


def _chat_ids(item: object, rules: Calls) -> tuple[str, ...]:
    return _texts(call.get("id") for call in _listed(item, "tool_calls")) if rules.unique == "request" else ()


def _chat_images(item: object) -> int:
    return sum(part.get("type") == "image_url" for part in _listed(item, "content"))


# --- Responses -------------------------------------------------------------------------------------------------------------


def _kind(item: object) -> object:
    return item.get("type", "message") if isinstance(item, Mapping) else None


def _responses_spoken(item: object) -> bool:
    kind = _kind(item)
    return _said_by(item, "assistant") if kind == "message" else not str(kind).endswith("_output")


def _responses_ids(item: object, rules: Calls) -> tuple[str, ...]:
    if not isinstance(item, Mapping):
        return ()
    ids = (f"item {found}" for found in _texts(iter((item.get("id"),))))
    called = rules.unique == "request" and _kind(item) in {"function_call", "custom_tool_call"}
    calls = (f"call {found}" for found in _texts(iter((item.get("call_id"),)))) if called else ()
    return (*ids, *calls)


def _responses_tied(item: object) -> tuple[str, ...]:
    """Give the ids of a call and of an item: an output may stand anywhere behind its call, a reference anywhere behind its item."""
    return _texts(item.get(name) for name in ("call_id", "id")) if isinstance(item, Mapping) else ()


def _responses_images(item: object) -> int:
    return sum(part.get("type") == "input_image" for field in ("content", "output") for part in _listed(item, field))


# --- Messages --------------------------------------------------------------------------------------------------------------


def _blocks(item: object) -> Iterator[Item]:
    """Give the blocks of a message, and those in its results."""
    for block in _listed(item, "content"):
        yield block
        yield from _listed(block, "content")


def _anthropic_asks(item: object) -> bool:
    return _said_by(item, "user") and all(block.get("type") != "tool_result" for block in _listed(item, "content"))


def _anthropic_ids(item: object, rules: Calls) -> tuple[str, ...]:
    if rules.unique != "request":
        return ()
    return _texts(block.get("id") for block in _listed(item, "content") if block.get("type") == "tool_use")


def _anthropic_images(item: object) -> int:
    return sum(block.get("type") == "image" for block in _blocks(item))


def _anthropic_marked(item: object, field: str) -> bool:
    return any(field in block for block in _blocks(item))


# --- Gemini ----------------------------------------------------------------------------------------------------------------


def _gemini_asks(item: object) -> bool:
    theirs = isinstance(item, Mapping) and item.get("role", "user") == "user"
    return theirs and all(part.get("functionResponse") is None for part in _listed(item, "parts"))


def _gemini_ids(_item: object, _rules: Calls) -> tuple[str, ...]:
    return ()  # ids differ within a content only


def _gemini_images(item: object) -> int:
    inner = (
        part for each in _listed(item, "parts") for part in (each, *_listed(each.get("functionResponse"), "parts"))
    )
    media = (part.get(name) for part in inner for name in ("inlineData", "fileData"))
    return sum(isinstance(each, Mapping) and str(each.get("mimeType")).startswith("image/") for each in media)


CONVERSATIONS: Mapping[str, Conversation] = MappingProxyType(
    {
        "openai-chat": Conversation(
            "messages",
            lambda item: _said_by(item, "assistant"),
            lambda item: _said_by(item, "user"),
            _chat_ids,
            _chat_images,
            _unmarked,
            _untied,
            freeze({"role": "user", "content": "."}, "", []),
        ),
        "openai-responses": Conversation(
            "input",
            _responses_spoken,
            lambda item: _kind(item) == "message" and _said_by(item, "user"),
            _responses_ids,
            _responses_images,
            _unmarked,
            _responses_tied,
            freeze({"type": "message", "role": "user", "content": "."}, "", []),
        ),
        "anthropic": Conversation(
            "messages",
            lambda item: _said_by(item, "assistant"),
            _anthropic_asks,
            _anthropic_ids,
            _anthropic_images,
            _anthropic_marked,
            _untied,
            freeze({"role": "user", "content": "."}, "", []),
        ),
        "gemini": Conversation(
            "contents",
            lambda item: _said_by(item, "model"),
            _gemini_asks,
            _gemini_ids,
            _gemini_images,
            _unmarked,
            _untied,
            freeze({"role": "user", "parts": [{"text": "."}]}, "", []),
        ),
    }
)
