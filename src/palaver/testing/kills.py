"""Dying at a chosen step: a store that ends its process when it has made a number of writes durable.

What a program promises of a kill at any point is tried by doing it: run the program once to count its writes, then once for each of them,
in a child process that this store kills with a signal nobody can catch, and take up what the store has.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from typing import Any, cast

from palaver.ids import DialogId
from palaver.log import Draft, Header
from palaver.store import Store

__all__ = ["dying_store", "kill_this_process"]


def kill_this_process() -> None:
    """End this process at once: no handler runs, nothing is flushed."""
    os.kill(os.getpid(), signal.SIGKILL)


class _Dying:
    """Hands everything on to another store, and counts what became durable."""

    def __init__(self, store: Store, writes: int, die: Callable[[], None]) -> None:
        self._store = store
        self._left = writes
        self._die = die
        self.made = 0

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the store has
        return getattr(self._store, name)

    def append(
        self, dialog_id: DialogId, drafts: Sequence[Draft], turn_head: int, last: Header | None = None
    ) -> tuple[Header, ...]:
        """Append, and die if this was the last write."""
        self._live()
        headers = self._store.append(dialog_id, drafts, turn_head, last)
        if headers:  # without drafts nothing is written: it only compares
            self._count()
        return headers

    def annotate(self, dialog_id: DialogId, draft: Draft, last: Header | None = None) -> Header:
        """Annotate, and die if this was the last write."""
        self._live()
        header = self._store.annotate(dialog_id, draft, last)
        self._count()
        return header

    def _live(self) -> None:
        """Die again: where dying was only raised, somebody may have caught it, and the dead write nothing."""
        if 0 < self._left <= self.made:
            self._die()

    def _count(self) -> None:
        self.made += 1
        self._live()


def dying_store(store: Store, writes: int = -1, die: Callable[[], None] = kill_this_process) -> Store:
    """Return a store that dies after a write.

    Args:
        store: Where everything is written to.
        writes: After which write of entries, counted from 1; -1 for never. Its attribute `made` counts them.
        die: What happens then; it may raise, where a process is not to be lost.
    """
    return cast("Store", _Dying(store, writes, die))
