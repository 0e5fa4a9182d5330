"""Copying a session, or what leads to one of its entries, into a session of its own.

The copy has dialogs of its own. Wherever an entry names a dialog (in a label, a compaction, a placeholder that a model reads) the copy names its
own: every id keeps its digits but the first twelve, which are the ones that handles are printed with.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from palaver.ids import DialogId, SessionId, new_dialog_id, new_session_id, now
from palaver.log import Handle, Node, Span
from palaver.session.branches.paths import path_to
from palaver.session.carried.portable import Carried, Line, lines
from palaver.session.carried.restore import restore
from palaver.store.protocol import SessionRecord, Store

__all__ = ["Copied", "copied"]

_SHORT = 12
_ID = re.compile(rb"(?<![0-9a-f])[0-9a-f]{12}(?=[0-9a-f]{20}(?![0-9a-f])|[^0-9a-f]|\Z)")
"""The first digits of a dialog's id, printed whole or as a handle prints it."""


class Copied:
    """A session that was copied, and how its entries are named.

    Attributes:
        session_id: The copy.
    """

    def __init__(self, session_id: SessionId, names: Mapping[str, str]) -> None:
        """Take the first digits of each new id by those of the old one."""
        self.session_id = session_id
        self._names = names

    def place(self, place: Handle) -> Handle | None:
        """Give the copy of an entry's place, or None where its dialog was not copied."""
        short = self._names.get(place.dialog[:_SHORT])
        return None if short is None else place._replace(dialog=DialogId(short + place.dialog[_SHORT:]))


def copied(
    store: Store, session_id: SessionId, *, workdir: str, metadata: Mapping[str, object], leaf: Handle | None = None
) -> Copied:
    """Copy a session within its store.

    Args:
        store: The store.
        session_id: The session.
        workdir: The copy's working folder.
        metadata: The copy's metadata.
        leaf: The entry to copy the way to; the whole session when not given.
    """
    nodes = store.nodes(session_id)
    lengths = (
        {node.dialog_id: store.last(node.dialog_id).seq + 1 for node in nodes}
        if leaf is None
        else _needed({node.dialog_id: node for node in nodes}, path_to(store, leaf))
    )
    names = {dialog[:_SHORT]: new_dialog_id()[:_SHORT] for dialog in lengths}
    made = Copied(new_session_id(), names)
    record = store.session(session_id)
    root = record.root if leaf is None else leaf.dialog
    copy = SessionRecord(
        session_id=made.session_id,
        name=record.name,
        subject=record.subject,
        workdir=workdir,
        created_at=now(),
        root=None if root is None else _dialog(made, root),
        metadata=metadata,
    )
    dialogs = [_carried(store, made, node, lengths) for node in nodes if node.dialog_id in lengths]
    with store.together():
        restore(store, copy, dialogs)
    return made


def _needed(nodes: Mapping[DialogId, Node], spans: Sequence[Span]) -> dict[DialogId, int]:
    """Give how much of each dialog a path stands on: what it holds, and what those dialogs hold themselves."""
    found: dict[DialogId, int] = {}
    waiting = list(spans)
    while waiting:
        span = waiting.pop()
        if span.dialog not in found:
            waiting.extend(nodes[span.dialog].ranges)
        found[span.dialog] = max(found.get(span.dialog, 0), span.stop)
    return found


def _dialog(made: Copied, dialog: DialogId) -> DialogId:
    place = made.place(Handle(dialog, 0))
    assert place is not None  # noqa: S101 - what is asked for is what is copied
    return place.dialog


def _carried(store: Store, made: Copied, node: Node, lengths: Mapping[DialogId, int]) -> Carried:
    copy = replace(
        node,
        dialog_id=_dialog(made, node.dialog_id),
        session_id=made.session_id,
        parent_id=_dialog(made, node.parent_id) if node.parent_id in lengths and node.parent_id is not None else None,
        ranges=tuple(Span(_dialog(made, span.dialog), span.start, span.stop) for span in node.ranges),
        metadata={},
    )
    own = lines(store, node.dialog_id, 0, lengths[node.dialog_id])
    return Carried(copy, [line._replace(body=_renamed(made, line)) for line in own])


def _renamed(made: Copied, line: Line) -> bytes:
    names = made._names  # noqa: SLF001 - of this module
    return _ID.sub(lambda found: names.get(found[0].decode(), found[0].decode()).encode(), line.body)
