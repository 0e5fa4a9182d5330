"""Planning keeps nobody waiting: what takes processor time is done beside the event loop."""

import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import anyio
import pytest

from palaver import Dialog, Prompt, UserMessage
from palaver.agent import Agent, AutoCompact, ModelSummarizer
from palaver.context import ContextManager, Ledger, Policy
from palaver.context.measure import Meter
from palaver.context.triggers import EventCount
from palaver.errors import CallbackFailed
from palaver.models import ScriptedProvider
from palaver.tokens import Budget, Rates
from palaver.view import Plan, View, fold
from palaver.wire import compile as compile_request

PROMPT = Prompt(path="test/helper", prompt="You help.")


class Where(Policy):
    """A policy that changes nothing, and tells in which thread it was asked."""

    name = "where"

    def __init__(self, asked: list[int]) -> None:
        """Begin."""
        super().__init__("gpt-5")
        self.asked = asked

    def plan(self, view: View, ledger: Ledger, budget: Budget, prices: Rates | None) -> Plan:  # noqa: ARG002
        """Tell."""
        self.asked.append(threading.get_ident())
        return Plan(policy=self.name)


class Manager(ContextManager):
    """A plain manager that tells in which thread it was called."""

    def __init__(self, asked: list[int]) -> None:
        """Begin."""
        self.asked = asked

    def __call__(self, dialog: Dialog) -> Dialog:
        """Tell."""
        self.asked.append(threading.get_ident())
        return dialog


def respond(**how: Any) -> int:  # noqa: ANN401 - what an agent takes
    """Let an agent answer, and give the thread of its loop."""
    home: list[int] = []

    async def main() -> None:
        home.append(threading.get_ident())
        agent = Agent("helper", PROMPT, "gpt-5", ScriptedProvider(["Yes.", "Yes."]), **how)
        agent.open("main")
        agent.current_dialog.append([UserMessage(content=f"Line {number}.") for number in range(30)])
        agent.receive("Well?")
        assert (await agent.arespond()).text_content() == "Yes."

    anyio.run(main)
    return home[0]


@pytest.mark.parametrize("made", [Where, Manager])
def test_a_policy_is_asked_in_another_thread_than_the_loops(made: Callable[[list[int]], Any]) -> None:
    """Neither a policy nor a plain manager of the caller's runs in the thread that serves everybody."""
    asked: list[int] = []
    home = respond(context_manager=made(asked))
    assert asked
    assert home not in asked


def test_a_compaction_is_planned_in_another_thread_than_the_loops() -> None:
    """What a trigger asks for is planned beside the loop, too."""
    asked: list[int] = []
    home = respond(compact=AutoCompact(policy=Where(asked), triggers=(EventCount(10),)))
    assert asked
    assert home not in asked


def test_neither_an_overflow_nor_a_summary_is_measured_or_compiled_in_the_loop() -> None:
    """What a view weighs and the request for its summary cost as much as it is long: the thread that serves everybody does neither."""
    dear = {Meter.view.__code__, compile_request.__code__, fold.__code__}
    called: set[CodeType] = set()

    def note(frame: FrameType, _event: str, _what: object) -> None:
        called.update({frame.f_code} & dear)

    async def main() -> None:
        too_long = {"error": {"kind": "ContextOverflow", "message": "Too long."}}
        summarizer = ModelSummarizer(ScriptedProvider(["no summary"] * 9), "gpt-5")
        provider = ScriptedProvider([too_long, "Yes."])
        agent = Agent("helper", PROMPT, "gpt-5", provider, compact=AutoCompact(summarizer=summarizer))
        agent.open("main")
        agent.current_dialog.append([UserMessage(content=f"Line {number}. " * 50) for number in range(30)])
        agent.receive("Well?")
        sys.setprofile(note)
        try:
            assert (await agent.arespond()).text_content() == "Yes."
        finally:
            sys.setprofile(None)
        assert summarizer.requests

    anyio.run(main)
    assert not called


def test_others_are_served_while_a_policy_takes_its_time() -> None:
    """A policy that waits for something only the loop can do gets it: the loop goes on meanwhile."""
    served = threading.Event()

    class Slow(Where):
        def plan(self, view: View, ledger: Ledger, budget: Budget, prices: Rates | None) -> Plan:
            assert served.wait(60)
            return super().plan(view, ledger, budget, prices)

    async def main() -> None:
        agent = Agent("helper", PROMPT, "gpt-5", ScriptedProvider(["Yes."]), context_manager=Slow([]))
        agent.open("main")
        agent.receive("Well?")
        async with anyio.create_task_group() as others:
            others.start_soon(agent.arespond)
            await anyio.lowlevel.checkpoint()
            served.set()

    anyio.run(main)


@pytest.mark.parametrize("fault", [StopIteration("enough"), StopAsyncIteration("enough"), ValueError("no")])
def test_whatever_a_policy_raises_ends_the_call_with_a_typed_failure(fault: Exception) -> None:
    """Also what no future takes: else whoever waits for it would wait for ever."""

    class Raising(Where):
        def plan(self, view: View, ledger: Ledger, budget: Budget, prices: Rates | None) -> Plan:  # noqa: ARG002
            raise fault

    async def main() -> None:
        agent = Agent("helper", PROMPT, "gpt-5", ScriptedProvider(["Yes."]), context_manager=Raising([]))
        agent.open("main")
        agent.receive("Well?")
        with pytest.raises(CallbackFailed):
            await agent.arespond()

    anyio.run(main)
