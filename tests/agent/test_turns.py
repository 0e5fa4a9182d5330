"""Turns: what is asked, what is run, what the log has afterwards, and what the caller gets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from palaver import MemoryStore, Prompt, Session, load_config
from palaver.agent import Agent, InvokeResult, ProviderInvoker
from palaver.errors import AgentFailure, InvalidInput, InvalidMessage, ParseError, StoreDamaged
from palaver.messages import UserMessage
from palaver.prompts import DefaultHandler
from palaver.providers import ScriptedProvider
from palaver.tools import ToolReply, tool
from tests.agent.helper import MODEL, attempts, both, calling, kinds, offered, results, roles, scripted, sent
from tests.cli.commands import run
from tests.store.backends import SqliteBackend


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
def fail(why: str) -> str:
    """Fail."""
    raise LookupError(why)


def adder(**options: Any) -> Prompt:  # noqa: ANN401 - what a prompt takes
    """Return a prompt with the tools."""
    return Prompt(path="tester/adder", prompt="You add.", function_list=[add, fail], **options)


# --- the log of a turn ------------------------------------------------------------------------------------------------


def test_each_step_is_in_the_log_in_order() -> None:
    """R129, R136: answer, call started, result, answer, end of turn; nothing else moves the turn."""
    agent, _ = scripted([calling("add", "I add.", a=1, b=2), "It is 3."], adder())
    assert agent.respond("1+2?", return_session=True).state == "success"
    opening = ["system", "user", "turn_started", "custom", "toolset", "model_change"]
    rest = ["invocation", "tool_call", "call_started", "tool", "invocation", "assistant", "turn_ended"]
    assert kinds(agent.current_dialog) == opening + rest


def test_provider_tools_are_declared_when_they_change() -> None:
    """R114: the log knows which tools of the provider's own each answer could use, also where the call adds them."""
    agent, _ = scripted(["a", "b"], Prompt(path="p", prompt="Search.", addon_args={"web_search": True}))
    agent.respond("one?")
    assert agent.current_dialog.view().provided == {"web_search": True}
    agent.respond("two?")
    assert kinds(agent.current_dialog).count("toolset") == 1


def test_tools_and_model_are_declared_when_they_change() -> None:
    """R77: a second turn declares nothing again; another model is one entry; a working copy is never a branch."""
    agent, provider = scripted([calling("add", a=1, b=2), "3", "again 3", "b"], adder())
    agent.respond("1+2?")
    agent.respond("again?")
    agent.model = "gpt-4o"
    agent.respond("??")
    counts = [kinds(agent.current_dialog).count(kind) for kind in ("toolset", "model_change")]
    assert counts == [1, 2]
    assert [request.model for request in provider.requests][-2:] == [MODEL, "gpt-4o"]
    assert agent.current_dialog.children == ()


# --- calls ------------------------------------------------------------------------------------------------------------


def test_the_same_call_is_not_run_again() -> None:
    """C22, R124, R138: a repetition is answered with the earlier result; `allow_repeat` opts out."""
    ran: list[int] = []

    @tool
    def count(n: int) -> int:
        """Count."""
        ran.append(n)
        return len(ran)

    prompt = Prompt(path="t/c", prompt="Count.", function_list=[count, count.extend(name="poll", allow_repeat=True)])
    script = [calling("count", n=1), calling("count", n=1), calling("poll", n=1), calling("poll", n=1), "done"]
    agent, _ = scripted(script, prompt)
    agent.respond("go")
    said = results(agent.current_dialog)
    assert len(ran) == 3
    assert "1" in said[1]
    assert [said[0], *said[2:]] == ["1", "2", "3"]


@pytest.mark.parametrize(("ends", "requests"), [((True,), 1), ((True, False), 2)])
def test_tools_may_end_the_turn(ends: tuple[bool, ...], requests: int) -> None:
    """C23, R204: when all results say `terminate` the delivery is the calling message with what they said; one that does not is enough to go on."""

    @tool
    def hand_in(*, end: bool) -> ToolReply:
        """Hand the work in."""
        return ToolReply("handed in", terminate=end)

    script = [both(*(("hand_in", {"end": end}) for end in ends)), "on"]
    agent, provider = scripted(script, Prompt(path="t/h", prompt="Work.", function_list=[hand_in]))
    delivery = agent.respond("go")
    assert len(provider.requests) == requests
    assert delivery.is_function_call == all(ends)
    assert delivery.text_content() == ("handed in" if all(ends) else "on")
    assert kinds(agent.current_dialog)[-1] == "turn_ended"


def test_tools_of_the_prompt_come_before_the_agents() -> None:
    """Tools of the agent are offered in every turn; a tool of the prompt with the same name wins."""
    agent, provider = scripted(["ok"], adder(), tools=[add.extend(description="other"), fail.extend(name="extra")])
    agent.respond("go")
    assert offered(provider.requests[0]) == ["add", "fail", "extra"]
    assert provider.requests[0].body["tools"][0]["function"]["description"] == "Add two numbers."


@pytest.mark.parametrize("profile", ["openai-chat", "anthropic"])
def test_more_calls_than_one_message_takes(profile: str) -> None:
    """R136: 150 calls in one answer are all run, and the next requests stay valid, where a provider takes 128 at once."""
    many = {"tool_calls": [{"name": "add", "arguments": {"a": n, "b": 0}, "id": f"c{n}"} for n in range(150)]}
    agent, provider = scripted([many, "done", "again"], adder(), profile=profile)
    assert agent.respond("all of them").content == "done"
    assert agent.respond("?").content == "again"
    provider.requests[-1].check()
    if profile == "openai-chat":
        said = provider.requests[-1].body["messages"]
        assert [len(one["tool_calls"]) for one in said if one.get("tool_calls")] == [128, 22]
        assert [one["content"] for one in said if one["role"] == "tool"] == [str(n) for n in range(150)]


def test_a_handler_words_the_results() -> None:
    """R115, R136: a result reaches the model in the words of the prompt's handler, and is never a template."""
    prompt = adder(handler=DefaultHandler(interrupt="Result: {call_results}"))
    agent, provider = scripted([calling("fail", why="{no} template"), "ok"], prompt)
    agent.respond("go")
    (result,) = [content for role, content in sent(provider.requests[1]) if role == "tool"]
    assert result.startswith("Result: ")
    assert "{no} template" in result


# --- caps -------------------------------------------------------------------------------------------------------------


def test_the_last_round_asks_for_the_answer() -> None:
    """C21, R139, R142: at the cap the handler's words ask for the answer, tools stay declared, none may be called; calling on is a failure."""
    script = [calling("add", a=1, b=1), calling("add", a=2, b=2), "2 and 4"]
    agent, provider = scripted(script, adder(), max_interrupt_steps=2)
    assert agent.respond("go").content == "2 and 4"
    last = provider.requests[-1]
    assert (last.body["tool_choice"], offered(last)) == ("none", ["add", "fail"])
    role, words = sent(last)[-1]
    assert role == "user"
    assert "You are reaching the limit of tool calls. Provide the final response." in words
    assert "user" not in roles(agent.current_dialog)[2:]
    agent, _ = scripted(script, adder(), max_interrupt_steps=1)
    with pytest.raises(AgentFailure, match="After 1 round") as caught:
        agent.respond("go")
    assert (caught.value.kind, caught.value.trace.state) == ("steps", "failure")
    assert roles(agent.current_dialog) == ["system", "user", "tool_call", "tool"]
    assert [one["why"] for one in attempts(agent.current_dialog)] == ["exhausted"]
    assert agent.last_call is caught.value.trace


def test_a_turn_has_twenty_rounds_of_tools_by_default() -> None:
    """Without `max_interrupt_steps` the model calls tools in twenty answers, and the next one is the last; a configuration has the same default."""
    script = [calling("add", a=1, b=number) for number in range(20)]
    agent, provider = scripted([*script, "done"], adder())
    assert agent.respond("go").content == "done"
    assert [request.body.get("tool_choice") for request in provider.requests] == [None] * 20 + ["none"]
    config = load_config({"agent_configs": [{"name": "a", "model_name": MODEL, "system_prompt": "Go."}]})
    assert config["a"].max_interrupt_steps == 20


def test_a_paused_answer_is_continued() -> None:
    """A provider's own tools may outlast one answer: it is sent back as it is, and only the rest of it ends the turn."""
    pause = {"text": "I am searching.", "stop_reason": "pause"}
    agent, provider = scripted([pause, "Found it."], profile="anthropic")
    assert agent.respond("Where is it?").content == "Found it."
    assert sent(provider.requests[1])[-1] == ("assistant", [{"type": "text", "text": "I am searching."}])
    assert roles(agent.current_dialog) == ["system", "user", "assistant", "assistant"]


# --- the same turn again ----------------------------------------------------------------------------------------------


def test_an_answer_is_delivered_again() -> None:
    """Who died with the answer on its way gets it by asking again: nothing is asked or written."""
    store = MemoryStore()
    agent, _ = scripted(["the answer"], store=store)
    agent.respond("go")
    before = kinds(agent.current_dialog)
    again = Agent("tester", agent.system_prompt, MODEL, ProviderInvoker(ScriptedProvider([])))
    again.adopt("main", Session.open(store, "tester_main").root)
    session = again.respond(return_session=True)
    assert session.resumed
    assert session.delivery is not None
    assert session.delivery.content == "the answer"
    assert kinds(again.current_dialog) == before


@pytest.mark.parametrize("how", ["damage", "lose"])
def test_an_unreadable_step_is_never_guessed(tmp_path: Path, how: str) -> None:
    """The result of a call is damaged or lost on the disk: no tool runs again, the error names the entry, a rewind before it goes on."""
    ran: list[str] = []

    @tool
    def pay(amount: str) -> str:
        """Pay."""
        ran.append(amount)
        return "paid"

    backend = SqliteBackend(tmp_path / "store.db")
    store = backend.open()
    agent, _ = scripted([calling("pay", amount="7"), {"error": "down"}, "Done."], tools=[pay], store=store)
    with pytest.raises(AgentFailure):
        agent.respond("Pay.")
    dialog = agent.current_dialog
    seq = kinds(dialog).index("tool")
    getattr(backend, how)(dialog.dialog_id, seq)
    agent.adopt("later", Session.open(store, dialog.session_id).root)  # as another process reads it
    with pytest.raises(StoreDamaged) as refused:
        agent.respond(alias="later")
    before = f"{dialog.dialog_id[:12]}:{seq - 1}"
    assert f"`palaver branch rewind {before} --yes`" in str(refused.value)
    assert run("branch", "rewind", before, "--store", tmp_path / "store.db").code == 0
    agent.adopt("back", Session.open(store, dialog.session_id).rewind(before).apply())
    assert agent.respond("Leave it.", alias="back").content == "Done."
    assert ran == ["7"]
    store.close()


# --- what a call takes ------------------------------------------------------------------------------------------------


def test_arguments_of_a_call_win() -> None:
    """R85, R132: arguments of a call win over `model_args`; metadata is in the answer, `parser_args` go to the parser beside the text."""
    prompt = Prompt(path="t/p", prompt="Answer.", parser=lambda text, *, least=9: {"long": len(text) >= least})
    agent, provider = scripted(["abcd", "b"], prompt, model_args={"temperature": 0.5, "max_tokens": 10})
    response = agent.respond("?", args={"temperature": 0.1}, metadata={"trace": "t-1"}, parser_args={"least": 3})
    assert agent.respond("?").parsed["long"] is False
    assert [request.body["temperature"] for request in provider.requests] == [0.1, 0.5]
    assert dict(agent.model_args) == {"temperature": 0.5, "max_tokens": 10}
    assert response.parsed["long"] is True
    assert response.metadata["trace"] == "t-1"
    assert response.metadata["dialog_id"] == agent.current_dialog.dialog_id


HISTORY: list[dict[str, Any]] = [
    {"role": "user", "content": "What is 6 times 7?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "mul", "arguments": '{"a": 6, "b": 7}'}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "42"},
    {"role": "assistant", "content": "42."},
    {"role": "user", "content": "And plus one?"},
]


def test_a_conversation_that_the_caller_keeps_is_history() -> None:
    """A36, R259-R263: in order, calls and results included, with the other arguments of a call; the agent's own dialogs are neither read nor written."""
    agent, provider = scripted(["43.", "43."])
    agent.receive("something else entirely")
    more: dict[str, Any] = {"metadata": {"trace": "t-1"}, "args": {"temperature": 0.1}}
    session = agent.respond(messages=HISTORY, return_session=True, **more)
    agent.respond(messages=HISTORY)
    body = provider.requests[0].body["messages"]
    assert [message["role"] for message in body] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert body[2]["tool_calls"][0]["function"]["arguments"] == '{"a": 6, "b": 7}'
    assert (body[3]["content"], body[-1]["content"]) == ("42", "And plus one?")
    assert sent(provider.requests[0]) == sent(provider.requests[1])
    assert [request.body.get("temperature") for request in provider.requests] == [0.1, None]
    assert session.delivery is not None
    assert session.delivery.metadata["trace"] == "t-1"
    assert roles(agent.current_dialog) == ["system", "user"]
    assert session.dialog is not None
    assert roles(session.dialog)[-1] == "assistant"


def test_a_conversation_is_read_in_each_dialect() -> None:
    """R256: calls and results of Anthropic and of OpenAI's Responses are those of the conversation, as for `dialog.append`."""
    anthropic = [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "add", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "42"}]},
    ]
    responses = [
        {"type": "function_call", "call_id": "c", "name": "add", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "42"},
    ]
    for items in (anthropic, responses):
        agent, provider = scripted(["42."])
        agent.respond(messages=[{"role": "user", "content": "6 times 7?"}, *items])
        assert [role for role, _ in sent(provider.requests[0])] == ["system", "user", "assistant", "tool"]
        assert provider.requests[0].body["messages"][3]["tool_call_id"] == "c"


def test_the_end_of_a_conversation_is_the_query() -> None:
    """C18, R255-R258: `input` is the query after `messages`; a trailing result is continued; what was answered is refused."""
    agent, provider = scripted(["both", "42."])
    agent.respond("And minus one?", messages=HISTORY[:4])
    agent.respond(messages=HISTORY[:3])
    assert [sent(request)[-1] for request in provider.requests] == [("user", "And minus one?"), ("tool", "42")]
    with pytest.raises(InvalidInput, match="nothing to answer"):
        agent.respond(messages=[])
    with pytest.raises(ValueError, match="assistant"):
        agent.respond(messages=HISTORY[:-1])
    with pytest.raises(InvalidMessage):
        agent.respond(messages=[{"role": "nobody", "content": "x"}])
    for wrong in ("How are you?", [1], [None]):
        with pytest.raises(InvalidInput, match="messages"):
            agent.respond(messages=wrong)  # type: ignore[arg-type]


def test_an_unknown_tool_is_answered_and_the_turn_goes_on() -> None:
    """R137: the model reads which tools there are, and the next answer ends the turn."""
    agent, provider = scripted([calling("ad", a=1, b=2), "I cannot."], adder())
    assert agent.respond("1+2?").content == "I cannot."
    (result,) = results(agent.current_dialog)
    assert "There is no tool 'ad'" in result
    assert "add, fail" in result
    assert len(provider.requests) == 2


def test_each_answer_has_its_arguments_and_errors() -> None:
    """R146: an `InvokeResult` has its message, the arguments of its request, what was wrong with it, and its cost."""

    def one_letter(text: str) -> dict[str, object]:
        if len(text) > 1:
            raise ParseError("Too long.")
        return {}

    usage = {"prompt_tokens": 5, "completion_tokens": 2}
    script = [{"text": text, "usage": usage} for text in ("long", "x")]
    agent, _ = scripted(script, Prompt(path="t/i", prompt="Answer.", parser=one_letter))
    refused, accepted = agent.respond("?", args={"temperature": 0.5}, return_session=True).invokes
    assert (refused.has_errors, refused.error_message) == (True, "Too long.")
    assert (accepted.has_errors, accepted.error_message, accepted.execution_errors) == (False, "", ())
    for answer, text in ((refused, "long"), (accepted, "x")):
        assert answer.message is not None
        assert (answer.message.text_content(), answer.model_args["temperature"]) == (text, 0.5)
        assert answer.cost.total_tokens == 7


def test_an_invoker_without_an_answer() -> None:
    """What is not an `InvokeResult` with an assistant's message never becomes an answer; the error has the trace."""
    user = InvokeResult(message=UserMessage(content="hello"))
    nonsense: list[object] = [None, "hello", user]

    class Odd:
        async def invoke(self, *_: object, **__: object) -> object:
            return nonsense.pop()

    agent = Agent("tester", adder(), MODEL, Odd())  # type: ignore[arg-type]
    agent.open("main").receive("go")
    while nonsense:
        with pytest.raises(AgentFailure, match="InvokeResult") as caught:
            agent.respond()
        assert (caught.value.kind, caught.value.trace.state) == ("callback", "failure")
        assert roles(agent.current_dialog) == ["system", "user"]
