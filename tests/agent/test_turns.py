"""Turns: what is asked, what is run, what the log holds afterwards, and what the caller gets."""

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from palaver import MemoryStore, Prompt, Session, SqliteStore, Store
from palaver.agent import Agent, InvokeResult, ProviderInvoker
from palaver.errors import (
    CallbackFailed,
    InvalidInput,
    ModelCallFailed,
    NoActiveDialog,
    StepsExhausted,
    UnknownDialog,
)
from palaver.log.entries import CallStarted, Custom, TurnEnded, TurnStarted
from palaver.messages import Role, ToolResultContent, UserMessage
from palaver.models import ScriptedProvider
from palaver.prompts import DefaultHandler, DefaultTagParser
from palaver.tools import CallContext, ToolReply, tool
from tests.agent.helper import MODEL, both, calling, entries, kinds, roles, scripted, sent


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
def fail(why: str) -> str:
    """Fail."""
    raise LookupError(why)


def adder(**options: object) -> Prompt:
    """Give a prompt that offers the tools."""
    return Prompt(path="tester/adder", prompt="You add.", function_list=[add, fail], **options)  # type: ignore[arg-type]


def test_a23_an_agent_answers_and_the_dialog_has_three_messages() -> None:
    """A23: open, receive, respond; canonical roles are system, user, assistant."""
    agent, provider = scripted(["A short update."])
    agent.receive("Write a short project update.")
    response = agent.respond()
    assert response.content == "A short update."
    assert roles(agent.current_dialog) == ["system", "user", "assistant"]
    assert sent(provider.requests[0]) == [
        ("system", "You are tested."),
        ("user", "Write a short project update."),
    ]


def test_a3_open_renders_the_system_prompt_and_names_the_session() -> None:
    """A3: active alias, head, rendered text, session name, owner and dialog id after `open`."""
    system = Prompt(path="planner/system", prompt="You plan in {language}.")
    agent = Agent("coder", system, MODEL, ProviderInvoker(ScriptedProvider([])))
    assert agent.open("planning", prompt_args={"language": "Python"}, session_name="run_001") is agent
    dialog = agent.current_dialog
    assert agent.active_alias == "planning"
    assert dialog.head is not None
    assert dialog.head.role is Role.SYSTEM
    assert dialog.head.content == "You plan in Python."
    assert dialog.session_name == "run_001"
    assert dialog.owner == "coder"
    assert dialog.head.metadata["dialog_id"] == dialog.dialog_id


def test_a13_dialogs_go_by_aliases() -> None:
    """A13: two dialogs, switching, forking, closing; a taken alias, an unknown one and none at all are typed errors."""
    agent, _ = scripted(["one", "two"])
    agent.receive("first")
    agent.respond()
    agent.open("execution")
    assert agent.active_alias == "execution"
    agent.switch("main").fork("main", "main_alt", last_n=2, switch=True)
    assert str(agent.active_alias) == "main_alt"
    assert list(agent.dialogs) == ["main", "execution", "main_alt"]
    assert agent.current_dialog.parent is agent.dialogs["main"]
    with pytest.raises(InvalidInput, match="main_alt"):
        agent.open("main_alt")
    with pytest.raises(UnknownDialog, match="execution"):
        agent.switch("executed")
    closed = agent.close("main_alt")
    assert closed.parent is agent.dialogs["main"]
    assert list(agent.dialogs) == ["main", "execution"]
    with pytest.raises(NoActiveDialog):
        agent.receive("nobody hears")
    assert issubclass(NoActiveDialog, RuntimeError)


def test_each_step_is_in_the_log_in_order() -> None:
    """Design decision 6: answer, call started, result, answer, end of turn; nothing else moves the turn."""
    agent, _ = scripted([calling("add", "I add.", a=1, b=2), "It is 3."], adder())
    agent.receive("1+2?")
    session = agent.respond(return_session=True)
    assert session.state == "success"
    assert kinds(agent.current_dialog) == [
        "system",
        "user",
        "turn_started",
        "custom",
        "toolset",
        "model_change",
        "invocation",
        "tool_call",
        "call_started",
        "tool",
        "invocation",
        "assistant",
        "turn_ended",
    ]
    assert entries(agent.current_dialog)[-1] == TurnEnded(outcome="final", at=entries(agent.current_dialog)[-1].at)


def test_the_second_turn_declares_nothing_again() -> None:
    """Tools and model are entries when they change only; a working copy is never a branch of the tree."""
    agent, _ = scripted([calling("add", a=1, b=2), "3", "again 3"], adder())
    agent.receive("1+2?")
    agent.respond()
    agent.receive("again?")
    agent.respond()
    assert kinds(agent.current_dialog).count("toolset") == 1
    assert kinds(agent.current_dialog).count("model_change") == 1
    assert agent.current_dialog.children == ()


def test_another_model_is_a_model_change() -> None:
    """The model in force is in the log: changing it between turns is one entry."""
    agent, provider = scripted(["a", "b"])
    agent.receive("?")
    agent.respond()
    agent.model = "gpt-4o"
    agent.receive("??")
    agent.respond()
    assert kinds(agent.current_dialog).count("model_change") == 2
    assert [request.model for request in provider.requests] == [MODEL, "gpt-4o"]


def test_parallel_calls_have_each_their_result() -> None:
    """One message a result, paired by call id; the next request holds both with their call."""
    agent, provider = scripted([both(("add", {"a": 1, "b": 2}), ("add", {"a": 3, "b": 4})), "3 and 7"], adder())
    agent.receive("both")
    session = agent.respond(return_session=True)
    tools = [message for message in agent.current_dialog.messages if message.role is Role.TOOL]
    assert sorted(message.text_content() for message in tools) == ["3", "7"]
    assert {message.metadata["tool_call_id"] for message in tools} == {
        call.id for call in agent.current_dialog.messages[2].tool_calls()
    }
    assert [content for role, content in sent(provider.requests[1]) if role == "tool"] == ["3", "7"]
    assert session.interrupts_count == 2


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (calling("ad", a=1, b=2), "add"),
        (calling("add", a="one"), "a"),
        ({"tool_calls": [{"name": "add", "arguments": '{"a": 1, "b":'}]}, "JSON"),
        (calling("fail", why="no such shelf"), "LookupError: no such shelf"),
    ],
)
def test_c21_what_a_model_does_wrong_is_a_result_it_can_act_on(call: object, said: str) -> None:
    """C21, R137: an unknown name, wrong or unreadable arguments and a tool that raises are error results; the loop goes on."""
    agent, _ = scripted([call, "I see."], adder())
    agent.receive("go")
    session = agent.respond(return_session=True)
    (result,) = [block for message in agent.current_dialog.messages for block in message.tool_results()]
    assert result.is_error
    assert said in result.text()
    assert session.state == "success"


def test_c22_the_same_call_again_is_not_run_again() -> None:
    """C22, R138: a repetition is answered with the earlier result; `allow_repeat` opts out."""
    ran: list[int] = []

    @tool
    def count(n: int) -> int:
        """Count."""
        ran.append(n)
        return len(ran)

    prompt = Prompt(path="t/c", prompt="Count.", function_list=[count, count.extend(name="poll", allow_repeat=True)])
    script = [calling("count", n=1), calling("count", n=1), calling("poll", n=1), calling("poll", n=1), "done"]
    agent, _ = scripted(script, prompt)
    agent.receive("go")
    agent.respond()
    results = [block.text() for message in agent.current_dialog.messages for block in message.tool_results()]
    assert len(ran) == 3
    assert results[0] == "1"
    assert "1" in results[1]
    assert results[1] != "2"
    assert results[2:] == ["2", "3"]


def test_c23_tools_may_end_the_turn() -> None:
    """C23: when all results say `terminate` the model is not asked again; the delivery is the calling message with what they said."""

    @tool
    def hand_in(text: str) -> ToolReply:
        """Hand the work in."""
        return ToolReply(f"handed in: {text}", terminate=True)

    agent, provider = scripted(
        [calling("hand_in", text="it")], Prompt(path="t/h", prompt="Work.", function_list=[hand_in])
    )
    agent.receive("go")
    session = agent.respond(return_session=True)
    assert session.state == "success"
    assert session.delivery is not None
    assert session.delivery.text_content() == "handed in: it"
    assert session.delivery.parsed["raw"] == "handed in: it"
    assert session.delivery.is_function_call
    assert len(provider.requests) == 1
    assert roles(agent.current_dialog)[-2:] == ["tool_call", "tool"]
    assert entries(agent.current_dialog)[-1].kind == "turn_ended"


def test_a_result_that_does_not_end_keeps_the_turn_going() -> None:
    """C23: one result without `terminate` is enough for the model to be asked again."""

    @tool
    def stop(*, really: bool) -> ToolReply:
        """Stop."""
        return ToolReply("stopped", terminate=really)

    prompt = Prompt(path="t/s", prompt="Work.", function_list=[stop])
    agent, provider = scripted([both(("stop", {"really": True}), ("stop", {"really": False})), "on"], prompt)
    agent.receive("go")
    assert agent.respond().content == "on"
    assert len(provider.requests) == 2


def test_r139_the_last_round_asks_for_the_answer() -> None:
    """R139: at the cap the handler's words ask for the answer, tools stay declared, and none may be called."""
    agent, provider = scripted(
        [calling("add", a=1, b=1), calling("add", a=2, b=2), "2 and 4"], adder(), max_interrupt_steps=2
    )
    agent.receive("go")
    assert agent.respond().content == "2 and 4"
    last = provider.requests[-1].body
    assert last["tool_choice"] == "none"
    assert len(last["tools"]) == 2
    role, words = sent(provider.requests[-1])[-1]
    assert role == "user"
    assert "You are reaching the limit of tool calls. Provide the final response." in words
    assert "not said by the user" in words
    assert "user" not in roles(agent.current_dialog)[2:]


def test_r139_calling_on_is_a_defined_failure() -> None:
    """R139, C21: only exhaustion of a cap raises; the answer that called on is kept, and the session is at hand."""
    agent, _ = scripted([calling("add", a=1, b=1), calling("add", a=2, b=2)], adder(), max_interrupt_steps=1)
    agent.receive("go")
    with pytest.raises(StepsExhausted) as caught:
        agent.respond()
    assert caught.value.session.state == "failure"
    assert caught.value.steps == 1
    assert roles(agent.current_dialog) == ["system", "user", "tool_call", "tool"]
    kept = [entry for entry in entries(agent.current_dialog) if isinstance(entry, Custom)]
    assert [entry.data["why"] for entry in kept if entry.custom_type == "palaver.attempt"] == ["exhausted"]
    assert agent.last_call is caught.value.session


def test_an_answer_is_delivered_again_and_not_asked_for_again() -> None:
    """A caller that died with the answer on its way gets it by asking again: nothing was said since, so nothing is asked or written."""
    store = MemoryStore()
    agent, _ = scripted(["the answer"], store=store)
    agent.receive("go")
    agent.respond()
    before = kinds(agent.current_dialog)
    again = Agent("tester", agent.system_prompt, MODEL, ProviderInvoker(ScriptedProvider([])))
    again.adopt("main", Session.open("tester_main", store).root)
    session = again.respond(return_session=True)
    assert session.resumed
    assert session.delivery is not None
    assert session.delivery.content == "the answer"
    assert kinds(again.current_dialog) == before


def test_after_a_failure_the_turn_goes_on() -> None:
    """A provider that failed is asked again by the next call: nothing has to be said anew."""
    agent, _ = scripted([calling("add", a=1, b=1), {"error": "ProviderDown"}, "2"], adder())
    agent.receive("go")
    with pytest.raises(ModelCallFailed):
        agent.respond()
    session = agent.respond(return_session=True)
    assert session.resumed
    assert session.delivery is not None
    assert session.delivery.content == "2"
    assert sum(isinstance(entry, CallStarted) for entry in entries(agent.current_dialog)) == 1


def test_provider_ids_that_repeat_are_told_apart() -> None:
    """D16: a provider that calls every call the same gets each one executed and paired, in one answer and across turns."""
    twice = {
        "tool_calls": [
            {"name": "add", "arguments": {"a": 1, "b": 1}, "id": "add:0"},
            {"name": "add", "arguments": {"a": 2, "b": 2}, "id": "add:0"},
        ]
    }
    agent, _ = scripted([twice, calling("add", "", "add:0", a=3, b=3), "done"], adder())
    agent.receive("go")
    agent.respond()
    results = [block.text() for message in agent.current_dialog.messages for block in message.tool_results()]
    assert sorted(results) == ["2", "4", "6"]


def test_a_store_on_disk_holds_the_same(tmp_path: Path) -> None:
    """A turn over SQLite leaves the entries that it leaves in memory."""
    seen = []
    for store in (MemoryStore(), SqliteStore(tmp_path / "s.db")):
        agent, _ = scripted([calling("add", a=1, b=2), "3"], adder(), store=store)
        agent.receive("1+2?")
        agent.respond()
        seen.append(kinds(agent.current_dialog))
        store.close()
    assert seen[0] == seen[1]


def test_an_agent_takes_up_a_session_by_name() -> None:
    """`resume` finds the agent's own newest dialog of a session, and answers in it."""
    store: Store = MemoryStore()
    agent, _ = scripted(["hello"], store=store)
    agent.receive("hi")
    agent.respond()
    other = Agent("tester", agent.system_prompt, MODEL, ProviderInvoker(ScriptedProvider(["again"])), store=store)
    other.resume("tester_main", "mine")
    assert other.active_alias == "mine"
    other.receive("hi again")
    assert other.respond().content == "again"
    assert len(Session.open("tester_main", store).root.messages) == 5


def test_context_for_tools() -> None:
    """A tool that asks for its surroundings gets the call, the dialog, the agent and the program's own things."""
    seen: list[CallContext] = []

    @tool
    def look(context: CallContext) -> str:
        """Look around."""
        seen.append(context)
        return "seen"

    agent, _ = scripted(
        [calling("look"), "ok"], Prompt(path="t/l", prompt="Look.", function_list=[look]), deps={"db": 1}
    )
    agent.receive("go")
    agent.respond()
    assert seen[0].deps == {"db": 1}
    assert seen[0].agent is agent
    assert seen[0].dialog is agent.current_dialog
    assert seen[0].call_id == agent.current_dialog.messages[2].tool_calls()[0].id


def test_agent_tools_come_behind_those_of_the_prompt() -> None:
    """Tools of the agent are offered in every turn; a tool of the prompt with the same name wins."""
    agent, provider = scripted(["ok"], adder(), tools=[add.extend(description="other"), fail.extend(name="extra")])
    agent.receive("go")
    agent.respond()
    declared = [(one["function"]["name"], one["function"]["description"]) for one in provider.requests[0].body["tools"]]
    assert declared == [("add", "Add two numbers."), ("fail", "Fail."), ("extra", "Fail.")]


def test_args_of_a_call_win_over_the_agents() -> None:
    """R132: per-call arguments are laid over `model_args`, which stay as they are."""
    agent, provider = scripted(["a", "b"], model_args={"temperature": 0.5, "max_tokens": 10})
    agent.receive("?")
    agent.respond(args={"temperature": 0.1})
    agent.receive("?")
    agent.respond()
    assert provider.requests[0].body["temperature"] == 0.1
    assert provider.requests[1].body["temperature"] == 0.5
    assert dict(agent.model_args) == {"temperature": 0.5, "max_tokens": 10}


def test_a14_what_a_parser_finds_is_in_the_answer() -> None:
    """A14, R46: the system prompt's parser reads the answer to a text; cost and overview are usable."""
    prompt = Prompt(path="t/p", prompt="Answer in <answer>.", parser=DefaultTagParser(required_xml_tags=["answer"]))
    agent, _ = scripted(
        [{"text": "<answer>42</answer>", "usage": {"prompt_tokens": 10, "completion_tokens": 5}}], prompt
    )
    agent.receive("What?")
    response = agent.respond()
    assert response.parsed["xml_tags"] == {"answer": ["42"]}
    assert agent.current_dialog.cost.total_tokens == 15
    assert "42" in agent.current_dialog.overview()


def test_metadata_is_kept_with_the_answer() -> None:
    """R85: what the caller gives is in the answer's metadata, beside what palaver keeps there."""
    agent, _ = scripted(["a"])
    agent.receive("?")
    response = agent.respond(metadata={"trace": "t-1"})
    assert response.metadata["trace"] == "t-1"
    assert response.metadata["dialog_id"] == agent.current_dialog.dialog_id


def test_a_handler_words_the_results() -> None:
    """R115, R136: what a tool gave reaches the model in the words of the prompt's handler, and is never a template."""
    prompt = adder(handler=DefaultHandler(interrupt="Result: {call_results}"))
    agent, provider = scripted([calling("fail", why="{no} template"), "ok"], prompt)
    agent.receive("go")
    agent.respond()
    (result,) = [content for role, content in sent(provider.requests[1]) if role == "tool"]
    assert result.startswith("Result: ")
    assert "{no} template" in result


def test_a_tool_result_may_be_made_by_the_tool() -> None:
    """A tool that gives a result block has it recorded as it is, under its call's id."""

    @tool
    def raw() -> ToolResultContent:
        """Give a block."""
        return ToolResultContent(content="whole", metadata={"rows": 3})

    agent, _ = scripted([calling("raw"), "ok"], Prompt(path="t/r", prompt="Go.", function_list=[raw]))
    agent.receive("go")
    agent.respond()
    (result,) = agent.current_dialog.messages[3].tool_results()
    assert result.content == "whole"
    assert result.metadata["rows"] == 3


def test_many_agents_answer_in_one_loop(tmp_path: Path) -> None:
    """Turns of many dialogs run side by side in a caller's own loop, over one store on disk; each log is its own."""

    async def scenario(store: Store) -> None:
        async with anyio.create_task_group() as group:
            for number in range(8):
                agent, _ = scripted([calling("add", a=number, b=1), f"{number + 1}"], adder(), store=store)
                agent.receive(f"{number}+1?")
                group.start_soon(partial(answer, agent, number))

    async def answer(agent: Agent, number: int) -> None:
        assert (await agent.arespond()).content == str(number + 1)
        (result,) = agent.current_dialog.messages[3].tool_results()
        assert result.text() == str(number + 1)

    with closing(SqliteStore(tmp_path / "store.db")) as store:
        anyio.run(scenario, store)
        assert len(list(store.sessions())) == 8


def test_a_session_resumed_by_hand_is_gone_on_with_too() -> None:
    """`Session.resume` ends the open turn as interrupted; the agent goes on with it all the same, and asks for no answer again."""
    store: Store = MemoryStore()
    agent, provider = scripted([calling("add", a=1, b=2)], adder(), store=store)
    agent.receive("1+2?")
    with pytest.raises(ModelCallFailed):
        agent.respond()
    agent.current_dialog.record(TurnStarted(agent="tester"))
    session = Session.open("tester_main", store)
    dialog = session.resume()
    assert not dialog.in_turn
    other = Agent("tester", adder(), MODEL, ProviderInvoker(ScriptedProvider(["3"])), store=store)
    assert other.adopt("main", dialog).respond().content == "3"
    assert roles(dialog) == ["system", "user", "tool_call", "tool", "assistant"]
    assert len(provider.requests) == 2


@pytest.mark.parametrize("profile", ["openai-chat", "openai-responses", "anthropic", "gemini"])
def test_more_calls_than_one_turn_takes(profile: str) -> None:
    """G1: 300 calls in one answer are all run, and the next requests stay valid, where a provider takes 128 in one turn only."""
    many = {"tool_calls": [{"name": "add", "arguments": {"a": n, "b": 0}, "id": f"c{n}"} for n in range(300)]}
    agent, provider = scripted([many, "done", "again"], adder(), profile=profile)
    agent.receive("all of them")
    assert agent.respond().content == "done"
    agent.receive("?")
    assert agent.respond().content == "again"
    provider.requests[-1].check()
    if profile == "openai-chat":
        said = provider.requests[-1].body["messages"]
        assert [len(one["tool_calls"]) for one in said if one.get("tool_calls")] == [128, 128, 44]
        assert [one["content"] for one in said if one["role"] == "tool"] == [str(n) for n in range(300)]
        assert len([one for one in provider.requests[-1].report if "one takes 128" in one.why]) == 2


@pytest.mark.parametrize(
    "nonsense",
    [None, "hello", InvokeResult(message="hello"), InvokeResult(message=UserMessage(content="hello"))],  # type: ignore[arg-type]
)
def test_an_invoker_that_gives_nonsense_is_a_typed_failure(nonsense: object) -> None:
    """What is no `InvokeResult` with an assistant's message never becomes an answer; the error has the session."""

    class Odd:
        async def invoke(self, *_: object, **__: object) -> object:
            return nonsense

    agent = Agent("tester", adder(), MODEL, Odd())  # type: ignore[arg-type]
    agent.open("main").receive("go")
    with pytest.raises(CallbackFailed, match="InvokeResult") as caught:
        agent.respond()
    assert caught.value.session.state == "failure"
    assert roles(agent.current_dialog) == ["system", "user"]


def test_a_parser_that_never_runs_is_refused() -> None:
    """A coroutine function or a generator as parser would parse nothing: a typed error, and the model is not asked to repair it."""

    async def waits(text: str) -> str:
        return text

    def yields(text: str) -> Iterator[str]:
        yield text

    for parser in (waits, yields):
        agent, provider = scripted(["x"], Prompt(path="t/p", prompt="Go.", parser=parser))
        agent.receive("go")
        with pytest.raises(InvalidInput, match="nothing of it ran"):
            agent.respond()
        assert len(provider.requests) == 1


@pytest.mark.parametrize("number", [-1, 1.5, "2", None, True])
def test_a_bound_is_a_whole_number(number: Any) -> None:  # noqa: ANN401 - anything a caller may pass
    """Anything else is refused when the agent is made, not when a turn counts with it."""
    for bound in ("max_exception_retry", "max_interrupt_steps", "max_llm_recall"):
        with pytest.raises(InvalidInput, match=bound):
            scripted([], **{bound: number})


@pytest.mark.parametrize("given", ["How are you?", {"role": "user", "content": "How are you?"}, [1], [None]])
def test_what_is_no_list_of_messages_says_what_is_wanted(given: Any) -> None:  # noqa: ANN401 - anything a caller may pass
    """A text, one message, or a list of something else in the place of messages: the error shows the form that is taken."""
    agent, _ = scripted(["fine"])
    with pytest.raises(InvalidInput, match="list of messages"):
        agent.respond(messages=given)


def test_an_answer_that_its_provider_paused_is_gone_on_with() -> None:
    """Tools of the provider's own may outlast one answer: it is sent back as it is, and only the rest of it ends the turn."""
    pause = {"text": "I am searching.", "metadata": {"stop_reason": "pause_turn"}}
    agent, provider = scripted([pause, "Found it."], profile="anthropic")
    agent.receive("Where is it?")

    assert agent.respond().content == "Found it."
    assert len(provider.requests) == 2
    assert sent(provider.requests[1])[-1] == ("assistant", [{"type": "text", "text": "I am searching."}])
    assert roles(agent.current_dialog) == ["system", "user", "assistant", "assistant"]


def test_a_model_that_only_pauses_is_stopped_by_the_cap() -> None:
    """Pauses count as rounds: with none left, what there is is the answer."""
    pause = {"text": "still", "metadata": {"stop_reason": "pause_turn"}}
    agent, provider = scripted(lambda _request: pause, max_interrupt_steps=2)
    agent.receive("go")

    assert agent.respond().content == "still"
    assert len(provider.requests) == 3
