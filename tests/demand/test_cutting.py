"""D1 to D3: history is cut, by whatever rule, and what is sent never holds half of an exchange."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from palaver import (
    ContextManager,
    Dialog,
    InfeasibleBudget,
    InvalidInput,
    Message,
    Plan,
    SessionManager,
    Speaker,
    SystemMessage,
    fit,
)
from palaver.context import POLICIES, Viewed
from palaver.view import Drop
from tests.demand.ground import (
    IN_MEMORY,
    MODELS,
    PAGE,
    Place,
    Proof,
    answers,
    asks,
    lines,
    reopened,
    says,
    shown,
    unchanged,
)


class KeepLast(ContextManager):
    """What many write: the last so many messages, wherever that cuts."""

    name = "keep-last"

    def __init__(self, count: int) -> None:
        """Keep so many."""
        self.count = count

    def __call__(self, dialog: Viewed) -> Viewed:
        """Build a dialog of the last messages alone."""
        assert isinstance(dialog, Dialog)
        kept = list(dialog.messages)[len(dialog.messages) - self.count :]
        made = Dialog(owner=dialog.owner)
        for message in kept:
            made.append(message)
        return made


def one_run() -> list[Message]:
    """`U, A[c1], R1, A`."""
    return [asks("ask"), says("look", "c1"), answers("c1"), says("done")]


@pytest.mark.parametrize("keep", range(5))
def test_d1_every_cut_by_count_is_valid(place: Place, proof: Proof, keep: int) -> None:
    """`U, A[c1], R1, A`; keep the last 0 to 4, by a manager, by a fork and on a plain list: valid for all, and the store untouched."""
    dialog = Dialog(owner="user", store=place.open())
    dialog.append(one_run())
    with unchanged(dialog):
        proof.valid(dialog, policy=KeepLast(keep))
        fork = dialog.fork(last_n=keep, first_k=0) if keep else None
        if fork is not None:
            proof.valid(fork)
            assert len(fork.messages) == keep
        assert [message.content for message in dialog.messages] == ["ask", "look", "done", "done"]
    dialog.append(asks("and now?"))
    proof.valid(reopened(place, dialog))


@pytest.mark.parametrize("name", POLICIES)
def test_d1_every_policy_at_every_budget(proof: Proof, name: str) -> None:
    """The same run before a page of others, under every policy there is and budgets down to what must be sent: valid for all."""
    dialog = Dialog(owner="user")
    for number in range(6):
        dialog.append([asks(f"ask {number}"), says("look", f"c{number}"), answers(f"c{number}", PAGE), says("done")])
    with unchanged(dialog):
        for budget in (300, 20_000):
            try:
                proof.valid(dialog, policy=name, budget=budget)
            except InfeasibleBudget:
                assert (name, budget < 20_000) == ("full", True), (
                    "only the policy that leaves nothing out has no answer"
                )


@pytest.mark.parametrize("keep", range(5))
def test_d1_a_list_that_somebody_else_cut(keep: int) -> None:
    """A list of dictionaries, cut by its owner in the middle of an exchange: what comes back has each call with its result."""
    call = {"id": "c1", "type": "function", "function": {"name": "shell", "arguments": "{}"}}
    whole: list[dict[str, object]] = [
        {"role": "user", "content": "ask"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "done"},
        {"role": "assistant", "content": "done"},
    ]
    given = whole[len(whole) - keep :]
    sent = fit([*given, {"role": "user", "content": "go on"}], model="gpt-5.2", budget=4_000).messages
    made = [call["id"] for message in sent for call in message.get("tool_calls") or ()]
    assert [message["tool_call_id"] for message in sent if message["role"] == "tool"] == made
    assert given == whole[len(whole) - keep :]


def two_runs() -> list[Message]:
    """Two of `[sys, U, A[c], R, A]`."""
    return [
        message
        for run in "ab"
        for message in (
            SystemMessage.text(f"rules {run}"),
            asks(f"ask {run}"),
            says("", f"c{run}"),
            answers(f"c{run}"),
            says(f"done {run}"),
        )
    ]


@pytest.mark.parametrize("front", ["system", "pinned", "injected"])
def test_d2_no_orphan_hides_behind_what_stands_in_front(place: Place, proof: Proof, front: str) -> None:
    """Every limit over two runs, with instructions, a pinned message or a harness's words in front: valid for all, every ask kept."""
    dialog = Dialog(owner="user", store=place.open())
    if front == "injected":
        dialog.append(asks("AGENTS.md: be careful.").model_copy(update={"speaker": Speaker.HARNESS}))
    dialog.append(two_runs())
    if front == "pinned":
        dialog.pin(dialog.messages.handle(1))
    with unchanged(dialog):
        for limit in range(11) if place.kind == "memory" else (0, 3, 7, 10):
            proof.valid(dialog, policy=KeepLast(limit))
            seen = lines(dialog.view(KeepLast(limit)))
            assert "ask b" in seen, "the newest words of the user are in every view"
            assert front != "pinned" or "ask a" in seen
            if limit:
                proof.valid(dialog.fork(last_n=limit, first_k=0))
                proof.valid(dialog.fork(last_n=limit, first_k=1))


def dropping(indexes: Sequence[int]) -> Plan:
    """Plan to leave exchanges out."""
    return Plan(policy="mine", drops=tuple(Drop(index=index) for index in indexes))


def test_d3_no_compaction_over_an_open_call(place: Place, proof: Proof) -> None:
    """While `c1` waits for its result nothing can be committed that leaves it out; what a policy commits keeps it, and `R1` finds it."""
    dialog = Dialog(owner="user", store=place.open())
    for number in range(5):
        dialog.append([asks(f"ask {number} {PAGE}"), says(f"did {number}")])
    dialog.append([asks("now the long one"), says("", "c1")])
    with unchanged(dialog), pytest.raises(InvalidInput):
        dialog.commit(dropping(range(len(dialog.view().exchanges))))
    dialog.commit(dialog.compose("fold", 900, model="gpt-5.2"))
    assert "pending c1" in shown(dialog)[-1]
    proof.valid(dialog)
    dialog.append([answers("c1", "the result"), says("done")])
    assert shown(reopened(place, dialog))[-3:] == ["call c1", "result c1: the result", "done"]
    proof.valid(dialog)


@pytest.mark.parametrize("how", ["policy", "recorded"])
@IN_MEMORY
def test_d3_a_chain_of_compactions_each_between_call_and_result(place: Place, proof: Proof, how: str) -> None:
    """34 compactions, each while a call was open and each second one reaching back before the last: every projection is valid."""
    manager = SessionManager.create("/home/ann", place.open())
    for message in (asks("go on"), says("", "c"), answers("c", PAGE)):
        manager.append_message(message)
    before = manager.append_message(says("read"))
    for number in range(34):
        kept = manager.append_message(asks(f"step {number}"))
        manager.append_message(says(f"step {number}", f"c{number}"))
        if how == "recorded":
            manager.append_compaction(f"summary {number}", before if number % 2 else manager.leaf_id, 1_000)
        else:
            dialog = manager.dialog
            whole = dialog.compose("full", 10_000, model="gpt-5.2").tokens_after
            dialog.commit(dialog.compose("fold", whole * 4 // 5, model="gpt-5.2"))
        manager.append_message(answers(f"c{number}", PAGE[: 800 + 200 * (number % 7)]))
        manager.append_message(says(f"done {number}"))
        before = kept
        seen = shown(manager.dialog.reload())
        assert f"call c{number}" in seen
        assert not any(line.startswith("pending") for line in seen)
        if place.kind == "memory" or not number % 8:
            proof.valid(manager.dialog)
    proof.valid(reopened(place, manager.dialog))
    assert set(MODELS) == {name for what, name in proof.properties if what == "profile"}
