"""When sessions were last active, as rows (`palaver.store.activity`).

What is known of a session's rough time is kept beside the newest entry that this process wrote to the dialog: when another process writes there,
the entry is not the newest any more, and both are forgotten together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from palaver.store.activity import EVER, SLACK_SECONDS, renewed
from palaver.store.postgres.connections import Connection, ask
from palaver.store.postgres.statements import Row

__all__ = ["Rough", "raised", "spoken_in", "touch", "without"]


class Rough(NamedTuple):
    """What is known of the session of a dialog.

    Attributes:
        at: Its rough time.
        floor: When the session and this dialog were made, whichever is later: it was never last active before that. So an older entry, as an
            import has them, changes nothing in a session that was made just now.
    """

    at: float
    floor: float

    def near(self, last: float, at: float) -> bool:
        """Tell whether the rough time will do for an entry of this time after one of the time `last`, whatever others wrote in between.

        Others can have moved it away unless the entry before held it where it is.
        """
        lowest, highest = self.at - SLACK_SECONDS, self.at + SLACK_SECONDS
        return lowest <= max(last, self.floor) <= highest and lowest <= max(at, self.floor) <= highest


def raised(row: Sequence[bytes | None]) -> Rough | None:
    """Read what the statement told that wrote an entry and raised the rough time; None where the session is not there."""
    known, changed, floor = row
    if known is None or floor is None:  # the session is being erased
        return None
    return Rough(float(known if changed is None else changed), float(floor))


def spoken_in(connection: Connection, dialog_no: int, at: float) -> Rough | None:
    """Take note of an entry that was written to a dialog; give the rough time that its session has now, None where that is not sure."""
    row = ask(connection, "activity_of_dialog", (dialog_no,)).fetchone()
    if row is None:  # the session is being erased
        return None
    session_no, known, floor = row
    rough = _note(connection, (session_no, known), max(at, floor))
    return None if rough is None else Rough(rough, floor)


def touch(connection: Connection, session_no: int, at: float) -> None:
    """Take note of a dialog that was made."""
    _note(connection, ask(connection, "activity_of_session", (session_no,)).fetchone(), at)


@contextmanager
def without(connection: Connection, dialog_no: int) -> Iterator[None]:
    """Take note of a dialog that is deleted in between."""
    row = ask(connection, "activity_of_dialog", (dialog_no,)).fetchone()
    yield
    _note(connection, row and row[:2], -EVER)


def _note(connection: Connection, row: Row | None, at: float) -> float | None:
    if row is None:  # the session is being erased
        return None
    session_no, known = row
    changed = renewed(known, at, partial(_exact, connection, session_no))
    if changed is None:
        return float(known)
    return changed if ask(connection, "activity_set", (changed, session_no)).rowcount == 1 else None


def _exact(connection: Connection, session_no: int) -> float:
    row = ask(connection, "activity_exact", (session_no,)).fetchone()
    return float(row[0]) if row else 0.0
