"""Drop reasoning: leave out the thinking of finished turns.

Thinking since the newest user message stays with its tool calls: providers refuse a tool loop without it, or think worse (Anthropic's
`clear_thinking_20251015` keeps the thinking of one turn unless told otherwise).
"""

from __future__ import annotations

from palaver.context.layout import Form, Layout
from palaver.context.operators.forms import apply_to_old, changed
from palaver.messages import ThinkingContent
from palaver.view import Reason, Remove

__all__ = ["drop_reasoning"]


def drop_reasoning(layout: Layout, cut: int, *, start: int = 0) -> Layout:
    """Leave out the thinking of the exchanges from `start` to before `cut` that are older than the newest user message."""
    newest = layout.view.newest_user()
    return layout if newest is None else apply_to_old(layout, start, min(cut, newest), _without_thinking)


def _without_thinking(layout: Layout, index: int) -> Form | None:
    """Return the form without thinking, except in turns that hold nothing else."""
    layout.recorded(index)
    gone = []
    for turn in layout.view.exchanges[index].turns:
        thoughts = [block for block in turn.blocks if isinstance(block.content, ThinkingContent)]
        if len(thoughts) < len(turn.blocks):
            gone += [
                Remove(target=block.origin, reason=Reason.OVER_BUDGET) for block in thoughts if block.origin is not None
            ]
    return changed(layout, index, gone) if gone else layout.form(index)
