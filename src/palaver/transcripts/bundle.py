"""Bundles: a whole session in one file that another store, on another machine, imports unchanged."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, fields, replace
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from palaver.errors import Conflict, NotFound, PalaverError, StoreDamaged, UnsupportedTranscript
from palaver.formats import ReadLimits, open_source
from palaver.ids import BlobId, DialogId, SessionId
from palaver.log import (
    BlockEdit,
    Compaction,
    ContextEdit,
    Derived,
    Draft,
    Header,
    Inbox,
    LateResult,
    MessageEntry,
    Node,
    Omitted,
    Place,
    Run,
    Span,
    decode_entry,
    draft_of,
    stretches,
)
from palaver.log.redaction import Redactor
from palaver.log.values import LogValue
from palaver.messages import Speaker, Trust, canonical_json, media_of
from palaver.plurals import counted
from palaver.store.memory import MemoryStore
from palaver.store.protocol import SessionRecord, SourceRecord, Store
from palaver.store.redacting import redacting
from palaver.transcripts.frames import NAME, Frame, read_frames, write_frames
from palaver.transcripts.places import Places
from palaver.transcripts.sources import pieces_of
from palaver.view import Reason

_Kind = TypeVar("_Kind", SessionRecord, Node, SourceRecord)


# --- writing --------------------------------------------------------------------------------------------------------------------


def export_bundle(store: Store, session_id: SessionId) -> Iterator[bytes]:
    """Yield the bundle of a session in pieces: all dialogs, entries, media and stored sources.

    The same session gives the same bytes from every store it was imported into.

    Raises:
        NotFound: The session does not exist, or the store lacks a payload that an entry names.
        StoreDamaged: The store returns other bytes than were written.
    """
    yield from write_frames(_frames(store, store.session(session_id)))


def _frames(store: Store, record: SessionRecord) -> Iterator[Frame]:
    about = {name: value for name, value in asdict(record).items() if name not in {"updated_at", "trashed_at"}}
    yield Frame("session", canonical_json(about))
    sent: set[BlobId] = set()
    for node in store.nodes(record.session_id):
        own = {name: getattr(node, name) for name in Node.__slots__ if name != "session_id"}
        ranges = [[span.dialog, span.start, span.stop] for span in node.ranges]
        yield Frame("dialog", canonical_json({**own, "ranges": ranges}))
        for header, body in _entries(store, node.dialog_id):
            yield from _payloads(store, _media(body), sent)
            yield Frame("entry" if header.turn_head == header.seq else "annotation", body)
    for source in store.sources(record.session_id):
        yield from _payloads(store, _of_source(store, source), sent)
        yield Frame("source", canonical_json(asdict(source)))


def _entries(store: Store, dialog_id: DialogId) -> Iterator[tuple[Header, bytes]]:
    """Yield the entries of a dialog, every one: a bundle must not turn damage into recorded content."""
    stop = store.last(dialog_id).seq + 1
    bodies = store.bodies(dialog_id, 0, stop)
    for header in store.headers(dialog_id, 0, stop):
        seq, body = next(bodies, (-1, b""))
        if seq != header.seq:
            raise StoreDamaged(f"{dialog_id[:12]}:{header.seq}", "it is lost, or not what was written")
        yield header, body


def _payloads(store: Store, named: Iterator[BlobId], sent: set[BlobId]) -> Iterator[Frame]:
    """Yield each payload once, before the frame that names it."""
    for blob_id in named:
        if blob_id not in sent:
            sent.add(blob_id)
            data = store.blob(blob_id)
            if sha256(data).hexdigest() != blob_id:
                raise StoreDamaged(f"blob {blob_id[:12]}", "it is not what was written")
            yield Frame("blob", data)


def _media(body: bytes) -> Iterator[BlobId]:
    if b'"digest"' not in body:  # most entries name no payload, and need not be decoded
        return
    entry = decode_entry(body)
    for media in media_of(entry.message) if isinstance(entry, MessageEntry | Inbox | LateResult) else ():
        if media.url is None:
            yield BlobId(media.digest)


def _of_source(store: Store, source: SourceRecord) -> Iterator[BlobId]:
    if source.index is not None:
        yield source.index
    if source.raw is not None:
        yield from pieces_of(store, source.raw)
        yield source.raw


# --- reading --------------------------------------------------------------------------------------------------------------------


class BundleImport(NamedTuple):
    """The result of importing a bundle.

    Attributes:
        session_id: The session.
        dialogs: The number of dialogs in the bundle.
        entries: The number of entries written; 0 if the store had all.
        added: The number of dialogs that the store did not have.
    """

    session_id: SessionId
    dialogs: int
    entries: int
    added: int


def is_bundle(path: str | Path) -> bool:
    """Return whether a file is a bundle, of any version, by its first bytes.

    Raises:
        MissingFile: The file does not exist.
        UnsupportedTranscript: It cannot be read.
    """
    with open_source(path) as source:
        return len(source.members) == 1 and source.members[0].read(len(NAME)) == NAME


def import_bundle_file(store: Store, path: str | Path, limits: ReadLimits | None = None) -> BundleImport:
    """Import a bundle from a file, plain or compressed (.zst, .gz); see `import_bundle`.

    Raises:
        MissingFile: The file does not exist.
        UnsupportedTranscript: The file cannot be read, or see `import_bundle`.
    """
    with open_source(path, limits) as source:
        return import_bundle(store, source.members[0].reader(), str(path))


def import_bundle(store: Store, read: Callable[[int], bytes], name: str = "the bundle") -> BundleImport:
    """Import a bundle. Entries that the store has are compared and kept; new entries are added.

    The whole bundle is read into memory, and every frame, range and reference is checked; then it is written in one transaction.

    Args:
        store: The store.
        read: Returns the next bytes of the bundle, up to a maximum; none at the end.
        name: The bundle's name in errors.

    Raises:
        UnsupportedTranscript: It is damaged, or contradicts itself.
        Conflict: Its history of a session differs from the store's.
        Erased: The session was erased from the store.
        StoreError: The store failed.
    """
    with MemoryStore() as whole:
        session_id = _Reading(whole, name).read(read_frames(read, name))
        with store.transaction():
            return _merge(whole, store, session_id, name)


def redacted_copy(store: Store, session_id: SessionId, redactor: Redactor) -> Store:
    """Return a store in memory with a copy of the session: the same ids, no secrets, and no source files.

    Raises:
        NotFound: The session does not exist.
        StoreDamaged: The store returns other bytes than were written.
    """
    pieces = export_bundle(store, session_id)
    copy = MemoryStore()
    import_bundle(redacting(copy, redactor), lambda _size: next(pieces, b""), f"session {session_id[:12]}")
    for source in copy.sources(session_id):
        copy.put_source(replace(source, raw=None, path=redactor.redact(source.path).text))
    return copy


class _Reading:
    """Reads a bundle into memory."""

    def __init__(self, store: MemoryStore, name: str) -> None:
        self._store = store
        self._name = name
        self._session: SessionId | None = None
        self._dialog: DialogId | None = None
        self._root: DialogId | None = None
        self._named: dict[DialogId, int] = {}

    def read(self, frames: Iterator[Frame]) -> SessionId:
        for frame in frames:
            take = self._TAKERS.get(frame.kind)
            if take is None:
                raise UnsupportedTranscript(self._name, f"it holds a frame of the unknown kind {frame.kind!r}")
            if (frame.kind == "session") != (self._session is None):
                raise UnsupportedTranscript(self._name, "it does not begin with its one session")
            try:
                take(self, frame.payload)
            except (PalaverError, KeyError, TypeError, ValueError, RecursionError) as error:
                why, hint = f"a {frame.kind} in it cannot be read: {error}", "A newer palaver may have written it."
                raise UnsupportedTranscript(self._name, why, hint=hint) from error
        if self._session is None:
            raise UnsupportedTranscript(self._name, "it holds no session")
        try:
            self._check(self._session)
        except (PalaverError, ValueError) as error:
            raise UnsupportedTranscript(self._name, f"it contradicts itself: {error}") from error
        return self._session

    def _take_session(self, payload: bytes) -> None:
        record = _value(SessionRecord, _json(payload))
        self._store.create_session(replace(record, root=None, trashed_at=None))
        self._session, self._root = record.session_id, record.root

    def _take_blob(self, payload: bytes) -> None:
        self._store.put_blob(payload)

    def _take_dialog(self, payload: bytes) -> None:
        own = _json(payload)
        ranges = [{"dialog": dialog, "start": start, "stop": stop} for dialog, start, stop in own["ranges"]]
        node = _value(Node, {**own, "session_id": self._session, "ranges": ranges})
        self._dialog = self._store.create_dialog(node).dialog_id
        held = stretches(self._store, node.ranges)[1]
        if node.inherited != held:
            raise ValueError(f"it says that it shares {counted(node.inherited, 'message')}, and its ranges have {held}")

    def _take_entry(self, payload: bytes) -> None:
        dialog = self._require_dialog()
        self._store.append(dialog, [self._draft(payload)], self._store.last(dialog).turn_head)

    def _take_annotation(self, payload: bytes) -> None:
        self._store.annotate(self._require_dialog(), self._draft(payload))

    def _take_source(self, payload: bytes) -> None:
        source = _value(SourceRecord, _json(payload))
        if source.session_id != self._session:
            raise ValueError(f"it belongs to session {source.session_id[:12]}")
        for blob in _of_source(self._store, source):
            self._store.blob(blob)
        if source.index is not None:
            places = Places.decode(self._store.blob(source.index))
            for landed in places.landed.values():
                for put in landed:
                    self._store.header(put.dialog, put.seq)
            for dialog in places.dialogs.values():
                self._store.node(dialog)
        self._store.put_source(source)

    _TAKERS: Mapping[str, Callable[[_Reading, bytes], None]] = {
        "session": _take_session,
        "blob": _take_blob,
        "dialog": _take_dialog,
        "entry": _take_entry,
        "annotation": _take_annotation,
        "source": _take_source,
    }

    def _require_dialog(self) -> DialogId:
        if self._dialog is None:
            raise ValueError("it comes before its dialog")
        return self._dialog

    def _draft(self, body: bytes) -> Draft:
        for blob in _media(body):
            self._store.blob(blob)
        entry = decode_entry(body)
        seq = self._store.last(self._require_dialog()).seq + 1
        for value in _values(entry):
            self._take_value(value, seq)
        return draft_of(entry, body)

    def _take_value(self, value: LogValue, seq: int) -> None:
        """Note the entries that a part of entry `seq` names, and refuse words and numbers that no view can be made of."""
        match value:
            case Run():
                self._take_span(value.span)
            case Place():
                self._take_span(Span(value.dialog, value.seq, value.seq + 1))
            case Omitted() | BlockEdit():
                Reason(value.reason)
            case Derived():
                Speaker(value.speaker)
                if value.trust.upper() not in Trust.__members__:
                    raise ValueError(f"{value.trust!r} is not a trust")
            case Compaction() | ContextEdit():
                earlier = (value.base, value.undone) if isinstance(value, Compaction) else (value.base,)
                if any(number is not None and number >= seq for number in earlier):
                    raise ValueError(f"entry {seq} follows from one that is not before it")

    def _take_span(self, span: Span) -> None:
        if not 0 <= span.start <= span.stop:
            raise ValueError(f"it names entries {span.start} to {span.stop}")
        self._named[span.dialog] = max(span.stop, self._named.get(span.dialog, 0))

    def _check(self, session_id: SessionId) -> None:
        """Check references to parts that may come later in the bundle.

        Raises:
            ValueError: A referenced part is not in the bundle.
        """
        held = {node.dialog_id: self._store.last(node.dialog_id).seq + 1 for node in self._store.nodes(session_id)}
        for dialog, stop in self._named.items():
            if stop > held.get(dialog, -1):
                raise ValueError(f"an entry names entry {stop - 1} of dialog {dialog[:12]}, which is not in it")
        if self._root is not None and self._root not in held:
            raise ValueError(f"its dialog to continue with, {self._root[:12]}, is not in it")
        self._store.update_session(session_id, root=self._root)


def _values(value: object) -> Iterator[LogValue]:
    """Yield an entry and the parts that it is made of."""
    if isinstance(value, LogValue):
        yield value
        for name in type(value).model_fields:
            yield from _values(getattr(value, name))
    elif isinstance(value, tuple):
        for item in value:
            yield from _values(item)


def _json(payload: bytes) -> dict[str, Any]:
    read = json.loads(payload)
    if not isinstance(read, dict):
        raise TypeError("it is not a JSON object")
    return read


def _value(kind: type[_Kind], read: Mapping[str, Any]) -> _Kind:
    """Return a typed value of a bundle's JSON, without unknown fields."""
    unknown = sorted(set(read) - {field.name for field in fields(kind)})
    if unknown:
        raise TypeError(f"its fields {', '.join(unknown)} are unknown")
    try:
        found: _Kind = TypeAdapter(cast("Any", kind)).validate_json(canonical_json(read), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        raise TypeError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    return found


# --- into a store -----------------------------------------------------------------------------------------------------------------


def _merge(whole: MemoryStore, store: Store, session_id: SessionId, name: str) -> BundleImport:
    """Write what is missing of a session. If something was, the session leaves the trash, and goes on where the bundle does, unless it was moved here."""
    record, nodes = whole.session(session_id), whole.nodes(session_id)
    if not _has(store, session_id):
        store.create_session(replace(record, root=None, trashed_at=None))
    for blob in whole.blob_ids():
        store.put_blob(whole.blob(blob))
    there = {node.dialog_id: node for node in store.nodes(session_id)}
    added = [node.dialog_id for node in nodes if node.dialog_id not in there]
    written = 0
    for node in nodes:
        if node.dialog_id in there:
            _require_same(whole, store, node, there[node.dialog_id], name)
        else:
            store.create_dialog(node)
        written += _append_rest(whole, store, node.dialog_id, store.last(node.dialog_id))
    _put_sources(whole, store, session_id)
    if written or added:
        root = store.session(session_id).root
        moved = root not in {None, *(node.dialog_id for node in nodes)}
        store.update_session(session_id, trashed_at=None, root=root if moved else record.root)
    return BundleImport(session_id, len(nodes), written, len(added))


def _put_sources(whole: MemoryStore, store: Store, session_id: SessionId) -> None:
    for source in whole.sources(session_id):
        if store.source(source.identity) is None:
            store.put_source(source)


def _has(store: Store, session_id: SessionId) -> bool:
    try:
        store.session(session_id)
    except NotFound:
        return False
    return True


def _require_same(whole: MemoryStore, store: Store, node: Node, there: Node, name: str) -> None:
    if why := _difference(whole, store, node, there):
        what = f"{name} has another history of session {node.session_id[:12]} than this store: {why}."
        raise Conflict(node.session_id, why=what, hint="Import it into another store.")


def _difference(whole: MemoryStore, store: Store, node: Node, mine: Node) -> str:
    """Return the difference between two stores' copies of a dialog, except in length; or an empty string."""
    dialog = node.dialog_id
    if (mine.parent_id, mine.ranges) != (node.parent_id, node.ranges):
        return f"dialog {dialog[:12]} has another place in the tree"
    common = min(store.last(dialog).seq, whole.last(dialog).seq) + 1
    pairs = zip(store.headers(dialog, 0, common), whole.headers(dialog, 0, common), strict=False)
    return next((f"entry {dialog[:12]}:{one.seq} differs" for one, two in pairs if one.digest != two.digest), "")


def _append_rest(whole: MemoryStore, store: Store, dialog: DialogId, last: Header) -> int:
    start, stop = last.seq + 1, whole.last(dialog).seq + 1
    headers = list(whole.headers(dialog, start, stop))
    bodies = (body for _, body in whole.bodies(dialog, start, stop))
    for turn, group in groupby(headers, key=lambda header: header.turn_head == header.seq):
        drafts = [draft_of(decode_entry(body), body) for _, body in zip(group, bodies, strict=False)]
        if turn:
            last = store.append(dialog, drafts, last.turn_head)[-1]
        else:
            last = [store.annotate(dialog, one) for one in drafts][-1]
    return len(headers)
