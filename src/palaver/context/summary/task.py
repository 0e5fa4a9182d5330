"""What a plan leaves out, made ready for a summariser: what it is to read, how much it may say, and what its answer is held to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from palaver.context.compose import Composed
from palaver.context.ground import asks
from palaver.context.ledger import Ledger
from palaver.context.placing import shaped
from palaver.context.record.carried import begun, sources_of, united
from palaver.context.record.facts import Facts
from palaver.context.record.recorder import Recorder, original
from palaver.context.record.running import SHARE, outdated, running
from palaver.context.record.telling import told
from palaver.context.summary.breaker import FAILED_TOO_OFTEN, Breaker
from palaver.context.summary.request import HEADINGS, SummaryRequest, escaped
from palaver.context.summary.retention import Left
from palaver.context.summary.transcript import pieces, transcript
from palaver.context.summary.wants import places, run_of, wants
from palaver.log import Run
from palaver.messages import Content, TextContent, ToolResultContent
from palaver.messages.said import words_of
from palaver.tokens import Budget
from palaver.view import Block, Exchange, View

__all__ = ["INPUT_TOKENS", "Task", "Wanted"]

INPUT_TOKENS = 100_000
"""What a summariser can read at once, where nobody says: less than the window of any model in use."""

_LEAST = 200
"""Tokens that must be free for a summary to be worth asking for."""

_LONGEST = 4_000
"""Tokens that a summary is asked for at most, some two thousand words: nobody reads a longer one, and each later request sends it again."""

_ANSWER = 4
"""At most a quarter of what a summariser reads at once is for the summary so far, which its next request reads; as much at most for its answer."""

_PREFACE, _PREFACE_SHARE = 1_500, 8
"""Tokens that the user's own words before the conversation may have, and which part of what a summariser reads at once."""

_PIECE = 100
"""Tokens of the conversation that one request must at least have room for."""

_REQUESTS = 16
"""Requests that one summary may take, one behind the other: a million and a half of tokens, at 100,000 each. A turn waits behind them."""

_CLOSER = 0.9
"""By how much less is put into a request, where the whole counts more than its parts."""

_WHAT_HE_WANTS = "What the user wants, in his own words:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """How a summary is wanted; as `summarized` takes it.

    Attributes:
        headings: The sections.
        focus: What to dwell on.
        running: The running summary; the one in the view where it is None.
        incremental: Whether to go on from it.
        whole: The view of all that was ever said, from which a summary is made anew; None where it cannot be had.
        input_tokens: What the summariser can read at once.
        breaker: The breaker, from the try before.
    """

    headings: tuple[str, ...] = HEADINGS
    focus: str = ""
    running: str | None = None
    incremental: bool = True
    whole: View | None = None
    input_tokens: int = INPUT_TOKENS
    breaker: Breaker = field(default_factory=Breaker)

    @property
    def anew(self) -> View | None:
        """What a summary is made of from scratch; None where it goes on from the one before."""
        return None if self.incremental else self.whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is to be summarised, and all that its answer is held to.

    Attributes:
        view: The view that was composed.
        composed: What `compose` gave for it.
        start: The view that the plan was made for.
        replaced: What the plan leaves in and a new summary replaces: the running one.
        gone: The exchanges that leave, with that.
        told: What is new of them, as text.
        ledger: The books, with what the log says of constraints.
        wanted: How the summary is wanted.
        before: The running summary.
        free: Tokens that the summary may have, with what is said again below it.
        most: Tokens that the answer may have.
        room: Tokens that the view may have with it.
        facts: What code gathered of what is dropped.
        requests: What is to be asked, one after another, each without the answer to the one before.
        hindered: Why nothing can be asked although something left.
    """

    view: View
    composed: Composed
    start: View
    replaced: frozenset[int]
    gone: tuple[Exchange, ...]
    told: tuple[str, ...]
    ledger: Ledger
    wanted: Wanted
    before: str
    free: int
    most: int
    room: int
    facts: Facts = field(default_factory=Facts)
    requests: tuple[SummaryRequest, ...] = ()
    hindered: str = ""

    @classmethod
    def of(cls, view: View, composed: Composed, budget: Budget, books: Ledger, wanted: Wanted) -> Task:
        """Find what the plan for a view leaves out, and make ready what is to be asked about it, if anything is."""
        start = shaped(view, composed.limits)
        dropped = {drop.index for drop in composed.plan.drops}
        replaced = outdated(start) - dropped
        gone = tuple(start.exchanges[index] for index in sorted(dropped | replaced))
        old = sum(books.meter.exchange(start.exchanges[index]) for index in replaced)
        spared = composed.tokens_before - composed.tokens_after + old
        share = max(budget.for_input // SHARE, _LEAST)
        free = min(budget.for_input - composed.tokens_after + old, spared // 2, share)
        found = cls(
            view=view,
            composed=composed,
            start=start,
            replaced=replaced,
            gone=gone,
            told=() if composed.fallback else _told(composed.view, gone, books, wanted.anew),
            ledger=books.reading(view),
            wanted=wanted,
            before=_running(start, gone) if wanted.running is None else wanted.running,
            free=free,
            most=min(free, _LONGEST, max(wanted.input_tokens // _ANSWER, 1)),
            room=min(budget.for_input, composed.tokens_before - 1),
        )
        if found.idle:
            return found
        ready = found._asking()
        if ready.hindered and wanted.anew is not None:  # all of it is too much: what is new is better than nothing
            return cls.of(view, composed, budget, books, replace(wanted, incremental=True))
        return ready

    @property
    def idle(self) -> str:
        """Why nothing is asked; empty where something is."""
        if not self.told:
            return "nothing new was left out"
        if self.free < _LEAST:
            return "there is no room"
        return self.hindered if self.wanted.breaker.closed(self.composed.tokens_before) else FAILED_TOO_OFTEN

    @property
    def count(self) -> Callable[[str], int]:
        """What counts tokens."""
        return self.ledger.meter.text

    def _asking(self) -> Task:
        """Gather the facts, and part what is told into pieces that the summariser can read."""
        facts, limit = self._facts(), self.wanted.input_tokens
        so_far = "" if self.wanted.anew is not None else self.before
        whole = SummaryRequest(
            headings=self.wanted.headings,
            running=so_far,
            preface=self._preface(limit),
            facts=facts,
            focus=self.wanted.focus,
            words=max(self.most // 3, 60),
        )
        told_ = tuple(map(escaped, self.told))
        if (
            self.count(escaped(so_far)) > limit // _ANSWER
        ):  # too large to be sent with every piece: it is the first one to be read
            whole, told_ = replace(whole, running=""), (escaped(f"SUMMARY SO FAR: {so_far}"), *told_)
        requests = self._parted(whole, told_, limit)
        if not requests:
            return replace(self, facts=facts, hindered=f"it reads {limit:,} tokens at once, which is too little")
        if len(requests) > _REQUESTS:
            why = f"it would have to be asked {len(requests):,} times, and {_REQUESTS} times is the most"
            return replace(self, facts=facts, hindered=why)
        if len(requests) == 1:  # else the whole would be asked about with every part
            requests = (replace(requests[0], view=self.view),)
        return replace(self, facts=facts, requests=requests)

    def _parted(self, whole: SummaryRequest, texts: Sequence[str], limit: int) -> tuple[SummaryRequest, ...]:
        """Give a request for each piece, none larger than what is read at once; none at all where that is too little for any."""
        around = self.count(replace(whole, running="", missing=whole.headings).prompt())
        so_far = self.count(whole.running)
        room = limit - around - so_far
        if sum(map(self.count, texts)) > room:  # the later ones read the answers to those before
            room = limit - around - max(so_far, self.most)
        while room >= _PIECE:
            found = tuple(replace(whole, transcript=one) for one in pieces(texts, room, self.count))
            if all(self.count(each.prompt()) <= limit for each in found):
                return found
            room = int(room * _CLOSER)
        return ()

    def _preface(self, limit: int) -> str:
        """Give the user's goal, what must or must not be, and his newest ask: all of it may stay in the view, and so not be told."""
        wanted = wants(self.start, self.ledger)
        if wanted == Facts():
            return ""
        return told(wanted, _WHAT_HE_WANTS, min(_PREFACE, limit // _PREFACE_SHARE), self.count)

    def read(self, *, of_view: bool) -> tuple[Run, ...]:
        """Give the entries whose words a summariser was given, those that leave last: with the erasure of one of them goes what it made of it.

        What stays is named, too: what the user wants in his own words, and all that the view shows, where the summariser may have read that.
        """
        left = {run for exchange in self.gone if not exchange.derived for run in exchange.runs}
        derived = tuple(exchange for exchange in self.gone if exchange.derived)
        own = sources_of([exchange for exchange in self.gone if not exchange.derived])
        runs = [*sources_of(derived), *places(wants(self.start, self.ledger), self.view)]
        if (anew := self.wanted.anew) is not None:
            runs += sources_of(anew.exchanges)
        if of_view:
            runs += sources_of([each for each in self.view.exchanges if left.isdisjoint(each.runs)])
            for block in self.view.system:
                runs += block.sources if block.origin is None else (run_of(block.origin),)
        return (*united(runs), *own)

    def _facts(self) -> Facts:
        dropped = [drop.index for drop in self.composed.plan.drops]
        recorder = Recorder(sources=self.ledger.sources, begun=begun(self.start, dropped))
        return self.ledger.constraints.applied(recorder.take((*self.start.carried, *self.gone)).facts())

    def asked(self) -> Iterator[str]:
        """Give what the user said."""
        return (words_of(block.content) for x in self.view.exchanges if asks(x) for block in x.blocks())

    def leaving(self) -> Iterator[Left]:
        """Give the texts that leave, the newest first, and last what the summary before said of earlier ones."""
        for exchange in reversed(self.gone):
            for block in () if exchange.derived else reversed(tuple(exchange.blocks())):
                content = self._recorded(block)
                yield Left(words_of(content), output=isinstance(content, ToolResultContent))
        yield Left(self.before)

    def said(self) -> Iterator[str]:
        """Give what a summary may name: the summary before, what the summariser read, and what the view says, blocks in another form as recorded."""
        yield self.before
        yield from self.told
        for block in (*self.view.system, *(block for x in self.view.exchanges for block in x.blocks())):
            yield words_of(self._recorded(block))
            yield block.facts

    def _recorded(self, block: Block) -> Content:
        """Give a block as it was recorded, where it is shown in another form and can be read."""
        return original(block, self.ledger.sources) or block.content


def _told(final: View, gone: Sequence[Exchange], books: Ledger, anew: View | None) -> tuple[str, ...]:
    """Give what is to be read: what leaves now; or, from scratch, all that was ever said and is shown no more."""
    told_ = tuple(transcript(gone, books.sources))
    if not told_ or anew is None:
        return told_
    shown = {exchange.first for exchange in final.exchanges if not exchange.derived}
    return tuple(transcript((each for each in anew.exchanges if each.first not in shown), books.sources))


def _running(start: View, gone: Sequence[Exchange]) -> str:
    """Give the running summary: of a model of ours; else the newest that somebody else made, leaving now or told by a record before."""
    if found := running(start):
        return found
    theirs = [
        block for exchange in gone if exchange.derived for block in exchange.blocks() if block.derived == "summary"
    ]
    content = theirs[-1].content if theirs else None
    if isinstance(content, TextContent):
        return content.content
    earlier = Recorder().take(exchange for exchange in gone if exchange.derived).facts().summaries
    return earlier[-1].text if earlier else ""
