"""Summarise: a model's summary beside the record of a plan, if it is one; else the plan as it was.

Planning is pure and never waits. This is the step between planning and committing that may: what it gives is a plan again, whose text is
written down when it is committed, so that no later view asks the model again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from palaver.context.compose import Composed
from palaver.context.ledger import Ledger
from palaver.context.record.carried import begun, sources_of
from palaver.context.record.facts import Facts
from palaver.context.record.recorder import Recorder
from palaver.context.summary.checks import clean, filled, lacking, unusable
from palaver.context.summary.request import HEADINGS, Summarizer, SummaryRequest
from palaver.context.summary.retention import ENOUGH, Retention, compensation, retention, values
from palaver.context.summary.transcript import pieces, transcript
from palaver.errors import PalaverError
from palaver.messages import TextContent
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
    """

    composed: Composed
    summary: str = ""
    retention: Retention | None = None
    refused: str = ""
    breaker: Breaker = Breaker()
    requests: int = 0


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
) -> Summarized:
    """Put a summary beside the record of what a plan leaves out.

    The summary is asked for what is new, with the running summary before it; never for a summary of a summary. It is refused when it is
    empty, cut off, larger than its place, has none of the sections, or called tools; one that lacks some sections is asked for once
    more and then filled. Distinctive values that neither it nor the record says are said again below it. Whatever goes wrong, the
    deterministic plan stands.

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
    """
    guard = breaker or Breaker()
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
    try:
        asked = await _asked(request, told, summarizer, ledger, input_tokens=input_tokens, most=free)
    except PalaverError as error:  # the provider refused, is down, or was cut off: the plan stands without it
        asked = _Asked("", str(error), 1)
    if asked.refused:
        return Summarized(
            composed=composed,
            summary=before,
            refused=asked.refused,
            breaker=guard.after(failed=True, tokens=tokens),
            requests=asked.requests,
        )
    done, kept = _with(start, composed, asked.text, gone, facts, ledger, free)
    if done.tokens_after > budget.for_input or done.tokens_after >= tokens:
        why = "the view would not be small enough with it"
        failed = guard.after(failed=True, tokens=tokens)
        return Summarized(composed=composed, summary=before, refused=why, breaker=failed, requests=asked.requests)
    return Summarized(composed=done, summary=asked.text, retention=kept, requests=asked.requests)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What came of asking."""

    text: str
    refused: str
    requests: int


async def _asked(
    request: SummaryRequest, told: list[str], summarizer: Summarizer, ledger: Ledger, *, input_tokens: int, most: int
) -> _Asked:
    """Ask for each piece in turn, each going on from the answer before."""
    count = ledger.meter.text
    around = count(replace(request, transcript="").prompt()) + most
    asked, running = 0, request.running
    for piece in pieces(told, max(input_tokens - around, _INPUT_LEAST), count):
        this = replace(request, transcript=piece, running=running)
        answer = await summarizer(this)
        asked += 1
        missing = lacking(clean(answer.text), request.headings)
        if missing and not answer.calls:
            answer = await summarizer(this.again(missing))
            asked += 1
        refused = unusable(answer, request.headings, count(clean(answer.text)), most)
        if refused:
            return _Asked("", refused, asked)
        running = filled(clean(answer.text), request.headings)
    return _Asked(running, "", asked)


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
