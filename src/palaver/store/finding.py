"""Finding a session by its id, its name, or the first digits of its id."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import NamedTuple

from palaver.errors import Ambiguous, NotFound
from palaver.ids import SessionId
from palaver.store.protocol import SessionRecord, Store

__all__ = ["FoundSession", "find_session"]

_ID = re.compile(r"[0-9a-f]{32}")
_PREFIX = re.compile(r"[0-9a-f]{6,31}")
_MOST_NAMED = 10  # in an error
_COMPARED = 1000  # newest sessions whose names are compared with one that is unknown


class FoundSession(NamedTuple):
    """A session, and how it was found.

    Attributes:
        record: The session.
        by: `id`, `name` or `prefix`.
        others: How many other sessions have the same name; this one is the latest.
    """

    record: SessionRecord
    by: str
    others: int = 0


def find_session(store: Store, reference: str) -> FoundSession:
    """Find a session by its id, its name, or the first digits of its id (at least 6).

    Raises:
        NotFound: No session matches; `close` has similar names.
        Erased: The session with this id was erased.
        Ambiguous: Several ids begin with these digits.
    """
    if _ID.fullmatch(reference):
        try:
            return FoundSession(store.session(SessionId(reference)), "id")
        except NotFound:
            pass  # a name may look like an id
    named = list(store.sessions(name=reference))
    if named:
        return FoundSession(named[0], "name", len(named) - 1)
    begun = store.sessions_beginning(reference, _MOST_NAMED) if _PREFIX.fullmatch(reference) else ()
    if len(begun) > 1:
        raise Ambiguous(reference, list(begun))
    if begun:
        return FoundSession(store.session(begun[0]), "prefix")
    trash = "One of this name is in the trash." if next(store.sessions(name=reference, trashed=True), None) else ""
    raise NotFound(
        reference,
        what="session",
        hint=trash,
        close=get_close_matches(reference, sorted({record.name for record in store.sessions(limit=_COMPARED)})),
    )
