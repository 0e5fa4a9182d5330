"""A conversation as text for a summariser, and that text in pieces that fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from palaver.context.record.recorder import Sources, original
from palaver.context.texts import kept_ends
from palaver.messages import Content, Role, Speaker, TextContent, ToolCallContent, ToolResultContent
from palaver.view import Block, Exchange, Turn

__all__ = ["pieces", "transcript"]

_RESULT = 2_000
"""Characters of a tool's output that a summariser reads (pi and Cline give as many)."""


def transcript(exchanges: Iterable[Exchange], sources: Sources | None = None) -> list[str]:
    """Give each exchange as text, each block with its handle; blocks in another form as they were recorded, where that can be read.

    What stands for earlier exchanges is no part of it: facts and running summaries are carried by other means, so that nothing is
    summarised twice.
    """
    return ["\n".join(_lines(exchange, sources)) for exchange in exchanges if not exchange.derived]


def _lines(exchange: Exchange, sources: Sources | None) -> Iterator[str]:
    for turn in exchange.turns:
        for block in turn.blocks:
            said = _said(block, original(block, sources) or block.content, output=_observed(turn, block))
            if said:
                yield (
                    f"{_who(turn, block)} [{block.origin}]: {said}"
                    if block.origin is not None
                    else f"{_who(turn, block)}: {said}"
                )


def _who(turn: Turn, block: Block) -> str:
    return "TOOL" if _observed(turn, block) else turn.role.value.upper()


def _observed(turn: Turn, block: Block) -> bool:
    """Tell whether a user's turn says what a tool gave back, in a text protocol."""
    return turn.role is Role.USER and block.speaker is Speaker.TOOL


def _said(block: Block, content: Content, *, output: bool) -> str:
    match content:
        case TextContent():
            return _shown(block, content.content) if output else content.content
        case ToolCallContent():
            return f"calls {content.name} {content.arguments}"
        case ToolResultContent():
            return _shown(block, content.text())
        case _:
            return f"({content.type})"


def _shown(block: Block, text: str) -> str:
    """Give as much of a tool's output as is read."""
    if len(text) <= _RESULT or block.origin is None:
        return text[:_RESULT]
    return kept_ends(block.origin, text, _RESULT)


def pieces(texts: Sequence[str], room: int, count: Callable[[str], int]) -> list[str]:
    """Join texts into pieces of at most `room` tokens, in order; a text that is larger than that is parted.

    Args:
        texts: The texts.
        room: Tokens that a piece may have, at least 1.
        count: Counts tokens.
    """
    found: list[str] = []
    current: list[str] = []
    used = 0
    for text in (part for whole in texts for part in _parted(whole, room, count)):
        size = count(text) + 1
        if current and used + size > room:
            found.append("\n".join(current))
            current, used = [], 0
        current.append(text)
        used += size
    return [*found, "\n".join(current)] if current else found


def _parted(text: str, room: int, count: Callable[[str], int]) -> Iterator[str]:
    """Part a text where it is too large, in halves until each is small enough."""
    if len(text) <= 1 or count(text) + 1 <= room:
        yield text
        return
    middle = len(text) // 2
    yield from _parted(text[:middle], room, count)
    yield from _parted(text[middle:], room, count)
