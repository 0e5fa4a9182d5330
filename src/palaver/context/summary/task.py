"""What a plan leaves out, made ready for a summariser: what it is to read, how much it may say, and what its answer is held to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from palaver.context.compose import Composed
from palaver.context.ground import asks
from palaver.context.ledger import Ledger
from palaver.context.record.carried import begun
from palaver.context.record.facts import Facts
from palaver.context.record.recorder import Recorder
from palaver.context.summary.breaker import Breaker
from palaver.context.summary.request import HEADINGS, SummaryRequest
from palaver.context.summary.transcript import pieces, transcript
from palaver.messages import Content, TextContent
from palaver.messages.said import words_of
from palaver.tokens import Budget
from palaver.view import Block, Exchange, View, apply

__all__ = ["Task", "Wanted"]

_LEAST = 200
"""Tokens that must be free for a summary to be worth asking for."""

_INPUT_LEAST = 1_000
"""The least that a summariser can read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """How a summary is wanted; as `summarized` takes it.

    Attributes:
        headings: The sections.
        focus: What to dwell on.
        running: The running summary; the one in the view where it is None.
        incremental: Whether to go on from it.
        input_tokens: What the summariser can read at once.
        breaker: The breaker, from the try before.
    """

    headings: tuple[str, ...] = HEADINGS
    focus: str = ""
    running: str | None = None
    incremental: bool = True
    input_tokens: int = 100_000
    breaker: Breaker = field(default_factory=Breaker)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is to be summarised, and all that its answer is held to.

    Attributes:
        view: The view that was composed.
        composed: What `compose` gave for it.
        start: The view that the plan was made for.
        gone: The exchanges that the plan drops.
        told: What is new of them, as text.
        ledger: The books, with what the log says of constraints.
        wanted: How the summary is wanted.
        before: The running summary.
        free: Tokens that the summary may have.
        room: Tokens that the view may have with it.
        facts: What code gathered of what is dropped.
        requests: What is to be asked, one after another, each without the answer to the one before.
    """

    view: View
    composed: Composed
    start: View
    gone: tuple[Exchange, ...]
    told: tuple[str, ...]
    ledger: Ledger
    wanted: Wanted
    before: str
    free: int
    room: int
    facts: Facts = field(default_factory=Facts)
    requests: tuple[SummaryRequest, ...] = ()

    @classmethod
    def of(cls, view: View, composed: Composed, budget: Budget, books: Ledger, wanted: Wanted) -> Task:
        """Find what the plan for a view leaves out, and make ready what is to be asked about it, if anything is."""
        start = view
        for plan in composed.limits:
            start = apply(start, plan)
        gone = tuple(start.exchanges[drop.index] for drop in composed.plan.drops)
        spared = composed.tokens_before - composed.tokens_after
        found = cls(
            view=view,
            composed=composed,
            start=start,
            gone=gone,
            told=() if composed.fallback else tuple(transcript(gone, books.sources)),
            ledger=books.reading(view),
            wanted=wanted,
            before=_running(gone) if wanted.running is None else wanted.running,
            free=min(budget.for_input - composed.tokens_after, spared // 2),
            room=min(budget.for_input, composed.tokens_before - 1),
        )
        return found if found.idle else found._asking()

    @property
    def idle(self) -> str:
        """Why nothing is asked; empty where something is."""
        if not self.told:
            return "nothing new was left out"
        if self.free < _LEAST:
            return "there is no room"
        return "" if self.wanted.breaker.closed(self.composed.tokens_before) else "it failed too often"

    @property
    def count(self) -> Callable[[str], int]:
        """What counts tokens."""
        return self.ledger.meter.text

    def _asking(self) -> Task:
        """Gather the facts, and part what is told into pieces that the summariser can read."""
        facts = self._facts()
        whole = SummaryRequest(
            headings=self.wanted.headings,
            running=self.before if self.wanted.incremental else "",
            facts=facts,
            focus=self.wanted.focus,
            words=max(self.free // 3, 60),
        )
        room = self.wanted.input_tokens - self.count(whole.prompt()) - self.free
        parts = pieces(self.told, max(room, _INPUT_LEAST), self.count)
        view = self.view if len(parts) == 1 else None  # the whole would be asked about with every part
        return replace(self, facts=facts, requests=tuple(replace(whole, transcript=one, view=view) for one in parts))

    def _facts(self) -> Facts:
        dropped = [drop.index for drop in self.composed.plan.drops]
        recorder = Recorder(sources=self.ledger.sources, begun=begun(self.start, dropped))
        return self.ledger.constraints.applied(recorder.take(self.gone).facts())

    def asked(self) -> Iterator[str]:
        """Give what the user said."""
        return (words_of(block.content) for x in self.view.exchanges if asks(x) for block in x.blocks())

    def said(self) -> Iterator[str]:
        """Give what a summary may name: the summary before, what the summariser read, and what the view says, blocks in another form as recorded."""
        yield self.before
        yield from self.told
        for block in (*self.view.system, *(block for x in self.view.exchanges for block in x.blocks())):
            yield words_of(self._recorded(block) or block.content)
            yield block.facts

    def _recorded(self, block: Block) -> Content | None:
        """Give a block that is shown in another form as it was recorded, where that can be read."""
        if block.reason is None or block.origin is None or self.ledger.sources is None:
            return None
        return self.ledger.sources(block.origin)


def _running(gone: Sequence[Exchange]) -> str:
    """Give the newest running summary among exchanges: one of ours, or one that somebody else put there."""
    found = [
        block for exchange in gone if exchange.derived for block in exchange.blocks() if block.derived == "summary"
    ]
    content = found[-1].content if found else None
    return content.content if isinstance(content, TextContent) else ""
