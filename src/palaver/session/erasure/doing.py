"""Doing an erasure: one transaction for the log, then what lies around it, again and again until nothing is pending."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from palaver.errors import StoreError, UnsupportedCapability
from palaver.ids import DialogId, SessionId, new_session_id, now
from palaver.log import (
    ContextEdit,
    Entry,
    Erasure,
    Handle,
    Node,
    Span,
    body_digest,
    clip,
    draft,
    note,
    stand_in,
    without,
)
from palaver.session.erasure.planning import Plan, Search, planned, spans_of
from palaver.session.erasure.receipts import Receipt, Remaining, digest_of
from palaver.session.erasure.retelling import Anew, Retelling, lost_a_text
from palaver.session.erasure.scope import scope_of
from palaver.session.erasure.words import entry_at, erased_words, quoted
from palaver.store.erasing import Eraser, Erasing, Gone, KeptReceipt, Placed, Thing, source_name
from palaver.store.protocol import Store

__all__ = [
    "ERASED_MARK",
    "ErasurePreview",
    "erase",
    "erasing_store",
    "finish_erasures",
    "pending_of",
    "preview_erasure",
]

ERASED_MARK = "palaver.erased"
"""The key in the metadata of a session of which something was erased: an import of it keeps no source file any more."""

_FILES = "files"
_WORK = "work"
_TO_SCRUB = "the storage still holds the bytes of what was deleted"
_TO_DELETE = "the file {} is to be deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasurePreview:
    """What an erasure would do. Nothing was written.

    Attributes:
        sessions: The sessions that would go.
        dialogs: The dialogs that would go.
        entries: How many entries would go or be overwritten.
        messages: How many messages they are.
        tombstones: The entries that would leave a tombstone.
        touched: The entries out of which only what was made of erased ones would be taken: summaries, records, labels, shortened forms.
        blobs: How many payloads they name; one that something else names stays.
        sources: How many foreign conversations would be forgotten, or lose their kept file.
        files: The files that the store wrote, which would be deleted.
        quoted: Entries that stay and repeat what is erased, a line of it or a word with digits in it, as passwords, numbers and ids have; erase
            them by name, too, if they are to go.
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
    quoted: tuple[Handle, ...]


def erasing_store(store: Store) -> Erasing:
    """Give the store as one that erases.

    Raises:
        UnsupportedCapability: It cannot.
    """
    if not isinstance(store, Erasing):
        raise UnsupportedCapability("This store cannot erase.", hint="palaver's own stores can.")
    return store


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
    """Look at what `erase` would do. Arguments and errors as there; nothing is written."""
    scope = scope_of(session, dialog, subject, entries, children=children, tombstones=tombstones)
    known = erasing_store(store)
    plan = planned(known, scope)
    return ErasurePreview(
        sessions=plan.sessions,
        dialogs=plan.dialogs,
        entries=plan.entries,
        messages=plan.messages,
        tombstones=tuple(Handle(span.dialog, span.start) for span in spans_of(plan.tombstones)),
        touched=tuple(Handle(span.dialog, span.start) for span in spans_of(plan.parts)),
        blobs=len(plan.blobs),
        sources=len(plan.sources) + len(plan.reduced),
        files=plan.files,
        quoted=tuple(quoted(known, plan)),
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
    thorough: bool = True,
) -> Receipt:
    """Erase a session, a dialog, all sessions of a subject, or single entries, for good, and give the receipt.

    It reaches the entries and what was made of them: summaries, records and shortened forms, labels, recorded calls, queued copies; payloads
    that nothing else names, kept source files, the full-text index, and the files that the store knows it was written to. Where other entries
    stand on erased ones, a tombstone stays, with kind, role and call ids. It is one transaction: a crash leaves all of it or nothing; the
    work on the storage behind that is taken up by the next erasure or `finish_erasures`.

    Args:
        store: The store.
        session: A session, by its whole id.
        dialog: A dialog, by its id or the first 6 or more digits.
        subject: All sessions of exactly this subject, those in the trash, too.
        entries: Entries, by their handles.
        children: With a dialog, erase what grew from it, too.
        tombstones: With a dialog, leave tombstones for what grew from it.
        thorough: Whether the storage is written anew, where that is what it takes; without it the receipt may say that this is pending.

    Raises:
        HasChildren: Others grew from the dialog, and nobody said what becomes of them.
        Erased: It was erased before.
        UnknownSession: There is no such session.
        UnknownDialog: There is no such dialog.
        UnknownHandle: There is no such entry.
        InvalidInput: Not exactly one thing was named, or no session has the subject.
        StoreError: The store failed; nothing was erased. When it fails behind the transaction, the receipt says what is pending.
        UnsupportedCapability: The store cannot erase.
    """
    scope = scope_of(session, dialog, subject, entries, children=children, tombstones=tombstones)
    known = erasing_store(store)
    with known.erasing() as eraser:
        plan = planned(known, scope)
        receipt = _Doing(known, eraser, plan).done()
        eraser.keep_receipt(_kept(receipt, plan.files, [_TO_SCRUB]))
    try:
        return _finished(known, thorough=thorough)[receipt.id]
    except StoreError as error:  # the entries are gone: to raise would say that they are not
        return receipt.with_pending((f"{_TO_SCRUB}: {error.args[0]}", *map(_TO_DELETE.format, plan.files)))


def finish_erasures(store: Store, *, thorough: bool = True) -> tuple[Receipt, ...]:
    """Do what is pending of earlier erasures, and give their receipts as they stand now."""
    known = erasing_store(store)
    return tuple(_finished(known, thorough=thorough, always=False).values())


def _finished(store: Erasing, *, thorough: bool, always: bool = True) -> dict[str, Receipt]:
    """Delete files, scrub the storage, and write down what is still pending."""
    waiting = {kept.receipt_id: kept for kept in store.receipts() if _pending(kept) != ([], [])}
    if not waiting and not always:
        return {}
    left: dict[str, list[str]] = {}
    with store.erasing() as eraser:  # the names of deleted files go before the storage is scrubbed
        for receipt_id, kept in waiting.items():
            files, work = _pending(kept)
            left[receipt_id] = [path for path in files if not _deleted(path)]
            eraser.keep_receipt(kept._replace(pending=json.dumps({_FILES: left[receipt_id], _WORK: work})))
    pending = list(store.scrub(thorough=thorough))
    found: dict[str, Receipt] = {}
    with store.erasing() as eraser:
        for receipt_id, kept in waiting.items():
            now_kept = kept._replace(pending=json.dumps({_FILES: left[receipt_id], _WORK: pending}))
            eraser.keep_receipt(now_kept)
            found[receipt_id] = Receipt.from_json(kept.text).with_pending(pending_of(now_kept))
    return found


def _pending(kept: KeptReceipt) -> tuple[list[str], list[str]]:
    told = json.loads(kept.pending)
    return told[_FILES], told[_WORK]


def pending_of(kept: KeptReceipt) -> tuple[str, ...]:
    """Give what is pending of a receipt, in words."""
    files, work = _pending(kept)
    return (*work, *map(_TO_DELETE.format, files))


def _deleted(path: str) -> bool:
    """Delete a file; True when it is not there any more."""
    with suppress(OSError):
        Path(path).unlink(missing_ok=True)
    return not Path(path).exists()


def _kept(receipt: Receipt, files: Sequence[str], work: Sequence[str]) -> KeptReceipt:
    return KeptReceipt(receipt.id, receipt.to_json(), json.dumps({_FILES: list(files), _WORK: list(work)}))


class _Doing:
    """One erasure, inside its transaction."""

    def __init__(self, store: Erasing, eraser: Eraser, plan: Plan) -> None:
        self._store = store
        self._eraser = eraser
        self._plan = plan
        self._mark = Erasure(at=now(), receipt=new_session_id())
        self._remaining: list[Remaining] = []
        self._told = Anew((), {})

    def done(self) -> Receipt:
        plan, eraser, store = self._plan, self._eraser, self._store
        touched = self._touched()
        self._put_tombstones()
        for dialog in plan.cleared:
            eraser.clear_dialog(dialog)
        leases = [*plan.sessions, *plan.dialogs]
        eraser.remove_dialogs(plan.dialogs)
        for source in plan.reduced:
            store.put_source(replace(source, raw=None))
        for session in plan.sessions:
            eraser.remove_session(session)
        eraser.remove_leases(leases)
        loose = eraser.unnamed(plan.blobs)
        eraser.remove_blobs(loose)
        self._roots(touched)
        sources = [source_name(source.identity) for source in plan.sources]
        things: list[tuple[Thing, str]] = [
            *(("session", one) for one in plan.sessions),
            *(("dialog", one) for one in plan.dialogs),
            *(("source", one) for one in sources),
        ]
        eraser.remember(things, Gone(self._mark.at, self._mark.receipt))
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
            files=len(plan.files),
            remaining=digest_of(remaining),
            beyond=store.beyond,
            summaries=tuple(f"{one.dialog}:{one.seq}" for one in self._told.summaries),
            retold=tuple(f"{one.dialog}:{one.seq}" for one in self._told.entries),
        )

    def _touched(self) -> list[SessionId]:
        """Give the sessions that stay and lose something."""
        plan = self._plan
        if plan.sessions:
            return []
        dialogs = {*plan.dialogs, *plan.tombstones, *plan.parts}
        return sorted({self._store.node(dialog).session_id for dialog in dialogs})

    def _roots(self, sessions: Iterable[SessionId]) -> None:
        """Let no session go on with a dialog that is gone, and mark it as one of which something was erased."""
        for session in sessions:
            record = self._store.session(session)
            there = [node.dialog_id for node in self._store.nodes(session)]
            root = record.root if record.root in there else next(iter(there), None)
            self._store.update_session(
                session, root=root, metadata={**record.metadata, ERASED_MARK: self._mark.receipt}
            )

    # --- tombstones ---------------------------------------------------------------------------------------------------------------

    def _put_tombstones(self) -> None:
        store, plan = self._store, self._plan
        spans = [*(Span(one, 0, store.last(one).seq + 1) for one in plan.dialogs), *spans_of(plan.tombstones)]
        search = Search(store, spans)
        words = erased_words(store, plan)
        lost: dict[Handle, Entry] = {}
        blank: dict[Handle, Entry] = {}
        for span in (*spans_of(plan.tombstones), *spans_of(plan.parts)):
            place = Handle(span.dialog, span.start)
            was = entry_at(store, *place[:2])
            whole = place.seq in plan.tombstones.get(place.dialog, ())
            rest = stand_in(was, self._mark) if whole else without(was, spans, self._mark, search.suspect)
            if rest is not None:
                blank[place] = rest if whole else self._as_whole(was, rest)
                if lost_a_text(was, rest):
                    lost[place] = was
        notes = [(node.dialog_id, told) for node in self._holders() if (told := self._note(node)) is not None]
        self._put(blank)
        self._told = Retelling(store, search.quotes, words).anew(lost, blank)
        self._put(self._told.entries)
        for place, entry in sorted({**blank, **self._told.entries}.items()):
            ready = draft(entry)[0]
            part = place.seq in plan.parts.get(place.dialog, ())
            self._remaining.append(Remaining(*place[:2], ready.kind, body_digest(ready.body).hex(), part))
        for dialog, told in notes:
            store.annotate(dialog, draft(told)[0])

    def _put(self, entries: Mapping[Handle, Entry]) -> None:
        """Put entries in the place of others."""
        placed: dict[DialogId, list[Placed]] = {}
        for place, entry in entries.items():
            ready = draft(entry)[0]
            placed.setdefault(place.dialog, []).append(Placed(place.seq, ready.kind, ready.body))
        for dialog, found in placed.items():
            self._eraser.put_in_place(dialog, found)

    def _as_whole(self, was: Entry, rest: Entry) -> Entry:
        """Give what stays of an entry; one that is a tombstone since an earlier erasure is no less of one."""
        whole = was.erased is not None and not was.erased.part
        return rest.model_copy(update={"erased": self._mark}) if whole else rest

    # --- notes --------------------------------------------------------------------------------------------------------------------

    def _changed(self) -> list[Span]:
        """Give the entries of which a view may be made and that say less now: the erased ones, and what was made of them and stays."""
        return [*spans_of(self._plan.tombstones), *spans_of(self._plan.parts)]

    def _holders(self) -> list[Node]:
        """Give the dialogs that hold such entries and stay."""
        store, plan = self._store, self._plan
        spans = self._changed()
        sessions = {store.node(dialog).session_id for dialog in (*plan.tombstones, *plan.parts)}
        nodes = [
            node for session in sorted(sessions) for node in store.nodes(session) if node.dialog_id not in plan.dialogs
        ]
        return [node for node in nodes if any(True for _ in clip(spans, self._held(node)))]

    def _held(self, node: Node) -> tuple[Span, ...]:
        own = Span(node.dialog_id, 0, self._store.last(node.dialog_id).seq + 1)
        return (*node.ranges, own) if len(own) else node.ranges

    def _note(self, node: Node) -> ContextEdit | None:
        """Give the entry that says in a dialog what was erased of what it holds."""
        spans = clip(self._changed(), self._held(node))
        entries = [
            (Handle(span.dialog, seq), entry_at(self._store, span.dialog, seq))
            for span in spans
            for seq in range(span.start, span.stop)
        ]
        return note(entries, self._store.last(node.dialog_id).seq)
