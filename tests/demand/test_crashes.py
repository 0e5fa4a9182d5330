"""D4 to D8: a process dies, is cut off, or cannot write, with calls begun and not recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import anyio
import pytest

from palaver import (
    Agent,
    Dialog,
    Prompt,
    ProviderInvoker,
    ScriptedProvider,
    Session,
    Store,
    StoreError,
    tool,
)
from palaver.errors import InvalidInput
from palaver.log import Draft, Header, LateResult
from tests.demand.dying import STEPS, cashier, trio, walker
from tests.demand.ground import Place, answers, bodies, reopened, shown, valid

Kill = Callable[..., int]
DEATHS = 6
MOST = 40
"""More writes of entries than the turn makes."""


def told(dialog: Dialog) -> tuple[int, list[str]]:
    """Return how many calls a dialog holds, and the texts of their results."""
    messages = list(dialog.messages)
    results = [block.text() for message in messages for block in message.tool_results()]
    return sum(len(message.tool_calls()) for message in messages), results


def test_killed_behind_every_write(place: Place, kill: Kill, tmp_path: Path) -> None:
    """D4: a kill behind each write of a program: the same program finishes the turn, in the same session, with the question said once."""
    deaths, store = 0, place.open()
    for writes in range(1, MOST):
        effects = tmp_path / f"{writes}"
        wanted = {"name": f"killed {writes}", "effects": str(effects), "writes": writes}
        if kill("turn", address=place.address, **wanted) != -9:
            break
        deaths += 1
        agent, _ = cashier(store, effects)
        agent.open("main", session_name=f"killed {writes}", resume=True, first="Charge 5.")
        assert agent.respond().content == "That is done."
        assert [one.content for one in agent.current_dialog.messages if one.role == "user"] == ["Charge 5."]
        _whole(agent.current_dialog, effects)
    assert MOST > deaths > 8
    assert len(Session.list(store)) == deaths + 1


def _whole(dialog: Dialog, effects: Path) -> None:
    """Hold a finished turn to its promise: one branch, one call, one result, and no effect twice."""
    session = Session.open(dialog.store, dialog.session_id)
    assert not any(dialog.store.verify(dialog.dialog_id))
    assert len(session.dialogs) == 1
    calls, (result,) = told(session.root)
    done = effects.read_text(encoding="utf-8").splitlines() if effects.exists() else []
    assert calls == 1
    assert done == ["5"] if result == "charged 5" else "unknown" in result and done in ([], ["5"])
    assert sum(line.startswith("call ") for line in shown(session.root)) == 1
    valid(session.root)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 60))])
def test_killed_again_and_again(place: Place, kill: Kill, tmp_path: Path, seed: int) -> None:
    """D4: a turn of thirty calls that is killed after writes and within effects: each call once, in order, with one result; no effect twice."""
    draw, effects, store = Random(seed), tmp_path / "effects", place.open()  # noqa: S311 - no secret
    steps = partial(kill, "steps", address=place.address, effects=str(effects))
    walker(store, effects).open("main", session_name="long").receive("Do all the steps.")
    for _ in range(DEATHS):
        assert steps(**draw.choice([{"writes": draw.randrange(1, 15)}, {"dies_at": draw.randrange(1, 5)}])) == -9
    assert steps() == 0
    dialog = Session.open(store, "long").root
    messages = list(dialog.messages)
    calls = [call for message in messages for call in message.tool_calls()]
    assert [call.args["number"] for call in calls] == list(range(1, STEPS + 1))
    assert [message.text_content() for message in messages if message.role == "user"] == ["Do all the steps."]
    assert messages[-1].text_content() == "All done."
    done = Counter(effects.read_text(encoding="utf-8").splitlines())
    results = [(block.id, block.text()) for message in messages for block in message.tool_results()]
    assert sorted(call for call, _ in results) == sorted(call.id for call in calls)
    for call in calls:
        effect, result = f"{call.name} {call.args['number']}", dict(results)[call.id]
        assert (result == effect and done[effect]) or (call.name == "write" and "unknown" in result)
        assert done[effect] <= 1 or call.name == "look"
    assert sum("unknown" in result for _, result in results) <= 2 * DEATHS, "two calls at most run at a time"
    valid(dialog)


def test_a_call_that_died_is_not_run_again(place: Place, kill: Kill, tmp_path: Path) -> None:
    """D5: `A[c1]`, killed while it ran: the outcome is unknown, once; asking again runs nothing; a late real result is kept beside it."""
    effects = tmp_path / "effects"
    assert kill("turn", address=place.address, name="d5", effects=str(effects), dies=True) == -9
    agent, provider = cashier(place.open(), effects)
    agent.resume("d5")
    assert agent.respond().content == "That is done."
    with pytest.raises(InvalidInput, match="nothing new"):
        agent.respond()
    assert effects.read_text(encoding="utf-8") == "5\n"
    assert len(provider.requests) == 1
    dialog = agent.current_dialog
    calls, (unknown,) = told(dialog)
    assert calls == 1
    assert "unknown" in unknown
    _late(place, dialog)


def _late(place: Place, dialog: Dialog) -> None:
    """Have the real result arrive late, in both ways; the one that is in force stays."""
    (call,) = (call for message in dialog.messages for call in message.tool_calls())
    before = shown(dialog)
    (late,) = dialog.record(LateResult(message=answers(call.id, "charged 5, really")))
    assert shown(dialog) == before
    kept = dialog.recall(late)
    assert isinstance(kept, LateResult)
    assert kept.message.text_content() == "charged 5, really"
    dialog.append(answers(call.id, "charged 5, again"))
    seen = shown(reopened(place, dialog))
    assert [line for line in seen if line.startswith(f"result {call.id}")] == [
        line for line in before if line.startswith(f"result {call.id}")
    ]
    valid(dialog)


@pytest.mark.parametrize("approved", [False, True])
def test_executed_and_not_written_is_written_on_retry(
    place: Place, monkeypatch: pytest.MonkeyPatch, *, approved: bool
) -> None:
    """D6: the tool ran and its append raised: no model call before call and result are durable; the retry writes what is missing."""
    ran: list[int] = []

    @tool(needs_approval=approved)
    def pay(amount: int) -> str:
        """Pay."""
        ran.append(amount)
        return f"paid {amount}"

    store, full = place.open(), [True]
    append = store.append

    def refusing(dialog_id: Any, drafts: Sequence[Draft], turn_head: int, *last: Header | None) -> tuple[Header, ...]:  # noqa: ANN401
        if full and any(one.role == "tool" for one in drafts):
            raise StoreError("No room.", reason="full")
        return append(dialog_id, drafts, turn_head, *last)

    monkeypatch.setattr(store, "append", refusing)
    script = [{"tool_calls": [{"name": "pay", "arguments": {"amount": 5}, "id": "c1"}]}, "Paid."]
    agent, provider = _scripted(store, script, pay)
    agent.receive("pay 5")
    if approved:
        agent.approve(agent.respond(return_session=True).waiting[0].id)
    with pytest.raises(StoreError, match="No room"):
        agent.respond()
    assert len(provider.requests) == 1
    before = bodies(agent.current_dialog)
    full.clear()
    assert agent.respond().content == "Paid."
    assert ran == [5]
    dialog = agent.current_dialog
    assert bodies(dialog)[: len(before)] == before
    assert told(dialog) == (1, ["paid 5"])
    assert reopened(place, dialog).view() == dialog.view(), "what is in memory and what is stored are the same"
    valid(dialog)


def _scripted(store: Store, script: Sequence[object], *tools: Any, **more: Any) -> tuple[Agent, Any]:  # noqa: ANN401
    provider = ScriptedProvider(script)
    prompt = Prompt(path="demand/bank", prompt="You keep the till.", function_list=list(tools))
    agent = Agent("agent", prompt, "gpt-5.2", ProviderInvoker(provider), store=store, **more)
    return agent.open("main"), provider


async def _cut_off(agent: Agent, ready: Callable[[], bool]) -> None:
    """Answer, and be cancelled when something holds."""
    async with anyio.create_task_group() as group:
        group.start_soon(agent.arespond)
        while not ready():
            await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()


def test_cancelled_in_a_tool_and_then_a_new_prompt(place: Place) -> None:
    """D7: cancelled in `c1`, then the user asks something else: `c1` is closed, nothing is run, and the request is valid."""
    begun: list[int] = []

    @tool
    async def hang() -> str:
        """Hang."""
        begun.append(1)
        await anyio.sleep_forever()
        return "never"

    script = [{"tool_calls": [{"name": "hang", "arguments": {}, "id": "c1"}]}, "Something else."]
    agent, _ = _scripted(place.open(), script, hang)
    agent.receive("go")
    anyio.run(_cut_off, agent, lambda: bool(begun))
    valid(agent.current_dialog.reload())
    agent.receive("do something else")
    assert agent.respond().content == "Something else."
    assert begun == [1]
    assert told(agent.current_dialog)[0] == 1
    valid(reopened(place, agent.current_dialog))


def test_a_message_while_an_approval_is_pending(place: Place) -> None:
    """D7: a plain message while `c1` waits: `c1` stays pending, requests are valid, and only an explicit word goes on without it."""
    paid: list[int] = []

    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pay."""
        paid.append(amount)
        return "paid"

    script = [{"tool_calls": [{"name": "pay", "arguments": {"amount": 5}, "id": "c1"}]}, "Never mind."]
    agent, _ = _scripted(place.open(), script, pay)
    agent.receive("pay 5")
    assert agent.respond(return_session=True).state == "waiting"
    valid(reopened(place, agent.current_dialog), then="How late is it?")
    agent.receive("How late is it?")
    valid(agent.current_dialog, then=None)
    assert agent.respond(return_session=True).state == "waiting"
    assert [call.name for call in agent.waiting] == ["pay"]
    assert agent.respond(abandon=True).content == "Never mind."
    assert paid == []
    (given_up,) = told(agent.current_dialog)[1]
    assert "not run" in given_up
    valid(reopened(place, agent.current_dialog))


def _after_a_batch(place: Place, dialog: Dialog) -> None:
    """Hold a batch of which one call hung to its promise: results in call order, in one exchange, and none of them lost."""
    found = reopened(place, dialog)
    agent, _ = trio(place.open(), anyio.sleep_forever)
    agent.adopt("main", found)
    assert agent.respond().content == "Two of three."
    (batch,) = (exchange for exchange in agent.current_dialog.view().exchanges if len(exchange.turns) > 1)
    results = [getattr(block.content, "content", "") for block in batch.turns[1].blocks]
    assert (results[0], results[2]) == ("quick 1", "quick 3")
    assert "unknown" in results[1]
    valid(agent.current_dialog)


def test_aborted_with_one_call_hanging(place: Place) -> None:
    """D8: `A[c1,c2,c3]`, c2 hangs, abort: R1 and R3 are durable before it; resumed, all three stand in call order in one exchange."""
    begun: list[int] = []

    async def hang() -> None:
        begun.append(1)
        await anyio.sleep_forever()

    agent, _ = trio(place.open(), hang)
    agent.open("main").receive("go")
    anyio.run(_cut_off, agent, lambda: bool(begun) and len(told(agent.current_dialog.reload())[1]) == 2)
    assert sorted(told(agent.current_dialog.reload())[1]) == ["quick 1", "quick 3"]
    _after_a_batch(place, agent.current_dialog)


def test_killed_with_one_call_hanging(place: Place, kill: Kill) -> None:
    """D8: the same with SIGKILL."""
    assert kill("batch", address=place.address, name="d8") == -9
    _after_a_batch(place, Session.open(place.open(), "d8").root)
