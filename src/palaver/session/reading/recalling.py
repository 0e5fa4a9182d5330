"""Recall: from a handle, as a placeholder prints it, back to the original."""

from __future__ import annotations

from palaver.errors import Erased, InvalidHandle, InvalidInput, NotFound, StoreDamaged, UnknownDialog, UnknownHandle
from palaver.ids import BlobId, DialogId, SessionId
from palaver.log import Entry, Handle, Inbox, Instructions, LateResult, MessageEntry, decode_entry
from palaver.messages import Content, TextContent, hydrate
from palaver.store.protocol import Store

__all__ = ["Originals", "recall", "whole"]

_ID_DIGITS = 32


def whole(store: Store, session_id: SessionId, handle: Handle | str) -> Handle:
    """Give a handle with its whole dialog id.

    Raises:
        InvalidHandle: It is no handle, or not spelt like one.
        UnknownHandle: The session has no such dialog.
    """
    found = Handle.parse(handle) if isinstance(handle, str) else handle
    if not isinstance(found, Handle):
        raise InvalidHandle(
            f"{handle!r} is no handle, but of type {type(handle).__name__}.",
            hint="Writes give handles; their printed form is accepted too.",
        )
    try:
        dialog = found.dialog if len(found.dialog) == _ID_DIGITS else store.resolve(found.dialog, session_id)
        ours = store.node(dialog).session_id == session_id
    except UnknownDialog as error:
        raise UnknownHandle(str(found)) from error
    if not ours:
        raise UnknownHandle(str(found), hint="It belongs to another session.")
    return Handle(DialogId(dialog), found.seq, found.block)


def recall(store: Store, session_id: SessionId, handle: Handle | str) -> Entry | Content:
    """Give what a handle stands for: the entry, or the block, with its media in memory.

    Raises:
        InvalidHandle: The text is not spelt like a handle.
        UnknownHandle: The session has no such entry or block.
        Erased: It was there and was erased.
        MissingBlob: The store has lost the bytes of a medium in it.
    """
    place = whole(store, session_id, handle)
    entry = decode_entry(store.body(place.dialog, place.seq))
    if entry.erased is not None and not entry.erased.part:
        raise Erased("entry", str(place), entry.erased.at, entry.erased.receipt)
    if isinstance(entry, MessageEntry | Inbox | LateResult):
        message = hydrate(entry.message, lambda digest: store.blob(BlobId(digest)))
        entry = entry.model_copy(update={"message": message})
    if place.block is None:
        return entry
    blocks = _blocks(entry)
    if place.block >= len(blocks):
        raise UnknownHandle(str(place), hint=f"The entry has {len(blocks)} blocks.")
    return blocks[place.block]


class Originals:
    """Blocks as they were recorded, for whoever plans: their words, and what is recorded of media, whose bytes nobody needs before a request.

    An entry is read once while this lives, which is for one plan: what is erased after that is looked for when the plan is committed.
    """

    def __init__(self, store: Store) -> None:
        """Read nothing yet."""
        self._store = store
        self._known: dict[Handle, tuple[Content, ...]] = {}

    def block(self, handle: Handle) -> Content | None:
        """Give a block; None where it was erased or cannot be had: whoever asks goes by what the view shows then."""
        place = handle._replace(block=None)
        blocks = self._known.get(place)
        if blocks is None:
            blocks = self._known[place] = self._read(place)
        return None if handle.block is None or handle.block >= len(blocks) else blocks[handle.block]

    def _read(self, place: Handle) -> tuple[Content, ...]:
        try:
            entry = decode_entry(self._store.body(place.dialog, place.seq))
        except (Erased, NotFound, StoreDamaged, InvalidInput):  # gone, lost, or no entry any more
            return ()
        return () if entry.erased is not None and not entry.erased.part else _blocks(entry)


def _blocks(entry: Entry) -> tuple[Content, ...]:
    if isinstance(entry, MessageEntry | Inbox | LateResult):
        return entry.message.contents
    if isinstance(entry, Instructions):
        return tuple(TextContent(content=section.text) for section in entry.sections)
    return ()
