"""Shorten: of a text or a tool's output, keep the end, or the beginning and the end, with a handle for the rest. Reversible."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from palaver.context.measure import Measure
from palaver.context.texts import kept_end, without_media
from palaver.context.units import media_in
from palaver.log import Handle
from palaver.messages import TextContent, ToolResultContent
from palaver.view import Block, Exchange, Reason, Rewrite

__all__ = ["least", "shortened", "shown_as", "text_of"]

_TRIES = 12
_EACH_TRY = 0.9

Form: TypeAlias = Callable[[Handle, str, int], str]


def text_of(block: Block) -> str | None:
    """Give the text of a block that may be shortened; None for every other block.

    Derived texts have no handle. A block that was shown in another form before is left as it is, so that no reference is ever
    replaced by a reference. A result with images in it is text to whom it is shortened; the handle brings the images back.
    """
    if block.origin is None or block.reason is not None:
        return None
    content = block.content
    if isinstance(content, ToolResultContent):
        return content.text()
    return content.content if isinstance(content, TextContent) and not block.derived else None


def shown_as(block: Block, text: str, reason: Reason) -> Rewrite:
    """Show a block as a text, beside which the images and sounds are named that leave with the block."""
    assert block.origin is not None  # noqa: S101 - derived texts are shown in no other form
    return Rewrite(target=block.origin, text=_named(block, block.origin, text), reason=reason)


def _named(block: Block, origin: Handle, said: str) -> str:
    media = tuple(media_in(block.content))
    return without_media(origin, said, media) if media else said


def least(exchange: Exchange, meter: Measure) -> int:
    """Give the tokens of an exchange whose texts and results are as short as they can be."""
    saved = sum(_saving(block, meter, kept_end) for block in exchange.blocks())
    return meter.exchange(exchange) - saved


def _saving(block: Block, meter: Measure, form: Form) -> int:
    """Give the tokens that shortening a block as far as possible saves; 0 when the line in its place is no shorter."""
    text = text_of(block)
    if text is None or block.origin is None:
        return 0
    short = _named(block, block.origin, form(block.origin, text, 0))
    return max(meter.block(block.content) - _tokens(block, short, meter), 0)


def _tokens(block: Block, text: str, meter: Measure) -> int:
    """Count a block as it would be with another text."""
    if isinstance(block.content, ToolResultContent):
        return meter.result(text)
    return meter.text(text)


def shortened(
    exchange: Exchange, room: int, meter: Measure, *, form: Form = kept_end
) -> tuple[tuple[Rewrite, ...], int]:
    """Shorten the texts and results of an exchange, the earliest first, until it has at most `room` tokens.

    Args:
        exchange: The exchange.
        room: Tokens it may have.
        meter: What counts.
        form: How a shortened text looks: `kept_end` or `kept_ends`.

    Returns:
        The rewrites, and the tokens of the exchange with them: more than `room` when it cannot be made so small.
    """
    size = meter.exchange(exchange)
    rewrites: list[Rewrite] = []
    for block, text, origin in _texts(exchange):
        if size <= room:
            break
        whole = meter.block(block.content)
        short = _fitting(block, origin, text, whole - (size - room), meter, form)
        tokens = _tokens(block, short, meter)
        if tokens < whole:
            rewrites.append(Rewrite(target=origin, text=short, reason=Reason.SHORTENED))
            size -= whole - tokens
    return tuple(rewrites), size


def _texts(exchange: Exchange) -> Iterator[tuple[Block, str, Handle]]:
    for block in exchange.blocks():
        text = text_of(block)
        if text is not None and block.origin is not None:
            yield block, text, block.origin


def _fitting(block: Block, origin: Handle, text: str, room: int, meter: Measure, form: Form) -> str:
    """Give the longest form of a text that has at most `room` tokens, or the shortest there is.

    The length is estimated from the tokens a character has and corrected downwards; it is a function of the text alone.
    """
    said = _named(block, origin, text)
    if said != text and (not text or _tokens(block, said, meter) <= room):
        return said  # its images are what is large: all that it says can stay
    bare = _named(block, origin, form(origin, text, 0))
    free = room - _tokens(block, bare, meter)
    keep = min(int(len(text) * max(free, 0) / max(meter.text(text), 1)), len(text) - 1)
    for _ in range(_TRIES):
        if keep <= 0:
            break
        short = _named(block, origin, form(origin, text, keep))
        tokens = _tokens(block, short, meter)
        if tokens <= room:
            return short
        keep = min(int(keep * room / tokens), int(keep * _EACH_TRY))
    return bare
