"""The connections of one store: lent for one statement or one transaction, never across a fork."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from threading import Condition, Lock, get_ident
from types import TracebackType
from typing import NamedTuple
from weakref import WeakSet

import apsw

from palaver.errors import InvalidInput, PalaverError, StoreError
from palaver.store.sqlite.faults import busy, closed, fault, read_only

_KEPT_IDLE = 8  # more threads than this at once are served too; their connections are closed afterwards
_FORK_WAIT_SECONDS = 30.0  # how long a fork waits for the statements of other threads


class Block(NamedTuple):
    """An open transaction into which one thread writes several things.

    Attributes:
        thread: The thread that opened it.
        connection: The connection it is open on.
    """

    thread: int
    connection: apsw.Connection


def _reads(connection: apsw.Connection) -> bool:
    """Tell whether a statement stands in its middle, as one does that an error has left, held by the error's traceback."""
    return connection.txn_state() != apsw.SQLITE_TXN_NONE


class Connections:
    """A pool that grows with the number of threads that use the store at the same moment; a single thread uses one connection.

    Writers of one process queue on a lock, which is fair and wakes at once; SQLite's own lock, which is polled, is left to other processes.

    SQLite may not be carried through fork(): locks are not inherited, and its table of files, which is, says that they are
    (https://www.sqlite.org/howtocorrupt.html, section 2.6). So before a fork the pool waits until every connection is back and closes
    them; parent and child each open anew when they next need one.
    """

    def __init__(
        self,
        path: Path,
        wait: float,
        connect: Callable[[], apsw.Connection],
        first: Callable[[], apsw.Connection],
        *,
        writable: bool = True,
    ) -> None:
        """Make a pool, and open its first connection.

        Args:
            path: The store's file, for the words of errors.
            wait: How long to wait for another writer, in seconds.
            connect: Opens a connection that is ready for use.
            first: Opens the first one, and makes or upgrades the store if need be.
            writable: False to refuse every write.
        """
        self.path = path
        self.wait = wait
        self.writable = writable
        self.generation = 0
        self.block: Block | None = None
        self._connect = first
        self._idle: list[apsw.Connection] = []
        self._lent = 0
        self._open = True
        self._orphan = False
        self._fork_waits = False
        self._new_locks()
        _watch_forks()
        _POOLS.add(self)
        self.give_back(self.borrow())  # known to the hooks of fork() before anything is open
        self._connect = connect

    def _new_locks(self) -> None:
        self._state = Lock()
        self._returned = Condition(self._state)
        self._writer = Lock()

    def borrow(self) -> apsw.Connection:
        """Lend an idle connection, or a new one; whoever borrows gives it back."""
        with self._state:
            if not self._open or self._orphan:
                raise self.refusal()
            self._lent += 1
            if self._idle:
                return self._idle.pop()
        try:
            return self._connect()
        except BaseException:  # an interrupt, too, gives the place in the pool back
            self.give_back(None)
            raise

    def refusal(self) -> StoreError:
        """Give the error for a pool that lends nothing any more."""
        if not self._open:
            return closed(self.path)
        return StoreError(
            f"{self.path} was in the middle of a write when this process was forked.",
            hint="Open the store anew in the child.",
        )

    def give_back(self, connection: apsw.Connection | None) -> None:
        """Take a connection back, or learn that the one that was to be lent could not be opened."""
        with self._state:
            self._lent -= 1
            if connection is not None and self._open and len(self._idle) < _KEPT_IDLE and not _reads(connection):
                self._idle.append(connection)
                connection = None
            if self._fork_waits:
                self._returned.notify_all()
        if connection is not None:
            connection.close()

    def lock(self) -> None:
        """Wait for the other writers of this process."""
        if not self.writable:
            raise read_only(self.path)
        if not self._writer.acquire(timeout=self.wait):
            raise busy(self.path, self.wait)

    def unlock(self) -> None:
        """Let the next writer of this process in."""
        self._writer.release()

    def translated(self, error: BaseException, connection: apsw.Connection) -> PalaverError | None:
        """Give an error of SQLite's in palaver's words, while the connection is still ours to ask; None for any other error."""
        if isinstance(error, apsw.Error):
            return fault(self.path, self.wait, error, connection.system_errno)
        if isinstance(error, UnicodeEncodeError):  # the binding of a text that no UTF-8 can hold
            return InvalidInput(f"A text holds a lone surrogate, which no UTF-8 text can: {error.object!r}.")
        return None

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
        ours = self.block is not None and self.block.thread == get_ident()  # then nobody else can end it: do not wait
        self._orphan = not self._returned.wait_for(lambda: self._lent == 0, 0.0 if ours else _FORK_WAIT_SECONDS)
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
        """Go on with locks that no other thread holds: there is none. What was under way belongs to the parent."""
        self.generation += 1
        if self.block is not None:
            _ABANDONED.append(self.block.connection)
        self.block = None
        self._new_locks()


_POOLS: WeakSet[Connections] = WeakSet()
_HELD: list[Connections] = []
_ABANDONED: list[apsw.Connection] = []
"""Connections of the parent's that a child may neither use nor close; kept, so that nothing closes them."""


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


def _mine(pool: Connections) -> apsw.Connection | None:
    """Give the connection of the block that this thread has open, if it has."""
    block = pool.block
    return block.connection if block is not None and block.thread == get_ident() else None


def in_block(pool: Connections) -> bool:
    """Tell whether this thread has a block open."""
    return _mine(pool) is not None


def reading(pool: Connections) -> AbstractContextManager[apsw.Connection]:
    """Lend a connection for one read; inside a block of this thread, the one that sees what was written in it."""
    mine = _mine(pool)
    return _Read(pool) if mine is None else _Shared(pool, mine)


def writing(pool: Connections) -> AbstractContextManager[apsw.Connection]:
    """Lend a connection for one write transaction, or, inside a block of this thread, for one step of it."""
    mine = _mine(pool)
    return _Write(pool) if mine is None else _Step(pool, mine)


@contextmanager
def together(pool: Connections) -> Iterator[None]:
    """Make one transaction of the writes of this thread inside the block."""
    with writing(pool) as connection:
        if pool.block is not None:  # ours, or we would not hold the write lock
            yield
            return
        pool.block = Block(get_ident(), connection)
        generation = pool.generation
        try:
            yield
        finally:
            pool.block = None
        if pool.generation != generation:
            raise pool.refusal()
        if not connection.in_transaction:
            raise _lost(pool)


def _lost(pool: Connections) -> StoreError:
    return StoreError(
        f"A failed write undid everything that was written together in {pool.path}.", hint="Try the writes one by one."
    )


class _Read:
    """A connection lent for one read; SQLite's errors leave it in palaver's words."""

    __slots__ = ("_connection", "_pool")

    _connection: apsw.Connection

    def __init__(self, pool: Connections) -> None:
        """Borrow nothing yet."""
        self._pool = pool

    def __enter__(self) -> apsw.Connection:
        """Borrow a connection."""
        self._connection = self._pool.borrow()
        return self._connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give it back."""
        translated = None if error is None else self._pool.translated(error, self._connection)
        self._pool.give_back(self._connection)
        if translated is not None:
            raise translated from error


class _Shared:
    """The connection of an open block, for one read."""

    __slots__ = ("_connection", "_pool")

    def __init__(self, pool: Connections, connection: apsw.Connection) -> None:
        """Keep both."""
        self._pool = pool
        self._connection = connection

    def __enter__(self) -> apsw.Connection:
        """Give the connection."""
        return self._connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Translate SQLite's errors."""
        translated = None if error is None else self._pool.translated(error, self._connection)
        if translated is not None:
            raise translated from error


class _Write:
    """A connection lent for one write transaction: begun IMMEDIATE, committed at the end, undone by any error."""

    __slots__ = ("_connection", "_generation", "_pool")

    _connection: apsw.Connection

    def __init__(self, pool: Connections) -> None:
        """Borrow nothing yet."""
        self._pool = pool
        self._generation = pool.generation

    def __enter__(self) -> apsw.Connection:
        """Wait for the turn of this writer and begin."""
        connection = self._connection = self._pool.borrow()
        try:
            self._pool.lock()
        except BaseException:  # as above
            self._pool.give_back(connection)
            raise
        try:
            connection.execute("BEGIN IMMEDIATE")
        except BaseException as error:  # as above; and the writers' turn
            self._undo(error)
            raise
        return connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Commit, or undo; in a child that was forked meanwhile neither, for the transaction is the parent's."""
        if self._pool.generation != self._generation:
            return
        if error is not None:
            self._undo(error)
            return
        try:
            self._connection.execute("COMMIT")
        except BaseException as failed:  # as above
            self._undo(failed)
            raise
        self._pool.unlock()
        self._pool.give_back(self._connection)

    def _undo(self, error: BaseException) -> None:
        """Undo what is not committed, let the next writer in, and raise SQLite's errors in palaver's words."""
        connection = self._connection
        translated = self._pool.translated(error, connection)
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        finally:
            self._pool.unlock()
            self._pool.give_back(connection)
        if translated is not None:
            raise translated from error


class _Step:
    """One write inside an open block: undone alone when it fails."""

    __slots__ = ("_connection", "_pool")

    def __init__(self, pool: Connections, connection: apsw.Connection) -> None:
        """Keep both."""
        self._pool = pool
        self._connection = connection

    def __enter__(self) -> apsw.Connection:
        """Begin the step."""
        if not self._connection.in_transaction:  # SQLite undid it all, as it may when the disk is full
            raise _lost(self._pool)
        self._connection.execute("SAVEPOINT step")
        return self._connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Keep the step, or undo it."""
        connection = self._connection
        if error is None:
            connection.execute("RELEASE step")
            return
        translated = self._pool.translated(error, connection)
        if connection.in_transaction:
            connection.execute("ROLLBACK TO step")
            connection.execute("RELEASE step")
        if translated is not None:
            raise translated from error
