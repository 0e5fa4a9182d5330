"""When sessions were last active, as rows (`palaver.store.activity`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import apsw

from palaver.ids import SessionId
from palaver.store.activity import EVER, renewed
from palaver.store.sqlite.statements import statements

__all__ = ["add", "spoken_in", "touch", "without"]


def add(connection: apsw.Connection, session_id: SessionId) -> None:
    """Begin with when a session was made."""
    connection.execute(statements()["activity_add"], (session_id,))


def spoken_in(connection: apsw.Connection, dialog_no: int, at: float) -> None:
    """Take note of an entry that was written to a dialog."""
    _note(connection, connection.execute(statements()["activity_of_dialog"], (dialog_no,)).fetchone(), at)


def touch(connection: apsw.Connection, session_no: int, at: float) -> None:
    """Take note of a dialog that was made."""
    _note(connection, connection.execute(statements()["activity_of_session"], (session_no,)).fetchone(), at)


@contextmanager
def without(connection: apsw.Connection, dialog_no: int) -> Iterator[None]:
    """Take note of a dialog that is deleted in between."""
    row = connection.execute(statements()["activity_of_dialog"], (dialog_no,)).fetchone()
    yield
    _note(connection, row, -EVER)


def _note(connection: apsw.Connection, row: tuple[int, float] | None, at: float) -> None:
    if row is None:  # the session is being erased
        return
    session_no, known = row
    changed = renewed(known, at, partial(_exact, connection, session_no))
    if changed is not None:
        connection.execute(statements()["activity_set"], (changed, session_no))


def _exact(connection: apsw.Connection, session_no: int) -> float:
    return float(connection.execute(statements()["activity_exact"], (session_no,)).get)
