"""Search: the hits of a query in a store, and the index brought up to date before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TypedDict

from palaver.browsing.sessions import NO_FILTERS, Filters, day, is_part, tool_of
from palaver.errors import Erased, InvalidInput, NotFound, StoreError
from palaver.ids import DialogId, SessionId
from palaver.log import KINDS, Handle, MessageEntry, decode_entry
from palaver.messages import Role
from palaver.session import searchable
from palaver.store import Hit, Store
from palaver.store.text import CLOSE, OPEN
from palaver.store.titles import title


class HitRow(TypedDict):
    """An entry that a search found, and the words around the best match; `marks` says where in these the words of the query begin and end."""

    handle: str
    session: str
    title: str
    kind: str
    role: str
    at: float
    snippet: str
    marks: list[tuple[int, int]]


@dataclass(frozen=True)
class HitFilters:
    """Which entries may be hits; an empty text is no filter.

    Attributes:
        where: The sessions, the days of the entries, and the models that answered.
        role: The role of the message, or the kind of the entry.
        agent: A part of the name of the agent whose dialog it is.
    """

    where: Filters = NO_FILTERS
    role: str = ""
    agent: str = ""

    def __post_init__(self) -> None:
        """Require a role or kind.

        Raises:
            InvalidInput: There is none of this name.
        """
        if self.role and self.role not in {*Role, *KINDS}:
            raise InvalidInput(
                f"{self.role!r} is neither a role nor a kind of entry.",
                hint=f"Roles: {', '.join(Role)}. Kinds: {', '.join(sorted(KINDS))}.",
            )


NO_HIT_FILTERS = HitFilters()
"""Every entry may be a hit."""


def index(store: Store, session_id: SessionId | None = None) -> int:
    """Bring the full-text index up to date, of one session or of all, and return how many entries a store that may only be read leaves out."""
    try:
        store.index(searchable, session_id=session_id)
    except StoreError as error:
        if error.reason != "read_only":
            raise
        return store.index_lag()
    return 0


def hits(
    store: Store,
    query: str,
    session_id: SessionId | None = None,
    limit: int = 20,
    filters: HitFilters = NO_HIT_FILTERS,
) -> Iterator[HitRow]:
    """Yield the best hits of a query, the best first (`Store.search`), in one session or in all."""
    which = _chooser(store, filters)
    titled = cache(lambda name: title(store, store.session(name)))  # a title may be read from the first message
    for hit in store.search(query, session_id=session_id, limit=limit, ranked=True, which=which):
        snippet, marks = _marked(hit.snippet)
        yield {
            "handle": str(hit.handle),
            "session": hit.session_id,
            "title": titled(hit.session_id),
            "kind": hit.kind,
            "role": hit.role,
            "at": hit.at,
            "snippet": snippet,
            "marks": marks,
        }


def _marked(snippet: str) -> tuple[str, list[tuple[int, int]]]:
    """Return a snippet without its marks, and where they were."""
    first, *rest = snippet.split(OPEN)
    plain, marks = first, []
    for part in rest:
        word, _, after = part.partition(CLOSE)
        marks.append((len(plain), len(plain) + len(word)))
        plain += word + after
    return plain, marks


# --- filters --------------------------------------------------------------------------------------------------------------------------


def _chooser(store: Store, filters: HitFilters) -> Callable[[Hit], bool] | None:
    """Return what chooses the hits; what is cheap to know is asked first."""
    if filters == NO_HIT_FILTERS:
        return None
    where = filters.where
    owner = cache(lambda name: store.node(name).owner)

    @cache
    def fits(session_id: SessionId) -> bool:
        record = store.session(session_id)
        return where.fits(record, tool_of(store, record) if where.tool else "")

    def chooses(hit: Hit) -> bool:
        return (
            where.on(day(hit.at))
            and filters.role in {"", hit.role, hit.kind}
            and fits(hit.session_id)
            and (not filters.agent or is_part(filters.agent, owner(hit.handle.dialog)))
            and (not where.model or is_part(where.model, _model(store, hit.handle)))
        )

    return chooses


def _model(store: Store, handle: Handle) -> str:
    """Return the model of a message; empty for any other entry."""
    try:
        entry = decode_entry(store.body(DialogId(handle.dialog), handle.seq))
    except (NotFound, Erased, InvalidInput):
        return ""
    return (entry.message.model or "") if isinstance(entry, MessageEntry) else ""
