"""Agents that compact on their own, keep a core memory, and find again what left their view."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from palaver import AutoCompact, CoreMemory, MemoryStore, ModelSummarizer, Prompt, ScriptedProvider, Session
from palaver.agent import Agent, Compacted, ProviderInvoker
from palaver.context import SummaryAnswer, SummaryRequest
from palaver.context.summary import HEADINGS
from palaver.context.triggers import EventCount, Fired, Idle, Own, Tokens
from palaver.errors import InvalidRequest, ModelCallFailed, ProviderDown, UnknownPolicy
from palaver.ids import DialogId, new_session_id
from palaver.log import Node
from palaver.log.entries import Compaction, Instructions
from palaver.models.openai import OpenAIProvider
from palaver.prompts import Format
from palaver.session.compaction.proposing import CompactionWish
from palaver.session.memory import compact_tools, tools_for
from palaver.store import SessionRecord
from palaver.tokens import counter
from palaver.tools.portal import run_sync
from palaver.wire import Call, ProfileName, Request
from tests.agent.helper import MODEL, calling, entries, kinds, scripted, sent
from tests.agent.test_overflow import OVERFLOW, talkative
from tests.peers.server import Peer

GOOD = "\n\n".join(f"## {heading}\nwhat was said of it" for heading in HEADINGS)


def made(agent: Agent) -> list[Compaction]:
    """Give the compactions of the dialog that is talked to."""
    return [entry for entry in entries(agent.current_dialog) if isinstance(entry, Compaction)]


async def good(request: SummaryRequest) -> SummaryAnswer:
    """Summarise."""
    del request
    return SummaryAnswer(text=GOOD, model="cheap")


async def never(request: SummaryRequest) -> SummaryAnswer:
    """Take too long."""
    await anyio.sleep_forever()
    return await good(request)


async def down(request: SummaryRequest) -> SummaryAnswer:
    """Be down."""
    raise ProviderDown(f"no network for {request.words} words")


@dataclass
class Clock:
    """A clock that is set by hand."""

    at: float
    asked: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        """Give the time."""
        self.asked.append(self.at)
        return self.at


def test_r300_message_121_leads_to_one_compaction_and_the_turn_goes_on() -> None:
    """R300: with 120 nothing happens, with one more there is one compaction, before the model is asked; the trigger is recorded."""
    how = AutoCompact(triggers=(EventCount(120),), policy={"type": "openhands", "max_size": 120})
    agent, provider = scripted(["a", "b", "c"], compact=how)
    for number in range(59):
        agent.current_dialog.put_text(f"question {number} " + "word " * 20)
        agent.current_dialog.put_text(f"answer {number} " + "word " * 20, role="assistant")
    for text in ("one", "two", "three"):
        agent.receive(text)
        agent.respond()
    (compaction,) = made(agent)
    assert compaction.attempt["trigger"] == "events"
    assert "more than 120" in compaction.attempt["why"]
    sizes = [len(request.body["messages"]) for request in provider.requests]
    assert sizes[0] == 120
    assert sizes[1] < 80
    assert len(agent.current_dialog.messages) == 1 + 118 + 6


def test_a_preset_under_compact_acts_where_it_acts_itself() -> None:
    """R20, R300, R304: `compact: openhands` at its 241st event, far below any share of the window, down to half of them; our own at four fifths."""
    agent, _ = scripted(["ok"] * 12, compact=AutoCompact(policy="openhands"))
    for number in range(116):
        agent.current_dialog.put_text(f"question {number} " + "word " * 20)
        agent.current_dialog.put_text(f"answer {number} " + "word " * 20, role="assistant")
    seen = []
    for _ in range(8):
        agent.receive("go")
        agent.respond()
        seen.append(len(agent.current_dialog.view().exchanges))
    (compaction,) = made(agent)
    assert compaction.attempt["trigger"] == "policy"
    assert "openhands" in compaction.attempt["why"]
    assert max(seen) <= 241
    assert 110 <= min(seen) <= 124
    ours, _ = scripted(["ok"] * 2, compact=AutoCompact(policy="palaver"))
    for number in range(300):
        ours.current_dialog.put_text(f"question {number}", role="user" if number % 2 else "assistant")
    ours.receive("go")
    ours.respond()
    assert made(ours) == []


def test_what_is_said_of_triggers_and_size_goes_before_the_presets_own() -> None:
    """A trigger that is given counts in its place, and `policy` among others names its own; a budget that is given is the size."""
    agent, _ = scripted(["ok"] * 3)
    for number in range(60):
        agent.current_dialog.put_text(f"question {number} " + "word " * 20)
        agent.current_dialog.put_text(f"answer {number} " + "word " * 20, role="assistant")
    dialog, small = agent.current_dialog, {"type": "openhands", "max_size": 100}
    due = AutoCompact(policy=small).due(dialog, MODEL)
    assert due is not None
    assert due.trigger == "policy"
    assert AutoCompact(policy=small, triggers=(Idle(),), clock=Clock(0)).due(dialog, MODEL) is None
    both = AutoCompact(policy=small, triggers=(Idle(), Own()), clock=Clock(0)).due(dialog, MODEL)
    assert both == due
    assert AutoCompact(policy="letta").due(dialog, MODEL) is None
    assert AutoCompact(policy=small, budget=1_500).preview(dialog, MODEL).tokens_after <= 1_500


def test_what_is_settled_for_compactions_holds_for_those_by_hand() -> None:
    """Policy, budget, focus, summariser, its patience and what it reads at once are the same, by hand and by a trigger; no field is left out."""
    told: list[SummaryRequest] = []

    async def listening(request: SummaryRequest) -> SummaryAnswer:
        told.append(request)
        return SummaryAnswer(text=GOOD, model="cheap")

    agent, _ = scripted(["ok"])
    for number in range(12):
        agent.current_dialog.put_text(f"question {number} {'heron' if number == 2 else ''} " + "word " * 200)
        agent.current_dialog.put_text(f"answer {number} " + "word " * 200, role="assistant")
    agent.current_dialog.put_text("and now?")
    how = AutoCompact(
        policy="fold", budget=2_000, focus="heron", summarizer=listening, seconds=60, input_tokens=1_500, triggers=()
    )
    by_hand = how.preview(agent.current_dialog, MODEL)
    assert (by_hand.policy, by_hand.focus, by_hand.kept) == ("fold", "heron", 1)
    assert by_hand.tokens_after <= 2_000 < by_hand.tokens_before // 2
    assert len(told) > 1  # in pieces: it reads so much at once
    assert {request.focus for request in told} == {"heron"}
    by_itself = run_sync(lambda: how.apreview(agent.current_dialog, MODEL, Fired("tokens", "too many")))
    assert by_itself.composed == by_hand.composed
    assert how.preview(agent.current_dialog, MODEL, focus="question 3").focus == "question 3"
    impatient = replace(how, summarizer=never, seconds=0.01).preview(agent.current_dialog, MODEL)
    assert impatient.refused == "it did not answer within 0.01 seconds"
    wish = {each.name for each in fields(CompactionWish)} - {
        "trigger",
        "running",
        "summary",
    }  # those are of one compaction
    own = {each.name for each in fields(AutoCompact)} - {"triggers", "clock"}
    assert wish == {*own, "model"}


def test_tokens_and_idleness_by_the_clock_that_is_given() -> None:
    """A share of the window, a number of tokens, an hour in which nothing was said: each fires before the call, by its own figures."""
    for triggers, seconds, fires in (
        ((Tokens(limit=6_000),), 0, "tokens"),
        ((Tokens(share=0.9),), 0, ""),
        ((Idle(3_600, least=100),), 3_600, "idle"),
        ((Idle(3_600, least=100),), 3_599, ""),
    ):
        agent, _ = scripted(["ok"], compact=AutoCompact(triggers=triggers, clock=Clock(0)))
        talkative(agent)
        clock = Clock(entries(agent.current_dialog)[-1].at + seconds)
        agent.compact = AutoCompact(triggers=triggers, clock=clock)
        agent.receive("go")
        assert agent.respond().content == "ok"
        assert [entry.attempt["trigger"] for entry in made(agent)] == ([fires] if fires else [])
        assert clock.asked


def test_a_compaction_does_not_lead_to_the_next_one() -> None:
    """T8, T20: a threshold that no view can meet is tried, and not again with every message."""
    agent, _ = scripted(["ok"] * 8, compact=AutoCompact(triggers=(Tokens(limit=100),)))
    talkative(agent)
    for number in range(8):
        agent.receive(f"go {number}")
        agent.respond()
    assert 1 <= len(made(agent)) <= 2


def test_listeners_hear_of_it_and_the_summary_stands_before_the_record() -> None:
    """The event tells sizes and policy; the model then reads a summary beside what code gathered, and not as the user's words."""
    agent, provider = scripted(["ok"], compact=AutoCompact(triggers=(Tokens(limit=6_000),), summarizer=good))
    talkative(agent)
    agent.receive("go")
    events = [event for event in agent.stream() if isinstance(event, Compacted)]
    assert len(events) == 1
    assert events[0].tokens_after < events[0].tokens_before
    first = str(provider.requests[0].body["messages"][1]["content"])
    assert GOOD in first
    assert "not said by the user" in first


def test_a_summariser_that_is_down_costs_three_tries_and_no_turn() -> None:
    """The turn goes on each time by the record alone; the breaker, read off the log, then stops asking."""
    asked = 0

    async def counting(request: SummaryRequest) -> SummaryAnswer:
        nonlocal asked
        asked += 1
        return await down(request)

    agent, _ = scripted(
        ["ok"] * 6,
        recall=False,
        compact=AutoCompact(triggers=(Tokens(limit=4_000),), summarizer=counting, budget=5_000),
    )
    for number in range(6):
        talkative(agent, 4)
        agent.receive(f"go {number}")
        assert agent.respond().content == "ok"
    assert asked == 3
    assert len(made(agent)) >= 4


def test_an_overflow_is_measured_by_the_providers_figures_and_summarised_by_the_agents_own() -> None:
    """The limit and the count in the error decide how small; without a count the limit does, without both a half."""
    for facts, share in (
        ({"limit": 3_000, "asked": 6_000}, 0.8 * 3_000 / 6_000),
        ({"limit": 2_000}, None),
        ({}, 0.5),
    ):
        error = {"error": {"kind": "ContextOverflow", "message": "Too long.", **facts}}
        agent, _ = scripted([error, "ok"], compact=AutoCompact(triggers=(), summarizer=good))
        talkative(agent)
        agent.receive("go")
        agent.respond()
        (compaction,) = made(agent)
        assert compaction.attempt["trigger"] == "overflow"
        most = 0.8 * 2_000 if share is None else share * compaction.tokens_before
        assert compaction.tokens_after <= most + 1


def test_a_model_summarises_from_the_agents_own_prefix_and_a_cheaper_one_from_a_text() -> None:
    """The same model gets the agent's request and one more message; another one gets the conversation as text, with no tools (R328)."""
    for model, own in ((MODEL, True), ("gpt-4o", False)):
        provider = ScriptedProvider([GOOD])
        summarizer = ModelSummarizer(provider, model)
        agent, theirs = scripted(
            ["first", "ok"],
            compact=AutoCompact(triggers=(Tokens(limit=6_000),), summarizer=summarizer),
            tools=tools_for("letta"),
        )
        agent.receive("hello")
        agent.respond()
        talkative(agent)
        agent.receive("go")
        agent.respond()
        (request,) = provider.requests
        body, before = request.body, theirs.requests[0].body
        if own:
            assert body["messages"][: len(before["messages"])] == before["messages"]
            assert body["tools"] == before["tools"]
            assert body["tool_choice"] == "none"
        else:
            assert len(body["messages"]) == 1
            assert "tools" not in body
        (compaction,) = made(agent)
        assert compaction.attempt["summary"]["model"] == model
        assert "what was said of it" in str(theirs.requests[1].body["messages"])


THINKING = {"max_tokens": 9_000, "temperature": 1.0, "thinking": {"type": "adaptive"}}


@pytest.mark.parametrize("profile", ["anthropic", "openai-chat", "openai-responses", "gemini"])
def test_the_request_for_a_summary_begins_as_the_agents_own_parameters_and_all(profile: ProfileName) -> None:
    """Everything by which a provider caches is the same: tools, instructions, messages, parameters, and the choice of a tool where it counts."""
    args: dict[str, Any] = dict(THINKING) if profile == "anthropic" else {"temperature": 0.5, "max_tokens": 900}
    provider = ScriptedProvider([GOOD], profile=profile)
    theirs = ScriptedProvider(["first", "ok"], profile=profile)
    agent, _ = scripted(
        ["unused"],
        compact=AutoCompact(triggers=(Tokens(limit=6_000),), summarizer=ModelSummarizer(provider, MODEL)),
        tools=tools_for("letta"),
        model_args=args,
    )
    agent.llm_invoker = ProviderInvoker(theirs)
    agent.receive("hello")
    agent.respond()
    talkative(agent)
    agent.receive("go")
    agent.respond()
    before, (asked,) = theirs.requests[0].body, provider.requests
    turns = {"openai-responses": "input", "gemini": "contents"}.get(profile, "messages")
    own, other = unmarked(before), unmarked(asked.body)
    assert other[turns][: len(own[turns])] == own[turns]
    assert len(other[turns]) > len(own[turns])
    rest = {name: value for name, value in other.items() if name not in {turns, "stream", "stream_options"}}
    expected = {name: value for name, value in own.items() if name not in {turns, "stream", "stream_options"}}
    if profile == "anthropic":
        assert "tool_choice" not in rest
    else:  # beside what is cached
        rest.pop("tool_choice", None)
        rest.pop("toolConfig", None)
    assert rest == expected


def test_who_must_call_a_tool_is_asked_for_a_summary_without() -> None:
    """Where every answer of the agent's must be a call, there would be no summary: then the cache is not read."""
    provider = ScriptedProvider([GOOD], profile="anthropic")
    call = Call(model=MODEL, tool_choice="required", format=Format(list[int], "numbers"))
    agent, _ = scripted(["ok"], tools=tools_for("letta"))
    agent.receive("hello")
    agent.respond()
    view = agent.current_dialog.view()
    run_sync(lambda: ModelSummarizer(provider, MODEL).sending(call)(SummaryRequest(view=view)))
    assert provider.requests[0].body["tool_choice"] == {"type": "none"}
    assert "output_config" not in provider.requests[0].body


def test_what_a_summariser_reads_at_once_is_a_share_of_its_models_window() -> None:
    """Three quarters of the window where it is known, the share that the policy names, and what the caller says before both."""
    assert ModelSummarizer(ScriptedProvider([]), "gpt-4o").window == 128_000
    assert ModelSummarizer(ScriptedProvider([]), "nobody-knows-it").window == 0

    class Small:
        """A model that reads little."""

        window = 8_000

        def __init__(self) -> None:
            """Have been asked nothing."""
            self.asked: list[SummaryRequest] = []

        async def __call__(self, request: SummaryRequest) -> SummaryAnswer:
            """Summarise."""
            self.asked.append(request)
            return await good(request)

    def largest(**how: Any) -> int:  # noqa: ANN401 - the words of a compaction
        """Give the size of the largest request."""
        by = Small()
        agent, _ = scripted(["ok"])
        talkative(agent, 30)
        agent.current_dialog.reload().put_text("and now?")
        agent.current_dialog.compact(summarizer=by, budget=4_000, model="gpt-4o", **how)
        return max(counter("gpt-4o").text(request.prompt()) for request in by.asked)

    assert 4_000 < largest() <= 6_000
    assert largest(input_tokens=3_000) <= 3_000
    dynamiq = {"type": "dynamiq", "token_budget_ratio": 0.4}
    assert 2_000 < largest(policy=dynamiq) <= 3_200
    assert largest(policy=dynamiq, input_tokens=2_500) <= 2_500


def test_r272_incremental_of_a_configuration_reaches_the_request() -> None:
    """`incremental: false` of dynamiq: the second summary is made of all that was said, without the first; true, of what is new, with it."""
    for incremental in (True, False):
        agent, _ = scripted(["ok"])
        told: list[SummaryRequest] = []

        async def noting(request: SummaryRequest, told: list[SummaryRequest] = told) -> SummaryAnswer:
            told.append(request)
            return SummaryAnswer(text=f"{GOOD}\nround {len(told)}")

        policy = {"type": "dynamiq", "incremental": incremental}
        for number in range(2):
            agent.current_dialog.put_text("the heron")
            agent.current_dialog.put_text(f"heron {number}", role="assistant")
            talkative(agent, 30)
            agent.current_dialog.reload().compact(summarizer=noting, policy=policy, budget=4_000, model=MODEL).approve()
        assert ("round 1" in told[-1].prompt()) is incremental
        assert ("heron 0" in "".join(each.transcript for each in told[1:])) is not incremental


def unmarked(body: Any) -> Any:  # noqa: ANN401 - JSON
    """Give a body without the marks of what is to be cached: they stand at the newest, and are no part of what is compared."""
    if isinstance(body, Mapping):
        marks = {"cache_control", "prompt_cache_breakpoint"}
        return {name: unmarked(value) for name, value in body.items() if name not in marks}
    return [unmarked(each) for each in body] if isinstance(body, list | tuple) else body


def test_where_the_prefix_is_too_long_a_model_summarises_from_a_text() -> None:
    """The summariser's own request overflows: it is asked once more with what always fits, and the turn goes on."""
    provider = ScriptedProvider([OVERFLOW, GOOD])
    agent, _ = scripted([OVERFLOW, "ok"], compact=AutoCompact(summarizer=ModelSummarizer(provider, MODEL)))
    talkative(agent)
    agent.receive("go")
    assert agent.respond().content == "ok"
    assert len(provider.requests) == 2
    assert len(provider.requests[1].body["messages"]) == 1


def test_what_asks_for_a_summary_is_held_to_its_providers_rules_before_it_is_sent() -> None:
    """A request that the provider would refuse is an error with the violations, and nothing leaves."""
    provider = ScriptedProvider(["never"])
    summarizer = ModelSummarizer(provider, MODEL, max_tokens=0)
    with pytest.raises(InvalidRequest) as caught:
        run_sync(lambda: summarizer(SummaryRequest(transcript="something")))
    assert caught.value.violations
    assert provider.requests == []


# --- finding again ------------------------------------------------------------------------------------------------------------------


def found(request: Request) -> str:
    """Give the first handle in the newest tool result."""
    text = next(str(one["content"]) for one in reversed(request.body["messages"]) if one["role"] == "tool")
    return str(re.findall(r"[0-9a-f]{12}:\d+(?:-\d+|:\d+)?", text)[0])


def behind(handle: str) -> str:
    """Give the handle of the entry behind another one's: the goal is told where it left, the answer to it is not."""
    dialog, seq = handle.replace("-", ":").split(":")[:2]
    return f"{dialog}:{int(seq) + 1}"


def recalling() -> list[Any]:
    """Give the script of a model that overflows, looks what is gone, reads it and answers."""
    answers: list[Any] = [OVERFLOW, calling("list_omitted")]
    look: Callable[[Request], object] = lambda request: calling("recall", handle=behind(found(request)), limit=500)  # noqa: E731 - an answer of a script
    tell: Callable[[Request], object] = lambda request: {  # noqa: E731 - the same
        "text": re.findall(r"answer \d+", str(request.body["messages"][-1]["content"]))[0]
    }
    return [*answers, look, tell]


def test_an_agent_overflows_compacts_lists_recalls_and_answers() -> None:
    """End to end over the real loop: the answer names what only the recalled text holds; every step is durable."""
    agent, provider = scripted(recalling(), tools=tools_for("palaver"))
    talkative(agent)
    agent.receive("What was your first answer?")
    assert agent.respond().content == "answer 0"
    assert "compaction" in kinds(agent.current_dialog)
    assert not any("answer 0" in str(content) for _, content in sent(provider.requests[1]))
    assert 'trust="model"' in str(provider.requests[3].body["messages"][-1]["content"])


def test_a_model_compacts_itself_when_a_part_is_done_with() -> None:
    """`compact` among its tools: one compaction of the log, its own summary in the view, what it names is kept, and the turn goes on."""
    answers = [calling("compact", summary=CAT_SUMMARY, keep="question 3"), "Go on."]
    agent, provider = scripted(answers, tools=tools_for("cat"))
    talkative(agent)
    agent.receive("And now?")
    assert agent.respond().content == "Go on."
    (compaction,) = made(agent)
    assert compaction.policy == "cat"
    assert (compaction.attempt["trigger"], compaction.attempt["focus"]) == ("tool", "question 3")
    assert compaction.tokens_after < compaction.tokens_before * 0.95
    told = str(provider.requests[1].body["messages"])
    assert "the cache was measured" in told
    assert "question 3" in told
    assert "tokens became" in told
    agent.current_dialog.undo()
    assert not [each for each in agent.current_dialog.view().exchanges if each.derived]


def test_a_summary_of_its_own_that_is_none_changes_nothing() -> None:
    """It has no sections, or nothing would be gained: the model reads why, and the log has no compaction."""
    for answer, why in (
        (calling("compact", summary="Fine."), "Nothing was changed: the summary is not used"),
        (calling("compact"), ""),
    ):
        agent, provider = scripted([answer, "Go on."], tools=tools_for("opencode-dcp"))
        if why:
            talkative(agent)
        agent.receive("And now?")
        assert agent.respond().content == "Go on."
        assert (why or "Nothing was changed") in str(provider.requests[1].body["messages"])
        assert made(agent) == []
    with pytest.raises(UnknownPolicy):
        compact_tools("caat")


CAT_SUMMARY = "\n\n".join(
    f"## {heading}\nthe cache was measured, and what was asked is question 0"
    for heading in ("Task", "What was found", "What was changed", "What failed", "What is open")
)


@pytest.mark.peer
def test_the_same_through_a_real_client(start_peer: Callable[[Path], Peer]) -> None:
    """Once over a provider's own client and a server that others wrote: overflow, compaction, list, recall, answer."""
    peer = start_peer(Path(__file__).parent / "fixtures")
    store, session = MemoryStore(), new_session_id()
    store.create_session(SessionRecord(session_id=session))
    store.create_dialog(Node(dialog_id=DialogId("abcdef" * 5 + "ab"), session_id=session, owner="tester"))
    provider = OpenAIProvider(base_url=f"{peer.url}/v1", api_key="none")
    agent = Agent(
        "tester",
        Prompt(path="t/p", prompt="You are tested."),
        "gpt-4o",
        provider,
        tools=tools_for("palaver"),
        store=store,
    ).adopt("main", Session.open(session, store).dialogs[0])
    talkative(agent)
    try:
        assert agent.respond(input="What did I ask first?").content == "You asked question 0."
    finally:
        run_sync(provider.aclose)
    (compaction,) = made(agent)
    assert compaction.attempt["trigger"] == "overflow"
    assert compaction.tokens_after <= 0.8 * 0.5 * compaction.tokens_before
    listed, recalled = [result.text() for message in agent.current_dialog.messages for result in message.tool_results()]
    assert "abcdefabcdef:0" in listed
    assert "question 0" in recalled


def test_what_was_recalled_is_put_back_before_anything_else_leaves() -> None:
    """Recalling over and over does not fill the view: old recalls become a line with the handle of the original, first of all."""

    def look(number: int) -> Callable[[Request], object]:
        return lambda _: calling("recall", handle=f"{agent.current_dialog.dialog_id[:12]}:1", limit=4_000 + number)

    agent, provider = scripted(
        [*map(look, range(12)), "done"],
        tools=tools_for("palaver"),
        context_manager="fold",
        budget=6_000,
        max_interrupt_steps=20,
    )
    agent.current_dialog.put_text("the origin of it all " + "word " * 700)
    agent.current_dialog.put_text("read", role="assistant")
    agent.receive("go")
    assert agent.respond().content == "done"
    last = str(provider.requests[-1].body["messages"])
    assert "[Put back: " in last
    assert f"recall {agent.current_dialog.dialog_id[:12]}:1:0]" in last
    assert 1 <= last.count("<recalled ") <= 4
    assert "the origin of it all" in last


# --- core memory ----------------------------------------------------------------------------------------------------------------------


def test_r330_two_agents_share_a_memory_and_see_each_others_edits() -> None:
    """R330: what one writes by its tool is in the next request of the other; a stale edit is answered with the text as it stands."""
    store = MemoryStore()
    memory = CoreMemory(Session.create(store, "shared", owner="memory").root)
    memory.create("human", "Name: Ada.", limit=200)
    one = Agent(
        "one",
        Prompt(path="t/1", prompt="You are one."),
        MODEL,
        first := ScriptedProvider(
            [calling("core_memory_replace", label="human", old_content="Ada", new_content="Grace"), "noted"]
        ),
        memory=memory,
        store=store,
    ).open("main")
    other = Agent(
        "other",
        Prompt(path="t/2", prompt="You are the other."),
        MODEL,
        second := ScriptedProvider(
            ["hello", calling("core_memory_replace", label="human", old_content="Ada", new_content="Alan"), "I see"]
        ),
        memory=memory,
        store=store,
    ).open("main")
    other.respond(input="hi")
    one.respond(input="I am Grace.")
    assert "Name: Ada." in str(first.requests[0].body["messages"][0])
    assert "Name: Grace." in str(first.requests[1].body["messages"][0])
    other.respond(input="What is my name?")
    assert "Name: Ada." in str(second.requests[0].body["messages"][0])
    assert "Name: Grace." in str(second.requests[1].body["messages"][0])
    assert "It says now:\\nName: Grace." in str(second.requests[2].body["messages"][-1])
    assert memory.get("human").by == "one"


def test_instructions_change_with_memory_and_only_behind_the_prompt() -> None:
    """While no block changes, no entry is written and a request begins with the one before; an edit leaves the prompt where it was."""
    store = MemoryStore()
    memory = CoreMemory(Session.create(store, "m", owner="memory").root)
    memory.create("human", "Ada")
    agent, provider = scripted(["a", "b", "c", "d"], memory=memory)
    for text in ("one", "two"):
        agent.respond(input=text)
    assert sum(isinstance(entry, Instructions) for entry in entries(agent.current_dialog)) == 1
    messages = [request.body["messages"] for request in provider.requests]
    assert messages[1][: len(messages[0])] == messages[0]
    memory.append("human", "likes tea")
    agent.respond(input="three")
    system = [str(request.body["messages"][0]["content"]) for request in provider.requests]
    assert system[2].startswith(system[1][: system[1].index("<memory>")])
    assert system[1].startswith("You are tested.")
    assert "likes tea" in system[2]
    memory.delete("human")
    agent.respond(input="four")
    assert "<memory>" not in str(provider.requests[3].body["messages"][0])
    assert "core_memory_append" in str(provider.requests[3].body["tools"])


def test_what_cannot_be_made_smaller_leaves_the_turn_to_the_provider() -> None:
    """A trigger that fires where nothing can leave: the model is asked as it is; when it overflows that is a typed failure."""
    agent, _ = scripted(["ok", OVERFLOW], compact=AutoCompact(triggers=(Tokens(limit=10),)))
    agent.receive("word " * 2_000)
    assert agent.respond().content == "ok"
    agent.receive("word " * 2_000)
    with pytest.raises(ModelCallFailed):
        agent.respond()
