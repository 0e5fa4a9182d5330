"""A turn as it happens: its events one by one, for `for` and for `async for`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Self

from palaver.agent.call_session import AgentCallSession
from palaver.agent.events import AgentEvent
from palaver.agent.invoking import StreamHandler
from palaver.store.blocks import require_no_block
from palaver.tools.portal import run_sync

__all__ = ["TurnStream"]


class TurnStream:
    """The events of one turn. The turn begins with the first event that is asked for.

    Left before its end, the turn is interrupted: use it in a `with` block, or close it. What the turn raises is raised to whoever reads,
    behind the last event. Read it with `for` or with `async for`, not with both.

    Attributes:
        session: The trace of the turn; fills while it goes on.
    """

    def __init__(self, session: AgentCallSession, work: Callable[[StreamHandler], Awaitable[AgentCallSession]]) -> None:
        """Take the turn: a function that runs it and tells a handler of each event."""
        self.session = session
        self._work = work
        self._queue: asyncio.Queue[AgentEvent | None] | None = None
        self._task: asyncio.Task[AgentCallSession] | None = None

    def _begin(self) -> asyncio.Queue[AgentEvent | None]:
        if self._queue is None:
            queue = self._queue = asyncio.Queue()
            self._task = asyncio.ensure_future(self._run(queue))
        return self._queue

    async def _run(self, queue: asyncio.Queue[AgentEvent | None]) -> AgentCallSession:
        try:
            return await self._work(queue.put_nowait)
        finally:
            queue.put_nowait(None)

    async def __anext__(self) -> AgentEvent:
        """Give the next event.

        Raises:
            AgentFailure: There is no answer.
        """
        queue = self._begin()
        if self._task is None:  # it was closed, or read to its end
            raise StopAsyncIteration
        event = await queue.get()
        if event is not None:
            return event
        task, self._task = self._task, None
        await task
        raise StopAsyncIteration

    def __aiter__(self) -> AsyncIterator[AgentEvent]:
        """Give itself."""
        return self

    async def aclose(self) -> None:
        """Interrupt the turn, if it has not ended, and wait until it has."""
        task, self._task = self._task, None
        if self._queue is None:
            self._queue = asyncio.Queue()
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):  # how it ended stands in the session
                await task

    async def __aenter__(self) -> Self:
        """Give itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        await self.aclose()

    # --- the synchronous face ---------------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[AgentEvent]:
        """Give the events in order; Ctrl-C, or leaving the loop, interrupts the turn."""
        require_no_block(self.session.dialog.store, "A turn")
        try:
            while True:
                try:
                    yield run_sync(self.__anext__)
                except StopAsyncIteration:
                    return
        finally:
            self.close()

    def close(self) -> None:
        """As `aclose`, for synchronous callers."""
        run_sync(self.aclose)

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()
