"""The connections of one store: lent for one statement or one transaction, never across a fork."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from threading import Condition, Lock
from types import TracebackType
from typing import Literal
from weakref import WeakSet

import apsw

from palaver.errors import StoreError
from palaver.store.sqlite.faults import busy, closed, fault

_KEPT_IDLE = 8  # more threads than this at once are served too; their connections are closed afterwards
_FORK_WAIT_SECONDS = 30.0  # how long a fork waits for the statements of other threads


class Connections:
    """A pool that grows with the number of threads that use the store at the same moment; a single thread uses one connection.

    Writers of one process queue on a lock, which is fair and wakes at once; SQLite's own lock, which is polled, is left to other processes.

    SQLite may not be carried through fork(): locks are not inherited, and its table of files, which is, says that they are
    (https://www.sqlite.org/howtocorrupt.html, section 2.6). So before a fork the pool waits until every connection is back and closes
    them; parent and child each open anew when they next need one.
    """

    def __init__(self, path: Path, wait: float, connect: Callable[[], apsw.Connection]) -> None:
        """Make a pool.

        Args:
            path: The store's file, for the words of errors.
            wait: How long to wait for another writer, in seconds.
            connect: Opens a connection that is ready for use.
        """
        self.path = path
        self.wait = wait
        self._connect = connect
        self._idle: list[apsw.Connection] = []
        self._lent = 0
        self._open = True
        self._orphan = False
        self._fork_waits = False
        self._new_locks()
        _watch_forks()
        _POOLS.add(self)

    def _new_locks(self) -> None:
        self._state = Lock()
        self._returned = Condition(self._state)
        self._writer = Lock()

    def enter(self) -> None:
        """Announce a user; every one leaves."""
        with self._state:
            if not self._open:
                raise closed(self.path)
            if self._orphan:
                raise StoreError(
                    f"{self.path} was in use by another thread when this process was forked.",
                    hint="Open the store anew in the child.",
                )
            self._lent += 1

    def leave(self, connection: apsw.Connection | None) -> None:
        """Take a user's connection back."""
        with self._state:
            self._lent -= 1
            if connection is not None and self._open and len(self._idle) < _KEPT_IDLE:
                self._idle.append(connection)
                connection = None
            if self._fork_waits:
                self._returned.notify_all()
        if connection is not None:
            connection.close()

    def take(self) -> apsw.Connection:
        """Give an idle connection, or a new one."""
        try:
            return self._idle.pop()
        except IndexError:
            return self._connect()

    def lock(self) -> None:
        """Wait for the other writers of this process."""
        if not self._writer.acquire(timeout=self.wait):
            raise busy(self.path, self.wait)

    def unlock(self) -> None:
        """Let the next writer of this process in."""
        self._writer.release()

    def close(self) -> None:
        """Close what is idle now, and what is lent when it comes back."""
        with self._state:
            self._open = False
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def before_fork(self) -> None:
        """Wait until nobody uses a connection, close them all, and hold the pool still."""
        self._state.acquire()
        self._fork_waits = True
        self._orphan = not self._returned.wait_for(lambda: self._lent == 0, _FORK_WAIT_SECONDS)
        self._fork_waits = False
        if not self._orphan:
            idle, self._idle = self._idle, []
            for connection in idle:
                connection.close()

    def after_fork_in_parent(self) -> None:
        """Go on."""
        self._orphan = False
        self._state.release()

    def after_fork_in_child(self) -> None:
        """Go on with locks that no other thread holds: there is none."""
        self._new_locks()


_POOLS: WeakSet[Connections] = WeakSet()
_HELD: list[Connections] = []


def _before_fork() -> None:
    _HELD[:] = list(_POOLS)
    for pool in _HELD:
        pool.before_fork()


def _after_fork_in_parent() -> None:
    while _HELD:
        _HELD.pop().after_fork_in_parent()


def _after_fork_in_child() -> None:
    while _HELD:
        _HELD.pop().after_fork_in_child()


@cache
def _watch_forks() -> None:
    """Be told of forks, from the first pool on."""
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)


class Reading:
    """A connection lent for one read; SQLite's errors leave it in palaver's words."""

    __slots__ = ("_pool", "connection")

    connection: apsw.Connection | None

    def __init__(self, pool: Connections) -> None:
        """Borrow nothing yet."""
        self._pool = pool

    def __enter__(self) -> apsw.Connection:
        """Borrow a connection."""
        self.connection = None
        self._pool.enter()
        try:
            self.connection = self._pool.take()
        except BaseException:
            self._pool.leave(None)
            raise
        return self.connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        """Give it back."""
        number = self._number(error)
        self._pool.leave(self.connection)
        if isinstance(error, apsw.Error):
            raise fault(self._pool.path, self._pool.wait, error, number) from error
        return False

    def _number(self, error: BaseException | None) -> int:
        """Give the errno of the system call that failed last, while the connection is still ours."""
        return self.connection.system_errno if self.connection is not None and isinstance(error, apsw.Error) else 0


class Writing(Reading):
    """A connection lent for one write transaction: begun IMMEDIATE, committed at the end, undone by any error."""

    __slots__ = ()

    def __enter__(self) -> apsw.Connection:
        """Wait for the turn of this writer and begin."""
        connection = super().__enter__()
        try:
            self._pool.lock()
        except BaseException:
            self._pool.leave(connection)
            raise
        try:
            connection.execute("BEGIN IMMEDIATE")
        except BaseException as error:
            self._release(error)
            raise
        return connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        """Commit, or undo."""
        connection = self.connection
        assert connection is not None  # noqa: S101 - __enter__ has returned
        if error is None:
            try:
                connection.execute("COMMIT")
            except BaseException as failed:
                self._release(failed)
                raise
        self._release(error)
        return False

    def _release(self, error: BaseException | None) -> None:
        """Undo what is not committed, let the next writer in, and translate the error."""
        connection = self.connection
        assert connection is not None  # noqa: S101 - __enter__ has borrowed one
        number = self._number(error)
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        finally:
            self._pool.unlock()
            self._pool.leave(connection)
        if isinstance(error, apsw.Error):
            raise fault(self._pool.path, self._pool.wait, error, number) from error
