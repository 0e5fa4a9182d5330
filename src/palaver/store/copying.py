"""Copying everything that one store holds into another, of whatever kind, and proving that it is there.

A copy takes what is missing and never changes or deletes an entry, so it can be cut off anywhere and begun again. Entries are taken as they
are, with their headers, not judged anew: also what a later palaver wrote, and tombstones. The full-text index is derived, and is not copied.

The proof reads both stores again: each part of each session, and every payload, gives a digest made of what the store gives back, and both
must agree.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from hashlib import sha256
from itertools import chain
from typing import Protocol, TypeAlias, runtime_checkable

from palaver.errors import Erased, InvalidInput, NotFound, UnknownSession
from palaver.ids import BlobId, DialogId, SessionId
from palaver.log import Header, Node
from palaver.store.erasing import Erasing
from palaver.store.protocol import SessionRecord, Store
from palaver.store.records import CHANGEABLE, metadata_text

_BATCH_ENTRIES = 500
_BATCH_BYTES = 4 << 20

Progress: TypeAlias = Callable[[str, int, int], None]
"""Is told what is being done ("copying", "comparing"), how many sessions of it are done, and how many there are."""


@runtime_checkable
class Copyable(Store, Protocol):
    """A store that can be copied from and into: all of palaver's are."""

    def blob_ids(self) -> Iterator[BlobId]:
        """Give the ids of all payloads, each once, in order."""
        ...

    def take_entries(self, dialog_id: DialogId, taken: Sequence[tuple[Header, bytes]]) -> None:
        """Write entries of another store as they are, all or none, after what is there; they are not judged again.

        Raises:
            UnknownDialog: No such dialog.
            InvalidInput: They do not follow what is there, or a body is not the one its header tells of.
            Conflict: Another writer was first.
        """
        ...


@dataclass(frozen=True, slots=True)
class Copied:
    """What a copy did, and what its proof says.

    Attributes:
        sessions: How many sessions the source holds, with those in the trash.
        dialogs: How many dialogs they have.
        entries: How many entries those hold.
        bytes: The length of all their bodies.
        blobs: How many payloads there are.
        written: How many entries were missing and were written.
        digest: SHA-256 over everything of the source as the source gives it, hexadecimal.
        found: The same over the same things as the target gives them.
        differences: What is not equal, in words; empty when the digests agree.
        others: How many sessions the target holds that the source does not.
    """

    sessions: int
    dialogs: int
    entries: int
    bytes: int
    blobs: int
    written: int
    digest: str
    found: str
    differences: tuple[str, ...]
    others: int

    @property
    def equal(self) -> bool:
        """Tell whether all that the source holds is in the target, as it is in the source."""
        return self.digest == self.found and not self.differences


def copy_store(source: Store, target: Store, progress: Progress = lambda _what, _done, _of: None) -> Copied:
    """Copy everything into another store, and prove it.

    Args:
        source: The store to copy; it is only read. What is written there meanwhile may be told as a difference: copy again.
        target: The store to copy into; what it holds beside is left alone.
        progress: Is told how far it is.

    Raises:
        InvalidInput: One of them cannot be copied, or they are the same.
        StoreError: One of them failed; the copy can be begun again.
    """
    if not (isinstance(source, Copyable) and isinstance(target, Copyable)):
        raise InvalidInput("One of the stores is of a kind that cannot be copied.")
    if source is target or (source.url == target.url and source.url != "memory:"):
        raise InvalidInput("A store cannot be copied into itself.", hint="Name two stores.")
    _copy_payloads(source, target)
    ids = _session_ids(source)
    refused = list(_carry_erasures(source, target))
    written = 0
    for done, session_id in enumerate(ids):
        progress("copying", done, len(ids))
        try:
            written += _copy_session(source, target, session_id)
        except (InvalidInput, Erased) as error:
            refused.append(f"session {session_id}: {error.message}")
    _copy_payloads(source, target)  # what an erasure or a sweep of the target took meanwhile; now it is named there
    return replace(_prove(source, target, ids, progress, refused), written=written)


def _copy_payloads(source: Copyable, target: Copyable) -> None:
    for blob in source.blob_ids():
        if not target.has_blob(blob):
            target.put_blob(source.blob(blob))


def _carry_erasures(source: Store, target: Store) -> Iterator[str]:
    """Let the target remember what the source has erased, and tell what of it the target still holds: a copy deletes nothing."""
    if not (isinstance(source, Erasing) and isinstance(target, Erasing)):
        return
    for thing, name, gone in source.all_gone():
        if _holds(target, thing, name):
            yield f"{thing} {name}: it was erased in the source and is in the target still (receipt {gone.receipt})"
        elif target.gone(thing, name) is None:
            with target.erasing() as eraser:
                eraser.remember([(thing, name)], gone)


def _holds(store: Store, thing: str, name: str) -> bool:
    try:
        if thing == "session":
            store.session(SessionId(name))
        elif thing == "dialog":
            store.node(DialogId(name))
        else:
            return False
    except (NotFound, Erased):
        return False
    return True


def _session_ids(store: Store) -> list[SessionId]:
    return sorted(record.session_id for record in chain(store.sessions(), store.sessions(trashed=True)))


def _copy_session(source: Copyable, target: Copyable, session_id: SessionId) -> int:
    """Copy what is missing of a session, and give how many entries that was."""
    record = source.session(session_id)
    try:
        known = target.session(session_id)
    except UnknownSession:
        target.create_session(record)
    else:
        changes = {name: getattr(record, name) for name in CHANGEABLE if getattr(record, name) != getattr(known, name)}
        if changes:
            target.update_session(session_id, **changes)
    there = {node.dialog_id for node in target.nodes(session_id)}
    written = 0
    for node in source.nodes(session_id):  # an ancestor's entries are there before a range of them is named
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
        raise InvalidInput(
            f"dialog {dialog_id} went on otherwise in the target, or entries of it were erased in one of them"
        )
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


def fingerprint(store: Store) -> str:
    """Give SHA-256 over all that a store gives back of its sessions and payloads, hexadecimal; equal for stores of any kind that hold the same.

    Raises:
        InvalidInput: The store is of a kind that cannot be copied.
    """
    if not isinstance(store, Copyable):
        raise InvalidInput("The store is of a kind that cannot be copied.")
    whole = sha256()
    for session_id in _session_ids(store):
        whole.update(f"{session_id} {sorted(_parts(store, session_id).items())!r}".encode())
    for blob in store.blob_ids():
        whole.update(f"{blob} {_payload(store, blob)}".encode())
    return whole.hexdigest()


# --- the proof ------------------------------------------------------------------------------------------------------------------


def _prove(
    source: Copyable, target: Copyable, ids: Sequence[SessionId], progress: Progress, refused: Sequence[str]
) -> Copied:
    ours, theirs = sha256(), sha256()
    differences = list(refused)
    dialogs = entries = size = 0
    for done, session_id in enumerate(ids):
        progress("comparing", done, len(ids))
        told, found = _parts(source, session_id), _parts(target, session_id)
        ours.update(repr(sorted(told.items())).encode())
        theirs.update(repr(sorted(found.items())).encode())
        differences += [
            f"session {session_id}: {place}"
            for place in sorted(told.keys() | found.keys())
            if told.get(place) != found.get(place)
        ]
        for node in source.nodes(session_id):
            last = source.last(node.dialog_id)
            dialogs, entries, size = dialogs + 1, entries + last.seq + 1, size + last.total
    blobs = 0
    for blob in source.blob_ids():
        blobs += 1
        there = _payload(target, blob)
        ours.update(_payload(source, blob).encode())
        theirs.update(there.encode())
        if there != blob:
            differences.append(f"payload {blob} is {'damaged' if there else 'missing'}")
    progress("comparing", len(ids), len(ids))
    others = len(set(_session_ids(target)) - set(ids))
    return Copied(
        sessions=len(ids),
        dialogs=dialogs,
        entries=entries,
        bytes=size,
        blobs=blobs,
        written=0,
        digest=ours.hexdigest(),
        found=theirs.hexdigest(),
        differences=tuple(dict.fromkeys(differences)),
        others=others,
    )


def _payload(store: Copyable, blob: BlobId) -> str:
    """Give the digest of a payload as the store gives it back, empty when it is missing."""
    return sha256(store.blob(blob)).hexdigest() if store.has_blob(blob) else ""


def _parts(store: Copyable, session_id: SessionId) -> dict[str, str]:
    """Give the digests of all that a store gives of a session, by what it is."""
    try:
        record = store.session(session_id)
    except (UnknownSession, Erased):
        return {}
    parts = {"its record": _digest(_fields(record))}
    for node in store.nodes(session_id):
        parts[f"dialog {node.dialog_id}, its place in the tree"] = _digest(_fields(node))
        parts[f"dialog {node.dialog_id}, its headers"] = _all(repr(one) for one in store.headers(node.dialog_id))
        parts[f"dialog {node.dialog_id}, its bodies"] = _all(
            f"{seq} {sha256(body).hexdigest()}" for seq, body in store.bodies(node.dialog_id)
        )
    for origin in store.sources(session_id):
        parts[f"source {origin.identity}"] = _digest(repr(asdict(origin)))
    return parts


def _fields(value: SessionRecord | Node) -> str:
    """Give all the fields of a record or node as one text, the same for every store."""
    plain = astuple(replace(value, metadata={}))
    return f"{plain!r} {json.dumps(json.loads(metadata_text(value.metadata)), sort_keys=True)}"


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _all(texts: Iterator[str]) -> str:
    """Give one digest for many texts, in constant memory."""
    whole = sha256()
    for text in texts:
        whole.update(text.encode("utf-8", "surrogatepass") + b"\n")
    return whole.hexdigest()
