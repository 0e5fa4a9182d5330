"""Which of several databases has a session, the transactions over them, and the place that each database remembers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from threading import local
from typing import Protocol, TypeVar

from palaver.errors import Erased, InvalidInput, NotFound, PalaverError, StoreError
from palaver.ids import new_session_id
from palaver.store.erasing import Erasing
from palaver.store.lease import Lease, Leasing
from palaver.store.protocol import Copyable

PART = "palaver part"
"""The name of the lease by which a database remembers which one it is, and of how many."""

_ID = re.compile(r"[0-9a-f]{32}")

T = TypeVar("T")


class PartStore(Erasing, Copyable, Leasing, Protocol):
    """One database of a routed store: all of palaver's stores can be one."""


class _Transaction(local):
    """The blocks that a thread is inside of, each with what it began, the locks around them all, and the database that they write to."""

    def __init__(self) -> None:
        self.blocks: list[ExitStack] = []
        self.locks = ExitStack()
        self.part: int | None = None


class Route:
    """Which database has what, and the transactions of each thread.

    Attributes:
        stores: The databases.
    """

    def __init__(self, stores: Sequence[PartStore]) -> None:
        self.stores = tuple(stores)
        self._own = _Transaction()

    def at(self, name: str) -> PartStore:
        """Return the database of a session or dialog."""
        return self.stores[self.number(name)]

    def number(self, name: str) -> int:
        """Return which database has a session or dialog: the high bits, for partitions in a database use the low ones."""
        return int(name[-4:], 16) * len(self.stores) >> 16 if is_id(name[-32:]) else 0

    def to(self, name: str) -> PartStore:
        """Return the database of a session or dialog for a write, in the transaction of this thread."""
        return self.writing(self.number(name))

    def writing(self, part: int) -> PartStore:
        """Return a database for a write, in the transaction of this thread."""
        own, store = self._own, self.stores[part]
        if own.blocks and own.part is None:
            for block in own.blocks:
                block.enter_context(store.transaction())
            own.part = part
        if own.blocks and own.part != part:
            raise StoreError(
                "A transaction of a store over several databases writes to one of them, and this session is in another.",
                reason="unsupported",
                hint="Write to each session in a transaction of its own, or make them with new_session_id(like=…).",
            )
        return store

    def answers(self, ask: Callable[[PartStore], T]) -> list[T]:
        """Return the answers of the databases that have one; where none has, raise what they say, first of all that it was erased."""
        answers: list[T] = []
        errors: list[PalaverError] = []
        for store in self.stores:
            try:
                answers.append(ask(store))
            except (NotFound, Erased) as error:
                errors.append(error)
        if not answers:
            raise min(errors, key=lambda error: not isinstance(error, Erased))
        return answers

    @contextmanager
    def transaction(self, lock: str = "") -> Iterator[None]:
        """Make one step of the writes of this thread inside the block, all to one database."""
        own = self._own
        with ExitStack() as outside, ExitStack() as block:
            if not own.blocks:
                own.locks = outside
            if own.part is not None:
                block.enter_context(self.stores[own.part].transaction())
            if lock:  # it lasts until all is written
                (block if own.part == 0 else own.locks).enter_context(self.stores[0].transaction(lock))
            own.blocks.append(block)
            try:
                yield
            finally:
                own.blocks.pop()
                if not own.blocks:
                    own.part = None

    @property
    def in_transaction(self) -> bool:
        """Whether this thread is inside a transaction."""
        return bool(self._own.blocks)

    @property
    def current(self) -> int:
        """The database of this thread's transaction; the first where it has none yet."""
        return self._own.part or 0


def is_id(name: str) -> bool:
    """Return whether a name is the id of a session or dialog."""
    return _ID.fullmatch(name) is not None


def take_places(stores: Sequence[PartStore]) -> None:
    """Let each database remember which one it is.

    Raises:
        InvalidInput: One is not what it should be.
    """
    marks = [store.lease(PART).holder for store in stores]
    name = next((mark.rpartition(" ")[2] for mark in marks if mark), new_session_id())
    for number, (store, mark) in enumerate(zip(stores, marks, strict=True), 1):
        if mark and mark != f"{number} of {len(stores)} of store {name}":
            raise InvalidInput(
                f"Database {number} of these {len(stores)} is {mark}.",
                hint=f"Name all databases of a store, each once, in the order in which they were made{'' if name in mark else f', and none but those of {name}'}.",
            )
        if not mark and (next(store.sessions(limit=1), None) or next(store.sessions(trashed=True, limit=1), None)):
            raise InvalidInput(
                f"Database {number} of these {len(stores)} has sessions already, and is no part of a store.",
                hint="Make the store of empty databases, and copy into it: palaver store copy.",
            )
    for number, store in enumerate(stores, 1):
        if not marks[number - 1]:
            mine = f"{number} of {len(stores)} of store {name}"
            made = store.change_lease(PART, partial(_marked, mine))
            name = made.holder.rpartition(" ")[2]  # another process may have been faster


def _marked(mine: str, lease: Lease, _now: float) -> Lease:
    return lease if lease.holder else replace(lease, holder=mine)
