"""Accounting: what a view occupies, by what it is for, in every unit that a provider limits, and how sure that is.

What the provider reported for the last request is the anchor: of the next one only what is new has to be estimated. A report about
a request that the next one does not go on from says nothing of its size (after a compaction it would call for another one), but still
how the estimate errs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from palaver.context.measure import Meter, Size
from palaver.context.units import Bytes, Pieces
from palaver.messages import TextContent, Usage
from palaver.tokens import Budget
from palaver.view import Exchange, View

__all__ = ["Account", "Anchor", "Estimate", "account", "estimate", "same_form"]

_TRUST = 20_000
"""How many tokens the count weighs against what a provider reports (as `palaver.tokens.calibrate`)."""

_STRAY = 2.0
"""A report that differs from the count by more than this factor corrects by this factor and no more (as there)."""

_STEPS = 16
"""A correction is rounded up to a sixteenth, so that it does not move with every report: where it moves, a cut may move."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """What a provider reported about one request.

    Attributes:
        view: The view that was sent.
        tokens: What the provider read of it, in tokens, cached or not: `Usage.input_tokens` of that one request, never a sum over calls.
    """

    view: View
    tokens: int

    @classmethod
    def of(cls, view: View, usage: Usage) -> Anchor | None:
        """Take the report of one request; None where it says nothing."""
        return cls(view, usage.input_tokens) if usage.input_tokens > 0 else None

    def correction(self, meter: Meter) -> float:
        """Tell how many tokens of the provider's one counted token is, between a half and two, in sixteenths, rounded up."""
        counted = max(meter.view(self.view).total, 1)
        reported = min(max(self.tokens, counted / _STRAY), counted * _STRAY)
        return math.ceil((_TRUST + reported) / (_TRUST + counted) * _STEPS) / _STEPS

    def within(self, budget: Budget, meter: Meter) -> Budget:
        """Give the budget in counted tokens that is as large as this one in the provider's, and never larger than it is in counted ones.

        A provider that reports less than was counted makes no room: a budget that somebody set is kept in the count that he sees too.
        """
        room = int(budget.for_input / self.correction(meter))
        if room >= budget.for_input:
            return budget
        return budget.with_input(room)


@dataclass(frozen=True, slots=True)
class Estimate:
    """How large a request will turn out to be.

    Attributes:
        tokens: The estimate.
        error: How far off it can be, in tokens, for 95 of 100 requests (docs/tokens.md).
        anchored: How many of the tokens the provider reported itself.
    """

    tokens: int
    error: int
    anchored: int = 0

    @property
    def least(self) -> int:
        """The fewest tokens."""
        return self.tokens - self.error

    @property
    def most(self) -> int:
        """The most tokens."""
        return self.tokens + self.error


def estimate(view: View, meter: Meter, anchor: Anchor | None = None) -> Estimate:
    """Estimate the next request: what the provider reported for the last one, and a count of what came since.

    Without a report, or where the view does not go on from the one that was reported about, all of it is counted.
    """
    counted, bound = meter.view(view).total, meter.counter.family.bound
    if anchor is None or not _goes_on(anchor.view, view):
        return Estimate(counted, math.ceil(counted * bound))
    new = counted - meter.view(anchor.view).total
    return Estimate(anchor.tokens + new, math.ceil(new * bound), anchored=anchor.tokens)


def _goes_on(before: View, after: View) -> bool:
    """Tell whether a view shows all that another one shows, in the same form, and perhaps more at the end."""
    if before.system != after.system or before.tools != after.tools or len(before.exchanges) > len(after.exchanges):
        return False
    return all(
        same_form(one, other)
        for one, other in zip(before.exchanges, after.exchanges[: len(before.exchanges)], strict=True)
    )


def same_form(one: Exchange, other: Exchange) -> bool:
    """Tell whether two exchanges are the same, shown in the same form."""
    return one is other or _form(one) == _form(other)


def _form(exchange: Exchange) -> object:
    """Give what tells whether an exchange is shown as it was: its entries and the texts that are not as they were recorded."""
    changed = [
        block.content.content if isinstance(block.content, TextContent) else block.content
        for block in exchange.blocks()
        if block.reason is not None or block.origin is None
    ]
    return exchange.runs, changed, sum(1 for _ in exchange.blocks())


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What a view occupies, and what is left.

    Attributes:
        tokens: Its size in tokens, by what it is for.
        bytes: The size of the request's body in bytes, by what it is for; never too few.
        media: Its images and sounds.
        estimate: The tokens that the provider will report, and how sure that is.
        budget: What it has to fit.
    """

    tokens: Size
    bytes: Size
    media: int
    estimate: Estimate
    budget: Budget

    @property
    def parts(self) -> Mapping[str, int]:
        """The window in tokens: what the view has, what is kept for the answer and for errors, and what is free.

        They add up to the window, unless the view is larger than its budget: then `free` is negative.
        """
        kept = {"answer": self.budget.reserve, "buffer": self.budget.buffer}
        used = self.tokens.parts() | kept
        return MappingProxyType(used | {"free": self.budget.window - sum(used.values())})

    @property
    def fits(self) -> bool:
        """Whether the view fits in every unit."""
        return self.budget.fits(self.tokens.total, size=self.bytes.total, media=self.media)


def account(view: View, budget: Budget, meter: Meter, anchor: Anchor | None = None) -> Account:
    """Account for a view.

    Args:
        view: The view.
        budget: What it has to fit.
        meter: What counts its tokens.
        anchor: What the provider said of the request before, where it is known.
    """
    return Account(
        tokens=meter.view(view),
        bytes=Bytes().view(view),
        media=Pieces().view(view).total,
        estimate=estimate(view, meter, anchor),
        budget=budget,
    )
