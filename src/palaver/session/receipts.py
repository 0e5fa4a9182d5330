"""Receipts: what an erasure did, as a value that can be kept, sent, and checked against the store."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from itertools import chain
from typing import Any, Literal, NamedTuple

from pydantic import TypeAdapter

from palaver.errors import Erased, InvalidInput, NotFound, PalaverError, StoreError
from palaver.ids import BlobId, DialogId, SessionId
from palaver.log import decode_entry
from palaver.messages import canonical_json
from palaver.store.erasing import Erasing, KeptReceipt, NotedFile
from palaver.store.protocol import Store

__all__ = [
    "Receipt",
    "Remaining",
    "Verdict",
    "erasing_store",
    "pending_of",
    "subject_digest",
    "verify_receipt",
]


class Remaining(NamedTuple):
    """A tombstone.

    Attributes:
        dialog: The dialog.
        seq: The entry's number.
        kind: The entry's kind, which it keeps.
        digest: The digest of the tombstone's bytes, as in its header, hexadecimal.
        part: Whether only what was derived from erased entries was removed from it.
    """

    dialog: str
    seq: int
    kind: str
    digest: str
    part: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What an erasure did: ids, counts and digests, and no word of what was erased.

    Attributes:
        id: Its own id; tombstones and `Erased` errors name it.
        at: When, in seconds since 1970-01-01 UTC.
        asked: What was asked for; a subject only as a salted digest.
        sessions: The sessions that were removed.
        dialogs: The dialogs that were removed.
        tombstones: What remains in place of entries.
        blobs: The payloads that were removed: SHA-256, hexadecimal.
        kept_blobs: How many payloads were kept because something else names them.
        sources: The imported conversations that were forgotten, by the SHA-256 of their identity.
        entries: How many entries were removed or overwritten.
        beyond: What may keep old bytes and is out of the store's reach, in words.
        summaries: The entries whose summary or record was removed, by handle; they are among the tombstones.
        pending: What is still to be done before the bytes are gone, in words; empty when all is done.
        version: The version of this form.
    """

    id: str
    at: float
    asked: Mapping[str, Any]
    sessions: tuple[str, ...] = ()
    dialogs: tuple[str, ...] = ()
    tombstones: tuple[Remaining, ...] = ()
    blobs: tuple[str, ...] = ()
    kept_blobs: int = 0
    sources: tuple[str, ...] = ()
    entries: int = 0
    beyond: tuple[str, ...] = ()
    summaries: tuple[str, ...] = ()
    pending: tuple[str, ...] = field(default=(), compare=False)
    version: Literal[1] = 1

    @property
    def complete(self) -> bool:
        """Whether nothing is pending: the bytes are gone from where the store can reach."""
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
            InvalidInput: It is not a receipt, or one of a later version.
        """
        try:
            return _receipts().validate_json(text)
        except ValueError as error:
            raise InvalidInput(f"This is not a receipt of an erasure: {error}.") from error

    def with_pending(self, pending: Iterable[str]) -> Receipt:
        """Return the same receipt with other work pending."""
        return replace(self, pending=tuple(pending))


@cache
def _receipts() -> TypeAdapter[Receipt]:
    """Return what writes and reads receipts; made on first use."""
    return TypeAdapter(Receipt)


def subject_digest(salt: str, subject: str) -> str:
    """Return what a receipt holds of a subject: the SHA-256 of a salt and the subject, hexadecimal."""
    return sha256(f"{salt}:{subject}".encode("utf-8", "surrogatepass")).hexdigest()


def pending_of(kept: KeptReceipt) -> tuple[str, ...]:
    """Return what is pending of a receipt, in words."""
    files, work = read_pending(kept)
    return (*work, *(f"the file {file.path} is to be deleted" for file in files))


def read_pending(kept: KeptReceipt) -> tuple[list[NotedFile], list[str]]:
    """Return what is pending of a receipt: files to delete, and work on the storage in words."""
    told = json.loads(kept.pending)
    return [NotedFile(*one) for one in told["files"]], list(told["work"])


def erasing_store(store: Store) -> Erasing:
    """Return the store as one that erases.

    Raises:
        StoreError: It cannot (reason `unsupported`).
    """
    if not isinstance(store, Erasing):
        raise StoreError("This store cannot erase; palaver's own stores can.", reason="unsupported")
    return store


# --- checking a receipt -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What checking a receipt found.

    Attributes:
        receipt: The receipt.
        problems: What is there and should not be, or differs from what the receipt says; in words, empty when it holds.
        notes: What came later and is no fault: a new session of the same subject, a tombstone that a later erasure overwrote.
        pending: What is still to be done before the bytes are gone.
    """

    receipt: Receipt
    problems: tuple[str, ...]
    notes: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether everything that the receipt says is so; work may be pending all the same."""
        return not self.problems


def verify_receipt(store: Store, receipt: Receipt | str) -> Verdict:
    """Check a receipt against the store that gave it, or one that it was copied into.

    Args:
        store: The store.
        receipt: The receipt, its JSON, or its id where this store gave it.

    Raises:
        InvalidInput: It is not a receipt, or this store gave none of this id.
    """
    known = erasing_store(store)
    by_id = {one.receipt_id: one for one in known.receipts()}
    if isinstance(receipt, str):
        text = receipt if receipt.lstrip().startswith("{") else None
        if text is None and receipt not in by_id:
            raise InvalidInput(f"This store gave no receipt with the id {receipt!r}.", hint="Pass the receipt itself.")
        receipt = Receipt.from_json(text or by_id[receipt].text)
    kept = by_id.get(receipt.id)
    problems, notes = list(_problems(known, receipt)), list(_notes(known, receipt))
    if kept is None:
        notes.append("this store did not give the receipt: it is checked as a copy")
    elif Receipt.from_json(kept.text) != receipt:
        problems.append("the receipt is not the one that the store gave")
    pending = () if kept is None else pending_of(kept)
    return Verdict(receipt=receipt.with_pending(pending), problems=tuple(problems), notes=tuple(notes), pending=pending)


def _problems(store: Erasing, receipt: Receipt) -> Iterator[str]:
    for session in receipt.sessions:
        yield from _there("session", session, lambda one: store.session(SessionId(one)))
    for dialog in receipt.dialogs:
        yield from _there("dialog", dialog, lambda one: store.node(DialogId(one)))
    for source in receipt.sources:
        if store.gone("source", source) is None:
            yield f"source {source} is not remembered as erased: an import would bring it back silently"
    yield from (f"payload {blob} is there" for blob in receipt.blobs if store.has_blob(BlobId(blob)))
    for one in receipt.tombstones:
        yield from _of_tombstone(store, one)


def _there(what: str, name: str, ask: Callable[[str], object]) -> Iterator[str]:
    """Yield a problem for a thing that is there, or is missing without being remembered as erased."""
    try:
        ask(name)
    except Erased:
        return
    except NotFound:
        yield f"{what} {name} is not there, and not remembered as erased: it could be brought back silently"
        return
    yield f"{what} {name} is there"


def _of_tombstone(store: Erasing, one: Remaining) -> Iterator[str]:
    place = f"{one.dialog}:{one.seq}"
    try:
        header = store.header(DialogId(one.dialog), one.seq)
        entry = decode_entry(store.body(DialogId(one.dialog), one.seq))
    except Erased:
        return  # its dialog was erased since
    except (PalaverError, ValueError) as error:
        yield f"the tombstone {place} cannot be read: {error}"
        return
    if entry.erased is None:
        yield f"entry {place} is not a tombstone"
    elif header.digest.hex() != one.digest and not one.part and entry.erased.part:
        yield f"the tombstone {place} is not the one that was written"


def _notes(store: Erasing, receipt: Receipt) -> Iterator[str]:
    for one in receipt.tombstones:
        try:
            header = store.header(DialogId(one.dialog), one.seq)
        except (Erased, NotFound):
            continue
        if header.digest.hex() != one.digest:
            yield f"a later erasure overwrote the tombstone {one.dialog}:{one.seq}"
    salt = receipt.asked.get("salt")
    for record in chain(store.sessions(), store.sessions(trashed=True)) if isinstance(salt, str) else ():
        if record.subject and subject_digest(str(salt), record.subject) == receipt.asked.get("digest"):
            yield f"session {record.session_id} is of the same subject: it was made or imported since"
