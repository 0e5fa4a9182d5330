"""Turns: interfaces in which user and model take turns, and the user speaks first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Turns", "in_turns"]


@dataclass(frozen=True, slots=True)
class Turns:
    """How an interface writes them.

    Attributes:
        model: Its word for the model's role.
        opening: Makes the user's message that stands before a model's that comes first.
        joined: Joins two messages of one role.
    """

    model: str
    opening: Callable[[], dict[str, Any]]
    joined: Callable[[Mapping[str, Any], Mapping[str, Any]], dict[str, Any]]


def in_turns(
    messages: Iterable[tuple[Mapping[str, Any], int | None]], turns: Turns
) -> Iterator[tuple[Mapping[str, Any], int | None]]:
    """Join neighbours of one role and let the user speak first, as the interface wants it.

    Args:
        messages: Each message, and the place in the caller's list of the message that it is.
        turns: How they are written.

    Yields:
        The same, with None in the place of a place for each message that was made here.
    """
    last: tuple[Mapping[str, Any], int | None] | None = None
    for message, index in messages:
        model = message.get("role") == turns.model
        if last is None and model:
            last = (turns.opening(), None)
        if last is not None and (last[0].get("role") == turns.model) is model:
            last = (turns.joined(last[0], message), None)
            continue
        if last is not None:
            yield last
        last = (message, index)
    if last is not None:
        yield last
