"""What an agent sends when its dialog is long: one policy, one budget, one committed entry, and plain managers obeyed exactly."""

from contextlib import suppress
from functools import partial
from typing import Any

import anyio
import pytest

from palaver import ContextManager, CoreMemory, Session
from palaver.agent import Agent, Compacted, ModelSummarizer, ProviderInvoker
from palaver.agent.turn import REPEATED
from palaver.context.triggers import EventCount
from palaver.errors import AgentFailure, PolicyFailed
from palaver.log.entries import CallStarted, Compaction, Instructions, MessageEntry
from palaver.messages import Speaker, ToolCallContent, words_of
from palaver.prompts import Prompt
from palaver.providers import ScriptedProvider
from palaver.store import MemoryStore
from palaver.testing.kills import dying_store
from palaver.tools import Function, tool
from palaver.wire import Request
from tests.agent.helper import MODEL, OVERFLOW, Died, calling, die, entries, kinds, scripted, sent, talkative


def compactions(agent: Agent) -> list[Compaction]:
    """Return the compactions in an agent's dialog."""
    return [entry for entry in entries(agent.current_dialog) if isinstance(entry, Compaction)]


def everything_in(request: Request) -> str:
    """Return everything that a request says."""
    return str(request.body["messages"])


# --- one policy, one budget ---------------------------------------------------------------------------------------------------


def test_plan_is_committed_as_one_compaction() -> None:
    """The plan is one entry, the next view starts there, and a second call commits nothing more."""
    events: list[object] = []
    agent, provider = scripted(["one", "two"], budget=6_000, stream_handler=events.append)
    talkative(agent)
    agent.respond("go")
    agent.respond("go on")
    (made,) = compactions(agent)
    assert (made.policy, made.attempt["trigger"]) == ("palaver", "limit")
    assert made.tokens_after < made.tokens_before
    (event,) = [event for event in events if isinstance(event, Compacted)]
    assert (event.policy, event.tokens_after) == ("palaver", made.tokens_after)
    assert agent.current_dialog.compaction.meter(MODEL).view(agent.current_dialog.view()).total < 6_000
    assert len(agent.current_dialog.messages) == 1 + 24 + 4
    first, second = (request.body["messages"] for request in provider.requests)
    assert second[: len(first)] == first, "law 7"


class Broken(ContextManager):
    """A manager that raises."""

    name = "broken"

    def __call__(self, dialog: Any) -> Any:  # noqa: ANN401 - as its base class has it
        """Raise."""
        raise ZeroDivisionError(dialog.owner)


def test_law_14_manager_that_raises_fails_the_turn() -> None:
    """The turn fails with `PolicyFailed`, nothing is sent, and the next call continues it; a fallback stands in where one is named."""
    agent, provider = scripted(["ok"], context_manager=Broken())
    with pytest.raises(PolicyFailed, match="ZeroDivisionError"):
        agent.respond("go")
    assert provider.requests == []
    agent.context_manager = None
    assert agent.respond().content == "ok"
    agent, _ = scripted(["ok"], context_manager=Broken(), fallback="palaver", budget=20_000)
    assert agent.respond("go").content == "ok"


# --- overflows -----------------------------------------------------------------------------------------------------------------


def test_overflow_leads_to_one_compaction_and_one_retry() -> None:
    """R300: measured by the provider's figures: the second request is at most four fifths of its window."""
    agent, provider = scripted([OVERFLOW, "short enough"])
    talkative(agent)
    assert agent.respond("go").content == "short enough"
    (made,) = compactions(agent)
    assert made.attempt["trigger"] == "overflow"
    assert len(everything_in(provider.requests[1])) < 0.45 * len(everything_in(provider.requests[0]))


def test_second_overflow_is_a_typed_failure() -> None:
    """T8: so is an overflow where nothing can be left out; then nothing is committed."""
    agent, provider = scripted([OVERFLOW, OVERFLOW])
    talkative(agent)
    with pytest.raises(AgentFailure) as caught:
        agent.respond("go")
    assert (caught.value.kind, len(provider.requests)) == ("provider", 2)
    agent, provider = scripted([OVERFLOW])
    with pytest.raises(AgentFailure):
        agent.respond("word " * 5_000)
    assert (len(provider.requests), kinds(agent.current_dialog).count("compaction")) == (1, 0)


# --- triggers, summaries, files -------------------------------------------------------------------------------------------------


def test_event_count_compacts_once() -> None:
    """R300: a trigger fires although the view fits; the compaction is recorded under its name and does not lead to the next one."""
    agent, provider = scripted(["one", "two"], context_manager="fold", budget=50_000, triggers=(EventCount(20),))
    talkative(agent)
    agent.respond("go")
    agent.respond("go on")
    (made,) = compactions(agent)
    assert made.attempt["trigger"] == "events"
    assert len(provider.requests[0].body["messages"]) < 24


def test_reported_usage_corrects_the_budget() -> None:
    """C17: where the provider counts more tokens than we do, the policy acts earlier, by its figures plus what is new."""
    usage = {"prompt_tokens": 8_000, "completion_tokens": 5}
    for reported, expected in ((usage, 1), (None, 0)):
        agent, _ = scripted([{"text": "one", "usage": reported} if reported else "one", "two"], budget=4_600)
        talkative(agent, exchanges=6)
        agent.respond("go")
        agent.respond("go on")
        assert len(compactions(agent)) == expected


def test_running_summary_is_on_every_result() -> None:
    """R293: It is on the event, the preview and the view; the next request to the summarizer has it, and where that one fails it stays."""
    events: list[Any] = []
    writer = ScriptedProvider(["They counted words.", {"error": "refused"}, "They counted again."])
    agent, _ = scripted(
        ["ok", "ok"], budget=6_000, summarizer=ModelSummarizer(writer, "cheap"), stream_handler=events.append
    )
    for _ in range(2):
        talkative(agent)
        agent.respond("go")
    found = [event.summary for event in events if isinstance(event, Compacted)]
    assert found == ["They counted words.", "They counted words."]
    assert "They counted words." in everything_in(writer.requests[1])
    dialog = agent.current_dialog
    assert dialog.view().summary == "They counted words."
    talkative(agent)
    preview = anyio.run(partial(dialog.compaction.apreview, ModelSummarizer(writer, "cheap"), budget=6_000))
    assert (preview.summary, preview.to_dict()["summary"]) == ("They counted again.", "They counted again.")
    preview.approve()
    assert dialog.view().summary == "They counted again."
    assert dialog.view(at=0).summary == ""


def test_another_model_writes_the_summary() -> None:
    """R314, R328, T7: asked in a request without tools; the summary is in the next request, speaks as `summary`, and its cost is in the event; a failing model leaves the record alone."""
    events: list[Any] = []
    writer = ScriptedProvider([{"text": "They counted words.", "usage": {"prompt_tokens": 9, "completion_tokens": 4}}])
    agent, provider = scripted(
        ["ok"], budget=6_000, summarizer=ModelSummarizer(writer, "cheap"), stream_handler=events.append
    )
    talkative(agent)
    agent.respond("go")
    assert ("tools" in writer.requests[0].body, writer.requests[0].model) == (False, "cheap")
    assert "They counted words." in everything_in(provider.requests[0])
    shown = [block for each in agent.current_dialog.view().exchanges for block in each.blocks()]
    assert [block.speaker for block in shown if "They counted" in words_of(block.content)] == [Speaker.SUMMARY]
    (event,) = [event for event in events if isinstance(event, Compacted)]
    assert (event.summarizer, [usage.input_tokens for usage in event.usages]) == ("cheap", [9])
    agent, provider = scripted(
        ["ok"], budget=6_000, summarizer=ModelSummarizer(ScriptedProvider([{"error": "down"}] * 3), "cheap")
    )
    talkative(agent)
    assert agent.respond("go").content == "ok"
    assert compactions(agent)[0].attempt["summary"]["failed"]


def test_summary_starts_from_the_one_before_or_from_scratch() -> None:
    """R272: with `incremental` off, a later summary is asked for without the running one, and covers what that one covers."""
    for incremental in (True, False):
        writer = ScriptedProvider(["They began to count.", "They counted on."])
        agent, _ = scripted(
            ["one", "two"],
            context_manager={"type": "dynamiq", "incremental": incremental},
            budget=6_000,
            summarizer=ModelSummarizer(writer, "cheap"),
        )
        for words in ("go", "go on"):
            talkative(agent)
            agent.respond(words)
        first, second = map(everything_in, writer.requests)
        assert first.count("answer 1 word") == 1
        assert ("They began to count." in second) is incremental
        assert second.count("answer 1 word") == (1 if incremental else 2)


def test_newest_files_are_read_again() -> None:
    """R307: after a fold the agent calls its own tool for the newest files that left, and appends what it says now."""
    texts = {f"{name}.py": f"old {name}" for name in "abcdefg"}

    @tool(reads="path", idempotent=True)
    def read(path: str) -> str:
        """Read a file."""
        return texts[path] + " word" * 200

    script: list[object] = [calling("read", path=path) for path in texts]
    agent, provider = scripted(
        [*script, "read them", "done"], Prompt(path="t/r", prompt="Go.", function_list=[read]), max_interrupt_steps=20
    )
    agent.respond("read all")
    talkative(agent)
    texts.update({path: text.replace("old", "new") for path, text in texts.items()})
    agent.context_manager, agent.budget = "claude-code", 4_000
    agent.respond("and now?")
    last = everything_in(provider.requests[-1])
    found = [name for name in "abcdefg" if f"new {name}" in last]
    assert found == list("cdefg")
    assert "old a word" not in last


def test_restoring_runs_only_tools_that_read() -> None:
    """Law 18: a tool that writes, too, is not idempotent or needs approval is not called again; each reading is a recorded call of the harness."""
    ran: list[str] = []

    def effect(name: str) -> Function:
        def work(path: str) -> str:
            ran.append(name)
            return f"{path} " + "word " * 300

        return Function.from_callable(work, name=name, reads="path", idempotent=name != "peek")

    tools = [
        effect("read"),
        effect("edit").extend(writes="path"),
        effect("peek"),
        effect("secret").extend(needs_approval=True),
    ]
    script: list[object] = [
        calling(each.name, path=f"{each.name} {number}.py") for each in tools for number in range(3)
    ]
    agent, provider = scripted([*script, "worked", "done"], tools=tools, max_interrupt_steps=20, approve=lambda _: True)
    agent.respond("go")
    before = len(kinds(agent.current_dialog))
    agent.context_manager, agent.budget = "claude-code", 5_000
    talkative(agent)
    agent.respond("and now?")
    assert {name: ran.count(name) for name in ran} == {"read": 6, "edit": 3, "peek": 3, "secret": 3}
    made = [entry for entry in entries(agent.current_dialog)[before:] if isinstance(entry, CallStarted)]
    assert [(entry.tool, entry.idempotent) for entry in made] == [("read", True)] * 3
    repeated = [agent.current_dialog.recall(entry.repeats.handle) for entry in made if entry.repeats]
    paths = [call.args["path"] for call in repeated if isinstance(call, ToolCallContent)]
    assert paths == [f"read {number}.py" for number in (2, 1, 0)]
    assert everything_in(provider.requests[-1]).count("read again after older messages left") == 3


@pytest.mark.parametrize("write", range(1, 14))
def test_restoring_continues_after_a_kill(write: int) -> None:
    """Law 18: wherever the process dies, each recorded reading has one result in the end, and no file is read without a record."""
    ran: list[str] = []

    @tool(reads="path", idempotent=True)
    def read(path: str) -> str:
        """Read a file."""
        ran.append(path)
        return f"{path} " + "word " * 300

    script: list[object] = [calling("read", path=f"{name}.py") for name in "abc"]
    agent, _ = scripted([*script, "worked"], tools=[read], max_interrupt_steps=20)
    agent.respond("go")
    talkative(agent)
    ran.clear()
    options: dict[str, Any] = {"tools": [read], "context_manager": "claude-code", "budget": 5_000}

    def again(deadly: int) -> Agent:
        store = dying_store(agent.store, deadly, die)
        provider = ScriptedProvider(lambda _: "done")
        return Agent("tester", agent.system_prompt, MODEL, ProviderInvoker(provider), store=store, **options)

    with suppress(Died, BaseExceptionGroup):
        again(write).resume("tester_main").respond("and now?")
    late = again(-1).resume("tester_main")
    assert late.respond().content == "done"
    log = entries(late.current_dialog)
    began = [entry.call_id for entry in log if isinstance(entry, CallStarted) and entry.repeats]
    said = [entry.message.metadata.get(REPEATED) for entry in log if isinstance(entry, MessageEntry)]
    assert sorted(began) == sorted(filter(None, said))
    assert len(began) <= len(ran) <= len(began) + 1


# --- recall and memory -----------------------------------------------------------------------------------------------------------


def test_instructions_change_only_with_memory() -> None:
    """R325, R330: while no block changes, no entry is written and a request begins with the one before it."""
    memory = CoreMemory(Session.create(MemoryStore(), "m", owner="memory").root)
    memory.create("human", "Ada")
    agent, provider = scripted(["a", "b", "c"], memory=memory)
    for text in ("one", "two"):
        agent.respond(text)
    assert sum(isinstance(entry, Instructions) for entry in entries(agent.current_dialog)) == 1
    messages = [request.body["messages"] for request in provider.requests]
    assert messages[1][: len(messages[0])] == messages[0]
    memory.append("human", "likes tea")
    agent.respond("three")
    assert sent(provider.requests[2])[0][1].startswith("You are tested.")
    assert "likes tea" in sent(provider.requests[2])[0][1]
