"""Which dialogs this process answers in."""

from __future__ import annotations

import os
import threading

from palaver.ids import DialogId

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


HANDS = Hands()
"""Those of this process."""
