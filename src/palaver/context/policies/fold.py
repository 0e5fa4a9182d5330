"""The policy `fold`: set large outputs aside, then fold the oldest exchanges into a record that code makes."""

from __future__ import annotations

from typing import ClassVar

from palaver.context.ground import Ground, Room
from palaver.context.ledger import Ledger
from palaver.context.manager import Policy
from palaver.context.operators import DROP_OLDEST, OFFLOAD, in_phases, recalled_first
from palaver.context.record import RecordOf
from palaver.context.steps import laid_out, plan_of
from palaver.tokens import Budget, Rates
from palaver.view import Plan, View

__all__ = ["FoldContextManager"]


class FoldContextManager(Policy):
    """Shows large outputs as references and, if that is not enough, a record in the place of the oldest exchanges.

    The record is made by code: goal and later asks in the user's words, what he said must or must not be, files read and written, commands
    and how they ended, errors open and closed, calls without a result, the model's last words; each with its handle. It holds facts, not
    prose: the next record goes on from them and from what came since, so nothing is summarised twice.
    """

    name: ClassVar[str] = "fold"

    def plan(self, view: View, ledger: Ledger, budget: Budget, prices: Rates | None) -> Plan:  # noqa: ARG002 - prices do not matter to it
        """Say what to set aside and what to fold."""
        ground = Ground(
            view, ledger.meter, Room.of(budget, ledger.meter.view(view)), RecordOf(ledger.sources, ledger.constraints)
        )
        return plan_of(ground, laid_out(ground, recalled_first(in_phases(OFFLOAD, DROP_OLDEST))), self.name)
