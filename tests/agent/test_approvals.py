"""Decisions: a call waits across processes and days, and what was decided is done once. Messages that arrive while a turn runs."""

from __future__ import annotations

from typing import Any

import pytest

from palaver import Prompt
from palaver.agent import Agent, Decision, question
from palaver.agent.approvals import annotate
from palaver.errors import AgentFailure, DecisionNeeded, InvalidInput
from palaver.log.entries import Approval
from palaver.messages import ToolCallContent
from palaver.tools import CallContext, tool
from palaver.wire import Request
from tests.agent.helper import calling, kinds, results, roles, scripted, sent


def bank() -> tuple[list[int], Prompt]:
    """Return what was paid, and a prompt with a tool that needs approval from 5 on and one that never does."""
    paid: list[int] = []

    @tool(needs_approval=lambda args: args["amount"] >= 5)
    def pay(amount: int) -> str:
        """Pay."""
        paid.append(amount)
        return f"paid {amount}"

    @tool
    def balance() -> str:
        """Look."""
        return "100"

    return paid, Prompt(path="bank/system", prompt="You are a bank.", function_list=[pay, balance])


def test_a_call_waits_until_it_is_allowed() -> None:
    """Without an approver the turn ends as `waiting`; an approval lets the next call run it, and the model is asked once more only."""
    paid, prompt = bank()
    agent, provider = scripted([calling("pay", amount=5), "Paid."], prompt)
    with pytest.raises(DecisionNeeded) as caught:
        agent.respond("pay 5")
    (call,) = caught.value.calls
    assert (caught.value.session.state, call.name, dict(call.args), paid) == ("waiting", "pay", {"amount": 5}, [])
    assert [waiting.id for waiting in agent.waiting] == [call.id]
    assert agent.respond(return_session=True).state == "waiting"
    assert kinds(agent.current_dialog).count("turn_ended") == 1, "waiting on writes nothing"
    agent.approve(call.id, by="ann")
    assert not agent.waiting
    assert agent.respond().content == "Paid."
    assert (paid, len(provider.requests)) == ([5], 2)


def test_denied_and_edited_calls_are_said() -> None:
    """A denied call never runs, and the model reads who said no, and why; an edited one runs so, and the log keeps what was asked for."""
    paid, prompt = bank()
    agent, provider = scripted([calling("pay", amount=500), "All right.", calling("pay", amount=600), "5."], prompt)
    agent.deny(agent.respond("pay", return_session=True).waiting[0].id, "too much", by="ann")
    assert agent.respond().content == "All right."
    (said,) = [content for role, content in sent(provider.requests[1]) if role == "tool"]
    assert paid == []
    assert "not run" in said
    assert "ann said: too much" in said
    agent.edit(agent.respond("pay", return_session=True).waiting[0].id, {"amount": 5}, by="ann")
    agent.respond()
    assert paid == [5]
    said = results(agent.current_dialog)[1]
    assert said.endswith("paid 5")
    assert '{"amount":5}' in said.replace(" ", "")
    assert dict(agent.current_dialog.messages[6].tool_calls()[0].args) == {"amount": 600}


def test_an_approver_decides_at_once() -> None:
    """It decides within the turn, and that is in the log before the effect; None leaves the call waiting, a failure fails the turn."""
    edit = Decision(decision="edit", arguments={"amount": 1})
    for verdict, ran in ((True, [5]), (False, []), (edit, [1])):
        paid, prompt = bank()

        async def approve(call: ToolCallContent, verdict: object = verdict, paid: list[int] = paid) -> object:
            assert (call.name, paid) == ("pay", [])
            return verdict

        agent, _ = scripted([calling("pay", amount=5), "done"], prompt, approve=approve)
        agent.respond("go")
        assert paid == ran
        seen = kinds(agent.current_dialog)
        assert seen.index("approval") < seen.index("tool")

    def broken(_: object) -> bool:
        raise OSError("no terminal")

    paid, prompt = bank()
    agent, _ = scripted([calling("pay", amount=5), "done"], prompt, approve=lambda _: None)
    assert agent.respond("go", return_session=True).state == "waiting"
    agent.options["approve"] = broken
    with pytest.raises(AgentFailure, match="approver") as caught:
        agent.respond()
    assert caught.value.kind == "callback"
    assert ([call.name for call in agent.waiting], paid) == (["pay"], [])


def test_an_unknown_decision_decides_nothing() -> None:
    """A word that nobody knows, or arguments that do not go with it, are refused; one that stands in the log lets nothing run."""
    cases: list[Any] = [
        ("reject", None),
        ("denied", None),
        ("edit", None),
        ("edit", "all"),
        ("approve", {"amount": 1}),
        ("deny", {}),
    ]
    for word, arguments in cases:
        paid, prompt = bank()
        agent, _ = scripted([calling("pay", amount=5), "Paid."], prompt)
        (call,) = agent.respond("pay 5", return_session=True).waiting
        with pytest.raises(InvalidInput, match=word):
            Decision(decision=word, arguments=arguments)
        if word not in {"approve", "deny"}:
            foreign = Approval(call_id=call.id, decision=word, arguments=arguments)
            annotate(agent.store, agent.current_dialog.dialog_id, foreign)
        assert agent.respond(return_session=True).state == "waiting"
        assert (agent.waiting, paid) == ((call,), [])


def test_a_question_escapes_control_characters() -> None:
    """What a model wrote cannot rewrite the terminal line that asks about it: controls and bidirectional marks are spelt out."""
    call = ToolCallContent(id="c", name="pay\x1b[2K", args={"to": "ann\r\u202ebob\x07", "note": "Zoë 漢字\n"})
    asked = question(call)
    assert "\x1b" not in asked
    assert not set(asked) & set("\r\u202e\x07")
    assert "Zoë 漢字" in asked


# --- messages that arrive while a turn runs ---------------------------------------------------------------------------


def test_a_message_during_the_last_call_comes_after_the_answer() -> None:
    """What comes too late for the answer stands in the dialog after it; the next call answers it."""
    agents: list[Agent] = []

    def answer(request: Request) -> str:
        if len(request.body["messages"]) == 2:
            agents[0].receive("wait, one more thing")
            return "Here you are."
        return "And that too."

    agent, _ = scripted(answer)
    agents.append(agent)
    session = agent.respond("go", return_session=True)
    assert [message.content for message in session.late] == ["wait, one more thing"]
    assert roles(agent.current_dialog) == ["system", "user", "assistant", "user"]
    assert agent.respond().content == "And that too."


def test_images_and_prompts_arrive_within_a_turn() -> None:
    """R83, R84: all three ways of receiving keep what comes in the inbox while a turn runs."""
    png = bytes.fromhex("89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489")

    @tool
    def flood(context: CallContext) -> str:
        """Say everything at once."""
        context.agent.receive_image(png, "look")
        context.agent.receive_prompt(Prompt(path="t/x", prompt="Mind {what}."), {"what": "the gap"})
        return "ran"

    agent, _ = scripted([calling("flood"), "ok"], tools=[flood])
    agent.respond("go")
    said = [message.text_content() for message in agent.current_dialog.messages if message.role == "user"]
    assert (kinds(agent.current_dialog).count("inbox"), said) == (2, ["go", "look", "Mind the gap."])


def test_a_fork_has_its_own_inbox() -> None:
    """D24: what arrived for the parent's turn is not the child's; the child's open call has a result that says so."""

    @tool
    def branch(context: CallContext) -> str:
        """Branch off in the middle of the turn."""
        context.agent.receive("for the parent")
        context.agent.fork("main", "child", switch=False)
        return "ran"

    agent, provider = scripted([calling("branch"), "parent", "child"], tools=[branch])
    agent.respond("go")
    agent.respond("what now?", alias="child")
    users = [content for role, content in sent(provider.requests[2]) if role == "user"]
    assert users == ["go", "what now?"]
    assert len([content for role, content in sent(provider.requests[2]) if role == "tool"]) == 1
