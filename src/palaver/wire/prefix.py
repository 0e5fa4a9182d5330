"""Prefixes: how much of a request a provider's cache finds again in the next one.

A request is read as a row of units: its head (tools and instructions), then one unit for each block, message or item of the conversation, each
with its role. Cache marks and parameters do not count. While a conversation only grows, the units of a request begin the next request's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from palaver.messages import canonical_json
from palaver.wire.check import CONVERSATION
from palaver.wire.request import Request

__all__ = ["broken_at", "units"]

_HEADS = ("tools", "instructions", "system", "systemInstruction")
_PARTS: Mapping[str, str] = MappingProxyType({"anthropic": "content", "gemini": "parts"})
"""The list in a message that is cached piece by piece."""


def units(request: Request) -> tuple[bytes, ...]:
    """Return the canonical bytes of each unit of a request, in the order in which the provider reads them."""
    mark, body = request.profile.cache.field, request.body
    head = {field: body[field] for field in _HEADS if field in body}
    return tuple(canonical_json(_unmarked(unit, mark)) for unit in (head, *_said(request)))


def broken_at(before: Request, after: Request) -> int | None:
    """Return the index of the first unit of `before` that `after` has not in its place; None when `before` is a prefix of `after`."""
    earlier, later = units(before), units(after)
    for index, unit in enumerate(earlier):
        if index >= len(later) or later[index] != unit:
            return index
    return None


def _said(request: Request) -> Iterator[object]:
    inner = _PARTS.get(request.profile.name, "")
    for item in request.body[CONVERSATION[request.profile.name]]:
        yield from [item] if not inner else ({"role": item["role"], inner: part} for part in item[inner])


def _unmarked(value: Any, mark: str) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, Mapping):
        return {key: _unmarked(item, mark) for key, item in value.items() if not mark or key != mark}
    return [_unmarked(item, mark) for item in value] if isinstance(value, list) else value
