"""Sessions as JSON: the records that `to_dict` and replay logs write, restoring them to a store, and copies within a store.

A dialog is its node and its entries. An entry is written whole, with the one fact that its bytes lack: whether it belonged to a turn.
Media payloads come before the entries that name them.
"""

from __future__ import annotations

import base64
import json
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from itertools import groupby, islice
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from palaver.errors import InvalidInput, PalaverError, StoreDamaged
from palaver.ids import BlobId, DialogId, SessionId, new_dialog_id, new_session_id, now
from palaver.log import (
    NOTHING,
    Draft,
    Handle,
    Header,
    Inbox,
    Invocation,
    LateResult,
    MessageEntry,
    Node,
    Reader,
    Span,
    decode_entry,
    draft_of,
    next_header,
    path_to,
    renamed,
    stretches,
)
from palaver.messages import canonical_json, media_of, thaw
from palaver.plurals import counted
from palaver.store.copying import Copyable
from palaver.store.protocol import SessionRecord, Store
from palaver.store.records import SHORT_DIGITS
from palaver.view import renamed_call

__all__ = [
    "Copy",
    "PortableDialog",
    "PortableEntry",
    "ReplayLogWarning",
    "carry",
    "copied",
    "records",
    "restore",
    "unpack",
]

VERSION = 1
"""The version of the records."""

_STORE_DECIDES = {"order"}
_CHANGING = {"tenant", "updated_at", "trashed_at"}
_BATCH = 500  # entries in a transaction


class ReplayLogWarning(UserWarning):
    """Data could not be written to a replay log, or not be read from one."""


class PortableEntry(NamedTuple):
    """An entry in portable form.

    Attributes:
        seq: Its number in its dialog.
        turn: Whether it belonged to a turn.
        body: Its canonical bytes.
    """

    seq: int
    turn: bool
    body: bytes

    @property
    def draft(self) -> Draft:
        """The entry ready to be stored, byte for byte."""
        return draft_of(decode_entry(self.body), self.body)


def lines(reader: Reader, dialog: DialogId, start: int, stop: int) -> Iterator[PortableEntry]:
    """Yield a dialog's own entries from `start` (inclusive) to `stop` (exclusive).

    Raises:
        StoreDamaged: One of them is lost, or not what was written.
    """
    bodies = reader.bodies(dialog, start, stop)
    for header in reader.headers(dialog, start, stop):
        seq, body = next(bodies, (-1, b""))
        if seq != header.seq:
            raise StoreDamaged(f"{Handle(dialog, header.seq)}", "it is lost, or not what was written")
        yield PortableEntry(seq, header.turn_head == seq, body)


def records(store: Store, node: Node, start: int, stop: int) -> Iterator[dict[str, Any]]:
    """Yield the records of a dialog's entries from `start` (inclusive) to `stop` (exclusive). A negative `start` adds the session and the node."""
    if start < 0:
        session = store.session(node.session_id)
        yield {
            "replay": VERSION,
            "session": _sessions().dump_python(_thawed(session), mode="json", exclude=_CHANGING),
            "node": _nodes().dump_python(_thawed(node), mode="json", exclude=_STORE_DECIDES),
        }
    for line in lines(store, node.dialog_id, max(start, 0), stop):
        entry = decode_entry(line.body)
        named = media_of(entry.message) if isinstance(entry, MessageEntry | Inbox | LateResult) else ()
        for blob in (BlobId(media.digest) for media in named if media.digest):
            if store.has_blob(blob):
                yield {"blob": blob, "data": base64.b64encode(store.blob(blob)).decode()}
        yield {"seq": line.seq, "turn": line.turn, "entry": json.loads(line.body)}


def _thawed(value: Any) -> Any:  # noqa: ANN401 - a node or a session
    return replace(value, metadata=thaw(dict(value.metadata)))


@cache
def _sessions() -> TypeAdapter[SessionRecord]:
    return TypeAdapter(SessionRecord)


@cache
def _nodes() -> TypeAdapter[Node]:
    return TypeAdapter(Node)


@dataclass(slots=True)
class PortableDialog:
    """A dialog in portable form, as far as its records were read.

    Attributes:
        node: Its node.
        session: Its session.
        lines: Its own entries, by number.
        payloads: The bytes of the media that they name.
        gaps: Whether some entries replace lost ones. Entries after them are not checked again.
    """

    node: Node | None = None
    session: SessionRecord | None = None
    lines: dict[int, PortableEntry] = field(default_factory=dict)
    payloads: list[bytes] = field(default_factory=list)
    gaps: bool = False

    def read(self, record: Mapping[str, Any]) -> None:
        """Read one record. The second record of an entry is the same entry.

        Raises:
            InvalidInput: It is not a record, or its media do not match their digest.
        """
        try:
            if "replay" in record:
                self.session = _sessions().validate_python(record["session"])
                self.node = _nodes().validate_python(record["node"])
            elif "blob" in record:
                self.payloads.append(_payload(record))
            elif "seq" in record:
                line = PortableEntry(int(record["seq"]), bool(record["turn"]), canonical_json(record["entry"]))
                decode_entry(line.body)
                self.lines.setdefault(line.seq, line)
        except (KeyError, TypeError, ValueError, PalaverError) as error:
            raise InvalidInput(f"This is not a dialog as palaver writes it: {error!r}.") from error


def _payload(record: Mapping[str, Any]) -> bytes:
    payload = base64.b64decode(record["data"], validate=True)
    if sha256(payload).hexdigest() != record["blob"]:
        raise ValueError(f"payload {record['blob']} has another digest")
    return payload


# --- a dialog as a dictionary -------------------------------------------------------------------------------------------------------


def carry(store: Store, dialog_id: DialogId) -> list[dict[str, Any]]:
    """Return a dialog's log as JSON values: its ancestors, itself and its descendants, in the order of creation."""
    node = store.node(dialog_id)
    nodes = store.nodes(node.session_id)
    related = _related(nodes, node)
    wanted = (one for one in nodes if one.dialog_id in related)
    return [record for one in wanted for record in records(store, one, -1, store.last(one.dialog_id).seq + 1)]


def _related(nodes: Sequence[Node], node: Node) -> set[DialogId]:
    """Return the ids of a dialog, its ancestors and its descendants."""
    parents = {one.dialog_id: one.parent_id for one in nodes}
    found = {node.dialog_id, *(span.dialog for span in node.ranges)}
    above = node.parent_id
    while above is not None:
        found.add(above)
        above = parents[above]
    below = {node.dialog_id}
    for one in nodes:  # a child is created after its parent
        if one.parent_id in below:
            below.add(one.dialog_id)
            found |= {one.dialog_id, *(span.dialog for span in one.ranges)}
    return found


def unpack(log: Any) -> tuple[SessionRecord, list[PortableDialog]]:  # noqa: ANN401 - any JSON value
    """Read what `carry` returned: the session, and its dialogs with parents before children.

    Raises:
        InvalidInput: It cannot be read.
    """
    dialogs: list[PortableDialog] = []
    for record in log if isinstance(log, list) else ():
        if not isinstance(record, Mapping) or record.get("replay", VERSION) != VERSION:
            break
        if "replay" in record:
            dialogs.append(PortableDialog())
        if not dialogs:
            break
        dialogs[-1].read(record)
    else:
        if dialogs and dialogs[0].session is not None:
            return dialogs[0].session, dialogs
    raise InvalidInput("This dialog's log is in a form that this version of palaver cannot read.")


# --- back into a store --------------------------------------------------------------------------------------------------------------


def restore(store: Store, session: SessionRecord, dialogs: Sequence[PortableDialog]) -> None:
    """Write a session into a store that does not have it, in one step.

    If ancestors of a dialog are partly or completely missing, the rest is written, with a warning.

    Raises:
        InvalidInput: The store has the session, a dialog's entries are not numbered 0, 1, 2 …, or an entry may not be where it is.
    """
    lengths: dict[DialogId, int] = {}
    made: list[Node] = []
    with store.transaction():
        store.create_session(replace(session, root=None))
        for each in dialogs:
            for payload in each.payloads:
                store.put_blob(payload)
            assert each.node is not None  # noqa: S101 - checked when the dialog was read
            made.append(store.create_dialog(_fitting(store, each.node, lengths)))
            lengths[made[-1].dialog_id] = _fill(store, made[-1].dialog_id, each)
        first = next((node.dialog_id for node in made if node.parent_id is None), None)
        store.update_session(session.session_id, root=session.root if session.root in lengths else first)


def _fitting(store: Store, node: Node, lengths: Mapping[DialogId, int]) -> Node:
    """Return the node with its existing ancestors, and its inherited messages recounted."""
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
    """Write a dialog's entries and return their number."""
    last, waiting = NOTHING, iter(each.lines.values())
    for _, group in groupby(waiting, key=lambda line: line.turn):
        while batch := list(islice(group, _BATCH)):
            if [line.seq for line in batch] != list(range(last.seq + 1, last.seq + 1 + len(batch))):
                raise InvalidInput(f"The entries of dialog {dialog} have a gap after {last.seq}.")
            last = _write(store, dialog, batch, last, judged=not each.gaps)
    return last.seq + 1


def _write(store: Store, dialog: DialogId, batch: Sequence[PortableEntry], last: Header, *, judged: bool) -> Header:
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


class Copy(NamedTuple):
    """A session that was copied.

    Attributes:
        session_id: The copy.
        names: The ids of the new dialogs, by those of the old ones.
    """

    session_id: SessionId
    names: Mapping[DialogId, DialogId]

    def place(self, place: Handle) -> Handle | None:
        """Return where the copy has an entry, or None where its dialog was not copied."""
        name = self.names.get(place.dialog)
        return None if name is None else place._replace(dialog=name)

    def renamed(self, body: bytes) -> bytes:
        """Return an entry that names the copy's dialogs instead of the old ones."""
        entry = renamed(decode_entry(body), self.names)
        if isinstance(entry, Invocation):
            entry = entry.model_copy(update={"manifest": renamed_call(entry.manifest, self.names)})
        return canonical_json(entry)


def copied(
    store: Store, session_id: SessionId, *, workdir: str, metadata: Mapping[str, object], leaf: Handle | None = None
) -> Copy:
    """Copy a session within its store, with new ids.

    Args:
        store: The store.
        session_id: The session.
        workdir: The copy's working folder.
        metadata: The copy's metadata.
        leaf: The entry whose path is copied. Default: the whole session.
    """
    nodes = store.nodes(session_id)
    if leaf is None:
        lengths = {node.dialog_id: store.last(node.dialog_id).seq + 1 for node in nodes}
    else:
        lengths = _needed({node.dialog_id: node for node in nodes}, path_to(store, leaf))
    made_id = new_session_id(like=session_id)
    # the first digits stay: handles that are printed in texts name the same entries in the copy
    names = {dialog: DialogId(dialog[:SHORT_DIGITS] + new_dialog_id(made_id)[SHORT_DIGITS:]) for dialog in lengths}
    copy = Copy(made_id, names)
    record = store.session(session_id)
    root = record.root if leaf is None else leaf.dialog
    dialogs = [_copied_dialog(store, copy, node, lengths) for node in nodes if node.dialog_id in lengths]
    made = replace(record, session_id=copy.session_id, workdir=workdir, created_at=now(), metadata=metadata)
    restore(store, replace(made, trashed_at=None, root=None if root is None else names.get(root)), dialogs)
    return copy


def _needed(nodes: Mapping[DialogId, Node], spans: Iterable[Span]) -> dict[DialogId, int]:
    """Return the part of each dialog that a path needs, including entries that these dialogs share."""
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
        dialog_id=copy.names[node.dialog_id],
        session_id=copy.session_id,
        parent_id=None if parent is None else copy.names[parent],
        ranges=tuple(Span(copy.names[span.dialog], span.start, span.stop) for span in node.ranges),
        metadata={},
    )
    own = lines(store, node.dialog_id, 0, lengths[node.dialog_id])
    return PortableDialog(made, lines={line.seq: line._replace(body=copy.renamed(line.body)) for line in own})
