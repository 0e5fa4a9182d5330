"""The agent itself: short forms of its constructor, adopted dialogs, and what goes to the provider end to end."""

import warnings
from pathlib import Path
from typing import Any

import pytest

from palaver import Agent, Prompt, Session
from palaver.agent import AgentWarning
from palaver.errors import InvalidInput, NotFound
from palaver.models import ScriptedProvider
from palaver.store import MemoryStore
from palaver.tools import tool
from tests.agent.helper import MODEL, roles, scripted


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


def test_adopted_dialog_with_another_prompt_warns() -> None:
    """R27: whoever owns it: another system prompt stays in force, and the agent says so; its own prompt is silent."""
    cases: list[Any] = [("tester", 1), ("other", 1)]
    for owner, warned in cases:
        agent, _ = scripted(["ok"])
        store = MemoryStore()
        dialog = Session.create(store, "theirs", owner=owner).root
        dialog.put_prompt(Prompt(path="theirs", prompt="You are somebody else."), role="system")
        with pytest.warns(AgentWarning, match="another system prompt") as found:
            agent.adopt("theirs", dialog)
        assert len(found) == warned
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            agent.adopt("mine", agent.close("main"))
