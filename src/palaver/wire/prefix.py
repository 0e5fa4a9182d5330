"""Prefixes: what of a request a provider's cache finds again in the next one.

A request is read as a row of units: its head (tools and instructions), then one unit for each block, message or item of the conversation,
each with the role that says it. Cache marks and parameters are no part of them. While a conversation only grows, the units of a request
are the first ones of the next request's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from palaver.messages import canonical_json
from palaver.wire.request import Request

__all__ = ["broken_at", "units"]

Body = Mapping[str, Any]

_HEADS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "openai-chat": ("tools",),
        "openai-responses": ("tools", "instructions"),
        "anthropic": ("tools", "system"),
        "gemini": ("tools", "systemInstruction"),
    }
)


def units(request: Request) -> tuple[bytes, ...]:
    """Give the canonical bytes of each unit of a request, in the order in which the provider reads them."""
    mark = request.profile.cache.field
    name = request.profile.name
    head = {field: request.body[field] for field in _HEADS[name] if field in request.body}
    said = (head, *_CONVERSATIONS[name](request.body))
    return tuple(canonical_json(_unmarked(unit, mark)) for unit in said)


def broken_at(before: Request, after: Request) -> int | None:
    """Give the index of the first unit of `before` that is not in its place in `after`; None when `after` goes on from `before`."""
    earlier, later = units(before), units(after)
    for index, unit in enumerate(earlier):
        if index >= len(later) or later[index] != unit:
            return index
    return None


def _chat(body: Body) -> Iterator[object]:
    yield from body["messages"]


def _responses(body: Body) -> Iterator[object]:
    yield from body["input"]


def _anthropic(body: Body) -> Iterator[object]:
    yield from (
        {"role": message["role"], "block": block} for message in body["messages"] for block in message["content"]
    )


def _gemini(body: Body) -> Iterator[object]:
    yield from ({"role": content["role"], "part": part} for content in body["contents"] for part in content["parts"])


_CONVERSATIONS: Mapping[str, Callable[[Body], Iterator[object]]] = MappingProxyType(
    {"openai-chat": _chat, "openai-responses": _responses, "anthropic": _anthropic, "gemini": _gemini}
)


def _unmarked(value: Any, mark: str) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, Mapping):
        return {key: _unmarked(item, mark) for key, item in value.items() if not mark or key != mark}
    return [_unmarked(item, mark) for item in value] if isinstance(value, list) else value
