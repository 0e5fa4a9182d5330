"""Verifying a store: derive every figure it keeps from the entries it returns, in constant memory, and report what differs.

A header follows from its entry's body and the header before it, a payload's id from its bytes, a fork's count from its ranges. A store adds
what only it can look at, its rows and its index, by a method `faults`. Nothing is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Protocol, TypeAlias, runtime_checkable

from palaver.errors import InvalidInput, NotFound, PalaverError, StoreDamaged
from palaver.ids import BlobId, DialogId, SessionId
from palaver.log import NOTHING, Header, Node, Span, derived_header, media_in, messages_in
from palaver.plurals import counted
from palaver.store.protocol import Copyable, Store
from palaver.store.records import SHORT_DIGITS

Extract: TypeAlias = Callable[[str, bytes], str]
"""Returns the text of an entry for the full-text index, from its kind and body: the function that the index was made with."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing in a store that is not as it was written.

    Attributes:
        place: Where: `dialog:entry`, a payload's id, a session's id, or the part of the store.
        code: One word for counting: `damaged_body`, `unreadable_body`, `lost_body`, `lost_header`, `wrong_header`, `damaged_blob`,
            `missing_blob`, `dangling_parent`, `wrong_ranges`, `wrong_root`, `wrong_activity`, `unreadable`, `loose_rows`, `wrong_index`,
            `wrong_schema`, `damaged_file`.
        what: What is wrong, in one sentence.
    """

    place: str
    code: str
    what: str


@runtime_checkable
class Inspectable(Protocol):
    """A store that looks at its own rows and index."""

    def faults(self, extract: Extract | None) -> Iterator[tuple[str, str, str]]:
        """Return rows that belong to nothing, and where the full-text index differs from the log: (place, code, what)."""
        ...


@dataclass(slots=True)
class Verification:
    """A run over a store: iterate it to run it; it counts what it reads.

    Attributes:
        sessions: Sessions read so far.
        dialogs: Dialogs read so far.
        entries: Entries read so far.
        size: The length of their bodies, in bytes.
        blobs: Payloads read so far, of each session those that it names.
        faults: Faults found so far.
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
        """Read everything from the start and report faults as they are found."""
        self.sessions = self.dialogs = self.entries = self.size = self.blobs = self.faults = 0
        for fault in self._run():
            self.faults += 1
            yield fault

    def _run(self) -> Iterator[Fault]:
        store = self.store
        if self.session_id is not None:
            yield from self._session(self.session_id)
            return
        if isinstance(store, Inspectable):
            yield from (Fault(*fault) for fault in store.faults(self.extract))
        for trashed in (False, True):
            for record in store.sessions(trashed=trashed):
                yield from _continued(record.session_id, self._session(record.session_id))

    def _session(self, session_id: SessionId) -> Iterator[Fault]:
        record = self.store.session(session_id)
        nodes = self.store.nodes(session_id)
        self.sessions += 1
        known = {node.dialog_id for node in nodes}
        if record.root is not None and record.root not in known:
            yield Fault(session_id, "wrong_root", f"The dialog to continue with, {record.root}, is not in the session.")
        for source in self.store.sources(session_id):
            for blob_id in (source.raw, source.index):
                if blob_id is not None and not self.store.has_blob(session_id, blob_id):
                    yield Fault(source.identity, "missing_blob", f"A kept payload of its import, {blob_id}, is gone.")
        held: dict[Span, int] = {}
        for node in nodes:
            self.dialogs += 1
            place = node.dialog_id[:SHORT_DIGITS]
            yield from _continued(place, _place_in_tree(self.store, node, known, held))
            yield from _continued(place, self._dialog(node, record.updated_at))
        for blob_id in self.store.blob_ids(session_id) if isinstance(self.store, Copyable) else ():
            yield from _continued(blob_id, self._payload(session_id, blob_id))

    def _dialog(self, node: Node, active: float) -> Iterator[Fault]:
        """Derive each header from its body and the header before it."""
        dialog_id = node.dialog_id
        last, latest = NOTHING, active
        stop = self.store.last(dialog_id).seq + 1  # what is appended meanwhile is left to the next run
        bodies = self.store.bodies(dialog_id, 0, stop)
        seq, body = next(bodies, (stop, None))
        for header in self.store.headers(dialog_id, 0, stop):
            yield from _lost(dialog_id, last.seq + 1, header.seq)
            last = last._replace(seq=header.seq - 1)
            while seq < header.seq:
                seq, body = next(bodies, (stop, None))
            own = body if seq == header.seq else None
            self.entries += 1
            self.size += len(own or b"")
            fault, last = self._judged(dialog_id, header, own, last)
            if fault is not None:
                yield fault
            latest = max(latest, header.at)
            yield from self._media(node, header.seq, own)
        yield from _lost(dialog_id, last.seq + 1, stop)
        if active < latest:
            what = f"An entry of {dialog_id[:SHORT_DIGITS]} is newer than its session says."
            yield Fault(dialog_id[:SHORT_DIGITS], "wrong_activity", what)

    def _judged(
        self, dialog_id: DialogId, header: Header, body: bytes | None, last: Header
    ) -> tuple[Fault | None, Header]:
        """Return what is wrong with an entry, and the header that the next one follows: the derived one, where there is one."""
        place = _at(dialog_id, header.seq)
        try:
            derived = derived_header(header, self.store.body(dialog_id, header.seq) if body is None else body, last)
        except StoreDamaged as error:
            return Fault(place, "damaged_body", error.why), header
        except InvalidInput as error:
            return Fault(place, "unreadable_body", f"Its body is as it was written, and not an entry: {error}"), header
        names = [name for name in Header._fields if getattr(header, name) != getattr(derived, name)]
        if not names:
            return None, derived
        told = ", ".join(f"{name} is {getattr(header, name)!r}, not {getattr(derived, name)!r}" for name in names)
        return Fault(place, "wrong_header", f"Its header does not follow from its body: {told}."[:300]), derived

    def _media(self, node: Node, seq: int, body: bytes | None) -> Iterator[Fault]:
        """Look for the payloads of an entry."""
        try:
            named = tuple(media_in(body or b""))
        except PalaverError:
            return  # reported where the body was judged
        for digest in named:
            if not self.store.has_blob(node.session_id, digest):
                where = _at(node.dialog_id, seq)
                yield Fault(where, "missing_blob", f"A payload it names, {digest}, is not in the store.")

    def _payload(self, session_id: SessionId, blob_id: BlobId) -> Iterator[Fault]:
        self.blobs += 1
        if sha256(self.store.blob(session_id, blob_id)).hexdigest() != blob_id:
            yield Fault(blob_id, "damaged_blob", "Its bytes do not match its id.")


def verify_store(store: Store, session_id: SessionId | None = None, *, extract: Extract | None = None) -> Verification:
    """Return a run that checks a store, or one session of it; iterate it for the faults.

    Args:
        store: The store; it is only read. Sessions in the trash are read like others.
        session_id: The session, or None for everything: then its rows, payloads and full-text index are checked, too.
        extract: What the full-text index was made with; without it the indexed texts are not compared.

    Raises:
        NotFound: No such session; on iterating.
        StoreError: The store cannot be read at all; on iterating.
    """
    return Verification(store, session_id, extract)


def _continued(place: str, faults: Iterator[Fault]) -> Iterator[Fault]:
    """Return the faults, and one more when the store cannot be read further there; the rest is read all the same."""
    try:
        yield from faults
    except (StoreDamaged, NotFound) as error:
        yield Fault(place, "unreadable", str(error))


def _lost(dialog_id: DialogId, start: int, stop: int) -> Iterator[Fault]:
    """Return a fault for the entries of a range, which have no headers, if there are any."""
    if (lost := stop - start) > 0:
        what = f"The {'header' if lost == 1 else 'headers'} of {counted(lost, 'entry')} from here on cannot be read."
        yield Fault(_at(dialog_id, start), "lost_header", what)


def _at(dialog_id: DialogId, seq: int) -> str:
    return f"{dialog_id[:SHORT_DIGITS]}:{seq}"


# --- the tree -------------------------------------------------------------------------------------------------------------------


def _place_in_tree(store: Store, node: Node, known: Collection[DialogId], held: dict[Span, int]) -> Iterator[Fault]:
    """Find what a dialog says of its ancestors that is not so.

    Args:
        store: The store.
        node: The dialog.
        known: The dialogs of its session.
        held: The number of messages of each range that was counted already: the forks of a chain share most of their ranges.
    """
    place = node.dialog_id[:SHORT_DIGITS]
    if node.parent_id is not None and node.parent_id not in known:
        yield Fault(place, "dangling_parent", f"Its parent {node.parent_id} is not in the session.")
    for span in node.ranges:
        if span in held:
            continue
        if span.dialog not in known:
            yield Fault(place, "dangling_parent", f"It shares entries of {span.dialog}, which is not in the session.")
            return
        length = store.last(span.dialog).seq + 1
        if not 0 <= span.start <= span.stop <= length:
            what = (
                f"It shares entries {span.start} to {span.stop} of {span.dialog[:SHORT_DIGITS]}, which holds {length}."
            )
            yield Fault(place, "wrong_ranges", what)
            return
        held[span] = _messages(store, span)
    inherited = sum(held[span] for span in node.ranges)
    if inherited != node.inherited:
        what = f"It says that it shares {counted(node.inherited, 'message')}, and its ranges hold {inherited}."
        yield Fault(place, "wrong_ranges", what)


def _messages(store: Store, span: Span) -> int:
    """Return how many messages begin in a range; none where a header at its edge is gone."""
    try:
        return messages_in(store, [span])
    except (NotFound, StoreDamaged):
        return 0
