"""D4 to D8: a process dies, is cut off, or cannot write, with calls begun and not recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from palaver import (
    Agent,
    AgentFailure,
    Dialog,
    Prompt,
    ProviderInvoker,
    ScriptedProvider,
    Session,
    Store,
    StoreError,
    tool,
)
from palaver.log import Draft, Header, LateResult
from tests.demand.dying import cashier, trio
from tests.demand.ground import Place, Proof, answers, bodies, reopened, shown
from tests.kills import dying_store

Kill = Callable[..., int]
MOST = 40
"""More writes of entries than the turn makes."""
CALL_STARTED = 7
"""The write that says that the call begins."""


class PulledPlug(BaseException):
    """What a kill is, as far as one process can show it."""


def pull() -> None:
    """Die, in the one process that has a store in memory."""
    raise PulledPlug


def killed_behind(place: Place, kill: Kill, effects: Path, writes: int) -> bool:
    """Answer in a process that dies behind a write; tell whether it died before it was done."""
    name = f"killed {writes}"
    if place.kind != "memory":
        return kill("turn", address=place.address, name=name, effects=str(effects), writes=writes) == -9
    agent, _ = cashier(dying_store(place.open(), writes, pull), effects)
    try:
        agent.open("main", session_name=name).receive("Charge 5.")
        agent.respond()
    except (PulledPlug, BaseExceptionGroup):
        return True
    return False


def told(dialog: Dialog) -> tuple[int, list[str]]:
    """Return how many calls a dialog holds, and the texts of their results."""
    messages = list(dialog.messages)
    results = [block.text() for message in messages for block in message.tool_results()]
    return sum(len(message.tool_calls()) for message in messages), results


def test_d4_killed_behind_every_write(place: Place, proof: Proof, kill: Kill, tmp_path: Path) -> None:
    """A kill behind each write of a turn: the end is derived from the log, the result stands with its call, and the turn goes on."""
    deaths, store = 0, place.open()
    for writes in range(1, MOST):
        effects = tmp_path / f"{writes}"
        if not killed_behind(place, kill, effects, writes):
            break
        deaths += 1
        agent, _ = cashier(store, effects)
        agent.resume(f"killed {writes}")
        if not any(message.role == "user" for message in agent.current_dialog.messages):
            agent.receive("Charge 5.")  # it was never acknowledged
        assert agent.respond().content == "That is done."
        _whole(proof, agent.current_dialog, effects)
    assert MOST > deaths > 8


def _whole(proof: Proof, dialog: Dialog, effects: Path) -> None:
    """Hold a finished turn to its promise: one branch, one call, one result, and no effect twice."""
    session = Session.open(dialog.session_id, dialog.store)
    extent = session.extent(verify=True)
    assert extent.reachable == extent.total
    assert len(session.dialogs) == 1
    calls, (result,) = told(session.root)
    done = effects.read_text(encoding="utf-8").splitlines() if effects.exists() else []
    assert calls == 1
    assert done == ["5"] if result == "charged 5" else "unknown" in result and done in ([], ["5"])
    assert sum(line.startswith("call ") for line in shown(session.root)) == 1
    proof.valid(session.root)


def test_d5_a_call_that_died_is_not_run_again(lasting: Place, proof: Proof, kill: Kill, tmp_path: Path) -> None:
    """`A[c1]`, killed while it ran: the outcome is unknown, once; asking again runs nothing; a late real result is kept beside it."""
    effects = tmp_path / "effects"
    assert kill("turn", address=lasting.address, name="d5", effects=str(effects), dies=True) == -9
    agent, provider = cashier(lasting.open(), effects)
    agent.resume("d5")
    for _ in range(2):
        assert agent.respond().content == "That is done."
    assert effects.read_text(encoding="utf-8") == "5\n"
    assert len(provider.requests) == 1
    dialog = agent.current_dialog
    calls, (unknown,) = told(dialog)
    assert calls == 1
    assert "unknown" in unknown
    _late(lasting, proof, dialog)


def test_d5_a_second_result_is_not_shown_twice(place: Place, proof: Proof, kill: Kill, tmp_path: Path) -> None:
    """Killed right behind the record that the call begins: recovery writes an error, then the real result arrives, in two ways."""
    store, effects = place.open(), tmp_path / "effects"
    assert killed_behind(place, kill, effects, CALL_STARTED)
    agent, _ = cashier(store, effects)
    agent.resume(f"killed {CALL_STARTED}")
    assert store.last(agent.current_dialog.dialog_id).kind == "call_started"
    assert agent.respond().content == "That is done."
    assert not effects.exists()
    _late(place, proof, agent.current_dialog)


def _late(place: Place, proof: Proof, dialog: Dialog) -> None:
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
    proof.valid(dialog)


class Refusing:
    """A store that takes no results while it is told so."""

    def __init__(self, store: Store) -> None:
        """Refuse nothing yet."""
        self._store = store
        self.full = False

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the store has
        return getattr(self._store, name)

    def append(self, dialog_id: Any, drafts: Sequence[Draft], turn_head: int) -> tuple[Header, ...]:  # noqa: ANN401
        """Append, unless it is full and a result is to be written."""
        if self.full and any(one.role == "tool" for one in drafts):
            raise StoreError("No room.", reason="full")
        return self._store.append(dialog_id, drafts, turn_head)


@pytest.mark.parametrize("approved", [False, True])
def test_d6_executed_and_not_written(place: Place, proof: Proof, *, approved: bool) -> None:
    """The tool ran and its append raised: no model call before call and result are durable; the retry writes what is missing."""
    ran: list[int] = []

    @tool(needs_approval=approved)
    def pay(amount: int) -> str:
        """Pay."""
        ran.append(amount)
        return f"paid {amount}"

    store = Refusing(place.open())
    script = [{"tool_calls": [{"name": "pay", "arguments": {"amount": 5}, "id": "c1"}]}, "Paid."]
    agent, provider = _scripted(cast("Store", store), script, pay)
    agent.receive("pay 5")
    if approved:
        agent.approve(agent.respond(return_session=True).waiting[0].id)
    store.full = True
    with pytest.raises(StoreError, match="No room"):
        agent.respond()
    assert len(provider.requests) == 1
    before = bodies(agent.current_dialog)
    store.full = False
    assert agent.respond().content == "Paid."
    assert ran == [5]
    dialog = agent.current_dialog
    assert bodies(dialog)[: len(before)] == before
    assert told(dialog) == (1, ["paid 5"])
    assert reopened(place, dialog).view() == dialog.view(), "what is in memory and what is stored are the same"
    proof.valid(dialog)


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


def test_d7_cancelled_in_a_tool_and_then_a_new_prompt(place: Place, proof: Proof) -> None:
    """Cancelled in `c1`, then the user asks something else: `c1` is closed, nothing is run, and the request is valid."""
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
    proof.valid(agent.current_dialog.reload())
    agent.receive("do something else")
    assert agent.respond().content == "Something else."
    assert begun == [1]
    assert told(agent.current_dialog)[0] == 1
    proof.valid(reopened(place, agent.current_dialog))


def test_d7b_a_message_while_an_approval_is_pending(place: Place, proof: Proof) -> None:
    """A plain message while `c1` waits: at first `c1` stays pending and requests are valid, then it is given up in so many words."""
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
    proof.valid(reopened(place, agent.current_dialog), then="How late is it?")
    agent.receive("How late is it?")
    proof.valid(agent.current_dialog, then=None)
    assert [call.name for call in agent.waiting()] == ["pay"]
    assert agent.respond().content == "Never mind."
    assert paid == []
    (given_up,) = told(agent.current_dialog)[1]
    assert "not run" in given_up
    proof.valid(reopened(place, agent.current_dialog))


def _after_a_batch(place: Place, proof: Proof, dialog: Dialog) -> None:
    """Hold a batch of which one call hung to its promise: results in call order, in one exchange, and none of them lost."""
    found = reopened(place, dialog)
    agent, _ = trio(place.open(), anyio.sleep_forever)
    agent.adopt("main", found)
    assert agent.respond().content == "Two of three."
    (batch,) = (exchange for exchange in agent.current_dialog.view().exchanges if len(exchange.turns) > 1)
    results = [getattr(block.content, "content", "") for block in batch.turns[1].blocks]
    assert (results[0], results[2]) == ("quick 1", "quick 3")
    assert "unknown" in results[1]
    proof.valid(agent.current_dialog)


def _results(dialog: Dialog) -> list[str]:
    return told(reopened_quietly(dialog))[1]


def reopened_quietly(dialog: Dialog) -> Dialog:
    """Return the dialog as the store has it now."""
    return Session.open(dialog.session_id, dialog.store).dialog(dialog.dialog_id)


def test_d8_aborted_with_one_call_hanging(place: Place, proof: Proof) -> None:
    """`A[c1,c2,c3]`, c2 hangs, abort: R1 and R3 are durable before it; resumed, all three stand in call order in one exchange."""
    begun: list[int] = []

    async def hang() -> None:
        begun.append(1)
        await anyio.sleep_forever()

    agent, _ = trio(place.open(), hang)
    agent.open("main").receive("go")
    anyio.run(_cut_off, agent, lambda: bool(begun) and len(_results(agent.current_dialog)) == 2)
    assert sorted(_results(agent.current_dialog)) == ["quick 1", "quick 3"]
    _after_a_batch(place, proof, agent.current_dialog)


def test_d8_killed_with_one_call_hanging(lasting: Place, proof: Proof, kill: Kill) -> None:
    """The same with SIGKILL."""
    assert kill("batch", address=lasting.address, name="d8") == -9
    _after_a_batch(lasting, proof, Session.open("d8", lasting.open()).root)


def test_d8_a_listener_that_throws_changes_nothing(place: Place, proof: Proof) -> None:
    """A listener that raises at each result: all three are recorded, and the next call goes on from them."""

    def listen(event: object) -> None:
        if getattr(event, "type", "") == "call_ended":
            raise RuntimeError("the listener's own")

    async def at_once() -> None:
        return None

    agent, _ = trio(place.open(), at_once, listen)
    agent.open("main").receive("go")
    with pytest.raises(AgentFailure):
        agent.respond()
    assert agent.respond().content == "Two of three."
    assert sorted(told(agent.current_dialog)[1]) == ["never", "quick 1", "quick 3"]
    assert [line for line in shown(reopened(place, agent.current_dialog)) if line.startswith("result")] == [
        f"result {call.id}: {text}"
        for call, text in zip(_calls(agent.current_dialog), ("quick 1", "never", "quick 3"), strict=True)
    ]
    proof.valid(agent.current_dialog)


def _calls(dialog: Dialog) -> list[Any]:
    return [call for message in dialog.messages for call in message.tool_calls()]
