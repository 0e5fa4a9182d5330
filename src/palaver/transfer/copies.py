"""Copies: everything of one store into another, of whatever kind, with a comparison; and a session a second time in its own store.

A copy of a store writes what is missing and never changes or deletes an entry. It is one transaction of the target: a copy that is cut off leaves the target
as it was, and its writers wait until the end. A target over several databases gets a transaction for each session instead; repeat a copy that is cut off. Entries are written as they are, with their headers: also tombstones, and kinds of a later palaver. The
full-text index is derived and not copied. Afterwards both stores are read again side by side, and every part of every session, and every payload, is compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import chain, zip_longest
from typing import Any, NamedTuple

from palaver.errors import Conflict, Erased, InvalidInput, NotFound, StoreDamaged
from palaver.ids import DialogId, SessionId, new_dialog_id, new_session_id, now
from palaver.log import Handle, Invocation, Node, Span, decode_entry, path_to, renamed
from palaver.messages import canonical_json
from palaver.store.erasing import Erasing, Gone, Thing
from palaver.store.protocol import Capability, Copyable, SessionRecord, Store
from palaver.store.records import SHORT_DIGITS
from palaver.transfer.landing import land
from palaver.transfer.records import EntryRecord, Payload, Record
from palaver.transfer.writer import path, stream
from palaver.view import renamed_call

_SIZES = ("sessions", "dialogs", "entries", "bytes", "blobs", "written", "others")


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """What a copy did, and what differs afterwards.

    Attributes:
        sessions: How many sessions the source has, with those in the trash.
        dialogs: How many dialogs they have.
        entries: How many entries those have.
        bytes: The length of all their bodies.
        blobs: How many payloads they name, counted in each session.
        written: How many entries were missing and were written.
        others: How many sessions only the target has.
        differences: What is not equal, in words.
    """

    sessions: int
    dialogs: int
    entries: int
    bytes: int
    blobs: int
    written: int
    others: int
    differences: tuple[str, ...]

    @property
    def equal(self) -> bool:
        """Whether the target has all of the source, unchanged."""
        return not self.differences


def copy_store(source: Store, target: Store) -> Copied:
    """Copy everything into another store, and compare.

    Args:
        source: The store to copy; it is only read. What is written there meanwhile may show up as a difference: copy again.
        target: The store to copy into; what else it has stays as it is.

    Raises:
        InvalidInput: One of them cannot be copied, or they are the same.
        StoreError: One of them failed, and the target is as it was; the copy can be repeated.
    """
    if not (isinstance(source, Copyable) and isinstance(target, Copyable)):
        raise InvalidInput("One of the stores is of a kind that cannot be copied.")
    if source is target or (source.url == target.url and source.url != "memory:"):
        raise InvalidInput("A store cannot be copied into itself.", hint="Name two stores.")
    ids = _session_ids(source)
    with target.transaction() if Capability.SPANNING in target.capabilities else nullcontext():
        refused = [
            f"{thing} {name}: it was erased in the source and is still in the target (receipt {gone.receipt})"
            for thing, name, gone in copy_erasures(source, target)
        ]
        written = 0
        for session_id in ids:
            try:
                written += _copy_session(source, target, session_id)
            except (InvalidInput, Conflict, Erased, StoreDamaged) as error:
                refused.append(f"session {session_id}: {error.message}")
    for session_id in ids:  # what a sweep of the target took meanwhile; now it is named there
        for payload in _missing_payloads(source, target, session_id):
            target.put_blob(session_id, payload.data)
    sizes = Counter[str](sessions=len(ids), written=written, others=len(set(_session_ids(target)) - set(ids)))
    differences = (*refused, *_compared(source, target, ids, sizes))
    return Copied(**{name: sizes[name] for name in _SIZES}, differences=differences)


def _compared(source: Copyable, target: Copyable, ids: Sequence[SessionId], sizes: Counter[str]) -> Iterator[str]:
    """Read both stores, count what the source has, and return in words what differs."""
    for session_id in ids:
        yield from (f"session {session_id}: {what}" for what in _differences(source, target, session_id))
        for node in source.nodes(session_id):
            last = source.last(node.dialog_id)
            sizes.update(dialogs=1, entries=last.seq + 1, bytes=last.total)
        for blob in source.blob_ids(session_id):
            sizes["blobs"] += 1
            if not target.has_blob(session_id, blob):
                yield f"payload {blob} is missing"
            elif sha256(target.blob(session_id, blob)).hexdigest() != blob:
                yield f"payload {blob} has other bytes"


def _missing_payloads(source: Copyable, target: Copyable, session_id: SessionId) -> Iterator[Payload]:
    """Yield the payloads of a session that the target lacks."""
    for blob in source.blob_ids(session_id):
        if not target.has_blob(session_id, blob):
            yield Payload(source.blob(session_id, blob))


def copy_erasures(source: Store, target: Store) -> Iterator[tuple[Thing, str, Gone]]:
    """Let the target remember what the source erased, and yield what of it the target still has: a copy deletes nothing."""
    if not (isinstance(source, Erasing) and isinstance(target, Erasing)):
        return
    known = {(thing, name) for thing, name, _gone in target.all_gone()}
    for thing, name, gone in source.all_gone():
        if (thing, name) in known:
            continue
        there: Any = {"session": target.session, "dialog": target.node}.get(thing)
        with suppress(NotFound, Erased):
            if there is not None and there(name):
                yield thing, name, gone
                continue
        with target.erasing() as eraser:
            eraser.remember([(thing, name)], gone)


def _session_ids(store: Store) -> list[SessionId]:
    return sorted(record.session_id for record in chain(store.sessions(), store.sessions(trashed=True)))


def _copy_session(source: Copyable, target: Copyable, session_id: SessionId) -> int:
    """Copy what is missing of a session, and return how many entries that was. Each dialog begins with the last entry that is there, to be compared."""
    since: dict[DialogId, int] = {}
    for node in source.nodes(session_id):
        with suppress(NotFound):
            last = target.last(node.dialog_id).seq
            if last > source.last(node.dialog_id).seq:
                raise InvalidInput(f"dialog {node.dialog_id} differs in the target: it was continued there")
            since[node.dialog_id] = max(last, 0)
    records = stream(source, session_id, since=since, payloads="none", exact=True)
    first = [next(records)]  # the session, whose payloads come before the sources that name them
    everything = chain(first, _missing_payloads(source, target, session_id), records)
    return land(everything, target, exists="mirror").entries


def _differences(source: Store, target: Store, session_id: SessionId) -> Iterator[str]:
    """Read a session from both stores side by side, and return in words which of its parts differ."""
    try:
        if target.session(session_id) != source.session(session_id):
            yield "its record"
    except (NotFound, Erased):
        yield "it is not there"
        return
    there = {node.dialog_id: node for node in target.nodes(session_id)}
    for node in source.nodes(session_id):
        if there.pop(node.dialog_id, None) != node:
            yield f"dialog {node.dialog_id}, its place in the tree"
            continue
        for what in ("headers", "bodies"):
            pairs = zip_longest(*(getattr(store, what)(node.dialog_id) for store in (source, target)))
            if any(ours != theirs for ours, theirs in pairs):
                yield f"dialog {node.dialog_id}, its {what}"
    yield from (f"dialog {dialog_id}, which the source has not" for dialog_id in there)
    if target.sources(session_id) != source.sources(session_id):
        yield "its sources"


# --- a session a second time ------------------------------------------------------------------------------------------------------


class Copy(NamedTuple):
    """A session that was copied.

    Attributes:
        session_id: The copy.
        names: The ids of the new dialogs, by those of the old ones.
    """

    session_id: SessionId
    names: Mapping[DialogId, DialogId]

    def place(self, place: Handle) -> Handle | None:
        """Return where the copy has an entry, or None where its dialog was not copied."""
        name = self.names.get(place.dialog)
        return None if name is None else place._replace(dialog=name)

    def records(self, records: Iterable[Record]) -> Iterator[Record]:
        """Yield the records of the copy from those of the session."""
        for record in records:
            match record:
                case SessionRecord(root=root):
                    yield replace(record, session_id=self.session_id, root=self._name(root))
                case Node(dialog_id=dialog_id, parent_id=parent_id, ranges=ranges):
                    yield replace(
                        record,
                        dialog_id=self.names[dialog_id],
                        session_id=self.session_id,
                        parent_id=self._name(parent_id),
                        ranges=tuple(Span(self.names[span.dialog], span.start, span.stop) for span in ranges),
                        metadata={},
                    )
                case EntryRecord(body=body):
                    yield replace(record, body=renamed_body(body, self.names))

    def _name(self, dialog: DialogId | None) -> DialogId | None:
        return None if dialog is None else self.names.get(dialog)


def renamed_body(body: bytes, names: Mapping[DialogId, DialogId]) -> bytes:
    """Return the bytes of an entry that names other dialogs instead of the old ones."""
    entry = renamed(decode_entry(body), names)
    if isinstance(entry, Invocation):
        entry = entry.model_copy(update={"manifest": renamed_call(entry.manifest, names)})
    return canonical_json(entry)


def copy_session(
    store: Store, session_id: SessionId, *, workdir: str, metadata: Mapping[str, object], leaf: Handle | None = None
) -> Copy:
    """Copy a session within its store, with new ids and without its sources.

    Args:
        store: The store.
        session_id: The session.
        workdir: The copy's working folder.
        metadata: The copy's metadata.
        leaf: The entry whose path is copied, and which the copy continues. Default: the whole session.
    """
    if leaf is None:
        lengths = {node.dialog_id: store.last(node.dialog_id).seq + 1 for node in store.nodes(session_id)}
    else:
        lengths = path(store, session_id, path_to(store, leaf))
    made = new_session_id(like=session_id)
    # the first digits stay: handles that are printed in texts name the same entries in the copy
    names = {dialog: DialogId(dialog[:SHORT_DIGITS] + new_dialog_id(made)[SHORT_DIGITS:]) for dialog in lengths}
    session, *rest = stream(store, session_id, lengths, payloads="none")
    copy = Copy(made, names)
    assert isinstance(session, SessionRecord)  # noqa: S101 - the first record
    about = replace(session, workdir=workdir, created_at=now(), metadata=metadata)
    about = about if leaf is None else replace(about, root=leaf.dialog)
    land(copy.records([about, *rest]), store)
    return copy
