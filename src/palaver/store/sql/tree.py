"""The tree of dialogs, as rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from palaver.errors import Ambiguous, StoreDamaged
from palaver.ids import DialogId, SessionId
from palaver.log import Node, Span
from palaver.store.erasing import Gone
from palaver.store.records import SHORT_DIGITS, check_dialog_prefix, check_node, stored_json, unknown
from palaver.store.sql.database import Database, Row, Rows
from palaver.store.sql.rows import missing, node, node_sum, refuse_gone, session_no, values_of

_CANDIDATES_NAMED = 10
_KNOWN_RANGES = 4096  # a chain of 1,000 forks, each made, written and read, takes 24 seconds without and 1 with them
_ID, _SESSION, _PARENT, _RANGES, _PLACE, _SHARED = 0, 1, 3, 4, 5, 13


class Tree:
    """The dialogs of a store.

    A dialog's ranges are stored as what it has beyond those of its parent. The ranges of dialogs that were read stay in memory, for they never
    change unless the transaction that made them is undone: else a chain of forks would be read from its beginning for each of its dialogs.
    """

    def __init__(self, db: Database) -> None:
        self._db = db
        self._known: dict[str, tuple[Span, ...]] = {}
        self._undone = 0

    def get(self, dialog_id: DialogId) -> Node:
        """Read one node."""
        with self._db.reading() as rows:
            row = rows.one("node_get", dialog_id=dialog_id)
            if row is None:
                raise missing(rows, "dialog", dialog_id)
            return node(row, self._ranges(rows, row))

    def root(self, rows: Rows, session_id: SessionId) -> Node | None:
        """Read the node of a session's root, if it has one."""
        row = rows.one("root_get", session_id=session_id)
        if row is None:
            session_no(rows, session_id)  # raises if there is no such session
            return None
        return node(row, self._ranges(rows, row))

    def of_session(self, session_id: SessionId, after: int) -> tuple[Node, ...]:
        """Read the nodes of a session whose number is larger than `after`, in order."""
        with self._db.reading() as rows:
            found = rows.all("nodes_of", session_id=session_id, after=after)
            if not found:
                session_no(rows, session_id)  # raises if there is no such session
            return tuple(node(row, self._ranges(rows, row)) for row in found)

    def add(self, rows: Rows, new: Node) -> Node:
        """Write a node. It costs what is new in it: its parent's ranges are neither checked nor written again."""
        number = session_no(rows, new.session_id, lock=True)
        short = new.dialog_id[:SHORT_DIGITS]
        taken = rows.asked("dialog_taken", dialog_id=new.dialog_id, session_no=number, short=short, beyond=f"{short}g")
        gone = rows.asked("gone_get", thing="dialog", name=new.dialog_id)
        next_place = rows.asked("dialog_next_place", session_no=number)
        parent = None if new.parent_id is None else rows.one("node_get", dialog_id=new.parent_id)
        if new.parent_id is not None and (parent is None or parent[_SESSION] != new.session_id):
            raise unknown("dialog", new.parent_id)

        def length(dialog_id: DialogId) -> int | None:
            found = rows.one("dialog_end", dialog_id=dialog_id)
            return None if found is None or found[0] != number else int(found[2])

        above = None if parent is None else self._ranges(rows, parent)
        shared = check_node(new, above, length, taken=taken() is not None)
        refuse_gone(gone(), "dialog", new.dialog_id)
        (place,) = next_place() or (0,)
        own = _spans_text(new.ranges[shared:])
        written = {"session_no": number, "place": place, "shared": shared, "ranges": own}
        check_sum = node_sum(new.dialog_id, new.parent_id, shared, own, new.inherited)
        rows.run("dialog_add", **values_of(new) | written, check_sum=check_sum)
        rows.run("touch", session_no=number, at=new.created_at)
        return replace(new, order=int(place))

    def resolve(self, prefix: str, session_id: SessionId | None) -> DialogId:
        """Return the one dialog whose id begins with the prefix."""
        bounds = {"prefix": check_dialog_prefix(prefix), "beyond": f"{prefix}g"}
        with self._db.reading() as rows:
            named = rows.all("dialogs_beginning", **bounds, session_id=session_id, limit=_CANDIDATES_NAMED)
            if not named:
                gone = rows.one("gone_beginning", thing="dialog", name=prefix, beyond=f"{prefix}g")
                raise unknown("dialog", prefix) if gone is None else Gone(*gone).error("dialog", prefix)
        if len(named) > 1:
            raise Ambiguous(prefix, [row[0] for row in named])
        return DialogId(named[0][0])

    def _ranges(self, rows: Rows, row: Row) -> tuple[Span, ...]:
        """Return all ranges of a dialog: of its parent as many as it shares, then its own."""
        if self._undone != self._db.undone or len(self._known) >= _KNOWN_RANGES:
            self._undone = self._db.undone
            self._known.clear()
        waiting: list[Row] = []
        while row[_SHARED] and row[_ID] not in self._known:
            waiting.append(row)
            above = rows.one("node_get", dialog_id=row[_PARENT])
            if above is None or above[_PLACE] >= row[_PLACE]:  # a parent is older, so there is no circle
                raise StoreDamaged(row[_ID][:SHORT_DIGITS], "it shares ranges of a parent that is not there")
            row = above
        ranges = self._known.get(row[_ID]) or _spans_in(row[_RANGES])
        for dialog in reversed(waiting):
            ranges = (*ranges[: dialog[_SHARED]], *_spans_in(dialog[_RANGES]))
            self._known[dialog[_ID]] = ranges
        return ranges


# --- ranges as a column ----------------------------------------------------------------------------------------------------


def _spans_text(spans: Sequence[Span]) -> str:
    """Return ranges as JSON text."""
    return json.dumps([(span.dialog, span.start, span.stop) for span in spans], separators=(",", ":"))


def _spans_in(text: str) -> tuple[Span, ...]:
    """Read ranges."""
    if text == "[]":
        return ()
    try:
        return tuple(Span(*span) for span in stored_json(text, list, "the ranges of a dialog"))
    except TypeError as error:
        raise StoreDamaged("the ranges of a dialog", str(error)) from error
