"""Sessions as JSON: the form in which `to_dict` and replay logs write dialogs, the way back into a store, and copies within one.

A dialog is its node and its entries. An entry is written whole, with the one thing that its bytes do not say: whether it belonged to a turn.
Media payloads stand beside the entries that name them.
"""

from __future__ import annotations

import base64
import json
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import groupby, islice
from typing import Any, NamedTuple

from palaver.errors import InvalidInput
from palaver.ids import BlobId, DialogId, SessionId, new_dialog_id, new_session_id, now
from palaver.log import (
    NOTHING,
    Draft,
    Handle,
    Header,
    Inbox,
    LateResult,
    MessageEntry,
    Node,
    Reader,
    Span,
    decode_entry,
    draft,
    next_header,
)
from palaver.messages import canonical_json, media_of, thaw
from palaver.plurals import counted
from palaver.session.messages import stretches
from palaver.session.tree import path_to
from palaver.store.copying import Copyable
from palaver.store.protocol import SessionRecord, Store

__all__ = ["Copy", "Line", "PortableDialog", "ReplayLogWarning", "carry", "copied", "lines", "restore", "unpack"]

_VERSION = 1
_STORE_DECIDES = frozenset({"order"})
_SESSION_FIELDS = ("session_id", "name", "subject", "workdir", "created_at", "root", "metadata")
_BATCH = 500  # entries in a transaction


class ReplayLogWarning(UserWarning):
    """Something could not be written to a replay log, or not be read from one; the warning says what."""


class Line(NamedTuple):
    """An entry on its way.

    Attributes:
        seq: Its number in its dialog.
        turn: Whether it belonged to a turn.
        body: Its canonical bytes.
    """

    seq: int
    turn: bool
    body: bytes

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {"seq": self.seq, "turn": self.turn, "entry": json.loads(self.body)}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Line:
        """Read what `to_dict` returned.

        Raises:
            InvalidInput: It is not such a dictionary.
        """
        try:
            return cls(int(fields["seq"]), bool(fields["turn"]), canonical_json(fields["entry"]))
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInput(f"This is not an entry as palaver writes it: {error!r}.") from error

    @property
    def draft(self) -> Draft:
        """The entry ready to be stored, byte for byte."""
        return draft(decode_entry(self.body))[0]._replace(body=self.body)


@dataclass(slots=True)
class PortableDialog:
    """A dialog on its way from one place to another.

    Attributes:
        node: Its node.
        lines: Its own entries, in order.
        payloads: The bytes of the media that they name.
        gaps: Whether some entries stand for lost ones: what follows them is not judged again.
    """

    node: Node
    lines: list[Line] = field(default_factory=list)
    payloads: list[bytes] = field(default_factory=list)
    gaps: bool = False


def lines(reader: Reader, dialog: DialogId, start: int, stop: int) -> Iterator[Line]:
    """Yield a dialog's own entries from `start` (inclusive) to `stop` (exclusive)."""
    bodies = reader.bodies(dialog, start, stop)
    for header, (seq, body) in zip(reader.headers(dialog, start, stop), bodies, strict=True):
        yield Line(seq, header.turn_head == seq, body)


def payloads_of(body: bytes) -> Iterator[BlobId]:
    """Yield the media payloads that an entry names."""
    entry = decode_entry(body)
    if isinstance(entry, MessageEntry | Inbox | LateResult):
        yield from (BlobId(media.digest) for media in media_of(entry.message) if media.digest)


def node_to_dict(node: Node) -> dict[str, Any]:
    """Return a node as JSON values; the store that takes it decides its order among the session's dialogs."""
    values = {one.name: getattr(node, one.name) for one in fields(node) if one.name not in _STORE_DECIDES}
    ranges = [[span.dialog, span.start, span.stop] for span in node.ranges]
    return values | {"ranges": ranges, "metadata": thaw(dict(node.metadata))}


def node_from_dict(values: Mapping[str, Any]) -> Node:
    """Read what `node_to_dict` returned.

    Raises:
        InvalidInput: It is not such a dictionary.
    """
    known = {one.name for one in fields(Node)} - _STORE_DECIDES
    try:
        ranges = tuple(Span(DialogId(dialog), int(start), int(stop)) for dialog, start, stop in values["ranges"])
        return Node(**{name: value for name, value in values.items() if name in known} | {"ranges": ranges})
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInput(f"This is not a dialog as palaver writes it: {error!r}.") from error


def session_to_dict(record: SessionRecord) -> dict[str, Any]:
    """Return what is written of a session as JSON values."""
    return {name: getattr(record, name) for name in _SESSION_FIELDS} | {"metadata": thaw(dict(record.metadata))}


def session_from_dict(values: Mapping[str, Any]) -> SessionRecord:
    """Read what `session_to_dict` returned.

    Raises:
        InvalidInput: It is not such a dictionary.
    """
    try:
        known = {name: values[name] for name in _SESSION_FIELDS}
        return SessionRecord(**known | {"session_id": SessionId(known["session_id"])})
    except (KeyError, TypeError) as error:
        raise InvalidInput(f"This is not a session as palaver writes it: {error!r}.") from error


def payload_to_text(payload: bytes) -> str:
    """Return bytes as base64."""
    return base64.b64encode(payload).decode()


def payload_from_text(text: str) -> bytes:
    """Read bytes from base64."""
    return base64.b64decode(text, validate=True)


# --- a dialog as a dictionary -------------------------------------------------------------------------------------------------------


def carry(store: Store, dialog_id: DialogId) -> dict[str, Any]:
    """Return a dialog's log as JSON values: its ancestors, itself and all below it, in the order in which they were made."""
    node = store.node(dialog_id)
    nodes = store.nodes(node.session_id)
    related = _related(nodes, node)
    dialogs: list[dict[str, Any]] = []
    blobs: dict[str, str] = {}
    for one in (one for one in nodes if one.dialog_id in related):
        own = list(lines(store, one.dialog_id, 0, store.last(one.dialog_id).seq + 1))
        named = {blob for line in own for blob in payloads_of(line.body)} - blobs.keys()
        blobs |= {blob: payload_to_text(store.blob(blob)) for blob in named if store.has_blob(blob)}
        dialogs.append({"node": node_to_dict(one), "entries": [line.to_dict() for line in own]})
    session = session_to_dict(store.session(node.session_id))
    return {"version": _VERSION, "session": session, "dialogs": dialogs, "blobs": blobs}


def _related(nodes: Sequence[Node], node: Node) -> set[DialogId]:
    """Return the ids of a dialog, its ancestors and all below it."""
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


def unpack(log: Any) -> tuple[SessionRecord, list[PortableDialog]]:  # noqa: ANN401 - what JSON holds
    """Read what `carry` returned: the session, and its dialogs with parents before children.

    Raises:
        InvalidInput: It cannot be read.
    """
    if not isinstance(log, Mapping) or log.get("version") != _VERSION:
        raise InvalidInput("This dialog's log is in a form that this version of palaver cannot read.")
    try:
        dialogs = [
            PortableDialog(node_from_dict(one["node"]), [Line.from_dict(line) for line in one["entries"]])
            for one in log["dialogs"]
        ]
        dialogs[0].payloads.extend(map(payload_from_text, log["blobs"].values()))
        return session_from_dict(log["session"]), dialogs
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise InvalidInput(f"This dialog's log cannot be read: {error!r}.") from error


# --- back into a store --------------------------------------------------------------------------------------------------------------


def restore(store: Store, session: SessionRecord, dialogs: Sequence[PortableDialog]) -> None:
    """Write a session into a store that does not have it, in one step.

    A dialog whose ancestors are missing, in whole or in part, is written with what there is; a warning says so.

    Raises:
        InvalidInput: The store has the session, or a dialog's entries are not numbered 0, 1, 2 …, or one may not stand where it stood.
    """
    lengths: dict[DialogId, int] = {}
    with store.transaction():
        store.create_session(replace(session, root=None))
        for each in dialogs:
            for payload in each.payloads:
                store.put_blob(payload)
            made = store.create_dialog(_fitting(store, each.node, lengths))
            lengths[made.dialog_id] = _fill(store, made.dialog_id, each)
        first = next((each.node.dialog_id for each in dialogs if each.node.parent_id not in lengths), None)
        store.update_session(session.session_id, root=session.root if session.root in lengths else first)


def _fitting(store: Store, node: Node, lengths: Mapping[DialogId, int]) -> Node:
    """Return the node as far as its ancestors are there, its inherited messages counted anew."""
    ranges = tuple(
        Span(span.dialog, span.start, min(span.stop, lengths[span.dialog]))
        for span in node.ranges
        if span.start < lengths.get(span.dialog, 0)
    )
    parent = node.parent_id if node.parent_id in lengths else None
    missing = sum(map(len, node.ranges)) - sum(map(len, ranges))
    if missing or parent != node.parent_id:
        entries = counted(missing, "entry of its ancestors", "entries of its ancestors")
        warnings.warn(f"Dialog {node.dialog_id} was restored without {entries}.", ReplayLogWarning, stacklevel=3)
    return replace(node, ranges=ranges, parent_id=parent, inherited=stretches(store, ranges)[1])


def _fill(store: Store, dialog: DialogId, each: PortableDialog) -> int:
    """Write a dialog's entries and return how many."""
    last, waiting = NOTHING, iter(each.lines)
    for _, group in groupby(waiting, key=lambda line: line.turn):
        while batch := list(islice(group, _BATCH)):
            if [line.seq for line in batch] != list(range(last.seq + 1, last.seq + 1 + len(batch))):
                raise InvalidInput(f"The entries of dialog {dialog} have a gap after {last.seq}.")
            last = _write(store, dialog, batch, last, judged=not each.gaps)
    return last.seq + 1


def _write(store: Store, dialog: DialogId, batch: Sequence[Line], last: Header, *, judged: bool) -> Header:
    if not judged and isinstance(store, Copyable):
        taken = []
        for line in batch:
            last = next_header(line.draft, last, turn=line.turn, judged=False)
            taken.append((last, line.body))
        store.take_entries(dialog, taken)
        return last
    if batch[0].turn:
        return store.append(dialog, [line.draft for line in batch], last.turn_head)[-1]
    for line in batch:
        last = store.annotate(dialog, line.draft)
    return last


# --- copies within a store ------------------------------------------------------------------------------------------------------------

_SHORT = 12
_ID = re.compile(rb"(?<![0-9a-f])[0-9a-f]{12}(?=[0-9a-f]{20}(?![0-9a-f])|[^0-9a-f]|\Z)")
"""The first digits of a dialog's id, whole or as a handle prints it."""


class Copy(NamedTuple):
    """A session that was copied.

    Attributes:
        session_id: The copy.
        names: The first 12 digits of each new dialog id, by those of the old one.
    """

    session_id: SessionId
    names: Mapping[str, str]

    def place(self, place: Handle) -> Handle | None:
        """Return where the copy has an entry, or None where its dialog was not copied."""
        short = self.names.get(place.dialog[:_SHORT])
        return None if short is None else place._replace(dialog=DialogId(short + place.dialog[_SHORT:]))

    def dialog(self, dialog: DialogId) -> DialogId:
        """Return the id of a dialog's copy."""
        return DialogId(self.names[dialog[:_SHORT]] + dialog[_SHORT:])

    def renamed(self, body: bytes) -> bytes:
        """Return an entry that names the copies wherever the original names dialogs: in labels, compactions, printed handles."""
        return _ID.sub(lambda found: self.names.get(found[0].decode(), found[0].decode()).encode(), body)


def copied(
    store: Store, session_id: SessionId, *, workdir: str, metadata: Mapping[str, object], leaf: Handle | None = None
) -> Copy:
    """Copy a session within its store, with new ids.

    Args:
        store: The store.
        session_id: The session.
        workdir: The copy's working folder.
        metadata: The copy's metadata.
        leaf: The entry to copy the way to; the whole session when not given.
    """
    nodes = store.nodes(session_id)
    if leaf is None:
        lengths = {node.dialog_id: store.last(node.dialog_id).seq + 1 for node in nodes}
    else:
        lengths = _needed({node.dialog_id: node for node in nodes}, path_to(store, leaf))
    names = {dialog[:_SHORT]: new_dialog_id(session_id)[:_SHORT] for dialog in lengths}
    copy = Copy(new_session_id(like=session_id), names)
    record = store.session(session_id)
    root = record.root if leaf is None else leaf.dialog
    dialogs = [_copied_dialog(store, copy, node, lengths) for node in nodes if node.dialog_id in lengths]
    made = replace(record, session_id=copy.session_id, workdir=workdir, created_at=now(), metadata=metadata)
    restore(store, replace(made, trashed_at=None, root=None if root is None else copy.dialog(root)), dialogs)
    return copy


def _needed(nodes: Mapping[DialogId, Node], spans: Iterable[Span]) -> dict[DialogId, int]:
    """Return how much of each dialog a path stands on: what it holds, and what those dialogs share themselves."""
    found: dict[DialogId, int] = {}
    waiting = list(spans)
    while waiting:
        span = waiting.pop()
        if span.dialog not in found:
            waiting.extend(nodes[span.dialog].ranges)
        found[span.dialog] = max(found.get(span.dialog, 0), span.stop)
    return found


def _copied_dialog(store: Store, copy: Copy, node: Node, lengths: Mapping[DialogId, int]) -> PortableDialog:
    parent = node.parent_id if node.parent_id in lengths else None
    made = replace(
        node,
        dialog_id=copy.dialog(node.dialog_id),
        session_id=copy.session_id,
        parent_id=None if parent is None else copy.dialog(parent),
        ranges=tuple(Span(copy.dialog(span.dialog), span.start, span.stop) for span in node.ranges),
        metadata={},
    )
    own = lines(store, node.dialog_id, 0, lengths[node.dialog_id])
    return PortableDialog(made, [line._replace(body=copy.renamed(line.body)) for line in own])
