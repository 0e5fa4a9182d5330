"""Where conversations came from, as the store knows it: which session a file's conversation is, and what of it was imported before."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from palaver.errors import Erased
from palaver.formats.events import Conversation
from palaver.formats.registry import Match
from palaver.ids import BlobId, now
from palaver.session.erasure import ERASED_MARK
from palaver.store.erasing import Erasing, Gone, source_name
from palaver.store.protocol import SourceRecord, Store
from palaver.transcripts.landing import Landing
from palaver.transcripts.places import Places

__all__ = ["PART", "Origin", "erased_in", "origin_of"]

PART = "part"
"""The mark, in the metadata of a dialog, of the part that it was imported with."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a conversation comes from.

    Attributes:
        identity: Its name among all that is ever imported: the format's own id, or the file and the conversation's number in it.
        known: What an earlier import of it left, or None.
    """

    identity: str
    known: SourceRecord | None

    @property
    def complete(self) -> bool:
        """Whether an earlier import of it came to its end."""
        return self.known is not None and self.known.index is not None

    @property
    def older(self) -> bool:
        """Whether it is known by another name: that of a file as it was before it was rewritten, or before it named its conversation."""
        return self.known is not None and self.known.identity != self.identity

    def places(self, store: Store, part: str) -> Places:
        """Give where an earlier import put what it read; of one that was cut off, the dialogs, known by the keys they were given.

        Args:
            store: The store.
            part: The identity, where the conversation is a part of another one; or empty.
        """
        if self.known is None:
            return Places()
        if self.known.index is not None:
            return Places.decode(store.blob(self.known.index))
        places = Places()
        for node in store.nodes(self.known.session_id):
            key = node.metadata.get("key")
            if isinstance(key, str) and node.metadata.get(PART, "") == part:
                places.dialogs[key] = node.dialog_id
                places.landed[key] = []
        return places

    def put(
        self, store: Store, format_name: str, path: Path, landing: Landing, file: tuple[str, BlobId | None]
    ) -> None:
        """Say where a conversation came from that has landed. A file that was rewritten does not take the place of the one that the branches stand on.

        Args:
            store: The store.
            format_name: The format.
            path: The file.
            landing: How it landed.
            file: The digest of the file, and the blob it is kept in, or None.
        """
        digest, raw = file
        known = self.known
        if known is not None and known.index is not None and landing.rewritten and known.digest != digest:
            store.put_source(replace(known, identity=_earlier(self.identity, known.digest)))
        store.put_source(
            SourceRecord(
                identity=self.identity,
                session_id=landing.session_id,
                format=format_name,
                path=str(path.resolve()),
                digest=digest,
                raw=raw,
                index=store.put_blob(landing.places.encode()),
                imported_at=now(),
            )
        )


def origin_of(store: Store, path: Path, found: Match, event: Conversation, digest: str, *, again: bool) -> Origin:
    """Find what is known of a conversation.

    Args:
        store: The store.
        path: The file.
        found: The part of it that holds the conversation, and its format.
        event: The conversation.
        digest: The digest of the file.
        again: Whether what was erased is wanted again.

    Raises:
        Erased: It was imported and erased, and is not wanted again.
    """
    identity = _identity(path, found, event)
    known = store.source(identity)
    if known is None and not again:
        _refuse_erased(store, path, identity)
    if known is not None and known.digest != digest:
        known = store.source(_earlier(identity, digest)) or known
    if known is None and event.key:
        known = _unnamed(store, path, found, event)
    return Origin(identity, known)


def erased_in(store: Store, path: Path, found: Match, event: Conversation, *, again: bool) -> bool:
    """Tell whether entries of a conversation, or all of it, were erased."""
    identity = _identity(path, found, event)
    known = store.source(identity)
    if known is not None:
        return ERASED_MARK in store.session(known.session_id).metadata
    return not again and _gone(store, identity) is not None


def _gone(store: Store, identity: str) -> Gone | None:
    return store.gone("source", source_name(identity)) if isinstance(store, Erasing) else None


def _refuse_erased(store: Store, path: Path, identity: str) -> None:
    gone = _gone(store, identity)
    if gone is not None:
        hint = "To have it again as a new session, say so (--again)."
        raise Erased("session that was imported from", str(path), *gone, hint=hint)


def _unnamed(store: Store, path: Path, found: Match, event: Conversation) -> SourceRecord | None:
    """Find what was imported of a conversation before its file named it, as a run is named by its first answer.

    It is of the same file, and has the same title; another run that took the file's place is a conversation of its own.
    """
    known = store.source(_identity(path, found, replace(event, key="")))
    if known is None or known.index is None:
        return None
    return known if event.title and store.session(known.session_id).name == event.title else None


def _identity(path: Path, found: Match, event: Conversation) -> str:
    if event.key:
        return f"{found.format.name}:{event.key}"
    member = found.source.members[0].name
    return f"{found.format.name}:{path.resolve()}{f'#{member}' if member else ''}:{event.ordinal}"


def _earlier(identity: str, digest: str) -> str:
    """Name what is known of a file as it was before it was rewritten."""
    return f"{identity}@{digest[:16]}"
