"""The policy `offload`: set large tool outputs aside, and drop the oldest exchanges only if that was not enough."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, ClassVar

from palaver.context.ground import Ground, Room
from palaver.context.ledger import Ledger
from palaver.context.manager import Policy
from palaver.context.operators import DROP_OLDEST, in_phases, recalled_first
from palaver.context.operators.offload import THRESHOLD, offload
from palaver.context.parameters import Parameters, count
from palaver.context.record import NoticeOf
from palaver.context.steps import laid_out, plan_of
from palaver.tokens import Budget, Rates
from palaver.view import Plan, View

__all__ = ["OffloadContextManager"]


class OffloadContextManager(Policy):
    """Shows large tool outputs outside the hot tail as a reference: how much, first and last lines, and the handle that brings it back.

    Nothing is done until the budget is reached; then all at once. A reference is never replaced by another one.

    Attributes:
        threshold: Tokens of output beyond which it is set aside.
    """

    name: ClassVar[str] = "offload"
    parameters: ClassVar[Parameters] = MappingProxyType(
        {
            "threshold": count(),
        }
    )

    def __init__(
        self, model_name: str = "", max_tokens: int | None = None, *, threshold: int = THRESHOLD, **budget: object
    ) -> None:
        """Make the policy for a model.

        Args:
            model_name: The model.
            max_tokens: A smaller window of your own.
            threshold: Tokens of output beyond which it is set aside; `compaction_token_threshold` says the same.
            budget: Further words of a budget.

        Raises:
            InvalidInput: A word is not known, or its value cannot be used.
        """
        said: Any = budget.pop("compaction_token_threshold", threshold)
        self.threshold: int = said
        super().__init__(model_name, max_tokens, **budget)

    def plan(self, view: View, ledger: Ledger, budget: Budget, prices: Rates | None) -> Plan:  # noqa: ARG002 - prices do not matter to it
        """Say which outputs to set aside."""
        told = NoticeOf(ledger.sources, ledger.constraints)
        ground = Ground(view, ledger.meter, Room.of(budget, ledger.meter.view(view)), told)
        edit = recalled_first(in_phases(offload(self.threshold), DROP_OLDEST))
        return plan_of(ground, laid_out(ground, edit), self.name)
