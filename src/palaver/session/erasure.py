"""Erasure: remove entries permanently, with a receipt. The log takes one transaction; files and storage are cleaned after it."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import file_digest
from itertools import chain
from pathlib import Path
from typing import Any, TypedDict, Unpack

from palaver.errors import InvalidInput, NotFound, PalaverError, StoreError
from palaver.ids import BlobId, DialogId, SessionId, new_session_id, now
from palaver.log import (
    COPY_OF,
    Approval,
    BranchSummary,
    Compaction,
    Derived,
    Entry,
    Erasure,
    Handle,
    Header,
    MessageEntry,
    Node,
    Span,
    Tombstone,
    body_digest,
    clip,
    decode_entry,
    draft,
    from_header,
    joined,
    lineage,
    note,
    originals,
    stand_in,
    without,
)
from palaver.session.receipts import Receipt, Remaining, erasing_store, pending_of, read_pending, subject_digest
from palaver.store.erasing import Eraser, Erasing, Gone, KeptReceipt, NotedFile, Placed, source_name
from palaver.store.protocol import SourceRecord, Store
from palaver.store.records import references
from palaver.transfer.replay import follow_erasures

__all__ = ["ERASED_MARK", "ErasurePreview", "ErasureScope", "erase", "finish_erasures", "preview_erasure"]

ERASED_MARK = "palaver.erased"
"""The key in the metadata of a session with erased entries. A later import of it does not keep the source file."""

_TO_SCRUB = "the storage still holds the bytes of what was deleted"
_ELSEWHERE = "replay logs and exports that were moved or copied, or that an earlier palaver wrote"
_SUMMARIES = frozenset({"branch_summary", "compaction_summary"})
_DERIVED_KINDS = frozenset(
    {"approval", "compaction", "context_edit", "branch_summary", "label", "quarantine", "custom"}
)

_NAMES_ORIGINAL = f'"{COPY_OF}"'.encode()


# --- the preview --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasurePreview:
    """The effects of an erasure. Nothing was written.

    Attributes:
        asked: The requested scope, as the receipt states it.
        sessions: The sessions that would be removed.
        dialogs: The dialogs that would be removed, each after its branches.
        cleared: The dialogs that would have only tombstones.
        tombstones: The entries that would leave a tombstone.
        touched: The entries that would lose content derived from erased ones: summaries, records, labels, shortened forms.
        entries: The number of entries that would be removed or overwritten.
        messages: The number of messages among them.
        payloads: The payloads that they name. Payloads that other entries also name stay.
        forgotten: The imported conversations that would be forgotten.
        reduced: The imported conversations that would lose their source file.
        noted: The files that the sessions were exported to, and the folders of their replay logs.
    """

    asked: Mapping[str, Any]
    sessions: tuple[SessionId, ...] = ()
    dialogs: tuple[DialogId, ...] = ()
    cleared: tuple[DialogId, ...] = ()
    tombstones: tuple[Handle, ...] = ()
    touched: tuple[Handle, ...] = ()
    entries: int = 0
    messages: int = 0
    payloads: frozenset[BlobId] = field(default=frozenset(), repr=False)
    forgotten: tuple[SourceRecord, ...] = ()
    reduced: tuple[SourceRecord, ...] = ()
    noted: tuple[NotedFile, ...] = ()

    @property
    def files(self) -> tuple[str, ...]:
        """The files that the sessions were exported to. `erase` deletes those passed to it, if they are unchanged."""
        return tuple(file.path for file in self.noted if not file.is_folder)

    @property
    def logs(self) -> tuple[str, ...]:
        """The folders of the sessions' replay logs. `erase` removes from them what it erases."""
        return tuple(file.path for file in self.noted if file.is_folder)


class ErasureScope(TypedDict, total=False):
    """The scope of an erasure: exactly one of the first four.

    Attributes:
        session: A session, by its whole id.
        dialog: A dialog, by its id or the first 6 or more digits.
        subject: All sessions of exactly this subject, including those in the trash.
        entries: Entries, by their handles.
        children: With a dialog, also erase its branches.
        tombstones: With a dialog, leave tombstones in its branches.
    """

    session: str | None
    dialog: str | None
    subject: str | None
    entries: Iterable[Handle | str]
    children: bool
    tombstones: bool


def preview_erasure(store: Store, **scope: Unpack[ErasureScope]) -> ErasurePreview:
    """Return the effects of `erase`, which has the same arguments and errors. Nothing is written."""
    known = erasing_store(store)
    session, dialog, subject = scope.get("session"), scope.get("dialog"), scope.get("subject")
    children, tombstones = scope.get("children", False), scope.get("tombstones", False)
    handles = (Handle.parse(one) if isinstance(one, str) else one for one in scope.get("entries", ()))
    places = tuple(dict.fromkeys(one._replace(block=None) for one in handles))
    names = {"session": session, "dialog": dialog, "subject": subject, "entries": places}
    given = [name for name, value in names.items() if value]
    if len(given) != 1:
        found = ", ".join(given) or "none"
        raise InvalidInput(f"Name one of session, dialog, subject and entries to erase; found: {found}.")
    if (children or tombstones) and (not dialog or (children and tombstones)):
        raise InvalidInput("With a dialog, and only with one, choose children or tombstones for what grew from it.")
    if session:
        asked = {"what": "session", "names": [session]}
        return _of_sessions(known, asked, (known.session(SessionId(session)).session_id,))
    if subject:
        salt = new_session_id()  # a receipt outlives the subject's data, so it must not name the subject
        asked = {"what": "subject", "salt": salt, "digest": subject_digest(salt, subject)}
        records = chain(store.sessions(subject=subject), store.sessions(subject=subject, trashed=True))
        if not (ids := tuple(sorted(record.session_id for record in records))):
            raise NotFound(subject, what="subject", hint="A subject is matched whole, with its case.")
        return _of_sessions(known, asked, ids)
    if dialog:
        return _of_dialog(known, dialog, children=children, tombstones=tombstones)
    return _of_entries(known, places)


def _of_sessions(store: Erasing, asked: Mapping[str, Any], sessions: tuple[SessionId, ...]) -> ErasurePreview:
    dialogs = tuple(node.dialog_id for one in sessions for node in reversed(store.nodes(one)))
    forgotten = tuple(source for one in sessions for source in store.sources(one))
    noted = tuple(file for one in sessions for file in store.files(one))
    plan = ErasurePreview(asked=asked, sessions=sessions, dialogs=dialogs, forgotten=forgotten, noted=noted)
    return _counted(store, plan)


def _of_dialog(store: Erasing, name: str, *, children: bool, tombstones: bool) -> ErasurePreview:
    dialog = store.resolve(name)
    session = store.node(dialog).session_id
    found, below = {dialog}, list[DialogId]()
    for node in store.nodes(session):  # its branches, and dialogs that share its entries
        if node.dialog_id not in found and not found.isdisjoint({node.parent_id, *(s.dialog for s in node.ranges)}):
            found.add(node.dialog_id)
            below.append(node.dialog_id)
    if below and not (children or tombstones):
        raise InvalidInput(
            f"{len(below)} dialogs grew from dialog {dialog}: {', '.join(one[:12] for one in below)}.",
            hint="Erase them with it (children), or leave tombstones for them (tombstones).",
        )
    extra = {name: True for name, wanted in (("children", children), ("tombstones", tombstones)) if wanted}
    asked = {"what": "dialog", "names": [name], **extra}
    if below and tombstones:
        own = {Handle(dialog, seq) for seq in range(store.last(dialog).seq + 1)}
        return _with_derived(store, ErasurePreview(asked=asked, cleared=(dialog,)), (session,), own)
    return _with_derived(store, ErasurePreview(asked=asked, dialogs=(*reversed(below), dialog)), (session,), set())


def _of_entries(store: Erasing, given: Sequence[Handle]) -> ErasurePreview:
    places = {one._replace(dialog=store.resolve(one.dialog)) for one in given}
    for one in places:
        if not 0 <= one.seq <= store.last(one.dialog).seq:
            raise NotFound(str(one), what="entry")
    sessions = sorted({store.node(one.dialog).session_id for one in places})
    asked = {"what": "entries", "names": [f"{one.dialog}:{one.seq}" for one in given]}
    return _with_derived(store, ErasurePreview(asked=asked), sessions, places)


def _with_derived(
    store: Erasing, plan: ErasurePreview, sessions: Sequence[SessionId], gone: set[Handle]
) -> ErasurePreview:
    """Return the plan with the content derived from erased entries in their sessions."""
    touched: set[Handle] = set()
    for session in sessions:
        _derive(
            store, [node for node in store.nodes(session) if node.dialog_id not in plan.dialogs], plan, gone, touched
        )
    made = replace(
        plan,
        tombstones=tuple(sorted(gone)),
        touched=tuple(sorted(touched)),
        reduced=tuple(one for session in sessions for one in store.sources(session) if one.raw is not None),
        noted=tuple(file for session in sessions for file in store.files(session)),
    )
    return _counted(store, made)


def _derive(
    store: Erasing, nodes: Sequence[Node], plan: ErasurePreview, gone: set[Handle], touched: set[Handle]
) -> None:
    """Add to `gone` the entries that only repeat erased ones, and to `touched` those that partly do, until nothing changes."""
    copies = [pair for node in nodes for pair in _copies(store, node)]
    size = -1
    while size != (size := len(gone) + len(touched)):
        gone |= {copy for place, copy in copies if place in gone or place.dialog in plan.dialogs}
        spans = (*_whole(store, plan.dialogs), *_spans(gone | touched))
        calls = {
            call
            for span in spans
            for header in store.headers(span.dialog, span.start, span.stop)
            if header.role != "tool"
            for call in header.calls
        }
        for node in nodes:
            begin = min((span.start for span in spans if span.dialog == node.dialog_id), default=math.inf)
            begin = -1 if any(True for _ in clip(node.ranges, spans)) else begin
            for header in store.headers(node.dialog_id):
                place = Handle(node.dialog_id, header.seq)
                if place not in gone:
                    fate = _fate(store, place, header, spans, calls, later=header.seq > begin)
                    {"gone": gone, "touched": touched}.get(fate, set()).add(place)
        touched -= gone


def _fate(
    store: Erasing, place: Handle, header: Header, spans: Sequence[Span], calls: Collection[str], *, later: bool
) -> str:
    """Return the fate of an entry outside the scope: `gone`, `touched`, or None."""
    if header.kind == "invocation" or (header.kind == "message" and header.role in _SUMMARIES):
        return "gone" if later else ""
    if header.kind not in _DERIVED_KINDS:
        return ""
    entry = _readable(store, place)
    if (later and isinstance(entry, Tombstone)) or (isinstance(entry, Approval) and entry.call_id in calls):
        return "gone"
    return "" if _without(entry, spans, later=later) is None else "touched"


def _copies(store: Erasing, node: Node) -> Iterator[tuple[Handle, Handle]]:
    """Yield the entries that entries of a dialog repeat, each with the one that goes with it. What waited in the inbox goes with its delivery, too."""
    for seq, body in store.bodies(node.dialog_id):
        place = Handle(node.dialog_id, seq)
        entry = _readable(store, place) if _NAMES_ORIGINAL in body else None  # few do, and need to be decoded
        if isinstance(entry, MessageEntry):
            about = (entry.message.metadata, *(one.metadata for one in entry.message.tool_results()))
            for original in chain.from_iterable(map(originals, about)):
                yield original, place
                here = original.dialog == place.dialog and original.seq < seq
                if here and store.header(place.dialog, original.seq).kind == "inbox":
                    yield place, original


def _readable(store: Erasing, place: Handle) -> Entry:
    """Read an entry. For a lost or damaged one, return an entry made from its header."""
    header = store.header(place.dialog, place.seq)
    body = b"".join(one for _, one in store.bodies(place.dialog, place.seq, place.seq + 1))
    try:
        entry = decode_entry(body)
    except ValueError:
        return from_header(header)
    return entry if entry.kind in (header.kind, "tombstone") else from_header(header)


def _without(entry: Entry, spans: Sequence[Span], *, later: bool, mark: Erasure | None = None) -> Entry | None:
    """Return an entry without content derived from erased ones; None if it has none.

    A derived text that does not name its sources counts as derived from all entries before it.
    """

    def suspect(text: Derived | BranchSummary) -> bool:
        return later and not text.sources

    return without(entry, spans, mark or Erasure(at=0.0, receipt=""), suspect)


def _whole(store: Erasing, dialogs: Iterable[DialogId]) -> tuple[Span, ...]:
    return tuple(Span(one, 0, store.last(one).seq + 1) for one in dialogs)


def _spans(places: Iterable[Handle]) -> tuple[Span, ...]:
    return joined(Span(one.dialog, one.seq, one.seq + 1) for one in sorted(places))


def _counted(store: Erasing, plan: ErasurePreview) -> ErasurePreview:
    """Return the plan with the number of the erased entries, and the payloads that they and kept files name."""
    payloads: set[BlobId] = set()
    entries = messages = 0
    for span in joined((*_whole(store, plan.dialogs), *_spans(plan.tombstones))):
        before = store.header(span.dialog, span.start - 1).number if span.start else 0
        entries += len(span)
        messages += store.header(span.dialog, span.stop - 1).number - before
        named = (blob for _, body in store.bodies(span.dialog, span.start, span.stop) for blob in references(body))
        payloads.update(blob for blob in named if store.has_blob(blob))
    for source in (*plan.forgotten, *plan.reduced):
        if source.raw is not None and store.has_blob(source.raw):
            payloads |= {source.raw, *map(BlobId, json.loads(store.blob(source.raw))["pieces"])}
    payloads |= {source.index for source in plan.forgotten if source.index is not None}
    return replace(plan, entries=entries, messages=messages, payloads=frozenset(payloads))


# --- the erasure -----------------------------------------------------------------------------------------------------------------------------


def erase(
    store: Store,
    *,
    files: Iterable[str | os.PathLike[str]] = (),
    thorough: bool = True,
    **scope: Unpack[ErasureScope],
) -> Receipt:
    """Permanently erase a session, a dialog, all sessions of a subject, or single entries, and return the receipt.

    This removes the entries and content derived from them: summaries, records and shortened forms, labels, recorded calls, copies (queued
    messages, repaired branches, tasks and answers of sub-agents), payloads that nothing else names, stored source files, and rows of the
    full-text index. Where other entries depend on erased ones, a tombstone keeps kind, role and call ids. The erasure is one transaction: a
    crash leaves all of it or nothing. The storage is cleaned afterwards; unfinished work is pending until the next erasure or `finish_erasures`.

    Args:
        store: The store.
        files: Files to delete, among those that `preview_erasure` lists. A file is deleted only if its inode and its bytes are unchanged.
            Others are pending.
        thorough: Whether to rewrite the storage if bytes would stay otherwise; the cost depends on the size of the store.
        scope: What to erase: the fields of an `ErasureScope`, exactly one of `session`, `dialog`, `subject` and `entries`.

    Raises:
        InvalidInput: The scope is not exactly one thing, or the dialog has branches and neither `children` nor
            `tombstones` is set.
        NotFound: The session, dialog or entry does not exist, or no session has the subject.
        Erased: It was already erased.
        StoreError: The store failed, and nothing was erased; or it cannot erase (reason `unsupported`).
    """
    known = erasing_store(store)
    with known.erasing() as eraser:
        plan = preview_erasure(known, **scope)
        receipt = _done(known, eraser, plan)
        kept = _waiting(KeptReceipt(receipt.id, receipt.to_json(), ""), plan.noted, [_TO_SCRUB])
        eraser.keep_receipt(kept)
    try:
        return _finished(known, files, thorough=thorough)[receipt.id]
    except StoreError as error:  # the entries are gone, so this must not raise
        return receipt.with_pending(pending_of(_waiting(kept, plan.noted, [f"{_TO_SCRUB}: {error.args[0]}"])))


def finish_erasures(
    store: Store, *, files: Iterable[str | os.PathLike[str]] = (), thorough: bool = True
) -> tuple[Receipt, ...]:
    """Do the pending work of earlier erasures, and return their updated receipts.

    Args:
        store: The store.
        files: Pending files to delete, as for `erase`. A store may come from somebody else, so only files that the caller names are deleted.
        thorough: As for `erase`.
    """
    known = erasing_store(store)
    return tuple(_finished(known, files, thorough=thorough).values())


def _finished(store: Erasing, files: Iterable[str | os.PathLike[str]], *, thorough: bool) -> dict[str, Receipt]:
    """Delete files, scrub the storage, and record the work that is still pending."""
    waiting = [kept for kept in store.receipts() if pending_of(kept)]
    if not waiting:
        return {}
    named = {os.path.realpath(path) for path in files}
    left = {kept.receipt_id: _undeleted(store, read_pending(kept)[0], named) for kept in waiting}
    with store.erasing() as eraser:  # remove names of deleted files before the storage is scrubbed
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


def _waiting(kept: KeptReceipt, files: Sequence[NotedFile], work: Sequence[str]) -> KeptReceipt:
    return kept._replace(pending=json.dumps({"files": files, "work": list(work)}))


def _done(store: Erasing, eraser: Eraser, plan: ErasurePreview) -> Receipt:
    """Erase inside the transaction."""
    mark = Erasure(at=now(), receipt=new_session_id())
    touched = {store.node(one).session_id for one in (*plan.dialogs, *(each.dialog for each in plan.tombstones))}
    touched |= {store.node(one.dialog).session_id for one in plan.touched}
    tombstones, summaries = _put_tombstones(store, eraser, plan, mark)
    for dialog in plan.cleared:
        eraser.clear_dialog(dialog)
    eraser.remove_dialogs(plan.dialogs)
    for source in plan.reduced:
        store.put_source(replace(source, raw=None))
    for session in plan.sessions:
        eraser.remove_session(session)
    loose = eraser.unnamed(plan.payloads)
    eraser.remove_blobs(loose)
    for session in sorted(touched - set(plan.sessions)):
        _mark_session(store, session, mark)
    sources = sorted(source_name(source.identity) for source in plan.forgotten)
    gone = Gone(mark.at, mark.receipt)
    eraser.remember([("session", one) for one in plan.sessions], gone)
    eraser.remember([("dialog", one) for one in plan.dialogs], gone)
    eraser.remember([("source", one) for one in sources], gone)
    return Receipt(
        id=mark.receipt,
        at=mark.at,
        asked=plan.asked,
        sessions=plan.sessions,
        dialogs=plan.dialogs,
        tombstones=tombstones,
        blobs=tuple(sorted(loose)),
        kept_blobs=len(plan.payloads) - len(loose),
        sources=tuple(sources),
        entries=plan.entries,
        beyond=(*store.beyond, _ELSEWHERE),
        summaries=summaries,
    )


def _mark_session(store: Erasing, session: SessionId, mark: Erasure) -> None:
    """Mark a session with erased entries, and unset its current dialog if that was removed."""
    record = store.session(session)
    there = [node.dialog_id for node in store.nodes(session)]
    root = record.root if record.root in there else next(iter(there), None)
    store.update_session(session, root=root, metadata={**record.metadata, ERASED_MARK: mark.receipt})


def _put_tombstones(
    store: Erasing, eraser: Eraser, plan: ErasurePreview, mark: Erasure
) -> tuple[tuple[Remaining, ...], tuple[str, ...]]:
    """Overwrite entries, and note that in every dialog that contains them. Return the tombstones, and the entries that lost a summary."""
    changed = _replaced(store, plan, mark)
    for session in sorted({store.node(place.dialog).session_id for place in changed}):
        for node in store.nodes(session):
            if node.dialog_id not in plan.dialogs:
                _tell(store, node, changed)
    placed: dict[DialogId, list[Placed]] = {}
    remaining, summaries = [], []
    for place, (was, rest) in changed.items():
        ready = draft(rest)[0]
        placed.setdefault(place.dialog, []).append(Placed(place.seq, ready.kind, ready.body))
        digest = body_digest(ready.body).hex()
        remaining.append(Remaining(place.dialog, place.seq, ready.kind, digest, place in plan.touched))
        if _summary_of(was) != _summary_of(rest):
            summaries.append(f"{place.dialog}:{place.seq}")
    for dialog, found in placed.items():
        eraser.put_in_place(dialog, found)
    return tuple(remaining), tuple(summaries)


def _replaced(store: Erasing, plan: ErasurePreview, mark: Erasure) -> dict[Handle, tuple[Entry, Entry]]:
    """Return the entries to overwrite, each with its replacement."""
    spans = (*_whole(store, plan.dialogs), *_spans((*plan.tombstones, *plan.touched)))
    changed: dict[Handle, tuple[Entry, Entry]] = {}
    for place in sorted((*plan.tombstones, *plan.touched)):
        was = _readable(store, place)
        whole = place in plan.tombstones
        rest = stand_in(was, mark) if whole else _without(was, spans, later=True, mark=mark)
        if rest is not None:
            gone_before = was.erased is not None and not was.erased.part  # a tombstone stays one
            changed[place] = was, rest.model_copy(update={"erased": mark}) if gone_before else rest
    return changed


def _tell(store: Erasing, node: Node, changed: Mapping[Handle, tuple[Entry, Entry]]) -> None:
    """Write a note of the erased entries into a dialog, for views and their users."""
    last = store.last(node.dialog_id).seq
    held = lineage(node, last + 1)
    entries = [(place, was) for place, (was, _) in changed.items() if any(place in span for span in held)]
    told = note(entries, last)
    if told is not None:
        store.annotate(node.dialog_id, draft(told)[0])


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


def _undeleted(store: Erasing, files: Iterable[NotedFile], named: set[str]) -> list[NotedFile]:
    """Delete the files that the caller named, remove what was erased from replay logs, and return what is still to be done."""
    left = []
    for file in files:
        if file.is_folder:
            try:
                follow_erasures(store, Path(file.path))
            except (OSError, PalaverError):
                left.append(file)
            continue
        if file.path in named:
            with suppress(OSError):
                _delete(file)
        if os.path.lexists(file.path):
            left.append(file)
    return left


def _delete(file: NotedFile) -> None:
    """Delete a file if it is unchanged: a regular file with the noted inode and bytes."""
    with os.fdopen(os.open(file.path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as opened:
        same = (
            os.fstat(opened.fileno()).st_ino == file.inode and file.digest == file_digest(opened, "sha256").hexdigest()
        )
        if same and os.lstat(file.path).st_ino == file.inode:
            Path(file.path).unlink()
