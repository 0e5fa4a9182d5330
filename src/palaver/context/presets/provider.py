"""The policy that leaves compacting to the provider."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from palaver.context.layout import Layout
from palaver.context.meter import LOAD, Meter
from palaver.context.operators import drop
from palaver.context.parameters import Parameters, share
from palaver.context.presets import Palaver
from palaver.messages import Role
from palaver.providers import profile_of
from palaver.tokens import Budget
from palaver.view import Exchange, Plan, View
from palaver.wire import has_compaction

if TYPE_CHECKING:
    from palaver.wire import Profile

_RECORD_SHARE = 4
"""The record of what a block stands for has its shares of a quarter of the target: the block's provider does not get it."""


class ProviderContext(Palaver):
    """Ask the provider to compact; else do what `palaver` does.

    From a share of the limit on, a request asks the provider to compact the conversation (Anthropic, OpenAI's Responses). Its block goes into the log, and
    the view begins there, with palaver's record before it, while the next model is one of the same maker, in an API that takes the block. For any other
    model, and in a branch that has no block, the view is the log, and `palaver` makes it fit.

    Source: platform.claude.com/docs/en/build-with-claude/compaction-threshold; developers.openai.com/api/docs/guides/compaction.

    Attributes:
        trigger: The share of the limit from which the provider is asked. Anthropic's own default is 150,000 of 200,000 tokens.
    """

    name = "provider"
    asks_provider = True
    acts_within_limit = True
    parameters: ClassVar[Parameters] = MappingProxyType({"trigger": share()})
    trigger: float = 0.75
    _profile: Profile | None = None

    def for_profile(self, profile: Profile) -> ProviderContext:
        """Return the policy for requests of one profile."""
        made = copy.copy(self)
        made._profile = profile  # noqa: SLF001 - of its own class
        return made

    def compact_at(self, budget: Budget) -> int:
        """Return the number of tokens from which the provider is asked to compact the conversation; 0 for a view without a request."""
        return int(budget.limit * self.trigger) if self._profile else 0

    def _plan(self, view: View, budget: Budget, meter: Meter, *, committed: bool, asked: bool) -> Plan:
        layout = Layout.of(view, budget, meter)
        begins = next(self._compacted(view), 0)
        begun = drop(layout, begins, room=layout.target // _RECORD_SHARE) if begins else layout
        if begun.fits() and not asked:
            return begun.plan(self.name)
        return super()._plan(view, budget, meter, committed=committed, asked=asked)

    def _compacted(self, view: View) -> Iterator[int]:
        """Yield the indexes of the answers with a compaction that the next model reads, the newest first. Reads only answers that may have one."""
        reads = self._profile or profile_of(self.model_name or view.model)
        indexes = [index for index, exchange in enumerate(view.exchanges) if _may_have_one(exchange)]
        while indexes:
            newest, indexes = indexes[-LOAD:], indexes[:-LOAD]
            view.load(newest)
            yield from (index for index in reversed(newest) if has_compaction(view.exchanges[index], reads))


def _may_have_one(exchange: Exchange) -> bool:
    return exchange.role is Role.ASSISTANT and any(letter == "m" for _, letter in exchange.shape())
