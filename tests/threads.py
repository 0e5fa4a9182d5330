"""Run the same work in several threads at the same moment."""

import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["WAIT", "at_once"]

T = TypeVar("T")

WAIT = 60
"""Seconds to wait before a test fails."""


def at_once(threads: int, work: Callable[[int, threading.Barrier], T]) -> list[T]:
    """Run work in several threads, each with its number and a common barrier, and raise what one of them raises.

    The interpreter switches threads as often as it can, so that steps which are not atomic are interrupted.
    """
    barrier = threading.Barrier(threads, timeout=WAIT)

    def worked(number: int) -> T:
        try:
            return work(number, barrier)
        except BaseException:  # it is raised below; the others must not wait for this thread
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
