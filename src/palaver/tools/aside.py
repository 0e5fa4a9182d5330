"""Work that takes processor time, done beside the event loop.

To fold a long log, to plan what leaves its view and to compile the request takes as long as the view is long, the first time. A server answers
others meanwhile: whoever does such work in a turn does it in a thread, and waits for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

from anyio import CancelScope, get_cancelled_exc_class, to_thread

__all__ = ["aside"]

T = TypeVar("T")


async def aside(work: Callable[[], T]) -> T:
    """Do `work` in a thread, and give what it gives. What was begun is waited for also when the waiter is cancelled: what it writes is written."""
    box: list[T] = []
    claim, ended = [None], threading.Event()  # the claim is the thread's, or the waiter's who gave up before it began
    try:
        fault = await to_thread.run_sync(partial(_tried, work, box, claim, ended))
    except get_cancelled_exc_class():
        # a scope of anyio's waits by itself; a task's own `cancel` (`wait_for`, `asyncio.timeout`, Ctrl-C) breaks through its shield
        with suppress(IndexError):
            claim.pop()
            ended.set()
        with CancelScope(shield=True):
            while not ended.is_set():
                with suppress(get_cancelled_exc_class()):
                    await to_thread.run_sync(ended.wait)
        raise
    if fault is not None:
        raise fault
    return box[0]


def _tried(work: Callable[[], T], box: list[T], claim: list[None], ended: threading.Event) -> BaseException | None:
    """Work; what it raises is given, for no future takes a StopIteration, and whoever waits for that waits for ever."""
    try:
        claim.pop()
    except IndexError as error:  # given up before it began
        return error
    try:
        box.append(work())
    except BaseException as error:  # noqa: BLE001 - it is raised again where it is waited for
        return error
    finally:
        ended.set()
    return None
