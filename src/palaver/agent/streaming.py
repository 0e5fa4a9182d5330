"""Stream a turn's events as they happen, for `for` and `async for`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Self

from palaver.agent.claim import require_no_transaction
from palaver.agent.events import AgentEvent
from palaver.agent.invoking import StreamHandler
from palaver.agent.trace import Trace
from palaver.tools.portal import run_sync


class TurnStream:
    """The events of one turn. The turn begins when the first event is requested.

    Leaving before the end interrupts the turn: use it in a `with` block, or close it. An exception of the turn is raised to the
    reader after the last event. Read it with `for` or with `async for`, not with both.

    Attributes:
        trace: The trace of the turn, which grows while it runs.
    """

    def __init__(self, trace: Trace, work: Callable[[StreamHandler], Awaitable[None]]) -> None:
        self.trace = trace
        self._work = work
        self._queue: asyncio.Queue[AgentEvent | None] | None = None
        self._task: asyncio.Task[None] | None = None

    async def _run(self, queue: asyncio.Queue[AgentEvent | None]) -> None:
        try:
            await self._work(queue.put_nowait)
        finally:
            queue.put_nowait(None)

    async def __anext__(self) -> AgentEvent:
        """Return the next event.

        Raises:
            AgentFailure: The turn ended without an answer.
        """
        if self._queue is None:
            self._queue = asyncio.Queue()
            self._task = asyncio.ensure_future(self._run(self._queue))
        if self._task is None:  # closed, or read to its end
            raise StopAsyncIteration
        event = await self._queue.get()
        if event is not None:
            return event
        task, self._task = self._task, None
        await task
        raise StopAsyncIteration

    def __aiter__(self) -> AsyncIterator[AgentEvent]:
        return self

    async def aclose(self) -> None:
        """Interrupt the turn if it has not ended, and wait until it has."""
        task, self._task = self._task, None
        self._queue = self._queue or asyncio.Queue()
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):  # the trace records how it ended
                await task

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    # --- for synchronous callers --------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[AgentEvent]:
        """Yield the events in order; Ctrl-C, or leaving the loop, interrupts the turn."""
        require_no_transaction(self.trace.dialog.store)
        try:
            while True:
                try:
                    yield run_sync(self.__anext__)
                except StopAsyncIteration:
                    return
        finally:
            self.close()

    def close(self) -> None:
        """Interrupt the turn; the synchronous form of `aclose`."""
        run_sync(self.aclose)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
