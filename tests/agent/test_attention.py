"""What a dialog needs: an agent, a person, or nothing."""

import asyncio
from pathlib import Path

import pytest

from palaver import Agent, AssistantMessage, MemoryStore, Session, SqliteStore, UserMessage, tool
from palaver.agent import Decision, decide, needs_work
from palaver.agent.attention import Attention, attention
from palaver.agent.turn import CALL
from palaver.errors import AgentFailure, Busy, DecisionNeeded, ProviderError
from palaver.log.entries import Cancelled, Custom, Inbox, MessageEntry, TurnStarted
from palaver.providers.scripted import ScriptedProvider


@tool(needs_approval=True)
def refund(amount: int) -> str:
    """Give money back."""
    return f"{amount} given back"


CALLS = {"tool_calls": [{"name": "refund", "arguments": {"amount": 3}}]}


def clerk(store: MemoryStore | SqliteStore, *answers: object) -> Agent[str]:
    """Return an agent whose model follows a script."""
    return Agent("clerk", "Answer.", "gpt-4o", ScriptedProvider(answers), store=store, tools=[refund])


def test_a_dialog_needs_an_agent_until_its_message_is_answered() -> None:
    """An empty dialog needs nothing; one with a message, said before the first turn or after the last one, or waiting in the inbox, an agent."""
    agent = clerk(MemoryStore(), "One.", "Two.").open("main")
    dialog = agent.current_dialog
    assert attention(dialog.store, dialog.dialog_id) is Attention.NONE
    for _ in range(2):
        agent.receive("How many?")
        assert needs_work(dialog.store, dialog.dialog_id)
        agent.respond()
        assert attention(dialog.store, dialog.dialog_id) is Attention.NONE


def test_a_branch_without_entries_needs_nothing() -> None:
    """A fork whose parent is at rest is at rest; so is a conversation that another program ended with an answer."""
    session = Session.create(MemoryStore())
    session.root.append([{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}])
    child = session.root.fork()
    for dialog in (session.root, child):
        assert attention(dialog.store, dialog.dialog_id) is Attention.NONE
    child.append(UserMessage(content="And?"))
    assert needs_work(child.store, child.dialog_id)


def test_a_call_needs_a_person_and_then_an_agent() -> None:
    """While a call waits, messages wait with it; once it is decided, an agent is needed."""
    agent = clerk(MemoryStore(), CALLS, "Done.").open("main")
    dialog = agent.current_dialog
    with pytest.raises(DecisionNeeded):
        agent.respond("Refund me")
    assert attention(dialog.store, dialog.dialog_id) is Attention.PERSON
    agent.receive("Quickly!")
    assert attention(dialog.store, dialog.dialog_id) is Attention.PERSON
    decide(dialog, agent.waiting[0].id, Decision(decision="approve"))
    assert needs_work(dialog.store, dialog.dialog_id)
    agent.respond()
    assert attention(dialog.store, dialog.dialog_id) is Attention.NONE


def test_a_failed_turn_is_not_continued_unasked() -> None:
    """A turn that failed needs nothing until something is said."""
    agent = clerk(MemoryStore(), ProviderError("no", kind="refused"), "Done.").open("main")
    dialog = agent.current_dialog
    with pytest.raises(AgentFailure):
        agent.respond("Hello")
    assert attention(dialog.store, dialog.dialog_id) is Attention.STOPPED
    agent.receive("Again, please")
    assert needs_work(dialog.store, dialog.dialog_id)


@pytest.mark.parametrize("inbox", [False, True])
def test_a_cancelled_dialog_needs_nothing_until_asked(*, inbox: bool) -> None:
    """After a cancellation nothing is needed, whatever else is written, until something is said, in the dialog or to its inbox."""
    dialog = clerk(MemoryStore()).open("main", first="Hello").current_dialog
    dialog.record(Inbox(message=UserMessage(content="Quickly!")))
    dialog.record(Cancelled())
    dialog.record(Custom(custom_type="shop.note"), beside=True)
    dialog.append(AssistantMessage(content="Hello to"))
    assert attention(dialog.store, dialog.dialog_id) is Attention.NONE
    more = UserMessage(content="Hello?")
    dialog.record(Inbox(message=more) if inbox else MessageEntry(message=more))
    assert needs_work(dialog.store, dialog.dialog_id)


def test_a_turn_left_open_needs_an_agent(tmp_path: Path) -> None:
    """What a process left open when it died needs an agent; one that knows that the process runs no more takes it over, and nobody else does."""
    with SqliteStore(tmp_path / "store.db") as store:
        agent = clerk(store, "Done.").open("main", first="Hello")
        dialog = agent.current_dialog
        mark = {"began": None, "inbox": None, "prompt": "", "process": "of another machine:1:1"}
        dialog.record(TurnStarted(agent="clerk"), Custom(custom_type=CALL, data=mark))
        assert needs_work(store, dialog.dialog_id)
        other = clerk(store, "Done.").resume(dialog.session_id)
        with pytest.raises(Busy):
            other.respond()
        assert asyncio.run(other.arespond(take_over=True)).content == "Done."
