"""The policy `default`: keep the newest, drop the oldest."""

from __future__ import annotations

from typing import ClassVar

from palaver.context.ground import Ground, Room
from palaver.context.ledger import Ledger
from palaver.context.manager import Policy
from palaver.context.operators import DROP_OLDEST, recalled_first
from palaver.context.record import NoticeOf
from palaver.context.steps import laid_out, plan_of
from palaver.tokens import SAFETY_BUFFER, Budget, Rates
from palaver.view import Plan, View

__all__ = ["DefaultContextManager"]


class DefaultContextManager(Policy):
    """Keeps instructions and the newest exchanges, and drops the oldest when the budget is reached.

    Instructions and tool schemas count. The cut falls between exchanges and moves in steps: down to half the room, then not again until
    the room is full. Of the exchange at the border the end is kept, behind a mark that says how much is missing and where it is. The newest
    user message, what is pinned and what is open stay wherever they stand.

    Attributes:
        SAFETY_BUFFER: Tokens kept free for what counting gets wrong; on a small window, at most a third of it.
    """

    name: ClassVar[str] = "default"
    SAFETY_BUFFER: ClassVar[int] = SAFETY_BUFFER

    def plan(self, view: View, ledger: Ledger, budget: Budget, prices: Rates | None) -> Plan:  # noqa: ARG002 - prices do not matter to it
        """Say which exchanges to drop."""
        told = NoticeOf(ledger.sources, ledger.constraints)
        ground = Ground(view, ledger.meter, Room.of(budget, ledger.meter.view(view)), told)
        return plan_of(ground, laid_out(ground, recalled_first(DROP_OLDEST)), self.name)
