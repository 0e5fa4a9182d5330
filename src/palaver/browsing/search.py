"""Search: the hits of a query in a store, and the index brought up to date before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypedDict

from palaver.errors import StoreError
from palaver.ids import SessionId
from palaver.session import searchable
from palaver.store import Store
from palaver.store.titles import title


class HitRow(TypedDict):
    """An entry that a search found, and the words around the first match."""

    handle: str
    session: str
    title: str
    kind: str
    role: str
    at: float
    snippet: str


def index(store: Store, session_id: SessionId | None = None) -> int:
    """Bring the full-text index up to date, of one session or of all, and return how many entries a store that may only be read leaves out."""
    try:
        store.index(searchable, session_id=session_id)
    except StoreError as error:
        if error.reason != "read_only":
            raise
        return store.index_lag()
    return 0


def hits(store: Store, query: str, session_id: SessionId | None = None, limit: int = 20) -> Iterator[HitRow]:
    """Yield the best hits of a query, the best first (`Store.search`), in one session or in all."""
    titles: dict[SessionId, str] = {}  # a title may be read from the first message
    for hit in store.search(query, session_id=session_id, limit=limit, ranked=True):
        if hit.session_id not in titles:
            titles[hit.session_id] = title(store, store.session(hit.session_id))
        yield {
            "handle": str(hit.handle),
            "session": hit.session_id,
            "title": titles[hit.session_id],
            "kind": hit.kind,
            "role": hit.role,
            "at": store.header(hit.handle.dialog, hit.handle.seq).at,
            "snippet": hit.snippet.replace("\x02", "").replace("\x03", ""),
        }
