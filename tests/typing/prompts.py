"""How the types of prompts, formats, configurations and tactics look to their users. mypy reads this file; nothing runs it."""

from typing import Any, assert_type

from palaver import Format, Message, Prompt, Runtime, Tactic, build_agents, load_config
from palaver.agent import Agent
from palaver.compat.config import AgentSpec, Config
from palaver.compat.tactic import build_tactic
from palaver.compat.trace import TacticCallSession
from palaver.tools import Function


def a_prompt_is_rendered_and_read(message: Message) -> None:
    """Rendering gives text, parsing a mapping, reading whatever the format is; a callable, an object and a type all serve."""
    prompt = Prompt(path="p", prompt="{x}", parser=len, format=dict[str, int], function_list=["a:b", print])
    assert_type(prompt(x=1), str)
    assert_type(prompt.validate_args({"x": 1}), list[str])
    assert_type(prompt.parse("1"), dict[str, Any])
    assert_type(prompt.read(message), Any)
    assert_type(prompt.answer, Format | None)
    assert_type(prompt.resolve(Runtime()), Prompt)
    assert_type(prompt.on_exception(None), Prompt)
    assert_type(prompt.extend(path="q"), Prompt)


def a_runtime_gives_what_was_registered(runtime: Runtime, function: Function) -> None:
    """Registering a tool gives a function, registering a class gives the class, so that both serve as decorators."""
    assert_type(runtime.register_tool(function), Function)
    assert_type(runtime.get_tool("a"), Function)
    assert_type(runtime.get_prompt("a"), Prompt)


class Mine(Tactic):
    """A tactic with narrower types than the base's."""

    tactic_type = "mine"
    agent_group = ("one",)

    def call(self, task: str, **_kwargs: object) -> str:
        """Solve it."""
        return self.agents["one"].respond().text_content() + task


class Waiting(Tactic):
    """A tactic written with `async def`."""

    tactic_type = "waiting"

    async def call(self, task: str, **_kwargs: object) -> str:
        """Solve it."""
        return task


def a_tactic_is_called(config: Config) -> None:
    """Agents are agents; traces are asked for by name."""
    mine = Mine(config)
    assert_type(mine.agents, dict[str, Agent])
    assert_type(mine.session, TacticCallSession | None)
    assert_type(build_tactic(config), Tactic)
    assert_type(load_config("a.yaml"), Config)
    assert_type(config["one"], AgentSpec)
    assert_type(build_agents(config), dict[str, Agent])
