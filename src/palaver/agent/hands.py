"""Which dialogs this process answers in."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from palaver.ids import DialogId
from palaver.store import Store
from palaver.store.blocks import in_block

__all__ = ["HANDS"]


class Hands:
    """The dialogs that have a turn going on in this process: one in each, whichever agents and objects there are for it.

    Attributes:
        held: The dialogs.
    """

    def __init__(self) -> None:
        self.held: set[DialogId] = set()
        self._lock = threading.RLock()
        self._process = os.getpid()

    @property
    def lock(self) -> threading.RLock:
        """What is held while somebody looks and then acts upon it. A process that was forked off has its own, and answers in nothing yet."""
        if self._process != os.getpid():
            self.held, self._lock, self._process = set(), threading.RLock(), os.getpid()
        return self._lock

    @contextmanager
    def looking(self, store: Store) -> Iterator[bool]:
        """Hold the lock while somebody looks and acts upon it; False where others do and wait for him: inside a block of the store that they write to."""
        lock = self.lock
        mine = lock.acquire(blocking=not in_block(store))
        try:
            yield mine
        finally:
            if mine:
                lock.release()


HANDS = Hands()
"""Those of this process."""
