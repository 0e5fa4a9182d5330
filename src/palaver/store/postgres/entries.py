"""Headers and bodies, as rows, and the one statement that appends: an entry is its dialog's number and its own.

An append is one statement and one journey to the server. The writer makes the headers after the newest one it knows of, and the statement
writes them only if the dialog still ends there. The primary key is what decides between two writers: whoever comes second waits for the
first, and then finds its place taken. So nothing is locked, and what the writer knew may be old: then it looks, judges anew, and tries again.

For the same reason an append may be repeated when the connection died under it: at the second attempt it is written, or found written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from enum import Enum, auto
from time import monotonic
from typing import NamedTuple

from psycopg.errors import UniqueViolation

from palaver.errors import (
    Conflict,
    InvalidInput,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreUnavailable,
    UnknownHandle,
)
from palaver.ids import DialogId
from palaver.log import NOTHING, Draft, Handle, Header, body_digest, next_header
from palaver.store.erasing_rows import unknown_dialog
from palaver.store.postgres.activity import Rough, raised, spoken_in
from palaver.store.postgres.connections import Connection, Connections, ask
from palaver.store.postgres.faults import NeverReached, busy, unknown_outcome
from palaver.store.postgres.rows import PostgresRows
from palaver.store.postgres.statements import ENTRY, Row, statements
from palaver.store.postgres.texts import given, held
from palaver.store.postgres.transactions import one_statement, reading, writing
from palaver.store.records import appended, check_taken, ids_in

_PAGE_ROWS = 512
_PAGE_BYTES = 1 << 20
_MOST = (1 << 31) - 1
_ENDS_KNOWN = 4096

Follow = Callable[[Header], tuple[Header, ...]]
"""From the newest header to those that are to follow it; it raises what may not follow."""


class End(NamedTuple):
    """Where a dialog ends.

    Attributes:
        dialog_no: Its number.
        last: Its newest header.
        rough: What is known of when its session was last active, while the newest entry is one of ours.
    """

    dialog_no: int
    last: Header
    rough: Rough | None = None


class _Plan(NamedTuple):
    """What is to be written, and after what."""

    end: End
    made: tuple[Header, ...]

    def ended(self, rough: Rough | None) -> End:
        """Give where the dialog ends when it was written."""
        return End(self.end.dialog_no, self.made[-1] if self.made else self.end.last, rough)


class _Failed(Enum):
    """How an attempt to write ended that was not seen to be done."""

    TAKEN = auto()
    UNKNOWN = auto()


class _TakenError(Exception):
    """The dialog does not end as the writer knew; it undoes what was written of a transaction."""


class Log:
    """The entries of a store, with what is known of where dialogs end: never trusted, only tried."""

    def __init__(self, pool: Connections) -> None:
        """Know nothing yet."""
        self._pool = pool
        self._ends: dict[DialogId, End] = {}

    def append(self, dialog_id: DialogId, drafts: Sequence[Draft], turn_head: int) -> tuple[Header, ...]:
        """Append entries of a turn."""
        bodies = [bytes(draft.body) for draft in drafts]
        return self._place(dialog_id, bodies, lambda last: appended(dialog_id, last, drafts, turn_head))

    def annotate(self, dialog_id: DialogId, draft: Draft) -> Header:
        """Add an entry beside a turn."""
        return self._place(dialog_id, [bytes(draft.body)], lambda last: (next_header(draft, last, turn=False),))[0]

    def take(self, dialog_id: DialogId, taken: Sequence[tuple[Header, bytes]]) -> None:
        """Write entries of another store as they are."""
        made, bodies = tuple(header for header, _body in taken), [bytes(body) for _header, body in taken]

        def follow(last: Header) -> tuple[Header, ...]:
            check_taken(last, taken)
            return made

        if taken:
            self._place(dialog_id, bodies, follow)

    def _place(self, dialog_id: DialogId, bodies: Sequence[bytes], follow: Follow) -> tuple[Header, ...]:
        """Write what follows: first after the newest header we know of, then after the newest there is, until it is written."""
        deadline = monotonic() + self._pool.wait
        plan = self._guess(dialog_id, follow) if bodies else None
        outcome = None if plan is None else self._attempt(plan, bodies)
        while plan is None or not isinstance(outcome, End):
            doubtful = plan.made if plan is not None and outcome is _Failed.UNKNOWN else ()
            plan, done = self._look(dialog_id, follow, doubtful)
            if not done and outcome is not None and monotonic() > deadline:
                raise unknown_outcome(self._pool.place) if doubtful else self._slow()
            outcome = plan.ended(None) if done else self._attempt(plan, bodies)
        self._know(dialog_id, outcome)
        return plan.made

    def _slow(self) -> StoreBusy:
        return busy(self._pool.place, self._pool.wait, "other writers of the same dialog were always faster")

    def _guess(self, dialog_id: DialogId, follow: Follow) -> _Plan | None:
        """Give what would follow the newest header we know of; nothing when that may not be, for it may be old."""
        end = self._ends.get(dialog_id)
        if end is None:
            return None
        try:
            return _Plan(end, follow(end.last))
        except (Conflict, InvalidInput):
            return None

    def _look(self, dialog_id: DialogId, follow: Follow, doubtful: tuple[Header, ...]) -> tuple[_Plan, bool]:
        """Give what follows the newest header there is, and whether it is there already: nothing, or what we doubted to have written."""
        try:
            with reading(self._pool) as connection:
                end = newest(connection, dialog_id)
                if doubtful and _written(connection, end.dialog_no, doubtful):
                    return _Plan(end, doubtful), True
        except StoreUnavailable as error:
            raise (unknown_outcome(self._pool.place) if doubtful else error) from error
        made = follow(end.last)
        return _Plan(end, made), not made

    def _know(self, dialog_id: DialogId, end: End) -> None:
        """Remember where a dialog ends now."""
        if len(self._ends) >= _ENDS_KNOWN:
            self._ends = {}
        self._ends[dialog_id] = end

    def _attempt(self, plan: _Plan, bodies: Sequence[bytes]) -> End | _Failed:
        """Write, if the dialog ends as the plan says; outside of a block, a lost connection leaves open whether it was written."""
        try:
            return plan.ended(self._write(plan, bodies))
        except _TakenError:
            return _Failed.TAKEN
        except NeverReached:
            raise
        except StoreUnavailable:
            if self._pool.block() is not None:
                raise
            return _Failed.UNKNOWN
        except StoreError as error:
            if isinstance(error.__cause__, UniqueViolation):  # another writer was at it, and has committed
                return _Failed.TAKEN
            raise

    def _write(self, plan: _Plan, bodies: Sequence[bytes]) -> Rough | None:
        """Write, and take note of it where the rough time of the session is not known to do; give what is known of that now.

        One entry that is no older than the one before is one statement. An older one, as an import has them, may move its session back.
        """
        end, at = plan.end, plan.made[-1].at
        near = end.rough is not None and end.rough.near(end.last.at, at)
        newer = at >= end.last.at and (end.rough is None or at >= end.rough.at)
        if len(bodies) == 1 and (near or newer):
            with one_statement(self._pool) as connection:
                told = _place(connection, end, plan.made[0], bodies[0], "" if near else "activity_raised")
            return end.rough if near else raised(told)
        with writing(self._pool) as connection:
            _place(connection, end, plan.made[0], bodies[0])
            if len(bodies) > 1:
                _place_rest(connection, plan, bodies)
            return end.rough if near else spoken_in(connection, end.dialog_no, at)


def _place(connection: Connection, end: End, made: Header, body: bytes, then: str = "") -> tuple[bytes | None, ...]:
    """Write an entry if the dialog ends where we think, and give what the statement told."""
    name = "place_after" if end.last.seq >= 0 else "place_first"
    told = connection.insert(name, _values(end.dialog_no, end.last, made, body), then)
    if told is None:
        raise _TakenError
    return told


def _place_rest(connection: Connection, plan: _Plan, bodies: Sequence[bytes]) -> None:
    """Send all entries but the first at once, without waiting for the answer to one before sending the next."""
    pairs = zip(plan.made[:-1], plan.made[1:], bodies[1:], strict=True)
    rows = [dict(zip(ENTRY, _values(plan.end.dialog_no, *of_one), strict=True)) for of_one in pairs]
    with connection.cursor() as cursor:
        cursor.executemany(statements()["place_after"], rows)
        if cursor.rowcount != len(rows):
            raise _TakenError


def _values(dialog_no: int, last: Header, made: Header, body: bytes) -> Row:
    """Give the values of an entry, in the order of `ENTRY`."""
    return (
        dialog_no,
        last.seq,
        last.digest,
        made.turn_head,
        made.view_base,
        made.open_turn,
        held(made.kind),
        held(made.role),
        made.number,
        json.dumps(made.calls) if made.calls else None,
        json.dumps(made.open_calls) if made.open_calls else None,
        held(made.response),
        made.at,
        made.size,
        made.total,
        made.digest,
        body,
    )


def header(row: Row) -> Header:
    """Make a header of its row."""
    seq, turn_head, view_base, open_turn, kind, role, number, calls, open_calls, response, *rest = row
    texts = given(kind), given(role)
    return Header(
        seq, turn_head, view_base, open_turn, *texts, number, ids_in(calls), ids_in(open_calls), given(response), *rest
    )


def newest(connection: Connection, dialog_id: DialogId) -> End:
    """Give a dialog's number and its newest header, `NOTHING` when it has none."""
    row = ask(connection, "newest_header", (held(dialog_id),)).fetchone()
    if row is None:
        raise unknown_dialog(PostgresRows(connection), dialog_id)
    return End(row[0], NOTHING if row[1] is None else header(row[1:]))


def end(connection: Connection, dialog_id: DialogId) -> tuple[int, int]:
    """Give a dialog's number and how many own entries it holds."""
    row = ask(connection, "dialog_end", (held(dialog_id),)).fetchone()
    if row is None:
        raise unknown_dialog(PostgresRows(connection), dialog_id)
    return row[0], row[1]


def _written(connection: Connection, dialog_no: int, made: Sequence[Header]) -> bool:
    """Tell whether entries of which we do not know that they were written are there, as we made them."""
    bounds = {"dialog_no": dialog_no, "start": made[0].seq, "stop": made[-1].seq + 1, "rows": len(made)}
    return [header(row) for row in ask(connection, "headers_up", bounds)] == list(made)


def one_header(connection: Connection, dialog_id: DialogId, seq: int) -> Header:
    """Read one header."""
    dialog_no, length = end(connection, dialog_id)
    row = ask(connection, "header_get", (dialog_no, seq)).fetchone() if 0 <= seq < length else None
    if row is None:
        raise UnknownHandle(str(Handle(dialog_id, seq)))
    return header(row)


def one_body(connection: Connection, dialog_id: DialogId, seq: int) -> bytes:
    """Read one body."""
    dialog_no, length = end(connection, dialog_id)
    if not 0 <= seq < length:
        raise UnknownHandle(str(Handle(dialog_id, seq)))
    row = ask(connection, "body_get", (dialog_no, seq)).fetchone()
    if row is None or row[0] is None:
        raise StoreDamaged(str(Handle(dialog_id, seq)), "its header is there, its body is not")
    return bytes(row[0])


def scan(
    pool: Connections, name: str, dialog_no: int, bounds: range, *, kind: str = "", reverse: bool = False
) -> Iterator[Row]:
    """Give rows of a dialog's entries whose numbers, their first column, lie in `bounds`, a page at a time.

    No statement and no transaction stays open between two pages: a reader that takes its time hinders neither a writer nor vacuum.
    """
    start, stop = bounds.start, min(bounds.stop, _MOST)
    while start < stop:
        asked: dict[str, int | str] = {"dialog_no": dialog_no, "start": start, "stop": stop}
        asked |= {"rows": _PAGE_ROWS, "bytes": _PAGE_BYTES, "kind": kind}
        with reading(pool) as connection:
            page = ask(connection, name, asked).fetchall()
        yield from page
        if not page:
            return
        if reverse:
            stop = page[-1][0]
        else:
            start = page[-1][0] + 1


def blob_ids(pool: Connections) -> Iterator[str]:
    """Give the ids of all payloads, in order, a page at a time."""
    after: bytes = b""
    while True:
        with reading(pool) as connection:
            page = ask(connection, "blob_ids", (after, _PAGE_ROWS)).fetchall()
        if not page:
            return
        yield from (bytes(digest).hex() for (digest,) in page)
        after = page[-1][0]


def damaged(pool: Connections, dialog_no: int) -> Iterator[int]:
    """Give the numbers of entries whose body does not give the digest in its header, or that are missing."""
    expected = 0
    for seq, body, _kind, digest in scan(pool, "judged_up", dialog_no, range(_MOST)):
        yield from range(expected, seq)
        if body is None or body_digest(body) != digest:
            yield seq
        expected = seq + 1
