"""A36, R255 to R263: a conversation that the caller keeps."""

from typing import Any

import pytest

from palaver import MemoryStore
from palaver.errors import InvalidInput, InvalidMessage
from palaver.messages import ToolResultContent
from tests.agent.helper import roles, scripted, sent

HISTORY: list[dict[str, Any]] = [
    {"role": "user", "content": "What is 6 times 7?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "mul", "arguments": '{"a": 6, "b": 7}'}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "42"},
    {"role": "assistant", "content": "42."},
    {"role": "user", "content": "And plus one?"},
]


def test_a36_the_last_message_is_the_query_and_the_rest_is_history() -> None:
    """A36, R259, R263: in order, calls and results included; dictionaries of chat completions go in as they are."""
    agent, provider = scripted(["43."])
    assert agent.respond(messages=HISTORY).content == "43."
    body = provider.requests[0].body["messages"]
    assert [message["role"] for message in body] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert body[2]["tool_calls"][0]["function"]["arguments"] == '{"a": 6, "b": 7}'
    assert body[3]["content"] == "42"
    assert body[-1]["content"] == "And plus one?"


def test_r262_two_calls_are_independent() -> None:
    """R260, R262: the agent's own dialogs are neither read nor written, and one call knows nothing of the other."""
    agent, provider = scripted(["a", "b"])
    agent.receive("something else entirely")
    agent.respond(messages=HISTORY)
    agent.respond(messages=HISTORY)
    assert sent(provider.requests[0]) == sent(provider.requests[1])
    assert roles(agent.current_dialog) == ["system", "user"]


def test_r257_r258_what_cannot_be_answered_is_refused() -> None:
    """R257, R258, C18: nothing to answer, or a conversation that the assistant has ended, is the caller's mistake."""
    agent, provider = scripted([])
    with pytest.raises(InvalidInput, match="nothing to answer"):
        agent.respond(messages=[])
    with pytest.raises(ValueError, match="assistant"):
        agent.respond(messages=HISTORY[:-1])
    with pytest.raises(InvalidMessage):
        agent.respond(messages=[{"role": "nobody", "content": "x"}])
    assert provider.requests == []


def test_r258_a_trailing_result_is_gone_on_from() -> None:
    """A conversation that ends in a tool's result is continued."""
    agent, provider = scripted(["42."])
    assert agent.respond(messages=HISTORY[:3]).content == "42."
    assert sent(provider.requests[0])[-1] == ("tool", "42")


def test_r255_a_text_is_still_the_plain_way_in() -> None:
    """R255: `input` says something in the dialog that is talked to; behind `messages` it is the query."""
    agent, provider = scripted(["hi", "both"])
    agent.respond(input="hello")
    assert roles(agent.current_dialog) == ["system", "user", "assistant"]
    agent.respond(messages=HISTORY[:4], input="And minus one?")
    assert sent(provider.requests[1])[-1] == ("user", "And minus one?")


def test_the_trace_leads_to_the_dialog() -> None:
    """Where the agent has a store of its own, what was answered is kept there; the trace has the dialog."""
    store = MemoryStore()
    agent, _ = scripted(["43."], store=store)
    session = agent.respond(messages=HISTORY, return_session=True)
    assert session.dialog is not None
    assert roles(session.dialog)[-1] == "assistant"
    assert len(list(store.sessions())) == 2
    results = [block for message in session.dialog.messages for block in message.tool_results()]
    assert results == [ToolResultContent(id="c1", content="42")] or results[0].text() == "42"
