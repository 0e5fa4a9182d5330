"""Compacting by hand: previewed, approved or rejected, taken back; and a summariser that does anything but summarise."""

from collections.abc import Callable, Coroutine
from typing import Any

import anyio
import pytest

from palaver import CompactionPreview, Conflict, Dialog, InfeasibleBudget, MemoryStore, Session
from palaver.context import SummaryAnswer, SummaryRequest
from palaver.context.summary import HEADINGS, Breaker, distinctive, extract, flagged, invented
from palaver.context.triggers import Fired
from palaver.errors import InvalidInput, ProviderDown
from palaver.log import Compaction, Custom, Entry, decode_entry
from palaver.messages import AssistantMessage
from palaver.session.compaction.attempts import breaker_of
from palaver.view import fold

GOOD = "\n\n".join(f"## {heading}\nwhat was said of it" for heading in HEADINGS)


def talked(turns: int = 30, store: MemoryStore | None = None) -> Dialog:
    """Give a dialog with a past."""
    dialog = Session.create(store or MemoryStore(), "s", owner="a").root
    dialog.put_text("Make it fast. You must never push to main.")
    for turn in range(turns):
        dialog.put_text(f"answer {turn} " + "word " * 120, role="assistant")
        dialog.put_text(f"the heron {turn}" if turn == 4 else f"go {turn}")
    return dialog


def entries(dialog: Dialog) -> list[Entry]:
    """Give a dialog's own entries."""
    return [decode_entry(body) for _, body in dialog.store.bodies(dialog.dialog_id)]


def said(text: str, **more: Any) -> Callable[[SummaryRequest], Coroutine[Any, Any, SummaryAnswer]]:  # noqa: ANN401 - fields of an answer
    """Give a summariser that always answers this."""

    async def answer(request: SummaryRequest) -> SummaryAnswer:
        del request
        return SummaryAnswer(text=text, **more)

    return answer


async def down(request: SummaryRequest) -> SummaryAnswer:
    """Be down."""
    raise ProviderDown(f"no network for {len(request.headings)} headings")


async def broken(request: SummaryRequest) -> SummaryAnswer:
    """Raise what nobody foresees."""
    raise ZeroDivisionError(len(request.headings))


async def slow(request: SummaryRequest) -> SummaryAnswer:
    """Never answer."""
    await anyio.sleep_forever()
    return SummaryAnswer(text=request.transcript)


async def forgetful(request: SummaryRequest) -> Any:  # noqa: ANN401 - that is the mistake
    """Forget to return."""
    del request


MADE_UP = GOOD + "\n" + "\n".join(f"See src/made/up_{n}.py and https://made.example/{n}." for n in range(6))

BAD: dict[str, tuple[Any, str]] = {
    "nothing": (said(""), "empty"),
    "blank": (said("  \n"), "empty"),
    "only thinking": (said("<thinking>hm</thinking>"), "empty"),
    "refuses": (said("I'm sorry, I can't help with that."), "none of the sections"),
    "goes on with the chat": (said("Sure! I fixed the bug; anything else?"), "none of the sections"),
    "calls tools": (said("", calls=2), "called tools"),
    "cut off": (said(GOOD, complete=False), "cut off"),
    "100,000 tokens": (said(GOOD + " word" * 100_000), "free for it"),
    "a wall of one letter": (said(GOOD + "a" * 5_000_000), "characters"),
    "invents": (said(MADE_UP), "nowhere in the conversation"),
    "down": (down, "no network"),
    "raises": (broken, "ZeroDivisionError"),
    "slow": (slow, "within 0.01 seconds"),
    "gives None": (forgetful, "NoneType"),
    "gives a number": (said(3), "a SummaryAnswer whose text is of type int, not str"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("kind", BAD)
def test_whatever_a_summariser_does_the_plan_stands_and_says_why(kind: str) -> None:
    """Bad input of the issue, one by one: the preview is that of code alone, says what was wrong, and can be approved; nothing is lost."""
    summarizer, why = BAD[kind]
    dialog = talked()
    plain = dialog.compact(budget=3_000)
    before = len(entries(dialog))
    made = dialog.compact(budget=3_000, summarizer=summarizer, seconds=0.01 if kind == "slow" else 60)
    assert why in made.refused
    assert made.summary == ""
    assert len(entries(dialog)) == before
    assert made.tokens_after <= 3_000
    made.approve()
    assert dialog.view().exchanges != plain.before.exchanges
    assert "never push to main" in str(dialog.view())
    assert len(dialog.messages) == 61
    entry = entries(dialog)[-1]
    assert isinstance(entry, Compaction)
    assert why in entry.attempt["summary"]["refused"]
    assert entry.attempt["summary"]["failures"] == 1


def test_a_preview_writes_nothing_and_says_what_would_go() -> None:
    """Sizes, what would leave and why, what would stand for it, the summary; only approval writes, one entry with all of that."""
    dialog = talked()
    before = len(entries(dialog))
    made = dialog.compact(summarizer=said(GOOD, model="cheap"), budget=3_000)
    assert made.worthwhile
    assert made.tokens_after <= 3_000 < made.tokens_before
    assert made.summary == GOOD
    assert any(GOOD in text for text in made.inserted)
    assert made.refused == ""
    assert sum(gone.messages for gone in made.omitted) > 40
    assert made.to_dict()["attempt"]["trigger"] == "manual"
    assert len(entries(dialog)) == before
    view = made.composed.view
    made.approve()
    assert dialog.view().exchanges == view.exchanges
    entry = entries(dialog)[-1]
    assert isinstance(entry, Compaction)
    assert (entry.tokens_before, entry.tokens_after) == (made.tokens_before, made.tokens_after)
    assert entry.attempt["summary"]["model"] == "cheap"
    assert entry.attempt["summary"]["failures"] == 0


def test_rejecting_is_recorded_and_changes_no_view() -> None:
    """What was rejected and why stands in the log; the view is what it was."""
    dialog = talked()
    view = dialog.view()
    dialog.compact(focus="heron").reject("too early")
    entry = entries(dialog)[-1]
    assert isinstance(entry, Custom)
    assert entry.data["rejected"] == "too early"
    assert entry.data["focus"] == "heron"
    assert dialog.view().exchanges == view.exchanges


def test_it_is_decided_once() -> None:
    """What was approved is not rejected, nor the other way; where an approval failed, the rejection is still to be recorded."""
    dialog = talked()
    made, other = dialog.compact(budget=3_000), dialog.compact(budget=2_000)
    made.approve()
    with pytest.raises(InvalidInput, match=r"approved already.*undo"):
        made.reject("too late")
    with pytest.raises(Conflict, match="compaction was committed meanwhile"):
        other.approve()
    before = len(entries(dialog))
    other.reject("overtaken")
    for again in (other.approve, other.reject):
        with pytest.raises(InvalidInput, match="rejected already"):
            again()
    assert len(entries(dialog)) == before + 1


@pytest.mark.parametrize("name", ["focus", "running", "summary"])
def test_what_is_no_text_is_refused_by_its_name(name: str) -> None:
    """Before anything is planned or asked."""
    wrong: Any = {name: 3}
    with pytest.raises(TypeError, match=f"{name} is a str, not a int"):
        talked(3).compact(**wrong)


def test_undo_chooses_the_view_before() -> None:
    """Approve and undo, twice: everything is back, and the log has only grown."""
    dialog = talked()
    views = [dialog.view().exchanges]
    for budget in (3_000, 1_200):
        dialog.compact(budget=budget).approve()
        views.append(dialog.view().exchanges)
    dialog.undo()
    assert dialog.view().exchanges == views[1]
    dialog.undo()
    assert dialog.view().exchanges == views[0]
    assert len(dialog.messages) == 61


def test_what_names_the_focus_stays_and_the_summariser_is_told() -> None:
    """R305: at any time, below every threshold; the focus is in the request, its exchange in the view, and no pin in the log."""
    dialog = talked()
    asked: list[SummaryRequest] = []

    async def listening(request: SummaryRequest) -> SummaryAnswer:
        asked.append(request)
        return SummaryAnswer(text=GOOD)

    made = dialog.compact(focus="the heron", summarizer=listening)
    assert made.kept == 1
    assert "Dwell on this: the heron" in asked[0].prompt()
    assert "the heron 4" in str(made.composed.view.exchanges)
    made.approve()
    assert "the heron 4" in str(dialog.view().exchanges)
    assert dialog.pins == ()
    assert fold(dialog.store, dialog.dialog_id).exchanges == dialog.view().exchanges


def test_a_focus_that_names_everything_leaves_room_for_something() -> None:
    """A word that is everywhere holds the newest quarter, not all of it: there is still something to gain."""
    dialog = talked()
    made = dialog.compact(focus="answer word")
    assert made.worthwhile
    assert "never push to main" in str(made.composed.view.exchanges)
    assert 0 < made.kept <= 16


def test_nothing_to_gain_is_told_and_not_written() -> None:
    """One short exchange: not worthwhile, or infeasible; approving it is refused and the log is as it was."""
    dialog = Dialog(owner="a")
    dialog.put_text("hello")
    with pytest.raises((InvalidInput, InfeasibleBudget)):
        dialog.compact().approve()
    with pytest.raises(InfeasibleBudget) as caught:
        dialog.compact(budget=1)
    assert caught.value.breakdown
    assert len(entries(dialog)) == 1


def test_where_nothing_would_change_the_preview_names_the_policy_that_was_asked() -> None:
    """Behind an earlier compaction by another policy, with room to spare: not that one, and not `undo`."""
    dialog = talked()
    dialog.compact(policy="letta", budget=3_000).approve()
    assert dialog.compact(policy="lllm", budget=90_000).policy == "lllm"
    dialog.undo()
    preview = dialog.compact(policy="default", budget=90_000)
    assert (preview.policy, preview.worthwhile, preview.to_dict()["policy"]) == ("default", False, "default")


def test_an_empty_dialog_is_nothing_to_gain() -> None:
    """No message at all."""
    made = Dialog(owner="a").compact()
    assert not made.worthwhile
    with pytest.raises(InvalidInput):
        made.approve()


def test_cancelling_leaves_nothing_behind() -> None:
    """A caller that gives up while the summariser works: no entry, no failure counted, and the dialog goes on."""
    dialog = talked()
    before = len(entries(dialog))

    async def give_up() -> None:
        with anyio.move_on_after(0.01) as scope:
            await dialog.acompact(summarizer=slow, seconds=60)
        assert scope.cancelled_caught

    anyio.run(give_up)
    assert len(entries(dialog)) == before
    dialog.put_text("still here")


def test_t16_what_is_said_while_a_summary_is_made_is_not_lost() -> None:
    """T16: words appended meanwhile stand behind the compaction; a compaction made meanwhile is a conflict, and nothing is lost."""
    store = MemoryStore()
    dialog = talked(store=store)
    other = Session.open("s", store).root

    async def meanwhile(request: SummaryRequest) -> SummaryAnswer:
        other.reload().put_text(f"said meanwhile, {len(request.headings)}")
        return SummaryAnswer(text=GOOD)

    dialog.compact(summarizer=meanwhile, budget=3_000).approve()
    assert "said meanwhile" in str(dialog.reload().view().exchanges[-1])
    late = dialog.compact(budget=2_000)
    other.reload().compact(budget=1_500).approve()
    with pytest.raises(Conflict):
        late.approve()


def test_the_breaker_is_read_off_the_log() -> None:
    """Three failures in a row, in whatever process, and nothing is asked any more; a person who asks himself is still served."""
    store = MemoryStore()
    dialog = talked(store=store)
    calls = 0

    async def failing(request: SummaryRequest) -> SummaryAnswer:
        nonlocal calls
        calls += 1
        return await down(request)

    automatic = Fired("tokens", "too many")
    for _ in range(5):
        again = Session.open("s", store).root
        again.compact(summarizer=failing, trigger=automatic).reject()
    assert calls == 3
    assert breaker_of(store, dialog.reload().spans).failures == 3
    assert dialog.compact(summarizer=failing, trigger=automatic).refused == "it failed too often"
    assert "no network" in dialog.compact(summarizer=failing).refused
    dialog.compact(summarizer=said(GOOD)).approve()
    assert breaker_of(store, dialog.spans) == Breaker()
    assert breaker_of(store, dialog.fork().spans) == Breaker()


def test_a_few_made_up_values_are_flagged_and_what_was_said_is_not() -> None:
    """A path that nobody said is told as such in the view; one that stands in a tool's output, however far cut, is not."""
    dialog = talked()
    made = dialog.compact(summarizer=said(GOOD + "\nThe file is src/made/up.py."), budget=3_000)
    assert made.refused == ""
    assert made.summarized is not None
    assert made.summarized.invented == ("src/made/up.py",)
    assert any("perhaps made up: src/made/up.py" in text for text in made.inserted)
    assert invented("see src/a/b.py and /tmp/b.py", ["edited b.py"]) == ()
    assert invented("at https://x.example/y", ["https://x.example/z"]) == ("https://x.example/y",)
    assert distinctive("12 tests, 3.5 s, #4711, abc12345, a/b.py") == ("a/b.py", "#4711", "abc12345")
    assert flagged(()) == ""


def test_words_with_slashes_between_them_are_no_paths() -> None:
    """Only what begins like a path, or has a part that looks like a file's name, is one; prose is never refused for its slashes."""
    prose = "It handles client/server traffic, read/write locks, success/failure paths and/or retries over TCP/IP (HTTP/1.1, 24/7, I/O)."
    assert distinctive(prose) == ()
    sections = "\n\n".join(f"## {heading}\n{prose}" for heading in HEADINGS)
    assert talked().compact(summarizer=said(sections), budget=3_000).refused == ""
    paths = ("/usr/lib", "./a/b", "~/notes/today", "src/a.c", "my_app/run", ".github/workflows", "docs/index.html")
    assert distinctive(" ".join(paths)) == paths


def test_a_preview_counts_what_leaves_now() -> None:
    """What said nothing was not in the view before: where it lies among what leaves, it is neither counted nor named again."""
    dialog = Dialog(owner="a")
    dialog.put_text("Go on.")
    for number in range(30):
        dialog.append(AssistantMessage(content=""))
        dialog.put_text(f"answer {number} " + "word " * 80, role="assistant")
        dialog.put_text(f"Go on, {number}.")
    made = dialog.compact(policy="openhands", budget=1_500)
    shown = [sum(x.messages for x in view.exchanges) for view in (dialog.view(), made.composed.view)]
    assert sum(gone.messages for gone in made.omitted) == shown[0] - shown[1] > 0
    assert {gone.reason.value for gone in made.omitted} == {"folded"}


def test_figures_are_those_of_the_view_and_the_clock_given() -> None:
    """Messages, tokens, window and the time since the model's newest words; behind a compaction its size, too."""
    dialog = talked(5)
    figures = dialog.figures(model="gpt-4o", at=entries(dialog)[-2].at + 100)
    assert figures.events == 11
    assert figures.window == 128_000
    assert figures.idle == pytest.approx(100)
    assert figures.compacted == 0
    assert Dialog(owner="a").figures(at=5.0).idle == 0
    made = dialog.compact(budget=600)
    made.approve()
    assert dialog.figures().compacted == made.tokens_after


@pytest.mark.parametrize("policy", ["claude-code", "letta", "opencode", "openhands", "lllm"])
def test_every_kind_of_policy_can_be_compacted_with(policy: str) -> None:
    """By code and with a summary under the policy's own headings; the preview is what is committed."""
    dialog = talked()
    asked: list[SummaryRequest] = []

    async def noting(request: SummaryRequest) -> SummaryAnswer:
        asked.append(request)
        return await extract(request)

    made: CompactionPreview = dialog.compact(policy=policy, budget=3_000, summarizer=noting)
    if asked:
        assert made.refused == "" or made.composed.fallback
    made.approve()
    assert dialog.view().exchanges == made.composed.view.exchanges
