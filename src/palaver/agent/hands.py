"""Which dialogs this process answers in."""

from __future__ import annotations

import threading

from palaver.ids import DialogId

__all__ = ["HANDS"]


class Hands:
    """The dialogs that have a turn going on in this process: one in each, whichever agents and objects there are for it.

    Attributes:
        lock: Held while somebody looks and then acts upon it.
        held: The dialogs.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.held: set[DialogId] = set()


HANDS = Hands()
"""Those of this process."""
