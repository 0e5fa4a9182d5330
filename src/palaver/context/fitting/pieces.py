"""A view taken apart into the messages of a list: each is the caller's own, as it stands, or has to be written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from palaver.log import Handle
from palaver.messages import Message, ThinkingContent
from palaver.view import Block, Turn, View
from palaver.wire.parts import SPEAKS, SpeechRole

__all__ = ["Piece", "pieces"]


@dataclass(frozen=True, slots=True)
class Piece:
    """What becomes one message of the list that is given back.

    Attributes:
        side: Who speaks.
        blocks: What is said, with the side of each: in one message of Anthropic's, results and words may stand together.
        index: The place in the caller's list of the message that says it; None for what no message holds.
        own: True when that message is given back as it is.
    """

    side: SpeechRole
    blocks: tuple[tuple[SpeechRole, Block], ...]
    index: int | None
    own: bool


def pieces(view: View, before: View, messages: Sequence[Message], *, shared: bool, bound: bool) -> Iterator[Piece]:
    """Give the pieces of a view of a list, in order.

    Args:
        view: The view.
        before: The view of the whole list.
        messages: The list.
        shared: True when results and the user's words may stand in one message.
        bound: True when thinking is signed for the words before it, so that it cannot be sent once they were edited.
    """
    whole = _whole(before)
    for (index, _, _), group in groupby(_stream(view, bound=bound), key=lambda item: _key(item, shared=shared)):
        blocks = tuple((side, block) for side, block, _ in group)
        places = tuple(block.origin for _, block in blocks)
        own = (
            index is not None
            and places == whole[index]
            and all(block.reason is None for _, block in blocks)
            and not messages[index].normalized
        )
        yield Piece(side=blocks[0][0], blocks=blocks, index=index, own=own)


def _stream(view: View, *, bound: bool) -> Iterator[tuple[SpeechRole, Block, int]]:
    """Give every block with its side and a number that parts derived texts from each other.

    Thinking that was signed for words which have been edited since is left out, as it is on the wire.
    """
    number = 0
    for exchange in view.exchanges:
        for turn in exchange.turns:
            for block in turn.blocks:
                number += 1
                if not (bound and exchange.stale and isinstance(block.content, ThinkingContent)):
                    yield _side(turn, derived=exchange.derived), block, number


def _side(turn: Turn, *, derived: bool) -> SpeechRole:
    return "user" if derived else SPEAKS[turn.role]


def _key(item: tuple[SpeechRole, Block, int], *, shared: bool) -> tuple[int | None, str, int]:
    side, block, number = item
    spoken = "user" if shared and side == "tool" else side
    origin = block.origin
    return (None, spoken, number) if origin is None else (origin.seq, spoken, 0)


def _whole(view: View) -> Mapping[int, tuple[Handle, ...]]:
    """Give the blocks of each message of the list, as far as a view shows them."""
    found: dict[int, list[Handle]] = {}
    for exchange in view.exchanges:
        for block in exchange.blocks():
            if block.origin is not None:
                found.setdefault(block.origin.seq, []).append(block.origin)
    return {index: tuple(places) for index, places in found.items()}
