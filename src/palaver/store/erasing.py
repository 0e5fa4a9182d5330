"""Erasing: the one way in which what was written leaves a store. Every store of palaver's has it; the session decides what is erased.

One erasure is one transaction: entries are overwritten by their tombstones, rows are deleted, and the receipt is written with them, or nothing
of it happened. What the storage itself still holds then (a log, free pages, dead rows) is left to `scrub`, which can be done again at any time;
until it is done, the erasure says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from hashlib import sha256
from typing import Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from palaver.errors import Erased, StoreDamaged
from palaver.ids import BlobId, DialogId, SessionId
from palaver.log import Header, body_digest
from palaver.store.protocol import Store

__all__ = [
    "FRESH",
    "Eraser",
    "Erasing",
    "Gone",
    "KeptReceipt",
    "Mark",
    "Placed",
    "Stray",
    "Thing",
    "Unnamed",
    "is_fresh",
    "listed",
    "may_name",
    "named_in",
    "retotalled",
    "source_name",
]

FRESH = 600.0
"""For so many seconds a payload that is put again counts as put just now: then nothing is written for it."""

Thing: TypeAlias = Literal["session", "dialog", "source"]
"""What a store remembers to have erased; of a source only `source_name`."""


class Placed(NamedTuple):
    """What is put in place of an entry.

    Attributes:
        seq: The entry's number in its dialog.
        kind: The kind of what is put there.
        body: Its bytes.
    """

    seq: int
    kind: str
    body: bytes


class Gone(NamedTuple):
    """What is remembered of something erased.

    Attributes:
        at: When, in seconds since 1970-01-01 UTC.
        receipt: The id of its receipt.
    """

    at: float
    receipt: str

    def error(self, what: str, name: str) -> Erased:
        """Give the error for whoever asks for it."""
        return Erased(what, name, self.at, self.receipt)


class KeptReceipt(NamedTuple):
    """A receipt as a store keeps it.

    Attributes:
        receipt_id: Its id.
        text: The receipt, JSON.
        pending: What is still to be done, JSON; it may name files, and is emptied when they are gone.
    """

    receipt_id: str
    text: str
    pending: str


class Stray(NamedTuple):
    """A payload that nothing names: what a writer leaves that dies between putting it and naming it.

    Attributes:
        blob_id: The payload.
        size: Its length, in bytes.
        age: How long ago somebody put it last, in seconds by the store's clock, to `FRESH`.
    """

    blob_id: BlobId
    size: int
    age: float


class Mark(NamedTuple):
    """How far a store had been written when somebody began to look, for whoever looks again only at what was written since.

    Attributes:
        place: Where that was, in the store's own terms; another store can do nothing with it.
        lists: The lists of pieces that were read since: what is named by its content says the same for ever.
    """

    place: object
    lists: frozenset[str] = frozenset()


class Unnamed(NamedTuple):
    """What somebody found who looked while others wrote.

    Attributes:
        blob_ids: The payloads that nothing named.
        mark: How far the store had been written before the look.
    """

    blob_ids: frozenset[BlobId]
    mark: Mark


class Eraser(Protocol):
    """What may be done inside one erasure. All of it happens together, or none of it; nobody else writes meanwhile."""

    def put_in_place(self, dialog_id: DialogId, placed: Sequence[Placed]) -> None:
        """Overwrite own entries: digests, sizes and running sizes follow, and the full-text index forgets them.

        What is put in place names no payload that the entry did not name.

        Raises:
            UnknownDialog: No such dialog.
            UnknownHandle: It has no such entry.
        """
        ...

    def clear_dialog(self, dialog_id: DialogId) -> None:
        """Empty the metadata of a dialog's node."""
        ...

    def remove_dialogs(self, dialog_ids: Collection[DialogId]) -> None:
        """Delete dialogs with their entries and what the full-text index has of them."""
        ...

    def remove_session(self, session_id: SessionId) -> None:
        """Delete a session, whose dialogs are gone, with its sources and the files that are known of it."""
        ...

    def remove_leases(self, ids: Collection[str]) -> None:
        """Delete the leases whose name holds one of these ids."""
        ...

    def unnamed(
        self, blob_ids: Collection[BlobId], older_than: float | None = None, since: Mark | None = None
    ) -> frozenset[BlobId]:
        """Give those payloads that nothing names: no entry, no source and no list of pieces. Reads every body that names any payload.

        Args:
            blob_ids: The payloads.
            older_than: Only those that nobody has put for so many seconds, by the store's clock; None for all.
            since: What was written before this mark is not read again: a look that began with it (`Erasing.unnamed`) found that it names none
                of them. Where the store cannot tell any more what was written since, everything is read.
        """
        ...

    def remove_blobs(self, blob_ids: Collection[BlobId]) -> None:
        """Delete payloads."""
        ...

    def remember(self, things: Collection[tuple[Thing, str]], gone: Gone) -> None:
        """Remember what was erased, so that whoever asks is told, and nothing brings it back silently."""
        ...

    def keep_receipt(self, receipt: KeptReceipt) -> None:
        """Write a receipt, or what is pending of it."""
        ...


@runtime_checkable
class Erasing(Store, Protocol):
    """A store that erases: all of palaver's do.

    Attributes:
        beyond: What may keep old bytes and is out of this store's reach, in words; every receipt says it.
    """

    beyond: tuple[str, ...]

    def erasing(self) -> AbstractContextManager[Eraser]:
        """Begin an erasure: one transaction, durable at the end of the block, undone when it raises."""
        ...

    def gone(self, thing: Thing, name: str) -> Gone | None:
        """Tell whether something was erased, by its whole name; for a dialog, the first 6 or more digits of its id are enough."""
        ...

    def all_gone(self) -> Iterator[tuple[Thing, str, Gone]]:
        """Give all that is remembered to be erased, in order."""
        ...

    def receipts(self) -> tuple[KeptReceipt, ...]:
        """Give all receipts, the oldest first."""
        ...

    def scrub(self, *, thorough: bool = True, payloads: bool = False) -> tuple[str, ...]:
        """Take what was deleted out of the storage as far as this store can, and give what is still pending, in words; nothing when all is done.

        Args:
            thorough: Whether to write the storage anew, where that is what it takes. It costs as much as the store is large.
            payloads: Whether nothing but payloads was deleted: then nothing else is gone over, and unless it is to be thorough, nobody waits.
        """
        ...

    def strays(self) -> Iterator[Stray]:
        """Give the payloads that nothing names, in order of their ids; nobody is kept from writing.

        Reads every body that names any payload. What is being written may be among them: only `Eraser.unnamed` is the proof.
        """
        ...

    def unnamed(self, blob_ids: Collection[BlobId], older_than: float) -> Unnamed:
        """Give those payloads that nothing names and that nobody has put for so many seconds; nobody is kept from writing.

        Reads every body that names any payload. `Eraser.unnamed`, given the mark, proves it, and reads only what was written meanwhile.

        Raises:
            StoreDamaged: A list of pieces cannot be read: what it named is not known.
        """
        ...

    def note_file(self, session_id: SessionId, path: str) -> None:
        """Remember that a session was written to a file, so that its erasure can reach that, too.

        Raises:
            UnknownSession: No such session.
        """
        ...

    def files(self, session_id: SessionId) -> tuple[str, ...]:
        """Give the files that a session was written to."""
        ...


def source_name(identity: str) -> str:
    """Name a foreign conversation without telling which it was: the SHA-256 of its identity, hexadecimal."""
    return sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()


def is_fresh(put_at: float | None, at: float) -> bool:
    """Tell whether a payload that was put at a time counts as put at another one; a time that is still to come does not."""
    return put_at is not None and 0 <= at - put_at < FRESH


_DIGEST = re.compile(rb"[0-9a-f]{64}")


def may_name(body: bytes) -> bool:
    """Tell whether an entry may name any payload: media spell the word, and what a custom entry's keys are called is its maker's."""
    return b'"digest"' in body or b'"custom_type"' in body


def named_in(body: bytes) -> set[BlobId]:
    """Give the payloads that an entry, or a list of pieces, may name: whatever is spelt like one."""
    return {BlobId(found.decode()) for found in _DIGEST.findall(body)}


def listed(raw: BlobId, listing: bytes, *, proven: bool) -> set[BlobId]:
    """Give the payloads that a list of pieces names.

    Args:
        raw: The list's own id.
        listing: Its bytes.
        proven: Whether a list that cannot be read is an error: nobody can tell then what it named.

    Raises:
        StoreDamaged: It cannot be read, and was to be.
    """
    if proven:
        try:
            json.loads(listing)["pieces"]
        except (ValueError, KeyError, TypeError) as error:
            raise StoreDamaged(f"blob {raw}", "it lists no kept file, so what it named is not known") from error
    return named_in(listing)


def retotalled(headers: Sequence[Header], placed: Sequence[Placed], before: int) -> Iterator[Header]:
    """Give the headers of neighbouring entries as they are after some were overwritten.

    Args:
        headers: The headers, from the first that is overwritten to the dialog's last.
        placed: What is put in place.
        before: The length of all bodies before the first.
    """
    bodies = {one.seq: one for one in placed}
    total = before
    for header in headers:
        one = bodies.get(header.seq)
        size = header.size if one is None else len(one.body)
        total += size
        if one is None:
            yield header._replace(total=total)
        else:
            yield header._replace(kind=one.kind, size=size, total=total, digest=body_digest(one.body))
