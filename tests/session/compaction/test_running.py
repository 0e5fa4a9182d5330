"""The running summary: whatever becomes of later compactions, what a model summarised is in the view or on its way into the next summary."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver import Dialog, InfeasibleBudget, MemoryStore, Session
from palaver.context import SummaryAnswer, SummaryRequest
from palaver.context.record.running import line_for, running, standing
from palaver.context.record.telling import RUNNING
from palaver.errors import InvalidInput, ProviderDown
from palaver.log import Handle
from palaver.session import CompactionPreview
from palaver.session.compaction.preview import text_of
from palaver.view import View
from tests.session.compaction.test_compactions import talked

MODEL = "gpt-4o"
POLICIES = ["palaver", "fold", "default", "claude-code", "dynamiq", "aider", "openhands", "letta", "manus", "swe-agent"]


class Telling:
    """A summariser that says one thing under every heading, or fails; it keeps what it was asked."""

    def __init__(self, text: str = "", fails: str = "") -> None:
        """Say this, or fail so."""
        self.text = text
        self.fails = fails
        self.requests: list[SummaryRequest] = []

    async def __call__(self, request: SummaryRequest) -> SummaryAnswer:
        """Answer."""
        self.requests.append(request)
        if self.fails == "down":
            raise ProviderDown("no network")
        if self.fails == "refuses":
            return SummaryAnswer(text="I'm sorry, I can't help with that.")
        return SummaryAnswer(text="\n\n".join(f"## {heading}\n{self.text}" for heading in request.headings))


def talk_on(dialog: Dialog, turns: int, word: str = "more") -> None:
    """Go on for so many turns."""
    for number in range(turns):
        dialog.put_text(f"{word} {number} " + "word " * 120, role="assistant")
        dialog.put_text(f"Go on, {number}.")


def shown(view: View) -> str:
    """Give all that a view says."""
    return "\n".join(map(text_of, view.exchanges))


def compacted(
    dialog: Dialog, by: Telling | None, policy: str = "palaver", budget: int = 3_000
) -> CompactionPreview | None:
    """Compact, if there is anything to gain."""
    try:
        preview = dialog.compact(policy=policy, summarizer=by, budget=budget, model=MODEL)
        preview.approve()
    except (InfeasibleBudget, InvalidInput):
        return None
    return preview


FAILS = ["down", "refuses", "none"]


@pytest.mark.parametrize(
    ("policy", "fails"),
    [("palaver", fails) for fails in FAILS] + [(name, FAILS[n % 3]) for n, name in enumerate(POLICIES[1:])],
)
def test_one_failed_summary_costs_nothing_of_those_before(policy: str, fails: str) -> None:
    """A good summary, then a model that is down, one that refuses, or none at all: it stays in the view, and the next one is given it once."""
    dialog = talked(20)
    assert compacted(dialog, Telling("We took UNIQUE-DECISION-77."), policy)
    assert "UNIQUE-DECISION-77" in shown(dialog.view())
    talk_on(dialog, 20)
    before = dialog.view()
    assert compacted(dialog, None if fails == "none" else Telling(fails=fails), policy)
    said = "We took UNIQUE-DECISION-77."
    assert dialog.view().exchanges != before.exchanges
    assert shown(dialog.view()).count(said) == shown(before).count(said) > 0
    talk_on(dialog, 20, "further")
    last = Telling("All of it.")
    assert compacted(dialog, last, policy)
    assert said in last.requests[0].running
    assert said not in last.requests[0].transcript
    assert said not in shown(dialog.view())
    assert "All of it." in shown(dialog.view())
    assert not any(exchange.pinned for exchange in dialog.view().exchanges)


STEP = st.tuples(
    st.sampled_from(["good", "good", "down", "refuses", "none"]),
    st.sampled_from(POLICIES),
    st.integers(1_000, 5_000),
    st.integers(0, 12),
    st.integers(1, 60),
)


@settings(max_examples=10, deadline=None)
@given(st.lists(STEP, min_size=3, max_size=6))
def test_whatever_was_summarised_is_shown_or_given_to_what_replaces_it(
    steps: list[tuple[str, str, int, int, int]],
) -> None:
    """After any chain of compactions that succeed or fail: the newest good summary is in the view, or goes with it to the request that replaces it.

    Where it is not shown the view says so, and what it was made from can be recalled.
    """
    dialog, newest = talked(20), ""
    for number, (kind, policy, budget, turns, words) in enumerate(steps):
        talk_on(dialog, turns, f"step{number}")
        text = f"GOOD-{number} " + "it is so " * words
        by = None if kind == "none" else Telling(text, "" if kind == "good" else kind)
        made = compacted(dialog, by, policy, budget)
        if made is None:
            continue
        if by is not None and by.requests and newest:
            assert newest in by.requests[0].running
        if made.summary:
            newest = f"GOOD-{number} "
        view = dialog.view()
        assert newest in running(view)
        if newest not in shown(view):
            assert any(line in shown(view) for line in (RUNNING, "has no room here ("))


def test_a_summary_without_room_is_told_with_a_way_back() -> None:
    """A much smaller budget: its beginning stands in the record, or a line with a handle; its whole is given to the next summariser."""
    dialog = talked(120)
    long = " ".join(f"word{number}" for number in range(90))
    assert compacted(dialog, Telling(f"FIRST {long}"), "palaver", 8_000)
    talk_on(dialog, 4)
    size = dialog.figures(model=MODEL).tokens
    assert compacted(dialog, None, "palaver", 1_800)
    view = dialog.view()
    assert f"FIRST {long}" not in shown(view)
    assert "summary so far, by a model" in shown(view)
    assert f"FIRST {long}" in running(view)
    assert dialog.figures(model=MODEL).tokens <= 1_800 < size
    talk_on(dialog, 30)
    last = Telling("LAST")
    assert compacted(dialog, last, "palaver", 6_000)
    assert f"FIRST {long}" in last.requests[0].running
    assert "LAST" in shown(dialog.view())
    assert "FIRST" not in shown(dialog.view())


def test_what_nobody_shows_is_put_behind_the_view_for_a_model_that_reads_that() -> None:
    """The agent's own prefix with a summary that has no room in it: the words behind it bring the summary; where it stands there, they do not."""
    request = SummaryRequest(running="FIRST", view=talked(3).view())
    assert "<summary-so-far>\nFIRST" in request.behind
    dialog = talked(20)
    compacted(dialog, Telling("FIRST"))
    view = dialog.view()
    assert SummaryRequest(running=running(view), view=view).behind.count("FIRST") == 0


def test_r293_a_summary_goes_out_and_comes_back() -> None:
    """`running=` stands in the place of the one in the view, `summary=` is taken as a summariser's answer, and held to the same; never both."""
    dialog = talked(30)
    preview = dialog.compact(summarizer=Telling("We measured it."), budget=3_000)
    again = dialog.compact(summary=preview.summary, budget=3_000)
    assert (again.summary, again.refused) == (preview.summary, "")
    assert again.composed.view.exchanges == preview.composed.view.exchanges
    again.approve()
    assert "We measured it." in shown(dialog.view())
    assert "none of the sections" in talked(30).compact(summary="Sure!", budget=3_000).refused
    by = Telling("x")
    talked(30).compact(summarizer=by, running="kept by the caller", budget=3_000)
    assert by.requests[0].running == "kept by the caller"
    with pytest.raises(InvalidInput):
        dialog.compact(summary="x", summarizer=by)


@pytest.mark.parametrize("policy", ["palaver", "default", "claude-code", "letta"])
def test_with_a_summary_requests_still_go_on_from_each_other(policy: str) -> None:
    """It is held wherever a policy cuts, and counts: between few cuts each view begins with all of the one before, and none is over budget."""
    dialog = talked(40)
    assert compacted(dialog, Telling("We took UNIQUE-DECISION-77."), policy, 4_000)
    before: list[str] = []
    edits = 0
    for number in range(40):
        talk_on(dialog, 1, f"step{number}")
        made = dialog.compose(policy, budget=4_000, model=MODEL)
        texts = [text_of(exchange) for exchange in made.view.exchanges]
        assert "We took UNIQUE-DECISION-77." in "\n".join(texts)
        assert made.tokens_after <= 4_000
        assert not any(exchange.pinned for exchange in made.view.exchanges)
        edits += texts[: len(before)] != before
        before = texts
    assert 1 <= edits <= 5


def test_an_erasure_reaches_a_summary_that_had_no_room() -> None:
    """What was summarised of an erased entry is gone from the facts that carried it, too: no byte of the log says it."""
    store = MemoryStore()
    dialog = talked(100, store=store)
    long = " ".join(f"word{number}" for number in range(90))
    assert compacted(dialog, Telling(f"SECRET-XYZ {long}"), "palaver", 8_000)
    assert compacted(dialog, None, "palaver", 1_800)
    assert "SECRET-XYZ" in running(dialog.view())
    session = Session.open("s", store)
    assert session.erase(entries=[Handle(dialog.dialog_id, 3)]).complete
    assert not any(b"SECRET-XYZ" in body for _, body in store.bodies(dialog.dialog_id))
    assert "SECRET-XYZ" not in str(session.root.reload().view())


def test_the_line_for_a_summary_without_room_names_only_what_is_not_shown() -> None:
    """A summariser is told of what stays, too, and a summary names that as a source; to be recalled is what it alone stands for."""
    dialog = talked(30)
    talk_on(dialog, 3)
    assert compacted(dialog, Telling("What was done.")) is not None
    view = dialog.view()
    place = standing(view)
    assert place is not None
    (summary,) = view.exchanges[place].blocks()
    handles = [handle for x in view.exchanges if not x.derived for handle in (x.first,) if handle is not None]
    named = {Handle(run.dialog, seq) for run in summary.sources for seq in range(run.start, run.stop)}
    assert named.issuperset(each._replace(block=None) for each in handles)

    final = replace(view, exchanges=(*view.exchanges[:place], *view.exchanges[place + 1 :]))
    line = line_for(view, place, final, 0, len)
    assert line is not None
    newest = max(each.seq for each in handles)
    assert f"{dialog.dialog_id[:12]}:{newest}" not in line.text
    assert "recall" in line.text
    assert line.sources
