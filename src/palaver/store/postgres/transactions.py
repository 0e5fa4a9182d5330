"""What a connection is lent for: a read, one statement, one transaction, one step of a block that a thread has open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from types import TracebackType
from typing import LiteralString

import psycopg
from psycopg.pq import TransactionStatus

from palaver.errors import StoreError
from palaver.store.postgres.connections import Block, Connection, Connections
from palaver.store.postgres.faults import fault, read_only, unknown_outcome

_TABLES: LiteralString = "sessions, dialogs, entries, blobs, sources, indexed, texts, tokens"
_BESIDE_WRITERS: LiteralString = f"BEGIN; LOCK TABLE {_TABLES} IN ROW EXCLUSIVE MODE"
_WITHOUT_WRITERS: LiteralString = f"BEGIN; LOCK TABLE {_TABLES} IN SHARE ROW EXCLUSIVE MODE"
"""How a transaction of several statements begins: all take the same locks in the same order, in one journey, so that no writer and no erasure
waits for another that waits for it; what is found in one is there when it ends."""


def reading(pool: Connections) -> AbstractContextManager[Connection]:
    """Lend a connection for reading; inside a block of this thread, the one that sees what was written in it."""
    block = pool.block()
    return _Lent(pool) if block is None else _Shared(pool, block.connection)


def writing(pool: Connections, begin: LiteralString = _BESIDE_WRITERS) -> AbstractContextManager[Connection]:
    """Lend a connection for one write transaction, or, inside a block of this thread, for one step of it."""
    refuse_if_read_only(pool)
    block = pool.block()
    return _Write(pool, begin) if block is None else _Step(pool, block.connection)


def one_statement(pool: Connections) -> AbstractContextManager[Connection]:
    """Lend a connection for a single statement that writes, a transaction of its own, or one step of this thread's block."""
    refuse_if_read_only(pool)
    block = pool.block()
    return _Lent(pool) if block is None else _Step(pool, block.connection)


def refuse_if_read_only(pool: Connections) -> None:
    """Refuse a write to a store that was opened for reading.

    Raises:
        StoreReadOnly: It was.
    """
    if not pool.writable:
        raise read_only(pool.place)


@contextmanager
def together(pool: Connections, *, alone: bool = False) -> Iterator[None]:
    """Make one transaction of the writes of this thread inside the block.

    The block and an erasure keep each other out from the first moment on.

    Args:
        pool: The connections.
        alone: Whether nobody else is to write an entry, a payload, a dialog or a source until the end; reading goes on. Inside a block of this
            thread others may have begun to wait for it: one of them may be told that the store is busy.
    """
    outermost = pool.block() is None
    with writing(pool, _WITHOUT_WRITERS if alone else _BESIDE_WRITERS) as connection:
        if alone and not outermost:
            connection.command(_WITHOUT_WRITERS.removeprefix("BEGIN; "))
        if not outermost:
            yield
            return
        pool.own.block = Block(connection, pool.generation)
        generation = pool.generation
        try:
            yield
        finally:
            pool.own.block = None
        if pool.generation != generation:
            raise pool.forked()
        if connection.info.transaction_status is not TransactionStatus.INTRANS:
            raise _lost(pool)


def _lost(pool: Connections) -> StoreError:
    return StoreError(
        f"A failed write undid everything that was written together in {pool.place}.",
        hint="Try the writes one by one.",
    )


class _Shared:
    """The connection of an open block, for one read; psycopg's errors leave it in palaver's words."""

    __slots__ = ("_connection", "_pool")

    def __init__(self, pool: Connections, connection: Connection) -> None:
        """Keep both."""
        self._pool = pool
        self._connection = connection

    def __enter__(self) -> Connection:
        """Give the connection."""
        return self._connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Translate psycopg's errors."""
        translated = None if error is None else self._pool.translated(error, self._connection)
        if translated is not None:
            raise translated from error


class _Lent:
    """A connection lent for statements of which each is a transaction of its own."""

    __slots__ = ("_connection", "_generation", "_pool")

    _connection: Connection

    def __init__(self, pool: Connections) -> None:
        """Borrow nothing yet."""
        self._pool = pool
        self._generation = pool.generation

    def __enter__(self) -> Connection:
        """Borrow a connection."""
        self._connection = self._pool.borrow()
        return self._connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give it back; in a child that was forked meanwhile it is the parent's."""
        if self._pool.generation != self._generation:
            return
        translated = None if error is None else self._pool.translated(error, self._connection)
        self._pool.give_back(self._connection)
        if translated is not None:
            raise translated from error


class _Write:
    """A connection lent for one write transaction: committed at the end, undone by any error."""

    __slots__ = ("_begin", "_connection", "_generation", "_pool")

    _connection: Connection

    def __init__(self, pool: Connections, begin: LiteralString) -> None:
        """Borrow nothing yet."""
        self._pool = pool
        self._begin = begin
        self._generation = pool.generation

    def __enter__(self) -> Connection:
        """Begin."""
        connection = self._connection = self._pool.borrow()
        try:
            connection.command(self._begin)
        except BaseException as error:  # an interrupt, too, gives the connection back
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
            self._connection.command("COMMIT")
        except psycopg.Error as failed:
            broken = self._connection.broken
            self._pool.give_back(self._connection)
            known = fault(self._pool.place, self._pool.wait, failed, broken=broken)
            raise (unknown_outcome(self._pool.place) if broken else known) from failed
        except BaseException:  # as above
            self._pool.give_back(self._connection)  # in the middle of something: closed, and so undone or done
            raise
        self._pool.give_back(self._connection)

    def _undo(self, error: BaseException) -> None:
        """Undo, and raise psycopg's errors in palaver's words."""
        connection = self._connection
        translated = self._pool.translated(error, connection)
        with suppress(psycopg.Error):  # it is dead, or dies now: then it is not lent again, and the server undoes
            if not connection.broken:
                connection.command("ROLLBACK")
        self._pool.give_back(connection)
        if translated is not None:
            raise translated from error


class _Step:
    """One write inside an open block: undone alone when it fails."""

    __slots__ = ("_connection", "_pool")

    def __init__(self, pool: Connections, connection: Connection) -> None:
        """Keep both."""
        self._pool = pool
        self._connection = connection

    def __enter__(self) -> Connection:
        """Begin the step."""
        if self._connection.info.transaction_status is not TransactionStatus.INTRANS:
            raise _lost(self._pool)
        self._do("SAVEPOINT step")
        return self._connection

    def _do(self, command: LiteralString) -> None:
        try:
            self._connection.command(command)
        except psycopg.Error as error:
            broken = self._connection.broken
            raise fault(self._pool.place, self._pool.wait, error, broken=broken) from error

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Keep the step, or undo it."""
        if error is None:
            self._do("RELEASE step")
            return
        translated = self._pool.translated(error, self._connection)
        with suppress(psycopg.Error):  # the connection died, and all that was written together with it
            if not self._connection.broken:
                self._connection.command("ROLLBACK TO step")
                self._connection.command("RELEASE step")
        if translated is not None:
            raise translated from error
