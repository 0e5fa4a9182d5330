"""Compacting in two steps: a preview that says what would go and what would stand for it, then approval or rejection, both recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from palaver.context import Composed, Summarized
from palaver.context.summary import Breaker
from palaver.errors import InvalidInput
from palaver.log import Custom, Handle
from palaver.messages.said import words_of
from palaver.session.compaction.attempts import failed, rejection
from palaver.session.compaction.committing import worth
from palaver.view import Block, Exchange, Omission, View

__all__ = ["CompactionPreview", "place_of", "text_of"]


@dataclass(frozen=True, kw_only=True)
class CompactionPreview:
    """A compaction that was not made yet: nothing is written before `approve` or `reject`.

    Attributes:
        before: The view as it stands.
        composed: The view as it would be, and the plan that leads to it.
        summarized: What became of the summary; None where none was asked for.
        focus: What was to be dwelt on.
        found: How many exchanges of the view are named by it.
        missing: Its words that no exchange of the view holds, as they were typed.
        kept: How many exchanges stay because of it.
        attempt: What is recorded of it either way.
        breaker: The breaker before it: how often the summariser had failed.
    """

    before: View
    composed: Composed
    summarized: Summarized | None = None
    focus: str = ""
    found: int = 0
    missing: tuple[str, ...] = ()
    kept: int = 0
    attempt: Mapping[str, Any] = field(default_factory=dict)
    breaker: Breaker = field(default_factory=Breaker)
    commit: Callable[[Composed, Mapping[str, Any]], Handle] = field(repr=False, compare=False)
    note: Callable[[Custom], Handle] = field(repr=False, compare=False)
    _ended: list[str] = field(default_factory=list, init=False, repr=False, compare=False)

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
        return worth(self.tokens_before, self.tokens_after)

    @property
    def paid(self) -> bool:
        """Whether a summariser was asked for it, which is paid for whatever becomes of it: leave no such preview without `approve` or `reject`."""
        return self.summarized is not None and self.summarized.requests > 0

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
    def undigested(self) -> tuple[str, ...]:
        """Why large outputs have no digest although the policy wants one, each reason once."""
        return () if self.summarized is None else self.summarized.undigested

    @property
    def inserted(self) -> tuple[str, ...]:
        """The texts that would stand for what goes: summary, record, notice."""
        known = {text_of(exchange) for exchange in self.before.exchanges if exchange.derived}
        texts = (text_of(exchange) for exchange in self.composed.view.exchanges if exchange.derived)
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
            Conflict: Another compaction was committed meanwhile; or something that the dialog holds was erased, which this might bring back:
                make it again.
            InvalidInput: The view would not become smaller by enough; or it was rejected.
        """
        if "rejected" in self._ended:
            raise self._decided()
        made = self.commit(self.composed, self.attempt)
        self._ended.append("approved")
        return made

    def reject(self, reason: str = "") -> Handle:
        """Leave the view as it is, and have the log say so: also that a summariser failed, which the next attempt heeds.

        Where something was erased meanwhile, the log is told the figures, and no words that may quote it.

        Raises:
            InvalidInput: It was approved, or rejected before.
        """
        return self._reject(self.attempt, reason)

    def fail(self, reason: str) -> Handle:
        """As `reject`, for a view that could not be committed: where a summary is in it, that counts as a failure of the summariser."""
        return self._reject(failed(self.attempt, reason, self.breaker, self.tokens_before), reason)

    def _reject(self, attempt: Mapping[str, Any], reason: str) -> Handle:
        if self._ended:
            raise self._decided()
        place = self.note(rejection(attempt, reason, (self.tokens_before, self.tokens_after)))
        self._ended.append("rejected")
        return place

    def _decided(self) -> InvalidInput:
        """Give the error for whoever decides again."""
        way = "`Dialog.undo` takes it back." if "approved" in self._ended else "Preview it anew."
        return InvalidInput(f"This compaction was {self._ended[-1]} already.", hint=way)

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
            "undigested": list(self.undigested),
            "focus": self.focus,
            "found": self.found,
            "missing": list(self.missing),
            "kept": self.kept,
            "attempt": dict(self.attempt),
        }


def place_of(gone: Omission) -> str:
    """Name what is left out as it is recalled: a handle, or a run of entries with both ends."""
    if gone.span is None:
        return str(gone.handle)
    first = Handle(gone.span.dialog, gone.span.start)
    return str(first) if len(gone.span) == 1 else f"{first}-{gone.span.stop - 1}"


def _blocks(view: View) -> Iterator[Block]:
    yield from view.system
    for exchange in view.exchanges:
        yield from exchange.blocks()


def text_of(exchange: Exchange) -> str:
    """Give all words of an exchange."""
    return "\n".join(words_of(block.content) for block in exchange.blocks())
