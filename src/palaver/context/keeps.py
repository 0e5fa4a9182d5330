"""Pins that a policy sets: what should stay in the view where there is room, besides what every view must hold.

Each is a function of what came before, so that what stays at one point of a conversation does not depend on later ones.
"""

from __future__ import annotations

from collections.abc import Iterable

from palaver.context.ground import Ground, Keep

__all__ = ["PLANS", "first_asks", "first_messages", "latest_plan"]

PLANS = frozenset(
    {
        "todowrite",
        "todo_write",
        "todo",
        "write_todos",
        "update_plan",
        "set_plan",
        "plan",
        "task_tracker",
        "manage_todo_list",
    }
)
"""Tools, in lower case, by which agents write down what they are about to do."""


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
    """Keep the newest plan: the call by which the agent last wrote down what is to be done."""
    for act in reversed(ground.acts.upto(upto)):
        if act.tool.casefold() in PLANS and not act.failed:
            yield act.index
            return
