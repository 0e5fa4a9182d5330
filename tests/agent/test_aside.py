"""Planning keeps nobody waiting: what takes processor time is done beside the event loop."""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import anyio
import pytest

from palaver import AssistantMessage, Dialog, Prompt, ToolMessage, UserMessage
from palaver.agent import Agent, AutoCompact, ModelSummarizer
from palaver.context import ContextManager, Ledger, Policy
from palaver.context.summary import HEADINGS
from palaver.context.triggers import EventCount
from palaver.log import TurnEnded, TurnStarted
from palaver.messages import ToolCallContent, ToolResultContent
from palaver.models import ScriptedProvider
from palaver.tokens import Budget, Rates
from palaver.view import Plan, View
from tests.loops import called_here

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


GOOD = "\n\n".join(f"## {heading}\nwhat was said of it" for heading in HEADINGS)
TOO_LONG = {"error": {"kind": "ContextOverflow", "message": "Too long."}}
REFUSED = {"error": {"kind": "RequestRefused", "message": "messages.3.content.0: Could not process image"}}


def summarizer() -> ModelSummarizer:
    """Give a summariser that asks a model."""
    return ModelSummarizer(ScriptedProvider([GOOD] * 3), "gpt-5")


TURNS: dict[str, Callable[[], dict[str, Any]]] = {
    "answered": lambda: {"script": ["Yes."]},
    "compacted": lambda: {
        "script": ["Yes."],
        "compact": AutoCompact(triggers=(EventCount(10),), summarizer=summarizer()),
    },
    "too long": lambda: {"script": [TOO_LONG, "Yes."], "compact": AutoCompact(summarizer=summarizer())},
    "refused": lambda: {"script": [REFUSED, "Yes."], "on_refused": "quarantine"},
    "in the middle": lambda: {"script": ["Yes."], "cut_off": True},
}


def on_the_loop(turns: int, script: Sequence[Any], *, cut_off: bool = False, **how: Any) -> Counter[str]:  # noqa: ANN401 - what an agent takes
    """Let an agent answer behind so many turns, and give what its loop called of palaver's own."""

    async def main() -> Counter[str]:
        agent = Agent("helper", PROMPT, "gpt-5", ScriptedProvider(script), **how)
        dialog = agent.open("main").current_dialog
        for number in range(turns):
            dialog.append([UserMessage(content=f"Line {number}. " * 50), AssistantMessage(content="So it is. " * 50)])
        if cut_off:
            dialog.record(TurnStarted(agent="helper"))
            for number in range(turns):
                call = ToolCallContent(id=f"c{number}", name="look", args={})
                dialog.append(AssistantMessage(contents=(call,)))
                dialog.append(ToolMessage(contents=(ToolResultContent(id=f"c{number}", content="seen"),)))
            dialog.record(TurnEnded(outcome="interrupted"))
        agent.receive("Well?")
        with called_here("") as called:
            assert (await agent.arespond()).text_content() == "Yes."
        return called

    return anyio.run(main)


@pytest.mark.parametrize("turn", sorted(TURNS))
def test_what_the_loop_itself_does_in_a_turn_is_the_same_at_any_length(turn: str) -> None:
    """Behind sixty turns as behind twenty: what is measured, planned, summarised, compiled and looked for is none of the loop's work."""
    short = on_the_loop(20, **TURNS[turn]())
    longer = on_the_loop(60, **TURNS[turn]())
    grown = longer - short
    assert grown.total() < 20, grown.most_common(10)


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
def test_whatever_a_policy_raises_keeps_nobody_waiting(fault: Exception) -> None:
    """Also what no future takes, for which whoever waits would wait for ever: the default policy decides, and the call has its answer."""

    class Raising(Where):
        def plan(self, view: View, ledger: Ledger, budget: Budget, prices: Rates | None) -> Plan:  # noqa: ARG002
            raise fault

    async def main() -> None:
        agent = Agent("helper", PROMPT, "gpt-5", ScriptedProvider(["Yes."]), context_manager=Raising([]))
        agent.open("main")
        agent.receive("Well?")
        assert (await agent.arespond()).content == "Yes."

    anyio.run(main)
