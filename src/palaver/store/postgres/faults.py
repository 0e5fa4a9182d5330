"""What PostgreSQL's errors mean, in palaver's words.

Source: https://www.postgresql.org/docs/current/errcodes-appendix.html
"""

from __future__ import annotations

from collections.abc import Callable

import psycopg

from palaver.errors import (
    InvalidInput,
    MissingStore,
    PalaverError,
    StoreBusy,
    StoreClosed,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)

_NO_ROOM = {"53100"}  # disk_full
_READ_ONLY = {"25006", "42501"}  # read_only_sql_transaction, insufficient_privilege
_MISSING = {"3D000", "3F000"}  # invalid_catalog_name, invalid_schema_name
_DAMAGED = {"XX001", "XX002"}  # data_corrupted, index_corrupted
_TOO_BIG = {"54000", "54001", "22001"}  # program_limit_exceeded and its children
_WAITED = {"55P03", "57014", "40P01", "40001", "53300", "53200"}
"""lock_not_available, query_canceled (time-out), deadlock_detected, serialization_failure, too_many_connections, out_of_memory."""

STARTING = "57P03"
"""cannot_connect_now: the server starts, stops or recovers."""

_LOST = {"57P01", "57P02", STARTING, "57P05", "25P03", "57P04"}
"""admin_shutdown, crash_shutdown, cannot_connect_now, idle_session_timeout, idle_in_transaction_session_timeout, database_dropped."""


def closed(place: str) -> StoreClosed:
    """Give the error for a store that was closed."""
    return StoreClosed(f"The store in {place} was closed.", hint="Open it again.")


def read_only(place: str, why: str = "it was opened read-only") -> StoreReadOnly:
    """Give the error for a place that may not be written."""
    return StoreReadOnly(f"{place} may not be written: {why}.", hint="Open it for writing, or as another user.")


def busy(place: str, wait: float, why: str = "") -> StoreBusy:
    """Give the error for a store that others held for too long; `wait` is in seconds."""
    told = f" ({why})" if why else ""
    return StoreBusy(
        f"Others kept {place} busy for more than {wait:g} seconds{told}.", hint="Try again; nothing was written."
    )


class NeverReached(StoreUnavailable):
    """No connection could be made: nothing was sent."""


def unavailable(place: str, why: str, kind: type[StoreUnavailable] = StoreUnavailable) -> StoreUnavailable:
    """Give the error for a server that does not answer, or went away."""
    return kind(
        f"The server of {place} does not answer: {why}.",
        hint="What was acknowledged stands. Try again when it is back.",
    )


def unknown_outcome(place: str) -> StoreUnavailable:
    """Give the error for a server that went away while it was asked to commit."""
    return StoreUnavailable(
        f"The server of {place} went away while it committed: whether the write is there is not known.",
        hint="Open the store again and look before you write it again.",
    )


def _said(error: psycopg.Error) -> str:
    """Give what the server or the library said, on one line; libpq never puts a password into it."""
    said = error.diag.message_primary or str(error)
    return " ".join(said.split()).rstrip(".") or type(error).__name__


def _by_state(place: str, wait: float, error: psycopg.Error) -> PalaverError | None:
    """Give the error behind an SQLSTATE that says enough by itself."""
    state = error.sqlstate or ""
    said = _said(error)
    if state in _LOST or state.startswith("08"):
        return unavailable(place, said)
    kinds: tuple[tuple[set[str], Callable[[], PalaverError]], ...] = (
        (_WAITED, lambda: busy(place, wait, said)),
        (_READ_ONLY, lambda: read_only(place, said)),
        (_NO_ROOM, lambda: StoreFull(f"There is no room left for {place}: {said}.", hint="The write was undone.")),
        (_MISSING, lambda: MissingStore(place, hint=f"The server said: {said}.")),
        (_DAMAGED, lambda: StoreDamaged(place, said)),
        (_TOO_BIG, lambda: InvalidInput(f"PostgreSQL holds no value so large: {said}.", hint="Keep it elsewhere.")),
    )
    return next((made() for states, made in kinds if state in states), None)


def fault(place: str, wait: float, error: psycopg.Error, *, broken: bool) -> PalaverError:
    """Give palaver's error for one of psycopg's.

    Args:
        place: The store, for people.
        wait: How long this store waits for others, in seconds.
        error: What psycopg raised.
        broken: True when the connection cannot be used any more.
    """
    found = _by_state(place, wait, error)
    if found is not None:
        return found
    if broken:
        return unavailable(place, _said(error))
    if isinstance(error, psycopg.DataError):
        return InvalidInput(f"PostgreSQL cannot hold this: {_said(error)}.")
    return StoreError(f"PostgreSQL failed on {place}: {_said(error)}.")
