"""What PostgreSQL's errors mean (https://www.postgresql.org/docs/current/errcodes-appendix.html)."""

from __future__ import annotations

from collections.abc import Callable

import psycopg

from palaver.errors import InvalidInput, MissingFile, PalaverError, StoreBusy, StoreDamaged, StoreError

_NO_ROOM = {"53100"}  # disk_full
_READ_ONLY = {"25006", "42501"}  # read_only_sql_transaction, insufficient_privilege
_MISSING = {"3D000", "3F000", "42P01"}  # invalid_catalog_name, invalid_schema_name, undefined_table
_DAMAGED = {"XX001", "XX002", "23505"}  # data_corrupted, index_corrupted, unique_violation
_TOO_BIG = {"54000", "54001", "22001"}  # program_limit_exceeded and its children
_WAITED = {"55P03", "57014", "40P01", "40001", "53300", "53200"}
"""lock_not_available, query_canceled (time-out), deadlock_detected, serialization_failure, too_many_connections, out_of_memory."""

_LOST = {"57P01", "57P02", "57P03", "57P05", "25P03", "57P04"}
"""admin_shutdown, crash_shutdown, cannot_connect_now, idle_session_timeout, idle_in_transaction_session_timeout, database_dropped."""


def unavailable(place: str, why: str) -> StoreError:
    """Return the error for a server that does not answer, or went away."""
    return StoreError(
        f"The server of {place} does not answer: {why}.",
        reason="unavailable",
        hint="What was acknowledged is safe. Try again when it is back.",
    )


def unknown_outcome(place: str) -> StoreError:
    """Return the error for a server that went away while it was asked to commit."""
    return StoreError(
        f"The server of {place} went away while it committed: whether the write is there is not known.",
        reason="unavailable",
        hint="Append the same messages again: they are there once. Read the dialog before you repeat any other write.",
    )


def _said(error: psycopg.Error) -> str:
    """Return the message of the server or the library on one line; libpq never puts a password into it."""
    said = error.diag.message_primary or str(error)
    return " ".join(said.split()).rstrip(".") or type(error).__name__


def _by_state(place: str, wait: float, error: psycopg.Error) -> PalaverError | None:
    """Return the error for an SQLSTATE that says enough by itself."""
    state = error.sqlstate or ""
    said = _said(error)
    if state in _LOST or state.startswith("08"):
        return unavailable(place, said)
    kinds: tuple[tuple[set[str], Callable[[], PalaverError]], ...] = (
        (
            _WAITED,
            lambda: StoreBusy(
                f"{place} was busy for more than {wait:g} seconds ({said}).", hint="Nothing was written. Try again."
            ),
        ),
        (_READ_ONLY, lambda: StoreError(f"{place} cannot be written: {said}.", reason="read_only")),
        (_NO_ROOM, lambda: StoreError(f"There is no room left for {place}: {said}.", reason="full")),
        (_MISSING, lambda: MissingFile(place, what="store", hint=f"The server said: {said}.")),
        (_DAMAGED, lambda: StoreDamaged(place, said)),
        (_TOO_BIG, lambda: InvalidInput(f"PostgreSQL holds no value so large: {said}.", hint="Keep it elsewhere.")),
    )
    return next((made() for states, made in kinds if state in states), None)


def fault(place: str, wait: float, error: psycopg.Error, *, broken: bool) -> PalaverError:
    """Return palaver's error for one of psycopg's.

    Args:
        place: The store, without a password.
        wait: How long this store waits for others, in seconds.
        error: What psycopg raised.
        broken: True when the connection cannot be used any more.
    """
    known = _by_state(place, wait, error)
    if known is not None:
        return known
    if broken:
        return unavailable(place, _said(error))
    if isinstance(error, psycopg.DataError):
        return InvalidInput(f"PostgreSQL cannot hold this: {_said(error)}.")
    return StoreError(f"PostgreSQL failed on {place}: {_said(error)}.")
