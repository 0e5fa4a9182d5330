"""Degrade media: images and sounds are shown as a line with their handle, the oldest first. Reversible."""

from __future__ import annotations

from collections.abc import Iterator

from palaver.context.ground import Ground, Layout
from palaver.context.operators.forms import edited, saving, touched
from palaver.context.operators.operator import Loss, Operator
from palaver.context.operators.properties import Property
from palaver.context.texts import without_media
from palaver.context.units import media_in
from palaver.messages import AudioContent, ImageContent, ToolResultContent
from palaver.view import Block, Reason, Rewrite

__all__ = ["DEGRADE_MEDIA", "degrade_media"]

_NAME = "degrade_media"


def degrade_media(ground: Ground, upto: int, layout: Layout) -> Layout:
    """Show the oldest images and sounds as lines until the layout is small enough, those of the newest response at last.

    The newest user message, what is pinned and what is to be left alone keep theirs; of the last the newest response does not, where there is no room.
    """
    asked, response, recent = ground.asked(upto), ground.response(upto), ground.recent(upto)
    shown = list(layout.shown(upto))
    row = [index for index in shown if index not in {asked, response} and index < recent]
    row += [response] if response in shown else []
    size, changes = layout.size, {}
    for index in row:
        if size <= ground.room.low:
            break
        exchange = ground.view.exchanges[index]
        if not exchange.pinned and not exchange.derived:
            changes[index] = [line for block in exchange.blocks() for line in _line(layout, index, block)]
            size -= saving(ground, index, changes[index])
    return edited(ground, layout, changes, _NAME)


def _line(layout: Layout, index: int, block: Block) -> Iterator[Rewrite]:
    content = block.content
    if block.origin is None or touched(layout, index, block):
        return
    if isinstance(content, ImageContent | AudioContent | ToolResultContent) and (media := tuple(media_in(content))):
        said = content.text() if isinstance(content, ToolResultContent) else ""
        text = without_media(block.origin, said, media)
        yield Rewrite(target=block.origin, text=text, reason=Reason.OFFLOADED)


DEGRADE_MEDIA = Operator(
    _NAME, Loss.REVERSIBLE, degrade_media, frozenset({Property.ONE_FORM, Property.NOTHING_LEFT_OUT})
)
