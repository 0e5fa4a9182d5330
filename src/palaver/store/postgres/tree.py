"""The tree of dialogs, as rows."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from palaver.errors import Ambiguous
from palaver.ids import DialogId, SessionId
from palaver.log import Node
from palaver.store.erasing_rows import gone, unknown_dialog
from palaver.store.postgres import activity
from palaver.store.postgres.connections import Connection, ask
from palaver.store.postgres.rows import PostgresRows
from palaver.store.postgres.sessions import session_no
from palaver.store.postgres.statements import Row
from palaver.store.postgres.texts import given, held, held_or_none
from palaver.store.records import SHORT_DIGITS, check_node, frozen_metadata, metadata_text, spans_in, taken

_CANDIDATES_NAMED = 10


def _node(row: Row) -> Node:
    dialog_id, session_id, owner, parent_id, ranges, place, *rest = row
    split_point, last_n, first_k, inherited, created_at, relation, metadata = rest
    return Node(
        dialog_id=DialogId(dialog_id),
        session_id=SessionId(given(session_id)),
        owner=given(owner),
        parent_id=None if parent_id is None else DialogId(parent_id),
        ranges=spans_in(ranges),
        order=place,
        split_point=split_point,
        last_n=last_n,
        first_k=first_k,
        inherited=inherited,
        created_at=created_at,
        relation=given(relation),
        metadata=frozen_metadata(metadata),
    )


def add(connection: Connection, node: Node) -> Node:
    """Write a node; its cost depends on the number of its ranges and on nothing else."""
    number = session_no(connection, node.session_id, lock=True)

    def length(dialog_id: DialogId) -> int | None:
        found = ask(connection, "dialog_length", (held(dialog_id), number)).fetchone()
        return None if found is None else int(found[0])

    check_node(node, length)
    ids = {"dialog_id": node.dialog_id, "short": node.dialog_id[:SHORT_DIGITS], "session_no": number}
    if ask(connection, "dialog_taken", ids).fetchone() is not None:
        raise taken(node)
    erased = gone(PostgresRows(connection), "dialog", node.dialog_id)
    if erased is not None:
        raise erased.error("dialog", node.dialog_id)
    (place,) = ask(connection, "dialog_next_place", (number,)).fetchone() or (0,)
    placed = replace(node, order=place)
    ask(connection, "dialog_add", _bindings(placed) | {"session_no": number})
    activity.touch(connection, number, placed.created_at)
    return placed


def _bindings(node: Node) -> dict[str, Any]:
    return {
        "dialog_id": node.dialog_id,
        "place": node.order,
        "owner": held(node.owner),
        "parent_id": held_or_none(node.parent_id),
        "ranges": json.dumps([(span.dialog, span.start, span.stop) for span in node.ranges], separators=(",", ":")),
        "split_point": node.split_point,
        "last_n": node.last_n,
        "first_k": node.first_k,
        "inherited": node.inherited,
        "created_at": node.created_at,
        "relation": held(node.relation),
        "metadata": metadata_text(node.metadata),
    }


def get(connection: Connection, dialog_id: DialogId) -> Node:
    """Read one node."""
    row = ask(connection, "node_get", (held(dialog_id),)).fetchone()
    if row is None:
        raise unknown_dialog(PostgresRows(connection), dialog_id)
    return _node(row)


def of_session(connection: Connection, session_id: SessionId) -> tuple[Node, ...]:
    """Read all nodes of a session in order."""
    return tuple(map(_node, ask(connection, "nodes_of", (session_no(connection, session_id),))))


def beginning(connection: Connection, prefix: str, session_id: SessionId | None) -> DialogId:
    """Give the one dialog whose id begins with the prefix."""
    bindings = {"prefix": prefix, "session_id": held_or_none(session_id), "limit": _CANDIDATES_NAMED}
    found = [row[0] for row in ask(connection, "dialogs_beginning", bindings)]
    if not found:
        raise unknown_dialog(PostgresRows(connection), prefix)
    if len(found) > 1:
        raise Ambiguous(prefix, found)
    return DialogId(found[0])
