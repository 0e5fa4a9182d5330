"""When sessions were last active, as rows (`palaver.store.activity`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from palaver.store.activity import EVER, SLACK_SECONDS, renewed
from palaver.store.postgres.connections import Block, Connection, Connections, ask
from palaver.store.postgres.statements import Row

__all__ = ["Known", "spoken_in", "touch", "without"]

_MOST_KNOWN = 4096


class Known:
    """The rough times that this process has seen of the sessions of dialogs, so that an append need not ask.

    What a block wrote is known inside the block only: it may be undone.
    """

    def __init__(self, pool: Connections) -> None:
        """Know nothing yet."""
        self._pool = pool
        self._times: dict[int, float] = {}

    def _mine(self) -> dict[int, float]:
        block = self._pool.block()
        if block is None:
            return self._times
        kept: tuple[Block, dict[int, float]] | None = getattr(self._pool.own, "times", None)
        if kept is None or kept[0] is not block:
            kept = self._pool.own.times = (block, {})
        return kept[1]

    def near(self, dialog_no: int, at: float) -> bool:
        """Tell whether an entry of this time changes nothing."""
        known = self._mine().get(dialog_no)
        return known is not None and abs(at - known) <= SLACK_SECONDS

    def keep(self, dialog_no: int, at: float, rough: float | None) -> None:
        """Keep the rough time of a dialog's session beside the time of its newest entry; None where that is not sure."""
        times = self._mine()
        self._times.pop(dialog_no, None)
        if len(times) >= _MOST_KNOWN:
            times.clear()
        if rough is not None and abs(at - rough) <= SLACK_SECONDS:
            times[dialog_no] = rough


def spoken_in(connection: Connection, dialog_no: int, at: float) -> float | None:
    """Take note of an entry that was written to a dialog; give the rough time that its session has now, None where that is not sure."""
    return _note(connection, ask(connection, "activity_of_dialog", (dialog_no,)).fetchone(), at)


def touch(connection: Connection, session_no: int, at: float) -> None:
    """Take note of a dialog that was made."""
    _note(connection, ask(connection, "activity_of_session", (session_no,)).fetchone(), at)


@contextmanager
def without(connection: Connection, dialog_no: int) -> Iterator[None]:
    """Take note of a dialog that is deleted in between."""
    row = ask(connection, "activity_of_dialog", (dialog_no,)).fetchone()
    yield
    _note(connection, row, -EVER)


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
