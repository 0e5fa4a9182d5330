"""What may be done inside an erasure of a store in memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from palaver.ids import BlobId, DialogId, SessionId
from palaver.store.erasing import Gone, KeptReceipt, Placed, Thing, retotalled
from palaver.store.memory.contents import Contents
from palaver.store.memory.log import Log
from palaver.store.records import SHORT_DIGITS

__all__ = ["MemoryEraser"]


class MemoryEraser:
    """What may be done inside an erasure. A changed log is a new one: the old one is what an undo goes back to."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents

    def put_in_place(self, dialog_id: DialogId, placed: Sequence[Placed]) -> None:
        """Overwrite entries, and set the sizes of all that follow."""
        contents = self._contents
        log = contents.log(dialog_id)
        bodies, texts = list(log.bodies), list(log.texts)
        for one in placed:
            contents.place(dialog_id, one.seq)
            bodies[one.seq] = bytes(one.body)
            if one.seq < len(texts):
                texts[one.seq] = (texts[one.seq][0], "")
        made = Log(log.node, texts=texts)
        for header, body in zip(retotalled(log.headers, placed, 0), bodies, strict=True):
            made.add(header, body)
        contents.set(contents.logs, dialog_id, made)

    def clear_dialog(self, dialog_id: DialogId) -> None:
        """Empty a node's metadata."""
        log = self._contents.log(dialog_id)
        self._contents.set(self._contents.logs, dialog_id, replace(log, node=replace(log.node, metadata={})))

    def remove_dialogs(self, dialog_ids: Collection[DialogId]) -> None:
        """Delete dialogs."""
        for dialog_id in dialog_ids:
            log = self._contents.log(dialog_id)
            self._contents.remove(self._contents.logs, dialog_id)
            self._contents.remove(self._contents.trees[log.node.session_id], dialog_id[:SHORT_DIGITS])

    def remove_session(self, session_id: SessionId) -> None:
        """Delete a session."""
        contents = self._contents
        contents.session(session_id)
        for identity in [one.identity for one in contents.sources.values() if one.session_id == session_id]:
            contents.remove(contents.sources, identity)
        for key in [one for one in contents.files if one[0] == session_id]:
            contents.remove(contents.files, key)
        contents.remove(contents.sessions, session_id)
        contents.remove(contents.active, session_id)

    def unnamed(self, blob_ids: Collection[BlobId]) -> frozenset[BlobId]:
        """Return those payloads that nothing names."""
        return self._contents.unnamed(blob_ids)

    def remove_blobs(self, blob_ids: Collection[BlobId]) -> None:
        """Delete payloads."""
        for one in blob_ids:
            self._contents.remove(self._contents.blobs, one)
            self._contents.remove(self._contents.put_at, one)

    def remember(self, things: Collection[tuple[Thing, str]], gone: Gone) -> None:
        """Remember what was erased."""
        for one in things:
            if one not in self._contents.gone:
                self._contents.set(self._contents.gone, one, gone)

    def keep_receipt(self, receipt: KeptReceipt) -> None:
        """Write a receipt."""
        self._contents.set(self._contents.receipts, receipt.receipt_id, receipt)
