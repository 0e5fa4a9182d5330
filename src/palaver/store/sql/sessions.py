"""Sessions, their sources and the tree of their dialogs, as rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from palaver.errors import Ambiguous, InvalidInput, PalaverError, StoreDamaged
from palaver.ids import BlobId, DialogId, SessionId
from palaver.log import Node, Span
from palaver.store.protocol import SessionRecord, SourceRecord
from palaver.store.records import (
    SHORT_DIGITS,
    check_changes,
    check_dialog_prefix,
    check_node,
    check_prefix,
    checked,
    listed,
    spans_in,
    unknown,
)
from palaver.store.sql import log
from palaver.store.sql import rows as records
from palaver.store.sql.database import Database, Row, Rows

_EVER = 1e300  # a time after all others
_ALL = 1 << 62
_PAGE = 200
_CANDIDATES_NAMED = 10


def unknown_session(rows: Rows, session_id: str) -> PalaverError:
    """Return the error for a session that is not there: erased, or never there."""
    found = rows.one("gone_get", thing="session", name=session_id)
    return unknown("session", session_id) if found is None else log.erased("session", session_id, found)


def session_no(rows: Rows, session_id: SessionId, *, lock: bool = False) -> int:
    """Return the number of a session; with `lock`, nobody else changes it or its tree until the end of the transaction."""
    row = rows.one("session_lock" if lock else "session_no", session_id=session_id)
    if row is None:
        raise unknown_session(rows, session_id)
    return int(row[0])


# --- sessions -----------------------------------------------------------------------------------------------------------------------


def add(rows: Rows, record: SessionRecord) -> None:
    """Write a new session."""
    gone = rows.one("gone_get", thing="session", name=record.session_id)
    if gone is not None:
        raise log.erased("session", record.session_id, gone)
    row = rows.one("session_add", **records.session_values(record))
    if row is None:
        raise InvalidInput(f"A session with the id {record.session_id} exists.")
    rows.run("activity_add", session_no=row[0], at=max(record.created_at, record.updated_at))


def get(rows: Rows, session_id: SessionId) -> SessionRecord:
    """Read one session."""
    row = rows.one("session_get", session_id=session_id)
    if row is None:
        raise unknown_session(rows, session_id)
    return records.session(row)


def change(rows: Rows, session_id: SessionId, changes: dict[str, Any]) -> SessionRecord:
    """Change what may change of a session."""
    check_changes(changes)
    session_no(rows, session_id, lock=True)
    record = checked(replace(get(rows, session_id), **changes))
    values = records.session_values(record)
    rows.run("session_set", **{name: values[name] for name in values.keys() - {"tenant", "created_at"}})
    return record


def newest_first(
    db: Database, filters: dict[str, str | None], after: SessionRecord | None, limit: int | None, *, trashed: bool
) -> Iterator[SessionRecord]:
    """Return sessions, newest activity first."""
    wanted = {name: value for name, value in filters.items() if value is not None}
    where = "".join(f" AND s.{name} = :{name}" for name in wanted)
    where += f" AND s.trashed_at IS {'NOT ' if trashed else ''}NULL"
    at, session_id = (_EVER, "") if after is None else (after.updated_at, after.session_id)
    most = _ALL if limit is None else min(max(0, limit), _ALL)
    with db.reading() as rows:
        found = rows.where("sessions_listed", where, **wanted, at=at, session_id=session_id, limit=most)
    return _read(db, [row[0] for row in found])


def _read(db: Database, numbers: list[int]) -> Iterator[SessionRecord]:
    """Read sessions by their numbers, a page at a time; one that was erased meanwhile is left out."""
    for start in range(0, len(numbers), _PAGE):
        page = numbers[start : start + _PAGE]
        with db.reading() as rows:
            found = {row[0]: row[1:] for row in rows.all("sessions_get", numbers=page)}
        yield from (records.session(found[number]) for number in page if number in found)


def beginning(rows: Rows, prefix: str, limit: int) -> tuple[SessionId, ...]:
    """Return ids of sessions that begin with a prefix."""
    found = rows.all("sessions_beginning", prefix=check_prefix(prefix), beyond=f"{prefix}g", limit=max(0, limit))
    return tuple(SessionId(row[0]) for row in found)


# --- sources ------------------------------------------------------------------------------------------------------------------------


def put_source(rows: Rows, record: SourceRecord) -> None:
    """Write, or replace, a source, and what it names: its payloads, and those in the list of its pieces."""
    number = session_no(rows, record.session_id)
    row = rows.one("source_put", **records.source_values(record), session_no=number)
    place = {"session_no": number, "dialog_no": 0, "seq": row[0] if row else 0}
    rows.run("references_remove", **place)
    named = source_names(rows, record.raw, record.index)
    rows.many("reference_add", [{**place, "digest": bytes.fromhex(one)} for one in sorted(named)])


def source_names(rows: Rows, raw: str | None, index: str | None) -> set[BlobId]:
    """Return the payloads that a source names: its own, and those in the list of its pieces."""
    found = None if raw is None else rows.one("blob_get", digest=bytes.fromhex(raw))
    pieces = set[BlobId]() if found is None else listed(found[0])
    return {BlobId(one) for one in (raw, index) if one is not None} | pieces


# --- the tree -----------------------------------------------------------------------------------------------------------------------


class Tree:
    """The dialogs of a store.

    A dialog's ranges are stored as what it has beyond those of its parent. The ranges of dialogs that were read stay in memory, for they never
    change unless the transaction that made them is undone: else a chain of forks would be read from its beginning for each of its dialogs.
    """

    def __init__(self, db: Database) -> None:
        self._db = db
        self._ranges: dict[str, tuple[Span, ...]] = {}
        self._undone = 0

    def get(self, dialog_id: DialogId) -> Node:
        """Read one node."""
        with self._db.reading() as rows:
            return self._get(rows, dialog_id)

    def _get(self, rows: Rows, dialog_id: DialogId) -> Node:
        row = rows.one("node_get", dialog_id=dialog_id)
        if row is None:
            raise log.unknown_dialog(rows, dialog_id)
        return records.node(row, self._ranges_of(rows, row))

    def of_session(self, session_id: SessionId, after: int) -> tuple[Node, ...]:
        """Read the nodes of a session whose number is larger than `after`, in order."""
        with self._db.reading() as rows:
            found = rows.all("nodes_of", session_no=session_no(rows, session_id), after=after)
            return tuple(records.node(row, self._ranges_of(rows, row)) for row in found)

    def add(self, rows: Rows, node: Node) -> Node:
        """Write a node. It costs what is new in it: its parent's ranges are neither checked nor written again."""
        number = session_no(rows, node.session_id, lock=True)
        ids = {"dialog_id": node.dialog_id, "session_no": number}
        short = node.dialog_id[:SHORT_DIGITS]
        taken = rows.one("dialog_taken", **ids, short=short, beyond=f"{short}g") is not None
        gone = rows.one("gone_get", thing="dialog", name=node.dialog_id)
        parent = None if node.parent_id is None else self._parent(rows, node)

        def length(dialog_id: DialogId) -> int | None:
            found = rows.one("dialog_end", dialog_id=dialog_id)
            return None if found is None or found[0] != number else int(found[2])

        shared = check_node(node, parent, length, taken=taken)
        if gone is not None:
            raise log.erased("dialog", node.dialog_id, gone)
        (place,) = rows.one("dialog_next_place", session_no=number) or (0,)
        placed = replace(node, order=int(place))
        rows.run("dialog_add", **records.node_values(placed, shared), session_no=number)
        rows.run("touch", session_no=number, at=placed.created_at)
        return placed

    def _parent(self, rows: Rows, node: Node) -> tuple[Span, ...]:
        row = rows.one("node_get", dialog_id=node.parent_id)
        if row is None or row[1] != node.session_id:
            raise unknown("dialog", str(node.parent_id))
        return self._ranges_of(rows, row)

    def resolve(self, prefix: str, session_id: SessionId | None) -> DialogId:
        """Return the one dialog whose id begins with the prefix."""
        bounds = {"prefix": check_dialog_prefix(prefix), "beyond": f"{prefix}g"}
        with self._db.reading() as rows:
            found = rows.all("dialogs_beginning", **bounds, session_id=session_id, limit=_CANDIDATES_NAMED)
            if not found:
                gone = rows.one("gone_beginning", thing="dialog", name=prefix, beyond=f"{prefix}g")
                raise unknown("dialog", prefix) if gone is None else log.erased("dialog", prefix, gone)
        if len(found) > 1:
            raise Ambiguous(prefix, [row[0] for row in found])
        return DialogId(found[0][0])

    def _ranges_of(self, rows: Rows, row: Row) -> tuple[Span, ...]:
        """Return all ranges of a dialog: of its parent as many as it shares, then its own."""
        if self._undone != self._db.undone:
            self._undone = self._db.undone
            self._ranges.clear()
        waiting: list[Row] = []
        known: tuple[Span, ...] | None = None
        while known is None:
            dialog_id, parent_id, shared, own, place = row[0], row[3], row[4], row[5], row[6]
            known = self._ranges.get(dialog_id)
            if known is None and not shared:
                known = spans_in(own)
            elif known is None:
                waiting.append(row)
                above = rows.one("node_get", dialog_id=parent_id)
                if above is None or above[6] >= place:  # a parent is older, so there is no circle
                    raise StoreDamaged(dialog_id[:SHORT_DIGITS], "it shares ranges of a parent that is not there")
                row = above
        for one in reversed(waiting):
            known = (*known[: one[4]], *spans_in(one[5]))
            if len(self._ranges) >= _KNOWN_RANGES:
                self._ranges.clear()
            self._ranges[one[0]] = known
        return known


_KNOWN_RANGES = 4096  # a chain of 1,000 forks, each made, written and read, takes 24 seconds without and 1 with them
