"""Clear old tool results: a line with the handle stands in their place. Reversible, and the cheapest thing to do.

Every harness has it: Anthropic's `clear_tool_uses_20250919` (keep, clear_at_least, exclude_tools), OpenCode's prune (protect, minimum,
turns), Claude Code's microcompact, SWE-agent's last_n_observations. They differ in what they keep.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

from palaver.context.ground import Ground, Layout
from palaver.context.operators.forms import edited, free, may_change, saving, touched
from palaver.context.operators.operator import Loss, Operator
from palaver.context.operators.properties import Property
from palaver.context.operators.shorten import shown_as
from palaver.context.texts import cleared
from palaver.context.work import Act
from palaver.log import Handle
from palaver.view import Reason, Rewrite

__all__ = ["Clear", "Mask", "clear", "mask"]

Words: TypeAlias = "Callable[[Handle, str], str]"
"""Gives what stands in the place of a result, from its handle and its text."""

_RESPECTS = frozenset({Property.ONE_FORM, Property.NOTHING_LEFT_OUT})


@dataclass(frozen=True, slots=True, kw_only=True)
class Clear:
    """Clears results that are older than what is kept.

    Attributes:
        keep: How many of the newest results stay.
        protect: How much of the newest results stays.
        turns: Results since this many of the user's newest words stay.
        least: Results of at most this size stay.
        at_least: Nothing is done unless it saves this much: each edit costs the provider's cache.
        share: Which share of the results stays, the newest.
        exclude: Tools whose results stay.
        only: Tools whose results are cleared; empty for all.
        which: Tells of a call whether its result may be cleared; None for all.
        words: What stands in the place of a result.
    """

    keep: int = 3
    share: float = 0.0
    only: frozenset[str] = frozenset()
    which: Callable[[Act], bool] | None = None
    protect: int = 0
    turns: int = 0
    least: int = 0
    at_least: int = 0
    exclude: frozenset[str] = frozenset()
    words: Words = cleared

    def __call__(self, ground: Ground, upto: int, layout: Layout) -> Layout:
        """Make a layout smaller."""
        changes: dict[int, list[Rewrite]] = {}
        may = frozenset(free(ground, upto, layout))
        for act in self._old(ground, upto):
            if act.index in may and not touched(layout, act.index, act.answer):
                changes.setdefault(act.index, []).append(_line(act, self.words))
        if sum(saving(ground, index, lines) for index, lines in changes.items()) < self.at_least:
            return layout
        return edited(ground, layout, changes, "clear")

    def _old(self, ground: Ground, upto: int) -> Iterator[Act]:
        since = ground.turn(upto, self.turns) if self.turns else upto + 1
        kept = size = 0
        acts = ground.acts.upto(upto)
        keep = max(self.keep, math.ceil(len(acts) * self.share))
        for act in reversed(acts):
            tool = act.tool.casefold()
            if tool in self.exclude or (self.only and tool not in self.only):
                continue
            if self.which is not None and not self.which(act):
                continue
            own = ground.meter.block(act.answer.content)
            kept += 1
            size += own
            if kept > keep and size > self.protect and act.index < since and own > self.least:
                yield act


@dataclass(frozen=True, slots=True, kw_only=True)
class Mask:
    """Clears all but the newest results at every step, or every so many steps.

    (SWE-agent, sweagent/agent/history_processors.py, LastNObservations: between `n` and `n + polling` observations stay. It counts from the
    first observation there ever was; here those that are shown in full are counted, because a view may begin later.)

    Attributes:
        n: How many of the newest results stay.
        polling: How many results come before more is cleared.
        exclude: Tools whose results stay, and are not counted.
        words: What stands in the place of a result.
    """

    n: int = 5
    polling: int = 1
    exclude: frozenset[str] = frozenset()
    words: Words = cleared

    def __call__(self, ground: Ground, upto: int, layout: Layout) -> Layout:
        """Make a layout smaller."""
        whole = list(self._whole(ground, upto, layout))
        if len(whole) < self.n + self.polling:
            return layout
        changes: dict[int, list[Rewrite]] = {}
        for act in whole[self.n :]:
            if may_change(ground, upto, act.index):
                changes.setdefault(act.index, []).append(_line(act, self.words))
        return edited(ground, layout, changes, _MASK)

    def _whole(self, ground: Ground, upto: int, layout: Layout) -> Iterator[Act]:
        """Give the acts whose results are shown in full and would be smaller cleared, the newest first."""
        kept = (act for index in reversed(layout.kept) for act in reversed(ground.acts.at(index)))
        for act in chain(_since_cleared(ground, upto, layout), kept):
            if not touched(layout, act.index, act.answer) and self._counts(ground, act):
                yield act

    def _counts(self, ground: Ground, act: Act) -> bool:
        """Tell whether a result may ever be cleared: it is not pinned, its tool is not excluded, and its line is smaller."""
        if ground.view.exchanges[act.index].pinned or act.tool.casefold() in self.exclude:
            return False
        return ground.meter.block(act.answer.content) > ground.meter.result(_line(act, self.words).text)


_MASK = "mask"


def _since_cleared(ground: Ground, upto: int, layout: Layout) -> Iterator[Act]:
    """Give the acts from the cut on, the newest first, back to one that was cleared at a step before: behind it all that may be were."""
    for act in reversed(ground.acts.changeable(upto)):
        form = layout.forms.get(act.index)
        masked = form is not None and any(done.operator == _MASK for done in form.done)
        if act.index < layout.cut or (masked and touched(layout, act.index, act.answer)):
            return
        yield act


def _line(act: Act, words: Words) -> Rewrite:
    handle = act.answer.origin
    assert handle is not None  # noqa: S101 - an act's result is recorded
    return shown_as(act.answer, words(handle, act.said), Reason.OFFLOADED)


def clear(how: Clear) -> Operator:
    """Give the operator that clears in some way."""
    return Operator("clear", Loss.REVERSIBLE, how, _RESPECTS)


def mask(how: Mask) -> Operator:
    """Give the operator that masks in some way."""
    return Operator(_MASK, Loss.REVERSIBLE, how, _RESPECTS)
