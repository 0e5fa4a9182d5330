"""Threads in addition to the event loop, for the library's own computation and for tools that may hang."""

from __future__ import annotations

import contextvars
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from typing import TypeVar

import anyio
from anyio import CapacityLimiter, create_task_group, from_thread, to_thread
from anyio.lowlevel import EventLoopToken, RunVar, checkpoint_if_cancelled, current_token

A = TypeVar("A")
T = TypeVar("T")

_WAITING = 8
"""The number of worker threads in addition to one per core: some wait for a database. With more of them the event loop waits longer for its turn."""

_LIMITER: RunVar[CapacityLimiter] = RunVar("palaver_workers")
_IN_WORKER: ContextVar[bool] = ContextVar("palaver_in_worker", default=False)


def worker_limiter() -> CapacityLimiter:
    """Return the limiter of this event loop's workers: one thread per usable core, and eight more.

    It is separate from anyio's, so that blocking calls of the program never delay a plan.
    """
    try:
        return _LIMITER.get()
    except LookupError:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        made = CapacityLimiter(cores + _WAITING)
        _LIMITER.set(made)
        return made


async def run_in_worker(work: Callable[[], T]) -> T:
    """Run `work` in a worker thread and return its result.

    If cancelled before it begins, `work` never runs. Once begun, it runs to its end even if the caller is cancelled: its
    writes are complete, and nothing continues in the background.
    """
    done: Future[T] = Future()
    async with create_task_group() as group:  # Task.cancel() on the caller does not reach the task that waits
        group.start_soon(_wait, done, work)
    return done.result(0)


async def _wait(done: Future[T], work: Callable[[], T]) -> None:
    # Work inside work needs no separate token: its caller has one until it returns.
    limiter = CapacityLimiter(1) if _IN_WORKER.get() else worker_limiter()
    try:
        await to_thread.run_sync(_settle, done, work, limiter=limiter)
    except Exception as error:  # noqa: BLE001 - no thread could be started; raised by the caller, outside the group
        done.set_exception(error)


def _settle(done: Future[T], work: Callable[[], T]) -> None:
    _IN_WORKER.set(True)
    try:
        done.set_result(work())
    except BaseException as error:  # noqa: BLE001 - raised again by the caller
        done.set_exception(error)


async def run_in_thread(work: Callable[[], T]) -> T:
    """Return what `work` returns, or raise what it raises, from a new daemon thread. If the caller is cancelled, the thread continues.

    anyio's worker threads would keep the interpreter from ending when a tool hangs.
    """
    await checkpoint_if_cancelled()
    done = anyio.Event()
    loop = current_token()
    variables = contextvars.copy_context()
    answer: Future[T] = Future()

    def run() -> None:
        _settle(answer, partial(variables.run, work))
        _tell(loop, done.set)

    threading.Thread(target=run, name="palaver tool", daemon=True).start()
    await done.wait()
    return answer.result(0)


def hand_over(listener: Callable[[A], None]) -> Callable[[A], None]:
    """Return a function, callable from any thread, that calls the listener in this event loop's thread."""
    home = threading.get_ident()
    loop = current_token()

    def call(said: A) -> None:
        if threading.get_ident() == home:
            listener(said)
        else:
            _tell(loop, partial(listener, said))

    return call


def _tell(loop: EventLoopToken, work: Callable[[], None]) -> None:
    with suppress(anyio.RunFinishedError):  # the loop ended first, and no caller waits any more
        from_thread.run_sync(work, token=loop)
