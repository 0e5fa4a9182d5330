"""Places: the session, dialog or entry that a text names in a store."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from palaver.browsing.entries import length, spans
from palaver.errors import InvalidInput, NotFound
from palaver.log import Handle
from palaver.plurals import counted
from palaver.session import Dialog, Session
from palaver.store import Store
from palaver.store.connect import find_session, only_session

_NUMBERED = re.compile(r"(?P<named>.+?):(?P<numbers>\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*)(?P<block>:\d+)?")
"""A session or dialog, and entries in it."""

_ENTRIES = (
    "`palaver show` prints it, `palaver view` shows what a model saw after it, `palaver branch rewind` goes back to it."
)


class Location(NamedTuple):
    """What a text names.

    Attributes:
        session: The session.
        dialog: The dialog that was named; else the session's main one.
        handle: The entry or block that was named, or None.
        whole: Whether the session itself was named.
    """

    session: Session
    dialog: Dialog
    handle: Handle | None = None
    whole: bool = True


def locate(store: Store, reference: str, *, only: bool = False, entries: bool = False) -> Location:
    """Return the session, dialog or entry that a text names.

    Args:
        store: The store.
        reference: The id or name of a session, the id of a dialog, a handle, or the first digits of an id.
        only: Whether a name must be that of one session alone, as for everything that changes a session.
        entries: Whether it may name an entry.

    Raises:
        NotFound: Nothing has this name.
        Ambiguous: Several sessions have it.
        InvalidInput: It names an entry.
    """
    try:
        record = only_session(store, reference) if only else find_session(store, reference).record
    except NotFound as missing:
        named = numbered(store, reference, only=only)
        try:
            handle = Handle.parse(named) if ":" in reference else None
            dialog_id = store.resolve(reference if handle is None else handle.dialog)
        except (NotFound, InvalidInput):
            raise missing from None
        session = Session.open(store, store.node(dialog_id).session_id)
        place = None if handle is None else session.place(handle)
        if place is not None and not entries:
            raise InvalidInput(f"{reference} is an entry. Name a session or a dialog.", hint=_ENTRIES) from None
        return Location(session, session.dialog(dialog_id), place, whole=False)
    session = Session.open(store, record.session_id)
    return Location(session, session.root)


def numbered(store: Store, reference: str, *, only: bool = False) -> str:
    """Return the handle of `SESSION:entry`; any other text as it is. Entries are counted in the session's main dialog.

    Raises:
        NotFound: It has fewer.
        Ambiguous: Several sessions have this name; of some that may only be read, the newest counts.
    """
    if (parts := _NUMBERED.fullmatch(reference)) is None:
        return reference
    with suppress(NotFound, InvalidInput):  # a dialog wins: its handles are what views print
        if store.resolve(parts["named"]):
            return reference
    named = parts["named"]
    try:
        record = only_session(store, named) if only else find_session(store, named).record
    except NotFound:
        return reference
    dialog = Session.open(store, record.session_id).root
    return "; ".join(f"{place}{parts['block'] or ''}" for place in _places(dialog, named, parts["numbers"]))


def _places(dialog: Dialog, named: str, numbers: str) -> Iterator[str]:
    """Yield the handles of entries, and of runs of entries, by their numbers in a dialog."""
    for run in numbers.split(","):
        first, *last = sorted(map(int, run.split("-")))
        stop = (last or [first])[-1] + 1
        if stop > (count := length(dialog)):
            hint = f"Its main dialog has {counted(count, 'entry')}, counted from 0."
            raise NotFound(f"{named}:{stop - 1}", what="entry", hint=hint)
        for span in spans(dialog, first, stop):
            yield f"{span.dialog}:{span.start}" + (f"-{span.stop - 1}" if last else "")
