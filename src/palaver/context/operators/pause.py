"""After a pause: what costs the provider's cache costs nothing when that is cold anyway."""

from __future__ import annotations

from dataclasses import replace

from palaver.context.ground import Ground, Layout
from palaver.context.ledger import Ledger
from palaver.context.operators.operator import Operator
from palaver.context.schedule.now import Before
from palaver.view import View

__all__ = ["after_pause"]


def after_pause(operator: Operator, seconds: float | None, ledger: Ledger) -> Operator:
    """Give the operator that acts wherever the next call came, or comes, so long after the one before; meant to be done at every exchange.

    What past calls tell is what was known when they were made, so that what was sent is composed again as it was. Where no call is known
    nothing is done. (Claude Code's time-based microcompact: 60 minutes.)

    Args:
        operator: What is done.
        seconds: How long a pause must be; None for never.
        ledger: The books: when calls were made, and when the next one will be.
    """
    known: list[tuple[View, Before]] = []

    def after(ground: Ground, upto: int, layout: Layout) -> Layout:
        if seconds is None or ledger.calls is None:
            return layout
        if not known or known[0][0] is not ground.view:
            known[:] = [(ground.view, Before(ground.view, ledger))]
        pause = known[0][1].pause(upto)
        return layout if pause is None or pause < seconds else operator(ground, upto, layout)

    return replace(operator, edit=after)
