"""The plan of an erasure: all that goes with what is erased. Nothing is written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, TypedDict, Unpack

from palaver.erasure.derived import derived_from
from palaver.erasure.receipts import erasing_store, subject_digest
from palaver.errors import InvalidInput, NotFound, StoreError, require_known
from palaver.ids import BlobId, DialogId, SessionId, new_session_id
from palaver.log import Handle, Span, joined, references
from palaver.store.erasing import Erasing, NotedFile
from palaver.store.protocol import SourceRecord, Store

__all__ = ["ErasurePreview", "ErasureScope", "preview_erasure"]


# --- the preview --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasurePreview:
    """The effects of an erasure. Nothing was written.

    Attributes:
        asked: The requested scope, as the receipt states it.
        sessions: The sessions that would be removed.
        dialogs: The dialogs that would be removed, each after its branches.
        cleared: The dialogs that would have only tombstones.
        tombstones: The entries that would leave a tombstone: those that were named, and those derived from them, such as summaries, records, labels,
            shortened forms and recorded calls.
        entries: The number of entries that would be removed or overwritten, without those of sessions whose key is gone.
        messages: The number of messages among them.
        payloads: The payloads that they name, each with its session. Payloads that other entries also name stay.
        forgotten: The imported conversations that would be forgotten.
        reduced: The imported conversations that would lose their source file.
        noted: The files that the sessions were exported to, and the folders of their replay logs.
    """

    asked: Mapping[str, Any]
    sessions: tuple[SessionId, ...] = ()
    dialogs: tuple[DialogId, ...] = ()
    cleared: tuple[DialogId, ...] = ()
    tombstones: tuple[Handle, ...] = ()
    entries: int = 0
    messages: int = 0
    payloads: frozenset[tuple[SessionId, BlobId]] = field(default=frozenset(), repr=False)
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
        entries: Entries, by their handles, which name no blocks.
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
    require_known("An erasure has no argument", scope, ErasureScope.__annotations__)
    known = erasing_store(store)
    session, dialog, subject = scope.get("session"), scope.get("dialog"), scope.get("subject")
    children, tombstones = scope.get("children", False), scope.get("tombstones", False)
    handles = (Handle.parse(handle) if isinstance(handle, str) else handle for handle in scope.get("entries", ()))
    places = tuple(dict.fromkeys(map(_entry, handles)))
    names = {"session": session, "dialog": dialog, "subject": subject, "entries": places}
    given = [name for name, value in names.items() if value]
    if len(given) != 1:
        named = ", ".join(given) or "none"
        raise InvalidInput(f"Name one of session, dialog, subject and entries to erase; found: {named}.")
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


def _entry(handle: Handle) -> Handle:
    if handle.block is not None:
        raise InvalidInput(
            f"{handle} is a block, and an erasure removes whole entries.",
            hint=f"Pass the handle of its entry: {handle._replace(block=None)}.",
        )
    return handle


def _of_sessions(store: Erasing, asked: Mapping[str, Any], sessions: tuple[SessionId, ...]) -> ErasurePreview:
    readable = tuple(session for session in sessions if _has_key(store, session))
    whole = _of_all(store, asked, sessions)
    counted = _counted(store, whole if readable == sessions else _of_all(store, asked, readable))
    return replace(whole, entries=counted.entries, messages=counted.messages, payloads=counted.payloads)


def _of_all(store: Erasing, asked: Mapping[str, Any], sessions: tuple[SessionId, ...]) -> ErasurePreview:
    dialogs = tuple(node.dialog_id for session in sessions for node in reversed(store.nodes(session)))
    forgotten = tuple(source for session in sessions for source in store.sources(session))
    noted = tuple(file for session in sessions for file in store.files(session))
    return ErasurePreview(asked=asked, sessions=sessions, dialogs=dialogs, forgotten=forgotten, noted=noted)


def _has_key(store: Erasing, session: SessionId) -> bool:
    """Return whether a session can be read: in a backup of an encrypted store may be one whose key was destroyed since."""
    try:
        store.has_blob(session, BlobId("0" * 64))
    except StoreError as error:
        if error.reason != "no_key":
            raise
        return False
    return True


def _of_dialog(store: Erasing, name: str, *, children: bool, tombstones: bool) -> ErasurePreview:
    dialog = store.resolve(name)
    session = store.node(dialog).session_id
    grown, below = {dialog}, list[DialogId]()
    for node in store.nodes(session):  # its branches, and dialogs that share its entries
        if node.dialog_id not in grown and not grown.isdisjoint({node.parent_id, *(s.dialog for s in node.ranges)}):
            grown.add(node.dialog_id)
            below.append(node.dialog_id)
    if below and not (children or tombstones):
        raise InvalidInput(
            f"{len(below)} dialogs grew from dialog {dialog}: {', '.join(other[:12] for other in below)}.",
            hint="Erase them with it (children), or leave tombstones for them (tombstones).",
        )
    extra = {name: True for name, wanted in (("children", children), ("tombstones", tombstones)) if wanted}
    asked = {"what": "dialog", "names": [name], **extra}
    if below and tombstones:
        own = {Handle(dialog, seq) for seq in range(store.last(dialog).seq + 1)}
        return _with_derived(store, ErasurePreview(asked=asked, cleared=(dialog,)), (session,), own)
    return _with_derived(store, ErasurePreview(asked=asked, dialogs=(*reversed(below), dialog)), (session,), set())


def _of_entries(store: Erasing, given: Sequence[Handle]) -> ErasurePreview:
    places = {place._replace(dialog=store.resolve(place.dialog)) for place in given}
    for place in places:
        if not 0 <= place.seq <= store.last(place.dialog).seq:
            raise NotFound(str(place), what="entry")
    sessions = sorted({store.node(place.dialog).session_id for place in places})
    asked = {"what": "entries", "names": [f"{place.dialog}:{place.seq}" for place in given]}
    return _with_derived(store, ErasurePreview(asked=asked), sessions, places)


def _with_derived(
    store: Erasing, plan: ErasurePreview, sessions: Sequence[SessionId], gone: set[Handle]
) -> ErasurePreview:
    """Return the plan with the entries that were derived from erased ones in their sessions."""
    for session in sessions:
        gone = derived_from(store, session, plan.dialogs, gone)
    made = replace(
        plan,
        tombstones=tuple(sorted(gone)),
        reduced=tuple(source for session in sessions for source in store.sources(session) if source.raw is not None),
        noted=tuple(file for session in sessions for file in store.files(session)),
    )
    return _counted(store, made)


def _whole(store: Erasing, dialogs: Iterable[DialogId]) -> tuple[Span, ...]:
    return tuple(Span(dialog, 0, store.last(dialog).seq + 1) for dialog in dialogs)


def _spans(places: Iterable[Handle]) -> tuple[Span, ...]:
    return joined(Span(place.dialog, place.seq, place.seq + 1) for place in sorted(places))


def _counted(store: Erasing, plan: ErasurePreview) -> ErasurePreview:
    """Return the plan with the number of the erased entries, and the payloads that they and kept files name."""
    payloads: set[tuple[SessionId, BlobId]] = set()
    entries = messages = 0
    for span in joined((*_whole(store, plan.dialogs), *_spans(plan.tombstones))):
        before = store.header(span.dialog, span.start - 1).number if span.start else 0
        entries += len(span)
        messages += store.header(span.dialog, span.stop - 1).number - before
        named = (blob for _, body in store.bodies(span.dialog, span.start, span.stop) for blob in references(body))
        session = store.node(span.dialog).session_id
        payloads.update((session, blob) for blob in named if store.has_blob(session, blob))
    for source in (*plan.forgotten, *plan.reduced):
        session, raw = source.session_id, source.raw
        if raw is not None and store.has_blob(session, raw):
            payloads.update((session, BlobId(blob)) for blob in (raw, *json.loads(store.blob(session, raw))["pieces"]))
    payloads |= {(source.session_id, source.index) for source in plan.forgotten if source.index is not None}
    return replace(plan, entries=entries, messages=messages, payloads=frozenset(payloads))
