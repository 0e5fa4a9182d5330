"""The synchronous face: one event loop in a thread of its own for the whole process, in which every synchronous call runs.

It begins with the first call and ends with the main thread: connections that providers keep open live in it, so it may not come and go
with each call. Callers in threads with a running loop of their own (a notebook, a server) wait like any others: their loop stands still
meanwhile, which is what the asynchronous methods are for.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, suppress
from typing import Any, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal

__all__ = ["run_sync", "shut_down"]

T = TypeVar("T")


class _Outcome:
    """How a call in the portal ended. An exception of any kind is carried, so that none ends the portal."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.value: Any = None
        self.error: BaseException | None = None

    async def run(self, function: Callable[[], Awaitable[Any]]) -> None:
        try:
            self.value = await function()
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
            self.error = error
        finally:
            self.done.set()


class _Face:
    """The portal of this process, and who uses it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._portal: BlockingPortal | None = None
        self._opened: AbstractContextManager[BlockingPortal] | None = None
        self._process = os.getpid()
        self._parents: list[AbstractContextManager[BlockingPortal] | None] = []
        self._users = 0

    def enter(self) -> BlockingPortal:
        """Give the portal; it stays at least until `leave`."""
        if self._process != os.getpid():
            self._forget()
        with self._lock:
            if self._portal is None:
                self._opened = start_blocking_portal(name="palaver")
                self._portal = self._opened.__enter__()
                threading.Thread(target=self._watch, name="palaver-watch", daemon=True).start()
            self._users += 1
            return self._portal

    def _forget(self) -> None:
        """Begin anew in a process that was forked off: the parent's portal has no thread here, so that it must never be ended either."""
        self._lock = threading.Lock()
        self._parents.append(self._opened)
        self._portal, self._opened, self._users, self._process = None, None, 0, os.getpid()

    def leave(self) -> None:
        """Let go of the portal; behind the end of the main thread the last one ends it."""
        with self._lock:
            self._users -= 1
            last = self._users == 0
        if last and not threading.main_thread().is_alive():
            self.stop()

    def _watch(self) -> None:
        """End the portal with the main thread: the interpreter waits for its worker threads, and they wait for it."""
        threading.main_thread().join()
        if self._users == 0:
            self.stop()

    def stop(self) -> None:
        """End the portal and its threads."""
        with self._lock:
            opened, self._portal, self._opened = self._opened, None, None
        if opened is not None and self._process == os.getpid():
            opened.__exit__(None, None, None)


_FACE = _Face()


def run_sync(function: Callable[[], Awaitable[T]]) -> T:
    """Run a coroutine function to its end, and give what it gives.

    What interrupts the caller (Ctrl-C) cancels it and waits until it has come to its end: nothing goes on behind the caller's back.
    """
    portal = _FACE.enter()
    outcome = _Outcome()
    try:
        future = portal.start_task_soon(outcome.run, function)
        try:
            outcome.done.wait()
        except BaseException:
            future.cancel()
            _wait_out(outcome)
            raise
    finally:
        _FACE.leave()
    if outcome.error is not None:
        raise outcome.error
    value: T = outcome.value
    return value


def _wait_out(outcome: _Outcome) -> None:
    """Wait for a cancelled call to end, also when the caller is interrupted again."""
    while not outcome.done.is_set():
        with suppress(KeyboardInterrupt):
            outcome.done.wait()


def shut_down() -> None:
    """End the loop and its thread now; the next synchronous call begins another one. Not to be called while one runs."""
    _FACE.stop()
