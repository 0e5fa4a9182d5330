"""A dialog as a dictionary, with everything it stands on and everything that grew from it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from palaver.errors import InvalidInput
from palaver.ids import DialogId, new_dialog_id, new_session_id, now
from palaver.log import MessageEntry, Node, draft
from palaver.messages import Message
from palaver.session.carried.portable import (
    Carried,
    Line,
    blobs_of,
    line_from_dict,
    lines,
    node_from_dict,
    node_to_dict,
    payload_from_text,
    payload_to_text,
    session_from_dict,
    session_to_dict,
)
from palaver.store.protocol import SessionRecord, Store

__all__ = ["carry", "unpack"]

_VERSION = 1
_ID = re.compile(r"[0-9a-f]{32}")


def carry(store: Store, dialog_id: DialogId) -> dict[str, Any]:
    """Give a dialog's log as JSON values: its ancestors, itself and all below it, in the order in which they were made."""
    node = store.node(dialog_id)
    related = _related(store, node)
    nodes = [one for one in store.nodes(node.session_id) if one.dialog_id in related]
    dialogs: list[dict[str, Any]] = []
    blobs: dict[str, str] = {}
    for one in nodes:
        entries = []
        for line in lines(store, one.dialog_id, 0, store.last(one.dialog_id).seq + 1):
            entries.append(line.to_dict())
            new = (blob for blob in blobs_of(line.body) if blob not in blobs and store.has_blob(blob))
            blobs |= {blob: payload_to_text(store.blob(blob)) for blob in new}
        dialogs.append({"node": node_to_dict(one), "entries": entries})
    return {
        "version": _VERSION,
        "session": session_to_dict(store.session(node.session_id)),
        "dialogs": dialogs,
        "blobs": blobs,
    }


def _related(store: Store, node: Node) -> set[DialogId]:
    """Give the ids of a dialog, its ancestors and all below it."""
    nodes = store.nodes(node.session_id)
    parents = {one.dialog_id: one.parent_id for one in nodes}
    found = {node.dialog_id, *(span.dialog for span in node.ranges)}
    above = node.parent_id
    while above is not None:
        found.add(above)
        above = parents[above]
    below = {node.dialog_id}
    for one in nodes:  # a child is made after its parent
        if one.parent_id in below:
            below.add(one.dialog_id)
            found |= {one.dialog_id, *(span.dialog for span in one.ranges)}
    return found


def unpack(fields: Mapping[str, Any]) -> tuple[SessionRecord, list[Carried], DialogId]:
    """Read a dialog's dictionary: what `carry` gave under `log`; without it, the messages as another program wrote them.

    Returns:
        The session, its dialogs with parents before children, and the id of the dialog that the dictionary is about.

    Raises:
        InvalidInput: It holds neither a log nor messages, or one that cannot be read.
        InvalidMessage: One of the messages is none.
    """
    log = fields.get("log")
    if log is None:
        return _foreign(fields)
    if not isinstance(log, Mapping) or log.get("version") != _VERSION:
        raise InvalidInput("This dialog's log is in a form that this version of palaver does not know.")
    try:
        dialogs = [
            Carried(node_from_dict(one["node"]), [line_from_dict(line) for line in one["entries"]])
            for one in log["dialogs"]
        ]
        dialogs[0].payloads.extend(map(payload_from_text, log["blobs"].values()))
        return session_from_dict(log["session"]), dialogs, DialogId(fields["tree_node"]["dialog_id"])
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise InvalidInput(f"This dialog's log cannot be read: {error!r}.") from error


def _foreign(fields: Mapping[str, Any]) -> tuple[SessionRecord, list[Carried], DialogId]:
    """Read a list of messages: they are all the dialog's own, and its place in the other program's tree is kept as metadata."""
    messages = fields.get("messages")
    if not isinstance(messages, Sequence) or isinstance(messages, str):
        raise InvalidInput("A dialog's dictionary needs a log, or a list of messages.")
    place = dict(fields.get("tree_node") or {})
    known = str(place.get("dialog_id", "")).replace("-", "")
    session = SessionRecord(session_id=new_session_id(), name=str(fields.get("session_name") or ""), created_at=now())
    node = Node(
        dialog_id=DialogId(known) if _ID.fullmatch(known) else new_dialog_id(),
        session_id=session.session_id,
        owner=str(fields.get("owner") or ""),
        created_at=session.created_at,
        metadata={"tree_node": place} if place else {},
    )
    carried = Carried(node)
    continues = ""
    for seq, message in enumerate(messages):
        ready, payloads = draft(MessageEntry(message=Message.from_dict(message)), continues=continues)
        continues = ready.response or continues
        carried.lines.append(Line(seq, turn=True, counts=ready.counts, body=ready.body))
        carried.payloads.extend(payloads.values())
    return session, [carried], node.dialog_id
