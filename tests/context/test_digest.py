"""Digests: one output that is too large to be shown, summarised with the problem in view (R18, R323), in pieces where it must be."""

from collections.abc import Callable
from functools import partial

import anyio
import pytest

from palaver import Dialog, MemoryStore, Session
from palaver.context import SummaryAnswer, SummaryRequest
from palaver.context.summary import HEADINGS, Breaker, DigestRequest, Summarizer
from palaver.context.triggers import Fired
from palaver.errors import ContextOverflow
from palaver.log import Handle, Span
from palaver.messages import AssistantMessage, Message, ToolCallContent, ToolMessage, ToolResultContent, Trust
from palaver.session import CompactionPreview
from palaver.session.compaction.attempts import breaker_of
from palaver.session.erasure import erase, verify_receipt
from palaver.tokens import counter

COUNT = counter("gpt-4o")


def printed(call: str, text: str) -> list[Message]:
    """Run a command that prints this."""
    run = ToolCallContent(id=call, name="bash", args={"command": f"cat {call}"})
    result = ToolResultContent(id=call, name="bash", content=text)
    return [AssistantMessage(contents=(run,), response_id=f"r{call}"), ToolMessage.from_result(result)]


def dialog_with(*outputs: str) -> Dialog:
    """Give a dialog about a problem, with these outputs."""
    dialog = Session.create(MemoryStore(), owner="a").root
    dialog.put_text("Fix the crash of the heron importer. Never edit the tests.")
    for number, text in enumerate(outputs):
        dialog.append(printed(f"c{number}", text))
    dialog.put_text("Go on.")
    return dialog


LOG = "\n".join(f"{number} heron_{number} ok" for number in range(9_000)) + "\nheron_77777 failed at importer.py:42\n"
"""An output of more than 100,000 characters, with the one line that matters at its end."""


class Reader:
    """A summariser that says what it is told to, and keeps what it was asked."""

    def __init__(self, say: Callable[[SummaryRequest], str]) -> None:
        """Take what to say."""
        self.say = say
        self.asked: list[SummaryRequest] = []

    async def __call__(self, request: SummaryRequest) -> SummaryAnswer:
        """Answer."""
        self.asked.append(request)
        return SummaryAnswer(text=self.say(request), model="cheap")


def finding(request: SummaryRequest) -> str:
    """Say whether the line that matters is there."""
    found = "heron_77777 failed at importer.py:42" in request.transcript
    return "heron_77777 failed at importer.py:42" if found else "Nothing of it here."


def compacted(dialog: Dialog, reader: Summarizer, **words: object) -> CompactionPreview:
    """Compact by the policy that has digests."""
    return compacted_by(dialog, "swe-agent", reader, **words)


def compacted_by(dialog: Dialog, policy: str, reader: Summarizer, **words: object) -> CompactionPreview:
    """Compact by a policy."""
    look = partial(dialog.acompact, policy=policy, summarizer=reader, model="gpt-4o", **words)  # type: ignore[arg-type]
    return anyio.run(look)


@pytest.mark.parametrize("input_tokens", [None, 12_000])
def test_an_oversized_output_is_summarised_with_the_problem_in_view(input_tokens: int | None) -> None:
    """Read at once, or in pieces whose answers are read again: each request has the problem and fits; what matters is in the view, with its handle."""
    dialog, reader = dialog_with("small", LOG, "small too"), Reader(finding)
    preview = compacted(dialog, reader, input_tokens=input_tokens)
    assert all(isinstance(request, DigestRequest) for request in reader.asked)
    assert all(
        "heron importer" in request.prompt() and "Never edit the tests." in request.prompt() for request in reader.asked
    )
    if input_tokens is None:
        assert len(reader.asked) == 1
    else:
        assert len(reader.asked) > 3
        assert all(COUNT.text(request.prompt()) <= input_tokens for request in reader.asked)
        assert "Nothing of it here." in reader.asked[-1].transcript  # what was said of the pieces is read once more
    shown = str(preview.composed.view)
    assert "heron_77777 failed at importer.py:42" in shown
    assert "8999 heron_8999 ok" not in shown
    preview.approve()
    (result,) = [r for m in dialog.messages for r in m.tool_results() if r.text() == LOG]
    assert "heron_77777" in str(dialog.view())
    assert dialog.compose("swe-agent", model="gpt-4o").view == dialog.view()  # it is asked for once
    assert preview.attempt["summary"]["requests"] == len(reader.asked)
    assert result.text() == LOG
    dialog.undo()
    assert LOG in [r.text() for m in dialog.messages for r in m.tool_results()]


@pytest.mark.parametrize(
    "said",
    ["", "word " * 9_000, "See /made/up/one.py, /made/up/two.py, /made/up/three.py and /made/up/four.py."],
)
def test_what_is_no_digest_leaves_the_preview(said: str) -> None:
    """Empty, too long, made up, or a summariser that is down: the beginning of the output stands there as before, and the turn goes on."""
    dialog = dialog_with(LOG, "small")
    bare = dialog.compact(policy="swe-agent", model="gpt-4o").composed.view
    assert compacted(dialog, Reader(lambda _: said)).composed.view == bare

    def down(request: SummaryRequest) -> str:
        raise ConnectionError(len(request.transcript))

    assert compacted(dialog, Reader(down)).composed.view == bare


def test_many_pieces_are_bounded_and_others_have_no_digest() -> None:
    """A summariser that reads too little is not asked a hundred times; policies that do not digest ask nothing about one output."""
    dialog, reader = dialog_with(LOG * 4, "small"), Reader(finding)
    compacted(dialog, reader, input_tokens=3_000)
    assert len(reader.asked) <= 16
    reader = Reader(finding)
    anyio.run(partial(dialog.acompact, policy="claude-code", summarizer=reader, model="gpt-4o"))
    assert not any(isinstance(request, DigestRequest) for request in reader.asked)


# --- what a digest is made of -------------------------------------------------------------------------------------------------


def told_again(request: SummaryRequest) -> str:
    """Say the goal in other words, as no line of it stands there."""
    return f"Of the crash of the importer named heron: test_17 fails ({len(request.transcript)} characters)."


def holding(dialog: Dialog, word: str) -> set[str]:
    """Give the kinds of the entries that hold a word."""
    rows = zip(dialog.store.headers(dialog.dialog_id), dialog.store.bodies(dialog.dialog_id), strict=True)
    return {header.kind for header, (_, body) in rows if word.encode() in body}


def test_a_digest_says_what_it_was_made_from() -> None:
    """The output, and whatever says what the user wants; with a model's trust at most; the same when it was written down and read again."""
    dialog = dialog_with("small", LOG, "small too")
    dialog.constraints.add("Nothing is pushed.")
    made = compacted(dialog, Reader(told_again))
    (block,) = [one for x in made.composed.view.exchanges for one in x.blocks() if "importer named" in str(one.content)]
    assert block.origin is not None
    starts = {run.start for run in block.sources}
    asked, by_hand = dialog.messages.handle(-1).seq, dialog.store.last(dialog.dialog_id).seq
    assert any(run.start <= block.origin.seq < run.stop for run in block.sources)
    assert {0} <= starts
    for seq in (0, block.origin.seq, asked, by_hand):
        assert any(run.start <= seq < run.stop for run in block.sources)
    assert not any(run.start <= 1 < run.stop for run in block.sources)  # the small output's call was shown to nobody
    assert block.trust is Trust.OUTSIDE
    made.approve()
    assert dialog.view().exchanges == made.composed.view.exchanges


@pytest.mark.parametrize("what", ["goal", "newest", "constraint"])
def test_with_what_the_user_wanted_goes_what_a_digest_made_of_it(what: str) -> None:
    """Erasing the goal, the newest ask or a constraint takes along the digests that were told of it, in the log, the view and each request."""
    word = "heron" if what == "goal" else "ZEBRA-9911"
    dialog = dialog_with("small", LOG, "small too")
    place = dialog.messages.handle(0)
    if what == "constraint":
        place = dialog.constraints.add("Never name ZEBRA-9911.")
    if what == "newest":
        dialog.put_text("Go on with ZEBRA-9911.")
        place = dialog.messages.handle(-1)
    compacted(dialog, Reader(lambda _: f"What matters for {word} is that test_17 fails.")).approve()
    assert f"What matters for {word}" in str(dialog.view())
    receipt = erase(dialog.store, entries=[place])
    dialog.reload()
    assert f"What matters for {word}" not in str(dialog.view())
    assert "compaction" not in holding(dialog, f"What matters for {word}")
    (block,) = [one for x in dialog.view().exchanges for one in x.blocks() if "[erased] [recall" in str(one.content)]
    assert block.origin is not None
    assert dialog.recall(block.origin) is not None  # the output itself is all there
    assert verify_receipt(dialog.store, receipt).holds
    for policy in ("palaver", "offload", "swe-agent"):
        dialog.compose(policy, model="gpt-4o")


def test_erasing_what_no_digest_was_told_leaves_them() -> None:
    """Another output, or an ask that was not the newest: the digest stays."""
    dialog = dialog_with("small")
    dialog.append(printed("c9", LOG))
    dialog.put_text("Go on then.")
    compacted(dialog, Reader(told_again)).approve()
    for place in (dialog.messages.handle(2), dialog.messages.handle(3)):
        erase(dialog.store, entries=[place])
    assert "importer named heron" in str(dialog.reload().view())


def test_what_is_made_of_a_digest_names_its_sources_too() -> None:
    """A digest in another form still, and a summary of what leaves with it: the goal is among their sources."""
    dialog = dialog_with("small", LOG, "small too")
    compacted(dialog, Reader(told_again)).approve()
    for number in range(12):
        dialog.append(printed(f"d{number}", f"{number} of it " * 100))
        dialog.put_text(f"Go on, {number}.")
    goal = Handle(dialog.dialog_id, 0)
    cleared = dialog.compose({"type": "offload", "threshold": 10, "max_tokens": 3_000}, 3_500, model="gpt-4o").view
    (block,) = [one for x in cleared.exchanges for one in x.blocks() if one.sources and not one.derived]
    assert any(goal in Span(run.dialog, run.start, run.stop) for run in block.sources)
    good = "\n\n".join(f"## {heading}\nheron_77777 and so on" for heading in HEADINGS)
    made = compacted_by(dialog, "palaver", Reader(lambda _: good), budget=3_000)
    assert made.refused == ""
    (summary,) = [one for x in made.composed.view.exchanges for one in x.blocks() if one.derived == "summary"]
    assert any(goal in Span(run.dialog, run.start, run.stop) for run in summary.sources)


# --- a summariser that is down ------------------------------------------------------------------------------------------------

FILLED = "\n".join(f"{number} line {number * 7} ok" for number in range(9_000))


class Down:
    """A summariser that fails in some way, and counts."""

    def __init__(self, failure: Exception | None = None) -> None:
        """Fail so, or by giving nothing."""
        self.failure = failure
        self.asked: list[SummaryRequest] = []

    async def __call__(self, request: SummaryRequest) -> SummaryAnswer:
        """Fail."""
        self.asked.append(request)
        if self.failure is not None:
            raise self.failure
        return None  # type: ignore[return-value]


AUTOMATIC = Fired("tokens", "too many")


@pytest.mark.parametrize(
    ("failure", "why"),
    [
        (ConnectionError("down"), "it raised ConnectionError: down"),
        (ContextOverflow("too long", provider="x"), f"too long {ContextOverflow.hint}"),
        (None, "it gave a NoneType, not a SummaryAnswer"),
    ],
)
def test_a_summariser_that_is_down_is_asked_for_one_digest_counted_and_told(
    failure: Exception | None, why: str
) -> None:
    """Six large outputs, one request: the others are not asked for; the preview and the recorded attempt say why, and the breaker opens after three."""
    dialog = dialog_with(*([FILLED] * 6))
    for failures in (1, 2, 3):
        down = Down(failure)
        made = compacted(dialog, down, trigger=AUTOMATIC)
        assert len(down.asked) == 1
        assert made.refused.endswith(f"of large outputs: {why}")
        assert made.attempt["summary"]["undigested"] == [why]
        assert made.attempt["summary"]["failures"] == failures
        assert made.to_dict()["refused"] == made.refused
        made.reject()
        assert breaker_of(dialog.store, dialog.spans).failures == failures
    down = Down(failure)
    made = compacted(dialog, down, trigger=AUTOMATIC)
    assert down.asked == []
    assert made.refused.endswith("of large outputs: it failed too often")
    made = compacted(dialog, down)  # by hand it is asked whatever was before
    assert len(down.asked) == 1


def test_digests_that_come_close_the_breaker_again() -> None:
    """A failure before counts no more, and nothing is said to be refused; what came before a failure stays in the view."""
    dialog = dialog_with(FILLED, LOG)
    compacted(dialog, Down(), trigger=AUTOMATIC).reject()
    made = compacted(dialog, Reader(told_again), trigger=AUTOMATIC)
    assert made.attempt["summary"]["failures"] == 0
    assert "undigested" not in made.attempt["summary"]
    made.reject()

    def once(request: SummaryRequest) -> str:
        if len(asked.asked) > 1:
            raise ConnectionError(len(request.transcript))
        return "the first of them"

    asked = Reader(once)
    made = compacted(dialog, asked, trigger=AUTOMATIC)
    assert len(asked.asked) == 2
    assert str(made.composed.view).count("the first of them") == 1
    assert made.attempt["summary"]["failures"] == 1


def test_answers_that_are_no_digests_count_where_none_is_one() -> None:
    """Each output is asked for, for another may have one; where none had, that is a failure, with each reason once."""
    dialog = dialog_with(FILLED, LOG)
    empty = Reader(lambda _: "<think>\nhm")
    made = compacted(dialog, empty, trigger=AUTOMATIC)
    assert len(empty.asked) == 2
    assert made.refused == "nothing new was left out; of large outputs: it is empty"
    assert made.attempt["summary"]["failures"] == 1
    half = Reader(lambda request: "" if "heron" in request.transcript else "lines of numbers")
    made = compacted(dialog, half, trigger=AUTOMATIC)
    assert made.attempt["summary"]["undigested"] == ["it is empty"]
    assert made.attempt["summary"]["failures"] == 0
    assert Breaker(failures=1).after(failed=False, tokens=1) == Breaker()


def test_a_digest_with_broken_characters_is_cleaned_and_committed() -> None:
    """NUL and half an emoji in what a model says of an output: replaced, and the view reads back as it was."""
    dialog = dialog_with("small", LOG)
    made = compacted(dialog, Reader(lambda _: "<think>no</think>test_17 \ud83d and \0 fail"))
    assert "test_17 \ufffd and \ufffd fail" in str(
        [one.content for x in made.composed.view.exchanges for one in x.blocks()]
    )
    made.approve()
    assert dialog.view().exchanges == made.composed.view.exchanges
