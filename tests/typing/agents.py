"""How agents look to a type checker. mypy reads this file; nothing runs it.

Each `assert_type` is a promise: a signature that changes what a user's checker infers fails `./run check`.
"""

from typing import Any, assert_type

from palaver import Agent, AgentEvent, Dialog, Message, Trace, TurnStream
from palaver.agent import Answer, Invoker, ProviderInvoker, open_calls, subagent
from palaver.compat.building import build_invoker
from palaver.messages import InvokeCost, ToolCallContent
from palaver.providers import Provider
from palaver.tools import Function


def an_agent_answers(agent: Agent) -> None:
    """A message with its output, which is text; or the trace for those who ask for it."""
    assert_type(agent.respond(), Answer[str])
    assert_type(agent.respond(return_session=True), Trace)
    assert_type(agent.respond(messages=[{"role": "user", "content": "hi"}]), Answer[str])
    assert_type(agent.open("a"), Agent)
    assert_type(agent.receive("hi"), Message)
    assert_type(agent.current_dialog, Dialog)
    assert_type(agent.dialogs, dict[str, Dialog])


async def an_agent_answers_in_a_loop(agent: Agent) -> None:
    """The same, awaited; events for both kinds of loop."""
    assert_type(await agent.arespond(), Answer[str])
    assert_type(await agent.arespond(return_session=True), Trace)
    assert_type(agent.stream(), TurnStream)
    async for event in agent.stream():
        assert_type(event, AgentEvent)
    for event in agent.stream():
        if event.type == "text":
            assert_type(event.text, str)
        elif event.type == "turn_finished":
            break


def a_trace_is_read(trace: Trace, agent: Agent) -> None:
    """State, delivery and cost have types without Any."""
    assert_type(trace.delivery, Answer[Any] | None)
    assert_type(trace.cost, InvokeCost)
    assert_type(trace.waiting, tuple[ToolCallContent, ...])
    assert_type(agent.waiting, tuple[ToolCallContent, ...])


def what_agents_are_made_of(provider: Provider, agent: Agent, dialog: Dialog) -> None:
    """A provider makes an invoker, an agent a tool."""
    assert_type(build_invoker("openai"), Invoker)
    invoker: Invoker = ProviderInvoker(provider)
    assert_type(subagent(agent), Function)
    assert_type(open_calls(dialog), tuple[ToolCallContent, ...])
    del invoker
