"""Stating: the section of the instructions that tells the constraints put on the list by hand, within the room of a request.

It stands where no policy leaves anything out, so it is bounded before any is asked: whoever writes a rule down never makes a request impossible by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from palaver.context.measure import Meter
from palaver.messages import TextContent
from palaver.tokens import Budget
from palaver.view import View
from palaver.view.texts import by_hand, told_by_hand

__all__ = ["SHARE", "within_room"]

SHARE = 4
"""At most a quarter of what a request may occupy is for constraints put on by hand; as much as for those that were found."""


def within_room(view: View, room: Budget, meter: Meter) -> Iterator[View]:
    """Give a view as it tells the constraints put on by hand, the one that tells most of them first: for each next one where that has no room.

    The newest are told first, as many as fit in their share, then ever fewer; then only that there are some, and where; at last nothing of them.

    Args:
        view: The view. The very same where all that it tells is within its share.
        room: What the request may occupy.
        meter: What measures.
    """
    place = next((index for index, block in enumerate(view.system) if block.derived == "constraints"), None)
    if place is None:
        yield view
        return
    standing = [(one.text, one.at) for one in view.constraints if one.stands]
    block, most = view.system[place], room.for_input // SHARE
    before, behind = view.system[:place], view.system[place + 1 :]

    def telling(told: int) -> str:
        return by_hand(standing, told)

    told = all_of_them = told_by_hand(standing)
    if all_of_them and meter.text(telling(told)) > most:
        told = _most(lambda number: meter.text(telling(number)) <= most, told)
    while True:
        if told == all_of_them:
            yield view
        elif told or meter.text(telling(0)) <= most:
            yield replace(view, system=(*before, replace(block, content=TextContent(content=telling(told))), *behind))
        if not told:
            break
        told //= 2
    yield replace(view, system=(*before, *behind))


def _most(fits: Callable[[int], bool], below: int) -> int:
    """Give the largest number below one that does not fit, which fits; 0 where none does."""
    low, high = 0, below
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
