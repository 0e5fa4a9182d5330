"""Requests that are too long: the context manager before every call, and one compaction when a provider says so all the same."""

from typing import Any

import pytest

from palaver import AutoCompact, ContextManager, DefaultContextManager, Plan, Prompt, Session
from palaver.agent import Agent
from palaver.context import Ledger
from palaver.context.policies.fold import FoldContextManager as Fold
from palaver.context.triggers import Tokens
from palaver.errors import InfeasibleBudget, InvalidInput, ModelCallFailed, UnknownHandle, UnknownPolicy
from palaver.log.entries import Compaction, Custom
from palaver.session.compaction.attempts import REJECTED
from palaver.tokens import Budget, Rates
from palaver.view import Drop, View
from tests.agent.helper import MODEL, calling, entries, kinds, scripted, sent
from tests.agent.test_contract import look, word_first

OVERFLOW = {"error": {"kind": "ContextOverflow", "message": "Too long.", "limit": 3_000, "asked": 6_000}}


def talkative(agent: Agent, exchanges: int = 12) -> None:
    """Give a dialog a long past."""
    for number in range(exchanges):
        agent.current_dialog.put_text(f"question {number} " + "word " * 300)
        agent.current_dialog.put_text(f"answer {number} " + "word " * 300, role="assistant")


def test_an_overflow_leads_to_one_compaction_and_one_retry() -> None:
    """The view is made smaller by an entry of the log, and the model is asked again; the dialog keeps every message."""
    agent, provider = scripted([OVERFLOW, "short enough"])
    talkative(agent)
    agent.receive("go")
    before = len(agent.current_dialog.messages)
    assert agent.respond().content == "short enough"
    (made,) = [entry for entry in entries(agent.current_dialog) if isinstance(entry, Compaction)]
    assert made.policy == "default"
    assert made.tokens_after <= made.tokens_before * 0.8 * 3_000 / 6_000
    assert len(provider.requests[1].data) < len(provider.requests[0].data)
    assert sent(provider.requests[1])[-1] == ("user", "go")
    assert len(agent.current_dialog.messages) == before + 1


def test_a_second_overflow_is_a_typed_failure() -> None:
    """Exactly one compaction and one retry: no loop, whatever the provider says."""
    agent, provider = scripted([OVERFLOW, OVERFLOW])
    talkative(agent)
    agent.receive("go")
    with pytest.raises(ModelCallFailed):
        agent.respond()
    assert len(provider.requests) == 2
    assert kinds(agent.current_dialog).count("compaction") == 1


def test_a_compaction_by_hand_or_by_a_trigger_does_not_take_the_place_of_a_measured_one() -> None:
    """The view was made smaller since the newest message, and not by enough: an overflow is still measured, and the model asked once more."""
    for compact in (None, AutoCompact(triggers=(Tokens(limit=2_000),), budget=5_000)):
        agent, provider = scripted([OVERFLOW, "short enough"], compact=compact)
        talkative(agent)
        agent.receive("go")
        if compact is None:
            agent.current_dialog.compact(budget=5_000).approve()
        assert agent.respond().content == "short enough"
        assert len(provider.requests) == 2
        assert kinds(agent.current_dialog).count("compaction") == 2


def test_a_compaction_by_somebody_else_meanwhile_is_no_failure() -> None:
    """While room is made for a request that was too long, another process compacts: its view is sent, and the turn goes on."""
    agent, provider = scripted([OVERFLOW, "short enough"], context_manager=None)
    talkative(agent)
    agent.receive("go")
    dialog, beaten = agent.current_dialog, False

    class Beaten(Fold):
        def plan(self, view: View, ledger: Ledger, budget: Budget, prices: Rates | None) -> Plan:
            nonlocal beaten
            if not beaten:
                beaten = True
                other = Session.open(dialog.store.node(dialog.dialog_id).session_id, dialog.store)
                other.dialog(dialog.dialog_id).compact(budget=2_000).approve()
            return super().plan(view, ledger, budget, prices)

    agent.compact = AutoCompact(triggers=(), policy=Beaten())
    assert agent.respond().content == "short enough"
    assert len(provider.requests) == 2
    assert kinds(dialog).count("compaction") == 1


def test_a_policy_that_raises_while_compacting_ends_no_turn() -> None:
    """Bad input of the issue: for a trigger and for an overflow the default policy decides, and the log says what the other one raised."""

    class Broken(Fold):
        def plan(self, view: View, ledger: Ledger, budget: Budget, prices: Rates | None) -> Plan:
            del ledger, budget, prices
            raise ZeroDivisionError(view.at)

    for triggers, said in (((Tokens(limit=2_000),), ["ok"]), ((), [OVERFLOW, "ok"])):
        agent, _ = scripted(said, compact=AutoCompact(triggers=triggers, policy=Broken()))
        talkative(agent)
        agent.receive("go")
        assert agent.respond().content == "ok"
        (made,) = [entry for entry in entries(agent.current_dialog) if isinstance(entry, Compaction)]
        assert made.policy == "default"
        told = [
            entry
            for entry in entries(agent.current_dialog)
            if isinstance(entry, Custom) and entry.custom_type == REJECTED
        ]
        assert "ZeroDivisionError" in str(told[0].data)


def test_what_cannot_be_made_smaller_is_a_typed_failure_at_once() -> None:
    """Where every view must hold what there is, nothing is committed and nothing is asked again."""
    agent, provider = scripted([OVERFLOW])
    agent.receive("word " * 5_000)
    with pytest.raises(ModelCallFailed):
        agent.respond()
    assert len(provider.requests) == 1
    assert "compaction" not in kinds(agent.current_dialog)


def test_the_agents_own_policy_makes_the_room() -> None:
    """The compaction is the agent's policy's, where it has one."""
    agent, _ = scripted([OVERFLOW, "ok"], context_manager="fold", budget=100_000)
    talkative(agent)
    agent.receive("go")
    agent.respond()
    (made,) = [entry for entry in entries(agent.current_dialog) if isinstance(entry, Compaction)]
    assert made.policy == "fold"


def test_an_overflow_in_a_later_round_finds_room_too() -> None:
    """A turn may overflow more than once: each call of the model has one compaction."""
    prompt = Prompt(path="t/l", prompt="Look.", function_list=[look])
    agent, _ = scripted([OVERFLOW, calling("look", where="a"), OVERFLOW, "found"], prompt)
    talkative(agent, 20)
    agent.receive("go")
    assert agent.respond().content == "found"
    assert kinds(agent.current_dialog).count("compaction") == 2


class Seen(ContextManager):
    """A plain manager that notes what it was given, and drops the middle."""

    name = "seen"

    def __init__(self) -> None:
        self.given: list[list[str]] = []

    def __call__(self, dialog: Any) -> Any:  # noqa: ANN401 - the contract's own signature
        """Keep the first and the last."""
        self.given.append([message.text_content()[:10] for message in dialog.messages])
        return dialog.fork(last_n=1, first_k=1) if len(dialog.messages) > 3 else dialog


def test_a15_the_manager_shapes_what_is_sent_and_nothing_else() -> None:
    """A15: the model sees the pruned dialog, the canonical one has everything; giving the same object back is allowed."""
    manager = Seen()
    agent, provider = scripted(["one", "two"], context_manager=manager)
    agent.receive("first")
    agent.respond()
    assert len(provider.requests[0].body["messages"]) == 2
    talkative(agent, 2)
    agent.receive("last")
    agent.respond()
    assert sent(provider.requests[1])[-1] == ("user", "last")
    assert not any("question 0" in str(content) for _, content in sent(provider.requests[1]))
    assert len(agent.current_dialog.messages) == 9
    assert agent.current_dialog.children == ()
    with pytest.raises(TypeError):
        ContextManager()  # type: ignore[abstract]


def test_r131_the_manager_is_asked_before_every_call_repairs_included() -> None:
    """R131, bug 11: a repair cannot overflow what the manager keeps in bounds; it sees the refused answer as well."""
    manager = Seen()
    agent, _ = scripted(
        ["Hm.", "Answer yes"], Prompt(path="t/p", prompt="P.", parser=word_first), context_manager=manager
    )
    agent.receive("well?")
    agent.respond()
    assert [len(given) for given in manager.given] == [2, 4]
    assert manager.given[1][2] == "Hm."


def test_a25_a_manager_assigned_later_changes_nothing_small() -> None:
    """A25, R95: `context_manager` is assignable; a small dialog goes as it is."""
    agent, provider = scripted(["one"])
    agent.context_manager = DefaultContextManager(model_name=MODEL, max_tokens=128_000)
    agent.receive("hi")
    agent.respond()
    assert sent(provider.requests[0]) == [("system", "You are tested."), ("user", "hi")]


def test_an_agent_with_a_budget_and_no_manager_sends_what_the_default_policy_leaves() -> None:
    """The first words are told, the newest are whole: it is `palaver` that decides, and what it leaves out is within reach."""
    agent, provider = scripted(["ok"] * 9, budget=3_000)
    for number in range(8):
        agent.receive(f"ask {number}: " + "word " * 500)
        agent.respond()
    newest = sent(provider.requests[-1])
    assert newest[-1] == ("user", "ask 7: " + "word " * 500)
    assert any("[Record" in text and "ask 0: " in text for _, text in newest)
    assert len(newest) < len(agent.current_dialog.messages)


def test_a_budget_that_cannot_be_kept_is_said_before_anything_is_sent() -> None:
    """DESIGN: an infeasible budget is a typed error with its breakdown, no API call; the turn is let go of."""
    agent, provider = scripted(["never"], budget=50)
    agent.receive("word " * 500)
    with pytest.raises(InfeasibleBudget) as caught:
        agent.respond()
    assert provider.requests == []
    assert agent.last_call is not None
    assert vars(caught.value)["session"] is agent.last_call
    assert agent.last_call.state == "failure"
    assert kinds(agent.current_dialog)[-1] == "turn_ended"


class Raising(ContextManager):
    """Raises."""

    name = "raising"

    def __call__(self, dialog: object) -> View:
        """Raise."""
        raise ZeroDivisionError(type(dialog).__name__)


class Forgetful(ContextManager):
    """Gives nothing."""

    name = "forgetful"

    def __call__(self, dialog: object) -> None:
        """Forget to give something back."""
        del dialog


class NoPlan(Fold):
    """Gives a text for a plan."""

    def plan(self, view: View, ledger: Ledger, budget: Budget, prices: Rates | None) -> Plan:
        """Give a text."""
        del view, ledger, budget, prices
        return "drop it"  # type: ignore[return-value]


class Looking(Fold):
    """Looks for something that is not there."""

    def plan(self, view: View, ledger: Ledger, budget: Budget, prices: Rates | None) -> Plan:
        """Raise an error of palaver's."""
        del view, ledger, budget, prices
        raise UnknownHandle("3f2a91c07b5e:1")


class Dropping(Fold):
    """Leaves the newest words out."""

    def plan(self, view: View, ledger: Ledger, budget: Budget, prices: Rates | None) -> Plan:
        """Drop them."""
        del ledger, budget, prices
        return Plan(policy="dropping", drops=(Drop(index=len(view.exchanges) - 1),))


@pytest.mark.parametrize(
    ("manager", "told"),
    [
        (Raising(), "ZeroDivisionError"),
        (Forgetful(), "not a dialog"),
        (NoPlan(), "gave a str, not a plan"),
        (Dropping(), "InvalidInput"),
        (Looking(), "UnknownHandle"),
    ],
)
@pytest.mark.parametrize("under", ["context_manager", "compact"])
def test_a_policy_that_raises_or_gives_no_view_ends_no_turn(manager: ContextManager, told: str, under: str) -> None:
    """Under `context_manager=` as under `compact=`: the default policy decides, and the log says once what the other one did."""
    limit = {"budget": 3_000} if under == "context_manager" else {}
    shaped = manager if under == "context_manager" else AutoCompact(triggers=(Tokens(limit=2_000),), policy=manager)
    words: dict[str, Any] = {under: shaped, **limit}
    agent, provider = scripted(["ok", "well"], **words)
    talkative(agent)
    for said in ("ok", "well"):
        agent.receive("go")
        assert agent.respond().content == said
    assert len(provider.requests) == 2
    kept = [
        entry for entry in entries(agent.current_dialog) if isinstance(entry, Custom) and entry.custom_type == REJECTED
    ]
    assert kept
    assert all(told in str(entry.data) for entry in kept)
    assert len(kept) <= 2  # once a call of the agent
    if under == "context_manager":
        assert {entry.data["trigger"] for entry in kept} == {"request"}
        assert all(len(str(request.body)) < 20_000 for request in provider.requests)


def test_a_policy_that_is_not_there_is_for_its_author_to_mend() -> None:
    """No policy of that name, or a configuration that is none: an error before anything is sent, and the turn is let go of."""
    for wanted, error in (("nothing of the kind", UnknownPolicy), ({"type": "letta", "evict": 3}, InvalidInput)):
        agent, provider = scripted(["ok"], context_manager=wanted)
        agent.receive("go")
        with pytest.raises(error):
            agent.respond()
        assert provider.requests == []
        agent.context_manager = None
        assert agent.respond().content == "ok"
