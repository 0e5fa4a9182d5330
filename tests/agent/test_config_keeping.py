"""What a configuration says of compacting and of memory: settled, shared, and refused with the path of what is wrong."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from palaver.agent import Agent, AutoCompact
from palaver.agent.config import build_agents, load_config
from palaver.context.presets import Manus
from palaver.context.summary import HEADINGS
from palaver.context.triggers import EventCount, Idle, Overflow, Tokens
from palaver.errors import InvalidConfig, NotFound, UnknownPolicy
from palaver.prompts import Runtime
from palaver.session.memory import CoreMemory, recall_tools
from palaver.store import MemoryStore, SqliteStore, Store
from palaver.tokens import Budget
from tests.session.memory.test_kept import shown

SUMMARY = "\n\n".join(f"## {heading}\nwhat a model says of it" for heading in HEADINGS)


def built(store: Store | None = None, /, script: Any = ("Done.",), **settings: Any) -> Agent:  # noqa: ANN401 - any JSON value
    """Build the only agent of a configuration with these settings."""
    section = {"name": "one", "model_name": "gpt-4o", "system_prompt": "hi", **settings}
    section.setdefault("invoker", {"invoker": "scripted", "script": list(script)})
    return build_agents(load_config({"agent_configs": [section]}), runtime=Runtime(), store=store)["one"]


def refused(**settings: Any) -> InvalidConfig:  # noqa: ANN401 - any JSON value
    """Give the error for settings that cannot be used."""
    with pytest.raises(InvalidConfig) as caught:
        built(**settings)
    return caught.value


# --- compacting ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("off", [None, False])
def test_without_it_nothing_compacts(off: object) -> None:
    """Null and false are as if nothing were said."""
    assert built(compact=off).compact is None
    assert built().compact is None


def test_all_that_compacting_takes_can_be_said() -> None:
    """True is what the class does; a name is the policy; a mapping has all fields by their names."""
    assert built(compact=True).compact == AutoCompact()
    by_name = built(compact="manus").compact
    assert by_name is not None
    assert isinstance(by_name.policy, Manus)
    how = built(
        compact={
            "policy": {"type": "swe-agent", "n": 3},
            "triggers": [
                "overflow",
                {"type": "tokens", "share": 0.5, "limit": 9_000},
                {"type": "events", "limit": 40},
                {"type": "idle", "seconds": 60},
            ],
            "budget": {"max_tokens": 30_000},
            "focus": "the heron page",
            "seconds": 9.5,
            "input_tokens": 8_000,
        }
    ).compact
    assert how is not None
    assert how.policy.name == "swe-agent"  # type: ignore[union-attr]
    assert how.triggers == (Overflow(), Tokens(share=0.5, limit=9_000), EventCount(40), Idle(seconds=60))
    assert how.budget == Budget.parse({"max_tokens": 30_000}, "gpt-4o")
    assert (how.focus, how.seconds, how.input_tokens, how.summarizer) == ("the heron page", 9.5, 8_000, None)


def test_global_is_merged_member_by_member() -> None:
    """What an agent says is laid over what holds for all; false switches it off."""
    config = {
        "global": {
            "model_name": "gpt-4o",
            "system_prompt": "hi",
            "invoker": "scripted",
            "compact": {"policy": "manus", "focus": "a"},
        },
        "agent_configs": [{"name": "one", "compact": {"focus": "b"}}, {"name": "two", "compact": False}],
    }
    agents = build_agents(load_config(config), runtime=Runtime())
    assert agents["one"].compact is not None
    assert (agents["one"].compact.policy.name, agents["one"].compact.focus) == ("manus", "b")  # type: ignore[union-attr]
    assert agents["two"].compact is None


@pytest.mark.parametrize(
    ("given", "key", "said"),
    [
        (3, "compact", "true or false, a name, or a mapping"),
        ([], "compact", "true or false, a name, or a mapping"),
        ({"polciy": "manus"}, "compact.polciy", "policy"),
        ({"policy": 3}, "compact.policy", "the name of a policy"),
        ({"policy": {"type": "manus", "n": 3}}, "compact.policy", "no word for a budget"),
        ({"triggers": "tokens"}, "compact.triggers", "a list"),
        ({"triggers": [3]}, "compact.triggers[0]", "a name, or a mapping"),
        ({"triggers": ["tokens", "tokenz"]}, "compact.triggers[1]", "Triggers: tokens, events, idle, overflow"),
        ({"triggers": [{"type": "never"}]}, "compact.triggers[0].type", "no trigger"),
        ({"triggers": [{"limit": 3}]}, "compact.triggers[0]", "its type"),
        ({"triggers": [{"type": "events", "limits": 3}]}, "compact.triggers[0].limits", "limit"),
        ({"triggers": [{"type": "events", "limit": "many"}]}, "compact.triggers[0].limit", "a number above 0"),
        ({"triggers": [{"type": "events", "limit": True}]}, "compact.triggers[0].limit", "a number above 0"),
        ({"triggers": [{"type": "tokens", "share": 2}]}, "compact.triggers[0]", "share"),
        ({"budget": True}, "compact.budget", ""),
        ({"budget": "small"}, "compact.budget", ""),
        ({"budget": -3}, "compact.budget", ""),
        ({"focus": 3}, "compact.focus", "a text"),
        ({"seconds": 0}, "compact.seconds", "a number above 0"),
        ({"seconds": "soon"}, "compact.seconds", "a number above 0"),
        ({"input_tokens": 1.5}, "compact.input_tokens", "a whole number above 0"),
        ({"summarizer": 3}, "compact.summarizer", "the name of a model"),
        ({"summarizer": {"modl": "x"}}, "compact.summarizer.modl", "model"),
        ({"summarizer": {"model": 3}}, "compact.summarizer.model", "a text"),
        ({"summarizer": {"max_tokens": 0}}, "compact.summarizer.max_tokens", "above 0"),
        (
            {"summarizer": {"invoker": {"invoker": "scripted", "colour": 3}}},
            "compact.summarizer.invoker",
            "cannot be made",
        ),
    ],
)
def test_what_is_wrong_with_compacting_is_told_by_its_path(given: object, key: str, said: str) -> None:
    """Before any agent is used: the path of the value, and what it must be."""
    error = refused(compact=given)
    assert error.key == f"agent_configs[0].{key}"
    assert said in str(error)


def test_mistakes_in_files_have_their_lines(tmp_path: Path) -> None:
    """A nested value's own line, also where it is inherited from `global`; an unknown policy keeps its kind."""
    text = "global:\n  model_name: gpt-4o\n  invoker: scripted\n  compact:\n    triggers:\n      - tokens\n      - {type: events, limit: none}\nagent_configs:\n  - {name: a, system_prompt: hi}\n"
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(InvalidConfig) as caught:
        build_agents(load_config(tmp_path / "a.yaml"), runtime=Runtime())
    assert (caught.value.key, caught.value.line) == ("global.compact.triggers[1].limit", 7)
    with pytest.raises(UnknownPolicy) as unknown:
        built(compact="manuss")
    assert "agent_configs[0].compact" in str(unknown.value)
    with pytest.raises(NotFound) as missing:
        built(compact={"summarizer": {"invoker": "nobody"}})
    assert "agent_configs[0].compact.summarizer.invoker" in str(missing.value)
    assert "under `compact`" in str(refused(summarizer="gpt-4o-mini"))


@pytest.mark.parametrize(
    ("fields", "there"),
    [
        ({}, False),
        ({"compact": True}, True),
        ({"context_manager": "palaver"}, True),
        ({"compact": True, "recall": False}, False),
        ({"recall": True}, True),
        ({"budget": 9_000}, True),
        ({"context_manager": "full"}, False),
        ({"context_manager": {"type": "full"}}, False),
        ({"compact": True, "format": {"type": "object", "properties": {"n": {"type": "integer"}}}}, False),
    ],
)
def test_where_something_is_left_out_a_model_can_bring_it_back(fields: dict[str, Any], *, there: bool) -> None:
    """What stands for the rest says `recall`: so an agent whose views may become smaller has that tool, unless it is told not to or has to give a structure."""
    agent = built(script=['{"n": 1}'], **fields)
    dialog = agent.open("main").current_dialog
    agent.respond(input="Go.")
    assert ("recall" in {tool.name for tool in dialog.reload().view().tools}) is there


def test_a_tool_of_that_name_stands_in_for_the_tool_that_recalls() -> None:
    """An agent that brings its own `recall`, in whichever form, or all of the kit, has each name once."""

    def recall(handle: str) -> str:
        """Recall."""
        return handle

    for own in (recall_tools()[:1], recall_tools(), (recall,)):
        agent = built(script=["Done."], compact=True)
        agent.tools = own
        dialog = agent.open("main").current_dialog
        agent.respond(input="Go.")
        assert sorted(tool.name for tool in dialog.reload().view().tools) == [
            "list_omitted",
            "recall",
            "search_history",
        ]


def test_an_agent_of_a_configuration_compacts_and_its_own_model_summarises() -> None:
    """The summary is asked for by the agent's invoker, in the middle of a turn; another model and another invoker can be named."""
    agent = built(
        compact={"triggers": [{"type": "tokens", "limit": 3_000}], "budget": 2_500, "summarizer": True},
        script=[SUMMARY, "Done."],
        recall=True,
    )
    dialog = agent.open("main").current_dialog
    dialog.put_text("Make the site faster. You must never push to main.")
    for number in range(30):
        dialog.put_text(f"answer {number} " + "word " * 120, role="assistant")
        dialog.put_text(f"Go on, {number}.")
    assert agent.respond(input="Is it faster?").text_content() == "Done."
    said = shown(dialog.reload().view())
    assert "what a model says of it" in said
    assert "You must never push to main." in said
    assert {"recall", "search_history", "list_omitted"} <= {tool.name for tool in dialog.view().tools}
    other = built(
        compact={"summarizer": {"model": "cheap", "invoker": {"invoker": "scripted", "script": []}, "max_tokens": 300}}
    )
    assert other.compact is not None
    by: Any = other.compact.summarizer
    assert (by.model, by.max_tokens) == ("cheap", 300)
    assert by.invoker is not other.llm_invoker


# --- memory ----------------------------------------------------------------------------------------------------------------------


def test_agents_share_a_memory_by_its_name_when_asked_to() -> None:
    """The same name is the same memory; its blocks stand in the instructions, and each sees the other's edits."""
    config = {
        "global": {
            "model_name": "gpt-4o",
            "system_prompt": "hi",
            "invoker": {"invoker": "scripted", "script": ["Yes."]},
        },
        "agent_configs": [
            {
                "name": "one",
                "memory": {
                    "name": "team",
                    "shared": True,
                    "blocks": {
                        "human": {"value": "Name: Ada.", "limit": 60, "description": "Who it is."},
                        "rules": "Be brief.",
                    },
                },
            },
            {"name": "two", "memory": {"name": "team", "shared": True}},
            {"name": "three", "memory": {"shared": True}},
            {"name": "four"},
        ],
    }
    agents = build_agents(load_config(config), runtime=Runtime(), store=MemoryStore())
    one, two, three = (agents[name].memory for name in ("one", "two", "three"))
    assert isinstance(one, CoreMemory)
    assert isinstance(two, CoreMemory)
    assert isinstance(three, CoreMemory)
    assert agents["four"].memory is None
    two.replace("human", "Ada", "Grace", by="two")
    assert one.get("human").value == "Name: Grace."
    assert (one.get("human").limit, one.get("rules").value) == (60, "Be brief.")
    assert three.blocks == ()
    agents["one"].open("main")
    agents["one"].respond(input="Who am I?")
    assert "Name: Grace." in str(agents["one"].current_dialog.view().system)


def test_the_next_process_finds_it_as_it_was_left(tmp_path: Path) -> None:
    """What was learned is not written over by what the configuration says; a block that is new is made."""
    blocks = {"human": "Name: unknown."}
    with SqliteStore(tmp_path / "s.db") as store:
        memory = built(store, memory={"name": "team", "shared": True, "blocks": blocks}).memory
        assert isinstance(memory, CoreMemory)
        memory.rethink("human", "Name: Ada.")
    with SqliteStore(tmp_path / "s.db") as store:
        memory = built(store, memory={"name": "team", "shared": True, "blocks": {**blocks, "new": None}}).memory
        assert isinstance(memory, CoreMemory)
        assert [(block.label, block.value) for block in memory.blocks] == [("human", "Name: Ada."), ("new", "")]
        other = built(store, memory={"name": "another", "shared": True}).memory
        assert isinstance(other, CoreMemory)
        assert other.blocks == ()
        assert [record.name for record in store.sessions()].count("team") == 1


@pytest.mark.parametrize(
    ("given", "key", "said"),
    [
        (3, "memory", "true or false, a name, or a mapping"),
        ({"block": {}}, "memory.block", "blocks"),
        ({"name": 3}, "memory.name", "a text"),
        ({"name": " "}, "memory.name", "has a name"),
        ("", "memory", "a name, or a mapping"),
        ({"shared": "team"}, "memory.shared", "true or false"),
        ({"blocks": []}, "memory.blocks", "a mapping"),
        ({"blocks": {"a": 3}}, "memory.blocks.a", "its text, or a mapping"),
        ({"blocks": {"a": {"text": "x"}}}, "memory.blocks.a.text", "value"),
        ({"blocks": {"a": {"limit": 0}}}, "memory.blocks.a.limit", "above 0"),
        ({"blocks": {"a": {"read_only": "yes"}}}, "memory.blocks.a.read_only", "true or false"),
        ({"blocks": {"a": {"unit": "words"}}}, "memory.blocks.a", "characters or tokens"),
        ({"blocks": {"a b": "x"}}, "memory.blocks.a b", "cannot be called"),
        ({"blocks": {"a": {"value": "long", "limit": 3}}}, "memory.blocks.a", "3"),
    ],
)
def test_what_is_wrong_with_memory_is_told_by_its_path(given: object, key: str, said: str) -> None:
    """As with compacting."""
    error = refused(memory=given)
    assert error.key == f"agent_configs[0].{key}"
    assert said in str(error)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 9) | st.sampled_from(["", "palaver", "tokens", "x", "gpt-4o"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "policy",
                    "triggers",
                    "type",
                    "limit",
                    "share",
                    "summarizer",
                    "model",
                    "blocks",
                    "shared",
                    "name",
                    "value",
                    "budget",
                    "x",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=6,
)


@given(VALUES, VALUES)
@example(
    {"policy": None, "triggers": None, "focus": None, "seconds": None, "summarizer": None, "budget": None},
    {"blocks": None, "name": None},
)
def test_any_value_is_settled_or_refused_by_its_path(compact: object, memory: object) -> None:
    """No other error, whatever is written; and the path leads to where it stands."""
    wrong: InvalidConfig | None = None
    with suppress(NotFound):
        try:
            built(compact=compact, memory=memory)
        except InvalidConfig as error:
            wrong = error
    assert wrong is None or wrong.key.startswith(("agent_configs[0].compact", "agent_configs[0].memory"))
