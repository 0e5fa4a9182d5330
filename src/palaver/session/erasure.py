"""Erasure: removing what was written, for good and with a receipt. One transaction for the log, then work on what lies around it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

from palaver.errors import InvalidInput, NotFound, StoreDamaged, StoreError
from palaver.ids import BlobId, DialogId, SessionId, new_session_id, now
from palaver.log import (
    Approval,
    BranchSummary,
    Compaction,
    ContextEdit,
    Derived,
    Entry,
    Erasure,
    Handle,
    Header,
    MessageEntry,
    Node,
    Span,
    body_digest,
    clip,
    decode_entry,
    draft,
    from_header,
    lineage,
    note,
    stand_in,
    without,
)
from palaver.session.receipts import (
    Receipt,
    Remaining,
    digest_of,
    erasing_store,
    pending_of,
    read_pending,
    subject_digest,
)
from palaver.store.erasing import (
    Eraser,
    Erasing,
    Gone,
    KeptReceipt,
    NotedFile,
    Placed,
    source_name,
)
from palaver.store.protocol import SourceRecord, Store
from palaver.store.records import references

__all__ = ["ERASED_MARK", "ErasurePreview", "erase", "finish_erasures", "note_file", "preview_erasure"]

ERASED_MARK = "palaver.erased"
"""The key in the metadata of a session of which something was erased: an import of it keeps no source file any more."""

_TO_SCRUB = "the storage still holds the bytes of what was deleted"
_SUMMARIES = frozenset({"branch_summary", "compaction_summary"})
_DERIVED_KINDS = frozenset({"compaction", "context_edit", "branch_summary", "label", "quarantine", "custom"})
_DELIVERED = "palaver.inbox"


# --- what is asked for ------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What is to be erased: exactly one of the first four.

    Attributes:
        session: A session, by its id.
        dialog: A dialog, by its id or the first 6 or more digits of it.
        subject: All sessions whose data it is, those in the trash, too.
        entries: Single entries.
        children: With a dialog, all that grew from it as well.
        tombstones: With a dialog that others grew from, leave tombstones for them in place of its entries.
    """

    session: str = ""
    dialog: str = ""
    subject: str = ""
    entries: tuple[Handle, ...] = ()
    children: bool = False
    tombstones: bool = False

    def __post_init__(self) -> None:
        """Refuse what is not one scope.

        Raises:
            InvalidInput: None, or more than one, of the first four is given, or an option does not go with it.
        """
        named = [name for name in ("session", "dialog", "subject", "entries") if getattr(self, name)]
        if len(named) != 1:
            found = ", ".join(named) or "none"
            raise InvalidInput(f"Name one of session, dialog, subject and entries to erase; found: {found}.")
        if (self.children or self.tombstones) and not self.dialog:
            raise InvalidInput("children and tombstones are about what grew from a dialog: name a dialog.")
        if self.children and self.tombstones:
            raise InvalidInput("Choose one of children and tombstones.")

    @classmethod
    def of(cls, entries: Iterable[Handle | str] = (), **named: Any) -> Scope:  # noqa: ANN401 - the fields, or None
        """Return the scope of what a caller named.

        Raises:
            InvalidInput: As above, or an entry is not a handle.
        """
        handles = [Handle.parse(one) if isinstance(one, str) else one for one in entries]
        places = tuple(dict.fromkeys(one._replace(block=None) for one in handles))
        return cls(entries=places, **{name: value for name, value in named.items() if value})

    def told(self) -> Mapping[str, Any]:
        """Return it as a receipt says it: a subject only by a salted digest, because a receipt outlives the subject's data."""
        if self.subject:
            salt = new_session_id()
            return {"what": "subject", "salt": salt, "digest": subject_digest(salt, self.subject)}
        what = next(name for name in ("session", "dialog", "entries") if getattr(self, name))
        names = [f"{one.dialog}:{one.seq}" for one in self.entries] or [self.session or self.dialog]
        extra = {name: True for name in ("children", "tombstones") if getattr(self, name)}
        return {"what": what, "names": names, **extra}


# --- what it reaches --------------------------------------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class _Plan:
    """What an erasure reaches.

    Attributes:
        scope: What was asked for.
        sessions: The sessions that go.
        dialogs: The dialogs that go, each after those that grew from it.
        cleared: The dialogs that stay with nothing but tombstones.
        tombstones: The entries that are erased and leave a tombstone, by dialog.
        parts: The entries of which only what was derived from erased ones goes, by dialog.
        blobs: The payloads that they name, and those of kept source files: each goes if nothing else names it.
        sources: The imported conversations that are forgotten.
        reduced: The imported conversations whose kept file goes, because it holds what is erased.
        files: The files that the touched sessions were exported to.
    """

    scope: Scope
    sessions: tuple[SessionId, ...] = ()
    dialogs: tuple[DialogId, ...] = ()
    cleared: tuple[DialogId, ...] = ()
    tombstones: dict[DialogId, set[int]] = field(default_factory=dict)
    parts: dict[DialogId, set[int]] = field(default_factory=dict)
    blobs: set[BlobId] = field(default_factory=set)
    sources: tuple[SourceRecord, ...] = ()
    reduced: tuple[SourceRecord, ...] = ()
    files: tuple[NotedFile, ...] = ()
    entries: int = 0
    messages: int = 0

    def gone(self, store: Erasing) -> tuple[Span, ...]:
        """Return all entries that say less afterwards, or are gone."""
        dialogs = (Span(one, 0, store.last(one).seq + 1) for one in self.dialogs)
        return (*dialogs, *_spans(self.tombstones), *_spans(self.parts))


def _spans(places: Mapping[DialogId, Iterable[int]]) -> Iterator[Span]:
    for dialog, seqs in places.items():
        yield from (Span(dialog, seq, seq + 1) for seq in sorted(seqs))


def _planned(store: Erasing, scope: Scope) -> _Plan:
    """Return what an erasure reaches, computed from the log alone."""
    plan = _Plan(scope=scope)
    if scope.entries or scope.dialog:
        sessions = _of_entries(store, plan) if scope.entries else _of_dialog(store, plan)
        for session in sessions:
            _reach_derived(store, plan, store.nodes(session))
            plan.reduced += tuple(one for one in store.sources(session) if one.raw is not None)
    else:
        plan.sessions = sessions = _of_sessions(store, scope)
        for session in sessions:
            plan.dialogs += tuple(node.dialog_id for node in reversed(store.nodes(session)))
            plan.sources += store.sources(session)
    plan.files = tuple(file for session in sessions for file in store.files(session))
    _count(store, plan)
    plan.blobs |= set(_of_sources(store, plan.sources, index=True)) | set(_of_sources(store, plan.reduced, index=False))
    return plan


def _of_sessions(store: Erasing, scope: Scope) -> tuple[SessionId, ...]:
    if scope.session:
        return (store.session(SessionId(scope.session)).session_id,)
    records = chain(store.sessions(subject=scope.subject), store.sessions(subject=scope.subject, trashed=True))
    found = tuple(sorted(record.session_id for record in records))
    if not found:
        raise InvalidInput("No session has this subject.", hint="A subject is matched whole, with its case.")
    return found


def _of_dialog(store: Erasing, plan: _Plan) -> tuple[SessionId, ...]:
    scope = plan.scope
    dialog = store.resolve(scope.dialog)
    session = store.node(dialog).session_id
    found, below = {dialog}, list[DialogId]()
    for node in store.nodes(session):  # what grew from it, or shares its entries
        if node.dialog_id not in found and not found.isdisjoint({node.parent_id, *(s.dialog for s in node.ranges)}):
            found.add(node.dialog_id)
            below.append(node.dialog_id)
    if below and not (scope.children or scope.tombstones):
        raise InvalidInput(
            f"{len(below)} dialogs grew from dialog {dialog}: {', '.join(one[:12] for one in below)}.",
            hint="Erase them with it (children), or leave tombstones for them (tombstones).",
        )
    if below and scope.tombstones:
        plan.cleared = (dialog,)
        plan.tombstones[dialog] = set(range(store.last(dialog).seq + 1))
    else:
        plan.dialogs = (*reversed(below), dialog)
    return (session,)


def _of_entries(store: Erasing, plan: _Plan) -> tuple[SessionId, ...]:
    sessions = set()
    for one in plan.scope.entries:
        dialog = store.resolve(one.dialog)
        if not 0 <= one.seq <= store.last(dialog).seq:
            raise NotFound(str(one), what="entry")
        plan.tombstones.setdefault(dialog, set()).add(one.seq)
        sessions.add(store.node(dialog).session_id)
    return tuple(sorted(sessions))


def _reach_derived(store: Erasing, plan: _Plan, nodes: Sequence[Node]) -> None:
    """Add what was derived from erased entries within their session: summaries, records, copies, and what was derived from those."""
    size = -1
    while size != (size := sum(map(len, chain(plan.tombstones.values(), plan.parts.values())))):
        search = _Search(store, plan)
        for node in nodes:
            if node.dialog_id not in plan.dialogs:
                search.look(node)


class _Search:
    """A look for entries that hold words of erased ones."""

    def __init__(self, store: Erasing, plan: _Plan) -> None:
        self._store = store
        self._plan = plan
        self._spans = plan.gone(store)
        self._first: dict[DialogId, int] = {}
        self._calls: set[str] = set()
        self._queued: dict[DialogId, set[int]] = {}
        self._delivered: dict[DialogId, set[int]] = {}
        for span in self._spans:
            self._first[span.dialog] = min(span.start, self._first.get(span.dialog, span.start))
            for header in store.headers(span.dialog, span.start, span.stop):
                self._learn(span.dialog, header)

    def _learn(self, dialog: DialogId, header: Header) -> None:
        """Note what to look for: the calls of an erased entry, and the other copy of a message that waited in the inbox."""
        if header.role != "tool":
            self._calls.update(header.calls)
        if header.kind == "inbox":
            self._queued.setdefault(dialog, set()).add(header.seq)
        elif (queued := self._delivers(dialog, header)) is not None:
            self._delivered.setdefault(dialog, set()).add(queued)

    def _delivers(self, dialog: DialogId, header: Header) -> int | None:
        """Return the number of the inbox entry that a message delivered, or None."""
        if header.kind != "message" or header.role != "user":
            return None
        entry = self._entry(dialog, header.seq)
        place = entry.message.metadata.get(_DELIVERED) if isinstance(entry, MessageEntry) else None
        return place if isinstance(place, int) else None

    def look(self, node: Node) -> None:
        """Look at the own entries of a dialog that stays."""
        dialog, plan = node.dialog_id, self._plan
        inherits = any(True for _ in clip(node.ranges, self._spans))
        first = self._first.get(dialog)
        tombstones, parts = plan.tombstones.setdefault(dialog, set()), plan.parts.setdefault(dialog, set())
        for header in self._store.headers(dialog):
            if header.seq in tombstones:
                continue
            later = inherits or (first is not None and header.seq > first)
            if self._repeats(dialog, header, later=later):
                tombstones.add(header.seq)
                parts.discard(header.seq)
            elif header.kind in _DERIVED_KINDS:
                entry = self._entry(dialog, header.seq)
                if entry is None and later:
                    tombstones.add(header.seq)  # nobody can remove from it what it may repeat
                elif entry is not None and _without(entry, self._spans, later=later) is not None:
                    parts.add(header.seq)

    def _repeats(self, dialog: DialogId, header: Header, *, later: bool) -> bool:
        """Return whether an entry says nothing but what erased ones said: a summary, a call's manifest, a queued copy, a decision."""
        if header.kind == "invocation" or (header.kind == "message" and header.role in _SUMMARIES):
            return later
        if header.kind == "inbox":
            return header.seq in self._delivered.get(dialog, ())
        if header.kind == "approval" and self._calls:
            entry = self._entry(dialog, header.seq)
            return isinstance(entry, Approval) and entry.call_id in self._calls
        queued = self._queued.get(dialog)
        return bool(queued) and self._delivers(dialog, header) in (queued or ())

    def _entry(self, dialog: DialogId, seq: int) -> Entry | None:
        """Read an entry; None where it is lost or cannot be read."""
        try:
            return decode_entry(self._store.body(dialog, seq))
        except (StoreDamaged, InvalidInput):
            return None


def _without(entry: Entry, spans: tuple[Span, ...], *, later: bool, mark: Erasure | None = None) -> Entry | None:
    """Return an entry without what was derived from erased ones; None where nothing was.

    A derived text that does not name its sources counts as derived from everything before it.
    """

    def suspect(text: Derived | BranchSummary) -> bool:
        return later and not text.sources

    return without(entry, spans, mark or Erasure(at=0.0, receipt=""), suspect)


def _count(store: Erasing, plan: _Plan) -> None:
    """Count the erased entries, and find the payloads that they name."""
    for dialog in plan.dialogs:
        last = store.last(dialog)
        plan.entries += last.seq + 1
        plan.messages += last.number
        plan.blobs.update(blob for _, body in store.bodies(dialog) for blob in _payloads(store, body))
    for span in _spans(plan.tombstones):
        before = store.header(span.dialog, span.start - 1).number if span.start else 0
        plan.entries += 1
        plan.messages += store.header(span.dialog, span.start).number - before
        bodies = store.bodies(span.dialog, span.start, span.stop)
        plan.blobs.update(blob for _, body in bodies for blob in _payloads(store, body))


def _payloads(store: Erasing, body: bytes) -> Iterator[BlobId]:
    yield from (blob for blob in references(body) if store.has_blob(blob))


def _of_sources(store: Erasing, sources: Iterable[SourceRecord], *, index: bool) -> Iterator[BlobId]:
    for source in sources:
        if source.raw is not None and store.has_blob(source.raw):
            yield source.raw
            yield from map(BlobId, json.loads(store.blob(source.raw))["pieces"])
        if index and source.index is not None:
            yield source.index


# --- previewing and doing -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasurePreview:
    """What an erasure would do. Nothing was written.

    Attributes:
        sessions: The sessions that would go.
        dialogs: The dialogs that would go.
        entries: How many entries would go or be overwritten.
        messages: How many messages they are.
        tombstones: The entries that would leave a tombstone.
        touched: The entries that would lose what was derived from erased ones: summaries, records, labels, shortened forms.
        blobs: How many payloads they name; one that something else names stays.
        sources: How many imported conversations would be forgotten, or lose their kept file.
        files: The files that the sessions were exported to. `erase` deletes those that it is given, if they are still the same files.
    """

    sessions: tuple[SessionId, ...]
    dialogs: tuple[DialogId, ...]
    entries: int
    messages: int
    tombstones: tuple[Handle, ...]
    touched: tuple[Handle, ...]
    blobs: int
    sources: int
    files: tuple[str, ...]


def preview_erasure(  # noqa: PLR0913 - one for each thing that can be erased, by keyword
    store: Store,
    *,
    session: str | None = None,
    dialog: str | None = None,
    subject: str | None = None,
    entries: Iterable[Handle | str] = (),
    children: bool = False,
    tombstones: bool = False,
) -> ErasurePreview:
    """Return what `erase` would do. Arguments and errors as there; nothing is written."""
    scope = Scope.of(entries, session=session, dialog=dialog, subject=subject, children=children, tombstones=tombstones)
    plan = _planned(erasing_store(store), scope)
    return ErasurePreview(
        sessions=plan.sessions,
        dialogs=plan.dialogs,
        entries=plan.entries,
        messages=plan.messages,
        tombstones=tuple(Handle(span.dialog, span.start) for span in _spans(plan.tombstones)),
        touched=tuple(Handle(span.dialog, span.start) for span in _spans(plan.parts)),
        blobs=len(plan.blobs),
        sources=len(plan.sources) + len(plan.reduced),
        files=tuple(file.path for file in plan.files),
    )


def erase(  # noqa: PLR0913 - one for each thing that can be erased, by keyword
    store: Store,
    *,
    session: str | None = None,
    dialog: str | None = None,
    subject: str | None = None,
    entries: Iterable[Handle | str] = (),
    children: bool = False,
    tombstones: bool = False,
    files: Iterable[str | os.PathLike[str]] = (),
    thorough: bool = True,
) -> Receipt:
    """Erase a session, a dialog, all sessions of a subject, or single entries, for good, and return the receipt.

    It reaches the entries and what was derived from them: summaries, records and shortened forms, labels, recorded calls, queued copies;
    payloads that nothing else names, kept source files, and the full-text index. Where other entries depend on erased ones, a tombstone
    stays, with kind, role and call ids. It is one transaction: a crash leaves all of it or nothing. Work on the storage comes after it; what
    does not get done is pending, and the next erasure or `finish_erasures` does it.

    Args:
        store: The store.
        session: A session, by its whole id.
        dialog: A dialog, by its id or the first 6 or more digits.
        subject: All sessions of exactly this subject, those in the trash, too.
        entries: Entries, by their handles.
        children: With a dialog, erase what grew from it, too.
        tombstones: With a dialog, leave tombstones for what grew from it.
        files: Files to delete, of those that `preview_erasure` lists. A file is deleted only if it is the one that was written: same inode
            and same bytes. Others are pending.
        thorough: Whether to rewrite the storage where bytes stay otherwise; it costs as much as the store is large.

    Raises:
        InvalidInput: Not exactly one thing was named, no session has the subject, or others grew from the dialog and neither `children`
            nor `tombstones` says what becomes of them.
        NotFound: There is no such session, dialog or entry.
        Erased: It was erased before.
        StoreError: The store failed, and nothing was erased; or it cannot erase (reason `unsupported`).
    """
    scope = Scope.of(entries, session=session, dialog=dialog, subject=subject, children=children, tombstones=tombstones)
    known = erasing_store(store)
    with known.erasing() as eraser:
        plan = _planned(known, scope)
        receipt = _Doing(known, eraser, plan).done()
        eraser.keep_receipt(_kept(receipt, plan.files, [_TO_SCRUB]))
    try:
        return _finished(known, files, thorough=thorough)[receipt.id]
    except StoreError as error:  # the entries are gone, so this must not raise
        pending = pending_of(_kept(receipt, plan.files, [f"{_TO_SCRUB}: {error.args[0]}"]))
        return receipt.with_pending(pending)


def finish_erasures(
    store: Store, *, files: Iterable[str | os.PathLike[str]] = (), thorough: bool = True
) -> tuple[Receipt, ...]:
    """Do what is pending of earlier erasures, and return their receipts as they stand now.

    Args:
        store: The store.
        files: Pending files to delete, as for `erase`. A store may come from somebody else, so only files that the caller names are touched.
        thorough: As for `erase`.
    """
    known = erasing_store(store)
    return tuple(_finished(known, files, thorough=thorough).values())


def _finished(store: Erasing, files: Iterable[str | os.PathLike[str]], *, thorough: bool) -> dict[str, Receipt]:
    """Delete files, scrub the storage, and write down what is still pending."""
    waiting = [kept for kept in store.receipts() if pending_of(kept)]
    if not waiting:
        return {}
    named = {os.path.realpath(path) for path in files}
    left = {kept.receipt_id: _undeleted(read_pending(kept)[0], named) for kept in waiting}
    with store.erasing() as eraser:  # names of deleted files go before the storage is scrubbed
        for kept in waiting:
            eraser.keep_receipt(_waiting(kept, left[kept.receipt_id], [_TO_SCRUB]))
    work = list(store.scrub(thorough=thorough))
    found: dict[str, Receipt] = {}
    with store.erasing() as eraser:
        for kept in waiting:
            done = _waiting(kept, left[kept.receipt_id], work)
            eraser.keep_receipt(done)
            found[kept.receipt_id] = Receipt.from_json(kept.text).with_pending(pending_of(done))
    return found


def _kept(receipt: Receipt, files: Sequence[NotedFile], work: Sequence[str]) -> KeptReceipt:
    return _waiting(KeptReceipt(receipt.id, receipt.to_json(), ""), files, work)


def _waiting(kept: KeptReceipt, files: Sequence[NotedFile], work: Sequence[str]) -> KeptReceipt:
    return kept._replace(pending=json.dumps({"files": files, "work": list(work)}))


class _Doing:
    """One erasure, inside its transaction."""

    def __init__(self, store: Erasing, eraser: Eraser, plan: _Plan) -> None:
        self._store = store
        self._eraser = eraser
        self._plan = plan
        self._mark = Erasure(at=now(), receipt=new_session_id())
        self._remaining: list[Remaining] = []
        self._summaries: list[str] = []

    def done(self) -> Receipt:
        plan, eraser, store = self._plan, self._eraser, self._store
        touched = {store.node(dialog).session_id for dialog in (*plan.dialogs, *plan.tombstones, *plan.parts)}
        self._put_tombstones()
        for dialog in plan.cleared:
            eraser.clear_dialog(dialog)
        eraser.remove_dialogs(plan.dialogs)
        for source in plan.reduced:
            store.put_source(replace(source, raw=None))
        for session in plan.sessions:
            eraser.remove_session(session)
        loose = eraser.unnamed(plan.blobs)
        eraser.remove_blobs(loose)
        for session in sorted(touched - set(plan.sessions)):
            self._mark_session(session)
        sources = [source_name(source.identity) for source in plan.sources]
        gone = Gone(self._mark.at, self._mark.receipt)
        eraser.remember([("session", one) for one in plan.sessions], gone)
        eraser.remember([("dialog", one) for one in plan.dialogs], gone)
        eraser.remember([("source", one) for one in sources], gone)
        remaining = tuple(sorted(self._remaining))
        return Receipt(
            id=self._mark.receipt,
            at=self._mark.at,
            asked=plan.scope.told(),
            sessions=tuple(plan.sessions),
            dialogs=tuple(plan.dialogs),
            tombstones=remaining,
            blobs=tuple(sorted(loose)),
            kept_blobs=len(plan.blobs) - len(loose),
            sources=tuple(sorted(sources)),
            entries=plan.entries,
            remaining=digest_of(remaining),
            beyond=store.beyond,
            summaries=tuple(self._summaries),
        )

    def _mark_session(self, session: SessionId) -> None:
        """Mark a session of which something was erased, and let it not go on with a dialog that is gone."""
        record = self._store.session(session)
        there = [node.dialog_id for node in self._store.nodes(session)]
        root = record.root if record.root in there else next(iter(there), None)
        metadata = {**record.metadata, ERASED_MARK: self._mark.receipt}
        self._store.update_session(session, root=root, metadata=metadata)

    def _put_tombstones(self) -> None:
        """Overwrite entries, and tell every dialog that holds them."""
        plan, store = self._plan, self._store
        spans = plan.gone(store)
        changed: dict[Handle, tuple[Entry, Entry]] = {}
        for span in (*_spans(plan.tombstones), *_spans(plan.parts)):
            place = Handle(span.dialog, span.start)
            was = _readable(store, place)
            whole = place.seq in plan.tombstones.get(place.dialog, ())
            rest = stand_in(was, self._mark) if whole else _without(was, spans, later=True, mark=self._mark)
            if rest is not None:
                gone_before = was.erased is not None and not was.erased.part  # a tombstone stays one
                changed[place] = was, rest.model_copy(update={"erased": self._mark}) if gone_before else rest
        for node in self._holders(tuple(changed)):
            self._tell(node, changed)
        placed: dict[DialogId, list[Placed]] = {}
        for place, (was, rest) in sorted(changed.items()):
            ready = draft(rest)[0]
            placed.setdefault(place.dialog, []).append(Placed(place.seq, ready.kind, ready.body))
            part = place.seq in plan.parts.get(place.dialog, ())
            self._remaining.append(Remaining(*place[:2], ready.kind, body_digest(ready.body).hex(), part))
            if _summary_of(was) != _summary_of(rest):
                self._summaries.append(f"{place.dialog}:{place.seq}")
        for dialog, found in placed.items():
            self._eraser.put_in_place(dialog, found)

    def _holders(self, places: Sequence[Handle]) -> Iterator[Node]:
        """Yield the dialogs that hold some entries and stay."""
        sessions = {self._store.node(dialog).session_id for dialog in {place.dialog for place in places}}
        spans = [Span(place.dialog, place.seq, place.seq + 1) for place in places]
        for node in (node for session in sorted(sessions) for node in self._store.nodes(session)):
            if node.dialog_id not in self._plan.dialogs and any(True for _ in clip(spans, self._held(node))):
                yield node

    def _held(self, node: Node) -> tuple[Span, ...]:
        return lineage(node, self._store.last(node.dialog_id).seq + 1)

    def _tell(self, node: Node, changed: Mapping[Handle, tuple[Entry, Entry]]) -> None:
        """Write into a dialog what was erased of what it holds: views and whoever computes from them go by that."""
        held = self._held(node)
        entries = [(place, was) for place, (was, _) in changed.items() if any(place in span for span in held)]
        told: ContextEdit | None = note(entries, self._store.last(node.dialog_id).seq)
        if told is not None:
            self._store.annotate(node.dialog_id, draft(told)[0])


def _readable(store: Erasing, place: Handle) -> Entry:
    """Read an entry; of one that is lost or damaged, return what its header says."""
    header = store.header(place.dialog, place.seq)
    body = b"".join(one for _, one in store.bodies(place.dialog, place.seq, place.seq + 1))
    try:
        entry = decode_entry(body)
    except ValueError:
        return from_header(header)
    return entry if entry.kind in (header.kind, "tombstone") else from_header(header)


def _summary_of(entry: Entry) -> object:
    """Return the derived texts of an entry."""
    if isinstance(entry, Compaction):
        return [piece.text for piece in entry.pieces if isinstance(piece, Derived)]
    if isinstance(entry, BranchSummary):
        return entry.summary
    if isinstance(entry, MessageEntry) and entry.message.role in _SUMMARIES:
        return entry.message.text_content()
    return None


# --- files --------------------------------------------------------------------------------------------------------------------------------


def note_file(store: Store, session_id: SessionId, path: str | os.PathLike[str]) -> None:
    """Note that a session was written to a file, with its digest and inode, so that an erasure can delete that file and no other."""
    known = erasing_store(store)
    place = Path(path).resolve()
    known.note_file(session_id, NotedFile(str(place), _file_digest(place), place.stat().st_ino))


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return _hashed(file)


def _hashed(file: Any) -> str:  # noqa: ANN401 - a binary file
    digest = sha256()
    while block := file.read(1 << 20):
        digest.update(block)
    return digest.hexdigest()


def _undeleted(files: Iterable[NotedFile], named: set[str]) -> list[NotedFile]:
    """Delete the files that the caller named, and return those that are still there."""
    left = []
    for file in files:
        if file.path in named:
            with suppress(OSError):
                _delete(file)
        if os.path.lexists(file.path):
            left.append(file)
    return left


def _delete(file: NotedFile) -> None:
    """Delete a file if it is the one that was noted: a regular file with the same inode and the same bytes."""
    with os.fdopen(os.open(file.path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as opened:
        same = os.fstat(opened.fileno()).st_ino == file.inode and bool(file.digest) and _hashed(opened) == file.digest
        if same and os.lstat(file.path).st_ino == file.inode:
            Path(file.path).unlink()
