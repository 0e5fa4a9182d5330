"""What may follow a store: the protocol of a replay log, and the warning of one that could not follow."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from palaver.ids import SessionId
from palaver.log import Node
from palaver.store.protocol import Store

__all__ = ["Follower", "Forgetting", "ReplayLogWarning"]


class ReplayLogWarning(UserWarning):
    """The replay log could not be written; the store has the entry, and the log catches up at the next one."""


@runtime_checkable
class Follower(Protocol):
    """What is told of everything that was written, after the store has acknowledged it.

    It must not raise for what the world does to it (a full disk, a missing folder): it warns, and catches up the next time.
    Threads may tell it of one dialog at once, in any order.
    """

    def follow(self, store: Store, node: Node, upto: int) -> None:
        """Follow a dialog up to its own entry `upto` (inclusive; -1: the dialog was made and has no entry of its own yet)."""
        ...


@runtime_checkable
class Forgetting(Protocol):
    """A follower that can forget what was erased."""

    def forget(self, store: Store, session_id: SessionId) -> None:
        """Keep of a session only what the store still has; it warns of what it cannot do."""
        ...
