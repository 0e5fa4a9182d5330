"""The tree of dialogs, as rows."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import apsw

from palaver.errors import Ambiguous
from palaver.ids import DialogId, SessionId
from palaver.log import Node
from palaver.store.erasing_rows import gone, unknown_dialog
from palaver.store.records import SHORT_DIGITS, check_node, frozen_metadata, metadata_text, spans_in, taken
from palaver.store.sqlite import activity
from palaver.store.sqlite.rows import SqliteRows
from palaver.store.sqlite.sessions import session_no
from palaver.store.sqlite.statements import Row, statements

_CANDIDATES_NAMED = 10


def _node(row: Row) -> Node:
    (
        dialog_id,
        session_id,
        owner,
        parent_id,
        ranges,
        place,
        split_point,
        last_n,
        first_k,
        inherited,
        created_at,
        relation,
        metadata,
    ) = row
    return Node(
        dialog_id=DialogId(dialog_id),
        session_id=SessionId(session_id),
        owner=owner,
        parent_id=None if parent_id is None else DialogId(parent_id),
        ranges=spans_in(ranges),
        order=place,
        split_point=split_point,
        last_n=last_n,
        first_k=first_k,
        inherited=inherited,
        created_at=created_at,
        relation=relation,
        metadata=frozen_metadata(metadata),
    )


def add(connection: apsw.Connection, node: Node) -> Node:
    """Write a node; its cost depends on the number of its ranges and on nothing else."""
    sql = statements()
    number = session_no(connection, node.session_id)

    def length(dialog_id: DialogId) -> int | None:
        found = connection.execute(sql["dialog_length"], (dialog_id, number)).get
        return None if found is None else int(found)

    check_node(node, length)
    ids = {"dialog_id": node.dialog_id, "short": node.dialog_id[:SHORT_DIGITS], "session_no": number}
    if connection.execute(sql["dialog_taken"], ids).get is not None:
        raise taken(node)
    erased = gone(SqliteRows(connection), "dialog", node.dialog_id)
    if erased is not None:
        raise erased.error("dialog", node.dialog_id)
    placed = replace(node, order=int(connection.execute(sql["dialog_next_place"], (number,)).get))
    connection.execute(sql["dialog_add"], _bindings(placed) | {"session_no": number})
    activity.touch(connection, number, placed.created_at)
    return placed


def _bindings(node: Node) -> dict[str, Any]:
    return {
        "dialog_id": node.dialog_id,
        "place": node.order,
        "owner": node.owner,
        "parent_id": node.parent_id,
        "ranges": json.dumps([(span.dialog, span.start, span.stop) for span in node.ranges], separators=(",", ":")),
        "split_point": node.split_point,
        "last_n": node.last_n,
        "first_k": node.first_k,
        "inherited": node.inherited,
        "created_at": node.created_at,
        "relation": node.relation,
        "metadata": metadata_text(node.metadata),
    }


def get(connection: apsw.Connection, dialog_id: DialogId) -> Node:
    """Read one node."""
    row = connection.execute(statements()["node_get"], (dialog_id,)).fetchone()
    if row is None:
        raise unknown_dialog(SqliteRows(connection), dialog_id)
    return _node(row)


def of_session(connection: apsw.Connection, session_id: SessionId) -> tuple[Node, ...]:
    """Read all nodes of a session in order."""
    return tuple(map(_node, connection.execute(statements()["nodes_of"], (session_no(connection, session_id),))))


def beginning(connection: apsw.Connection, prefix: str, session_id: SessionId | None) -> DialogId:
    """Give the one dialog whose id begins with the prefix."""
    bindings = {"prefix": prefix, "session_id": session_id, "limit": _CANDIDATES_NAMED}
    found = [row[0] for row in connection.execute(statements()["dialogs_beginning"], bindings)]
    if not found:
        raise unknown_dialog(SqliteRows(connection), prefix)
    if len(found) > 1:
        raise Ambiguous(prefix, found)
    return DialogId(found[0])
