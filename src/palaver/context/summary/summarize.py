"""Summarise: a model's summary beside the record of a plan, if it is one; else the plan as it was.

Planning is pure and never waits. This is the step between planning and committing that may: what it gives is a plan again, whose text is
written down when it is committed, so that no later view asks the model again. It waits for the model only: whatever is in proportion to the
view or to an answer is done beside the event loop.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

from palaver.context.compose import Composed
from palaver.context.ledger import Ledger
from palaver.context.record.facts import NOTHING, Facts
from palaver.context.record.running import is_line
from palaver.context.record.telling import untold
from palaver.context.summary.asking import Heard, heard
from palaver.context.summary.breaker import Breaker
from palaver.context.summary.digest import Digested
from palaver.context.summary.inventions import flagged, invented, mostly_invented
from palaver.context.summary.request import HEADINGS, Summarizer
from palaver.context.summary.retention import ENOUGH, Retention, compensation, own_values, retention, values
from palaver.context.summary.scripts import foreign, named
from palaver.context.summary.task import INPUT_TOKENS, Task, Wanted
from palaver.context.summary.trying import SECONDS
from palaver.messages import Usage
from palaver.tokens import Budget
from palaver.tools.aside import aside
from palaver.view import Drop, Insert, Reason, View, apply

__all__ = ["Summarized", "summarized"]

_COMPENSATION = 3
"""What is said again has at most a third of the room of a summary: it is beside it, not in its place."""


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
        undigested: Why large outputs have no digest although one was wanted, each reason once.
    """

    composed: Composed
    summary: str = ""
    retention: Retention | None = None
    refused: str = ""
    breaker: Breaker = field(default_factory=Breaker)
    requests: int = 0
    model: str = ""
    invented: tuple[str, ...] = ()
    usages: tuple[Usage, ...] = ()
    undigested: tuple[str, ...] = ()

    def with_digests(self, digests: Digested) -> Summarized:
        """Give the same with what was asked for digests counted; and where there is no summary, why outputs have none of those either.

        One breaker counts both, once for each attempt: what became of the summary decides where one was asked for, else what became of the digests.
        """
        breaker = self.breaker
        if digests.requests and not self.requests:
            breaker = breaker.after(failed=digests.failed, tokens=self.composed.tokens_before)
        more = [why for why in digests.refused if why != self.refused]
        told = f"{self.refused}; of large outputs: {', '.join(more)}" if self.refused and more else self.refused
        return replace(
            self,
            refused=told,
            breaker=breaker,
            requests=self.requests + digests.requests,
            model=self.model or digests.model,
            usages=(*digests.usages, *self.usages),
            undigested=digests.refused,
        )


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
    whole: View | None = None,
    input_tokens: int = INPUT_TOKENS,
    breaker: Breaker | None = None,
    seconds: float = SECONDS,
) -> Summarized:
    """Put a summary beside the record of what a plan leaves out.

    The summary is asked for what is new, with the running summary before it; never for a summary of a summary. It is refused when it is
    empty, cut off, larger than its place, has none of the sections, called tools, or is made up for the most part; one that lacks some
    sections is asked for once more and then filled. Distinctive values of what leaves that neither it nor the record says are said again below
    it; where it said next to nothing of them itself and that does not help, it is refused, too. Whatever goes wrong (the summariser is down,
    too slow, or raises), the deterministic plan stands, and the summary before stays in it.

    Args:
        view: The view that was composed.
        composed: What `compose` gave for it; for less than the budget, so that there is room for a summary.
        summarizer: Answers requests.
        budget: What one request may occupy.
        ledger: The books.
        headings: The sections.
        focus: What to dwell on.
        running: The running summary; the one in the view unless given (R293).
        incremental: Whether to go on from it; else all that was said is summarised anew, where `whole` is given (R272).
        whole: The view of the log without compactions: `fold(store, dialog_id, whole=True)`.
        input_tokens: What the summariser can read at once, in tokens: more is read in pieces, one after another.
        breaker: The breaker, from the try before.
        seconds: After so many seconds an answer is given up.
    """
    wanted = Wanted(
        headings=headings,
        focus=focus,
        running=running,
        incremental=incremental,
        whole=whole,
        input_tokens=input_tokens,
        breaker=breaker or Breaker(),
    )
    task = await aside(partial(Task.of, view, composed, budget, ledger, wanted))
    if not task.requests:
        return Summarized(composed=composed, summary=task.before, refused=task.idle, breaker=wanted.breaker)
    return await aside(partial(_held, task, await heard(task, summarizer, seconds)))


def _held(task: Task, answer: Heard) -> Summarized:
    """Hold a summary to what was said, and put it into the plan; else give the plan as it was, and why."""
    if answer.refused:
        return _without(task, answer, answer.refused)
    if script := foreign(answer.text, task.asked()):
        return _without(task, answer, f"the user writes {named(script)}, and it does not")
    made_up = invented(answer.text, task.said())
    if mostly_invented(answer.text, made_up):
        names = ", ".join(made_up[:3])
        return _without(task, answer, f"most of what it names is nowhere in the conversation: {names}")
    text, kept = _compensated(task, "\n\n".join(part for part in (answer.text, flagged(made_up)) if part))
    if kept.empty:
        total = len(kept.kept) + len(kept.lost)
        return _without(
            task, answer, f"it says next to nothing: of {total} values that leave {len(kept.lost)} are lost"
        )
    composed = _put_in(task, text, of_view=answer.of_view)
    if composed.tokens_after > task.room:
        return _without(task, answer, "the view would not be small enough with it")
    return Summarized(
        composed=composed,
        summary=answer.text,
        retention=kept,
        requests=answer.requests,
        model=answer.model,
        invented=made_up,
        usages=answer.usages,
    )


def _without(task: Task, answer: Heard, why: str) -> Summarized:
    """Give the plan as it was, and why."""
    return Summarized(
        composed=task.composed,
        summary=task.before,
        refused=why,
        breaker=task.wanted.breaker.after(failed=True, tokens=task.composed.tokens_before),
        requests=answer.requests,
        model=answer.model,
        usages=answer.usages,
    )


def _compensated(task: Task, text: str) -> tuple[str, Retention]:
    """Give a summary with what neither it nor the record says below it, and what is kept then."""
    beside = "\n".join(insert.text for insert in task.composed.plan.inserts if not insert.standing)
    wanted = values(task.facts, task.leaving())
    own, kept, count = text, retention(text, wanted, beside), task.ledger.meter.text
    room = min(task.free - count(text), task.free // _COMPENSATION)
    if kept.share < ENOUGH and (more := compensation(kept.lost, room, count)):
        text = f"{text}\n\n{more}"
        kept = replace(retention(text, wanted, beside), own=kept.own)
    return text, kept if not kept.empty else replace(kept, own=own_values(own, task.said()))


def _put_in(task: Task, text: str, *, of_view: bool) -> Composed:
    """Put a summary before what the plan puts in, and the one that it went on from away."""
    plan, meter = task.composed.plan, task.ledger.meter
    exchanges = (*task.gone, *(task.view.exchanges if of_view else ()))
    summary = Insert(
        before=min((insert.before for insert in plan.inserts), default=len(task.start.exchanges)),
        text=text,
        label="summary",
        sources=task.read(of_view=of_view),
        facts=NOTHING,
        trust=min(block.trust for exchange in exchanges for block in exchange.blocks()),
    )
    old = (Drop(index=index, reason=Reason.FOLDED) for index in sorted(task.replaced))
    beside = (_replaced(insert) for insert in plan.inserts if not is_line(insert.text))
    plan = replace(plan, drops=(*plan.drops, *old), inserts=(summary, *beside))
    view = apply(task.start, plan)
    return replace(task.composed, view=view, plan=plan, after=meter.view(view))


def _replaced(insert: Insert) -> Insert:
    """Give what stands beside a summary without the one before, which had no room: it is replaced."""
    if not insert.facts or (facts := Facts.from_json(insert.facts)).running is None:
        return insert
    return replace(insert, text=untold(insert.text), facts=replace(facts, running=None).to_json())
