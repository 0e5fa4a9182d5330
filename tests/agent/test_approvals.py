"""Decisions: a call waits across processes and days, and what was decided is done once. Messages that arrive while a turn runs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from palaver import Prompt, Session, SqliteStore
from palaver.agent import Agent, Decision, ProviderInvoker, decide, needs_work, subagent, waiting_calls
from palaver.agent.approvals import Approver, annotate
from palaver.browsing.composition import marks
from palaver.browsing.entries import entries as rows_of
from palaver.browsing.outline import first_words, outline
from palaver.errors import AgentFailure, Conflict, DecisionNeeded, InvalidInput, NotFound
from palaver.log.entries import Approval
from palaver.messages import ToolCallContent
from palaver.providers import ScriptedProvider
from palaver.testing.kills import dying_store
from palaver.tools import CallContext, tool
from palaver.transcripts import export
from palaver.transcripts.doctor import examine
from palaver.transcripts.markdown import markdown
from palaver.wire import Request
from tests.agent.helper import MODEL, Died, both, calling, die, entries, kinds, results, roles, scripted, sent
from tests.cli.commands import run


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
    assert (caught.value.trace.state, call.name, dict(call.args), paid) == ("waiting", "pay", {"amount": 5}, [])
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
    agent.options = replace(agent.options, approve=broken)
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


def test_of_two_decisions_made_at_once_one_counts(tmp_path: Path) -> None:
    """Who does not replace a decision gets Conflict where there is one, with its maker; of several threads, one decides."""
    with SqliteStore(tmp_path / "store.db") as store:
        agent, _ = scripted([calling("pay", amount=5), "Paid."], bank()[1], store=store)
        (call,) = agent.respond("pay 5", return_session=True).waiting
        dialog_id, session_id = agent.current_dialog.dialog_id, agent.current_dialog.session_id

        def made(who: str) -> bool:
            with suppress(Conflict):
                decide(Session.open(store, session_id).dialog(dialog_id), call.id, Decision(by=who), replace=False)
                return True
            return False

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(made, map(str, range(8)))) == 1
        decide(agent.current_dialog, call.id, Decision(decision="deny", by="ann"))
        with pytest.raises(Conflict, match="by ann already: deny"):
            decide(agent.current_dialog, call.id, Decision(), replace=False)


# --- messages while a call waits ------------------------------------------------------------------------------------------


def test_a_decision_for_always_decides_later_calls() -> None:
    """As data of the log, in any process and dialog of the session, until a newer one; other sessions and tools ask."""
    paid, prompt = bank()
    pays = [calling("pay", amount=amount) for amount in (5, 6, 7, 8)]
    agent, _ = scripted([pays[0], pays[1], "Paid.", pays[2], "No."], prompt)
    (call,) = agent.respond("pay", return_session=True).waiting
    agent.approve(call.id, by="ann", always=True)
    assert (agent.respond().content, paid) == ("Paid.", [5, 6])
    decided = [entry for entry in entries(agent.current_dialog) if isinstance(entry, Approval)]
    assert [(entry.by, entry.always) for entry in decided] == [("ann", "pay"), ("ann", None)]
    record = Decision(decision="deny", by="bob", reason="Enough.", always=True).entry(call)
    annotate(agent.store, agent.current_dialog.fork().dialog_id, record)
    assert (agent.respond("again").content, paid) == ("No.", [5, 6])
    assert results(agent.current_dialog)[-1] == "This call was not run: it was not allowed. bob said: Enough."
    other, _ = scripted([pays[3]], prompt, store=agent.store)
    assert other.respond("pay", return_session=True).state == "waiting"
    with pytest.raises(InvalidInput, match="An edit decides one call"):
        Decision(decision="edit", arguments={}, always=True)


def test_a_decision_for_always_settles_all_that_wait() -> None:
    """Calls of the tool that wait already, those of a sub-agent too, need no person any more; one more answer of the agent runs them."""
    paid, prompt = bank()
    till = Agent("till", prompt, MODEL, ScriptedProvider([calling("pay", "", "deep", amount=9), "Done."]))
    script = [both(("pay", {"amount": 5}), ("pay", {"amount": 6}), ("till", {"task": "Pay."})), "Paid."]
    agent, _ = scripted(script, prompt, tools=[subagent(till)])
    waiting = agent.respond("pay", return_session=True).waiting
    assert [call.name for call in waiting] == ["pay"] * 3
    agent.approve(waiting[0].id, always=True)
    assert needs_work(agent.store, agent.current_dialog.dialog_id)
    assert (agent.respond().content, sorted(paid)) == ("Paid.", [5, 6, 9])


def test_a_call_that_nobody_decides_expires() -> None:
    """It is refused at the next answer, a later decision is not accepted, and a decision in time counts."""
    paid, prompt = bank()
    options: dict[str, Any] = {"decide_within": 1e-6}
    agent, _ = scripted([calling("pay", amount=5), "It was too late."], prompt, **options)
    (call,) = agent.respond("pay", return_session=True).waiting
    assert list(waiting_calls(agent.store)) == []
    with pytest.raises(NotFound, match="waited too long"):
        agent.approve(call.id)
    assert needs_work(agent.store, agent.current_dialog.dialog_id)
    assert (agent.respond().content, paid) == ("It was too late.", [])
    assert results(agent.current_dialog) == ["This call was not run: it was not allowed. Nobody decided in time."]
    agent, _ = scripted([calling("pay", amount=5), "Paid."], prompt, decide_within=3600)
    (call,) = agent.respond("pay", return_session=True).waiting
    (waiting,) = waiting_calls(agent.store)
    assert (waiting.call.id, waiting.deadline) == (call.id, waiting.since + 3600)
    agent.approve(call.id)
    agent.options = replace(agent.options, decide_within=1e-6)
    assert (agent.respond().content, paid) == ("Paid.", [5])
    with pytest.raises(InvalidInput, match="decide_within"):
        scripted([], decide_within=0)


def test_a_message_while_a_call_waits_is_queued() -> None:
    """It cancels nothing and asks nobody: it is kept in the inbox, and the next process that has a decision delivers it after the result."""
    paid, prompt = bank()
    agent, provider = scripted([calling("pay", amount=5), "Here I am."], prompt)
    agent.respond("pay 5", return_session=True)
    with pytest.raises(DecisionNeeded, match=r"that of this call too, are kept .*: do not send them again") as caught:
        agent.respond("are you there?")
    agent.receive("hello?")
    (call,) = agent.waiting
    assert (caught.value.calls, paid, len(provider.requests)) == ((call,), [], 1)
    assert kinds(agent.current_dialog).count("inbox") == 2
    later = Agent("tester", prompt, MODEL, provider, store=agent.store).resume("tester_main")
    decide(later.current_dialog, call.id, Decision())
    later.receive("still there?")
    assert later.respond().content == "Here I am."
    assert (paid, len(provider.requests)) == ([5], 2)
    said = [message.text_content() for message in later.current_dialog.messages if message.role == "user"]
    assert said == ["pay 5", "are you there?", "hello?", "still there?"]
    assert sent(provider.requests[1])[3][0] == "tool"
    assert examine(agent.store, agent.current_dialog.session_id).healthy


@pytest.mark.parametrize("said", ["", "are you there?"])
def test_a_call_waits_for_an_agent_without_its_tool(said: str) -> None:
    """Another agent in the dialog, or the same one while a server of tools is away, cancels nothing: the log says that the call waits."""
    paid, prompt = bank()
    agent, provider = scripted([calling("pay", amount=5), "Paid."], tools=prompt.function_list)
    agent.respond("pay 5", return_session=True)
    (call,) = agent.waiting
    other = Agent("other", "You help.", MODEL, ScriptedProvider(["Hello."]), store=agent.store)
    trace = other.adopt("main", agent.current_dialog).respond(said, return_session=True)
    assert (trace.state, trace.waiting, results(agent.current_dialog)) == ("waiting", (call,), [])
    agent.approve(call.id)
    assert agent.respond().content == "Paid."
    assert (paid, len(provider.requests)) == ([5], 2)


@pytest.mark.parametrize("approve", [None, lambda _: True])
def test_an_approved_call_waits_for_its_tool(approve: Approver | None) -> None:
    """An agent that lacks the tool neither spends the decision nor asks its approver; a denial needs no tool."""
    paid, prompt = bank()
    agent, _ = scripted([calling("pay", amount=5), "Paid."], tools=prompt.function_list)
    (call,) = agent.respond("pay 5", return_session=True).waiting
    agent.approve(call.id)
    provider = ScriptedProvider(["Not paid."])
    other = Agent("other", "You help.", MODEL, provider, store=agent.store, approve=approve)
    other.adopt("main", agent.current_dialog)
    with pytest.raises(DecisionNeeded, match="none of them runs here") as caught:
        other.respond()
    assert (caught.value.calls, results(agent.current_dialog), paid) == ((), [], [])
    if approve is None:
        assert agent.respond().content == "Paid."
    else:
        other.deny(call.id)
        assert other.respond().content == "Not paid."
    assert paid == ([5] if approve is None else [])


def test_a_sub_agents_call_waits_for_its_tool() -> None:
    """An agent without the sub-agent's tool leaves the call to one that has it, unless the conversation goes on without it."""
    for abandon in (False, True):
        paid, prompt = bank()
        child, _ = scripted([calling("pay", amount=5), "It is paid."], prompt)
        agent, _ = scripted([calling("clerk", task="Pay 5."), "Paid."], tools=[subagent(child, "clerk")])
        (call,) = agent.respond("go", return_session=True).waiting
        other = Agent("other", "You help.", MODEL, ScriptedProvider(["Never mind."]), store=agent.store)
        trace = other.adopt("main", agent.current_dialog).respond("well?", return_session=True)
        assert (trace.state, trace.waiting, results(agent.current_dialog)) == ("waiting", (call,), [])
        if abandon:
            assert other.respond(abandon=True).content == "Never mind."
        else:
            agent.approve(call.id)
            assert agent.respond().content == "Paid."
        assert paid == ([] if abandon else [5])


def test_going_on_without_a_decision_is_explicit() -> None:
    """With `abandon` a call that waits is answered as not run, the model reads that, and the decided ones run; nothing waits any more."""
    paid, prompt = bank()
    script = [both(("pay", {"amount": 5}), ("pay", {"amount": 6}), ("balance", {})), "Never mind.", "Good."]
    agent, provider = scripted(script, prompt)
    first, _ = agent.respond("pay", return_session=True).waiting
    assert agent.respond("well?", return_session=True).state == "waiting"
    agent.approve(first.id)
    assert agent.respond("never mind", abandon=True).content == "Never mind."
    assert (paid, agent.waiting) == ([5], ())
    assert sorted(text.partition(":")[0] for text in results(agent.current_dialog)) == [
        "100",
        "This call was not run",
        "paid 5",
    ]
    assert [role for role, _ in sent(provider.requests[1])] == [
        "system",
        "user",
        "assistant",
        *["tool"] * 3,
        "user",
        "user",
    ]
    assert agent.respond("and now?", abandon=True).content == "Good."
    assert examine(agent.store, agent.current_dialog.session_id).healthy


def test_abandoning_reaches_the_call_of_a_sub_agent() -> None:
    """A message waits with the parent; abandoned, the sub-agent reads that its call was not run, and reports to the parent."""
    paid, prompt = bank()
    child, asked = scripted([calling("pay", amount=5), "Not paid."], prompt)
    agent, provider = scripted([calling("clerk", task="Pay 5."), "It was not paid."], tools=[subagent(child, "clerk")])
    agent.respond("go", return_session=True)
    assert agent.respond("well?", return_session=True).state == "waiting"
    assert (len(asked.requests), len(provider.requests)) == (1, 1)
    assert agent.respond(abandon=True).content == "It was not paid."
    assert (paid, agent.waiting) == ([], ())
    assert results(agent.current_dialog) == ["Not paid."]
    assert [content for role, content in sent(provider.requests[1]) if role == "user"] == ["go", "well?"]


@pytest.mark.parametrize("write", range(1, 9))
@pytest.mark.parametrize("abandon", [False, True])
def test_a_queued_message_survives_any_kill(write: int, abandon: bool) -> None:
    """Wherever the process dies that queues a message or goes on without the call: the message is there once or never, and no call ran."""
    paid, prompt = bank()
    agent, provider = scripted(lambda _: "Here I am.", prompt)
    provider = ScriptedProvider([calling("pay", amount=5), *["Here I am."] * 4])
    agent.llm_invoker = ProviderInvoker(provider)
    agent.respond("pay 5", return_session=True)
    dying = Agent("tester", prompt, MODEL, provider, store=dying_store(agent.store, write, die)).resume("tester_main")
    with suppress(Died, BaseExceptionGroup, DecisionNeeded):
        dying.respond("are you there?", abandon=abandon)
    later = Agent("tester", prompt, MODEL, provider, store=agent.store).resume("tester_main")
    for call in later.waiting:
        later.deny(call.id)
    assert later.respond().content == "Here I am."
    said = [message.text_content() for message in later.current_dialog.messages if message.role == "user"]
    assert said in (["pay 5", "are you there?"], ["pay 5"])
    assert abandon or "are you there?" in said, "without a decision, the message is the first write"
    assert (paid, len(results(later.current_dialog))) == ([], 1)


def test_a_waiting_call_is_shown_as_waiting() -> None:
    """`show` and the doctor say that it waits for a decision until there is one; it is neither an error nor an orphan, nor in the explorer's outline."""
    _, prompt = bank()
    agent, _ = scripted([calling("pay", amount=5)], prompt)
    agent.respond("pay 5", return_session=True)
    agent.respond("are you there?", return_session=True)
    dialog = agent.current_dialog
    shown = "".join(markdown(agent.store, dialog.session.record, dialog.view()))
    assert "This tool call waits for a decision." in shown
    assert "Error of" not in shown
    (row,) = [row for row in outline(dialog.view()) if row.get("derived")]
    assert (row["derived"], row["text"]) == ("waiting", "This tool call waits for its result.")
    found = examine(agent.store, dialog.session_id)
    (noted,) = [each for each in found.findings if each.code == "undecided_call"]
    assert (noted.what, noted.severity, found.healthy) == ("This tool call waits for a decision.", "note", True)
    assert "approve()" in noted.remedy
    agent.approve(agent.waiting[0].id)
    codes = {each.code for each in examine(agent.store, dialog.session_id).findings}
    assert codes & {"open_call", "undecided_call"} == {"open_call"}, "it waits for nobody any more"


def test_a_queued_message_is_shown_until_delivery(tmp_path: Path) -> None:
    """`show`, the exports, the originals, the first words and the marks show each waiting message, as waiting, until it is delivered, whatever its role."""
    _, prompt = bank()
    agent, _ = scripted([calling("pay", amount=5), "Here I am."], prompt, store=tmp_path / "log.db")
    agent.respond("pay 5", return_session=True)
    agent.respond("are you there?", return_session=True)
    agent.receive("Be polite.", role="system")
    dialog = agent.current_dialog

    def waiting() -> list[tuple[str, str]]:
        """Return the marked messages: the handle of each and its first words."""
        rows = list(rows_of(dialog))
        at = [rows[index]["handle"] for index in marks(dialog)["waiting"]]
        return [(place, row["label"]) for place, row in zip(at, first_words(dialog.session, at), strict=True)]

    def texts() -> list[str]:
        """Return the conversation in each form that people read."""
        shown = run("show", "tester_main", "--store", tmp_path / "log.db").out
        return [shown, b"".join(export(agent.store, dialog.session_id, "markdown").pieces).decode()]

    (said, there), (told, polite) = waiting()
    assert (there, polite) == ("are you there?", "Be polite.")
    for text in texts():
        assert text.rstrip().endswith("## User · waiting\n\nare you there?\n\n## System · waiting\n\nBe polite.")
    assert there in run("show", "tester_main", "--entries", "--store", tmp_path / "log.db").out
    assert run("show", said, "--store", tmp_path / "log.db").out.strip() == there
    for form in ("openai-chat", "claude-code"):
        report = export(agent.store, dialog.session_id, form).report
        assert {str(change.handle) for change in report.lost() if change.what == "message"} == {said, told}
    agent.deny(agent.waiting[0].id)
    agent.respond()
    assert waiting() == []
    assert all(text.count(there) == 1 and "waiting" not in text for text in texts())


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
