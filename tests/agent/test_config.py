"""Configurations: reading, merging, and errors with their place."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.agent import build_agents, load_config
from palaver.context import ContextManager
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


def test_r99_agents_of_a_configuration(runtime: Runtime) -> None:
    """Global holds for every agent; mappings are merged member by member (R168), anything else is replaced."""
    config = load_config(BASE)
    assert list(config) == ["one", "two"]
    agents = build_agents(config, runtime=runtime)
    assert [agent.model for agent in agents.values()] == ["gpt-4o", "gpt-4o-mini"]
    assert agents["one"].model_args == {"temperature": 0.1, "nested": {"a": 1, "b": 2}}
    assert agents["two"].model_args == {"temperature": 0.1, "max_tokens": 9, "nested": {"a": 1, "b": 3}}
    assert agents["one"].system_prompt.template_vars == {"who"}
    assert agents["two"].system_prompt is runtime.get_prompt("shared/two")
    assert agents["one"].llm_invoker is agents["two"].llm_invoker
    assert agents["one"].runtime is runtime


def test_a_file_a_text_and_a_mapping_are_read_alike(tmp_path: Path) -> None:
    """The three forms give the same specifications; a configuration is given back as it is."""
    path = tmp_path / "agents.yaml"
    path.write_text(BASE, encoding="utf-8")
    as_text = load_config(BASE)
    mapping = {
        "global": {"model_name": "gpt-4o", "invoker": {"invoker": "scripted", "script": ["hi"]}, "model_args": {"temperature": 0.1, "nested": {"a": 1, "b": 2}}},
        "agent_configs": [
            {"name": "one", "system_prompt": "You are {who}."},
            {"name": "two", "system_prompt_path": "shared/two", "model_name": "gpt-4o-mini", "model_args": {"max_tokens": 9, "nested": {"b": 3}}},
        ],
    }  # fmt: skip
    read = [load_config(each) for each in (path, str(path), BASE, mapping)]
    assert len({repr({name: spec.model_dump() for name, spec in each.items()}) for each in read}) == 1
    assert load_config(as_text) is as_text
    assert load_config("{agent_configs: [{name: a, model: m, system_prompt: s}]}")["a"].model_name == "m"


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
    assert (options["api_type"], options["retry"].attempts, options["retry"].base) == ("response", 4, 0.5)
    assert [options[name] for name in ("max_exception_retry", "max_interrupt_steps", "max_llm_recall")] == [1, 2, 3]
    assert agent.budget == Budget.parse({"max_tokens": 9000}, "gpt-4o")
    assert agent.tools == (search,)
    assert agent.system_prompt.mcp_servers_list == (MCP("docs", "https://example.org/mcp"),)
    assert agent.system_prompt.addon_args == {"web_search": True}
    assert agent.system_prompt.metadata == {"team": "birds"}
    assert agent.system_prompt.read('{"bird": "heron"}') == {"bird": "heron"}
    assert (options["inherit_system_contract"], options["parallel_tools"]) == (False, False)


def test_registered_prompt_is_extended(runtime: Runtime) -> None:
    """Servers and metadata of the configuration are added to the prompt's own; the registered prompt is not changed."""
    source = BASE.replace("    model_name: gpt-4o-mini\n", "    model_name: gpt-4o-mini\n    metadata: {w: 2}\n")
    agent = build_agents(load_config(source), ["two"], runtime=runtime)["two"]
    assert agent.system_prompt.metadata == {"v": 1, "w": 2}
    assert agent.system_prompt.path == "shared/two"
    assert runtime.get_prompt("shared/two").metadata == {"v": 1}


def test_a_prompt_of_an_agent_replaces_the_inherited_one() -> None:
    """An agent that refers to a prompt does not inherit the template of `global`, nor the other way round."""
    source = "global: {model: m, system_prompt: shared}\nagent_configs:\n  - {name: a}\n  - {name: b, system_prompt_path: p}\n"
    config = load_config(source)
    assert (config["a"].system_prompt, config["a"].system_prompt_path) == ("shared", None)
    assert (config["b"].system_prompt, config["b"].system_prompt_path) == (None, "p")


def test_a_number_of_retries() -> None:
    """A number counts the tries after the first."""
    cases: list[Any] = [("0", 1), ("3", 4)]
    for retry, attempts in cases:
        assert one(f"retry: {retry}").options["retry"].attempts == attempts


def test_invokers_of_the_runtime_come_first() -> None:
    """A builder that is registered with the runtime serves its agents and nobody else's."""
    runtime = Runtime()
    made: list[dict[str, Any]] = []
    inner = build_agents(load_config(BASE), ["one"], runtime=Runtime())["one"].llm_invoker

    def builder(fields: dict[str, Any]) -> Any:  # noqa: ANN401 - an invoker
        made.append(fields)
        return inner

    runtime.register_invoker("mine", builder)
    source = "agent_configs: [{name: a, model: m, system_prompt: s, invoker: {invoker: mine, key: 3}}]\n"
    assert build_agents(load_config(source), runtime=runtime)["a"].llm_invoker is inner
    assert made == [{"key": 3}]
    with pytest.raises(NotFound, match="invoker 'mine'"):
        build_agents(load_config(source), runtime=Runtime())


# --- context managers --------------------------------------------------------------------------------------------------------


def test_c16_context_managers_by_name_with_their_keys() -> None:
    """A name, or a mapping with all the manager's own keys; a mapping without a type is the default manager (R167)."""
    cases: list[Any] = [
        ("context_manager: {type: default, max_tokens: 32000}", DefaultContextManager, 32_000),
        ("context_manager: {type: default}", DefaultContextManager, 128_000),
        ("context_manager: default", DefaultContextManager, 128_000),
        ("context_manager: {max_tokens: 32000}", DefaultContextManager, 32_000),
        ("context_manager: {type: offload, threshold: 7, max_tokens: 20000}", OffloadContextManager, 20_000),
    ]
    for text, kind, window in cases:
        manager = one(text).context_manager
        assert isinstance(manager, kind)
        assert (manager.model_name, manager.max_tokens) == ("gpt-4o", window)


def test_r170_r171_no_context_manager() -> None:
    """Null switches it off; leaving it out everywhere does, too."""
    cases: list[Any] = [
        "context_manager: {type: null}",
        "context_manager: null",
        "context_manager: {type: 'null'}",
        "{}",
    ]
    for text in cases:
        assert one("" if text == "{}" else text).context_manager is None


def test_c16_every_vocabulary_of_budgets() -> None:
    """A context manager and a budget take the words of any of the libraries, and mean the same by them."""
    cases: list[Any] = [
        "max_token_context_length: 20000, context_usage_ratio: 0.5",
        "max_tokens: 20000, reserve_tokens: 4000, keep_recent_tokens: 2000",
        "context_window: 20000, buffer: 2000, max_output: 1000",
        "max_tokens: 20000, SAFETY_BUFFER: 1000, preserve_last_messages: 4",
    ]
    for words in cases:
        manager = one(f"context_manager: {{type: default, {words}}}").context_manager
        assert manager.budget == one(f"budget: {{{words}}}").budget


def test_r168_global_manager_is_merged() -> None:
    """Only the keys that an agent gives change."""
    source = """\
global:
  model: gpt-4o
  system_prompt: s
  invoker: scripted
  context_manager: {type: offload, max_tokens: 64000, threshold: 50}
agent_configs:
  - name: a
    context_manager: {max_tokens: 16000}
  - name: b
"""
    agents = build_agents(load_config(source), runtime=Runtime())
    managers = [agents[name].context_manager for name in "ab"]
    assert [(each.max_tokens, each.threshold) for each in managers if isinstance(each, OffloadContextManager)] == [
        (16_000, 50),
        (64_000, 50),
    ]


# --- what is refused ---------------------------------------------------------------------------------------------------------

AGENT = "agent_configs:\n  - name: one\n    model_name: gpt-4o\n    system_prompt: hi\n    invoker: scripted\n"


WRONG: list[tuple[str, int, str, tuple[str, ...], str]] = [
        ("agent_configs: []\nagent_config: []\n", 2, "agent_config", ("agent_configs",), "no such key"),
        (AGENT + "    modle_args: {}\n", 6, "agent_configs[0].modle_args", ("model_args",), "no such key"),
        ("global:\n  max_interupt_steps: 2\n" + AGENT, 2, "global.max_interupt_steps", ("max_interrupt_steps",), "no such key"),
        (AGENT + "    retry: {atempts: 3}\n", 6, "agent_configs[0].retry.atempts", ("attempts",), "no such key"),
        (AGENT + "    retry: {attempts: 0}\n", 6, "agent_configs[0].retry.attempts", (), "must be greater than"),
        (AGENT + "    max_llm_recall: -1\n", 6, "agent_configs[0].max_llm_recall", (), "must be greater than"),
        (AGENT + "    max_llm_recall: true\n", 6, "agent_configs[0].max_llm_recall", (), "must be a valid integer"),
        (AGENT + "    tools: search\n", 6, "agent_configs[0].tools", (), "must be a valid list, not 'search'"),
        (AGENT + "    api_type: chat\n", 6, "agent_configs[0].api_type", (), "'completion' or 'response'"),
        (AGENT + "    name: two\n", 6, "", (), "'name' is given twice"),
        (AGENT + "    model: other\n", 6, "agent_configs[0].model", (), "the two differ"),
        (AGENT + "    system_prompt_path: p\n", 6, "agent_configs[0].system_prompt_path", (), "system_prompt already"),
        (AGENT + "    metadata: {1: [a}\n", 6, "", (), "not YAML"),
        (AGENT + "    system: !!python/name:os.system\n", 6, "", (), "not YAML"),
        (AGENT.replace("    model_name: gpt-4o\n", ""), 2, "agent_configs[0]", (), "model_name is missing"),
        (AGENT.replace("    system_prompt: hi\n", ""), 2, "agent_configs[0]", (), "has no system_prompt or system_prompt_path"),
        (AGENT + AGENT[15:], 6, "agent_configs[1].name", (), "two agents called 'one'"),
        ("agent_configs:\n  - one\n", 2, "agent_configs[0]", (), "must be a valid dictionary"),
        ("global: {name: x}\n" + AGENT, 1, "global.name", (), "a name of its own"),
        ("- a\n- b\n", 1, "", (), "is a mapping"),
        ("a: b: c\n", 1, "", (), "not YAML"),
]  # fmt: skip


def test_r99_error_names_the_place(tmp_path: Path) -> None:
    """File, line, key, and what was perhaps meant; nothing is built."""
    path = tmp_path / "agents.yaml"
    for text, line, key, close, what in WRONG:
        path.write_text(text, encoding="utf-8")
        with pytest.raises(InvalidConfig) as caught:
            load_config(path)
        error = caught.value
        assert (error.file, error.line, error.key) == (str(path), line, key)
        assert error.close[:1] == close
        assert what in error.message


def test_building_error_names_the_place() -> None:
    """Values that a context manager, a budget, a policy of retries or a server does not take."""
    cases: list[Any] = [
        (
            "    context_manager: {type: default, max_tokns: 3}\n",
            6,
            "agent_configs[0].context_manager.max_tokns",
            "not a word for a budget",
        ),
        (
            "    context_manager: {type: mine, size: 3}\n",
            6,
            "agent_configs[0].context_manager.size",
            "unexpected keyword",
        ),
        ("    budget: {max_tokens: x}\n", 6, "agent_configs[0].budget", "max_tokens"),
        ("    format: {type: objekt}\n", 6, "agent_configs[0].format", "JSON schema"),
        (
            "    mcp_servers: [{server_label: a}]\n",
            6,
            "agent_configs[0].mcp_servers[0]",
            "either a server_url or a command",
        ),
    ]
    for text, line, key, what in cases:
        runtime = Runtime()

        @runtime.register_context_manager
        class Mine(ContextManager):
            name = "mine"

            def __init__(self, model_name: str) -> None:
                self.model_name = model_name

            def __call__(self, dialog: Any) -> Any:  # noqa: ANN401 - the signature of every manager
                return dialog

        config = load_config(AGENT + text)
        with pytest.raises(InvalidConfig, match=what) as caught:
            build_agents(config, runtime=runtime)
        assert (caught.value.line, caught.value.key) == (line, key)


def test_r174_a_reference_that_leads_nowhere(runtime: Runtime) -> None:
    """It is a KeyError of its own kind, with what is close, and the place in the hint."""
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


def test_an_unknown_prompt_and_an_unknown_agent(tmp_path: Path) -> None:
    """The path of a prompt is looked up when the agent is built; an agent that is not there is told with the file."""
    path = tmp_path / "agents.yaml"
    path.write_text(BASE, encoding="utf-8")
    config = load_config(path)
    with pytest.raises(NotFound, match=r"agents\.yaml:9, agent_configs\[1\]\.system_prompt_path"):
        build_agents(config, runtime=Runtime())
    with pytest.raises(NotFound, match="Agents: one, two") as caught:
        config["tow"]
    assert caught.value.close == ("two",)
    assert "agents.yaml" in str(caught.value)


def test_a_file_that_is_not_there_names_its_neighbours(tmp_path: Path) -> None:
    """So does one that is no text; a folder is none either."""
    (tmp_path / "agents.yaml").write_text(BASE, encoding="utf-8")
    with pytest.raises(NotFound) as missing:
        load_config(tmp_path / "agent.yaml")
    assert missing.value.close == (str(tmp_path / "agents.yaml"),)
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    for broken in ("binary.yaml", "."):
        with pytest.raises(InvalidConfig, match="cannot be read"):
            load_config(tmp_path / broken)


def test_secrets_are_not_shown() -> None:
    """Neither a specification nor a refusal prints what stands in the settings: keys, headers, environments."""
    config = load_config(AGENT.replace("invoker: scripted", "invoker: {invoker: openai, api_key: sk-secret}"))
    assert "sk-secret" not in repr(config)
    for broken in ("    mcp_servers: {env: {TOKEN: sk-secret}}\n", "    llm_invoker: [sk-secret]\n"):
        with pytest.raises(InvalidConfig) as caught:
            load_config(AGENT + broken)
        assert "sk-secret" not in str(caught.value)


def test_aliases_repeat_values_and_dates_are_text() -> None:
    """YAML's own aliases work; a date stays as it is written."""
    source = "global: {model: m, system_prompt: s, model_args: &args {a: 2026-01-02}}\nagent_configs: [{name: a, metadata: *args}]\n"
    assert load_config(source)["a"].metadata == {"a": "2026-01-02"}


def test_deep_nesting_is_a_typed_error() -> None:
    """The interpreter does not crash."""
    with pytest.raises(InvalidConfig, match="not YAML"):
        load_config("a: " + "[" * 2_000 + "\n")


@settings(max_examples=40)
@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=60).map(lambda text: text + "\n"))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No text makes anything but a configuration or a typed refusal."""
    with suppress(InvalidConfig):
        load_config(text)
