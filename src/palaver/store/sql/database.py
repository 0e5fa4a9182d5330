"""The database of a store: its connections, lent to one thread at a time, and the transactions on them."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from threading import Condition, local
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from palaver.errors import InvalidInput, PalaverError, StoreBusy, StoreDamaged, StoreError
from palaver.store.records import closed

Row: TypeAlias = tuple[Any, ...]
"""A row; the user of its statement knows the columns."""

Connection = TypeVar("Connection")

_KEPT_IDLE = 8  # more threads at once are served too; their connections are closed afterwards


class NotAsRequired(Exception):
    """What a transaction required is not so; nothing of it was written."""


class Rows(ABC):
    """A connection that is lent, for statements by their names.

    Attributes:
        connection: The connection.
        sql: The statements, by name.
    """

    connection: Any
    sql: Mapping[str, str]

    @abstractmethod
    def ask(self, sql: str, values: Mapping[str, object]) -> Iterator[Row]:
        """Execute SQL and return what reads its rows, if somebody does."""

    def all(self, statement: str, /, **values: object) -> list[Row]:
        """Execute a statement and return all its rows."""
        return list(self.ask(self.sql[statement], values))

    def one(self, statement: str, /, **values: object) -> Row | None:
        """Execute a statement and return its first row."""
        return next(self.ask(self.sql[statement], values), None)

    def asked(self, statement: str, /, **values: object) -> Callable[[], Row | None]:
        """Execute a statement, and return what returns its first row: to a server, what is asked together travels together."""
        row = self.one(statement, **values)
        return lambda: row

    def run(self, statement: str, /, **values: object) -> None:
        """Execute a statement that returns no rows; its error may come with the next one that does, or with the end of the transaction."""
        self.ask(self.sql[statement], values)

    def many(self, statement: str, values: Iterable[Mapping[str, object]]) -> None:
        """Execute a statement that returns no rows, once for each of the values."""
        for one in values:
            self.ask(self.sql[statement], one)

    def require(self, statement: str, /, **values: object) -> None:
        """Let the transaction fail unless a statement returns a row; as for `run`, the error may come later.

        Raises:
            NotAsRequired: It returns none.
        """
        if self.one(statement, **values) is None:
            raise NotAsRequired

    def where(self, statement: str, conditions: str, /, **values: object) -> list[Row]:
        """Execute a statement with conditions in place of its mark, and return all its rows."""
        return list(self.ask(self.sql[statement].replace("/*where*/", conditions), values))


class _Current(NamedTuple):
    """The transaction that a thread has open."""

    rows: Rows
    process: int


class DatabaseOf(ABC, Generic[Connection]):
    """The connections of one store, and its transactions.

    A thread that needs a connection gets an idle one or a new one; at most `most` are open at once. A process that was forked notices by its
    number, leaves the connections of its parent alone, and opens its own.

    Attributes:
        place: The store, for the words of errors.
        wait: How long a call waits for other writers or for a connection, in seconds.
        writable: False to refuse every write.
        undone: How many transactions and steps of them were undone: what was read inside may never have been there.
        sealing: What seals and opens the rows of an encrypted store (`palaver.store.sql.sealing`), or None.
        one_writer: Whether a transaction that writes waits for every other one: then nothing more need be locked.
    """

    one_writer: bool = False
    sealing: Callable[[Rows], Rows] | None = None

    def __init__(self, place: str, wait: float, *, most: int, writable: bool) -> None:
        self.place = place
        self.wait = wait
        self.writable = writable
        self.undone = 0
        self._most = most
        self._open = True
        self._own = local()
        self._renew()

    def _renew(self) -> None:
        self._process = os.getpid()
        self._state = Condition()
        self._idle: list[Connection] = []
        self._all: list[Connection] = []
        self._lent = 0

    # --- what each database does in its own way ---------------------------------------------------------------------------------

    @abstractmethod
    def connect(self) -> Connection:
        """Open a connection that is ready for use."""

    @abstractmethod
    def disconnect(self, connection: Connection) -> None:
        """Close a connection."""

    @abstractmethod
    def disown(self, connections: list[Connection]) -> None:
        """Let go of connections that were inherited by fork, without a word to the database."""

    @abstractmethod
    def reusable(self, connection: Connection) -> bool:
        """Return whether a connection that comes back can be lent again."""

    @abstractmethod
    def usable(self, connection: Connection) -> bool:
        """Return whether an idle connection can be lent."""

    @abstractmethod
    def rows(self, connection: Connection) -> Rows:
        """Return a connection for statements by their names."""

    @abstractmethod
    def translated(self, error: BaseException, connection: Connection) -> PalaverError | NotAsRequired | None:
        """Return the database's error in palaver's words; None for any other error."""

    @abstractmethod
    def begin(self, connection: Connection) -> None:
        """Begin a transaction that writes."""

    @abstractmethod
    def commit(self, connection: Connection) -> None:
        """Commit it."""

    @abstractmethod
    def rollback(self, connection: Connection) -> None:
        """Undo it, if it is still there."""

    @abstractmethod
    def in_progress(self, connection: Connection) -> bool:
        """Return whether its transaction is still there: an error may have undone it as a whole."""

    @abstractmethod
    def command(self, connection: Connection, command: str) -> None:
        """Execute SAVEPOINT, RELEASE or ROLLBACK TO."""

    def lock(self, connection: Connection, name: str) -> None:
        """Keep others out of transactions with this name until the end of this one; nothing to do where there is `one_writer`."""

    @abstractmethod
    def scrub(self, *, thorough: bool) -> tuple[str, ...]:
        """Remove what was deleted from the storage, and return what is pending."""

    def faults(self) -> Iterator[tuple[str, str, str]]:
        """Return what is wrong with the storage itself, (place, code, what), where this is not the business of a server."""
        return iter(())

    def tokens(self, said: str, rest: str) -> Mapping[str, object]:
        """Return the tokens of a text (`palaver.store.text.columns`) as the index keeps them: values of the statement that adds it."""
        return {"said": said, "rest": rest}

    @abstractmethod
    def matching(
        self, rows: Rows, query: str, session_no: int | None, before: int, most: int, *, begun: bool
    ) -> list[tuple[int, bool]]:
        """Return the newest texts before a number that have all tokens of a query: their numbers, and whether it was said.

        Args:
            rows: Where to read.
            query: The query; it has words.
            session_no: The session; None for all.
            before: The numbers are smaller.
            most: How many at most.
            begun: Whether tokens count that begin with one of the query.
        """

    # --- connections ------------------------------------------------------------------------------------------------------------

    def lent_rows(self, connection: Connection) -> Rows:
        """Return a connection for statements by their names; of an encrypted store, one that seals and opens."""
        rows = self.rows(connection)
        return rows if self.sealing is None else self.sealing(rows)

    @contextmanager
    def lent(self) -> Iterator[Connection]:
        """Lend a connection; the database's errors leave the block in palaver's words."""
        connection, process = self._borrow(), self._process
        try:
            yield connection
        except BaseException as error:
            if (told := self._told(error, connection)) is not None:
                raise told from error
            raise
        finally:
            self._give_back(connection, process)

    def _told(self, error: BaseException, connection: Connection) -> PalaverError | NotAsRequired | None:
        """Return the database's error in palaver's words; None for any other error."""
        if isinstance(error, UnicodeEncodeError):
            return InvalidInput(f"A text holds a lone surrogate, which UTF-8 cannot encode: {error.object!r}.")
        if isinstance(error, UnicodeDecodeError):
            return StoreDamaged(self.place, f"a text is not UTF-8 ({error})")
        return self.translated(error, connection)

    def _borrow(self) -> Connection:
        if self._process != os.getpid():
            inherited = self._all
            self._renew()
            self.disown(inherited)
        with self._state:
            if self._lent >= self._most and not self._state.wait_for(self._ready, self.wait):
                raise StoreBusy(
                    f"{self.place} was busy for more than {self.wait:g} seconds: all {self._most} connections are in use.",
                    hint="Nothing was written. Try again.",
                )
            if not self._open:
                raise closed(self.place)
            self._lent += 1
            idle = self._idle.pop() if self._idle else None
        try:
            if idle is not None and self.usable(idle):
                return idle
            if idle is not None:
                self._forget(idle)
            made = self.connect()
        except BaseException:  # an interrupt, too, frees the place
            with self._state:
                self._lent -= 1
                self._state.notify()
            raise
        self._all.append(made)
        return made

    def _ready(self) -> bool:
        return self._lent < self._most or not self._open

    def _give_back(self, connection: Connection, process: int) -> None:
        if process != os.getpid():  # it belongs to the parent
            return
        reusable = self.reusable(connection)
        with self._state:
            self._lent -= 1
            kept = reusable and self._open and len(self._idle) < _KEPT_IDLE
            if kept:
                self._idle.append(connection)
            self._state.notify()
        if not kept:
            self._forget(connection)

    def _forget(self, connection: Connection) -> None:
        self._all = [one for one in self._all if one is not connection]
        self.disconnect(connection)

    def close(self) -> None:
        """Close what is idle now, and what is lent when it comes back."""
        if self._process != os.getpid():
            self._renew()
        with self._state:
            self._open = False
            idle, self._idle = self._idle, []
            self._state.notify_all()
        for connection in idle:
            self._forget(connection)

    # --- transactions -----------------------------------------------------------------------------------------------------------

    @property
    def in_transaction(self) -> bool:
        """Whether this thread has a transaction open."""
        return getattr(self._own, "current", None) is not None

    def _current(self) -> _Current | None:
        current: _Current | None = getattr(self._own, "current", None)
        if current is not None and current.process != os.getpid():
            raise self._forked()
        return current

    def _forked(self) -> StoreError:
        return StoreError(
            f"{self.place} was in the middle of a transaction when this process was forked.",
            hint="End the transaction before you fork.",
        )

    def reading(self) -> AbstractContextManager[Rows]:
        """Lend a connection for reading; inside a transaction of this thread, the one that sees its writes."""
        current = self._current()
        return self._alone() if current is None else self._inside(current)

    def together(self) -> AbstractContextManager[Rows]:
        """Lend a connection for reading; what is asked there together (`Rows.asked`) travels together where there is a server."""
        return self.reading()

    @contextmanager
    def _alone(self) -> Iterator[Rows]:
        with self.lent() as connection:
            yield self.lent_rows(connection)

    @contextmanager
    def _inside(self, current: _Current) -> Iterator[Rows]:
        try:
            yield current.rows
        except BaseException as error:
            if (told := self._told(error, current.rows.connection)) is not None:
                raise told from error
            raise

    def all(self, statement: str, /, **values: object) -> list[Row]:
        """Execute one statement that only reads, and return all its rows."""
        with self.reading() as rows:
            return rows.all(statement, **values)

    def one(self, statement: str, /, **values: object) -> Row | None:
        """Execute one statement that only reads, and return its first row."""
        with self.reading() as rows:
            return rows.one(statement, **values)

    def pages(self, statement: str, after: object, /, key: int = 0, size: int = 512) -> Iterator[Row]:
        """Return the rows after some key, a page at a time: nothing stays open between two pages, so a slow reader hinders nobody."""
        while page := self.all(statement, after=after, rows=size):
            yield from page
            after = page[-1][key]

    def writing(self) -> AbstractContextManager[Rows]:
        """Lend a connection for one transaction that writes; inside a transaction of this thread, for one step of it."""
        self.require_writable()
        current = self._current()
        return self._whole() if current is None else self._step(current)

    @contextmanager
    def transaction(self, lock: str = "") -> Iterator[None]:
        """Make one transaction of the writes of this thread inside the block."""
        with self.writing() as rows:
            nested = self._current()
            if nested is None:
                self._own.current = _Current(rows, self._process)
            try:
                if lock:
                    self.lock(rows.connection, lock)
                yield
            finally:
                self._own.current = nested

    def require_writable(self) -> None:
        """Refuse to write into a store that was opened read-only."""
        if not self.writable:
            raise StoreError(
                f"{self.place} was opened read-only.",
                reason="read_only",
                hint="Open it for writing, or as another user.",
            )

    @contextmanager
    def _whole(self) -> Iterator[Rows]:
        """Begin a transaction; commit it at the end, undo it on any error."""
        with self.lent() as connection:
            process = self._process
            self.begin(connection)
            try:
                yield self.lent_rows(connection)
                self._require_progress(connection, process)
                self.commit(connection)
            except BaseException as error:  # an interrupt, too, is undone
                told = self._told(error, connection)  # before the rollback, which the connection remembers instead
                self.undone += 1
                if process == os.getpid():
                    self.rollback(connection)
                if told is not None:
                    raise told from error
                raise

    @contextmanager
    def _step(self, current: _Current) -> Iterator[Rows]:
        """Make one step of an open transaction, which is undone alone when it fails."""
        connection = current.rows.connection
        self._require_progress(connection, current.process)
        self.command(connection, "SAVEPOINT step")
        try:
            yield current.rows
            self._current()
            self.command(connection, "RELEASE step")
        except BaseException as error:  # as above
            told = self._told(error, connection)
            self.undone += 1
            if current.process == os.getpid() and self.in_progress(connection):
                self.command(connection, "ROLLBACK TO step")
                self.command(connection, "RELEASE step")
            if told is not None:
                raise told from error
            raise

    def _require_progress(self, connection: Connection, process: int) -> None:
        if process != os.getpid():
            raise self._forked()
        if not self.in_progress(connection):
            raise StoreError(
                f"A failed write undid the whole transaction in {self.place}.", hint="Try the writes one by one."
            )


Database: TypeAlias = DatabaseOf[Any]
"""A database, whatever its connections are."""
