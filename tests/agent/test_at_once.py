"""One dialog, several tasks and threads: what cannot be done at once is refused with a word about whose fault it is, and the log is whole."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import pytest

from palaver import Agent, ArchivalMemory, Dialog, MemoryStore, Prompt, Store
from palaver.context import SummaryAnswer, SummaryRequest
from palaver.errors import Conflict, InvalidInput
from palaver.ids import DialogId
from palaver.log import Header, Label, Place, draft
from palaver.store.asynchronous import AsyncStore
from palaver.tools import tool
from tests.agent.helper import calling, kinds, scripted
from tests.stores import KINDS, empty_store
from tests.threads import WAIT, at_once


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Give an empty store of each kind."""
    yield from empty_store(request, tmp_path)


# --- inside a block of one thread -------------------------------------------------------------------------------------------------


async def brief(request: SummaryRequest) -> SummaryAnswer:
    """Summarise."""
    return SummaryAnswer(text=request.transcript[:10])


async def streamed(agent: Agent) -> None:
    """Read a turn's events."""
    async with agent.stream(input="Well?") as events:
        async for _ in events:
            pass


async def written(agent: Agent) -> None:
    """Write as a server does."""
    dialog = agent.current_dialog
    entry = Label(target=Place(dialog=dialog.dialog_id, seq=0), label="x")
    async with AsyncStore(dialog.store) as store:
        await store.annotate(dialog.dialog_id, draft(entry)[0])


Way: TypeAlias = Callable[[Agent], Coroutine[Any, Any, object]]

WAITED_FOR: dict[str, Way] = {
    "arespond": lambda agent: agent.arespond(input="Well?"),
    "a list of messages": lambda agent: agent.arespond(messages=[{"role": "user", "content": "Well?"}]),
    "stream": streamed,
    "acompact": lambda agent: agent.current_dialog.acompact(),
    "an asynchronous write": written,
}

CALLED: dict[str, Callable[[Agent], object]] = {
    "respond": lambda agent: agent.respond(input="Well?"),
    "stream": lambda agent: list(agent.stream(input="Well?")),
    "compact": lambda agent: agent.current_dialog.compact(summarizer=brief),
    "archive": lambda agent: ArchivalMemory(agent.current_dialog).insert("A passage."),
}


@pytest.mark.parametrize("store", ["memory", "sqlite"], indirect=True)
@pytest.mark.parametrize("way", sorted(WAITED_FOR))
def test_what_works_in_other_threads_is_refused_in_a_block_before_anything_is_written(store: Store, way: str) -> None:
    """`with store.together():` around an await: nobody waits for a lock; the error says what to do, and behind the block it works."""
    agent, _ = scripted(["Yes."] * 3, store=store)
    before = kinds(agent.current_dialog)

    async def main() -> None:
        with store.together():
            with pytest.raises(InvalidInput, match=r"store\.together\(\)") as refused:
                await WAITED_FOR[way](agent)
            assert "End the block first" in str(refused.value)
            assert kinds(agent.current_dialog) == before
        await WAITED_FOR[way](agent)

    anyio.run(main)


@pytest.mark.parametrize(
    ("store", "way"),
    [*((one, way) for one in ("memory", "sqlite") for way in sorted(CALLED)), ("postgres", "respond")],
    indirect=["store"],
)
def test_so_is_what_synchronous_callers_call(store: Store, way: str) -> None:
    """The loop of synchronous calls is another thread, too."""
    agent, _ = scripted(["Yes."] * 3, store=store)
    before = kinds(agent.current_dialog)
    with store.together():
        with pytest.raises(InvalidInput, match=r"store\.together\(\)"):
            CALLED[way](agent)
        assert kinds(agent.current_dialog) == before
    CALLED[way](agent)


def test_a_stream_that_was_made_outside_a_block_is_not_read_inside_one() -> None:
    """A turn begins with the first event that is asked for."""
    store = MemoryStore()
    agent, _ = scripted(["Yes."], store=store)
    events = agent.stream(input="Well?")
    with store.together(), pytest.raises(InvalidInput, match=r"store\.together\(\)"):
        next(iter(events))
    assert [type(event).__name__ for event in events][-1] == "TurnFinished"


def test_a_block_of_another_store_is_no_reason() -> None:
    """Only who writes into what is open here would wait for it."""
    agent, _ = scripted(["Yes."], store=MemoryStore())
    with MemoryStore().together():
        assert agent.respond(input="Well?").text_content() == "Yes."


def test_who_speaks_inside_a_block_does_not_wait_for_who_waits_for_its_end() -> None:
    """One thread speaks inside a block, another one outside, who has the agent's ear and waits for the store: both are heard."""
    about = threading.Event()

    class Looked(MemoryStore):
        """A store that tells when another thread is about to look."""

        def last(self, dialog_id: DialogId) -> Header:
            """Tell, and look."""
            if threading.current_thread() is not threading.main_thread():
                about.set()
            return super().last(dialog_id)

    agent, provider = scripted(["Yes."], store=Looked())
    thread = threading.Thread(target=lambda: agent.receive("From outside."), daemon=True)
    with agent.store.together():
        thread.start()
        assert about.wait(WAIT)
        agent.receive("From inside.")
    thread.join(WAIT)
    assert not thread.is_alive()
    assert agent.respond().text_content() == "Yes."
    shown = [message["content"] for message in provider.requests[-1].body["messages"]]
    assert sorted(shown[1:]) == ["From inside.", "From outside."]


# --- two answers at once ----------------------------------------------------------------------------------------------------------


def waiting(store: Store) -> tuple[Agent, anyio.Event, anyio.Event, list[Any]]:
    """Give an agent whose turn stands in a tool until it may go on, and the requests that its model gets."""
    begun, go_on = anyio.Event(), anyio.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        begun.set()
        await go_on.wait()
        return "waited"

    prompt = Prompt(path="tester/waits", prompt="You wait.", function_list=[wait])
    agent, provider = scripted([calling("wait", "", "c1"), "Done.", "Next."], prompt, store=store)
    return agent, begun, go_on, provider.requests


WHOLE_TURN = ["turn_started", "custom", "toolset", "model_change", "invocation", "tool_call", "call_started", "tool"]


def test_of_two_tasks_that_answer_in_one_dialog_the_second_is_refused(store: Store) -> None:
    """The turn that goes on is not touched by it; nothing of the second is written, and afterwards it may."""

    async def main() -> None:
        agent, begun, go_on, _ = waiting(store)
        agent.receive("Go.")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(agent.arespond)
            await begun.wait()
            with pytest.raises(InvalidInput, match="answering in this dialog already"):
                await agent.arespond()
            go_on.set()
        written = kinds(agent.current_dialog)
        assert written[2:] == [*WHOLE_TURN, "invocation", "assistant", "turn_ended"]
        assert (await agent.arespond(input="And?")).text_content() == "Next."

    anyio.run(main)


def test_what_other_tasks_do_with_the_object_in_a_turn_leaves_every_request_valid(store: Store) -> None:
    """Another task reads, marks and even says something in the middle of a call: it is shown behind the call's result."""

    async def main() -> None:
        agent, begun, go_on, requests = waiting(store)
        dialog = agent.current_dialog
        agent.receive("Go.")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(agent.arespond)
            await begun.wait()
            dialog.label(dialog.messages.handle(0), "start")
            dialog.pin(dialog.messages.handle(1))
            dialog.put_text("In the middle.")
            assert dialog.tail is not None
            assert any(exchange.open for exchange in dialog.view().exchanges)
            go_on.set()
        shown = [message.get("content") for message in requests[-1].body["messages"]]
        assert shown[-2:] == ["waited", "In the middle."]
        assert (await agent.arespond(input="And?")).text_content() == "Next."

    anyio.run(main)


def test_of_threads_that_answer_in_one_dialog_each_answers_or_is_told(store: Store) -> None:
    """However they meet, the turns stand one behind the other, each with its end."""
    agent, _ = scripted(["Yes."] * 40, store=store)
    agent.receive("Well?")

    def work(_: int, barrier: threading.Barrier) -> int:
        told = 0
        for _turn in range(4):
            barrier.wait()
            try:
                agent.respond(input="And?")
            except InvalidInput as error:
                assert "answering in this dialog already" in str(error)  # noqa: PT017 - as often as not there is none
                told += 1
        return told

    told = sum(at_once(3, work))
    turns = [kind for kind in kinds(agent.current_dialog.reload()) if kind.startswith("turn_")]
    assert turns == ["turn_started", "turn_ended"] * (len(turns) // 2)
    assert 12 - told <= len(turns) // 2 <= 12


def test_two_tasks_that_compact_one_dialog_at_once_make_one_compaction(store: Store) -> None:
    """Both look; one approves, the other is told: nothing is compacted twice."""
    dialog = Dialog(owner="a", store=store)
    for turn in range(30):
        dialog.put_text(f"Line {turn}. " * 60)

    async def main() -> None:
        first, second = await asyncio.gather(*(dialog.acompact(model="gpt-4o", summarizer=brief) for _ in range(2)))
        first.approve()
        with pytest.raises(Conflict, match="compaction was committed meanwhile"):
            second.approve()

    anyio.run(main)
    assert kinds(dialog).count("compaction") == 1
