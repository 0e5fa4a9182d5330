"""Changing a session's metadata without losing what another writer put there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from palaver.ids import SessionId
from palaver.store.protocol import SessionRecord, Store


def change_metadata(
    store: Store, session_id: SessionId, change: Callable[[Mapping[str, Any]], Mapping[str, Any]], **fields: object
) -> SessionRecord:
    """Replace a session's metadata by what a function makes of it, and return the new record. Nobody else changes it in between.

    Args:
        store: The store.
        session_id: The session.
        change: Returns the new metadata; what it raises, this raises, and nothing is written.
        fields: Further fields of the session to change, as for `Store.update_session`.
    """
    with store.transaction():
        known = store.update_session(session_id)  # it changes nothing, and keeps others out until the end
        return store.update_session(session_id, metadata=change(known.metadata), **fields)
