"""Verifying a store: every figure it keeps is derived again from what it gives back, in constant memory.

A header follows from its entry's body and the header before it, a payload's id from its bytes, a fork's count from the ranges it names. What
cannot be derived (names, times of sessions, whose a dialog is) is read, and must make sense. A store adds what only it can look at, its rows
and its index, by a method `faults`.

What is found is told one fault after another, each with its place; nothing is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Protocol, TypeAlias, runtime_checkable

from palaver.errors import IllegalEntry, InvalidInput, MissingBlob, PalaverError, StoreDamaged
from palaver.ids import BlobId, DialogId, SessionId
from palaver.log import (
    KINDS,
    NOTHING,
    Header,
    Inbox,
    LateResult,
    MessageEntry,
    Node,
    Span,
    body_digest,
    decode_entry,
    draft,
    next_header,
    rule,
)
from palaver.messages import media_of
from palaver.plurals import counted
from palaver.store.copying import Copyable
from palaver.store.protocol import Store

__all__ = ["Extract", "Fault", "Inspectable", "Verification", "verify_store"]

Extract: TypeAlias = Callable[[str, bytes], str]
"""Gives the text of an entry for the full-text index, of its kind and its body: the same function that the index was made with."""

_SHORT = 12


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing in a store that is not as it was written.

    Attributes:
        place: Where: `dialog:entry`, a payload's id, a session's id, or the part of the store.
        code: What it is, one word for counting: `damaged_body`, `unreadable_body`, `lost_body`, `lost_header`, `wrong_header`, `damaged_blob`,
            `missing_blob`, `dangling_parent`, `wrong_ranges`, `wrong_root`, `wrong_activity`, `unreadable`, `loose_rows`, `wrong_index`,
            `wrong_schema`, `damaged_file`.
        what: What is wrong, in one sentence.
    """

    place: str
    code: str
    what: str


@runtime_checkable
class Inspectable(Protocol):
    """A store that can look at its own rows: all of palaver's do."""

    def faults(self, extract: Extract | None) -> Iterator[tuple[str, str, str]]:
        """Find rows that belong to nothing, and what the full-text index holds otherwise than the log: (place, code, what).

        Args:
            extract: What the index was made with; without it the texts in it are not compared.
        """
        ...


@dataclass(slots=True)
class Verification:
    """A run over a store: iterate it to run it; it counts what it read.

    Attributes:
        sessions: Sessions read so far.
        dialogs: Dialogs read so far.
        entries: Entries read so far.
        size: The length of their bodies, in bytes.
        blobs: Payloads read so far.
        faults: How many faults were found so far.
    """

    store: Store = field(repr=False)
    session_id: SessionId | None = None
    extract: Extract | None = field(default=None, repr=False)
    sessions: int = 0
    dialogs: int = 0
    entries: int = 0
    size: int = 0
    blobs: int = 0
    faults: int = 0

    def __iter__(self) -> Iterator[Fault]:
        """Read everything from the start and give what is wrong, as it is found."""
        self.sessions = self.dialogs = self.entries = self.size = self.blobs = self.faults = 0
        for fault in self._run():
            self.faults += 1
            yield fault

    def _run(self) -> Iterator[Fault]:
        if self.session_id is not None:
            yield from self._session(self.session_id)
            return
        if isinstance(self.store, Inspectable):
            yield from (Fault(*found) for found in self.store.faults(self.extract))
        yield from _spared("sessions", self._all_sessions())
        if isinstance(self.store, Copyable):
            yield from _spared("payloads", self._all_payloads(self.store.blob_ids()))

    def _all_sessions(self) -> Iterator[Fault]:
        for session_id in _session_ids(self.store):
            yield from _spared(session_id, self._session(session_id))

    def _all_payloads(self, ids: Iterator[BlobId]) -> Iterator[Fault]:
        for blob_id in ids:
            self.blobs += 1
            yield from _spared(blob_id, _payload(self.store, blob_id))

    def _session(self, session_id: SessionId) -> Iterator[Fault]:
        record = self.store.session(session_id)
        nodes = self.store.nodes(session_id)
        sources = self.store.sources(session_id)
        self.sessions += 1
        known = {node.dialog_id for node in nodes}
        if record.root is not None and record.root not in known:
            what = f"The dialog to go on with, {record.root}, is not in the session."
            yield Fault(session_id, "wrong_root", what)
        for source in sources:
            for blob_id in (source.raw, source.index):
                if blob_id is not None and not self.store.has_blob(blob_id):
                    yield Fault(source.identity, "missing_blob", f"What was kept of its import, {blob_id}, is gone.")
        for node in nodes:
            self.dialogs += 1
            yield from _place_in_tree(self.store, node, known)
            yield from _spared(node.dialog_id[:_SHORT], self._dialog(node.dialog_id))

    def _dialog(self, dialog_id: DialogId) -> Iterator[Fault]:
        """Derive each header from its body and the header before it."""
        last = NOTHING
        length = _length(self.store, dialog_id)  # what is appended meanwhile is left to the next run
        bodies = _Bodies(self.store, dialog_id, length)
        for header in _headers(self.store, dialog_id, length):
            if isinstance(header, Fault):
                yield header
                continue
            while last.seq + 1 < header.seq:
                last = last._replace(seq=last.seq + 1)
                yield Fault(_at(dialog_id, last.seq), "lost_header", "The entry is not there, and later ones are.")
            body = bodies.at(header.seq)
            self.entries += 1
            self.size += len(body or b"")
            wrong, last = _judged(dialog_id, header, body, last)
            yield from wrong
            if body is not None and self.session_id is not None:
                yield from self._media(dialog_id, header.seq, body)
            elif body is not None:
                yield from _missing_media(self.store, dialog_id, header.seq, body)

    def _media(self, dialog_id: DialogId, seq: int, body: bytes) -> Iterator[Fault]:
        """Read the payloads of an entry, for a session alone has no list of its own."""
        for digest in _digests(body):
            self.blobs += 1
            try:
                yield from _payload(self.store, digest)
            except MissingBlob:
                yield _gone(dialog_id, seq, digest)


def verify_store(store: Store, session_id: SessionId | None = None, *, extract: Extract | None = None) -> Verification:
    """Give a run that derives again whatever the store, or one session of it, can be wrong about; iterate it for what is wrong.

    For all of a store, also its rows, its payloads and its full-text index are looked at; trashed sessions are read like others.

    Args:
        store: The store; it is only read.
        session_id: The session, or None for everything.
        extract: What the full-text index was made with (`palaver.session.searchable`); without it the texts in it are not compared.

    Raises:
        UnknownSession: No such session; on iterating.
        StoreError: The store cannot be read at all; on iterating.
    """
    return Verification(store, session_id, extract)


def _spared(place: str, found: Iterator[Fault]) -> Iterator[Fault]:
    """Give what is found, and, where the store itself cannot go on reading, that; what comes after is read all the same."""
    try:
        yield from found
    except StoreDamaged as error:
        yield Fault(place, "unreadable", str(error))


def _session_ids(store: Store) -> Iterator[SessionId]:
    for trashed in (False, True):
        yield from (record.session_id for record in store.sessions(trashed=trashed))


def _at(dialog_id: DialogId, seq: int) -> str:
    return f"{dialog_id[:_SHORT]}:{seq}"


# --- entries --------------------------------------------------------------------------------------------------------------------


def _headers(store: Store, dialog_id: DialogId, stop: int | None) -> Iterator[Header | Fault]:
    """Give the headers; one that cannot be read is a fault, and the next one is read."""
    following = 0
    headers = iter(store.headers(dialog_id, 0, stop))
    while True:
        try:
            header = next(headers, None)
        except StoreDamaged as error:
            yield Fault(_at(dialog_id, following), "wrong_header", str(error))
            following += 1
            headers = iter(store.headers(dialog_id, following, stop))
            continue
        if header is None:
            return
        following = header.seq + 1
        yield header


class _Bodies:
    """The bodies of a dialog, asked for by number in ascending order; one that is missing is None."""

    def __init__(self, store: Store, dialog_id: DialogId, stop: int | None) -> None:
        self._bodies = iter(store.bodies(dialog_id, 0, stop))
        self._held: tuple[int, bytes | None] | None = next(self._bodies, None)

    def at(self, seq: int) -> bytes | None:
        """Give the body of an entry, or None where the store has none."""
        while self._held is not None and self._held[0] < seq:
            self._held = next(self._bodies, None)
        return self._held[1] if self._held is not None and self._held[0] == seq else None


def _judged(dialog_id: DialogId, header: Header, body: bytes | None, last: Header) -> tuple[list[Fault], Header]:
    """Give what is wrong with an entry, and the header that the next one follows: the derived one, where there is one."""
    place = _at(dialog_id, header.seq)
    if body is None:
        return [Fault(place, "lost_body", "Its header is there, its body is not.")], header
    if body_digest(body) != header.digest:
        return [Fault(place, "damaged_body", "Its body does not give the digest in its header.")], header
    try:
        derived = _derived(header, body, last)
    except InvalidInput as error:
        return [Fault(place, "unreadable_body", f"Its body is as it was written, and no entry: {error}")], header
    names = [name for name in Header._fields if getattr(header, name) != getattr(derived, name)]
    if names:
        told = ", ".join(f"{name} is {getattr(header, name)!r}, not {getattr(derived, name)!r}" for name in names)
        return [Fault(place, "wrong_header", f"Its header does not follow from its body: {told}."[:300])], derived
    return [], derived


def _derived(header: Header, body: bytes, last: Header) -> Header:
    """Give the header that follows from a body and the header before; of a kind unknown here, only what every kind has."""
    entry = decode_entry(body)
    general: dict[str, Any] = {
        "size": len(body),
        "total": last.total + len(body),
        "digest": body_digest(body),
        "seq": last.seq + 1,
    }
    if entry.kind not in KINDS or entry.kind == "tombstone":
        return header._replace(**general)
    ready, _ = draft(entry, continues=last.response)
    law = rule(entry.kind)
    turn = header.turn_head == header.seq if law.turn and law.beside else law.turn
    try:
        made = next_header(ready._replace(body=body), last, turn=turn)
    except IllegalEntry:  # it was judged where it was first written, perhaps by other rules
        return header._replace(**general, kind=entry.kind, at=entry.at)
    return made


def _digests(body: bytes) -> Iterator[BlobId]:
    """Give the payloads that an entry names."""
    if b'"digest"' not in body:
        return
    try:
        entry = decode_entry(body)
    except PalaverError:
        return  # told of where the body was judged
    if isinstance(entry, MessageEntry | Inbox | LateResult):
        yield from (BlobId(media.digest) for media in media_of(entry.message) if media.url is None)


def _missing_media(store: Store, dialog_id: DialogId, seq: int, body: bytes) -> Iterator[Fault]:
    yield from (_gone(dialog_id, seq, digest) for digest in _digests(body) if not store.has_blob(digest))


def _gone(dialog_id: DialogId, seq: int, digest: BlobId) -> Fault:
    return Fault(_at(dialog_id, seq), "missing_blob", f"A payload it names, {digest}, is not in the store.")


def _payload(store: Store, blob_id: BlobId) -> Iterator[Fault]:
    if sha256(store.blob(blob_id)).hexdigest() != blob_id:
        yield Fault(blob_id, "damaged_blob", "Its bytes do not give its id.")


# --- the tree -------------------------------------------------------------------------------------------------------------------


def _place_in_tree(store: Store, node: Node, known: Collection[DialogId]) -> Iterator[Fault]:
    """Find what a dialog says of its ancestors that is not so."""
    place = node.dialog_id[:_SHORT]
    if node.parent_id is not None and node.parent_id not in known:
        yield Fault(place, "dangling_parent", f"Its parent {node.parent_id} is not in the session.")
    wrong = [fault for span in node.ranges for fault in _shared(store, place, span, known)]
    yield from wrong
    counts = [] if wrong else [_count(store, span) for span in node.ranges]
    held = sum(one for one in counts if one is not None)
    if not wrong and None not in counts and held != node.inherited:
        what = f"It says that it shares {counted(node.inherited, 'message')}, and its ranges hold {held}."
        yield Fault(place, "wrong_ranges", what)


def _shared(store: Store, place: str, span: Span, known: Collection[DialogId]) -> Iterator[Fault]:
    """Find what is wrong with one range of an ancestor's entries."""
    if span.dialog not in known:
        yield Fault(place, "dangling_parent", f"It shares entries of {span.dialog}, which is not in the session.")
        return
    length = _length(store, span.dialog)
    if length is not None and not 0 <= span.start <= span.stop <= length:
        what = f"It shares entries {span.start} to {span.stop} of {span.dialog[:_SHORT]}, which holds {length}."
        yield Fault(place, "wrong_ranges", what)


def _count(store: Store, span: Span) -> int | None:
    """Give how many messages begin in a range; None where a header at its edge cannot be read."""
    if span.start == span.stop:
        return 0
    before, upto = (_number(store, span.dialog, seq) for seq in (span.start - 1, span.stop - 1))
    return None if before is None or upto is None else upto - before


def _length(store: Store, dialog_id: DialogId) -> int | None:
    try:
        return store.last(dialog_id).seq + 1
    except StoreDamaged:
        return None


def _number(store: Store, dialog_id: DialogId, seq: int) -> int | None:
    """Give the count of messages up to an entry; None where it cannot be read."""
    try:
        return 0 if seq < 0 else store.header(dialog_id, seq).number
    except PalaverError:
        return None
