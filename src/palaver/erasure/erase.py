"""Erasure: remove entries permanently, with a receipt. The log takes one transaction; files and storage are cleaned after it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import file_digest
from pathlib import Path
from typing import Unpack

from palaver.erasure.derived import readable
from palaver.erasure.plan import ErasurePreview, ErasureScope, preview_erasure
from palaver.erasure.receipts import Receipt, Remaining, erasing_store, pending_of, read_pending
from palaver.errors import InvalidInput, PalaverError, StoreError
from palaver.ids import BlobId, DialogId, SessionId, new_session_id, now
from palaver.log import (
    Entry,
    Erasure,
    Handle,
    Node,
    body_digest,
    draft,
    lineage,
    note,
    stand_in,
)
from palaver.store.erasing import Eraser, Erasing, Gone, KeptReceipt, NotedFile, Placed, source_name
from palaver.store.metadata import change_metadata
from palaver.store.protocol import Capability, Store
from palaver.transfer.replay import follow_erasures

__all__ = ["ERASED_MARK", "erase", "finish_erasures"]

ERASED_MARK = "palaver.erased"
"""The key in the metadata of a session with erased entries. A later import of it does not keep the source file."""

_TO_SCRUB = "the storage still has the bytes of what was deleted"


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
        InvalidInput: An argument is unknown, the scope is not exactly one thing, the dialog has branches and neither `children` nor
            `tombstones` is set, or one of `files` is not a file that palaver wrote and is to be deleted; nothing is erased.
        NotFound: The session, dialog or entry does not exist, or no session has the subject.
        Erased: It was already erased.
        StoreError: The store failed, and nothing was erased; or it cannot erase (reason `unsupported`).
    """
    known = erasing_store(store)
    with known.erasing() as eraser:
        plan = preview_erasure(known, **scope)
        files = _listed(known, files, plan.noted)
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

    Raises:
        InvalidInput: One of `files` is not pending; nothing is done.
    """
    known = erasing_store(store)
    return tuple(_finished(known, _listed(known, files, ()), thorough=thorough).values())


def _finished(store: Erasing, files: Iterable[str | os.PathLike[str]], *, thorough: bool) -> dict[str, Receipt]:
    """Delete files, scrub the storage, and record the work that is still pending."""
    waiting = [kept for kept in store.receipts() if pending_of(kept)]
    if not waiting:
        return {}
    named = {os.path.realpath(path) for path in files}
    left = {kept.receipt_id: _undeleted(store, read_pending(kept)[0], named) for kept in waiting}
    for kept in waiting:  # remove names of deleted files before the storage is scrubbed
        with store.erasing() as eraser:
            eraser.keep_receipt(_waiting(kept, left[kept.receipt_id], [_TO_SCRUB]))
    work = list(store.scrub(thorough=thorough))
    receipts: dict[str, Receipt] = {}
    for kept in waiting:
        done = _waiting(kept, left[kept.receipt_id], work)
        with store.erasing() as eraser:
            eraser.keep_receipt(done)
        receipts[kept.receipt_id] = Receipt.from_json(kept.text).with_pending(pending_of(done))
    return receipts


def _waiting(kept: KeptReceipt, files: Sequence[NotedFile], work: Sequence[str]) -> KeptReceipt:
    return kept._replace(pending=json.dumps({"files": files, "work": list(work)}))


def _done(store: Erasing, eraser: Eraser, plan: ErasurePreview) -> Receipt:
    """Erase inside the transaction."""
    mark = Erasure(at=now(), receipt=new_session_id())
    touched = {store.node(name).session_id for name in (*plan.dialogs, *(place.dialog for place in plan.tombstones))}
    tombstones = _put_tombstones(store, eraser, plan, mark)
    for dialog in plan.cleared:
        eraser.clear_dialog(dialog)
    eraser.remove_dialogs(plan.dialogs)
    for source in plan.reduced:
        store.put_source(replace(source, raw=None))
    for session in plan.sessions:
        eraser.remove_session(session)
    named: dict[SessionId, set[BlobId]] = {}
    for session, blob in sorted(plan.payloads):
        named.setdefault(session, set()).add(blob)
    loose: list[tuple[BlobId, SessionId]] = []
    for session, blobs in named.items():
        unnamed = eraser.unnamed(session, blobs)
        eraser.remove_blobs(session, unnamed)
        loose += ((blob, session) for blob in unnamed)
    loose.sort()
    for session in sorted(touched - set(plan.sessions)):
        _mark_session(store, session, mark)
    sources = sorted(source_name(source.identity) for source in plan.forgotten)
    gone = Gone(mark.at, mark.receipt)
    eraser.remember([("session", name) for name in plan.sessions], gone)
    eraser.remember([("dialog", name) for name in plan.dialogs], gone)
    eraser.remember([("source", name) for name in sources], gone)
    return Receipt(
        id=mark.receipt,
        at=mark.at,
        asked=plan.asked,
        sessions=plan.sessions,
        dialogs=plan.dialogs,
        tombstones=tombstones,
        blobs=tuple(blob for blob, _session in loose),
        blob_sessions=tuple(session for _blob, session in loose),
        kept_blobs=len({blob for _session, blob in plan.payloads} - {blob for blob, _session in loose}),
        sources=tuple(sources),
        shredded=plan.sessions if Capability.SHREDS in store.capabilities else (),
        entries=plan.entries,
        beyond=tuple(_moved(plan.noted)),
    )


def _mark_session(store: Erasing, session: SessionId, mark: Erasure) -> None:
    """Mark a session with erased entries, and unset its current dialog if that was removed."""
    record = store.session(session)
    there = [node.dialog_id for node in store.nodes(session)]
    root = record.root if record.root in there else next(iter(there), None)
    change_metadata(store, session, lambda known: {**known, ERASED_MARK: mark.receipt}, root=root)


def _put_tombstones(store: Erasing, eraser: Eraser, plan: ErasurePreview, mark: Erasure) -> tuple[Remaining, ...]:
    """Overwrite entries with tombstones, note that in every dialog that contains them, and return the tombstones."""
    were = {place: readable(store, place) for place in plan.tombstones}
    for session in sorted({store.node(place.dialog).session_id for place in were}):
        for node in store.nodes(session):
            if node.dialog_id not in plan.dialogs:
                _tell(store, node, were)
    placed: dict[DialogId, list[Placed]] = {}
    remaining = []
    for place, was in were.items():
        ready = draft(stand_in(was, mark))[0]
        placed.setdefault(place.dialog, []).append(Placed(place.seq, ready.kind, ready.body))
        remaining.append(Remaining(place.dialog, place.seq, ready.kind, body_digest(ready.body).hex()))
    for dialog, entries in placed.items():
        eraser.put_in_place(dialog, entries)
    return tuple(remaining)


def _tell(store: Erasing, node: Node, were: Mapping[Handle, Entry]) -> None:
    """Write a note of the erased entries into a dialog, for views and their users."""
    last = store.last(node.dialog_id).seq
    held = lineage(node, last + 1)
    entries = [(place, was) for place, was in were.items() if any(place in span for span in held)]
    mark = note(entries, last)
    if mark is not None:
        store.annotate(node.dialog_id, draft(mark)[0])


# --- files --------------------------------------------------------------------------------------------------------------------------------


def _listed(store: Erasing, files: Iterable[str | os.PathLike[str]], noted: Iterable[NotedFile]) -> list[str]:
    """Return the files to delete.

    Raises:
        InvalidInput: One is neither among the noted files nor pending.
    """
    pending = (file for kept in store.receipts() for file in read_pending(kept)[0])
    known = {file.path for file in (*noted, *pending)}
    paths = [os.path.abspath(path) for path in files]  # noqa: PTH100 - a link is not followed
    for path in paths:
        if known.isdisjoint((path, os.path.realpath(path))):
            raise InvalidInput(f"No export to {path} is recorded.", hint="Pass files that preview_erasure() lists.")
    return paths


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


def _moved(files: Iterable[NotedFile]) -> Iterator[str]:
    """Return the noted files that are not at their paths, in words: nobody knows where their bytes are."""
    for file in files:
        if "://" in file.path:
            yield f"the archive {file.path}, which is to be deleted there"
        elif not os.path.lexists(file.path):
            what = "replay log" if file.is_folder else "file"
            yield f"the {what} {file.path}, which was moved or deleted"


def _delete(file: NotedFile) -> None:
    """Delete a file if it is unchanged: a regular file with the noted inode and bytes."""
    with os.fdopen(os.open(file.path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as opened:
        same = (
            os.fstat(opened.fileno()).st_ino == file.inode and file.digest == file_digest(opened, "sha256").hexdigest()
        )
        if same and os.lstat(file.path).st_ino == file.inode:
            Path(file.path).unlink()
