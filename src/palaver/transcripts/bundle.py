"""Bundles: a whole session in one file that another store, on another machine, takes back as it was."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from dataclasses import fields as dataclass_fields
from functools import cache
from hashlib import sha256
from itertools import groupby
from typing import Any, NamedTuple, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from palaver.errors import Conflict, Erased, InvalidBundle, PalaverError, StoreDamaged, StoreError, UnknownSession
from palaver.ids import BlobId, DialogId, SessionId, now
from palaver.log import NOTHING, Draft, Header, MessageEntry, Node, body_digest, decode_entry, draft
from palaver.messages import canonical_json, media_of
from palaver.store.protocol import SessionRecord, SourceRecord, Store
from palaver.transcripts.frames import Frame, read_frames, write_frames

_Kind = TypeVar("_Kind", SessionRecord, Node, SourceRecord)
_BATCH = 1 << 20
_BEGUN = "taking-a-bundle"
"""The mark, in the metadata of a session in the trash, of a bundle that is not yet taken whole: taking it again goes on from there."""


def export_bundle(store: Store, session_id: SessionId) -> Iterator[bytes]:
    """Give the bundle of a session, piece by piece.

    It holds all dialogs, entries, media and kept sources. The same session gives the same bytes, from every store it was ever taken into.

    Raises:
        UnknownSession: No such session.
        MissingBlob: The store lacks a payload that an entry names.
        StoreDamaged: The store does not give back what was written.
    """
    yield from write_frames(_frames(store, store.session(session_id)))


def _frames(store: Store, record: SessionRecord) -> Iterator[Frame]:
    fields = {name: value for name, value in asdict(record).items() if name not in {"updated_at", "trashed_at"}}
    yield Frame("session", canonical_json(fields))
    sent: set[BlobId] = set()
    for node in store.nodes(record.session_id):
        yield Frame("dialog", canonical_json(_node_fields(node)))
        for header, body in _entries(store, node.dialog_id):
            yield from _payloads(store, _named(body), sent)
            yield Frame("entry" if header.turn_head == header.seq else "annotation", body)
    for source in store.sources(record.session_id):
        yield from _payloads(store, _of_source(store, source), sent)
        yield Frame("source", canonical_json(asdict(source)))


def _entries(store: Store, dialog_id: DialogId) -> Iterator[tuple[Header, bytes]]:
    """Give what a dialog holds now, each entry checked: a bundle must not make damage look like what was said."""
    stop = store.last(dialog_id).seq + 1
    bodies = store.bodies(dialog_id, 0, stop)
    for header in store.headers(dialog_id, 0, stop):
        seq, body = next(bodies, (-1, b""))
        if seq != header.seq or body_digest(body) != header.digest:
            raise StoreDamaged(f"{dialog_id[:12]}:{header.seq}", "it is not what was written")
        yield header, body


def _payloads(store: Store, named: Iterator[BlobId], sent: set[BlobId]) -> Iterator[Frame]:
    """Give each payload once, before the frame that names it."""
    for blob_id in named:
        if blob_id not in sent:
            sent.add(blob_id)
            data = store.blob(blob_id)
            if sha256(data).hexdigest() != blob_id:
                raise StoreDamaged(f"blob {blob_id[:12]}", "it is not what was written")
            yield Frame("blob", data)


def _named(body: bytes) -> Iterator[BlobId]:
    if b'"digest"' not in body:  # most entries name no payload, and need not be decoded
        return
    entry = decode_entry(body)
    message = getattr(entry, "message", None)
    if message is not None:
        for media in media_of(message):
            if media.url is None and media.digest:
                yield BlobId(media.digest)


def _of_source(store: Store, source: SourceRecord) -> Iterator[BlobId]:
    if source.index is not None:
        yield source.index
    if source.raw is not None:
        yield from (BlobId(piece) for piece in json.loads(store.blob(source.raw))["pieces"])
        yield source.raw


def _node_fields(node: Node) -> Mapping[str, Any]:
    fields = {name: getattr(node, name) for name in Node.__slots__ if name != "session_id"}
    return {**fields, "ranges": [[span.dialog, span.start, span.stop] for span in node.ranges]}


def _value(kind: type[_Kind], fields: Mapping[str, Any]) -> _Kind:
    """Make a value of what a bundle says: each field of its type, none that this version does not know."""
    unknown = sorted(set(fields) - set(_names(kind)))
    if unknown:
        raise TypeError(f"its fields {', '.join(unknown)} are not known")
    try:
        made: _Kind = _reader(cast("Any", kind)).validate_json(canonical_json(fields), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        raise TypeError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    return made


def _names(kind: Any) -> Iterator[str]:  # noqa: ANN401 - any dataclass
    return (field.name for field in dataclass_fields(kind))


@cache
def _reader(kind: Any) -> TypeAdapter[Any]:  # noqa: ANN401 - a class, which the cache takes for no key otherwise
    return TypeAdapter(kind)


class Taken(NamedTuple):
    """What taking a bundle came to.

    Attributes:
        session_id: The session.
        dialogs: How many dialogs the bundle holds.
        entries: How many entries were written; 0 when the store had them all.
    """

    session_id: SessionId
    dialogs: int
    entries: int


def import_bundle(store: Store, read: Callable[[int], bytes], name: str = "the bundle") -> Taken:
    """Take a bundle into a store. What the store has of the session already is compared and kept; what is new is added.

    Args:
        store: The store.
        read: Gives at most so many of the next bytes of the bundle, and none at the end.
        name: The bundle's name in errors.

    Raises:
        InvalidBundle: It is damaged, or holds another history of a session that the store has. What was written before the damage stays: of
            a session that is new here, in the trash; of one that the store has, as its newest entries.
    """
    return _Taking(store, name).take(read_frames(read, name))


def check_bundle(read: Callable[[int], bytes], name: str) -> None:
    """Read a bundle to its end, and write nothing.

    Raises:
        InvalidBundle: It is damaged.
    """
    for frame in read_frames(read, name):
        if frame.kind not in _Taking.KINDS:
            raise _unknown_kind(name, frame)


def _unknown_kind(name: str, frame: Frame) -> InvalidBundle:
    return InvalidBundle(f"{name} holds a frame of the unknown kind {frame.kind!r}.")


class _Taking:
    """A bundle on its way into a store."""

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self._name = name
        self._record: SessionRecord | None = None
        self._begun = False
        self._dialog: DialogId | None = None
        self._known = NOTHING
        self._at = 0
        self._dialogs = 0
        self._entries = 0
        self._pending: list[tuple[bool, Draft]] = []
        self._held = 0
        self._blobs: list[BlobId] = []

    def take(self, frames: Iterator[Frame]) -> Taken:
        for frame in frames:
            handle = self._HANDLERS.get(frame.kind)
            if handle is None:
                raise _unknown_kind(self._name, frame)
            if frame.kind != "session" and self._record is None:
                raise InvalidBundle(f"{self._name} does not begin with its session.")
            try:
                handle(self, frame.payload)
            except (KeyError, TypeError, ValueError, PalaverError) as error:
                if isinstance(error, InvalidBundle | StoreError | Conflict | Erased):
                    raise
                raise InvalidBundle(
                    f"{self._name} holds a {frame.kind} that cannot be taken: {error}",
                    hint="A newer palaver may have written it.",
                ) from error
            if self._held >= _BATCH:
                self._flush()
        self._flush()
        if self._record is None:
            raise InvalidBundle(f"{self._name} holds no session.")
        self._require_payloads()
        whole = {"metadata": dict(self._record.metadata)} if self._begun else {}
        self._store.update_session(self._record.session_id, trashed_at=None, root=self._record.root, **whole)
        return Taken(self._record.session_id, self._dialogs, self._entries)

    def _require_payloads(self) -> None:
        """Refuse to call whole what a sweep took from, in a taking that lasted longer than its age; now everything is named, and stays."""
        if not all(map(self._store.has_blob, self._blobs)):
            told = f"While {self._name} was taken, payloads of it were swept from the store."
            raise StoreError(told, hint="Take it again: what is there stays.")

    def _session(self, payload: bytes) -> None:
        self._record = record = _value(SessionRecord, self._fields(payload))
        try:
            self._begun = _BEGUN in self._store.session(record.session_id).metadata
        except UnknownSession:
            self._begun = True
            hidden = replace(record, trashed_at=now(), root=None, metadata={**record.metadata, _BEGUN: True})
            self._store.create_session(hidden)

    def _blob(self, payload: bytes) -> None:
        self._blobs.append(self._store.put_blob(payload))

    def _node(self, payload: bytes) -> None:
        self._flush()
        fields = self._fields(payload)
        ranges = [{"dialog": dialog, "start": start, "stop": stop} for dialog, start, stop in fields["ranges"]]
        node = _value(Node, {**fields, "session_id": self._session_id, "ranges": ranges})
        known = {one.dialog_id: one for one in self._store.nodes(self._session_id)}.get(node.dialog_id)
        if known is None:
            self._store.create_dialog(node)
        elif (known.parent_id, known.ranges) != (node.parent_id, node.ranges):
            raise self._other(f"dialog {node.dialog_id[:12]} has another place in the tree")
        self._dialog, self._at, self._known = node.dialog_id, 0, self._store.last(node.dialog_id)
        self._dialogs += 1

    @property
    def _session_id(self) -> SessionId:
        if self._record is None:
            raise InvalidBundle(f"{self._name} does not begin with its session.")
        return self._record.session_id

    def _entry(self, payload: bytes) -> None:
        self._take(payload, turn=True)

    def _annotation(self, payload: bytes) -> None:
        self._take(payload, turn=False)

    def _take(self, body: bytes, *, turn: bool) -> None:
        if self._dialog is None:
            raise InvalidBundle(f"{self._name} holds an entry before its dialog.")
        seq, self._at = self._at, self._at + 1
        if seq <= self._known.seq:
            if self._store.body(self._dialog, seq) != body:
                raise self._other(f"entry {self._dialog[:12]}:{seq} says something else")
            return
        entry = decode_entry(body)
        newest = next((one.response for _, one in reversed(self._pending) if one.response), self._known.response)
        ready = draft(entry, continues=newest if isinstance(entry, MessageEntry) else "")[0]
        self._pending.append((turn, ready._replace(body=body)))
        self._held += len(body)

    def _flush(self) -> None:
        """Write what is pending, in one durable step."""
        pending, self._pending, self._held = self._pending, [], 0
        if self._dialog is None or not pending:
            return
        with self._store.together():
            for turn, group in groupby(pending, key=lambda item: item[0]):
                drafts = [one for _, one in group]
                if turn:
                    self._known = self._store.append(self._dialog, drafts, self._known.turn_head)[-1]
                else:
                    self._known = [self._store.annotate(self._dialog, one) for one in drafts][-1]
        self._entries += len(pending)

    def _source(self, payload: bytes) -> None:
        self._flush()
        fields = self._fields(payload)
        if self._store.source(fields["identity"]) is None:
            self._store.put_source(_value(SourceRecord, fields))

    def _fields(self, payload: bytes) -> dict[str, Any]:
        fields = json.loads(payload)
        if not isinstance(fields, dict):
            raise TypeError("it is no JSON object")
        return fields

    def _other(self, why: str) -> InvalidBundle:
        return InvalidBundle(
            f"{self._name} holds another history of session {self._session_id[:12]} than this store: {why}.",
            hint="Take it into a store of its own.",
        )

    _HANDLERS: Mapping[str, Callable[[_Taking, bytes], None]] = {
        "session": _session,
        "blob": _blob,
        "dialog": _node,
        "entry": _entry,
        "annotation": _annotation,
        "source": _source,
    }
    KINDS = frozenset(_HANDLERS)
