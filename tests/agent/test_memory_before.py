"""Memory that was kept by an agent's name, before it became that of each subject: it is there, and whoever does not read it any more is told."""

import warnings

import pytest

from palaver import CoreMemory, MemoryStore
from palaver.agent.config import build_agents, load_config
from palaver.prompts import Runtime
from palaver.session import Session
from palaver.session.memory import MemoryWarning


def config(memory: str) -> str:
    """Give a configuration of one agent with a memory."""
    return f"""
global:
  model_name: gpt-4o
  invoker: {{invoker: scripted, script: [Fine.]}}
  system_prompt: You help.
agent_configs:
  - {{name: helper, memory: {memory}}}
"""


def before() -> MemoryStore:
    """Give a store with memory as it was kept then."""
    store = MemoryStore()
    session = Session.create(store, "helper", owner="memory", metadata={"palaver_memory": True})
    CoreMemory(session.root).create("human", value="Likes tea.")
    return store


@pytest.mark.parametrize("memory", ["true", "helper", "{blocks: {human: {description: who}}}"])
def test_memory_by_an_agents_name_is_named_with_the_words_that_bring_it_back(memory: str) -> None:
    """One warning when the agents are built; the words that it gives are a configuration that reads it."""
    store = before()
    with pytest.warns(MemoryWarning) as told:
        build_agents(load_config(config(memory)), runtime=Runtime(), store=store)
    (said,) = (str(each.message) for each in told)
    assert "memory 'helper'" in said
    words = said.partition("write `memory: ")[2].partition("`")[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        agent = build_agents(load_config(config(words)), runtime=Runtime(), store=store)["helper"]
    assert isinstance(agent.memory, CoreMemory)
    assert agent.memory.get("human").value == "Likes tea."


def test_nobody_is_told_where_there_is_none() -> None:
    """A new store, a memory of another name, and memory of subjects say nothing, however often the agents are built."""
    store = MemoryStore()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            agent = build_agents(load_config(config("true")), runtime=Runtime(), store=store)["helper"]
            agent.open("x", subject="ann")
            agent.respond(input="Hi")
            store.update_session(agent.current_dialog.session_id, name="done")
        build_agents(load_config(config("true")), runtime=Runtime(), store=MemoryStore())
        build_agents(load_config(config("other")), runtime=Runtime(), store=before())
