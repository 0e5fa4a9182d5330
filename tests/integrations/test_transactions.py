"""Adapters and blocks of the caller's: what a block took back is not remembered, nobody waits for one another, and nothing is asked of another thread inside one."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from palaver import MemoryStore
from palaver.errors import InvalidInput
from palaver.integrations.keyed import in_thread
from palaver.store import Store
from tests.integrations.test_langgraph import at, checkpoint
from tests.threads import WAIT

adapter = pytest.importorskip("palaver.integrations.langgraph", reason="langgraph is not installed: ./run integrations")

AT = at("t")


def put(saver: Any, number: int) -> None:  # noqa: ANN401 - LangGraph's own
    """Write a checkpoint that says a number."""
    made = checkpoint(number, {"x": number}, {"x": number})
    saver.put(AT, made, {"step": number}, {"x": number})


def said(saver: Any) -> list[int]:  # noqa: ANN401 - LangGraph's own
    """Return what the checkpoints say, the newest first."""
    return [one.checkpoint["channel_values"]["x"] for one in saver.list(AT)]


def test_checkpoint_of_a_rolled_back_transaction_is_gone(new_store: Callable[[], Store]) -> None:
    """Not for the saver that wrote it, and nothing is built upon it, whether or not it was looked at in between."""
    for look in [False, True]:
        store = new_store()
        saver = adapter.PalaverCheckpointSaver(store)
        put(saver, 1)
        with suppress(ZeroDivisionError), store.transaction():
            put(saver, 2)
            assert said(saver) == [2, 1], look
            raise ZeroDivisionError
        if look:
            assert said(saver) == [1], look
        put(saver, 3)
        with store.transaction():
            put(saver, 4)
        put(saver, 5)
        assert said(saver) == said(adapter.PalaverCheckpointSaver(store)) == [5, 4, 3, 1], look
        assert [one.parent_config for one in saver.list(AT)] == [None] * 4, look


OTHERS: dict[str, Callable[[Any], object]] = {
    "get_tuple": lambda saver: saver.get_tuple(AT),
    "list": said,
    "put": lambda saver: put(saver, 9),
    "put_writes": lambda saver: saver.put_writes(
        {"configurable": {**AT["configurable"], "checkpoint_id": "00000001"}}, [("y", 1)], "task"
    ),
    "copy_thread": lambda saver: saver.copy_thread("t", "u"),
    "prune": lambda saver: saver.prune(["t"]),
    "delete_thread": lambda saver: saver.delete_thread("gone"),
}


@pytest.mark.parametrize("other", OTHERS)
def test_waiting_thread_does_not_lock_the_transaction(other: str) -> None:
    """Whatever another thread does with the saver, it waits for the end of the block; the block's thread takes no lock of the saver's, whatever it does."""
    waits = threading.Event()

    class Watched(MemoryStore):
        def _told(self) -> None:
            if threading.current_thread().name == "other":
                waits.set()

        def source(self, identity: str) -> Any:  # noqa: ANN401 - as its parent's
            self._told()
            return super().source(identity)

        def transaction(self, lock: str = "") -> Any:  # noqa: ANN401 - as its parent's
            self._told()
            return super().transaction(lock)

    store = Watched()
    saver = adapter.PalaverCheckpointSaver(store)
    put(saver, 1)
    ended: list[str] = []

    def works() -> None:
        OTHERS[other](saver)
        ended.append("other")

    thread = threading.Thread(target=works, name="other", daemon=True)

    def block() -> None:
        with store.transaction():
            thread.start()
            assert waits.wait(WAIT)
            for work in OTHERS.values():
                work(saver)
            ended.append("block")

    writer = threading.Thread(target=block, daemon=True)
    writer.start()
    writer.join(WAIT / 4)
    thread.join(WAIT / 4)
    assert ended == ["block", "other"]


def test_async_call_inside_a_transaction_is_refused() -> None:
    """It would wait for the end of the block, and the block for it: it is refused, and nothing is written."""
    store = MemoryStore()
    saver = adapter.PalaverCheckpointSaver(store)
    put(saver, 1)

    async def asks() -> None:
        with store.transaction():
            for ask in (saver.aget_tuple(AT), saver.adelete_thread("t"), in_thread(store, lambda: None)):
                with pytest.raises(InvalidInput, match="End the transaction first"):
                    await ask
        assert await saver.aget_tuple(AT) is not None

    asyncio.run(asks())
