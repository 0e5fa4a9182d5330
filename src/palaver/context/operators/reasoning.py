"""Drop reasoning of finished turns. Lossy: nothing stands in its place; its handles bring it back.

Thinking since the newest words of the user stays with its tool calls: providers refuse a tool loop without it, or think worse.
(Anthropic's `clear_thinking_20251015` keeps the thinking of one turn unless told otherwise.)
"""

from __future__ import annotations

from palaver.context.ground import Ground, Layout
from palaver.context.operators.forms import edited, free, touched
from palaver.context.operators.operator import Loss, Operator
from palaver.context.operators.properties import Property
from palaver.messages import ThinkingContent
from palaver.view import Exchange, Reason, Remove

__all__ = ["DROP_REASONING"]


def drop_reasoning(ground: Ground, upto: int, layout: Layout) -> Layout:
    """Leave out the thinking in exchanges before the newest words of the user."""
    asked = ground.asked(upto)
    changes: dict[int, list[Remove]] = {}
    for index in free(ground, upto, layout):
        if index >= asked:
            break
        gone = _thinking(ground.view.exchanges[index], layout, index)
        if gone:
            changes[index] = gone
    return edited(ground, layout, changes, "drop_reasoning")


def _thinking(exchange: Exchange, layout: Layout, index: int) -> list[Remove]:
    """Give the thinking of an exchange, unless some turn would be left with nothing."""
    found = []
    for turn in exchange.turns:
        thoughts = [block for block in turn.blocks if isinstance(block.content, ThinkingContent)]
        if len(thoughts) < len(turn.blocks):
            found += [
                Remove(target=block.origin, reason=Reason.OVER_BUDGET)
                for block in thoughts
                if block.origin is not None and not touched(layout, index, block)
            ]
    return found


DROP_REASONING = Operator(
    "drop_reasoning",
    Loss.LOSSY,
    drop_reasoning,
    frozenset({Property.ONE_FORM, Property.TOOL_LOOP, Property.NOTHING_LEFT_OUT, Property.HELD}),
)
