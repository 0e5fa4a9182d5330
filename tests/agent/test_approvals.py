"""Decisions: a call waits across processes and days, and what was decided is done once."""

from contextlib import closing
from pathlib import Path

import pytest

from palaver import Prompt, Session, SqliteStore, Store
from palaver.agent import Agent, Decision, ProviderInvoker, decide, open_calls
from palaver.agent.inbox import beside
from palaver.errors import CallbackFailed, DecisionNeeded, InvalidInput, NotFound
from palaver.log.entries import Approval
from palaver.messages import ToolCallContent
from palaver.models import ScriptedProvider
from palaver.tools import Function, tool
from palaver.wire import Request
from tests.agent.helper import MODEL, both, calling, kinds, roles, scripted, sent


def bank() -> tuple[list[int], Prompt]:
    """Give a tool that must be allowed, one that need not be, and a list of what was paid."""
    paid: list[int] = []

    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pay."""
        paid.append(amount)
        return f"paid {amount}"

    @tool
    def balance() -> str:
        """Look."""
        return "100"

    return paid, Prompt(path="bank/system", prompt="You are a bank.", function_list=[pay, balance])


def test_a_call_waits_and_goes_on_when_it_is_allowed() -> None:
    """Without an approver the turn ends as `waiting`; an approval lets the next call run it, and the model is asked once more only."""
    paid, prompt = bank()
    agent, provider = scripted([calling("pay", amount=5), "Paid."], prompt)
    agent.receive("pay 5")
    with pytest.raises(DecisionNeeded) as caught:
        agent.respond()
    assert caught.value.session.state == "waiting"
    (call,) = caught.value.calls
    assert (call.name, dict(call.args), paid) == ("pay", {"amount": 5}, [])
    assert agent.waiting() == (call,)
    assert agent.respond(return_session=True).state == "waiting"
    assert kinds(agent.current_dialog).count("turn_ended") == 1, "waiting on writes nothing"
    agent.approve(call.id, by="ann")
    assert agent.waiting() == ()
    assert agent.respond().content == "Paid."
    assert paid == [5]
    assert len(provider.requests) == 2


def test_a_refusal_is_told_to_the_model() -> None:
    """A denied call never runs; the model reads who said no, and why."""
    paid, prompt = bank()
    agent, provider = scripted([calling("pay", amount=5), "All right."], prompt)
    agent.receive("pay 5")
    session = agent.respond(return_session=True)
    agent.deny(session.waiting[0].id, "too much", by="ann")
    assert agent.respond().content == "All right."
    assert paid == []
    (said,) = [content for role, content in sent(provider.requests[1]) if role == "tool"]
    assert "not run" in said
    assert "ann said: too much" in said


def test_edited_arguments_are_run_and_said() -> None:
    """The call runs with what the human put in; the model is told so, and the log keeps what it asked for."""
    paid, prompt = bank()
    agent, provider = scripted([calling("pay", amount=500), "Paid 5."], prompt)
    agent.receive("pay")
    session = agent.respond(return_session=True)
    agent.edit(session.waiting[0].id, {"amount": 5}, by="ann")
    agent.respond()
    assert paid == [5]
    (said,) = [content for role, content in sent(provider.requests[1]) if role == "tool"]
    assert said.endswith("paid 5")
    assert '{"amount":5}' in said.replace(" ", "")
    assert dict(agent.current_dialog.messages[2].tool_calls()[0].args) == {"amount": 500}


def test_others_of_the_batch_do_not_wait() -> None:
    """A call that needs no decision runs while its neighbour waits, and is not run again afterwards."""
    paid, prompt = bank()
    agent, _ = scripted([both(("pay", {"amount": 5}), ("balance", {})), "done"], prompt)
    agent.receive("go")
    session = agent.respond(return_session=True)
    assert [call.name for call in session.waiting] == ["pay"]
    assert roles(agent.current_dialog)[-1] == "tool"
    agent.approve(session.waiting[0].id)
    agent.respond()
    assert roles(agent.current_dialog).count("tool") == 2
    assert paid == [5]


def test_a_decision_is_made_in_another_process_days_later(tmp_path: Path) -> None:
    """Nothing waits in memory: the store is all that the three processes share."""
    path = tmp_path / "store.db"

    def answer(request: Request) -> object:
        return "Paid." if any(m["role"] == "tool" for m in request.body["messages"]) else calling("pay", amount=5)

    def agent_over(store: Store) -> tuple[list[int], Agent]:
        paid, prompt = bank()
        return paid, Agent("bank", prompt, MODEL, ProviderInvoker(ScriptedProvider(answer)), store=store)

    with closing(SqliteStore(path)) as store:
        _, agent = agent_over(store)
        agent.open("till", session_name="till").receive("pay 5")
        assert agent.respond(return_session=True).state == "waiting"
    with closing(SqliteStore(path)) as store:  # a page that knows no agent
        dialog = Session.open("till", store).root
        (call,) = open_calls(dialog)
        decide(dialog, call.id, Decision(decision="approve", by="ann"))
    with closing(SqliteStore(path)) as store:
        paid, agent = agent_over(store)
        assert agent.resume("till").respond().content == "Paid."
        assert paid == [5]


@pytest.mark.parametrize(
    ("verdict", "ran"), [(True, [5]), (False, []), (Decision(decision="edit", arguments={"amount": 1}), [1])]
)
def test_an_approver_at_hand_decides_at_once(verdict: object, ran: list[int]) -> None:
    """An approver, plain or async, decides within the turn; its decision is in the log before the effect."""
    paid, prompt = bank()

    async def approve(call: ToolCallContent) -> object:
        assert (call.name, paid) == ("pay", [])
        return verdict

    agent, _ = scripted([calling("pay", amount=5), "done"], prompt, approve=approve)
    agent.receive("go")
    agent.respond()
    assert paid == ran
    seen = kinds(agent.current_dialog)
    assert seen.index("approval") < seen.index("tool")


def test_an_approver_may_leave_it_to_others() -> None:
    """None from the approver: the call waits as if nobody had been at hand."""
    paid, prompt = bank()
    agent, _ = scripted([calling("pay", amount=5), "done"], prompt, approve=lambda _: None)
    agent.receive("go")
    assert agent.respond(return_session=True).state == "waiting"
    assert paid == []


def test_an_approver_that_raises_is_a_typed_failure() -> None:
    """The turn fails, nothing is run, and the call still waits."""
    paid, prompt = bank()

    def approve(_: object) -> bool:
        raise OSError("no terminal")

    agent, _ = scripted([calling("pay", amount=5), "done"], prompt, approve=approve)
    agent.receive("go")
    with pytest.raises(CallbackFailed, match="approver"):
        agent.respond()
    assert paid == []
    assert [call.name for call in agent.waiting()] == ["pay"]


def test_d7b_a_message_while_a_call_waits_gives_the_call_up() -> None:
    """D7b: the user goes on without deciding: the call is closed explicitly, not run, and the request is valid."""
    paid, prompt = bank()
    agent, provider = scripted([calling("pay", amount=5), "Never mind then."], prompt)
    agent.receive("pay 5")
    agent.respond(return_session=True)
    agent.receive("forget it")
    assert agent.respond().content == "Never mind then."
    assert paid == []
    (said,) = [content for role, content in sent(provider.requests[1]) if role == "tool"]
    assert "not run" in said
    assert sent(provider.requests[1])[-1] == ("user", "forget it")


def test_what_was_decided_is_done_although_the_user_spoke() -> None:
    """An approved call runs, also when the user said something before anybody went on."""
    paid, prompt = bank()
    agent, _ = scripted([calling("pay", amount=5), "ok"], prompt)
    agent.receive("pay 5")
    agent.approve(agent.respond(return_session=True).waiting[0].id)
    agent.receive("quickly please")
    agent.respond()
    assert paid == [5]


def test_d21_an_old_approval_allows_nothing_new() -> None:
    """D21, D16: a provider that calls its calls the same does not inherit yesterday's approval."""
    paid, prompt = bank()
    agent, _ = scripted(
        [calling("pay", "", "pay:0", amount=5), "ok", calling("pay", "", "pay:0", amount=500), "ok"], prompt
    )
    agent.receive("pay 5")
    agent.approve(agent.respond(return_session=True).waiting[0].id)
    agent.respond()
    agent.receive("pay 500")
    assert agent.respond(return_session=True).state == "waiting"
    assert paid == [5]


def test_a_decision_about_nothing_is_refused() -> None:
    """A call that is not open, or has its result, cannot be decided about."""
    _, prompt = bank()
    agent, _ = scripted([calling("balance"), "100"], prompt)
    agent.receive("?")
    agent.respond()
    with pytest.raises(NotFound):
        agent.approve(agent.current_dialog.messages[2].tool_calls()[0].id)


def test_whether_a_call_needs_a_decision_may_depend_on_its_arguments() -> None:
    """`needs_approval` may be a function of the arguments."""
    paid: list[int] = []

    def pay(amount: int) -> str:
        """Pay."""
        paid.append(amount)
        return "paid"

    function = Function.from_callable(pay, needs_approval=lambda args: args["amount"] > 10)
    agent, _ = scripted(
        [calling("pay", amount=5), calling("pay", amount=50), "x"],
        Prompt(path="b", prompt="B.", function_list=[function]),
    )
    agent.receive("go")
    assert agent.respond(return_session=True).state == "waiting"
    assert paid == [5]


@pytest.mark.parametrize(
    ("word", "arguments"),
    [("reject", None), ("denied", None), ("edit", None), ("edit", "all"), ("approve", {"amount": 1}), ("deny", {})],
)
def test_a_decision_that_is_not_understood_is_no_decision(word: str, arguments: object) -> None:
    """A word that nobody knows, or arguments that do not go with it, are refused; one that stands in the log lets nothing run."""
    paid, prompt = bank()
    agent, _ = scripted([calling("pay", amount=5), "Paid."], prompt)
    agent.receive("pay 5")
    (call,) = agent.respond(return_session=True).waiting
    with pytest.raises(InvalidInput, match=word):
        Decision(decision=word, arguments=arguments)  # type: ignore[arg-type]
    if word not in {"approve", "deny"}:
        foreign = Approval(call_id=call.id, decision=word, arguments=arguments)
        beside(agent.store, agent.current_dialog.dialog_id, foreign)
    assert agent.respond(return_session=True).state == "waiting"
    assert agent.waiting() == (call,)
    assert paid == []
