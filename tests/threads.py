"""Several threads that do the same at the same moment, and what came of it."""

import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["WAIT", "at_once"]

T = TypeVar("T")

WAIT = 60
"""Seconds after which what never comes is a failure."""


def at_once(threads: int, work: Callable[[int, threading.Barrier], T]) -> list[T]:
    """Have some threads do the same, each told its number and given the barrier at which they meet; what one raises is raised.

    Meanwhile they take turns as often as the interpreter can, so that what is not one step is interrupted in its middle.
    """
    barrier = threading.Barrier(threads, timeout=WAIT)

    def worked(number: int) -> T:
        try:
            return work(number, barrier)
        except BaseException:  # what it raises is raised below; nobody is to wait for it
            barrier.abort()
            raise

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(threads) as pool:
            works = [pool.submit(worked, number) for number in range(threads)]
    finally:
        sys.setswitchinterval(before)
    faults = [fault for fault in (each.exception() for each in works) if fault is not None]
    for fault in sorted(faults, key=lambda one: isinstance(one, threading.BrokenBarrierError)):
        raise fault
    return [each.result() for each in works]
