"""When sessions were last active, roughly: what lets a store list the newest of a million sessions without looking at them all.

A store derives exactly when a session was last active, from the newest entry of each of its dialogs (`Store.sessions`). Beside that it keeps a
rough time, in an order that it can walk; an append writes it when it is more than `SLACK_SECONDS` away, so once a minute in a conversation
that goes on, and else nothing. A listing takes all that the rough times leave in doubt, and sorts them by the exact ones.

A process may remember the rough time as long as the newest entry of the dialog that it writes to is near it, before its own and after: then no
other process can have moved it away, by more than the slack. So the rough time is at most twice the slack away, which `activity_faults` verifies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from palaver.store.protocol import SessionRecord

SLACK_SECONDS = 60.0
"""How far the rough time may be away. A longer one writes less often, and leaves more sessions in doubt."""

_OFF_SECONDS = 2 * SLACK_SECONDS
_DOUBT_SECONDS = 2 * _OFF_SECONDS  # two rough times may be off in opposite ways

EVER = 1e300
"""A time after all others."""

_ALL = 1 << 62


def renewed(known: float, at: float, exact: Callable[[], float]) -> float | None:
    """Give the rough time that a session is to have after a new entry or dialog; None where the one that it has will do.

    Args:
        known: The one that it has.
        at: The time of what is new.
        exact: Derives when the session was last active; asked only where the new time is an older one.
    """
    if at > known + SLACK_SECONDS:
        return at
    if at >= known - SLACK_SECONDS:
        return None
    found = exact()
    return found if abs(found - known) > SLACK_SECONDS else None


def activity_faults(
    loose: Iterable[tuple[Any, ...]], page: Callable[[int], Sequence[tuple[Any, ...]]]
) -> Iterator[tuple[str, str, str]]:
    """Find the sessions whose rough time is not that of their newest entries: (place, code, what).

    Args:
        loose: The numbers of sessions that are not there, and have a rough time, a row each.
        page: Gives the rows of sessions whose number is more than the one given, in order, and none at the end: their number, their id, their
            rough time (None where there is none), and when they were last active.
    """
    for (number,) in loose:
        yield f"session number {number}", "loose_rows", "It is not there, and when it was last active is kept."
    after = -1
    while rows := page(after):
        for _number, session_id, rough, exact in rows:
            if rough is None:
                yield session_id, "wrong_activity", "No time is kept by which a list of sessions would find it."
            elif rough != exact and not abs(rough - exact) <= _OFF_SECONDS:
                what = f"A list takes it as last active at {_told(rough)}, and its entries say {_told(exact)}."
                yield session_id, "wrong_activity", f"{what} The next entries in it mend that."
        after = rows[-1][0]


def _told(at: float) -> str:
    """Give a time for people; whatever is none, as the number that it is."""
    try:
        return datetime.fromtimestamp(at, UTC).isoformat(" ", "seconds")
    except (OverflowError, ValueError, OSError):
        return repr(at)


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which sessions a listing is about.

    Attributes:
        name: Those of this name; None for any.
        subject: Those of this subject; None for any.
        trashed: Those in the trash.
    """

    name: str | None
    subject: str | None
    trashed: bool

    def of(self, everything: str, named: str, about: str, trashed: str) -> str:
        """Give the one of four statements that finds them without a walk over all sessions."""
        if self.trashed:
            return trashed
        if self.name is not None:
            return named
        return everything if self.subject is None else about


def page(limit: int | None, after: SessionRecord | None) -> dict[str, Any]:
    """Give the bounds of a listing, as its statements name them."""
    at, session_id = (EVER, "") if after is None else (after.updated_at, after.session_id)
    return {
        "limit": _ALL if limit is None else min(max(0, limit), _ALL),
        "after_at": at,
        "after_id": session_id,
        "off": _OFF_SECONDS,
        "doubt": _DOUBT_SECONDS,
    }
