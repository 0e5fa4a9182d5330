"""A scratch store: in memory, over another store whose dialogs and payloads it can read. What is written to it is thrown away."""

from __future__ import annotations

from collections.abc import Iterator

from palaver.errors import UnknownDialog
from palaver.ids import BlobId, DialogId, SessionId
from palaver.log import Header, Node
from palaver.store.memory import MemoryStore
from palaver.store.protocol import Store

__all__ = ["Scratch"]


class Scratch(MemoryStore):
    """Where context managers work: what they fork and append is theirs alone, and every handle still resolves."""

    def __init__(self, beneath: Store) -> None:
        super().__init__()
        self._beneath = beneath

    def node(self, dialog_id: DialogId) -> Node:
        """Give a dialog's node."""
        return super().node(dialog_id) if dialog_id in self.contents.logs else self._beneath.node(dialog_id)

    def resolve(self, prefix: str, session_id: SessionId | None = None) -> DialogId:
        """Give the one dialog whose id begins with `prefix`, its own first."""
        try:
            return super().resolve(prefix, session_id)
        except UnknownDialog:
            return self._beneath.resolve(prefix, session_id)

    def last(self, dialog_id: DialogId) -> Header:
        """Give the newest header of a dialog's own entries."""
        return super().last(dialog_id) if dialog_id in self.contents.logs else self._beneath.last(dialog_id)

    def header(self, dialog_id: DialogId, seq: int) -> Header:
        """Give one header."""
        return (
            super().header(dialog_id, seq) if dialog_id in self.contents.logs else self._beneath.header(dialog_id, seq)
        )

    def headers(
        self, dialog_id: DialogId, start: int = 0, stop: int | None = None, *, reverse: bool = False
    ) -> Iterator[Header]:
        """Give headers."""
        if dialog_id in self.contents.logs:
            return super().headers(dialog_id, start, stop, reverse=reverse)
        return self._beneath.headers(dialog_id, start, stop, reverse=reverse)

    def holding(self, dialog_id: DialogId, start: int = 0, stop: int | None = None) -> Iterator[Header]:
        """Give the headers of entries that hold beyond their place."""
        if dialog_id in self.contents.logs:
            return super().holding(dialog_id, start, stop)
        return self._beneath.holding(dialog_id, start, stop)

    def of_kind(self, dialog_id: DialogId, kind: str, start: int = 0, stop: int | None = None) -> Iterator[Header]:
        """Give the headers of entries of a kind that is looked for."""
        if dialog_id in self.contents.logs:
            return super().of_kind(dialog_id, kind, start, stop)
        return self._beneath.of_kind(dialog_id, kind, start, stop)

    def bodies(self, dialog_id: DialogId, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Give numbers and bodies."""
        if dialog_id in self.contents.logs:
            return super().bodies(dialog_id, start, stop)
        return self._beneath.bodies(dialog_id, start, stop)

    def body(self, dialog_id: DialogId, seq: int) -> bytes:
        """Give one body."""
        return super().body(dialog_id, seq) if dialog_id in self.contents.logs else self._beneath.body(dialog_id, seq)

    def blob(self, blob_id: BlobId) -> bytes:
        """Give a payload."""
        return super().blob(blob_id) if super().has_blob(blob_id) else self._beneath.blob(blob_id)

    def has_blob(self, blob_id: BlobId) -> bool:
        """Tell whether a payload is there."""
        return super().has_blob(blob_id) or self._beneath.has_blob(blob_id)
