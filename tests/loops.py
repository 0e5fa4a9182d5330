"""What the thread of a loop does itself, and what is done beside it: counted, and held up piece by piece."""

import asyncio
import inspect
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Self

import anyio
import anyio.lowlevel

import palaver
from palaver.tools.workers import worker_limiter

__all__ = ["Gate", "called_here"]

HOME = str(Path(palaver.__file__).parent)


@contextmanager
def called_here(*rooms: str) -> Iterator[Counter[str]]:
    """Count the plain functions of some rooms (`context/`, `view/`) that this thread calls, by file and name; nothing is replaced."""
    called: Counter[str] = Counter()
    places = tuple(f"{HOME}/{room}" for room in rooms)

    def note(frame: FrameType, event: str, _what: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(places) and not code.co_flags & inspect.CO_COROUTINE:
            called[f"{code.co_filename.removeprefix(HOME)[1:]}:{code.co_name}"] += 1

    sys.setprofile(note)
    try:
        yield called
    finally:
        sys.setprofile(None)


class Gate:
    """Lets the work that a task does beside its loop begin piece by piece: where it stands, everything before it is done, and nothing behind."""

    def __init__(self, task: asyncio.Task[object]) -> None:
        """Hold the task up before its next work; for use with `async with`."""
        self.task = task
        self.held_up = 0

    async def __aenter__(self) -> Self:
        """Take the one place that is left."""
        self._all, worker_limiter().total_tokens = worker_limiter().total_tokens, 1
        await worker_limiter().acquire()
        await self._arrived()
        return self

    async def __aexit__(self, *_error: object) -> None:
        """Open it."""
        worker_limiter().release()
        worker_limiter().total_tokens = self._all

    async def on(self) -> bool:
        """Let one piece of work be done, and give whether the task stands before another one."""
        worker_limiter().release()
        await worker_limiter().acquire()
        return await self._arrived()

    async def _arrived(self) -> bool:
        while not self.task.done() and not worker_limiter().statistics().tasks_waiting:
            await anyio.lowlevel.checkpoint()
        self.held_up += not self.task.done()
        return not self.task.done()
