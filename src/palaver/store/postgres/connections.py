"""The connections of one store: lent for one statement or one transaction, never across a fork."""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from contextlib import suppress
from functools import cache, cached_property
from threading import Condition, local
from time import monotonic
from typing import Any, LiteralString
from weakref import WeakSet

import psycopg
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, TransactionStatus
from psycopg.pq.abc import PGresult

from palaver.errors import InvalidInput, PalaverError, StoreError
from palaver.store.postgres.faults import busy, closed, fault
from palaver.store.postgres.statements import Row, encoded, numbered, statements

_KEPT_IDLE = 8
_FRESH_SECONDS = 0.005  # a connection that was used so recently is not looked at again


class Connection(psycopg.Connection[Row]):
    """A connection to the server, with a short way for the one statement that is executed for each append."""

    @cached_property
    def _known_here(self) -> set[bytes]:
        return set()

    def insert(self, name: str, values: Row, then: str = "") -> tuple[bytes | None, ...] | None:
        """Execute a statement that writes an entry through libpq itself, and give the first row that it returned, as text; None for none.

        That takes half of what a cursor takes, which adapts each value and waits in an event loop of its own. An interruption (Ctrl-C) waits
        for the end of the statement, which the server bounds.

        Raises:
            psycopg.Error: As a cursor would.
        """
        statement = numbered(name, then)
        if statement.name not in self._known_here:
            self._check(self.pgconn.prepare(statement.name, statement.sql, statement.types))
            self._known_here.add(statement.name)
        told = self._check(self.pgconn.exec_prepared(statement.name, encoded(values), statement.formats))
        return tuple([told.get_value(0, column) for column in range(told.nfields)]) if told.ntuples else None

    def command(self, command: LiteralString) -> None:
        """Execute BEGIN, COMMIT, ROLLBACK and the like through libpq itself: at a ROLLBACK a cursor forgets all prepared statements.

        Raises:
            psycopg.Error: As a cursor would.
        """
        self._check(self.pgconn.exec_(command.encode()))

    @staticmethod
    def _check(result: PGresult) -> PGresult:
        if result.status not in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
            raise error_from_result(result, "utf-8")
        return result


class Block:
    """An open transaction into which one thread writes several things.

    Attributes:
        connection: The connection it is open on.
        generation: That of the pool when it was opened: another one after a fork.
    """

    __slots__ = ("connection", "generation")

    def __init__(self, connection: Connection, generation: int) -> None:
        """Keep both."""
        self.connection = connection
        self.generation = generation


class Connections:
    """A pool that grows with the number of threads that use the store at the same moment, up to `most`; the next thread waits.

    It has no thread of its own: a fork beside one may deadlock the child, and Python warns of it from 3.12 on. What such a thread would
    find out, that a connection has died in idleness, is seen when it is lent: then its socket is readable.

    A connection may not be carried through fork(): parent and child would write into the same stream. So the child gives up what it
    inherited, without a word to the server, and opens anew when it next needs one.
    """

    def __init__(
        self, place: str, wait: float, connect: Callable[[bool], Connection], *, most: int, writable: bool
    ) -> None:
        """Make an empty pool.

        Args:
            place: The store, for the words of errors.
            wait: How long to wait for a connection, in seconds.
            connect: Opens a connection that is ready for use; with True it waits for a server that is not there at the moment.
            most: The most connections at once.
            writable: False to refuse every write.
        """
        self.place = place
        self.wait = wait
        self.writable = writable
        self.generation = 0
        self.own = local()
        self._connect = connect
        self._most = most
        self._open = True
        self._known = False
        self._begin()
        _watch_forks()
        _POOLS.add(self)

    def _begin(self) -> None:
        self._state = Condition()
        self._idle: list[tuple[Connection, float]] = []
        self._all: set[Connection] = set()
        self._lent = 0

    def block(self) -> Block | None:
        """Give the block that this thread has open, if it has."""
        found: Block | None = getattr(self.own, "block", None)
        if found is not None and found.generation != self.generation:
            raise self.forked()
        return found

    def forked(self) -> StoreError:
        """Give the error for a block that was open when this process was forked: it is the parent's."""
        return StoreError(
            f"{self.place} was in the middle of a write when this process was forked.",
            hint="Open the store anew in the child.",
        )

    def borrow(self) -> Connection:
        """Lend an idle connection, or a new one; whoever borrows gives it back."""
        with self._state:
            if self._lent >= self._most:
                self._state.wait_for(lambda: self._lent < self._most or not self._open, self.wait)
            if not self._open:
                raise closed(self.place)
            if self._lent >= self._most:
                raise busy(self.place, self.wait, f"all {self._most} connections are in use")
            self._lent += 1
            idle, since = self._idle.pop() if self._idle else (None, 0.0)
        if idle is not None and (monotonic() - since < _FRESH_SECONDS or _alive(idle)):
            return idle
        try:
            if idle is not None:
                self._forget(idle)
            made = self._connect(self._known)
        except BaseException:  # an interrupt, too, gives the place in the pool back
            self._returned(None)
            raise
        self._known = True
        self._all.add(made)
        return made

    def give_back(self, connection: Connection) -> None:
        """Take a connection back; one that died, or is in the middle of something, is not lent again."""
        sound = connection.pgconn.transaction_status == TransactionStatus.IDLE
        kept = self._returned(connection if sound else None)
        if not kept:
            self._forget(connection)

    def _returned(self, connection: Connection | None) -> bool:
        with self._state:
            self._lent -= 1
            kept = connection is not None and self._open and len(self._idle) < _KEPT_IDLE
            if connection is not None and kept:
                self._idle.append((connection, monotonic()))
            self._state.notify()
        return kept

    def _forget(self, connection: Connection) -> None:
        self._all.discard(connection)
        connection.close()

    def translated(self, error: BaseException, connection: Connection) -> PalaverError | None:
        """Give an error of psycopg's in palaver's words; None for any other error."""
        if isinstance(error, psycopg.Error):
            return fault(self.place, self.wait, error, broken=connection.broken)
        if isinstance(error, UnicodeEncodeError):  # the binding of a text that no UTF-8 can hold
            return InvalidInput(f"A text holds a lone surrogate, which no UTF-8 text can: {error.object!r}.")
        return None

    def close(self) -> None:
        """Close what is idle now, and what is lent when it comes back."""
        with self._state:
            self._open = False
            idle, self._idle = self._idle, []
            self._state.notify_all()
        for connection, _since in idle:
            self._forget(connection)

    def after_fork_in_child(self) -> None:
        """Begin anew with locks that nobody holds; what was inherited belongs to the parent.

        Its sockets are replaced by nothing, so that the server notices the parent's end even while the child lives.
        """
        self.generation += 1
        nothing = os.open(os.devnull, os.O_RDWR)
        for connection in self._all:
            with suppress(psycopg.Error, OSError):  # closed already
                os.dup2(nothing, connection.fileno())
            _ABANDONED.append(connection)
        os.close(nothing)
        self._begin()


def _alive(connection: Connection) -> bool:
    """Tell whether an idle connection can be used: the server says nothing unasked, but that it ends."""
    if connection.closed:
        return False
    watched = select.poll()
    watched.register(connection.fileno(), select.POLLIN)
    if not watched.poll(0):
        return True
    try:
        connection.pgconn.consume_input()
        return not watched.poll(0) and connection.info.transaction_status is TransactionStatus.IDLE
    except psycopg.Error:
        return False


_POOLS: WeakSet[Connections] = WeakSet()
_ABANDONED: list[Connection] = []
"""Connections of the parent's that a child may neither use nor close; kept, so that nothing closes them."""


def _after_fork_in_child() -> None:
    for pool in list(_POOLS):
        pool.after_fork_in_child()


@cache
def _watch_forks() -> None:
    """Be told of forks, from the first pool on."""
    os.register_at_fork(after_in_child=_after_fork_in_child)


def ask(connection: Connection, name: str, bindings: Any = ()) -> psycopg.Cursor[Row]:  # noqa: ANN401 - each statement has its own
    """Execute a named statement; it is prepared at its first use, and its rows come in binary form."""
    return connection.execute(statements()[name], bindings, binary=True)
