"""Waiting for a plain function without blocking the event loop.

A thread cannot be stopped from outside. One that hangs is left behind when its call is given up: it is a daemon, so that it neither keeps
the process from ending nor takes a place in a pool (anyio's own worker threads would be waited for when the interpreter ends).
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

import anyio
import anyio.from_thread
import anyio.lowlevel

__all__ = ["hand_over", "in_thread"]

A = TypeVar("A")
T = TypeVar("T")


async def in_thread(work: Callable[[], T]) -> T:
    """Run `work`, which must not raise, in a thread of its own; a cancelled waiter leaves it behind."""
    await anyio.lowlevel.checkpoint_if_cancelled()
    done = anyio.Event()
    loop = anyio.lowlevel.current_token()
    variables = contextvars.copy_context()
    box: list[T] = []

    def run() -> None:
        box.append(variables.run(work))
        _tell(loop, done.set)

    threading.Thread(target=run, name="palaver tool", daemon=True).start()
    await done.wait()
    return box[0]


def hand_over(listener: Callable[[A], None]) -> Callable[[A], None]:
    """Give a function that calls the listener in this event loop's thread, from whatever thread it is called itself."""
    home = threading.get_ident()
    loop = anyio.lowlevel.current_token()

    def call(said: A) -> None:
        if threading.get_ident() == home:
            listener(said)
        else:
            _tell(loop, partial(listener, said))

    return call


def _tell(loop: anyio.lowlevel.EventLoopToken, work: Callable[[], None]) -> None:
    with suppress(anyio.RunFinishedError):  # the loop ended before the function did: nobody is waiting
        anyio.from_thread.run_sync(work, token=loop)
