"""A forked child that does one thing and ends."""

from __future__ import annotations

import os
import traceback
import warnings
from collections.abc import Callable

__all__ = ["forked"]


def forked(work: Callable[[], None]) -> int:
    """Do something in a forked child, and give its wait status: 0 where it came to its end; other threads may run in the parent.

    What it raises is printed, for the child's standard error is the parent's.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # from 3.12 on, about a fork beside threads
        child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:  # noqa: BLE001 - the child must end here, whatever happened
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1]
