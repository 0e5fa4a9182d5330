"""The policy `offload`: set large tool outputs aside, and drop the oldest exchanges only if that was not enough."""

from __future__ import annotations

from typing import ClassVar

from palaver.context.ground import Ground
from palaver.context.ledger import Ledger
from palaver.context.manager import Policy
from palaver.context.notice import NOTICE
from palaver.context.operators import DROP_OLDEST, OFFLOAD, in_phases
from palaver.context.steps import laid_out, plan_of
from palaver.tokens import Budget, Rates
from palaver.view import Plan, View

__all__ = ["OffloadContextManager"]


class OffloadContextManager(Policy):
    """Shows large tool outputs outside the hot tail as a reference: how much, first and last lines, and the handle that brings it back.

    Nothing is done until the budget is reached; then all at once. A reference is never replaced by another one.
    """

    name: ClassVar[str] = "offload"

    def plan(self, view: View, ledger: Ledger, budget: Budget, prices: Rates | None) -> Plan:  # noqa: ARG002 - prices do not matter to it
        """Say which outputs to set aside."""
        ground = Ground(view, ledger.meter, budget, NOTICE)
        return plan_of(ground, laid_out(ground, in_phases(OFFLOAD, DROP_OLDEST)), self.name)
