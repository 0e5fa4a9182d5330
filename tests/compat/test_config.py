"""Configurations: reading, merging, and errors with their place."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver import build_agents, load_config
from palaver.context.presets.own import DefaultContextManager, OffloadContextManager
from palaver.errors import InvalidConfig, NotFound
from palaver.prompts import Prompt, Runtime
from palaver.tokens import Budget
from palaver.tools import MCP, tool

BASE = """\
global:
  model_name: gpt-4o
  invoker: {invoker: scripted, script: [hi]}
  model_args: {temperature: 0.1, nested: {a: 1, b: 2}}
agent_configs:
  - name: one
    system_prompt: You are {who}.
  - name: two
    system_prompt_path: shared/two
    model_name: gpt-4o-mini
    model_args: {max_tokens: 9, nested: {b: 3}}
"""


@tool
def search(query: str) -> str:
    """Find something."""
    return query


@pytest.fixture
def runtime() -> Runtime:
    """A runtime with what the configurations here refer to."""
    made = Runtime()
    made.register_prompt(Prompt(path="shared/two", prompt="You are the second.", metadata={"v": 1}))
    made.register_tool(search, namespace="web.tools")
    return made


def one(text: str, runtime: Runtime | None = None) -> Any:  # noqa: ANN401 - an agent
    """Build the only agent of a configuration whose section is this text."""
    indented = "\n".join(f"    {line}" for line in text.splitlines())
    source = f"agent_configs:\n  - name: one\n    model_name: gpt-4o\n    system_prompt: hi\n    invoker: scripted\n{indented}\n"
    return build_agents(load_config(source), runtime=runtime or Runtime())["one"]


# --- what is read ------------------------------------------------------------------------------------------------------------


def test_agents_merge_over_the_global_configuration(runtime: Runtime) -> None:
    """R99, R168: global holds for every agent; mappings are merged member by member, anything else is replaced."""
    config = load_config(BASE)
    assert list(config) == ["one", "two"]
    agents = build_agents(config, runtime=runtime)
    assert [agent.model for agent in agents.values()] == ["gpt-4o", "gpt-4o-mini"]
    assert agents["one"].model_args == {"temperature": 0.1, "nested": {"a": 1, "b": 2}}
    assert agents["two"].model_args == {"temperature": 0.1, "max_tokens": 9, "nested": {"a": 1, "b": 3}}
    assert agents["one"].system_prompt() == "You are {who}.", "a text is words; a registered prompt is a template"
    assert agents["two"].system_prompt is runtime.get_prompt("shared/two")
    assert agents["one"].llm_invoker is agents["two"].llm_invoker
    assert agents["one"].runtime is runtime


def test_every_setting_reaches_the_agent(runtime: Runtime) -> None:
    """Each key of an agent's section ends in the agent that is built."""
    agent = one(
        """\
api_type: response
retry: {attempts: 4, base: 0.5}
max_exception_retry: 1
max_interrupt_steps: 2
max_llm_recall: 3
budget: {max_tokens: 9000}
tools: [web:search]
mcp_servers: [{server_label: docs, server_url: "https://example.org/mcp"}]
addon_args: {web_search: true}
format: {type: object, properties: {bird: {type: string}}, required: [bird]}
metadata: {team: birds}
inherit_system_contract: false
parallel_tools: false""",
        runtime,
    )
    options = agent.options
    assert (options.api_type, options.retry.attempts, options.retry.base) == ("response", 4, 0.5)
    assert [getattr(options, name) for name in ("max_exception_retry", "max_interrupt_steps", "max_llm_recall")] == [
        1,
        2,
        3,
    ]
    assert agent.budget == Budget.parse({"max_tokens": 9000}, "gpt-4o")
    assert agent.tools == (search,)
    assert agent.system_prompt.mcp_servers_list == (MCP("docs", "https://example.org/mcp"),)
    assert agent.system_prompt.addon_args == {"web_search": True}
    assert agent.system_prompt.metadata == {"team": "birds"}
    assert agent.system_prompt.read('{"bird": "heron"}') == {"bird": "heron"}
    assert (options.inherit_system_contract, options.parallel_tools) == (False, False)


# --- context managers --------------------------------------------------------------------------------------------------------


def test_context_managers_by_name_with_their_keys() -> None:
    """C16, R167, R170, R171: a name, or a mapping with all the manager's own keys; without a type the default manager; null and nothing are none."""
    cases = {
        "{type: default, max_tokens: 32000}": (DefaultContextManager, 32_000),
        "default": (DefaultContextManager, 128_000),
        "{max_tokens: 32000}": (DefaultContextManager, 32_000),
        "{type: offload, threshold: 7, max_tokens: 20000}": (OffloadContextManager, 20_000),
    }
    for text, (kind, window) in cases.items():
        manager = one(f"context_manager: {text}").context_manager
        assert isinstance(manager, kind)
        assert (manager.model_name, manager.max_tokens) == ("gpt-4o", window)
    for text in ("context_manager: {type: null}", "context_manager: null", "context_manager: {type: 'null'}", ""):
        assert one(text).context_manager is None


# --- what is refused ---------------------------------------------------------------------------------------------------------

AGENT = "agent_configs:\n  - name: one\n    model_name: gpt-4o\n    system_prompt: hi\n    invoker: scripted\n"


WRONG: list[tuple[str, int, str, tuple[str, ...], str]] = [
        ("agent_configs: []\nagent_config: []\n", 2, "agent_config", ("agent_configs",), "no such key"),
        (AGENT + "    modle_args: {}\n", 6, "agent_configs[0].modle_args", ("model_args",), "no such key"),
        ("global:\n  max_interupt_steps: 2\n" + AGENT, 2, "global.max_interupt_steps", ("max_interrupt_steps",), "no such key"),
        (AGENT + "    retry: {atempts: 3}\n", 6, "agent_configs[0].retry.atempts", ("attempts",), "no such key"),
        (AGENT + "    max_llm_recall: true\n", 6, "agent_configs[0].max_llm_recall", (), "must be a valid integer"),
        (AGENT + "    api_type: chat\n", 6, "agent_configs[0].api_type", (), "'completion' or 'response'"),
        (AGENT + "    name: two\n", 6, "", (), "'name' appears twice"),
        (AGENT + "    system_prompt_path: p\n", 6, "agent_configs[0].system_prompt_path", (), "also has a system_prompt"),
        (AGENT + "    metadata: {1: [a}\n", 6, "", (), "not YAML"),
        (AGENT + "    system: !!python/name:os.system\n", 6, "", (), "not YAML"),
        (AGENT.replace("    model_name: gpt-4o\n", ""), 2, "agent_configs[0]", (), "model_name is missing"),
        (AGENT.replace("    system_prompt: hi\n", ""), 2, "agent_configs[0]", (), "has no system_prompt or system_prompt_path"),
        (AGENT + AGENT[15:], 6, "agent_configs[1].name", (), "two agents are called 'one'"),
        ("global: {name: x}\n" + AGENT, 1, "global.name", (), "its own name"),
]  # fmt: skip


def test_error_names_the_place(tmp_path: Path) -> None:
    """R99: file, line, key, and what was perhaps meant; nothing is built."""
    path = tmp_path / "agents.yaml"
    for text, line, key, close, what in WRONG:
        path.write_text(text, encoding="utf-8")
        with pytest.raises(InvalidConfig) as caught:
            load_config(path)
        error = caught.value
        assert (error.file, error.line, error.key) == (str(path), line, key)
        assert error.close[:1] == close
        assert what in error.message
    with pytest.raises(InvalidConfig, match="not YAML"):
        load_config("a: " + "[" * 2_000 + "\n")


def test_a_reference_that_leads_nowhere(runtime: Runtime) -> None:
    """R147, R174: it is a KeyError of its own kind, with what is close, and the place in the hint."""
    cases: list[Any] = [
        ("    tools: [web:serach]\n", "web.tools:search", "line 6, agent_configs[0].tools[0]"),
        ("    context_manager: {type: defautl}\n", "default", "line 6, agent_configs[0].context_manager.type"),
        ("    invoker: {invoker: scriptd}\n", "scripted", "line 5, agent_configs[0].invoker"),
    ]
    for text, close, place in cases:
        source = AGENT.replace("    invoker: scripted\n", "") if "invoker" in text else AGENT
        with pytest.raises(NotFound) as caught:
            build_agents(load_config(source + text), runtime=runtime)
        assert close in caught.value.close
        assert place in str(caught.value)
        assert isinstance(caught.value, KeyError)


def test_secrets_are_not_shown() -> None:
    """Neither a specification nor a refusal prints what stands in the settings: keys, headers, environments."""
    config = load_config(AGENT.replace("invoker: scripted", "invoker: {invoker: openai, api_key: sk-secret}"))
    assert "sk-secret" not in repr(config)
    for broken in ("    mcp_servers: {env: {TOKEN: sk-secret}}\n", "    invoker: [sk-secret]\n"):
        with pytest.raises(InvalidConfig) as caught:
            load_config(AGENT + broken)
        assert "sk-secret" not in str(caught.value)


@settings(max_examples=40)
@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=60).map(lambda text: text + "\n"))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No text makes anything but a configuration or a typed refusal."""
    with suppress(InvalidConfig):
        load_config(text)
