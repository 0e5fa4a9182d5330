"""Tactics: programs over agents, isolated call by call, traced whole, and callable by models."""

import threading
from collections.abc import Sequence
from typing import Any, ClassVar

import anyio
import pytest
from pydantic import BaseModel

from palaver.agent import ProviderInvoker
from palaver.compat.tactic import Tactic, build_tactic
from palaver.compat.trace import TacticCallSession
from palaver.errors import InvalidConfig, InvalidInput, NotFound, RepairFailed
from palaver.prompts import DefaultTagParser, Prompt, Runtime
from palaver.providers import ScriptedProvider
from palaver.store import MemoryStore
from palaver.tools import tool
from palaver.wire import Request

CONFIG: dict[str, Any] = {
    "tactic_type": "relay",
    "global": {"model_name": "gpt-4o-mini", "max_exception_retry": 1},
    "agent_configs": [
        {"name": "first", "system_prompt": "You begin."},
        {"name": "second", "system_prompt_path": "relay/second"},
        {"name": "unused", "system_prompt": "Nobody asks."},
    ],
}


def last_words(request: Request) -> str:
    """Return what was said last in a request to chat completions."""
    content: str = request.body["messages"][-1]["content"]
    return content


def invoker(answer: Any = None) -> ProviderInvoker:  # noqa: ANN401 - a script
    """Return what answers with the last words in capitals, or from a script."""
    script = answer or (
        lambda request: {"text": last_words(request).upper(), "usage": {"prompt_tokens": 3, "completion_tokens": 2}}
    )
    return ProviderInvoker(ScriptedProvider(script, profile="openai-chat"))


class Relay(Tactic):
    """Asks one agent, and another about its answer."""

    tactic_type = "relay"
    agent_group: ClassVar[Sequence[str]] = ("first", "second")

    def call(self, task: str, **kwargs: object) -> str:
        """Solve it in two steps."""
        text = task
        for name in self.agent_group:
            agent = self.agents[name]
            agent.open("work")
            agent.receive(f"{text}{kwargs.get('mark', '')}")
            text = agent.respond().text_content() + name[0]
        return text

    @tool(description="Say how long a text is.")
    def measure(self, text: str) -> int:
        """Count."""
        return len(text)

    def shout(self, text: str, times: int = 1) -> str:
        """Shout a text.

        Args:
            text: What to shout.
            times: How often.
        """
        return f"{text.upper()}!" * times


@pytest.fixture
def runtime() -> Runtime:
    """A runtime with the prompt that the configuration refers to."""
    made = Runtime()
    made.register_prompt(Prompt(path="relay/second", prompt="You end."))
    return made


@pytest.fixture
def relay(runtime: Runtime) -> Relay:
    """The tactic, over a script."""
    return Relay(CONFIG, runtime=runtime, llm_invoker=invoker())


def test_a_tactic_is_called(relay: Relay) -> None:
    """R96, R97: it gives what `call` gives, and further arguments go along; agents are fresh in each call, and are there outside of one, untraced."""
    assert relay("go") == relay("go") == "GOFs"
    assert relay("go", mark="!") == "GO!F!s"
    assert (list(relay.agents), relay.session) == (["first", "second"], None)
    assert relay.call("direct") == "DIRECTFs"


def test_every_call_has_a_trace(relay: Relay) -> None:
    """R100: every call of every agent is in it, with its cost, however it was made."""
    session = relay("go", return_session=True)
    assert (session.state, session.delivery, session.error) == ("success", "GOFs", None)
    assert {name: len(calls) for name, calls in session.agent_sessions.items()} == {"first": 1, "second": 1}
    assert session.agent_call_count == 2
    assert session.total_cost.total_tokens == session.cost.total_tokens == 10
    told = session.summary()
    assert (told["tactic"], told["agent_calls"], told["sub_tactic_calls"], told["tokens"]) == ("relay", 2, 0, 10)
    assert session.to_dict()["agent_sessions"]["first"][0]["delivery"] == "GO"


def test_either_attribute_names_it() -> None:
    """C25, R96: `tactic_type` and `name` mean the same; without either the class goes by its own name, and cannot be registered."""

    class ByName(Relay):
        name = "by-name"

    class Nameless(Tactic):
        def call(self, task: str, **_kwargs: object) -> str:
            return task

    assert (ByName.tactic_type, ByName.name, ByName.title()) == ("by-name", "by-name", "by-name")
    assert Nameless.title() == "Nameless"
    with pytest.raises(InvalidInput):
        Runtime().register_tactic(Nameless)
    with pytest.raises(TypeError):
        Tactic(CONFIG)  # type: ignore[abstract] # that is the point


def test_build_tactic_finds_the_class_and_the_configuration(runtime: Runtime) -> None:
    """By `tactic_type`, by the name given, or an object that is registered; with a registered configuration none need be given."""
    runtime.register_tactic(Relay, namespace="lab.tactics")
    runtime.register_tactic(Relay)
    runtime.register_config("relay", CONFIG)
    built = build_tactic(CONFIG, runtime=runtime, llm_invoker=invoker())
    assert built("go") == "GOFs"
    assert built("go", return_session=True).tactic_path == "lab.tactics:relay"
    assert isinstance(build_tactic(CONFIG, "lab.tactics:relay", runtime=runtime), Relay)
    assert Relay(runtime=runtime, llm_invoker=invoker())("go") == "GOFs"
    runtime.register_tactic(built, name="ready")
    assert build_tactic(CONFIG, "ready", runtime=runtime) is built
    with pytest.raises(NotFound) as caught:
        build_tactic(CONFIG, "relai", runtime=runtime)
    assert "relay" in caught.value.close
    with pytest.raises(InvalidConfig, match="tactic_type is missing"):
        build_tactic({"agent_configs": []}, runtime=runtime)


# --- failures ----------------------------------------------------------------------------------------------------------------


def test_a_failure_has_its_trace(runtime: Runtime) -> None:
    """What fails is raised as it is, with the trace on it: the failed agent call, its cost, the error and where it was raised."""
    runtime.register_prompt(Prompt(path="relay/second", prompt="x", parser=DefaultTagParser(required_xml_tags=["a"])))
    told: list[TacticCallSession] = []
    relay = Relay(CONFIG, runtime=runtime, llm_invoker=invoker(), recorder=told.append)
    with pytest.raises(RepairFailed) as caught:
        relay("go")
    session: TacticCallSession = caught.value.tactic_session  # type: ignore[attr-defined] # a tactic puts it there
    assert session.state == "failure"
    assert session.exception is caught.value
    assert session.error is not None
    assert session.error.startswith("RepairFailed: ")
    assert "test_tactic.py" in str(session.error_traceback)
    assert session.agent_sessions["second"][0].exception_retries_count >= 1
    assert session.cost.total_tokens == 15
    assert told == [session]


# --- many at a time ----------------------------------------------------------------------------------------------------------


class Picky(Relay):
    """Refuses some tasks."""

    tactic_type = "picky"

    def call(self, task: str, **_kwargs: object) -> str:
        """Refuse."""
        if "bad" in task:
            raise ValueError(task)
        return super().call(task)


def test_a_batch_gives_results_in_the_order_of_its_tasks(runtime: Runtime) -> None:
    """Calls share no agent or dialog; either the first failure ends the batch, or each stands in the place of its result."""
    picky = Picky(CONFIG, runtime=runtime, llm_invoker=invoker())
    tasks = [f"{number}" for number in range(12)]
    assert picky.bcall(tasks, max_workers=4) == [f"{task}fs".replace("f", "F") for task in tasks]
    assert [trace.delivery for trace in picky.bcall(tasks[:3], return_sessions=True)] == ["0Fs", "1Fs", "2Fs"]
    with pytest.raises(ValueError, match="bad 1"):
        picky.bcall(["1", "bad 1", "bad 2"])
    found = picky.bcall(["1", "bad 1", "2"], fail_fast=False)
    assert [str(each) for each in found] == ["1Fs", "bad 1", "2Fs"]
    assert isinstance(found[1], ValueError)
    assert picky.bcall([]) == []


def test_concurrent_results_come_as_they_are_there(runtime: Runtime) -> None:
    """Each with the number of its task; the first to be done is the first to come."""
    waiting = threading.Event()

    class Slow(Relay):
        tactic_type = "slow"

        def call(self, task: str, **_kwargs: object) -> str:
            if task == "slow":
                assert waiting.wait(30)
            return task

    slow = Slow(CONFIG, runtime=runtime, llm_invoker=invoker())

    async def gather() -> list[tuple[int, Any]]:
        found = []
        async for pair in slow.ccall(["slow", "quick"], max_workers=2):
            found.append(pair)
            waiting.set()
        return found

    assert anyio.run(gather) == [(1, "quick"), (0, "slow")]


def test_acall_and_asynchronous_tactics(runtime: Runtime) -> None:
    """A plain `call` runs beside the caller's loop, one written with `async def` in it; both have traces, and serve synchronous callers."""

    class Async(Tactic):
        tactic_type = "async"
        agent_group = ("first",)

        async def call(self, task: str, **_kwargs: object) -> str:
            agent = self.agents["first"]
            agent.open("work")
            return (await agent.arespond(task)).text_content()

    kinds: tuple[tuple[type[Tactic], str], ...] = ((Relay, "GOFs"), (Async, "GO"))
    for kind, text in kinds:
        tactic = kind(CONFIG, runtime=runtime, llm_invoker=invoker())
        assert anyio.run(tactic.acall, "go") == text
        session = anyio.run(lambda tactic=tactic: tactic.acall("go", return_session=True))  # type: ignore[misc]
        assert session.state == "success"
        assert session.agent_call_count == (2 if kind is Relay else 1)
        assert tactic("go") == text
        assert tactic.bcall(["go"]) == [text]


# --- tactics in tactics ------------------------------------------------------------------------------------------------------


def test_held_tactics_are_in_the_trace(runtime: Runtime) -> None:
    """R100: what they do goes into the trace of the call that called them, also from threads, and their cost into its cost."""

    class Outer(Relay):
        tactic_type = "outer"

        def __init__(self) -> None:
            super().__init__(CONFIG, runtime=runtime, llm_invoker=invoker())
            self.inner = Relay(CONFIG, runtime=runtime, llm_invoker=invoker())

        def call(self, task: str, **_kwargs: object) -> str:
            once = str(self.inner(task))
            return once + "".join(self.inner.bcall(["x", "y"]))

    outer = Outer()
    session = outer("go", return_session=True)
    assert session.delivery == "GOFsXFsYFs"
    assert session.sub_tactic_call_count == 3
    assert session.agent_call_count == 0
    assert session.total_cost.total_tokens == session.sub_tactic_cost.total_tokens == 30
    assert list(outer.sub_tactics) == ["inner"]
    assert outer.inner("alone", return_session=True).state == "success"
    assert session.sub_tactic_call_count == 3


# --- as tools ----------------------------------------------------------------------------------------------------------------


def test_a_class_is_made_into_a_tactic_when_it_is_called(runtime: Runtime) -> None:
    """Its configuration is the runtime's; arguments are declared as what they are; a docstring of its own is the description."""

    class Task(BaseModel):
        words: str

    class Typed(Tactic):
        tactic_type = "typed one"

        def call(self, task: Task, loud: bool = False, **_kwargs: object) -> str:
            return task.words.upper() if loud else task.words

    class Described(Typed):
        """Does what it is told."""

    runtime.register_tactic(Typed)
    function = Typed.as_function(runtime=runtime)
    assert (function.name, function.description) == ("typed_one", "")
    assert Described.as_function(runtime=runtime).description == "Does what it is told."
    assert set(function.parameters["properties"]) == {"task", "loud"}
    assert function.parameters["required"] == ["task"]
    for hidden in ("shuot", "_begun", "agent_group"):
        with pytest.raises(NotFound):
            Typed.as_function(hidden, runtime=runtime)


def test_an_agent_calls_a_tactic(runtime: Runtime) -> None:
    """R101: the whole way: a reference in a prompt, a call by the model, a tactic with agents of its own, its result in the dialog."""

    def outer(request: Request) -> dict[str, Any]:
        tools = [message for message in request.body["messages"] if message["role"] == "tool"]
        return (
            {"text": f"It said {tools[-1]['content']}."}
            if tools
            else {"tool_calls": [{"name": "relay", "arguments": {"task": "go"}}]}
        )

    runtime.register_tactic(Relay(CONFIG, runtime=runtime, llm_invoker=invoker()))
    asking = {"agent_configs": [{"name": "boss", "model_name": "gpt-4o", "system_prompt": "x", "tools": ["relay"]}]}

    class Boss(Tactic):
        tactic_type = "boss"
        agent_group = ("boss",)

        def call(self, task: str, **_kwargs: object) -> str:
            agent = self.agents["boss"]
            agent.open("work")
            return agent.respond(task).text_content()

    boss = Boss(asking, runtime=runtime, llm_invoker=invoker(outer), store=MemoryStore())
    assert boss("ask") == "It said GOFs."
