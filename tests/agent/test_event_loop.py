"""Law 17: no call from async code makes its event loop wait for a store that outlives the process."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from palaver import Prompt, Session, UserMessage, open_store, tool
from palaver.agent import Agent, subagent
from palaver.errors import AgentFailure, DecisionNeeded, ProviderError
from palaver.memory import CoreMemory
from palaver.providers.scripted import ScriptedProvider
from palaver.session import Dialog
from palaver.store.memory import MemoryStore
from palaver.store.protocol import Durability, Store
from tests.threads import WAIT

FREE = frozenset({"in_transaction", "url", "durability", "capabilities", "remote", "contents"})
"""What a store says of itself without asking anybody."""


class RemoteStore:
    """A store that counts as remote and durable, and may not be asked by a thread that runs an event loop."""

    remote = True
    durability = Durability.FULL

    def __init__(self) -> None:
        self.inner = MemoryStore()
        self.calls = 0

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the store has
        found = getattr(self.inner, name)
        if name in FREE:
            return found

        def asked(*args: Any, **values: Any) -> Any:  # noqa: ANN401 - whatever the method has
            self._require_no_loop(name)
            return found(*args, **values)

        return asked

    def _require_no_loop(self, name: str) -> None:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            self.calls += 1
        else:
            raise AssertionError(f"the event loop waits for {name}")


@pytest.fixture
def store() -> Any:  # noqa: ANN401 - a store
    """A remote store."""
    return RemoteStore()


class Number(BaseModel):
    """An answer."""

    value: int


@tool
def add(number: int) -> str:
    """Add one."""
    return str(number + 1)


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def calling(name: str, **arguments: object) -> dict[str, Any]:
    """Return an answer that calls a tool."""
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


def agent(store: Any, *answers: object, **options: Any) -> Agent[Any]:  # noqa: ANN401 - options of an agent
    """Return an agent with a script."""
    return Agent("helper", "Help.", "gpt-4o", ScriptedProvider(answers), store=store, **options)


async def _tools(store: Any) -> None:  # noqa: ANN401 - a store
    made = agent(
        store,
        "hello",
        {"tool_calls": [calling("add", number=n)["tool_calls"][0] for n in range(3)]},
        "done",
        tools=[add],
    )
    await made.arespond("Hello")
    await made.arespond("Add")
    assert made.current_dialog.opened.count == 9


async def _resumed(store: Any) -> None:  # noqa: ANN401 - a store
    first = agent(store, calling("pay", amount=5), tools=[pay])
    await first.aopen("main")
    await first.areceive("Pay")
    with pytest.raises(DecisionNeeded):
        await first.arespond()
    later = agent(store, "paid", tools=[pay])
    await later.aresume("helper_main", "main")
    (waiting,) = await asyncio.to_thread(lambda: later.waiting)
    await asyncio.to_thread(later.approve, waiting.id)
    assert (await later.arespond()).content == "paid"


async def _refused(store: Any) -> None:  # noqa: ANN401 - a store
    repaired = agent(store, "no", '{"value": 7}', output=Number)
    assert (await repaired.arespond("A number")).output == Number(value=7)
    failing = agent(store, ProviderError("It is down.", kind="server"), max_llm_recall=0)
    with pytest.raises(AgentFailure):
        await failing.arespond("Hello?")
    asked = agent(store, calling("pay", amount=1), "ok", tools=[pay], approve=lambda _: False)
    assert (await asked.arespond("Pay")).content == "ok"


async def _long(store: Any) -> None:  # noqa: ANN401 - a store
    words = "and so on " * 400
    made = agent(
        store, *[f"{number} {words}" for number in range(12)], context_manager="palaver", budget={"max_tokens": 6000}
    )
    for number in range(12):
        await made.arespond(f"Question {number}")
    await made.acompact()


async def _sub(store: Any) -> None:  # noqa: ANN401 - a store
    worker = Agent("worker", Prompt(path="w/p", prompt="Work."), "gpt-4o", ScriptedProvider(["worked"]), store=store)
    boss = agent(store, calling("worker", task="Do it"), "done", tools=[subagent(worker)])
    assert (await boss.arespond("Begin")).content == "done"


async def _streamed(store: Any) -> None:  # noqa: ANN401 - a store
    made = agent(store, "streamed")
    await made.aopen("main")
    events = [event async for event in made.stream("Hello")]
    assert events


async def _cancelled(store: Any) -> None:  # noqa: ANN401 - a store
    asked = asyncio.Event()

    async def slow(_: object) -> str:
        asked.set()
        await asyncio.sleep(60)
        return ""

    made = agent(store, slow, "again")
    task = asyncio.ensure_future(made.arespond("Hello"))
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert made.current_dialog.opened.last.kind == "turn_ended"
    assert (await made.arespond()).content == "again"


async def _remembering(store: Any) -> None:  # noqa: ANN401 - a store
    made = agent(store, "one", "two")
    await made.aopen("main")
    memory = await asyncio.to_thread(CoreMemory, made.current_dialog)
    remembering = agent(store, "three", memory=memory)
    assert (await remembering.arespond("What?")).content == "three"


@pytest.mark.parametrize("life", [_tools, _resumed, _refused, _long, _sub, _streamed, _cancelled, _remembering])
def test_law_17_an_agent_never_makes_its_loop_wait(
    store: Any,  # noqa: ANN401 - a store
    life: Callable[[Any], Any],
) -> None:
    """Tools, approvals, repairs, failures, compactions, sub-agents, streams and cancellations use a remote store from other threads only."""
    asyncio.run(life(store))
    assert store.calls


def test_law_17_dialogs_have_async_forms(store: Any) -> None:  # noqa: ANN401 - a store
    """Sessions and dialogs are made, opened, read, asked for requests and written from async code without waiting for a remote store."""

    async def work() -> Dialog:
        made = await Session.acreate(store, "talk")
        await (await made.aroot()).aappend(UserMessage(content="one"))
        dialog = await (await Session.aopen(store, "talk")).aroot()
        both = await dialog.aappend([UserMessage(content="two"), UserMessage(content="three")])
        assert len(both) == 2
        assert len((await dialog.aview()).exchanges) == 3
        request = await dialog.arequest("openai", "gpt-5.6", max_tokens=10)
        assert request.body["messages"][-1]["content"] == "three"
        return dialog

    assert asyncio.run(work()).opened.count == 3


def test_law_17_a_loop_goes_on_while_another_writes(tmp_path: Path) -> None:
    """An append to a file that another writer has locked waits for it, and the loop, which alone can end that, goes on."""
    path, locked, done = str(tmp_path / "s.db"), threading.Event(), threading.Event()

    def other() -> None:
        with closing(open_store(path)) as store, store.transaction():
            Session.create(store, "other")
            locked.set()
            done.wait(WAIT)

    async def work(dialog: Dialog) -> None:
        writer = threading.Thread(target=other)
        writer.start()
        locked.wait(WAIT)
        appending = asyncio.ensure_future(dialog.aappend(UserMessage(content="one")))
        await asyncio.sleep(0)
        done.set()
        await appending
        writer.join()

    with closing(open_store(path)) as store:
        dialog = Session.create(store, "talk").root
        asyncio.run(work(dialog))
        assert dialog.opened.count == 1


def test_async_forms_are_part_of_a_transaction(tmp_path: Path) -> None:
    """Inside a transaction of the calling thread the async forms read what it wrote, and what they write is undone with it."""

    async def undone(store: Store, dialog: Dialog) -> None:
        with store.transaction():
            await dialog.aappend(UserMessage(content="one"))
            assert len((await dialog.aview()).exchanges) == 1
            assert (await dialog.arequest("openai-chat", "gpt-4o")).body["messages"]
            raise ZeroDivisionError

    async def work(store: Store) -> None:
        dialog = Session.create(store, "talk").root
        with pytest.raises(ZeroDivisionError):
            await undone(store, dialog)
        assert len((await dialog.aview()).exchanges) == 0

    with closing(open_store(str(tmp_path / "s.db"))) as store:
        asyncio.run(work(store))
