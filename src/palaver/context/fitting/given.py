"""The caller's messages as dicts: his own where he gave dicts, and what an SDK's objects say where he gave those."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from palaver.context.fitting.gemini import camel
from palaver.errors import InvalidMessage
from palaver.messages import Message
from palaver.messages.value import Value

__all__ = ["WANTED", "dicts_of", "items_of"]

_NESTED = frozenset({"content", "tool_calls", "parts"})
"""The keys under which SDKs' own objects stand in dicts: `{"role": "assistant", "content": response.content}`."""

WANTED = "Pass dicts as chat completions, OpenAI's Responses, Anthropic's interface or Gemini's take them, or the message objects of their SDKs."


def items_of(messages: object) -> tuple[Any, ...]:
    """Give the items of what was given as a list of messages.

    Raises:
        InvalidMessage: It is one message, one text or no list at all.
    """
    if (
        isinstance(messages, str | bytes | Mapping)
        or hasattr(messages, "model_dump")
        or not isinstance(messages, Iterable)
    ):
        raise InvalidMessage(
            f"The messages are a {type(messages).__name__}, not a list.",
            hint='Pass a list of dicts, such as [{"role": "user", "content": "hi"}].',
        )
    return tuple(messages)


def dicts_of(items: Sequence[object]) -> tuple[Mapping[str, Any], ...]:
    """Give each item as a dict: the very object where it is one that holds nothing but plain values.

    Raises:
        InvalidMessage: An item is no message; the error says which, and what to pass.
    """
    return tuple(_dict(item, index) for index, item in enumerate(items))


def _dict(item: object, index: int) -> Mapping[str, Any]:
    if isinstance(item, Message):
        raise InvalidMessage(
            f"Item {index} of the messages is palaver's own {type(item).__name__}.", hint="Pass its to_api_dict()."
        )
    said = _plain(item)
    if not isinstance(said, Mapping):
        raise InvalidMessage(f"Item {index} of the messages is a {type(item).__name__}, no message.", hint=WANTED)
    message: Mapping[str, Any] = said
    if said is not item and hasattr(item, "content"):
        message = {"content": None, **message}  # an SDK's object says nothing of what is None
    return camel(message) if "parts" in message else message


def _plain(value: Any) -> Any:  # noqa: ANN401 - any value of a message
    """Give a value as dicts and lists; the very object when it is so already."""
    if isinstance(value, Mapping):
        changed = {key: plain for key in _NESTED & value.keys() if (plain := _plain(value[key])) is not value[key]}
        return {**value, **changed} if changed else value
    if isinstance(value, list | tuple):
        parts = [_plain(part) for part in value]
        return value if all(part is one for part, one in zip(parts, value, strict=True)) else parts
    dump = None if isinstance(value, Value | type) else getattr(value, "model_dump", None)
    return _dumped(dump(exclude_none=True)) if callable(dump) else value


def _dumped(said: object) -> object:
    """Leave out the lists that hold nothing, such as the `annotations` of a response of OpenAI's: they say nothing either.

    The `summary` of reasoning is asked for even where it is empty.
    """
    if not isinstance(said, Mapping):
        return said
    return {key: value for key, value in said.items() if value != [] or key == "summary"}
