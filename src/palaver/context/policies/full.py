"""The policy `full`: everything."""

from __future__ import annotations

from typing import ClassVar

from palaver.context.ledger import Ledger
from palaver.context.manager import Policy
from palaver.tokens import Budget, Rates
from palaver.view import Plan, View

__all__ = ["FullContext"]


class FullContext(Policy):
    """Leaves nothing out. A view that is larger than the budget is infeasible."""

    name: ClassVar[str] = "full"
    complete: ClassVar[bool] = True

    def plan(self, view: View, ledger: Ledger, budget: Budget, prices: Rates | None) -> Plan:  # noqa: ARG002 - nothing matters to it
        """Say that nothing is to be changed."""
        return Plan(policy=self.name)
