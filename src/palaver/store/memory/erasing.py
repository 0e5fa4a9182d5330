"""What may be done inside an erasure of a store in memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from palaver.ids import BlobId, DialogId, SessionId
from palaver.store.erasing import Gone, KeptReceipt, Mark, Placed, Thing, retotalled
from palaver.store.memory.contents import Contents
from palaver.store.memory.logs import Log

__all__ = ["MemoryEraser"]


class MemoryEraser:
    """What may be done inside an erasure of a store in memory. A changed log is a new one: the old one is what an undo goes back to."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents

    def put_in_place(self, dialog_id: DialogId, placed: Sequence[Placed]) -> None:
        """Overwrite entries, and set the sizes of all that follow."""
        log = self._contents.log(dialog_id)
        for one in placed:
            self._contents.place(dialog_id, one.seq)
        bodies = list(log.bodies)
        texts = list(log.texts)
        for one in placed:
            bodies[one.seq] = bytes(one.body)
            if one.seq < len(texts):
                texts[one.seq] = ""
        self._contents.logs[dialog_id] = Log(log.node, list(retotalled(log.headers, placed, 0)), bodies, texts)

    def clear_dialog(self, dialog_id: DialogId) -> None:
        """Empty a node's metadata."""
        log = self._contents.log(dialog_id)
        node = replace(log.node, metadata={})
        self._contents.logs[dialog_id] = Log(node, list(log.headers), list(log.bodies), list(log.texts))

    def remove_dialogs(self, dialog_ids: Collection[DialogId]) -> None:
        """Delete dialogs."""
        for dialog_id in dialog_ids:
            self._contents.log(dialog_id)
            del self._contents.logs[dialog_id]

    def remove_session(self, session_id: SessionId) -> None:
        """Delete a session."""
        self._contents.session(session_id)
        del self._contents.sessions[session_id]
        self._contents.files.pop(session_id, None)
        self._contents.sources = {
            name: one for name, one in self._contents.sources.items() if one.session_id != session_id
        }

    def remove_leases(self, ids: Collection[str]) -> None:
        """Delete leases whose name holds an id."""
        kept = {name: lease for name, lease in self._contents.leases.items() if not any(one in name for one in ids)}
        self._contents.leases = kept

    def unnamed(
        self, blob_ids: Collection[BlobId], older_than: float | None = None, since: Mark | None = None
    ) -> frozenset[BlobId]:
        """Give those payloads that nothing names."""
        left = set(blob_ids) if older_than is None else self._contents.older(blob_ids, older_than)
        known = since.place if since is not None and isinstance(since.place, dict) else {}
        self._contents.take_named(left, known, proven=older_than is not None)
        return frozenset(left)

    def remove_blobs(self, blob_ids: Collection[BlobId]) -> None:
        """Delete payloads."""
        for one in blob_ids:
            self._contents.blobs.pop(one, None)
            self._contents.times.pop(one, None)

    def remember(self, things: Collection[tuple[Thing, str]], gone: Gone) -> None:
        """Remember what was erased."""
        for one in things:
            self._contents.gone.setdefault(one, gone)

    def keep_receipt(self, receipt: KeptReceipt) -> None:
        """Write a receipt."""
        self._contents.receipts[receipt.receipt_id] = receipt
