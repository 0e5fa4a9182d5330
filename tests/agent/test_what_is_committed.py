"""What an agent's turn commits of smaller views: planned anew when somebody was faster, recorded when it cannot be, and never a reason to pay twice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from palaver import AutoCompact, Prompt, Session
from palaver.agent import Agent, InvokeResult, ProviderInvoker
from palaver.context import Ledger, Policy, SummaryAnswer, SummaryRequest
from palaver.context.record.carried import sources_of
from palaver.context.summary import HEADINGS, Breaker
from palaver.context.triggers import Tokens
from palaver.log import ATTEMPT, Compaction, Custom, Handle
from palaver.messages import Usage
from palaver.models import ScriptedProvider
from palaver.session import Dialog
from palaver.session.compaction.attempts import breaker_of, failed, summaries_of
from palaver.session.erasure import erase
from palaver.tokens import Budget, Rates
from palaver.view import Drop, Insert, Plan, View
from tests.agent.helper import MODEL, entries, scripted


def pin(number: int) -> str:
    """Give what the user says once."""
    return f"ZEBRA-{number:03}"


class Meanwhile:
    """A summariser during whose work something happens, and that keeps what it was asked."""

    def __init__(self, text: str = f"He said {pin(2)} and {pin(3)}.") -> None:
        """Take what it says under each heading."""
        self.text = text
        self.happens: Callable[[int], object] = lambda _: None
        self.asked: list[str] = []

    async def __call__(self, request: SummaryRequest) -> SummaryAnswer:
        """Answer."""
        self.asked.append(request.prompt())
        self.happens(len(self.asked))
        text = "\n\n".join(f"## {heading}\n{self.text}" for heading in HEADINGS)
        usage = Usage({"input_tokens": 100, "output_tokens": 10})
        return SummaryAnswer(text=text, model="cheap", usage=usage)


def talking(words: int = 100, **options: Any) -> tuple[Agent, Any]:  # noqa: ANN401 - what an agent takes
    """Give an agent with a long conversation behind it, of answers of so many words, and its provider."""
    agent, provider = scripted(["ok"] * 12, **options)
    dialog = agent.current_dialog
    dialog.put_text("Make it fast.")
    for number in range(16):
        dialog.put_text(f"answer {number} " + "word " * words, role="assistant")
        dialog.put_text(f"my number is {pin(number)}" if number in {1, 2, 3} else "go on")
    return agent, provider


def compacting(summariser: Meanwhile) -> AutoCompact:
    """Give a way of compacting beyond a limit."""
    return AutoCompact(triggers=(Tokens(limit=1_500),), policy="palaver", summarizer=summariser)


def turn(agent: Agent) -> None:
    """Have the agent answer."""
    agent.receive("And now?")
    agent.respond()


def place(agent: Agent, number: int) -> Handle:
    """Give the place where the user said a number."""
    dialog = agent.current_dialog
    return next(dialog.messages.handle(n) for n, one in enumerate(dialog.messages) if pin(number) in str(one.content))


def elsewhere(agent: Agent) -> Dialog:
    """Give the dialog as another process has it."""
    dialog = agent.current_dialog
    return Session.open(dialog.session_id, dialog.store).dialog(dialog.dialog_id)


def made(agent: Agent) -> list[Compaction]:
    """Give the compactions of the dialog."""
    return [one for one in entries(agent.current_dialog) if isinstance(one, Compaction)]


def attempts(agent: Agent) -> list[Mapping[str, Any]]:
    """Give what is recorded of attempts that came to nothing."""
    return [one.data for one in entries(agent.current_dialog) if isinstance(one, Custom) and one.custom_type == ATTEMPT]


def paid(agent: Agent) -> int:
    """Give how many answers of a summariser are in the books."""
    return sum(len(summaries_of(one)) for one in entries(agent.current_dialog))


def test_an_erasure_while_a_summariser_works_leads_to_another_plan_without_the_words() -> None:
    """B0 (b): the summary of erased words is not committed, the agent plans anew, is told nothing of them, and both answers are in the books."""
    summariser = Meanwhile(f"He said {pin(1)}, {pin(2)} and {pin(3)}.")
    agent, provider = talking(compact=compacting(summariser))
    store = agent.current_dialog.store

    def happens(number: int) -> None:
        if number == 1:
            erase(store, entries=[place(agent, 1)])
            summariser.text = f"He said {pin(2)} and {pin(3)}."

    summariser.happens = happens
    turn(agent)
    assert [pin(1) in prompt for prompt in summariser.asked] == [True, False]
    (attempt,) = attempts(agent)
    assert attempt["rejected"] == "something that the dialog holds was erased meanwhile"
    assert (attempt["summary"]["requests"], attempt["summary"]["failures"]) == (1, 0)
    assert paid(agent) == 2
    (compaction,) = made(agent)
    assert compaction.attempt["summary"]["refused"] == ""
    assert pin(1) not in str(provider.requests[-1].body)
    assert not any(pin(1).encode() in body for _, body in store.bodies(agent.current_dialog.dialog_id))


def test_a_summary_that_is_always_overtaken_gives_way_to_the_plan_of_code() -> None:
    """Two summaries are paid for at most before one call; then code plans alone, which takes no time in which something could be erased."""
    summariser = Meanwhile()
    agent, _ = talking(compact=compacting(summariser))
    summariser.happens = lambda number: erase(agent.current_dialog.store, entries=[place(agent, number)])
    turn(agent)
    assert len(summariser.asked) == 2
    (compaction,) = made(agent)
    assert "summary" not in compaction.attempt
    assert (len(attempts(agent)), paid(agent)) == (2, 2)


def test_a_summary_that_cannot_be_committed_has_failed_and_the_plan_of_code_is_committed() -> None:
    """B3: what leaves is pinned while the summariser works: recorded with its reason, a failure more, and a smaller view all the same."""
    summariser = Meanwhile()
    agent, _ = talking(compact=compacting(summariser))
    summariser.happens = lambda _: elsewhere(agent).pin(place(agent, 1))
    turn(agent)
    (attempt,) = attempts(agent)
    assert "which every view must hold" in attempt["rejected"]
    assert attempt["summary"]["refused"] == attempt["rejected"]
    assert (len(summariser.asked), paid(agent)) == (1, 1)
    assert breaker_of(agent.current_dialog.store, agent.current_dialog.spans).failures == 1
    (compaction,) = made(agent)
    assert "summary" not in compaction.attempt
    assert pin(1) in str(agent.current_dialog.request("openai-chat", MODEL).body)


class Trims(Policy):
    """Leaves little out: less than a summary of it takes."""

    name = "trims"

    def plan(self, view: View, ledger: Ledger, budget: Budget, prices: Rates | None) -> Plan:  # noqa: ARG002 - as every policy's
        """Leave the oldest answers out, and what was said between."""
        record = Insert(before=0, text="Of before.", sources=sources_of(view.exchanges[3:5]))
        return Plan(policy=self.name, drops=(Drop(index=3), Drop(index=4)), inserts=(record,))


def test_a_summary_with_which_nothing_is_gained_is_paid_for_once() -> None:
    """Where the view is too large with a summary to be worth a commit, that is recorded and counted, and the plan of code is committed in its place."""
    summariser = Meanwhile("It is so. " * 3 + f"He said {pin(1)} and {pin(2)}.")
    how = AutoCompact(triggers=(Tokens(limit=1_000),), policy=Trims(MODEL), budget=20_000, summarizer=summariser)
    agent, _ = talking(words=480, compact=how)
    turn(agent)
    (attempt,) = attempts(agent)
    assert (attempt["rejected"], attempt["summary"]["failures"]) == ("it would not be smaller", 1)
    (compaction,) = made(agent)
    assert "summary" not in compaction.attempt
    assert (len(summariser.asked), paid(agent)) == (1, 1)
    for _ in range(3):
        turn(agent)
    assert len(summariser.asked) <= 3


def test_a_budget_that_nothing_fits_is_told_once_in_a_turn() -> None:
    """A budget below what every view must hold: the turn goes on with the whole, and the log says each time why nothing was made smaller."""
    how = AutoCompact(triggers=(Tokens(limit=1_000),), budget=5)
    agent, provider = talking(compact=how)
    for turns in (1, 2):
        turn(agent)
        assert [attempt["rejected"][:24] for attempt in attempts(agent)] == ["there is no view so smal"] * turns
    assert made(agent) == []
    assert len(provider.requests) == 2


def test_a_failure_is_counted_once() -> None:
    """What a summariser was refused for is counted already; what was good and could not be committed is counted then; without one nothing is."""
    good = {"trigger": "t", "summary": {"requests": 1, "refused": "", "failures": 0, "at": 0}}
    assert failed(good, "why", Breaker(2, 10), 99)["summary"] == {
        "requests": 1,
        "refused": "why",
        "failures": 3,
        "at": 99,
    }
    refused = {"trigger": "t", "summary": {"requests": 1, "refused": "it is empty", "failures": 3, "at": 99}}
    assert failed(refused, "why", Breaker(2, 10), 99) == refused
    assert failed({"trigger": "t"}, "why", Breaker(), 99) == {"trigger": "t"}


class Decides(Policy):
    """A schedule of its own: what it leaves out holds from then on; something happens while it plans."""

    name = "decides"

    def __init__(self, happens: Callable[[], object]) -> None:
        """Take what happens."""
        super().__init__(MODEL)
        self.happens = happens
        self.planned = 0

    def plan(self, view: View, ledger: Ledger, budget: Budget, prices: Rates | None) -> Plan:  # noqa: ARG002 - as every policy's
        """Leave the older half out."""
        self.planned += 1
        gone = tuple(n for n in range(len(view.exchanges) // 2) if n not in view.protected())
        left = [view.exchanges[n] for n in gone]
        text = " ".join(str(getattr(block.content, "content", ""))[:40] for each in left for block in each.blocks())
        self.happens()
        record = Insert(before=0, text=f"Of before: {text}", sources=sources_of(left))
        return Plan(policy=self.name, drops=tuple(map(dropped, gone)), inserts=(record,), details={"edits": {}})


def dropped(index: int) -> Drop:
    """Leave an exchange out."""
    return Drop(index=index)


def test_what_a_schedule_made_of_words_that_are_erased_meanwhile_is_neither_committed_nor_sent() -> None:
    """Before the call it is planned anew: the request that goes out has none of the words, and what is committed was made without them."""
    policy = Decides(lambda: policy.planned == 1 and erase(agent.current_dialog.store, entries=[place(agent, 1)]))
    agent, provider = talking(context_manager=policy)
    turn(agent)
    assert policy.planned == 2
    assert pin(1) not in str(provider.requests[-1].body)
    assert pin(2) in str(provider.requests[-1].body)
    assert len(made(agent)) == 1


def test_what_a_schedule_decided_and_cannot_commit_is_recorded_once_and_sent() -> None:
    """What it leaves out is pinned while it plans: the view is sent as it was decided, and the log says why it is decided anew each time."""
    policy = Decides(lambda: elsewhere(agent).pin(place(agent, 1)))
    agent, provider = talking(context_manager=policy)
    turn(agent)
    (attempt,) = attempts(agent)
    assert attempt["trigger"] == "request"
    assert "could not be committed: The view leaves out" in attempt["rejected"]
    assert "Of before" in str(provider.requests[-1].body)
    assert made(agent) == []


class Late(ProviderInvoker):
    """An invoker during whose compiling something happens."""

    def __init__(self, provider: ScriptedProvider, happens: Callable[[int], object]) -> None:
        """Take what happens, by how often it was asked."""
        super().__init__(provider)
        self.happens = happens
        self.asked = 0

    async def invoke(self, dialog: Dialog, model: str, **words: Any) -> InvokeResult:  # noqa: ANN401 - as every invoker's
        """Ask."""
        self.asked += 1
        self.happens(self.asked)
        return await super().invoke(dialog, model, **words)


def test_a_request_that_holds_what_was_erased_since_is_neither_recorded_nor_sent() -> None:
    """Between the look at the log and the call: the record of the call would write the words down again, so it is made anew, and then sent."""
    provider = ScriptedProvider(["ok"])
    invoker = Late(provider, lambda number: number == 1 and erase(dialog.store, entries=[place(agent, 1)]))
    agent = Agent("tester", Prompt(path="t/system", prompt="You are tested."), MODEL, invoker).open("main")
    dialog = agent.current_dialog
    dialog.put_text(f"my number is {pin(1)}")
    turn(agent)
    (request,) = provider.requests
    assert invoker.asked == 2
    assert pin(1) not in str(request.body)
    assert not any(pin(1).encode() in body for _, body in dialog.store.bodies(dialog.dialog_id))
    assert len(dialog.invocations) == 1
