"""Limits: what a turn, a session and a subject may spend, over any number of processes and sub-agents."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver import MemoryStore, Session
from palaver.agent import Agent, Limits, ModelSummarizer, ProviderInvoker, subagent
from palaver.agent.limits import LimitReached, Spending
from palaver.errors import AgentFailure, InvalidInput, NotFound
from palaver.log.entries import Invocation, TurnEnded, TurnStarted
from palaver.providers import ScriptedProvider
from palaver.testing.kills import dying_store
from palaver.tools import tool
from palaver.wire import Request
from tests.agent.helper import MODEL, QUICK, Died, both, calling, die, entries, scripted, talkative

USAGE = {"prompt_tokens": 90, "completion_tokens": 10}


@tool(idempotent=True, allow_repeat=True)
def look() -> str:
    """Look."""
    return "seen"


def spent(answer: dict[str, Any] | str, tokens: int = 100) -> dict[str, Any]:
    """Return an answer that used some tokens."""
    made = {"text": answer} if isinstance(answer, str) else answer
    return {**made, "usage": {"prompt_tokens": tokens - 10, "completion_tokens": 10}}


def failed(agent: Agent, text: str = "", **call: Any) -> LimitReached:  # noqa: ANN401 - the arguments of a call
    """Return the limit at which a turn ends."""
    with pytest.raises(AgentFailure) as caught:
        agent.respond(text, **call)
    assert caught.value.kind == "limit"
    assert isinstance(caught.value.error, LimitReached)
    return caught.value.error


# --- laws ----------------------------------------------------------------------------------------------------------------


@dataclass
class Spender:
    """A session in which an agent and its sub-agent spend, in processes that die.

    Attributes:
        script: What the models do, one a request: `look`, `ask` (the sub-agent), `say`, or `down`.
        limits: The agent's limits.
        store: What the processes share.
        asked: How often a model was asked.
    """

    script: list[str]
    limits: tuple[Limits, ...]
    store: MemoryStore = field(default_factory=MemoryStore)
    asked: int = 0

    def answer(self, request: Request) -> object:
        """Return the next answer, which uses 100 tokens."""
        wanted = self.script[self.asked] if self.asked < len(self.script) else "say"
        self.asked += 1
        names = {each["function"]["name"] for each in request.body.get("tools", ())}
        if wanted == "down":
            return {"error": "down"}
        if wanted == "ask" and "helper" in names:
            return spent(calling("helper", "", f"c{self.asked}", task="Look."))
        return spent(calling("look", "", f"c{self.asked}") if wanted != "say" else "Done.")

    def agent(self, deadly: int = -1) -> Agent:
        """Return the agent of a new process, which dies after so many writes."""
        invoker = ProviderInvoker(ScriptedProvider(self.answer))
        helper = Agent("helper", "You help.", MODEL, invoker, tools=[look], retry=QUICK)
        store = dying_store(self.store, deadly, die)
        tools = [look, subagent(helper)]
        boss = Agent("boss", "You lead.", MODEL, invoker, tools=tools, store=store, limits=self.limits, retry=QUICK)
        return boss.open("main", session_name="main", resume=True)

    def run(self, deadly: int = -1, **call: Any) -> LimitReached | None:  # noqa: ANN401 - the arguments of a call
        """Answer, or continue, in a new process; return the limit at which that ended, if it did."""
        try:
            self.agent(deadly).respond(**call)
        except AgentFailure as error:
            return error.error if isinstance(error.error, LimitReached) else None
        except (Died, BaseExceptionGroup):
            pass
        return None

    def invocations(self) -> int:
        """Count the requests that the log records."""
        session = Session.open(self.store, "main")
        return sum(isinstance(entry, Invocation) for dialog in session.dialogs for entry in entries(dialog))

    def tokens(self) -> int:
        """Return what the log says was used."""
        return Session.open(self.store, "main").cost.total_tokens


scripts = st.lists(st.sampled_from(["look", "ask", "say", "down"]), max_size=14)
deaths = st.lists(st.integers(1, 20), max_size=3)
scopes = st.sampled_from(["turn", "session"])


@given(scripts, st.integers(1, 6), deaths, scopes)
def test_no_call_follows_a_limit_of_calls(script: list[str], most: int, dying: list[int], per: Any) -> None:  # noqa: ANN401 - a scope
    """Retries and sub-agents counted, killed and continued in other processes, the models are asked no more often than allowed."""
    life = Spender(script, (Limits(calls=most, per=per),))
    life.agent().receive("go")
    for deadly in (*dying, -1, -1):
        life.run(deadly)
        assert life.invocations() <= most
    assert life.asked <= most


@given(scripts, st.integers(1, 600), deaths, scopes)
def test_at_most_one_call_goes_beyond_a_limit(script: list[str], most: int, dying: list[int], per: Any) -> None:  # noqa: ANN401 - a scope
    """What is recorded before the newest call is below the limit, wherever processes were killed."""
    life = Spender(script, (Limits(tokens=most, per=per),))
    life.agent().receive("go")
    for deadly in (*dying, -1, -1):
        life.run(deadly)
        assert life.tokens() - 100 < most


@given(
    st.lists(st.sampled_from(["look", "ask"]), min_size=8, max_size=8), st.integers(1, 7), st.integers(1, 25), scopes
)
def test_a_killed_turn_counts_on(script: list[str], most: int, deadly: int, per: Any) -> None:  # noqa: ANN401 - a scope
    """The process that continues a killed turn stops where a process that was never killed does, and so does every later one."""
    limits = (Limits(calls=most, per=per),)
    whole, cut = Spender(script, limits), Spender(script, limits)
    for life in (whole, cut):
        life.agent().receive("go")
    cut.run(deadly)
    expected = whole.run()
    assert expected is not None
    for _ in range(2):
        assert cut.run() == expected
    for dialog in Session.open(cut.store, "main").dialogs:
        place = dialog.store, dialog.dialog_id
        assert Spending.stored_in(*place).catch_up(*place).noted() == Spending().catch_up(*place).noted()
    assert cut.invocations() == whole.invocations() == most


@given(scripts.filter(lambda script: "ask" in script), scopes)
def test_sub_agents_count_once(script: list[str], per: Any) -> None:  # noqa: ANN401 - a scope
    """What a limit counts is what the whole session cost, each answer once."""
    life = Spender(script, (Limits(tokens=150, per=per),))
    life.agent().receive("go")
    reached = life.run()
    if reached is not None:
        assert (reached.spent, reached.calls) == (life.tokens(), life.invocations())


# --- turns, sessions, subjects -------------------------------------------------------------------------------------------


def test_more_is_allowed_by_a_call_and_lasts() -> None:
    """A grant is in the log: the process that continues after a kill still has it; the turn goes on where it stopped."""
    life = Spender(["look"] * 9, (Limits(calls=2),))
    life.agent().receive("go")
    assert life.run() == LimitReached("turn", "calls", 2, 2, 2)
    life.run(3, more=Limits(calls=2))
    assert life.run() == LimitReached("turn", "calls", 4, 4, 4)
    life.script[4:] = ["say"]
    assert life.agent().respond(more=Limits(calls=1)).content == "Done."


def test_a_new_message_begins_a_new_turn_of_a_limit() -> None:
    """A limit per turn counts from the user's newest message after it stopped; one per session goes on."""
    agent, provider = scripted(
        [spent(calling("look"))] * 9, tools=[look], limits=[Limits(calls=1), Limits(calls=3, per="session")]
    )
    assert failed(agent, "go").per == "turn"
    assert failed(agent).spent == 1
    assert failed(agent, "and now?").per == "turn"
    assert failed(agent, "and now?").per == "turn"
    assert failed(agent, "and now?").per == "session"
    assert len(provider.requests) == 3
    agent.open("other")
    assert failed(agent, "go").per == "turn"


def test_a_limit_of_a_subject_counts_its_sessions() -> None:
    """Sessions of others do not count; a session without a subject is refused, and no model is asked."""
    agent, provider = scripted([spent("Yes.")] * 9, limits=Limits(tokens=150, per="subject"))
    for alias, subject in (("a", "ann"), ("b", "bob"), ("c", "ann")):
        agent.open(alias, subject=subject)
        agent.respond("Well?")
    agent.open("d", subject="ann")
    assert failed(agent, "Well?") == LimitReached("subject", "tokens", 150, 200, 2)
    agent.open("e")
    with pytest.raises(InvalidInput, match="no subject"):
        agent.respond("Well?")
    assert len(provider.requests) == 3


def test_sub_agents_at_the_same_time_keep_a_limit_of_calls() -> None:
    """Of six that begin at once, as many ask as are allowed, and all go on when more is."""
    helper = Agent("helper", "You help.", MODEL, ScriptedProvider(lambda _: spent("Helped.")))
    script = [spent(both(*[("helper", {"task": str(number)}) for number in range(6)])), spent("Done.")]
    agent, _ = scripted(script, tools=[subagent(helper)], limits=Limits(calls=4))
    assert failed(agent, "go") == LimitReached("turn", "calls", 4, 4, 4)
    assert agent.respond(more=Limits(calls=4)).content == "Done."
    assert len(Session.open(agent.store, "tester_main").dialogs) == 7


def test_a_compaction_between_turns_keeps_a_limit() -> None:
    """A session at its limit asks no summarizer."""
    writer = ScriptedProvider([spent("unseen")])
    agent, _ = scripted(
        [spent("Yes.")], limits=Limits(calls=1, per="session"), budget=20_000, summarizer=ModelSummarizer(writer, MODEL)
    )
    talkative(agent)
    agent.respond("Well?")
    with pytest.raises(AgentFailure, match="limit of this session"):
        agent.compact()
    assert writer.requests == []


def test_a_summary_counts() -> None:
    """The requests of a summarizer count in the turn, and none is made at a limit."""
    writer = ScriptedProvider([spent("## Progress\nAll is well.", 500)] * 3)
    options: dict[str, Any] = {"budget": 2_000, "summarizer": ModelSummarizer(writer, MODEL)}
    agent, provider = scripted([spent(calling("look")), "unseen"], tools=[look], limits=Limits(tokens=550), **options)
    talkative(agent)
    assert failed(agent, "go") == LimitReached("turn", "tokens", 550, 600, 2)
    assert (len(writer.requests), len(provider.requests)) == (1, 1)
    agent, provider = scripted(["unseen"], limits=Limits(calls=1), **options)
    talkative(agent)
    assert failed(agent, "go") == LimitReached("turn", "calls", 1, 1, 1)
    assert provider.requests == []


def test_a_sub_agent_continues_with_its_caller() -> None:
    """At its caller's limit it stops without a result; with more it goes on in the same dialog."""
    life = Spender(["ask", "look", "look", "say", "say"], (Limits(calls=2),))
    life.agent().receive("go")
    assert life.run() == LimitReached("turn", "calls", 2, 2, 2)
    assert life.agent().respond(more=Limits(calls=3)).content == "Done."
    assert len(Session.open(life.store, "main").dialogs) == 2
    assert life.asked == 5


def test_a_sub_agents_own_limit_is_its_callers_result() -> None:
    """Where only the sub-agent may not go on, the model of its caller reads that."""
    helper = Agent(
        "helper",
        "You help.",
        MODEL,
        ScriptedProvider([spent(calling("look"))] * 2),
        tools=[look],
        limits=Limits(calls=1),
    )
    agent, _ = scripted([spent(calling("helper", task="Look.")), spent("It stopped.")], tools=[subagent(helper)])
    assert agent.respond("go").content == "It stopped."
    (result,) = agent.current_dialog.messages[-2].tool_results()
    assert "The limit of this turn is reached: 1 of 1 calls spent." in result.text()


def test_a_call_waits_for_a_person_at_a_limit() -> None:
    """Deciding costs nothing: the calls are listed and decided, and what is approved runs when more is allowed."""

    @tool(needs_approval=True)
    def pay() -> str:
        """Pay."""
        return "paid"

    script = [spent(calling("pay")), spent("Paid.")]
    agent, _ = scripted(script, tools=[pay], limits=Limits(calls=1))
    (call,) = agent.respond("go", return_session=True).waiting
    agent.approve(call.id)
    assert failed(agent).spent == 1
    assert agent.respond(more=Limits(calls=1)).content == "Paid."
    helper = Agent("helper", "You help.", MODEL, ScriptedProvider(script), tools=[pay])
    agent, _ = scripted([spent(calling("helper", task="x"))], tools=[subagent(helper)], limits=Limits(calls=2))
    assert [call.name for call in agent.respond("go", return_session=True).waiting] == ["pay"]


def test_seconds_count_while_a_turn_runs() -> None:
    """Not between a kill and the next process, nor after the turn stopped."""

    @tool
    def wait() -> str:
        """Wait."""
        time.sleep(0.06)
        return "waited"

    agent, _ = scripted([spent(calling("wait"))] * 2 + [spent("Done.")], tools=[wait], limits=Limits(seconds=0.05))
    assert failed(agent, "go").unit == "seconds"
    assert agent.respond(more=Limits(seconds=3600)).content == "Done."
    dialog = agent.current_dialog
    script = ScriptedProvider([spent("Done.")])
    agent = Agent("tester", "You are tested.", MODEL, script, limits=Limits(seconds=60))
    killed = dialog.fork()
    started = TurnStarted(agent="tester", at=1.0)
    killed.put_text("again")
    killed.record(started)
    agent.adopt("killed", killed)
    assert agent.respond().content == "Done."
    assert next(entry.at for entry in entries(killed) if isinstance(entry, TurnEnded)) == 1.0


# --- what is refused -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong", [{"dollars": 0}, {"calls": 1.5}, {"tokens": True}, {"seconds": float("nan")}, {"per": "day"}, {}]
)
def test_a_wrong_limit_is_refused(wrong: dict[str, Any]) -> None:
    """Before anything is asked."""
    with pytest.raises(InvalidInput):
        Limits(**wrong)
    with pytest.raises(InvalidInput, match="whole number above 0"):
        Limits(calls=1.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [3, [3], {"calls": 1}])
def test_what_is_no_limit_is_refused(wrong: object) -> None:
    """Alone or in a list, with what to pass instead."""
    with pytest.raises(InvalidInput, match="Pass Limits"):
        scripted(["Yes."], limits=wrong)


def test_dollars_need_prices() -> None:
    """A model without one is named at once: the agent's, a fallback's, the summarizer's, a sub-agent's."""
    limits, quiet = Limits(dollars=1), ScriptedProvider([])
    with pytest.raises(NotFound, match=r"price for the model 'mine'.*limit tokens or calls"):
        Agent("a", "b", "mine", quiet, limits=limits)
    with pytest.raises(NotFound, match="'other'"):
        Agent("a", "b", MODEL, quiet, limits=limits, fallback_models=["other"])
    with pytest.raises(NotFound, match="'other'"):
        Agent("a", "b", MODEL, quiet, limits=limits, summarizer=ModelSummarizer(quiet, "other"))
    helper = Agent("helper", "You help.", "mine", quiet)
    agent, _ = scripted([spent(calling("helper", task="x")), spent("Done.")], tools=[subagent(helper)], limits=limits)
    agent.respond("go")
    assert "price for the model 'mine'" in agent.current_dialog.messages[-2].tool_results()[0].text()
    assert quiet.requests == []


def test_a_limit_below_one_call_says_so() -> None:
    """One call is made, the error says what it cost, and the next attempt costs nothing."""
    agent, provider = scripted([spent(calling("look"))] * 3, tools=[look], limits=Limits(dollars=0.000001))
    with pytest.raises(
        AgentFailure, match=r"\$0.000019 of \$0.000001 spent in 1 call. One call costs more than the limit"
    ):
        agent.respond("go")
    for _ in range(2):
        failed(agent)
    assert len(provider.requests) == 1


def test_an_answer_without_usage_cannot_be_limited() -> None:
    """A limit of tokens is not silently without effect; one of calls needs no usage."""
    agent, _ = scripted([calling("look"), "Done."], tools=[look], limits=Limits(tokens=10_000))
    assert failed(agent, "go").unmetered == MODEL
    agent, _ = scripted([calling("look"), "Done."], tools=[look], limits=Limits(calls=2))
    assert agent.respond("go").content == "Done."


def test_more_of_what_is_not_limited_is_refused() -> None:
    """Before anything is written."""
    agent, _ = scripted(["Yes."], limits=Limits(calls=1))
    for more in (Limits(tokens=1), Limits(calls=1, per="session"), 3):
        with pytest.raises(InvalidInput):
            agent.respond("go", more=more)  # type: ignore[arg-type]
    assert len(agent.current_dialog.messages) == 1
