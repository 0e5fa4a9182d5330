"""The agent itself: short forms of its constructor, adopted dialogs, and what goes to the provider end to end."""

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from palaver import Agent, CoreMemory, Prompt, Session
from palaver.agent.options import AgentOptions, OptionKeywords
from palaver.errors import InvalidInput, NotFound
from palaver.messages import words_of
from palaver.providers import ScriptedProvider
from palaver.store import MemoryStore
from palaver.tools import tool
from tests.agent.helper import MODEL, kinds, roles, scripted, sent, talkative


@tool
def uptime() -> str:
    """Say how long the host is up."""
    return "3 days"


def test_one_line_makes_an_agent(tmp_path: Path) -> None:
    """Plain words are the system prompt, braces included; a text to `respond` opens a dialog."""
    script = [{"tool_calls": [{"name": "uptime"}]}, "3 days."]
    agent = Agent(
        "watcher",
        "You watch the host {as it is}.",
        model=MODEL,
        llm_invoker=ScriptedProvider(script),
        tools=[uptime],
        store=tmp_path / "watch.db",
    )
    assert agent.respond("How long is it up?").content == "3 days."
    words = [message.text_content() for message in agent.current_dialog.messages]
    assert words[:2] == ["You watch the host {as it is}.", "How long is it up?"]
    assert [one.name for one in Session.list(agent.store)] == ["watcher_main"]
    agent.store.close()


def test_unknown_option_is_refused() -> None:
    """The error has the option that was perhaps meant."""
    with pytest.raises(InvalidInput, match="max_interrupt_steps"):
        scripted([], max_interupt_steps=3)


@pytest.mark.parametrize("name", [option.name for option in fields(AgentOptions) if option.name != "deps"])
def test_option_of_another_type_is_refused(name: str) -> None:
    """By the constructor, with the name and the value, whatever the option; what is of its type is accepted."""
    counts = name.startswith("max_") or name == "decide_within"
    values: list[Any] = [3, "odd", ["odd", 3], object()]
    for value in values:
        if (value == 3 and counts) or (value == "odd" and name == "api_type"):
            scripted([], **{name: value})
            continue
        with pytest.raises((InvalidInput, NotFound)) as caught:
            scripted([], **{name: value})
        assert str(value) in str(caught.value)
        assert str(caught.value).startswith(f"{name} is ") or (value, name) == ("odd", "fallback")


def test_part_of_another_type_is_refused() -> None:
    """The constructor's own arguments, too; a number is no truth, and the reverse."""
    wrong: dict[str, Any] = {
        "tools": 3,
        "runtime": "odd",
        "model_args": ["odd"],
        "context_manager": 3,
        "budget": "odd",
        "store": 3,
        "parallel_tools": 1,
        "max_llm_recall": True,
        "decide_within": float("nan"),
    }
    for name, value in wrong.items():
        with pytest.raises(InvalidInput):
            Agent("a", "b", MODEL, ScriptedProvider([]), **{name: value})
    parts: list[tuple[Any, Any, Any]] = [(3, "b", MODEL), ("", "b", MODEL), ("a", 3, MODEL), ("a", "b", 3)]
    for name, prompt, model in parts:
        with pytest.raises(InvalidInput):
            Agent(name, prompt, model, ScriptedProvider([]))


def test_keywords_are_the_fields_of_the_options() -> None:
    """A type checker knows every option that the constructor accepts, and no other."""
    assert list(OptionKeywords.__annotations__) == [option.name for option in fields(AgentOptions)]


def test_wrong_policy_or_budget_is_refused_at_once() -> None:
    """By the constructor, and after an assignment by the call, before it writes anything."""
    wrong: list[Any] = [("context_manager", "no such policy"), ("fallback", "no such policy"), ("budget", -4)]
    for name, value in wrong:
        with pytest.raises((NotFound, InvalidInput), match=str(value)):
            scripted([], **{name: value})
    agent, _ = scripted(["ok"])
    agent.context_manager = "no such policy"
    with pytest.raises(NotFound):
        agent.respond("go")
    assert roles(agent.current_dialog) == ["system"]


def systems(agent: Agent) -> list[str]:
    """Return the system texts that the model would see."""
    return [words_of(block.content) for block in agent.current_dialog.view().system]


def test_adopter_is_under_its_own_instructions() -> None:
    """R27: In an empty dialog and in one that anybody else began; it is an entry of the log, once, and the agent's own prompt needs none."""
    store = MemoryStore()
    for owner, begun in (("tester", False), ("tester", True), ("other", True)):
        agent, provider = scripted(["ok", "ok"], store=store)
        dialog = Session.create(store, owner=owner).root
        if begun:
            dialog.put_prompt(Prompt(path="theirs", prompt="You are somebody else."), role="system")
        agent.adopt("theirs", dialog).respond("go")
        agent.respond("go on")
        assert [content for role, content in sent(provider.requests[1]) if role == "system"] == ["You are tested."]
        assert kinds(agent.current_dialog).count("instructions") == 1
        assert len(agent.current_dialog.view().omissions) == begun
        later, _ = scripted(["ok"], store=store)
        later.adopt("again", Session.open(store, dialog.session_id).root).respond("and now?")
        assert kinds(later.current_dialog).count("instructions") == 1
    agent, _ = scripted(["ok"])
    agent.adopt("mine", agent.close("main")).respond("go")
    assert kinds(agent.current_dialog).count("instructions") == 0


def test_adopter_may_keep_the_dialogs_instructions() -> None:
    """`instructions="dialog"` writes nothing; another word is refused, and so are missing variables of a dialog that somebody else began."""
    dialog = Session.create(MemoryStore(), owner="other").root
    dialog.put_text("You are somebody else.", role="system")
    named = Prompt(path="t/named", prompt="You are {name}.")
    agent = Agent("tester", named, MODEL, ScriptedProvider(["ok", "ok"]))
    with pytest.raises(InvalidInput, match="name"):
        agent.adopt("theirs", dialog)
    with pytest.raises(InvalidInput, match="both"):
        agent.adopt("theirs", dialog, instructions="both")  # type: ignore[arg-type]
    agent.adopt("theirs", dialog, instructions="dialog").respond("go")
    assert systems(agent) == ["You are somebody else."]
    agent.close("theirs")
    agent.adopt("ours", dialog, {"name": "Ann"}).respond("go on")
    assert systems(agent) == ["You are Ann."]


def test_prompt_args_are_used_or_refused() -> None:
    """Law 14: arguments for a prompt that has no variables, or for one that is rendered already, are refused; nothing is written."""
    store, named = MemoryStore(), Prompt(path="t/named", prompt="You are {name}.")
    plain = Agent("plain", "You are {name}.", MODEL, ScriptedProvider([]), store=store)
    agent = Agent("named", named, MODEL, ScriptedProvider(["ok", "ok"]), store=store)
    given = {"name": "Ann"}
    refused: list[Callable[[], object]] = [
        lambda: plain.open("main", given),
        lambda: plain.respond("Hi", prompt_args=given),
        lambda: plain.respond(messages=[{"role": "user", "content": "Hi"}], prompt_args=given),
        lambda: agent.respond("Hi", alias="main", prompt_args=given),
        lambda: agent.receive_prompt(Prompt(path="p", prompt="Go."), given),
        lambda: agent.current_dialog.put_prompt(Prompt(path="p", prompt="Go."), given),
        lambda: agent.adopt("theirs", dialog, given, instructions="dialog"),
    ]
    assert agent.respond("Hi", prompt_args=given).content == "ok"
    dialog = agent.current_dialog
    assert systems(agent) == ["You are Ann."]
    before, sessions = kinds(dialog), len(list(store.sessions()))
    for each in refused:
        with pytest.raises(InvalidInput, match="prompt_args"):
            each()
    assert (kinds(dialog), len(list(store.sessions()))) == (before, sessions)


def test_a_dialog_of_another_agent_is_adopted_first() -> None:
    """Without `adopt`, its alias is unknown and the dialog itself is not one; both errors say what to do. An agent's own first call begins a session of its own."""
    first, _ = scripted(["one", "three"])
    first.respond("go")
    dialog = first.current_dialog
    second = Agent("second", "You are second.", MODEL, ScriptedProvider(["two", "own"]), store=first.store)
    with pytest.raises(NotFound, match=r"adopt\(alias, dialog\)"):
        second.respond("And you?", alias="main")
    with pytest.raises(InvalidInput, match=r"adopt\(alias, dialog\)"):
        second.respond("And you?", alias=dialog)  # type: ignore[call-overload]
    assert roles(dialog) == ["system", "user", "assistant"]
    assert second.adopt("main", dialog).respond("And you?").content == "two"
    assert second.close("main") is dialog
    assert second.respond("And you?").content == "own"
    assert second.current_dialog.session_id != dialog.session_id


def test_adopters_take_turns_under_their_own_instructions() -> None:
    """Two agents with one dialog, one of them with core memory: each answers under its own; a compaction and a fork do not change that."""
    store = MemoryStore()
    memory = CoreMemory(Session.create(store, "memory").root)
    memory.create("human", "Ada")
    first, asked = scripted(["one", "two", "three"], store=store)
    second = Agent("second", "You are second.", MODEL, ScriptedProvider(["a", "b"]), store=store, memory=memory)
    dialog = first.close("main")
    first.adopt("main", dialog).respond("go")
    second.adopt("main", Session.open(store, dialog.session_id).root).respond("go")
    assert systems(second)[0] == "You are second."
    assert "Ada" in systems(second)[1]
    memory.append("human", "likes tea")
    second.respond("go")
    assert systems(second)[0] == "You are second."
    assert "tea" in systems(second)[1]
    first.respond("go")
    assert systems(first) == ["You are tested."]
    talkative(first)
    first.current_dialog.compaction.preview("fold", 3_000, model=MODEL).approve()
    assert systems(first) == ["You are tested."]
    first.fork("main", "child").respond("go")
    assert systems(first) == ["You are tested."]
    assert [content for role, content in sent(asked.requests[-1]) if role == "system"] == ["You are tested."]


def test_open_session_is_resumed_as_it_is() -> None:
    """A session that the program has open already need not be looked for; its id is the alias."""
    agent, _ = scripted(["One."], store=MemoryStore())
    agent.respond("How many?")
    session = Session.open(agent.store, agent.current_dialog.session_id)
    other, _ = scripted(["Two."], store=agent.store)
    other.resume(session)
    assert list(other.dialogs) == ["main", session.session_id]
    assert other.respond("And now?").content == "Two."
    assert other.current_dialog.session is session
