"""Erasing: the one way in which what was written leaves a store. The session decides what is erased.

An erasure is one transaction: entries are overwritten by their tombstones, rows are deleted, and the receipt is written with them, or nothing
happened. It touches the rows of what it erases and no others, so other sessions are written meanwhile. What the storage still keeps afterwards
(a log, free pages, dead rows) is left to `scrub`, which can be repeated at any time.

Sweeping removes payloads that no entry names: a writer leaves one when it dies between storing it and naming it.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from palaver.errors import Erased, InvalidInput, StoreError
from palaver.ids import BlobId, DialogId, SessionId
from palaver.log import Header, body_digest
from palaver.store.protocol import Store

DAY = 86_400.0

LEAST_AGE = 3_600.0
"""The least age of a payload that a sweep removes, in seconds: longer than a writer takes from storing it to naming it."""

_AT_A_TIME = 1_000  # payloads that one transaction of a sweep removes: others write in between

Thing: TypeAlias = Literal["session", "dialog", "source"]
"""What a store remembers to have erased; of a source only `source_name`."""


class Placed(NamedTuple):
    """What replaces an entry.

    Attributes:
        seq: The entry's number in its dialog.
        kind: The new kind.
        body: The new bytes.
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
        """Return the error for whoever asks for it."""
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


class NotedFile(NamedTuple):
    """A file that a session was written to. Only a file that is still the same may be deleted with the session.

    Attributes:
        path: Its absolute path; that of a folder of replay logs ends with a separator.
        digest: SHA-256 of its bytes, hexadecimal; empty while it is being written.
        inode: Its inode, 0 when unknown.
    """

    path: str
    digest: str = ""
    inode: int = 0

    @classmethod
    def of_folder(cls, folder: Path) -> NotedFile:
        """Return the note of a folder of replay logs."""
        return cls(f"{folder.resolve()}{os.sep}")

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder of replay logs."""
        return self.path.endswith(os.sep)


class Stray(NamedTuple):
    """A payload that no entry and no source names.

    Attributes:
        blob_id: The payload, by the name that the store has for it.
        size: Its length, in bytes.
        age: How long ago it was stored last, in seconds.
    """

    blob_id: BlobId
    size: int
    age: float


class Eraser(Protocol):
    """What may be done inside one erasure."""

    def put_in_place(self, dialog_id: DialogId, placed: Sequence[Placed]) -> None:
        """Overwrite own entries. Digests and sizes follow, and the full-text index forgets them; roles, calls and numbers stay."""
        ...

    def clear_dialog(self, dialog_id: DialogId) -> None:
        """Empty the metadata of a dialog's node."""
        ...

    def remove_dialogs(self, dialog_ids: Collection[DialogId]) -> None:
        """Delete dialogs with their entries and what the full-text index has of them; children before their parents."""
        ...

    def remove_session(self, session_id: SessionId) -> None:
        """Delete a session and all that is left of it."""
        ...

    def unnamed(self, session_id: SessionId | None, blob_ids: Collection[BlobId], /) -> frozenset[BlobId]:
        """Return those payloads of a session that are there and that no entry and no source names. They stay unnamed until the end of the erasure.

        Without a session they are as `Erasing.strays` lists them.
        """
        ...

    def remove_blobs(self, session_id: SessionId | None, blob_ids: Collection[BlobId], /) -> None:
        """Delete payloads, named as for `unnamed`."""
        ...

    def remember(self, things: Collection[tuple[Thing, str]], gone: Gone) -> None:
        """Remember what was erased, so that asking for it raises `Erased` and nothing brings it back silently."""
        ...

    def keep_receipt(self, receipt: KeptReceipt) -> None:
        """Write a receipt, or what is pending of it."""
        ...


@runtime_checkable
class Erasing(Store, Protocol):
    """A store that erases: all of palaver's do."""

    def erasing(self) -> AbstractContextManager[Eraser]:
        """Begin an erasure: one transaction, durable at the end of the block, undone when it raises."""
        ...

    def gone(self, thing: Thing, name: str) -> Gone | None:
        """Return when something was erased, or None; of a dialog, the first 6 or more digits of its id are enough."""
        ...

    def all_gone(self) -> Iterator[tuple[Thing, str, Gone]]:
        """Return all that is remembered to be erased, in order."""
        ...

    def receipts(self) -> tuple[KeptReceipt, ...]:
        """Return all receipts, the oldest first."""
        ...

    def scrub(self, *, thorough: bool = True) -> tuple[str, ...]:
        """Remove what was deleted from the storage, and return what is still pending, in words.

        Args:
            thorough: Whether to rewrite the storage if bytes would stay otherwise; the cost depends on the size of the store.
        """
        ...

    def strays(self) -> Iterator[Stray]:
        """Return the payloads that nothing names, in order of their ids. Some may be about to be named."""
        ...

    def note_file(self, session_id: SessionId, file: NotedFile) -> None:
        """Remember that a session was written to a file, so that its erasure can reach it; a second note of a path replaces the first."""
        ...

    def forget_file(self, session_id: SessionId, path: str) -> None:
        """Forget a noted file that is not there any more."""
        ...

    def files(self, session_id: SessionId) -> tuple[NotedFile, ...]:
        """Return the noted files of a session, by path."""
        ...


def source_name(identity: str) -> str:
    """Return a name of a foreign conversation that does not say which it was: the SHA-256 of its identity, hexadecimal."""
    return sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()


def retotalled(headers: Sequence[Header], placed: Sequence[Placed], before: int) -> Iterator[Header]:
    """Return the headers of neighbouring entries after some were overwritten.

    Args:
        headers: The headers, from the first that is overwritten to the dialog's last.
        placed: What replaces entries.
        before: The length of all bodies before the first.
    """
    bodies = {entry.seq: entry for entry in placed}
    total = before  # a header has the length of all bodies up to its own, so every later one changes
    for header in headers:
        entry = bodies.get(header.seq)
        size = header.size if entry is None else len(entry.body)
        total += size
        if entry is None:
            yield header._replace(total=total)
        else:
            yield header._replace(kind=entry.kind, size=size, total=total, digest=body_digest(entry.body))


# --- sweeping ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """What a sweep did.

    Attributes:
        removed: The payloads that are gone.
        pending: What the storage still keeps of them, in words.
    """

    removed: tuple[Stray, ...]
    pending: tuple[str, ...] = ()


def sweepable(store: Store, *, older_than: float = DAY) -> tuple[Stray, ...]:
    """Return the payloads that a sweep would remove; nothing is written.

    Args:
        store: The store.
        older_than: How long ago a payload was stored last, in seconds; at least `LEAST_AGE`.

    Raises:
        InvalidInput: The age is too small.
        StoreError: The store does not erase.
    """
    if not older_than >= LEAST_AGE:
        raise InvalidInput(
            f"A payload stored {older_than:g} seconds ago may be about to be named.",
            hint=f"The age is at least {LEAST_AGE:.0f} seconds, 1h.",
        )
    return tuple(stray for stray in _erasing(store).strays() if stray.age >= older_than)


def sweep(store: Store, *, older_than: float = DAY, thorough: bool = False) -> Swept:
    """Remove the payloads that nothing names and that are old enough. It can be killed anywhere and repeated.

    Args:
        store: The store.
        older_than: As for `sweepable`.
        thorough: Whether to rewrite the storage if only that frees its space.

    Raises:
        InvalidInput: The age is too small.
        StoreError: The store does not erase.
    """
    strays, erasing = sweepable(store, older_than=older_than), _erasing(store)
    removed: list[Stray] = []
    for start in range(0, len(strays), _AT_A_TIME):
        part = {stray.blob_id: stray for stray in strays[start : start + _AT_A_TIME]}
        with erasing.erasing() as eraser:
            loose = eraser.unnamed(None, part)
            eraser.remove_blobs(None, loose)
        removed += [part[blob_id] for blob_id in sorted(loose)]
    return Swept(removed=tuple(removed), pending=erasing.scrub(thorough=thorough) if removed else ())


def _erasing(store: Store) -> Erasing:
    if not isinstance(store, Erasing):
        raise StoreError("This store does not erase.", reason="unsupported")
    return store
