"""Receipts of erasures: values that can be stored, sent, and checked against the store."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from itertools import chain, zip_longest
from typing import Any, Literal, NamedTuple

from pydantic import TypeAdapter

from palaver.errors import Erased, InvalidInput, NotFound, PalaverError, StoreError
from palaver.ids import BlobId, DialogId, SessionId
from palaver.log import decode_entry
from palaver.messages import canonical_json
from palaver.store.erasing import Erasing, KeptReceipt, NotedFile
from palaver.store.protocol import Store


class Remaining(NamedTuple):
    """A tombstone.

    Attributes:
        dialog: The dialog.
        seq: The entry's number.
        kind: The entry's kind, which it keeps.
        digest: The digest of the tombstone's bytes, as in its header, hexadecimal.
    """

    dialog: str
    seq: int
    kind: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The receipt of an erasure: ids, counts and digests, without any erased text.

    Attributes:
        id: Its own id; tombstones and `Erased` errors name it.
        at: The time, in seconds since 1970-01-01 UTC.
        asked: The requested scope; a subject only as a salted digest.
        sessions: The sessions that were removed.
        dialogs: The dialogs that were removed.
        tombstones: The tombstones that replace entries.
        blobs: The payloads that were removed: SHA-256, hexadecimal.
        blob_sessions: The session of each of these payloads, in the same order.
        kept_blobs: The number of payloads kept because other entries name them.
        sources: The imported conversations that were forgotten, by the SHA-256 of their identity.
        shredded: The removed sessions with a key of their own. Once nothing is pending it is destroyed, and no copy of the store can be read.
        entries: The number of entries removed or overwritten.
        beyond: Files and replay logs that the session was written to and that are not there any more, as text: they may keep old bytes.
        pending: The remaining work before all bytes are gone, as text; empty if done.
        version: The version of the format.
    """

    id: str
    at: float
    asked: Mapping[str, Any]
    sessions: tuple[str, ...] = ()
    dialogs: tuple[str, ...] = ()
    tombstones: tuple[Remaining, ...] = ()
    blobs: tuple[str, ...] = ()
    blob_sessions: tuple[str, ...] = ()
    kept_blobs: int = 0
    sources: tuple[str, ...] = ()
    shredded: tuple[str, ...] = ()
    entries: int = 0
    beyond: tuple[str, ...] = ()
    pending: tuple[str, ...] = field(default=(), compare=False)
    version: Literal[1] = 1

    @property
    def complete(self) -> bool:
        """Whether nothing is pending: the bytes are gone from everything that the store can reach."""
        return not self.pending

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        made: dict[str, Any] = _receipts().dump_python(self, mode="json")
        return made

    def to_json(self) -> str:
        """Return it as one line of canonical JSON."""
        return canonical_json(self.to_dict()).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Receipt:
        """Read what `to_json` returned.

        Raises:
            InvalidInput: The text is not a receipt, or has a newer version.
        """
        try:
            return _receipts().validate_json(text)
        except ValueError as error:
            raise InvalidInput(f"This is not a receipt of an erasure: {error}.") from error

    def with_pending(self, pending: Iterable[str]) -> Receipt:
        """Return the receipt with other pending work."""
        return replace(self, pending=tuple(pending))


@cache
def _receipts() -> TypeAdapter[Receipt]:
    """Return the codec of receipts, created on first use."""
    return TypeAdapter(Receipt)


def subject_digest(salt: str, subject: str) -> str:
    """Return a receipt's digest of a subject: the SHA-256 of a salt and the subject, hexadecimal."""
    return sha256(f"{salt}:{subject}".encode("utf-8", "surrogatepass")).hexdigest()


def pending_of(kept: KeptReceipt) -> tuple[str, ...]:
    """Return the pending work of a receipt, as text."""
    files, work = read_pending(kept)
    due = {True: "what was erased is to be removed from the replay log {}", False: "the file {} is to be deleted"}
    return (*work, *(due[file.is_folder].format(file.path) for file in files))


def read_pending(kept: KeptReceipt) -> tuple[list[NotedFile], list[str]]:
    """Return the pending work of a receipt: files to delete, and work on the storage as text."""
    pending = json.loads(kept.pending)
    return [NotedFile(*file) for file in pending["files"]], list(pending["work"])


def erasing_store(store: Store) -> Erasing:
    """Return the store with its erasing interface.

    Raises:
        StoreError: The store cannot erase (reason `unsupported`).
    """
    if not isinstance(store, Erasing):
        raise StoreError("This store cannot erase; palaver's own stores can.", reason="unsupported")
    return store


# --- checking a receipt -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result of checking a receipt.

    Attributes:
        receipt: The receipt.
        problems: Differences between the receipt and the store, as text; empty if it holds.
        notes: Later changes that are not faults: a new session of the subject, a tombstone that a later erasure overwrote.
        pending: The remaining work before all bytes are gone.
    """

    receipt: Receipt
    problems: tuple[str, ...]
    notes: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether the store matches the receipt. Work may still be pending."""
        return not self.problems


def verify_receipt(store: Store, receipt: Receipt | str) -> Verdict:
    """Check a receipt against the store that wrote it, or a copy of that store.

    Args:
        store: The store.
        receipt: The receipt, its JSON, or its id if this store wrote it.

    Raises:
        InvalidInput: It is not a receipt, or this store wrote none with this id.
    """
    known = erasing_store(store)
    by_id = {kept.receipt_id: kept for kept in known.receipts()}
    if isinstance(receipt, str):
        text = receipt if receipt.lstrip().startswith("{") else None
        if text is None and receipt not in by_id:
            raise InvalidInput(f"This store wrote no receipt with the id {receipt!r}.", hint="Pass the receipt itself.")
        receipt = Receipt.from_json(text or by_id[receipt].text)
    kept = by_id.get(receipt.id)
    problems, notes = list(_problems(known, receipt)), list(_notes(known, receipt))
    if kept is None:
        notes.append("this store did not write the receipt: it is checked as a copy")
    elif Receipt.from_json(kept.text) != receipt:
        problems.append("the receipt is not the one that the store wrote")
    pending = () if kept is None else pending_of(kept)
    return Verdict(receipt=receipt.with_pending(pending), problems=tuple(problems), notes=tuple(notes), pending=pending)


def _problems(store: Erasing, receipt: Receipt) -> Iterator[str]:
    for session in receipt.sessions:
        yield from _there("session", session, lambda name: store.session(SessionId(name)))
    for dialog in receipt.dialogs:
        yield from _there("dialog", dialog, lambda name: store.node(DialogId(name)))
    for source in receipt.sources:
        if store.gone("source", source) is None:
            yield f"source {source} is not remembered as erased: an import would bring it back silently"
    for blob, of in zip_longest(receipt.blobs, receipt.blob_sessions, fillvalue=""):
        if of not in receipt.shredded and store.has_blob(SessionId(of), BlobId(blob)):
            yield f"payload {blob} is there"
    for tombstone in receipt.tombstones:
        yield from _of_tombstone(store, tombstone, receipt.id)


def _there(what: str, name: str, ask: Callable[[str], object]) -> Iterator[str]:
    """Yield a problem for an object that exists, or is missing without a record of its erasure."""
    try:
        ask(name)
    except Erased:
        return
    except NotFound:
        yield f"{what} {name} is not there, and not remembered as erased: it could be brought back silently"
        return
    yield f"{what} {name} is there"


def _of_tombstone(store: Erasing, tombstone: Remaining, receipt: str) -> Iterator[str]:
    place = f"{tombstone.dialog}:{tombstone.seq}"
    try:
        header = store.header(DialogId(tombstone.dialog), tombstone.seq)
        entry = decode_entry(store.body(DialogId(tombstone.dialog), tombstone.seq))
    except Erased:
        return  # its dialog was erased later
    except (PalaverError, ValueError) as error:
        yield f"the tombstone {place} cannot be read: {error}"
        return
    if entry.erased is None:
        yield f"entry {place} is not a tombstone"
    elif header.digest.hex() != tombstone.digest and entry.erased.receipt == receipt:
        yield f"the tombstone {place} is not the one that was written"


def _notes(store: Erasing, receipt: Receipt) -> Iterator[str]:
    for tombstone in receipt.tombstones:
        try:
            header = store.header(DialogId(tombstone.dialog), tombstone.seq)
        except (Erased, NotFound):
            continue
        if header.digest.hex() != tombstone.digest:
            yield f"a later erasure overwrote the tombstone {tombstone.dialog}:{tombstone.seq}"
    salt = receipt.asked.get("salt")
    for record in chain(store.sessions(), store.sessions(trashed=True)) if isinstance(salt, str) else ():
        if record.subject and subject_digest(str(salt), record.subject) == receipt.asked.get("digest"):
            yield f"session {record.session_id} is of the same subject: it was made or imported since"
