"""What an operator is: a small pure function that makes a layout smaller, marked by whether the model can get back what it loses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from palaver.context.ground import Ground, Layout

__all__ = ["Edit", "Loss", "Operator", "in_phases"]

Edit: TypeAlias = Callable[[Ground, int, Layout], Layout]
"""Makes a layout smaller: from the ground, the newest exchange to take into account, and the layout so far."""


class Loss(StrEnum):
    """What the model loses. The log loses nothing by any operator."""

    REVERSIBLE = "reversible"
    """What was taken out stands in the view by its handle, with its size and a part of it."""
    LOSSY = "lossy"
    """Whole exchanges leave the view; one text stands for all of them."""


@dataclass(frozen=True, slots=True)
class Operator:
    """An edit with a name.

    Attributes:
        name: The name.
        loss: What the model loses.
        edit: What it does.
    """

    name: str
    loss: Loss
    edit: Edit

    def __call__(self, ground: Ground, upto: int, layout: Layout) -> Layout:
        """Make a layout smaller."""
        return self.edit(ground, upto, layout)


def in_phases(*operators: Operator) -> Edit:
    """Combine operators: the reversible ones first, a lossy one only if the view is still too large, and none when it is small enough."""
    row = sorted(operators, key=lambda each: each.loss is Loss.LOSSY)

    def edit(ground: Ground, upto: int, layout: Layout) -> Layout:
        for operator in row:
            layout = operator(ground, upto, layout)
            if layout.tokens <= ground.enough:
                break
        return layout

    return edit
