"""Synchronous calls of asynchronous functions: one event loop in a separate thread for the whole process.

The loop starts with the first call and ends with the main thread. Open connections of providers belong to it. A synchronous
call inside a callback of a turn, which runs in that loop, gets a temporary loop.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal

T = TypeVar("T")

_PATIENCE = 3
"""The number of interruptions (Ctrl-C) that release a caller even if its call does not end: a callback may block the loop."""

_THREAD = threading.local()
"""`loop` is set in the threads of our loops."""

_INSIDE: ContextVar[bool] = ContextVar("palaver_in_portal", default=False)
"""Whether the caller waits inside one of our loops. Worker threads inherit this."""


class _Portal:
    """The portal of this process and the number of calls in it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._calls = 0
        self._portal: BlockingPortal | None = None
        self._opened: AbstractContextManager[BlockingPortal] | None = None
        self._abandoned: list[object] = []

    def __enter__(self) -> BlockingPortal:
        """Return the portal; start it if necessary. It lives at least until the call ends."""
        if (
            self._process != os.getpid()
        ):  # forked: the parent's thread does not exist here, so its portal must not be ended
            self._abandoned.append(self._opened)
            self._lock, self._process, self._calls = threading.Lock(), os.getpid(), 0
            self._portal = self._opened = None
        with self._lock:
            if self._portal is None:
                self._opened = start_blocking_portal(name="palaver")
                self._portal = self._opened.__enter__()
                threading.Thread(target=self._end_with_main_thread, name="palaver-watch", daemon=True).start()
            self._calls += 1
            return self._portal

    def __exit__(self, *_error: object) -> None:
        with self._lock:
            self._calls -= 1
            last = self._calls == 0
        if last and not threading.main_thread().is_alive():
            self.stop()

    def _end_with_main_thread(self) -> None:
        """End the portal after the main thread: the interpreter waits for its worker threads, and they wait for it."""
        threading.main_thread().join()
        if self._calls == 0:
            self.stop()

    def abandon(self, portal: BlockingPortal) -> None:
        """Abandon a blocked portal; the next call starts another one. Keep it, because ending it would wait for it."""
        with self._lock:
            if self._portal is portal:
                self._abandoned.append(self._opened)
                self._portal = self._opened = None

    def stop(self) -> None:
        """End the portal and its threads."""
        with self._lock:
            opened, self._portal, self._opened = self._opened, None, None
        if opened is not None and self._process == os.getpid():
            opened.__exit__(None, None, None)


_PORTAL = _Portal()


def run_sync(function: Callable[[], Awaitable[T]]) -> T:
    """Run a coroutine function to its end and return its result.

    An interruption (Ctrl-C) cancels it and waits for its end, so that nothing continues in the background.
    """
    if not (_INSIDE.get() or getattr(_THREAD, "loop", False)):
        with _PORTAL as portal:
            return _run_in(portal, function)
    token = _INSIDE.set(True)
    try:
        with start_blocking_portal(name="palaver inner") as portal:
            return _run_in(portal, function)
    finally:
        _INSIDE.reset(token)


def _run_in(portal: BlockingPortal, function: Callable[[], Awaitable[T]]) -> T:
    done: Future[T] = Future()
    interruptions: list[BaseException] = []
    task = portal.start_task_soon(_settle, done, function)
    while not done.done() and len(interruptions) < _PATIENCE:
        try:
            if interruptions:
                task.cancel()  # before anyio 4.16 it waits for the loop, which may be blocked
            done.exception()
        except BaseException as error:  # noqa: BLE001 - raised below, when the call has ended or is abandoned
            interruptions.append(error)
    if not done.done():
        _PORTAL.abandon(portal)
    if interruptions:
        raise interruptions[0]
    return done.result(0)


async def _settle(done: Future[Any], function: Callable[[], Awaitable[Any]]) -> None:
    """Run a call and keep its result: an exception would end the portal."""
    _THREAD.loop = True
    try:
        done.set_result(await function())
    except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
        done.set_exception(error)


@contextmanager
def entered(manager: AbstractAsyncContextManager[T]) -> Iterator[T]:
    """Enter an asynchronous context manager in the loop of synchronous calls, for the duration of the block."""
    with _PORTAL as portal, portal.wrap_async_context_manager(manager) as value:
        yield value
