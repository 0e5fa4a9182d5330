"""Which images and sounds of a list are not shown, though the blocks that they are in are, in another form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from palaver.context.compose import Composed
from palaver.context.texts import kinds_of
from palaver.context.units import media_in
from palaver.messages import Message
from palaver.view import Omission
from palaver.wire import Change, How

__all__ = ["unseen_media"]


def unseen_media(composed: Composed, messages: Sequence[Message]) -> Iterator[tuple[Omission, Change]]:
    """Tell of the blocks that are shown without the images and sounds that they had.

    Args:
        composed: What is shown.
        messages: The list as it came; handles count it.
    """
    plans = (*composed.limits, composed.plan, composed.fallback)
    by = {change.target: plan.policy for plan in plans for change in plan.rewrites}
    blocks = [block for exchange in composed.view.exchanges for block in exchange.blocks()]
    shown = {block.origin for block in blocks if any(media_in(block.content))}
    for place, block in {block.origin: block for block in blocks if block.reason is not None}.items():
        if place is None or place.block is None or block.reason is None or place in shown:
            continue
        media = tuple(media_in(messages[place.seq].contents[place.block]))
        if media:
            size = sum(each.size for each in media)
            what = "audio" if all(each.media_type.startswith("audio/") for each in media) else "image"
            why = f"the block is shown in another form, without {kinds_of(media)} ({block.reason.value})"
            yield (
                Omission(reason=block.reason, handle=place, by=by.get(place, "palaver"), size=size),
                Change(place, what, How.REPLACED, why),
            )
