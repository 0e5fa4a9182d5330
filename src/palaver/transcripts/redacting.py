"""A session without its secrets, for those who are to read it elsewhere: a copy in memory that was redacted as it was made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from palaver.ids import SessionId
from palaver.log.redaction import Redactor
from palaver.store import MemoryStore, Store
from palaver.store.redacting import redacting
from palaver.transcripts.bundle import export_bundle, import_bundle

__all__ = ["redacted_copy"]


def redacted_copy(store: Store, session_id: SessionId, redactor: Redactor) -> Store:
    """Give a store in memory that holds the session with the same ids and without its secrets; kept source files are left out.

    Raises:
        UnknownSession: No such session.
        StoreDamaged: The store does not give back what was written.
    """
    copy = MemoryStore()
    import_bundle(redacting(copy, redactor), _Reader(export_bundle(store, session_id)), f"session {session_id[:12]}")
    for source in copy.sources(session_id):
        copy.put_source(replace(source, raw=None, path=redactor.redact(source.path).text))
    return copy


class _Reader:
    """Reads pieces as a file would be read."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._held = b""

    def __call__(self, size: int) -> bytes:
        while len(self._held) < size and (piece := next(self._pieces, b"")):
            self._held += piece
        given, self._held = self._held[:size], self._held[size:]
        return given
