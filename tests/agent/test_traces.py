"""What the trace of a call keeps."""

from __future__ import annotations

from palaver import tool
from palaver.prompts import Prompt
from tests.agent.helper import calling, scripted


@tool(allow_repeat=True)
def look() -> str:
    """Look."""
    return "seen"


def test_only_the_newest_answer_keeps_its_request() -> None:
    """A long turn does not pile up conversations: of all requests the trace has one, and the log gives back each; it prints as a line."""
    prompt = Prompt(path="traces/look", prompt="You look.", function_list=[look])
    agent, provider = scripted([calling("look"), calling("look"), "Done."], prompt)
    session = agent.respond(input="Look.", return_session=True)

    assert repr(session) == "<AgentCallSession tester success: answers=3 tool_calls=2>"
    assert [one.request is not None for one in session.invokes] == [False, False, True]
    recorded = [call.request().digest for call in agent.current_dialog.invocations]
    assert recorded == [request.digest for request in provider.requests]
