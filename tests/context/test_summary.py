"""Summaries: optional, beside the record, and never a reason to lose anything."""

from __future__ import annotations

import anyio

from palaver.context import Composed
from palaver.context.meter import Meter
from palaver.context.summary import Summarized, Summarizer, SummaryAnswer, SummaryRequest, summarize
from palaver.messages import Speaker, Trust
from palaver.testing.logs import Log, user
from palaver.testing.policy_checks import commit
from palaver.tokens import Budget
from palaver.view import View
from tests.context.logged import composed_from, text_of, view_of
from tests.context.pencil import Characters, did

LIMIT = 12_000
FAILURES = {
    "empty": SummaryAnswer(text=" \n"),
    "cut off": SummaryAnswer(text="half", complete=False),
    "called tools": SummaryAnswer(text="", calls=1),
    "tokens": SummaryAnswer(text="x" * LIMIT),
}


def long_log(start: int = 0, log: Log | None = None) -> Log:
    """Append thirty asks and outputs to a log, 600 tokens a round."""
    log = log or Log()
    for at in range(start, start + 30):
        log.put(user(f"ask {at}"), *did(at, f"output {at} ".ljust(580, ".")))
    return log


def summarized(view: View, composed: Composed, by: Summarizer) -> Summarized:
    """Summarise what leaves a view."""

    async def whole() -> Summarized:
        return await summarize(view, composed, by, Budget.of_input(LIMIT), Meter(Characters()))

    return anyio.run(whole)


def fold(log: Log) -> tuple[View, Composed]:
    """Return the view of a log, and what `fold` makes of it."""
    return view_of(log), composed_from(log, "fold", LIMIT - 3_000)


class Keeping:
    """A summarizer that keeps what it was asked."""

    def __init__(self, *answers: SummaryAnswer | Exception, window: int = 0) -> None:
        """Answer in this order, the last one again and again."""
        self.answers = list(answers)
        self.asked: list[SummaryRequest] = []
        self.window = window

    async def __call__(self, request: SummaryRequest, /) -> SummaryAnswer:
        """Answer."""
        self.asked.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_a_summary_stands_before_the_record() -> None:
    """It is additive: the record is what it was, and the summary speaks as summary, with the lowest trust of what it covers."""
    view, composed = fold(long_log())
    done = summarized(view, composed, Keeping(SummaryAnswer(text="what was done")))
    labels = [each.derived for each in done.composed.view.exchanges if each.derived]
    assert labels == ["summary", "record"]
    assert text_of(done.composed.view) == text_of(composed.view)
    (block,) = done.composed.view.exchanges[0].blocks()
    assert (block.speaker, block.trust) == (Speaker.SUMMARY, Trust.OUTSIDE)
    assert done.composed.after == Meter(Characters()).view(done.composed.view)


def test_a_failed_summary_leaves_the_record_alone() -> None:
    """R288, T6, T7: whatever is wrong with the answer, the composed view stays, and the reason is told."""
    for why in sorted(FAILURES):
        view, composed = fold(long_log())
        done = summarized(view, composed, Keeping(FAILURES[why]))
        assert done.composed is composed, why
        assert why in done.failed, why
        assert done.account()["failed"] == done.failed, why


def test_the_span_of_a_failed_summary_stays_due() -> None:
    """What left while the summarizer failed goes into the next request, with what leaves then; a good summary is not asked for again."""
    small = Keeping(SummaryAnswer(text="never asked"), window=700)  # its instructions alone take that
    for failing, why, asked in (
        (Keeping(RuntimeError("overloaded")), "RuntimeError: overloaded", 1),
        (small, "requests", 0),
    ):
        log = long_log()
        view, composed = fold(log)
        done = summarized(view, composed, failing)
        assert (done.composed is composed, len(failing.asked)) == (True, asked)
        assert why in done.failed
        commit(log, done.composed)
        long_log(30, log)
        by = Keeping(SummaryAnswer(text="all of it"))
        done = summarized(*fold(log), by)
        assert done.summary == "all of it"
        read = "".join(request.transcript for request in by.asked)
        assert "output 0 " in read
        assert "output 35 " in read
        commit(log, done.composed)
        assert summarized(*fold(log), by).requests == 0


def test_a_running_summary_is_updated_not_repeated() -> None:
    """The next request has the summary so far and only what was not summarised; its answer takes the old one's place."""
    log = long_log()
    done = summarized(*fold(log), Keeping(SummaryAnswer(text="first part")))
    commit(log, done.composed)
    long_log(30, log)
    by = Keeping(SummaryAnswer(text="both parts"))
    done = summarized(*fold(log), by)
    (request,) = by.asked
    assert request.running == "first part"
    assert "output 0 " not in request.transcript
    assert text_of(done.composed.view, "summary") == "both parts"


def test_a_summarizers_window_bounds_its_requests() -> None:
    """R271: what is due is read in pieces of at most three quarters of the window, each with the answer to the one before."""
    by = Keeping(SummaryAnswer(text="so far"), window=9_000)
    done = summarized(*fold(long_log()), by)
    assert done.requests == len(by.asked) > 1
    assert all(len(request.prompt()) <= 9_000 for request in by.asked)
    assert [request.running for request in by.asked[1:]] == ["so far"] * (len(by.asked) - 1)
