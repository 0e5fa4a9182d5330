"""Landing: a stream of records becomes a session in a store. All checks of what a stream says are here."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from typing import Literal, NamedTuple, TypeAlias

from palaver.errors import Conflict, InvalidInput, NotFound
from palaver.ids import BlobId, DialogId, SessionId
from palaver.log import (
    LOST,
    BlockEdit,
    Compaction,
    ContextEdit,
    Custom,
    Derived,
    Draft,
    Handle,
    Header,
    Node,
    Omitted,
    Place,
    Run,
    Span,
    body_digest,
    clip,
    decode_entry,
    draft,
    draft_of,
    media_in,
    messages_in,
    next_header,
)
from palaver.log.values import LogValue
from palaver.messages import Speaker, Trust
from palaver.plurals import counted
from palaver.store.protocol import Copyable, SessionRecord, SourceRecord, Store
from palaver.store.records import CHANGEABLE
from palaver.transfer.places import Places
from palaver.transfer.records import EntryRecord, Payload, Record, pieces_in
from palaver.view import Reason

Exists: TypeAlias = Literal["refuse", "grow", "mirror"]
"""What happens if the store has the session: an error; its entries are compared and kept, and new ones are added; or that, and all about the session becomes as
in the stream.
"""

_BATCH_ENTRIES = 500
_BATCH_BYTES = 4 << 20


class ReplayLogWarning(UserWarning):
    """Data could not be written to a replay log, or not be read from one."""


class Arrived(NamedTuple):
    """The result of a landing.

    Attributes:
        session_id: The session.
        dialogs: The number of dialogs in the stream.
        entries: The number of entries written; 0 if the store had all.
        added: The number of dialogs that the store did not have.
    """

    session_id: SessionId
    dialogs: int
    entries: int
    added: int


def land(
    records: Iterable[Record], store: Store, *, exists: Exists = "refuse", whole: bool = False, gaps: bool = False
) -> Arrived:
    """Write a stream of records into a store, in one step.

    Args:
        records: The stream. Entries with headers are written as they are, without judging them again.
        store: The store.
        exists: What happens if the store has the session.
        whole: Whether the stream is a whole session: then all that its entries name must be in it.
        gaps: Whether entries and ancestors may be missing. An entry marked as lost replaces each missing one, with a warning.

    Raises:
        InvalidInput: The store has the session, or the stream contradicts itself.
        Conflict: The store has another history of the session.
        Erased: The session was erased from the store.
        StoreError: The store failed.
    """
    with store.transaction():
        return _Arrival(store, exists, whole=whole, gaps=gaps).land(records)


class _Arrival:
    def __init__(self, store: Store, exists: Exists, *, whole: bool, gaps: bool) -> None:
        self._store = store
        self._exists = exists
        self._whole = whole
        self._gaps = gaps
        self._session: SessionRecord | None = None
        self._there: dict[DialogId, Node] = {}
        self._lengths: dict[DialogId, int] = {}
        self._named: dict[DialogId, int] = {}
        self._dialog: DialogId | None = None
        self._known: Iterator[Header] = iter(())
        self._last: Header
        self._judged = True
        self._waiting: list[tuple[EntryRecord, Draft | None]] = []
        self._next = self._size = self._written = 0

    def land(self, records: Iterable[Record]) -> Arrived:
        for record in records:
            self._take(record)
        self._flush()
        session = self._require_session()
        if self._whole:
            self._check_named(session)
        added = len(self._lengths.keys() - self._there.keys())
        if self._exists != "mirror" and (self._written or added):
            self._store.update_session(session.session_id, trashed_at=None, root=self._root(session))
        return Arrived(session.session_id, len(self._lengths), self._written, added)

    def _take(self, record: Record) -> None:
        match record:
            case EntryRecord():
                self._entry(record)
            case Payload(data=data):
                self._store.put_blob(self._require_session().session_id, data)
            case Node():
                self._begin_dialog(record)
            case SessionRecord():
                self._begin(record)
            case SourceRecord():
                self._source(record)

    # --- the session --------------------------------------------------------------------------------------------------------------

    def _require_session(self) -> SessionRecord:
        if self._session is None:
            raise InvalidInput("The stream has no session.")
        return self._session

    def _begin(self, record: SessionRecord) -> None:
        if self._session is not None:
            raise InvalidInput("The stream has two sessions.")
        self._session = record
        try:
            known = None if self._exists == "refuse" else self._store.session(record.session_id)
        except NotFound:
            known = None
        if known is None:
            mirrored = self._exists == "mirror"
            self._store.create_session(record if mirrored else replace(record, root=None, trashed_at=None))
        elif self._exists == "mirror":
            new = {name: getattr(record, name) for name in CHANGEABLE if getattr(record, name) != getattr(known, name)}
            self._store.update_session(record.session_id, **new)
        self._there = {node.dialog_id: node for node in self._store.nodes(record.session_id)}

    def _root(self, session: SessionRecord) -> DialogId | None:
        """Return the dialog to continue with: that of the stream, unless the store's session was moved to a dialog of its own."""
        here = self._store.session(session.session_id).root
        if here is not None and here not in self._lengths:
            return here
        if session.root in self._lengths or self._whole or self._exists == "grow":
            return session.root
        return next((dialog for dialog in self._lengths if self._store.node(dialog).parent_id is None), None)

    def _source(self, source: SourceRecord) -> None:
        session = self._require_session()
        self._flush()
        if source.session_id != session.session_id:
            raise InvalidInput(f"A source belongs to session {source.session_id[:12]}.")
        if self._whole:
            self._check_source(source)
        there = self._store.source(source.identity)
        if there is None or (self._exists == "mirror" and there != source):
            self._store.put_source(source)

    def _check_source(self, source: SourceRecord) -> None:
        if source.raw is not None:
            for piece in pieces_in(self._store.blob(source.session_id, source.raw)):
                self._require_payload(piece)
        if source.index is not None:
            places = Places.decode(self._store.blob(source.session_id, source.index))
            for landed in places.landed.values():
                for put in landed:
                    self._store.header(put.dialog, put.seq)
            for dialog in places.dialogs.values():
                self._store.node(dialog)

    # --- dialogs ------------------------------------------------------------------------------------------------------------------

    def _begin_dialog(self, node: Node) -> None:
        session = self._require_session()
        self._flush()
        if node.session_id != session.session_id:
            raise InvalidInput(f"Dialog {node.dialog_id[:12]} belongs to session {node.session_id[:12]}.")
        if node.dialog_id in self._lengths:
            raise InvalidInput(f"Dialog {node.dialog_id[:12]} is in the stream twice.")
        there = self._there.get(node.dialog_id)
        if there is None:
            self._store.create_dialog(self._fitting(node) if self._gaps else node)
            self._check_inherited(node)
        elif (there.parent_id, there.ranges) != (node.parent_id, node.ranges):
            raise self._conflict(f"dialog {node.dialog_id} has another place in the tree")
        self._dialog, self._judged, self._known = node.dialog_id, True, iter(())
        self._last = self._store.last(node.dialog_id)
        self._next = self._last.seq + 1
        self._lengths[node.dialog_id] = 0

    def _check_inherited(self, node: Node) -> None:
        held = messages_in(self._store, node.ranges) if self._whole else node.inherited
        if node.inherited != held:
            said = counted(node.inherited, "message")
            raise InvalidInput(f"Dialog {node.dialog_id[:12]} says that it shares {said}, and its ranges have {held}.")

    def _fitting(self, node: Node) -> Node:
        """Return a node with its existing ancestors, and its inherited messages recounted."""
        there = [Span(dialog, 0, self._store.last(dialog).seq + 1) for dialog in self._lengths]
        ranges = tuple(clip(node.ranges, there))
        parent = node.parent_id if node.parent_id in self._lengths else None
        missing = sum(map(len, node.ranges)) - sum(map(len, ranges))
        if missing or parent != node.parent_id:
            entries = counted(missing, "entry of its ancestors", "entries of its ancestors")
            warn_of_log(f"Dialog {node.dialog_id} was restored without {entries}.")
        return replace(node, ranges=ranges, parent_id=parent, inherited=messages_in(self._store, ranges))

    def _conflict(self, why: str) -> Conflict:
        session = self._require_session().session_id
        what = f"The store has another history of session {session[:12]}: {why}."
        return Conflict(session, why=what, hint="Bring it into another store.")

    # --- entries ------------------------------------------------------------------------------------------------------------------

    def _entry(self, row: EntryRecord) -> None:
        if self._dialog is None:
            raise InvalidInput("An entry comes before its dialog.")
        self._lengths[self._dialog] = max(self._lengths[self._dialog], row.seq + 1)
        if row.seq <= self._last.seq and not self._waiting:
            self._require_same(self._dialog, row)
            return
        if row.seq != self._next and not (self._gaps and row.seq > self._next):
            raise InvalidInput(f"The entries of dialog {self._dialog} have a gap after {self._next - 1}.")
        if row.seq != self._next:
            self._fill_gap(self._dialog, row.seq)
        self._wait(row)

    def _require_same(self, dialog: DialogId, row: EntryRecord) -> None:
        there = next(self._known, None)
        if there is None or there.seq != row.seq:
            self._known = self._store.headers(dialog, row.seq, self._last.seq + 1)
            there = next(self._known)
        same = there.digest == body_digest(row.body) if row.header is None else there == row.header
        if not same:
            raise self._conflict(f"entry {Handle(dialog, row.seq)} differs from the store's")

    def _fill_gap(self, dialog: DialogId, stop: int) -> None:
        """Write an entry marked as lost in place of each missing one. Entries after it are not judged again."""
        self._flush()
        at = self._last.at if self._last.seq >= 0 else self._require_session().created_at
        for seq in range(self._next, stop):
            warn_of_log(f"Entry {Handle(dialog, seq)} is lost: its record is damaged or missing.")
            self._wait(EntryRecord(seq, turn=False, body=draft(Custom(custom_type=LOST, at=at))[0].body))
        self._flush()
        self._judged = False

    def _wait(self, row: EntryRecord) -> None:
        made = None
        if row.header is None:
            entry = decode_entry(row.body)
            if self._whole:
                self._check_values(entry, row)
            made = draft_of(entry, row.body)
        self._waiting.append((row, made))
        self._next = row.seq + 1
        self._size += len(row.body)
        if len(self._waiting) >= _BATCH_ENTRIES or self._size >= _BATCH_BYTES:
            self._flush()

    def _flush(self) -> None:
        waiting, self._waiting, self._size = self._waiting, [], 0
        for turn, group in groupby(waiting, key=lambda pair: pair[0].turn):
            batch = list(group)
            assert self._dialog is not None  # noqa: S101 - entries wait in a dialog
            self._written += len(batch)
            self._write(self._dialog, batch, turn=turn)

    def _write(self, dialog: DialogId, batch: list[tuple[EntryRecord, Draft | None]], *, turn: bool) -> None:
        drafts = [made for _row, made in batch if made is not None]
        if isinstance(self._store, Copyable) and not (self._judged and drafts):
            taken = []
            for row, made in batch:
                kept = None if made is None else next_header(made, self._last, turn=turn, judged=False)
                self._last = kept or row.header or self._last
                taken.append((self._last, row.body))
            self._store.take_entries(dialog, taken)
        elif turn:
            self._last = self._store.append(dialog, drafts, self._last.turn_head)[-1]
        else:
            for made in drafts:
                self._last = self._store.annotate(dialog, made)

    # --- what a whole session names -----------------------------------------------------------------------------------------------

    def _require_payload(self, blob: BlobId) -> None:
        if not self._store.has_blob(self._require_session().session_id, blob):
            raise NotFound(blob, what="blob")

    def _check_values(self, entry: LogValue, row: EntryRecord) -> None:
        for blob in media_in(row.body):
            self._require_payload(blob)
        for value in _values(entry):
            self._check_value(value, row.seq)

    def _check_value(self, value: LogValue, seq: int) -> None:
        """Note the entries that a part of entry `seq` names, and refuse words and numbers that no view can be made of."""
        match value:
            case Run():
                self._name(value.span)
            case Place():
                self._name(Span(value.dialog, value.seq, value.seq + 1))
            case Omitted() | BlockEdit():
                Reason(value.reason)
            case Derived():
                Speaker(value.speaker)
                if value.trust.upper() not in Trust.__members__:
                    raise InvalidInput(f"{value.trust!r} is not a trust.")
            case Compaction() | ContextEdit():
                earlier = (value.base, value.undone) if isinstance(value, Compaction) else (value.base,)
                if any(number is not None and number >= seq for number in earlier):
                    raise InvalidInput(f"Entry {seq} follows from one that is not before it.")

    def _name(self, span: Span) -> None:
        if not 0 <= span.start <= span.stop:
            raise InvalidInput(f"An entry names entries {span.start} to {span.stop}.")
        self._named[span.dialog] = max(span.stop, self._named.get(span.dialog, 0))

    def _check_named(self, session: SessionRecord) -> None:
        """Check references to parts that may come later in the stream."""
        for dialog, stop in self._named.items():
            if stop > self._lengths.get(dialog, -1):
                raise InvalidInput(f"An entry names entry {stop - 1} of dialog {dialog[:12]}, which is not there.")
        if session.root is not None and session.root not in self._lengths:
            raise InvalidInput(f"The dialog to continue with, {session.root[:12]}, is not there.")


def _values(value: object) -> Iterator[LogValue]:
    """Yield an entry and the parts that it is made of."""
    if isinstance(value, LogValue):
        yield value
        for name in type(value).model_fields:
            yield from _values(getattr(value, name))
    elif isinstance(value, tuple):
        for item in value:
            yield from _values(item)


def warn_of_log(text: str) -> None:
    """Warn of a replay log, at the line that called the library."""
    warnings.warn(text, ReplayLogWarning, stacklevel=4)
