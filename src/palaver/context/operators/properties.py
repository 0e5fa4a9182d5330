"""The properties a cut must respect, each on its own, so that each can be checked on its own.

(OpenHands' agent SDK makes the legal places of a cut the intersection of such properties:
OpenHands/software-agent-sdk, openhands-sdk/openhands/sdk/context/view.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import TypeAlias

from palaver.context.ground import Ground, Layout
from palaver.messages import ThinkingContent, ToolCallContent
from palaver.view import Block

__all__ = ["ALWAYS", "Property", "broken"]


class Property(StrEnum):
    """What an operator leaves alone."""

    NEWEST_ASK = "newest_ask"
    """The newest words of the user are shown, whole."""
    PINNED = "pinned"
    """What is pinned is shown, whole."""
    OPEN_CALLS = "open_calls"
    """The newest response is shown with all its calls: one of them may be open."""
    WHOLE_CALLS = "whole_calls"
    """No call is changed or taken from its result: an exchange is shown with all its calls and results, or not at all."""
    ONE_FORM = "one_form"
    """What is shown in another form already is left as it is: no reference is ever replaced by a reference."""
    TOOL_LOOP = "tool_loop"
    """The thinking since the newest words of the user stays with its calls."""
    HELD = "held"
    """What the policy wants kept is shown."""
    NOTHING_LEFT_OUT = "nothing_left_out"
    """No exchange is left out."""


ALWAYS = frozenset({Property.NEWEST_ASK, Property.PINNED, Property.OPEN_CALLS, Property.WHOLE_CALLS})
"""What every operator respects."""

_Check: TypeAlias = "Callable[[Ground, int, Layout, Layout], Iterator[str]]"


def broken(which: Property, ground: Ground, upto: int, before: Layout, after: Layout) -> Iterator[str]:
    """Tell where an operator broke a property.

    Args:
        which: The property.
        ground: The ground it worked on.
        upto: The newest exchange that it took into account.
        before: The layout that it was given.
        after: The layout that it gave.
    """
    yield from _CHECKS[which](ground, upto, before, after)


def _newest_ask(ground: Ground, upto: int, before: Layout, after: Layout) -> Iterator[str]:  # noqa: ARG001 - one form for all
    yield from _whole([ground.asked(upto)], upto, after)


def _pinned(ground: Ground, upto: int, before: Layout, after: Layout) -> Iterator[str]:  # noqa: ARG001 - one form for all
    yield from _whole([i for i in range(upto + 1) if ground.view.exchanges[i].pinned], upto, after)


def _whole(wanted: list[int], upto: int, after: Layout) -> Iterator[str]:
    shown = set(after.shown(upto))
    for index in wanted:
        if index >= 0 and index not in shown:
            yield f"exchange {index} is not shown"
        if index in after.forms:
            yield f"exchange {index} is shown in another form"


def _open_calls(ground: Ground, upto: int, before: Layout, after: Layout) -> Iterator[str]:  # noqa: ARG001 - one form for all
    index = ground.response(upto)
    if index >= 0 and index not in set(after.shown(upto)):
        yield f"the newest response, exchange {index}, is not shown"


def _whole_calls(ground: Ground, upto: int, before: Layout, after: Layout) -> Iterator[str]:  # noqa: ARG001 - one form for all
    for index, form in after.forms.items():
        calls = {
            block.origin
            for block in ground.view.exchanges[index].blocks()
            if isinstance(block.content, ToolCallContent)
        }
        for target in (*(each.target for each in form.rewrites), *(each.target for each in form.removes)):
            if target in calls:
                yield f"call {target} is changed"


def _one_form(ground: Ground, upto: int, before: Layout, after: Layout) -> Iterator[str]:  # noqa: ARG001 - one form for all
    for index, form in after.forms.items():
        blocks = {block.origin: block for block in ground.view.exchanges[index].blocks()}
        was = {each.target: each for each in before.forms[index].rewrites} if index in before.forms else {}
        for each in form.rewrites:
            block = blocks[each.target]
            if block.reason is not None or was.get(each.target, each) != each:
                yield f"block {each.target} was in another form before"


def _tool_loop(ground: Ground, upto: int, before: Layout, after: Layout) -> Iterator[str]:  # noqa: ARG001 - one form for all
    asked = ground.asked(upto)
    for index, form in after.forms.items():
        gone = {each.target for each in form.removes}
        if index > asked and any(
            _thinks(block) and block.origin in gone for block in ground.view.exchanges[index].blocks()
        ):
            yield f"exchange {index} lost the thinking of its tool loop"


def _thinks(block: Block) -> bool:
    return isinstance(block.content, ThinkingContent)


def _held(ground: Ground, upto: int, before: Layout, after: Layout) -> Iterator[str]:
    shown, was = set(after.shown(upto)), set(before.shown(upto))
    for index in ground.held(upto) & was:
        if index not in shown:
            yield f"exchange {index} should stay"


def _nothing_left_out(ground: Ground, upto: int, before: Layout, after: Layout) -> Iterator[str]:  # noqa: ARG001 - one form for all
    for index in set(before.shown(upto)) - set(after.shown(upto)):
        yield f"exchange {index} is left out"


_CHECKS: Mapping[Property, _Check] = MappingProxyType(
    {
        Property.NEWEST_ASK: _newest_ask,
        Property.PINNED: _pinned,
        Property.OPEN_CALLS: _open_calls,
        Property.WHOLE_CALLS: _whole_calls,
        Property.ONE_FORM: _one_form,
        Property.TOOL_LOOP: _tool_loop,
        Property.HELD: _held,
        Property.NOTHING_LEFT_OUT: _nothing_left_out,
    }
)
