"""Places: the session, dialog or entry that a text names in a store."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import NamedTuple

from palaver.errors import InvalidInput, NotFound
from palaver.log import Handle
from palaver.session import Dialog, Session, only_session
from palaver.store import Store
from palaver.store.connect import find_session

__all__ = ["Found", "locate", "numbered"]

_NUMBERED = re.compile(r"(?P<named>.+?)(?P<numbers>:\d+(?:[-,:]\d+)*)")
"""A session or dialog, and entries in it."""


class Found(NamedTuple):
    """What a text names.

    Attributes:
        session: The session.
        dialog: The dialog that was named; else the one to go on with.
        handle: The entry or block that was named, or None.
        whole: Whether the session itself was named.
    """

    session: Session
    dialog: Dialog
    handle: Handle | None = None
    whole: bool = True


def locate(store: Store, reference: str, *, only: bool = False) -> Found:
    """Return the session, dialog or entry that a text names.

    Args:
        store: The store.
        reference: The id or name of a session, the id of a dialog, a handle, or the first digits of an id.
        only: Whether a name must be that of one session alone, as for everything that changes a session.

    Raises:
        NotFound: Nothing has this name.
        Ambiguous: Several sessions have it.
    """
    try:
        record = only_session(store, reference) if only else find_session(store, reference).record
    except NotFound as missing:
        try:
            handle = Handle.parse(numbered(store, reference, only=only)) if ":" in reference else None
            dialog_id = store.resolve(reference if handle is None else handle.dialog)
        except (NotFound, InvalidInput):
            raise missing from None
        session = Session.open(store, store.node(dialog_id).session_id)
        place = None if handle is None else session.place(handle)
        return Found(session, session.dialog(dialog_id), place, whole=False)
    session = Session.open(store, record.session_id)
    return Found(session, session.root)


def numbered(store: Store, reference: str, *, only: bool = False) -> str:
    """Return `SESSION:entry` with the id of the session's main dialog in place of the session; any other text as it is.

    Raises:
        Ambiguous: Several sessions have this name; of some that may only be read, the newest counts.
    """
    if (parts := _NUMBERED.fullmatch(reference)) is None:
        return reference
    with suppress(NotFound, InvalidInput):
        if store.resolve(parts["named"]):
            return reference
    with suppress(NotFound):
        named = parts["named"]
        record = only_session(store, named) if only else find_session(store, named).record
        return f"{record.root}{parts['numbers']}"
    return reference
