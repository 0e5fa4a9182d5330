"""Messages that arrive while a turn goes on: kept at once, delivered once."""

from palaver import MemoryStore, Message, Prompt, Session
from palaver.agent import Agent, ProviderInvoker
from palaver.log.entries import Inbox, MessageEntry, TurnStarted
from palaver.models import ScriptedProvider
from palaver.tools import CallContext, tool
from palaver.wire import Request
from tests.agent.helper import MODEL, calling, entries, kinds, roles, scripted, sent


@tool
def interrupt(words: str, context: CallContext) -> str:
    """Have the user say something while the tool runs."""
    context.agent.receive(words)
    return "ran"


def prompt() -> Prompt:
    """Give a prompt with the tool."""
    return Prompt(path="t/i", prompt="Go.", function_list=[interrupt])


def test_a_message_within_a_turn_is_delivered_at_the_next_call() -> None:
    """It is an inbox entry at once, a message of the conversation before the model is asked again, and never twice."""
    agent, provider = scripted([calling("interrupt", words="hurry"), "Hurried.", "Later."], prompt())
    agent.receive("go")
    assert agent.respond().content == "Hurried."
    assert sent(provider.requests[1])[-1] == ("user", "hurry")
    assert roles(agent.current_dialog) == ["system", "user", "tool_call", "tool", "user", "assistant"]
    assert kinds(agent.current_dialog).count("inbox") == 1
    agent.receive("and?")
    agent.respond()
    assert [content for role, content in sent(provider.requests[2]) if role == "user"] == ["go", "hurry", "and?"]


def test_a_message_during_the_last_call_is_delivered_behind_the_answer() -> None:
    """What comes too late for the answer stands in the dialog behind it; the next call answers it."""
    agent_of: list[Agent] = []

    def answer(request: Request) -> str:
        if len(request.body["messages"]) == 2:
            agent_of[0].receive("wait, one more thing")
            return "Here you are."
        return "And that too."

    agent, provider = scripted(answer)
    agent_of.append(agent)
    agent.receive("go")
    session = agent.respond(return_session=True)
    assert session.delivery is not None
    assert session.delivery.content == "Here you are."
    assert [message.content for message in session.late] == ["wait, one more thing"]
    assert roles(agent.current_dialog) == ["system", "user", "assistant", "user"]
    assert agent.respond().content == "And that too."
    assert len(provider.requests) == 2


def test_images_and_prompts_can_come_within_a_turn_too() -> None:
    """All three ways of receiving keep what comes in the inbox while a turn goes on."""
    png = bytes.fromhex("89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489")

    @tool
    def flood(context: CallContext) -> str:
        """Say everything at once."""
        context.agent.receive_image(png, "look")
        context.agent.receive_prompt(Prompt(path="t/x", prompt="Mind {what}."), {"what": "the gap"})
        return "ran"

    agent, _ = scripted([calling("flood"), "ok"], Prompt(path="t/f", prompt="Go.", function_list=[flood]))
    agent.receive("go")
    agent.respond()
    assert kinds(agent.current_dialog).count("inbox") == 2
    said = [message.text_content() for message in agent.current_dialog.messages if message.role == "user"]
    assert said == ["go", "look", "Mind the gap."]


def test_a_message_from_another_process_is_delivered_too() -> None:
    """Another process writes to the inbox of a turn that it does not have in hand."""
    store = MemoryStore()

    @tool
    def elsewhere(context: CallContext) -> str:
        """Do what another process would do."""
        other = Session.open(context.dialog.session_id, store).root
        other.annotate(Inbox(message=Message(role="user", content="from afar")))
        return "ran"

    agent, provider = scripted(
        [calling("elsewhere"), "ok"], Prompt(path="t/e", prompt="Go.", function_list=[elsewhere]), store=store
    )
    agent.receive("go")
    agent.respond()
    assert sent(provider.requests[1])[-1] == ("user", "from afar")


def test_a_message_that_was_never_delivered_opens_the_next_turn() -> None:
    """An inbox entry that came in the moment a turn ended, or before any turn, is delivered by the next one, once."""
    agent, provider = scripted(["one", "two", "three"])
    agent.receive("go")
    agent.current_dialog.annotate(Inbox(message=Message(role="user", content="early")))
    agent.respond()
    agent.current_dialog.annotate(Inbox(message=Message(role="user", content="stray")))
    agent.respond()
    agent.receive("on")
    agent.respond()
    said = [[content for role, content in sent(request) if role == "user"] for request in provider.requests]
    assert said == [["go", "early"], ["go", "early", "stray"], ["go", "early", "stray", "on"]]


def test_a_message_for_a_turn_whose_process_died_is_delivered_when_it_goes_on() -> None:
    """A turn left open takes messages into its inbox; the process that goes on delivers them."""
    store = MemoryStore()
    agent, _ = scripted([], store=store)
    agent.receive("go")
    agent.current_dialog.record(TurnStarted(agent="tester"))
    other = Agent("tester", agent.system_prompt, MODEL, ProviderInvoker(ScriptedProvider(["ok"])), store=store)
    other.resume("tester_main", "main").receive("still there?")
    assert kinds(other.current_dialog)[-1] == "inbox"
    other.respond()
    delivered = [entry.message for entry in entries(other.current_dialog) if isinstance(entry, MessageEntry)]
    assert [message.content for message in delivered] == ["You are tested.", "go", "still there?", "ok"]


def test_a_fork_does_not_deliver_what_its_parent_waits_for() -> None:
    """D24: what arrived for the parent's turn is not the child's; the child shows no call as pending."""
    children: list[str] = []

    @tool
    def branch(context: CallContext) -> str:
        """Branch off in the middle of the turn."""
        context.agent.receive("for the parent")
        context.agent.fork("main", "child", switch=False)
        children.append("child")
        return "ran"

    agent, provider = scripted(
        [calling("branch"), "parent", "child"], Prompt(path="t/b", prompt="Go.", function_list=[branch])
    )
    agent.receive("go")
    agent.respond()
    agent.receive("what now?", "child")
    agent.respond("child")
    assert children == ["child"]
    users = [content for role, content in sent(provider.requests[2]) if role == "user"]
    assert users == ["go", "what now?"]
    (result,) = [content for role, content in sent(provider.requests[2]) if role == "tool"]
    assert "No result is recorded" in result
