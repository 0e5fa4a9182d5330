"""Checking a receipt: read the store again, and see that nothing that it names is there and that its tombstones are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain

from palaver.errors import Erased, InvalidInput, NotFound, PalaverError
from palaver.ids import BlobId, DialogId, SessionId
from palaver.log import decode_entry
from palaver.session.erasure.doing import erasing_store, pending_of
from palaver.session.erasure.receipts import Receipt, Remaining
from palaver.session.erasure.scope import subject_digest
from palaver.store.erasing import Erasing
from palaver.store.protocol import Store

__all__ = ["Verdict", "verify_receipt"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What checking a receipt came to.

    Attributes:
        receipt: The receipt.
        problems: What is there and should not be, or is not as the receipt says; in words, empty when it holds.
        notes: What came later and is no fault: a new session of the same subject, a tombstone that a later erasure wrote anew.
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
        InvalidInput: It is no receipt, was changed, or this store gave none of this id.
    """
    known = erasing_store(store)
    if isinstance(receipt, str):
        receipt = _read(known, receipt)
    kept = next((one for one in known.receipts() if one.receipt_id == receipt.id), None)
    problems = list(_problems(known, receipt))
    notes = list(_notes(known, receipt))
    if kept is None:
        notes.append("this store did not give the receipt: it is checked as a copy")
        pending: tuple[str, ...] = ()
    else:
        pending = pending_of(kept)
        if Receipt.from_json(kept.text) != receipt.with_pending(()):
            problems.append("the receipt is not the one that the store gave")
    return Verdict(receipt=receipt, problems=tuple(problems), notes=tuple(notes), pending=pending)


def _read(store: Erasing, text: str) -> Receipt:
    if text.lstrip().startswith("{"):
        return Receipt.from_json(text)
    kept = next((one for one in store.receipts() if one.receipt_id == text), None)
    if kept is None:
        raise InvalidInput(f"This store gave no receipt with the id {text!r}.", hint="Give the receipt itself.")
    return Receipt.from_json(kept.text).with_pending(pending_of(kept))


def _problems(store: Erasing, receipt: Receipt) -> Iterator[str]:
    for session in receipt.sessions:
        yield from _there("session", session, lambda one=session: store.session(SessionId(one)))  # type: ignore[misc]
    for dialog in receipt.dialogs:
        yield from _there("dialog", dialog, lambda one=dialog: store.node(DialogId(one)))  # type: ignore[misc]
    for source in receipt.sources:
        if store.gone("source", source) is None:
            yield f"source {source} is not remembered to be erased: importing it again would bring it back silently"
    for blob in receipt.blobs:
        if store.has_blob(BlobId(blob)):
            yield f"payload {blob} is there"
    for one in receipt.tombstones:
        yield from _of_tombstone(store, one)


def _there(what: str, name: str, ask: Callable[[], object]) -> Iterator[str]:
    """Tell of a thing that is there, or is missing without being remembered."""
    try:
        ask()
    except Erased:
        return
    except NotFound:
        yield f"{what} {name} is not there, but is not remembered to be erased: it could be brought back silently"
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
        yield f"entry {place} is no tombstone"
    elif header.digest.hex() != one.digest and not one.part and entry.erased.part:
        yield f"the tombstone {place} is not the one that was written"


def _notes(store: Erasing, receipt: Receipt) -> Iterator[str]:
    for one in receipt.tombstones:
        try:
            header = store.header(DialogId(one.dialog), one.seq)
        except (Erased, NotFound):
            continue
        if header.digest.hex() != one.digest:
            yield f"the tombstone {one.dialog}:{one.seq} was written anew by a later erasure"
    salt = receipt.asked.get("salt")
    if isinstance(salt, str):
        for record in chain(store.sessions(), store.sessions(trashed=True)):
            if record.subject and subject_digest(salt, record.subject) == receipt.asked.get("digest"):
                yield f"session {record.session_id} is of the same subject: it was made or imported since"
