"""Work that takes processor time, done beside the event loop.

To fold a long log, to plan what leaves its view and to compile the request takes as long as the view is long, the first time. A server answers
others meanwhile: whoever does such work in a turn does it in a thread, and waits for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import ContextVar
from typing import TypeVar

from anyio import CapacityLimiter, create_task_group, to_thread
from anyio.lowlevel import RunVar

__all__ = ["aside", "places"]

T = TypeVar("T")

_WAITING = 4
"""Threads beyond one a core: such work ends in the store, and whoever waits there for a disk, a server or a lock keeps nobody from a core."""

_PLACES: RunVar[CapacityLimiter] = RunVar("palaver_aside")

_ASIDE: ContextVar[bool] = ContextVar("palaver_in_aside", default=False)
"""Whether this is done beside a loop, as the calls know that are made in it."""


def places() -> CapacityLimiter:
    """Give what bounds the work done at once beside this event loop: a thread for each core the process may use, and four more.

    More would only take turns on the same cores. They are palaver's own: forty calls of the program's that block in anyio's threads keep no plan
    waiting, and forty plans no call.
    """
    try:
        return _PLACES.get()
    except LookupError:
        made = CapacityLimiter(_cores() + _WAITING)
        _PLACES.set(made)
        return made


def _cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


async def aside(work: Callable[[], T]) -> T:
    """Do `work` in a thread, and give what it gives.

    A waiter that is cancelled before it began has done nothing. What was begun is waited for all the same: what it writes is written, and
    nothing goes on behind the waiter's back.
    """
    done: Future[T] = Future()  # takes a StopIteration, which no future of a loop does
    async with create_task_group() as group:  # a task's own `cancel` does not reach the one that waits for the thread
        group.start_soon(_in_thread, done, work)
    return done.result(0)


async def _in_thread(done: Future[T], work: Callable[[], T]) -> None:
    """Wait for a thread; work that is done for other work takes no place, for the other one's is given back only behind it."""
    try:
        await to_thread.run_sync(_settle, done, work, limiter=CapacityLimiter(1) if _ASIDE.get() else places())
    except Exception as error:  # noqa: BLE001 - no thread could be had; raised by itself, not as one of a group
        done.set_exception(error)


def _settle(done: Future[T], work: Callable[[], T]) -> None:
    """Work, and keep how it ended: it is raised again where it is waited for."""
    _ASIDE.set(True)
    try:
        done.set_result(work())
    except BaseException as error:  # noqa: BLE001 - as said
        done.set_exception(error)
