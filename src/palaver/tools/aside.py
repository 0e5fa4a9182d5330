"""Work that takes processor time, done beside the event loop.

To fold a long log, to plan what leaves its view and to compile the request takes as long as the view is long, the first time. A server answers
others meanwhile: whoever does such work in a turn does it in a thread, and waits for it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from anyio import to_thread

__all__ = ["aside"]

T = TypeVar("T")


async def aside(work: Callable[[], T]) -> T:
    """Do `work` in a thread, and give what it gives. It is waited for also when the waiter is cancelled: what it writes is written."""
    box: list[T] = []
    fault = await to_thread.run_sync(partial(_tried, work, box))
    if fault is not None:
        raise fault
    return box[0]


def _tried(work: Callable[[], T], box: list[T]) -> BaseException | None:
    """Work; what it raises is given, for no future takes a StopIteration, and whoever waits for that waits for ever."""
    try:
        box.append(work())
    except BaseException as error:  # noqa: BLE001 - it is raised again where it is waited for
        return error
    return None
