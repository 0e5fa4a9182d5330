"""Compacting in two steps: a preview that says what would go and what would stand for it, then approval or rejection, both recorded."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from palaver.context import Composed, Summarized, Summarizer, summarized
from palaver.context.summary import HEADINGS, SECONDS, Breaker
from palaver.context.triggers import MANUAL, Fired
from palaver.errors import InfeasibleBudget
from palaver.log import Entry, Handle
from palaver.messages.said import words_of
from palaver.session.attempts import attempt_of, rejection
from palaver.session.committing import MARGIN
from palaver.session.composing import BudgetLike, Composing, PolicyLike
from palaver.tokens import Budget
from palaver.view import Block, Exchange, Omission, View

__all__ = ["ASKED_FOR", "CompactionPreview", "Wish", "by_code", "by_model", "place_of", "preview_of"]

_SHARE = 0.5
"""The share of its size that a view keeps where nobody says how small it is to be."""

_FOR_SUMMARY = 0.2
"""The share of the room that is left for a summary."""

_WORD = 4
"""Letters of a word by which a focus finds exchanges: shorter ones are everywhere."""


ASKED_FOR = Fired(MANUAL, "")
"""What is recorded of a compaction that somebody asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is wanted of a compaction.

    Attributes:
        policy: The policy; None for `palaver`.
        focus: What to dwell on: exchanges that hold one of its words stay, as far as there is room, and a summariser is told.
        budget: What one request may occupy then; None for half of what it occupies now, or the policy's own budget where that is less.
        summarizer: What summarises beside the record; None for nothing.
        model: The model whose tokens count; the one in force when empty.
        trigger: Why it is made.
        seconds: After so many seconds an answer of the summariser is given up.
        input_tokens: What the summariser can read at once, in tokens.
    """

    policy: PolicyLike | None = None
    focus: str = ""
    budget: BudgetLike | None = None
    summarizer: Summarizer | None = None
    model: str = ""
    trigger: Fired = ASKED_FOR
    seconds: float = SECONDS
    input_tokens: int = 100_000


@dataclass(frozen=True, kw_only=True)
class CompactionPreview:
    """A compaction that was not made yet: nothing is written before `approve` or `reject`.

    Attributes:
        before: The view as it stands.
        composed: The view as it would be, and the plan that leads to it.
        summarized: What became of the summary; None where none was asked for.
        focus: What was to be dwelt on.
        kept: How many exchanges stay because of that.
        attempt: What is recorded of it either way.
    """

    before: View
    composed: Composed
    summarized: Summarized | None = None
    focus: str = ""
    kept: int = 0
    attempt: Mapping[str, Any] = field(default_factory=dict)
    commit: Callable[[Composed, Mapping[str, Any]], Handle] = field(repr=False, compare=False)
    annotate: Callable[[Entry], Handle] = field(repr=False, compare=False)

    @property
    def tokens_before(self) -> int:
        """The size of the view as it stands, in tokens."""
        return self.composed.tokens_before

    @property
    def tokens_after(self) -> int:
        """The size of the view as it would be."""
        return self.composed.tokens_after

    @property
    def worthwhile(self) -> bool:
        """Whether the view would become smaller by enough to be committed."""
        return self.tokens_after <= self.tokens_before * (1 - MARGIN) and self.tokens_after < self.tokens_before

    @property
    def policy(self) -> str:
        """The policy that decided; where nothing would change, the one that was asked."""
        view = self.composed.view
        if view.policies == self.before.policies:
            return self.composed.plan.policy
        return view.policies[-1] if view.policies else self.composed.plan.policy

    @property
    def summary(self) -> str:
        """The text that a model made; empty where there is none."""
        return "" if self.summarized is None or self.refused else self.summarized.summary

    @property
    def refused(self) -> str:
        """Why there is no summary although one was asked for; empty where there is, or none was."""
        return "" if self.summarized is None else self.summarized.refused

    @property
    def inserted(self) -> tuple[str, ...]:
        """The texts that would stand for what goes: summary, record, notice."""
        known = {_text(exchange) for exchange in self.before.exchanges if exchange.derived}
        texts = (_text(exchange) for exchange in self.composed.view.exchanges if exchange.derived)
        return tuple(text for text in texts if text not in known)

    @property
    def omitted(self) -> tuple[Omission, ...]:
        """What would go that is there now, each with its reason and its place."""
        known = set(self.before.omissions)
        return tuple(gone for gone in self.composed.view.omissions if gone not in known)

    @property
    def shortened(self) -> tuple[Handle, ...]:
        """The blocks that would be shown in another form than now."""
        known = {block.origin for block in _blocks(self.before) if block.reason is not None}
        changed = (block.origin for block in _blocks(self.composed.view) if block.reason is not None)
        return tuple(place for place in changed if place is not None and place not in known)

    def approve(self) -> Handle:
        """Make it: one entry of the log, from which later views start. `Dialog.undo` takes it back.

        Raises:
            Conflict: Another compaction was committed meanwhile.
            InvalidInput: The view would not become smaller by enough.
        """
        return self.commit(self.composed, self.attempt)

    def reject(self, reason: str = "") -> Handle:
        """Leave the view as it is, and have the log say so: also that a summariser failed, which the next attempt heeds."""
        return self.annotate(rejection(self.attempt, reason, (self.tokens_before, self.tokens_after)))

    def to_dict(self) -> dict[str, Any]:
        """Give it as JSON values."""
        return {
            "policy": self.policy,
            "tokens_before": self.tokens_before,
            "tokens_after": self.tokens_after,
            "worthwhile": self.worthwhile,
            "omitted": [
                {"place": place_of(gone), "reason": gone.reason.value, "messages": gone.messages, "bytes": gone.size}
                for gone in self.omitted
            ],
            "shortened": [str(place) for place in self.shortened],
            "inserted": list(self.inserted),
            "summary": self.summary,
            "refused": self.refused,
            "focus": self.focus,
            "kept": self.kept,
            "attempt": dict(self.attempt),
        }


def place_of(gone: Omission) -> str:
    """Name what is left out as it is recalled: a handle, or a run of entries with both ends."""
    if gone.span is None:
        return str(gone.handle)
    first = Handle(gone.span.dialog, gone.span.start)
    return str(first) if len(gone.span) == 1 else f"{first}-{gone.span.stop - 1}"


# --- making one --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Made:
    """A plan that code made.

    Attributes:
        composed: The view as it would be.
        target: What one request may occupy then.
        kept: How many exchanges stay because of the focus.
    """

    composed: Composed
    target: Budget
    kept: int


def by_code(ready: Composing, wish: Wish) -> Made:
    """Plan a compaction without a model.

    Raises:
        InfeasibleBudget: What every view must hold is larger than the budget that was given.
    """
    view = ready.view
    size = ready.ledger.meter.view(view).total
    target = ready.budget
    if wish.budget is None:
        target = Budget.of_input(max(1, min(math.ceil(size * _SHARE), target.for_input)))
    room = target
    if wish.summarizer is not None:
        room = Budget.of_input(max(1, math.ceil(target.for_input * (1 - _FOR_SUMMARY))))
    kept = focused(view, wish.focus)
    try:
        return _made(ready, view, kept, room, target)
    except InfeasibleBudget as error:
        if wish.budget is None:  # nobody said how small: as small as there can be
            target = Budget.of_input(error.needed if error.needed < size else max(size, error.needed))
        elif wish.summarizer is None:
            raise
    return _made(ready, view, (), target, target)  # without room for a summary


def _made(ready: Composing, view: View, kept: Sequence[int], room: Budget, target: Budget) -> Made:
    """Compose; of the exchanges that the focus names the newest stay, as many as there is a view with."""
    while kept:
        made = _holding(ready, view, kept, room)
        if made is not None:
            return Made(composed=_unpinned(made, view), target=target, kept=len(kept))
        kept = kept[len(kept) // 2 + 1 :]
    return Made(composed=ready.composed(room), target=target, kept=0)


def _holding(ready: Composing, view: View, kept: Sequence[int], room: Budget) -> Composed | None:
    """Compose so that some exchanges stay; None where there is no such view, or the policy alone cannot make it: the focus shall cost no record."""
    held = tuple(replace(x, pinned=True) if n in kept else x for n, x in enumerate(view.exchanges))
    try:
        made = ready.composed(room, replace(view, exchanges=held))
    except InfeasibleBudget:
        return None
    return None if made.fallback else made


def _unpinned(made: Composed, view: View) -> Composed:
    """Give a composed view whose exchanges are pinned where the log pins them: that the focus held them is no fact of the log."""
    pinned = {exchange.first: exchange.pinned for exchange in view.exchanges if exchange.first is not None}
    shown = tuple(
        replace(x, pinned=x.pinned if x.first is None else pinned.get(x.first, x.pinned)) for x in made.view.exchanges
    )
    return replace(made, view=replace(made.view, exchanges=shown))


def focused(view: View, focus: str) -> tuple[int, ...]:
    """Give the exchanges that hold a word of a focus of four letters or more; where those are most of them, the newest quarter of all."""
    words = {word.casefold() for word in focus.split() if len(word) >= _WORD}
    said = {n: _text(x).casefold() for n, x in enumerate(view.exchanges) if words and not x.derived}
    found = tuple(n for n, text in said.items() if any(word in text for word in words))
    return found if 2 * len(found) <= len(view.exchanges) else found[-(len(view.exchanges) // 4) :]


async def by_model(ready: Composing, wish: Wish, made: Made, breaker: Breaker) -> Summarized | None:
    """Have the summariser put its words beside the record; None where none was asked for. Whatever goes wrong, the plan stands."""
    if wish.summarizer is None:
        return None
    return await summarized(
        ready.view,
        made.composed,
        wish.summarizer,
        made.target,
        ready.ledger,
        headings=getattr(ready.manager, "headings", ()) or HEADINGS,
        focus=wish.focus,
        input_tokens=wish.input_tokens,
        breaker=breaker,
        seconds=wish.seconds,
    )


def preview_of(
    ready: Composing,
    wish: Wish,
    made: Made,
    summary: Summarized | None,
    commit: Callable[[Composed, Mapping[str, Any]], Handle],
    annotate: Callable[[Entry], Handle],
) -> CompactionPreview:
    """Set a preview together."""
    return CompactionPreview(
        before=ready.view,
        composed=made.composed if summary is None else summary.composed,
        summarized=summary,
        focus=wish.focus,
        kept=made.kept,
        attempt=attempt_of(wish.trigger, wish.focus, summary),
        commit=commit,
        annotate=annotate,
    )


def _blocks(view: View) -> Iterator[Block]:
    yield from view.system
    for exchange in view.exchanges:
        yield from exchange.blocks()


def _text(exchange: Exchange) -> str:
    return "\n".join(words_of(block.content) for block in exchange.blocks())
