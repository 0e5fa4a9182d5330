"""Stop the work that a task does in worker threads, piece by piece."""

import asyncio
from typing import Self

import anyio.lowlevel

from palaver.tools.workers import worker_limiter

__all__ = ["Gate"]


class Gate:
    """Let the work of a task in worker threads begin piece by piece: each piece waits until the one before is done and `on` is called."""

    def __init__(self, task: asyncio.Task[object]) -> None:
        """Stop the task before its next piece of work; use with `async with`."""
        self.task = task
        self.held_up = 0

    async def __aenter__(self) -> Self:
        """Occupy the only place for workers."""
        self._all, worker_limiter().total_tokens = worker_limiter().total_tokens, 1
        await worker_limiter().acquire()
        await self._arrived()
        return self

    async def __aexit__(self, *_error: object) -> None:
        """Let all work run."""
        worker_limiter().release()
        worker_limiter().total_tokens = self._all

    async def on(self) -> bool:
        """Let one piece of work run, and return whether the task waits for another one."""
        worker_limiter().release()
        await worker_limiter().acquire()
        return await self._arrived()

    async def _arrived(self) -> bool:
        while not self.task.done() and not worker_limiter().statistics().tasks_waiting:
            await anyio.lowlevel.checkpoint()
        self.held_up += not self.task.done()
        return not self.task.done()
