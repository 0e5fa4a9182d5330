"""What is remembered to be erased, and the errors for whoever asks for it."""

from __future__ import annotations

import apsw

from palaver.errors import PalaverError, UnknownDialog, UnknownSession
from palaver.store.erasing import Gone, Thing
from palaver.store.records import MIN_PREFIX_DIGITS
from palaver.store.sqlite.statements import statements

_ID_DIGITS = 32


def gone(connection: apsw.Connection, thing: Thing, name: str) -> Gone | None:
    """Read what is remembered of something erased; a dialog may be named by the first digits of its id."""
    row = connection.execute(statements()["gone_get"], (thing, name)).fetchone()
    if row is None and thing == "dialog" and MIN_PREFIX_DIGITS <= len(name) < _ID_DIGITS:
        row = connection.execute(statements()["gone_beginning"], (thing, name, name)).fetchone()
    return None if row is None else Gone(*row)


def unknown_dialog(connection: apsw.Connection, dialog_id: str) -> PalaverError:
    """Give the error for a dialog that is not there: erased, or never there."""
    found = gone(connection, "dialog", dialog_id)
    return UnknownDialog(dialog_id) if found is None else found.error("dialog", dialog_id)


def unknown_session(connection: apsw.Connection, session_id: str) -> PalaverError:
    """Give the error for a session that is not there: erased, or never there."""
    found = gone(connection, "session", session_id)
    return UnknownSession(session_id) if found is None else found.error("session", session_id)
