"""Copying everything that one store holds into another, of whatever kind, and comparing both.

A copy writes what is missing and never changes or deletes an entry. It is one transaction of the target: a copy that is cut off leaves the target
as it was, and its writers wait until the end. Entries are written as they are, with their headers: also tombstones, and kinds of a later palaver. The full-text index is derived and not copied. Afterwards both stores
are read again side by side, and every part of every session, and every payload, is compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain, zip_longest
from typing import Any, Protocol, runtime_checkable

from palaver.errors import Erased, InvalidInput, NotFound
from palaver.ids import BlobId, DialogId, SessionId
from palaver.log import Header
from palaver.store.erasing import Erasing
from palaver.store.protocol import Store
from palaver.store.records import CHANGEABLE

_BATCH_ENTRIES = 500
_BATCH_BYTES = 4 << 20
_SIZES = ("sessions", "dialogs", "entries", "bytes", "blobs", "written", "others")


@runtime_checkable
class Copyable(Store, Protocol):
    """A store that can be copied from and into: all of palaver's are."""

    def blob_ids(self) -> Iterator[BlobId]:
        """Return the ids of all payloads, each once, in order."""
        ...

    def take_entries(self, dialog_id: DialogId, taken: Sequence[tuple[Header, bytes]]) -> None:
        """Write entries of another store as they are, all or none, after what is there. Legality is not judged again.

        Raises:
            InvalidInput: They do not follow what is there, or a body does not match its header.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """What a copy did, and what differs afterwards.

    Attributes:
        sessions: How many sessions the source holds, with those in the trash.
        dialogs: How many dialogs they have.
        entries: How many entries those hold.
        bytes: The length of all their bodies.
        blobs: How many payloads there are.
        written: How many entries were missing and were written.
        others: How many sessions the target holds that the source does not.
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
        """Whether all that the source holds is in the target as it is in the source."""
        return not self.differences


def copy_store(source: Store, target: Store) -> Copied:
    """Copy everything into another store, and compare.

    Args:
        source: The store to copy; it is only read. What is written there meanwhile may show up as a difference: copy again.
        target: The store to copy into; what else it holds is left alone.

    Raises:
        InvalidInput: One of them cannot be copied, or they are the same.
        StoreError: One of them failed, and the target is as it was; the copy can be repeated.
    """
    if not (isinstance(source, Copyable) and isinstance(target, Copyable)):
        raise InvalidInput("One of the stores is of a kind that cannot be copied.")
    if source is target or (source.url == target.url and source.url != "memory:"):
        raise InvalidInput("A store cannot be copied into itself.", hint="Name two stores.")
    ids = _session_ids(source)
    with target.transaction():
        _copy_payloads(source, target)
        refused = list(_copy_erasures(source, target))
        written = 0
        for session_id in ids:
            try:
                written += _copy_session(source, target, session_id)
            except (InvalidInput, Erased) as error:
                refused.append(f"session {session_id}: {error.message}")
    _copy_payloads(source, target)  # what a sweep of the target took meanwhile; now it is named there
    sizes = Counter[str](sessions=len(ids), written=written, others=len(set(_session_ids(target)) - set(ids)))
    differences = (*refused, *_compared(source, target, ids, sizes))
    return Copied(**{name: sizes[name] for name in _SIZES}, differences=differences)


def _compared(source: Copyable, target: Copyable, ids: Sequence[SessionId], sizes: Counter[str]) -> Iterator[str]:
    """Read both stores, count what the source holds, and return in words what differs."""
    for session_id in ids:
        yield from (f"session {session_id}: {one}" for one in _differences(source, target, session_id))
        for node in source.nodes(session_id):
            last = source.last(node.dialog_id)
            sizes.update(dialogs=1, entries=last.seq + 1, bytes=last.total)
    for blob in source.blob_ids():
        sizes["blobs"] += 1
        if not target.has_blob(blob):
            yield f"payload {blob} is missing"
        elif sha256(target.blob(blob)).hexdigest() != blob:
            yield f"payload {blob} is damaged"


def _copy_payloads(source: Copyable, target: Copyable) -> None:
    for blob in source.blob_ids():
        if not target.has_blob(blob):
            target.put_blob(source.blob(blob))


def _copy_erasures(source: Store, target: Store) -> Iterator[str]:
    """Let the target remember what the source erased, and report what of it the target still holds: a copy deletes nothing."""
    if not (isinstance(source, Erasing) and isinstance(target, Erasing)):
        return
    for thing, name, gone in source.all_gone():
        there: Any = {"session": target.session, "dialog": target.node}.get(thing)
        with suppress(NotFound, Erased):
            if there is not None and there(name):
                yield f"{thing} {name}: it was erased in the source and is still in the target (receipt {gone.receipt})"
                continue
        if target.gone(thing, name) is None:
            with target.erasing() as eraser:
                eraser.remember([(thing, name)], gone)


def _session_ids(store: Store) -> list[SessionId]:
    return sorted(record.session_id for record in chain(store.sessions(), store.sessions(trashed=True)))


def _copy_session(source: Copyable, target: Copyable, session_id: SessionId) -> int:
    """Copy what is missing of a session, and return how many entries that was."""
    record = source.session(session_id)
    try:
        known = target.session(session_id)
    except NotFound:
        target.create_session(record)
    else:
        changes = {name: getattr(record, name) for name in CHANGEABLE if getattr(record, name) != getattr(known, name)}
        if changes:
            target.update_session(session_id, **changes)
    there = {node.dialog_id for node in target.nodes(session_id)}
    written = 0
    for node in source.nodes(session_id):  # ancestors come first
        if node.dialog_id not in there:
            target.create_dialog(node)
        written += _copy_entries(source, target, node.dialog_id)
    for origin in source.sources(session_id):
        if target.source(origin.identity) != origin:
            target.put_source(origin)
    return written


def _copy_entries(source: Copyable, target: Copyable, dialog_id: DialogId) -> int:
    there = target.last(dialog_id)
    start = there.seq + 1
    if there.seq > source.last(dialog_id).seq or (start and there != source.header(dialog_id, there.seq)):
        raise InvalidInput(f"dialog {dialog_id} differs in the target, or entries of it were erased in one of them")
    written = 0
    for batch in _batches(source, dialog_id, start):
        target.take_entries(dialog_id, batch)
        written += len(batch)
    return written


def _batches(source: Copyable, dialog_id: DialogId, start: int) -> Iterator[list[tuple[Header, bytes]]]:
    stop = source.last(dialog_id).seq + 1
    batch: list[tuple[Header, bytes]] = []
    size = 0
    bodies = source.bodies(dialog_id, start, stop)
    for header, (seq, body) in zip(source.headers(dialog_id, start, stop), bodies, strict=False):
        if header.seq != seq:
            raise InvalidInput(f"the body of {dialog_id}:{header.seq} is lost in the source")
        batch.append((header, body))
        size += len(body)
        if len(batch) >= _BATCH_ENTRIES or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


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
