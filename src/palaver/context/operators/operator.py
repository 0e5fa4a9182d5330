"""What an operator is: a small pure function that makes a layout smaller, with what the model loses by it and what it leaves alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from palaver.context.ground import Ground, Layout
from palaver.context.operators.properties import ALWAYS, Property

__all__ = ["Edit", "Loss", "Operator", "in_phases", "in_row", "together"]

Edit: TypeAlias = Callable[[Ground, int, Layout], Layout]
"""Makes a layout smaller: from the ground, the newest exchange to take into account, and the layout so far."""


class Loss(StrEnum):
    """What the model loses. The log loses nothing by any operator."""

    REVERSIBLE = "reversible"
    """What was taken out stands in the view by its handle, with its size or a part of it."""
    LOSSY = "lossy"
    """Blocks or whole exchanges leave the view; what stands for them, if anything, says less. Their handles still bring them back."""


@dataclass(frozen=True, slots=True)
class Operator:
    """An edit with a name.

    Attributes:
        name: The name.
        loss: What the model loses.
        edit: What it does.
        respects: What it leaves alone, besides what every operator does.
    """

    name: str
    loss: Loss
    edit: Edit
    respects: frozenset[Property] = frozenset()

    def __call__(self, ground: Ground, upto: int, layout: Layout) -> Layout:
        """Make a layout smaller."""
        return self.edit(ground, upto, layout)

    @property
    def properties(self) -> frozenset[Property]:
        """All that it leaves alone."""
        return self.respects | ALWAYS


def in_phases(*operators: Operator) -> Edit:
    """Combine operators: the reversible ones first, a lossy one only if the view is still too large, and none when it is small enough."""
    return in_row(*sorted(operators, key=lambda each: each.loss is Loss.LOSSY))


def in_row(*operators: Operator) -> Edit:
    """Combine operators in the order given, each only if the view is still too large."""

    def edit(ground: Ground, upto: int, layout: Layout) -> Layout:
        for operator in operators:
            layout = operator(ground, upto, layout)
            if layout.size <= ground.room.enough:
                break
        return layout

    return edit


def together(*operators: Operator) -> Edit:
    """Combine operators so that all of them act: an edit costs the provider's cache once, however much it takes out."""

    def edit(ground: Ground, upto: int, layout: Layout) -> Layout:
        for operator in operators:
            layout = operator(ground, upto, layout)
        return layout

    return edit
