"""Set aside: large tool outputs outside the hot tail are shown as a short reference. Reversible: the handle brings back every byte."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from palaver.context.ground import Ground, Layout
from palaver.context.operators.forms import edited
from palaver.context.operators.operator import Loss, Operator
from palaver.context.operators.properties import Property
from palaver.context.operators.shorten import text_of
from palaver.context.texts import reference
from palaver.context.units import media_in
from palaver.messages import ToolResultContent
from palaver.view import Exchange, Reason, Rewrite

__all__ = ["KEEP_LAST", "OFFLOAD", "THRESHOLD", "offload", "set_aside"]

THRESHOLD = 500
"""Tokens of output beyond which it is set aside (compaction_token_threshold of dynamiq)."""

KEEP_LAST = 2
"""Messages at the end whose outputs stay as they are, where the budget does not say (preserve_last_messages of dynamiq)."""

_LINES = 2
_NAME = "offload"


def set_aside(
    ground: Ground,
    upto: int,
    layout: Layout,
    *,
    threshold: int = THRESHOLD,
    keep_last: int = KEEP_LAST,
    keep_recent: int = 0,
) -> Layout:
    """Show the outputs larger than a threshold, outside the hot tail, as references. What is pinned stays as it is.

    All of them at once: each change of what was sent before costs the provider's cache from there on.
    """
    changes = {}
    for index in _cold(
        ground, upto, layout, ground.room.keep_last or keep_last, ground.room.keep_recent or keep_recent
    ):
        exchange = ground.view.exchanges[index]
        if index not in layout.forms and not exchange.pinned and not exchange.open:
            changes[index] = tuple(_references(ground, exchange, threshold))
    return edited(ground, layout, changes, _NAME)


def _cold(ground: Ground, upto: int, layout: Layout, keep_last: int, keep_recent: int) -> Iterator[int]:
    """Give the exchanges that are shown and lie before the hot tail; the newest exchange is hot, whatever its size."""
    size = messages = 0
    hot = upto
    for index in range(upto, layout.cut - 1, -1):
        if messages >= keep_last and size >= keep_recent:
            break
        messages += ground.view.exchanges[index].messages
        size += ground.size(index, layout)
        hot = index
    return (index for index in layout.shown(hot - 1))


def _references(ground: Ground, exchange: Exchange, threshold: int) -> Iterator[Rewrite]:
    for block in exchange.blocks():
        text = text_of(block)
        if text is None or block.origin is None:
            continue
        if not (isinstance(block.content, ToolResultContent) or exchange.observes):
            continue
        if ground.meter.block(block.content) > threshold:
            said = reference(block.origin, text, lines=_LINES, media=tuple(media_in(block.content)))
            yield Rewrite(target=block.origin, text=said, reason=Reason.OFFLOADED)


def offload(threshold: int, keep_last: int = KEEP_LAST, keep_recent: int = 0) -> Operator:
    """Give the operator that sets aside what is larger than a threshold, but for the results at the end.

    Args:
        threshold: Tokens of output beyond which it is set aside.
        keep_last: The messages at the end that stay as they are, where the room does not say.
        keep_recent: The tokens at the end that do, likewise.
    """
    edit = partial(set_aside, threshold=threshold, keep_last=keep_last, keep_recent=keep_recent)
    return Operator(_NAME, Loss.REVERSIBLE, edit, frozenset({Property.ONE_FORM, Property.NOTHING_LEFT_OUT}))


OFFLOAD = offload(THRESHOLD)
