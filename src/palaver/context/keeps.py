"""Pins that a policy sets: what should stay in the view where there is room, besides what every view must hold.

Each is a function of what came before, so that what stays at one point of a conversation does not depend on later ones.
"""

from __future__ import annotations

from collections.abc import Iterable

from palaver.context.ground import Ground, Keep
from palaver.context.plans import plan_acts

__all__ = ["first_asks", "first_messages", "latest_plan"]


def first_messages(count: int) -> Keep:
    """Keep the first messages of the conversation; the exchange in which the count is reached stays whole."""

    def keep(ground: Ground, upto: int) -> Iterable[int]:
        messages = 0
        for index in range(upto + 1):
            if messages >= count:
                return
            messages += ground.view.exchanges[index].messages
            yield index

    return keep


def first_asks(count: int = 1) -> Keep:
    """Keep the first words of the user: what he wanted to begin with."""

    def keep(ground: Ground, upto: int) -> Iterable[int]:
        return (index for index in ground.asks[:count] if index <= upto)

    return keep


def latest_plan(ground: Ground, upto: int) -> Iterable[int]:
    """Keep the newest plan: the calls by which the agent last wrote down what is to be done, by a tool for that or in a file, and changed it."""
    return dict.fromkeys(act.index for act in plan_acts(ground, upto))
