"""D9 to D14, D18 and D25: the view is made smaller, and nothing of the log, of what waits or of what was promised goes with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from palaver import (
    Agent,
    Dialog,
    Handle,
    InfeasibleBudget,
    Plan,
    Prompt,
    ProviderInvoker,
    ScriptedProvider,
    Session,
    SystemMessage,
    ThinkingContent,
)
from palaver.context import compose, policy
from palaver.context.meter import Meter
from palaver.context.summary import HEADINGS, Summarized, SummaryAnswer, SummaryRequest, summarize
from palaver.log import Compaction, decode_entry
from palaver.messages import thaw
from palaver.session.compaction import CompactionPreview
from palaver.testing.kills import dying_store
from palaver.tokens import Budget, counter
from palaver.view import Drop, Insert, apply
from tests.demand.ground import (
    MODELS,
    PAGE,
    Place,
    answers,
    asks,
    bodies,
    lines,
    reopened,
    says,
    shown,
    unchanged,
    valid,
)

MODEL = "gpt-5.2"
GOOD = "\n\n".join(f"## {heading}\nsomething of it" for heading in HEADINGS)


def worked(dialog: Dialog, turns: int) -> Dialog:
    """Work for so many turns, each with a call."""
    for number in range(turns):
        page = PAGE.replace("some", f"call {number}")
        dialog.append([asks(f"ask {number}"), says("I look.", f"w{number}"), answers(f"w{number}", page)])
        dialog.append(says(f"did {number}"))
    return dialog


def summarising(dialog: Dialog, ask: Callable[[SummaryRequest], str], room: int = 6_000, **more: Any) -> Summarized:  # noqa: ANN401
    """Compose a dialog's view and have a model summarise what leaves it; nothing is written."""
    view, meter = dialog.view(), Meter(counter(MODEL))
    made = policy("cat", MODEL)
    assert made is not None
    composed = compose(view, made, Budget.of_input(room * 3 // 4), meter)

    async def summarise(request: SummaryRequest) -> SummaryAnswer:
        return SummaryAnswer(text=ask(request))

    async def whole() -> Summarized:
        return await summarize(view, composed, summarise, Budget.of_input(room), meter, **more)

    return anyio.run(whole)


def size(dialog: Dialog) -> int:
    """Return the tokens of a dialog's view."""
    return Meter(counter(MODEL)).view(dialog.view()).total


def good(request: SummaryRequest) -> str:
    """Return a summary that has every section that is asked for."""
    return "\n\n".join(f"## {heading}\nsomething of it" for heading in request.headings)


def proposed(
    dialog: Dialog,
    ask: Callable[[SummaryRequest], str],
    focus: str,
    budget: int = 6_000,
    window: int = 100_000,
) -> CompactionPreview:
    """Have a dialog propose a compaction that dwells on something, with a summary; nothing is written."""

    class Summarizing:
        def __init__(self) -> None:
            self.window = window

        async def __call__(self, request: SummaryRequest) -> SummaryAnswer:
            return SummaryAnswer(text=ask(request))

    async def whole() -> CompactionPreview:
        return await dialog.compaction.apreview(Summarizing(), "cat", budget, model=MODEL, focus=focus)

    made = anyio.run(whole)
    assert not made.summary_failed
    return made


# --- D9 -----------------------------------------------------------------------------------------------------------------------


def test_a_message_while_compaction_runs(place: Place) -> None:
    """D9, T16: a slow summariser at head h; meanwhile `U2, A[c9], R9` are appended: all durable at once, the commit covers up to h and no more."""
    dialog = worked(Dialog(owner="user", store=place.open()), 8)
    head = dialog.view().at
    late = [asks("U2: also this"), says("", "c9"), answers("c9", "R9: done")]

    def slow(request: SummaryRequest) -> str:
        writer = reopened(place, dialog)
        for message in late:
            writer.append(message)
        assert shown(reopened(place, dialog))[-3:] == ["U2: also this", "call c9", "result c9: R9: done"]
        return good(request)

    preview = proposed(dialog, slow, "ask 3")
    assert preview.attempt["focus"] == "ask 3"
    meanwhile = bodies(reopened(place, dialog))
    place_of_it = preview.approve()
    found = reopened(place, dialog)
    entry = found.recall(place_of_it)
    assert isinstance(entry, Compaction)
    assert entry.base == head
    assert bodies(found)[:-1] == meanwhile
    assert shown(found)[-3:] == ["U2: also this", "call c9", "result c9: R9: done"]
    assert shown(found).count("U2: also this") == 1
    assert any("something of it" in line for line in shown(found))
    valid(found)
    found.append(says("both done"))
    valid(found)


# --- D10 ----------------------------------------------------------------------------------------------------------------------


def covering(dialog: Dialog, first: int, last: int, text: str) -> None:
    """Commit that a summary stands for the exchanges between two messages, counted from 1."""
    held = {dialog.messages.handle(number - 1) for number in range(first, last + 1)}
    view = dialog.view()
    gone = [index for index, one in enumerate(view.exchanges) if one.first in held]
    gone += [index for index, one in enumerate(view.exchanges) if one.derived]
    plan = Plan(
        policy="mine",
        drops=tuple(Drop(index=index) for index in sorted(gone)),
        inserts=(Insert(before=min(gone), text=text, label="summary"),),
    )
    dialog.compaction.commit(apply(view, plan), model=MODEL)


def sent(dialog: Dialog, at: int | None = None) -> dict[str, bytes]:
    """Return the requests of a dialog, to the byte."""
    return {name: dialog.request(name, model, at=at, then="Go on.", cache=False).data for name, model in MODELS.items()}


def test_every_node_shows_what_it_showed_as_head(place: Place) -> None:
    """D10: 20 messages, C1(2..10), more, C2(2..18): the projection of each node, looked at or branched from, equals the recorded one."""
    dialog = Dialog(owner="user", store=place.open())
    recorded: dict[int, dict[str, bytes]] = {}

    def take(dialog: Dialog) -> None:
        recorded[dialog.view().at] = sent(dialog)

    def say(count: int) -> None:
        for _ in range(count):
            number = len(dialog.messages) + 1
            words = f"message {number}: {PAGE[: 60 * number]}"
            dialog.append(asks(words) if number % 2 else says(words))
            take(dialog)

    say(20)
    covering(dialog, 2, 10, "C1: two to ten")
    take(dialog)
    say(4)
    covering(dialog, 2, 18, "C2: two to eighteen")
    take(dialog)
    say(2)
    found = reopened(place, dialog)
    assert "C2: two to eighteen" in shown(found)
    assert not any(line.startswith("C1") for line in shown(found))
    for at, requests in recorded.items():
        assert sent(found, at) == requests, f"looked at from entry {at}"
    for at in (7, 10, 20, 22, 24, 25):
        session = Session.open(found.store, found.session_id)
        branch = session.rewind(Handle(found.dialog_id, at), found).apply()
        assert sent(branch) == recorded[at], f"branched from entry {at}"
        valid(branch)
        branch.append(asks("another way"))
        valid(reopened(place, branch))
    assert sent(reopened(place, dialog)) == recorded[max(recorded)]


# --- D11 ----------------------------------------------------------------------------------------------------------------------


def test_a_commit_is_whole_or_not_there(place: Place) -> None:
    """D11: a process that dies in a commit leaves the view before or the view after: one entry holds exclusions and summary."""

    class Died(BaseException):
        pass

    def die() -> None:
        raise Died

    dialog = worked(Dialog(owner="user", store=place.open()), 5)
    before = shown(dialog)
    composed = dialog.compaction.compose("fold", 1_500, model=MODEL)
    count = len(bodies(dialog))
    dying = Session.open(dying_store(place.open(), 1, die), dialog.session_id).dialog(dialog.dialog_id)
    with pytest.raises(Died):
        dying.compaction.commit(composed)
    found = reopened(place, dialog)
    assert len(bodies(found)) - count in {0, 1}
    assert shown(found) in (before, lines(composed.view))
    valid(found)


# --- D12 ----------------------------------------------------------------------------------------------------------------------

FLOOR = "rule: never guess. " * 20_000
"""About 100,000 tokens."""


@pytest.fixture(scope="module")
def heavy() -> Dialog:
    """Return a dialog whose instructions alone are 100,000 tokens, in a window of 128,000 of which 75 % are to be used."""
    dialog = Dialog(owner="user")
    dialog.append(SystemMessage.text(FLOOR))
    return worked(dialog, 10)


def test_floor_above_the_threshold_is_an_error_not_a_loop(heavy: Dialog) -> None:
    """D12: 100k of 128k is fixed and the threshold is 75 %: a typed error with a breakdown, no model call, and nothing is committed."""
    provider = ScriptedProvider(["never"])
    words = {"type": "palaver", "context_usage_ratio": 0.75}
    system = Prompt(path="demand/heavy", prompt="You work.")
    agent = Agent("agent", system, "gpt-4o", ProviderInvoker(provider), context_manager=words)
    agent.adopt("main", heavy, instructions="dialog")
    agent.receive("go on")
    with pytest.raises(InfeasibleBudget) as caught:
        agent.respond()
    assert provider.requests == []
    assert caught.value.budget == 96_000
    assert caught.value.breakdown["instructions"] > 96_000
    assert sum(caught.value.breakdown.values()) == caught.value.needed
    assert not any(isinstance(decode_entry(body), Compaction) for _, body in bodies(heavy))
    valid(heavy, policy="palaver", budget=200_000)


# --- D13 ----------------------------------------------------------------------------------------------------------------------


def loop(dialog: Dialog) -> Dialog:
    """`sys, U, A[c],R, A[c],R ...` sixty times, with signed thinking, as one turn."""
    dialog.append([SystemMessage.text("rules"), asks("the one ask")])
    for number in range(60):
        thought = ThinkingContent(content="hm", signature="c2ln", provider="anthropic")
        dialog.append([says("", f"c{number}", before=(thought,)), answers(f"c{number}", PAGE[:1_500])])
    return dialog


def test_the_summariser_is_never_given_nothing(place: Place) -> None:
    """D13: nothing to leave out: it is not asked. Something to leave out: what it is given holds it."""
    small = worked(Dialog(owner="user", store=place.open()), 1)
    with unchanged(small):
        idle = summarising(small, lambda _: "Please provide events.")
    assert (idle.requests, idle.summary) == (0, "")
    given: list[str] = []

    def ask(request: SummaryRequest) -> str:
        given.append(request.transcript)
        return GOOD

    dialog = loop(Dialog(owner="user", store=place.open()))
    done = summarising(dialog, ask)
    assert given
    assert all("run c" in each for each in given)
    dialog.compaction.commit(done.composed)
    again = len(given)
    assert summarising(reopened(place, dialog), ask).requests == 0
    assert len(given) == again
    assert not any("Please provide" in line for line in shown(dialog))
    valid(dialog)


# --- D14 ----------------------------------------------------------------------------------------------------------------------


def test_compacted_view_survives_a_restart(place: Place) -> None:
    """D14, T17: what was projected before the exit is projected after resuming, with the same bytes, and not the whole history again."""
    dialog = worked(Dialog(owner="user", store=place.open()), 20)
    proposed(dialog, good, "ask 7").approve()
    before = sent(dialog)
    place.close()
    session = Session.open(place.open(), dialog.session_id)
    resumed = session.resume()
    assert sent(resumed) == before
    assert size(resumed) <= 6_000
    valid(resumed)
    for number in range(20):
        assert resumed.recall(resumed.messages.handle(number)) is not None


# --- D18 ----------------------------------------------------------------------------------------------------------------------

CLAUDE = MODELS["anthropic"]


def thinking(number: int) -> ThinkingContent:
    """Make a signed thought."""
    return ThinkingContent(content=f"thought {number}", signature=f"c2ln{number:04}", provider="anthropic")


def test_signed_reasoning_of_a_kept_tail_is_whole(place: Place) -> None:
    """D18: a tail of signed turns behind a compaction, the last with interleaved thinking: whole or wholly stripped, the same every time."""
    dialog = worked(Dialog(owner="user", store=place.open()), 8)
    dialog.append(asks("now carefully"))
    for number in range(3):
        said = says("Looking.", f"s{number}", before=(thinking(number),), model=CLAUDE)
        dialog.append([said, answers(f"s{number}", "seen")])
    composed = dialog.compaction.compose("fold", 2_500, model=CLAUDE)
    dialog.compaction.commit(composed)
    for number in (3, 4):
        said = says("", f"s{number}", before=(thinking(number),), model=CLAUDE)
        dialog.append([said, answers(f"s{number}", "seen")])
    kept: set[tuple[str, ...]] = set()
    stripped: set[tuple[str, ...]] = set()
    for round_ in range(3):
        request = reopened(place, dialog).request("anthropic", CLAUDE)
        blocks = [block for message in request.body["messages"] for block in message["content"]]
        kept.add(tuple(each["signature"] for each in blocks if each["type"] == "thinking"))
        stripped.add(tuple(str(each.handle) for each in request.report if each.what == "thinking"))
        assert [thaw(each) for each in blocks if each["type"] == "thinking"] == [
            {"type": "thinking", "thinking": f"thought {number}", "signature": f"c2ln{number:04}"}
            for number in range(5)
        ]
        valid(dialog)
        dialog.append([says(f"round {round_}"), asks("and?")])
    assert len(kept) == 1
    assert stripped == {()}, "this model does not check what precedes its thinking"
    newest = reopened(place, dialog).request("anthropic", "claude-fable-5-2")
    assert not [
        each for message in newest.body["messages"] for each in message["content"] if each["type"] == "thinking"
    ]
