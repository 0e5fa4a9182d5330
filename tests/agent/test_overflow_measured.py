"""What is sent again after an overflow: less than what was refused, by as much as the provider's figures ask for, whoever shapes requests."""

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver import AutoCompact, Dialog, Plan, Prompt
from palaver.agent import Agent, ProviderInvoker
from palaver.context import POLICIES, Ledger
from palaver.context.policies.fold import FoldContextManager as Fold
from palaver.errors import ContextOverflow, InvalidInput, ModelCallFailed
from palaver.log import Handle
from palaver.models import ScriptedProvider
from palaver.session.calls.composing import tokens_of
from palaver.tokens import Budget, Rates
from palaver.view import Insert, View
from palaver.wire import Request
from tests.agent.helper import entries, kinds
from tests.agent.test_contract import word_first

MODEL = "gpt-4"
READS, TIMES = 4_000, 3
"""What the provider reads, by its own count, and how many of its tokens one of ours is."""


class Window:
    """A provider that reads only so much, and says so in its own count.

    Attributes:
        sizes: What it was sent, in our count.
    """

    def __init__(
        self, answers: list[object] | None = None, *, limit: bool = True, asked: bool = True, times: float = TIMES
    ) -> None:
        """Answer, or refuse."""
        self.sizes: list[int] = []
        self._answers = iter(answers or [])
        self._told = (limit, asked)
        self._times = times

    def __call__(self, request: Request) -> object:
        """Refuse what is too long; else give the next answer."""
        assert request.view is not None
        self.sizes.append(tokens_of(request.view, MODEL))
        size = int(self.sizes[-1] * self._times)
        if size <= READS:
            return next(self._answers, "ok")
        limit, asked = self._told
        return ContextOverflow(
            "Too long.", limit=READS if limit else None, asked=size if asked else None, provider="s", model=MODEL
        )


def agent_of(window: Window, prompt: Prompt | None = None, **words: Any) -> Agent:  # noqa: ANN401 - what an agent takes
    """Give an agent that asks it."""
    made = Agent(
        "tester",
        prompt or Prompt(path="tester/system", prompt="You are tested."),
        MODEL,
        ProviderInvoker(ScriptedProvider(window)),
        **{"recall": False, **words},
    )
    return made.open("main")


def talkative(agent: Agent, exchanges: int = 12, words: int = 200) -> None:
    """Give a dialog a past."""
    for number in range(exchanges):
        agent.current_dialog.put_text(f"question {number} " + "word " * words)
        agent.current_dialog.put_text(f"answer {number} " + "word " * words, role="assistant")


def less(sizes: list[int], share: float = 0.8) -> bool:
    """Tell whether the second of two requests is as much smaller as what the provider says of the first one asks for."""
    refused, sent = sizes
    return refused * TIMES > READS and sent <= share * READS / TIMES


@pytest.mark.parametrize("name", sorted(set(POLICIES) - {"full"}))
@pytest.mark.parametrize(
    ("under", "budget"),
    [("context_manager", None), ("context_manager", 3_000), ("compact", None), ("both", None), ("both", 3_000)],
)
def test_the_retry_is_smaller_by_what_the_providers_figures_ask_for(name: str, under: str, budget: int | None) -> None:
    """Every policy, shaping requests, compacting, or both, with a budget said and without: one refusal, one retry, within four fifths of what fits."""
    words: dict[str, Any] = {"recall": True} if budget is None else {"recall": True, "budget": budget}
    if under != "compact":
        words["context_manager"] = name
    if under != "context_manager":
        words["compact"] = AutoCompact(policy=name, triggers=())
    window = Window()
    agent = agent_of(window, **words)
    talkative(agent)
    before = len(agent.current_dialog.messages)
    agent.receive("go")
    assert agent.respond().content == "ok"
    assert less(window.sizes)
    assert "compaction" in kinds(agent.current_dialog)
    assert len(agent.current_dialog.messages) == before + 2
    agent.receive("and on")
    assert agent.respond().content == "ok"
    assert len(window.sizes) == 3


@pytest.mark.parametrize(
    "words", [{"context_manager": "full", "budget": 50_000}, {"compact": AutoCompact(policy="full")}]
)
def test_the_policy_that_leaves_nothing_out_gives_way_in_the_log(words: dict[str, Any]) -> None:
    """`full` sends what there is, and has room for it; what the provider does not read is left out by a commit of the default policy."""
    window = Window()
    agent = agent_of(window, **words)
    talkative(agent)
    agent.receive("go")
    assert agent.respond().content == "ok"
    assert less(window.sizes)


@pytest.mark.parametrize(("limit", "asked"), [(True, False), (False, False)])
def test_without_figures_it_is_measured_by_what_was_sent(limit: bool, asked: bool) -> None:
    """A limit alone stands against our count of what was sent; nothing said, it is half of that: never a share of the log."""
    window = Window(limit=limit, asked=asked)
    agent = agent_of(window, context_manager="default", budget=3_600)
    talkative(agent, 30)
    agent.receive("go")
    assert agent.respond().content == "ok"
    refused, sent = window.sizes
    assert sent <= refused * 0.5


def test_a_limit_alone_leaves_room_for_a_count_that_is_too_small() -> None:
    """The provider counts nearly twice what we do, and names its limit only: half of that by our count, so that the request that is sent again fits."""
    window = Window(asked=False, times=1.9)
    agent = agent_of(window, context_manager="opencode", budget=6_000)
    talkative(agent, 20)
    agent.receive("go")
    assert agent.respond().content == "ok"
    refused, sent = window.sizes
    assert refused > READS
    assert READS * 0.3 < sent <= READS * 0.5


class Reciting(Fold):
    """Puts a long text into every view, for its own sake."""

    name = "reciting"

    def plan(self, view: View, ledger: Ledger, budget: Budget, prices: Rates | None) -> Plan:
        """Put it in, as often as it is asked."""
        del view, ledger, budget, prices
        return Plan(policy=self.name, inserts=(Insert(before=0, text="map " * 2_500, label="map", standing=True),))


def test_what_a_manager_puts_in_has_no_room_that_is_not_there() -> None:
    """The log is small enough, so that nothing is committed; the request that is sent again goes without what the manager puts in."""
    window = Window()
    agent = agent_of(window, context_manager=Reciting(), budget=6_000)
    agent.receive("go")
    assert agent.respond().content == "ok"
    assert less(window.sizes)
    assert "compaction" not in kinds(agent.current_dialog)


def test_what_it_puts_in_is_left_out_behind_a_commit_too() -> None:
    """A log that is too large, and a manager that makes each request larger: what is committed leaves room for nothing else."""
    window = Window()
    agent = agent_of(window, context_manager=Reciting(), budget=9_000)
    talkative(agent)
    agent.receive("go")
    assert agent.respond().content == "ok"
    assert less(window.sizes)
    assert "compaction" in kinds(agent.current_dialog)


def test_refused_answers_count() -> None:
    """What is told of refused answers comes with the request and cannot be committed: the log makes the room for it."""
    long = "Hm. " + "well " * 400
    window = Window([long, "Answer: yes"])
    prompt = Prompt(path="t/p", prompt="P.", parser=word_first)
    agent = agent_of(window, prompt, context_manager="default")
    talkative(agent, 3, 140)
    agent.receive("well?")
    assert agent.respond().content == "Answer: yes"
    assert len(window.sizes) == 3
    assert less(window.sizes[1:])


def test_what_must_be_sent_may_have_all_that_fits() -> None:
    """The newest message needs more than four fifths of what fits, and less than all of it: it is sent, and nothing is called too large."""
    window = Window()
    agent = agent_of(window, budget=6_000)
    talkative(agent)
    agent.receive("word " * 1_150)
    assert agent.respond().content == "ok"
    assert less(window.sizes, 1.0)
    assert not less(window.sizes)


@settings(max_examples=12, deadline=None)
@given(st.integers(900, 3_000), st.booleans(), st.booleans())
def test_a_failure_says_what_is_in_the_way(words: int, limit: bool, manager: bool) -> None:
    """Said to be too much is only what is: its tokens and parts, against what fits; where that is not told, against what was sent. Else there is an answer."""
    window = Window(limit=limit, asked=limit)
    agent = agent_of(window, context_manager="default" if manager else None, budget=6_000 if manager else None)
    talkative(agent, 2)
    agent.receive("word " * words)
    hint = ""
    try:
        assert agent.respond().content == "ok"
    except ModelCallFailed as failed:
        hint = str(failed)
    sent, needed = window.sizes[0], words + 30  # what stands around it, and the instructions
    if not hint:
        assert window.sizes[-1] * TIMES <= READS
    elif len(window.sizes) > 1:  # it was asked once more, for nothing told how much is read
        assert not limit
        assert window.sizes[1] <= 0.95 * sent
    else:
        assert f"Of the {sent:,} tokens that were sent" in hint
        (told,) = re.findall(r"; ([\d,]+) must be sent \(.*newest user message [\d,]+\)", hint)
        assert words < int(told.replace(",", "")) < needed
        assert ("of them fit" in hint) == limit
        assert needed > (READS / TIMES if limit else 0.95 * sent)


def test_a_turn_that_failed_leaves_a_log_that_goes_on() -> None:
    """What cannot be sent is no end of the conversation: taken back, the next message is answered."""
    window = Window()
    agent = agent_of(window, context_manager="default")
    talkative(agent, 2)
    agent.receive("word " * 3_000)
    with pytest.raises(ModelCallFailed, match="newest user message"):
        agent.respond()
    agent.receive("go")
    assert agent.respond().content == "ok"
    assert entries(agent.current_dialog)


class Unwritten(Dialog):
    """A dialog of which no smaller view can be written down."""

    def commit(self, *args: object, **words: object) -> Handle:
        """Refuse."""
        del args, words
        raise InvalidInput("The view cannot be written down.")


@pytest.mark.parametrize("manager", [None, "palaver", "pi"])
def test_what_cannot_be_committed_is_sent_smaller_all_the_same(manager: str | None) -> None:
    """No view can be written down, whatever the policy: the request that is sent again is shaped, and nothing is said to be too large that is not."""
    window = Window()
    agent = agent_of(window, context_manager=manager)
    agent.adopt("unwritten", Unwritten(owner="tester"))
    talkative(agent)
    agent.receive("go")
    assert agent.respond().content == "ok"
    assert less(window.sizes)
    assert "compaction" not in kinds(agent.current_dialog)
