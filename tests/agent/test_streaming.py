"""Turns as they happen: one closed union of events, for `for` and for `async for`."""

from typing import get_args

import anyio
import pytest

from palaver import Prompt
from palaver.agent import AgentEvent, TurnStream
from palaver.errors import AgentFailure
from palaver.tools import CallContext, tool
from tests.agent.helper import QUICK, calling, kinds, roles, scripted
from tests.agent.test_contract import word_first


@tool
def slow(context: CallContext) -> str:
    """Say how far it is."""
    context.emit_progress("half", done=1, total=2)
    return "done"


PROMPT = Prompt(path="t/s", prompt="Go.", function_list=[slow])


def types(stream: TurnStream) -> list[str]:
    """Return the types of a stream's events, repetitions of deltas taken together."""
    found: list[str] = []
    for event in stream:
        assert isinstance(event, get_args(AgentEvent))
        if not found or found[-1] != event.type:
            found.append(event.type)
    return found


def test_events_in_order() -> None:
    """Asking, deltas, end, the call's start, progress and end, and the turn's last word; text adds up to the answer."""
    agent, _ = scripted([{"thinking": "hm", **calling("slow", "I look.")}, "It is done."], PROMPT)
    agent.receive("go")
    stream = agent.stream()
    first = "turn_starting asking thinking text tool_call end call_starting call_progress call_ended"
    assert types(stream) == [*first.split(), "asking", "text", "end", "turn_finished"]
    assert stream.trace.state == "success"
    assert stream.trace.delivery is not None
    assert stream.trace.delivery.content == "It is done."
    assert roles(agent.current_dialog)[-1] == "assistant"


def test_streamed_or_not_the_log_is_the_same() -> None:
    """Streaming changes the request's own flag and nothing that is recorded."""
    seen = []
    for streamed in (True, False):
        agent, provider = scripted([calling("slow", "I look."), "Done."], PROMPT)
        agent.receive("go")
        if streamed:
            list(agent.stream())
        else:
            agent.respond()
        assert bool(provider.requests[0].body.get("stream")) is streamed
        seen.append(
            (kinds(agent.current_dialog), [message.text_content() for message in agent.current_dialog.messages])
        )
    assert seen[0] == seen[1]


def test_void_deltas_are_announced() -> None:
    """A repair and a retry tell the reader that what was streamed does not count."""
    agent, _ = scripted(
        [{"text": "cut", "error": "down"}, "Hm.", "Answer yes"],
        Prompt(path="t/p", prompt="P.", parser=word_first),
        max_llm_recall=1,
        retry=QUICK,
    )
    agent.receive("go")
    seen = types(agent.stream())
    assert seen.index("retrying") < seen.index("answer_refused") < seen.index("turn_finished")


def test_failure_comes_after_the_last_event() -> None:
    """The reader gets every event first, the last one with the session, then the error."""
    agent, _ = scripted([{"text": "so f", "error": "down"}])
    agent.receive("go")
    seen: list[str] = []
    with pytest.raises(AgentFailure):
        seen.extend(event.type for event in agent.stream())
    assert agent.last_call is not None
    assert agent.last_call.state == "failure"


def test_leaving_early_interrupts_the_turn() -> None:
    """A stream that is closed before its end leaves a valid dialog, and the next call goes on."""

    @tool
    async def hang() -> str:
        """Hang."""
        await anyio.sleep_forever()
        return "never"

    agent, _ = scripted([calling("hang"), "went on"], Prompt(path="t/h", prompt="Go.", function_list=[hang]))
    agent.receive("go")
    with agent.stream() as stream:
        for event in stream:
            if event.type == "call_starting":
                break
    assert agent.last_call is not None
    assert agent.last_call.state == "interrupted"
    assert kinds(agent.current_dialog)[-1] == "turn_ended"
    assert agent.respond().content == "went on"
