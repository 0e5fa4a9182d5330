"""Summarise: a model's summary beside the record of a plan, if it is one; else the plan as it was.

Planning is pure and never waits. This is the step between planning and committing that may: what it gives is a plan again, whose text is
written down when it is committed, so that no later view asks the model again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from palaver.context.compose import Composed
from palaver.context.ground import asks
from palaver.context.ledger import Ledger
from palaver.context.record.carried import begun, sources_of
from palaver.context.record.facts import Facts
from palaver.context.record.recorder import Recorder
from palaver.context.summary.checks import clean, filled, lacking, unusable
from palaver.context.summary.inventions import flagged, invented, mostly_invented
from palaver.context.summary.request import HEADINGS, Summarizer, SummaryAnswer, SummaryRequest
from palaver.context.summary.retention import ENOUGH, Retention, compensation, retention, values
from palaver.context.summary.scripts import foreign
from palaver.context.summary.transcript import pieces, transcript
from palaver.context.summary.trying import SECONDS, tried
from palaver.messages import TextContent, Usage
from palaver.messages.said import words_of
from palaver.tokens import Budget
from palaver.view import Exchange, Insert, View, apply

__all__ = ["Breaker", "Summarized", "summarized"]

_FAILURES = 3
"""After so many failures in a row nothing is asked any more (Claude Code: before it had that, 1,279 sessions failed 50 times and more)."""

_GROWTH = 1.25
"""Then only when the view has grown by a quarter."""

_LEAST = 200
"""Tokens that must be free for a summary to be worth asking for."""

_INPUT_LEAST = 1_000
"""The least that a summariser can read."""

_LONGEST_TOKEN = 64
"""Characters that a token has at most, for prose."""

_NOTHING = Facts().to_json()


@dataclass(frozen=True, slots=True)
class Breaker:
    """Counts failures in a row, so that a summariser that is down is not asked for ever.

    Attributes:
        failures: How many there were.
        at: The size of the view at the last one, in tokens.
    """

    failures: int = 0
    at: int = 0

    def closed(self, tokens: int) -> bool:
        """Tell whether a summariser may be asked for a view of this size."""
        return self.failures < _FAILURES or tokens >= self.at * _GROWTH

    def after(self, *, failed: bool, tokens: int) -> Breaker:
        """Give the breaker after a try."""
        return Breaker(self.failures + 1, tokens) if failed else Breaker()


@dataclass(frozen=True, slots=True, kw_only=True)
class Summarized:
    """A composed view with a summary in it, or without one and the reason why.

    Attributes:
        composed: What to commit: with the summary, or as it was.
        summary: The running summary now, without what was added to it by code; the one before where there is no new one.
        retention: Which distinctive values of the sources summary and record say; None where no summary was made.
        refused: Why there is no new summary; empty when there is one.
        breaker: The breaker after this try.
        requests: How often the summariser was asked.
        model: The model that made the summary, as the summariser says; empty where there is none.
        invented: Addresses, paths and identifiers in the summary that nobody said; a line in the view says so.
        usages: What each answer of the summariser read and wrote, as far as its provider says; also of those that were refused.
    """

    composed: Composed
    summary: str = ""
    retention: Retention | None = None
    refused: str = ""
    breaker: Breaker = Breaker()
    requests: int = 0
    model: str = ""
    invented: tuple[str, ...] = ()
    usages: tuple[Usage, ...] = ()


async def summarized(  # noqa: PLR0913 - what a summary is made of and held to
    view: View,
    composed: Composed,
    summarizer: Summarizer,
    budget: Budget,
    ledger: Ledger,
    *,
    headings: tuple[str, ...] = HEADINGS,
    focus: str = "",
    running: str | None = None,
    incremental: bool = True,
    input_tokens: int = 100_000,
    breaker: Breaker | None = None,
    seconds: float = SECONDS,
) -> Summarized:
    """Put a summary beside the record of what a plan leaves out.

    The summary is asked for what is new, with the running summary before it; never for a summary of a summary. It is refused when it is
    empty, cut off, larger than its place, has none of the sections, called tools, or is made up for the most part; one that lacks some
    sections is asked for once more and then filled. Distinctive values that neither it nor the record says are said again below it.
    Whatever goes wrong (the summariser is down, too slow, or raises), the deterministic plan stands.

    Args:
        view: The view that was composed.
        composed: What `compose` gave for it; for less than the budget, so that there is room for a summary.
        summarizer: Answers requests.
        budget: What one request may occupy.
        ledger: The books.
        headings: The sections.
        focus: What to dwell on.
        running: The running summary; the one in the view unless given (R293).
        incremental: Whether to go on from it; else all that can be read is summarised anew.
        input_tokens: What the summariser can read at once, in tokens: more is read in pieces, one after another.
        breaker: The breaker, from the try before.
        seconds: After so many seconds an answer is given up.
    """
    guard = breaker or Breaker()
    ledger = ledger.reading(view)
    start = view
    for plan in composed.limits:
        start = apply(start, plan)
    gone = [start.exchanges[drop.index] for drop in composed.plan.drops]
    before = _running(gone) if running is None else running
    told = [] if composed.fallback else transcript(gone, ledger.sources)
    tokens = composed.tokens_before
    free = min(budget.for_input - composed.tokens_after, (tokens - composed.tokens_after) // 2)
    if not told or free < _LEAST or not guard.closed(tokens):
        why = "nothing new was left out" if not told else "there is no room" if free < _LEAST else "it failed too often"
        return Summarized(composed=composed, summary=before, refused=why, breaker=guard)
    told_before = begun(start, [drop.index for drop in composed.plan.drops])
    facts = ledger.constraints.applied(Recorder(sources=ledger.sources, begun=told_before).take(gone).facts())
    request = SummaryRequest(
        headings=headings,
        running=before if incremental else "",
        facts=facts,
        focus=focus,
        words=max(free // 3, 60),
        view=view,
    )
    by = _Asking(summarizer, ledger.meter.text, free, input_tokens, seconds)
    by.refused = await by.ask(request, told)
    if by.refused:
        return by.without(composed, before, guard, tokens)
    if script := foreign(by.text, _asked(view)):
        by.refused = f"the user writes {script.capitalize()}, and it does not"
        return by.without(composed, before, guard, tokens)
    made_up = invented(by.text, (before, by.said, *_words(view, ledger)))
    if mostly_invented(by.text, made_up):
        by.refused = f"most of what it names is nowhere in the conversation: {', '.join(made_up[:3])}"
        return by.without(composed, before, guard, tokens)
    shown = "\n\n".join(part for part in (by.text, flagged(made_up)) if part)
    done, kept = _with(start, composed, shown, gone, facts, ledger, free)
    if done.tokens_after > budget.for_input or done.tokens_after >= tokens:
        by.refused = "the view would not be small enough with it"
        return by.without(composed, before, guard, tokens)
    return Summarized(
        composed=done,
        summary=by.text,
        retention=kept,
        requests=by.requests,
        model=by.model,
        invented=made_up,
        usages=by.usages,
    )


@dataclass(slots=True)
class _Asking:
    """A summariser being asked.

    Attributes:
        summarizer: The summariser.
        count: Counts tokens.
        most: Tokens that the answer may have.
        input_tokens: Tokens that it can read at once.
        seconds: After so many an answer is given up.
        requests: How often it was asked.
        text: The summary.
        said: What it was given to read.
        model: The model that answered last.
        refused: Why there is no summary.
        usages: What the answers read and wrote.
    """

    summarizer: Summarizer
    count: Callable[[str], int]
    most: int
    input_tokens: int
    seconds: float
    requests: int = 0
    text: str = ""
    said: str = ""
    model: str = ""
    refused: str = ""
    usages: tuple[Usage, ...] = ()

    async def ask(self, request: SummaryRequest, told: list[str]) -> str:
        """Ask for each piece in turn, each going on from the answer before; give why it is refused, or an empty text."""
        around = self.count(replace(request, transcript="").prompt()) + self.most
        running, self.said = request.running, "\n".join(told)
        parts = pieces(told, max(self.input_tokens - around, _INPUT_LEAST), self.count)
        view = request.view if len(parts) == 1 else None  # the whole would be asked about with every part
        for piece in parts:
            this = replace(request, transcript=piece, running=running, view=view)
            answer = await self._tried(this)
            missing = () if isinstance(answer, str) else lacking(clean(answer.text), request.headings)
            if missing and not isinstance(answer, str) and not answer.calls:
                answer = await self._tried(this.again(missing))
            if isinstance(answer, str):
                return answer
            refused = self._unusable(answer, request.headings)
            if refused:
                return refused
            running = filled(clean(answer.text), request.headings)
        self.text = running
        return ""

    async def _tried(self, request: SummaryRequest) -> SummaryAnswer | str:
        self.requests += 1
        answer = await tried(self.summarizer, request, self.seconds)
        if not isinstance(answer, str):
            self.model = answer.model
            self.usages += () if answer.usage is None else (answer.usage,)
        return answer

    def _unusable(self, answer: SummaryAnswer, headings: tuple[str, ...]) -> str:
        text = clean(answer.text)
        if len(text) > self.most * _LONGEST_TOKEN:  # not worth counting
            return f"it has {len(text):,} characters, and {self.most:,} tokens are free for it"
        return unusable(answer, headings, self.count(text), self.most)

    def without(self, composed: Composed, before: str, guard: Breaker, tokens: int) -> Summarized:
        """Give the plan as it was, and why."""
        failed = guard.after(failed=True, tokens=tokens)
        return Summarized(
            composed=composed,
            summary=before,
            refused=self.refused,
            breaker=failed,
            requests=self.requests,
            model=self.model,
            usages=self.usages,
        )


def _asked(view: View) -> Iterator[str]:
    """Give what the user said."""
    return (words_of(block.content) for x in view.exchanges if asks(x) for block in x.blocks())


def _words(view: View, ledger: Ledger) -> Iterator[str]:
    """Give what a view says, blocks in another form as they were recorded."""
    blocks = (*view.system, *(block for exchange in view.exchanges for block in exchange.blocks()))
    for block in blocks:
        recorded = None
        if block.reason is not None and block.origin is not None and ledger.sources is not None:
            recorded = ledger.sources(block.origin)
        yield words_of(recorded or block.content)
        yield block.facts


def _running(gone: list[Exchange]) -> str:
    """Give the newest running summary among exchanges: one of ours, or one that somebody else put there."""
    found = [
        block for exchange in gone if exchange.derived for block in exchange.blocks() if block.derived == "summary"
    ]
    content = found[-1].content if found else None
    return content.content if isinstance(content, TextContent) else ""


def _with(  # noqa: PLR0913, PLR0917 - what the plan is made anew from
    start: View, composed: Composed, text: str, gone: list[Exchange], facts: Facts, ledger: Ledger, free: int
) -> tuple[Composed, Retention]:
    """Put a summary before what the plan puts in, and below it what neither says."""
    count = ledger.meter.text
    wanted = values(facts)
    beside = "\n".join(insert.text for insert in composed.plan.inserts)
    kept = retention(f"{text}\n{beside}", wanted)
    if kept.share < ENOUGH and (more := compensation(kept.lost, free - count(text), count)):
        kept = retention(f"{text}\n{more}\n{beside}", wanted)
        shown = f"{text}\n\n{more}"
    else:
        shown = text
    trust = min(block.trust for exchange in gone for block in exchange.blocks())
    before = min((insert.before for insert in composed.plan.inserts), default=len(start.exchanges))
    summary = Insert(before=before, text=shown, label="summary", sources=sources_of(gone), facts=_NOTHING, trust=trust)
    plan = replace(composed.plan, inserts=(summary, *composed.plan.inserts))
    view = apply(start, plan)
    return replace(composed, view=view, plan=plan, after=ledger.meter.view(view)), kept
