"""The synchronous face: one event loop in a thread of its own for the whole process, in which every synchronous call runs.

It begins with the first call and ends with the main thread: connections that providers keep open live in it, so it may not come and go
with each call. Callers in threads with a running loop of their own (a notebook, a server) wait like any others: their loop stands still
meanwhile, which is what the asynchronous methods are for.

A callback of a turn (a parser, a listener, an approver) runs in the loop itself. A synchronous call made there gets a loop of its own beside
it, for the length of the call: the one it stands in cannot go on before the callback is back.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal

__all__ = ["run_sync", "shut_down"]

T = TypeVar("T")


_PATIENCE = 3
"""Interruptions after which a caller is let go of, whatever its call is doing: a callback that hangs in the loop hears of none of them."""

_LOOPS = threading.local()
"""Whether this thread is one of our loops."""

_ASIDE: ContextVar[bool] = ContextVar("palaver_aside", default=False)
"""Whether this call was made beside a loop that waits for it, as its threads know too."""


class _Outcome:
    """How a call in the portal ended. An exception of any kind is carried, so that none ends the portal."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.value: Any = None
        self.error: BaseException | None = None

    async def run(self, function: Callable[[], Awaitable[Any]]) -> None:
        _LOOPS.ours = True
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
        self._given_up: list[AbstractContextManager[BlockingPortal] | None] = []
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
        self._given_up.append(self._opened)
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

    def give_up(self, portal: BlockingPortal) -> None:
        """Leave a portal that hangs to itself: the next call begins another one. It is kept, for whoever dropped it would wait for it."""
        with self._lock:
            if self._portal is portal:
                self._given_up.append(self._opened)
                self._portal, self._opened = None, None

    def stop(self) -> None:
        """End the portal and its threads."""
        with self._lock:
            opened, self._portal, self._opened = self._opened, None, None
        if opened is not None and self._process == os.getpid():
            opened.__exit__(None, None, None)


_FACE = _Face()


def run_sync(function: Callable[[], Awaitable[T]]) -> T:
    """Run a coroutine function to its end, and give what it gives.

    What interrupts the caller (Ctrl-C) cancels it and waits until it has come to its end: nothing goes on behind the caller's back. A
    caller that is interrupted three times is let go of all the same.
    """
    outcome = _Outcome()
    if _ASIDE.get() or getattr(_LOOPS, "ours", False):
        _run_aside(outcome, function)
    else:
        portal = _FACE.enter()
        try:
            _run_in(portal, outcome, function)
        finally:
            _FACE.leave()
    if outcome.error is not None:
        raise outcome.error
    value: T = outcome.value
    return value


def _run_in(portal: BlockingPortal, outcome: _Outcome, function: Callable[[], Awaitable[Any]]) -> None:
    """Run a call in a portal, and wait for it as long as the caller has patience."""
    interrupted: list[BaseException] = []
    try:
        future = portal.start_task_soon(outcome.run, function)
        while not outcome.done.is_set() and len(interrupted) < _PATIENCE:
            try:
                if interrupted:
                    future.cancel()
                outcome.done.wait(1.0)  # not for ever: a signal just before it would be noticed only at its end
            except BaseException as error:  # noqa: BLE001 - raised below, when the call has ended or is given up
                interrupted.append(error)
    finally:
        if not outcome.done.is_set():  # wherever the interruption came: the next call must not wait behind this one
            _FACE.give_up(portal)
    if interrupted:
        raise interrupted[0]


def _run_aside(outcome: _Outcome, function: Callable[[], Awaitable[Any]]) -> None:
    """Run a call in a loop of its own, while the loop that the caller stands in stands still."""
    token = _ASIDE.set(True)
    try:
        with start_blocking_portal(name="palaver aside") as portal:
            _run_in(portal, outcome, function)
    finally:
        _ASIDE.reset(token)


def shut_down() -> None:
    """End the loop and its thread now; the next synchronous call begins another one. Not to be called while one runs."""
    _FACE.stop()
