"""Retention: what was not used for long goes, when somebody says so: looked at first, through the trash, and never by default.

What an agent remembers of somebody is used when it is only read, and reading leaves no trace: it lives as long as any of his sessions does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain

from palaver.errors import Erased, InvalidInput, UnknownSession
from palaver.ids import now
from palaver.session.erasure import Receipt, erase
from palaver.session.marks import MEMORY
from palaver.store.lease import Lease, Leasing
from palaver.store.protocol import SessionRecord, Store

__all__ = ["HOLD", "Kept", "Retained", "RetentionPlan", "age_of", "lease_name", "retain", "retention"]

HOLD = "palaver.hold"
"""The key in a session's metadata that keeps it from retention; its value says why."""

_AGE = re.compile(r"(?P<number>[0-9]{1,6}(?:\.[0-9]{1,6})?)(?P<unit>[smhdwy])")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800, "y": 31_536_000}


def age_of(text: str) -> float:
    """Read an age such as `90d`, in seconds: s, m, h, d, w, or y of 365 days.

    Raises:
        InvalidInput: It is none.
    """
    found = _AGE.fullmatch(text.strip())
    if found is None:
        raise InvalidInput(f"{text!r} is no age.", hint="Write a number and one of s, m, h, d, w, y: 90d.")
    return float(found["number"]) * _SECONDS[found["unit"]]


def lease_name(session_id: str) -> str:
    """Give the name of the lease that keeps a session from retention while somebody works on it (`palaver.store.lease`)."""
    return f"session:{session_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A session that is old enough and stays.

    Attributes:
        record: The session.
        reason: Why: what the hold says, who has the lease, or that it is the memory of somebody who has sessions.
    """

    record: SessionRecord
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionPlan:
    """What retention would do. Nothing was written.

    Attributes:
        before: Sessions whose last activity was before this are due, in seconds since 1970-01-01 UTC.
        to_trash: Those that would be put into the trash.
        to_erase: Those that would be erased, because they are in the trash long enough, or because no trash was wanted.
        kept: Those that are due and stay.
    """

    before: float
    to_trash: tuple[SessionRecord, ...]
    to_erase: tuple[SessionRecord, ...]
    kept: tuple[Kept, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Retained:
    """What retention did.

    Attributes:
        trashed: The ids of the sessions that are in the trash now.
        receipts: The receipts of those that were erased.
        kept: Those that were due and stayed.
    """

    trashed: tuple[str, ...]
    receipts: tuple[Receipt, ...]
    kept: tuple[Kept, ...]


def retention(
    store: Store,
    *,
    older_than: float,
    subject: str | None = None,
    empty_trash: float | None = None,
    trash: bool = True,
    at: float | None = None,
) -> RetentionPlan:
    """Look at what retention would do; nothing is written.

    Args:
        store: The store.
        older_than: How long ago the last activity in a session's log must be, in seconds: times of files do not count.
        subject: Only sessions of exactly this subject.
        empty_trash: Erase what is in the trash for longer than this, in seconds; None to leave the trash alone.
        trash: False to erase without the trash between.
        at: The time to count from, in seconds since 1970-01-01 UTC; now when not given.

    Raises:
        InvalidInput: An age is negative.
    """
    if older_than < 0 or (empty_trash or 0) < 0:
        raise InvalidInput("An age is not negative.")
    moment = now() if at is None else at
    before = moment - older_than
    due = [record for record in store.sessions(subject=subject) if record.updated_at < before]
    old = (
        [
            record
            for record in store.sessions(subject=subject, trashed=True)
            if _trashed_before(record, moment - empty_trash)
        ]
        if empty_trash is not None
        else []
    )
    kept = {record.session_id: reason for record in chain(due, old) if (reason := _reason(store, record)) is not None}
    leaving = {record.session_id for record in due if record.session_id not in kept}
    kept |= {
        record.session_id: _USED
        for record in due
        if record.session_id in leaving and _remembered(store, record, leaving)
    }
    going = [record for record in due if record.session_id not in kept]
    return RetentionPlan(
        before=before,
        to_trash=tuple(going) if trash else (),
        to_erase=(*(record for record in old if record.session_id not in kept), *(() if trash else going)),
        kept=tuple(
            Kept(record=record, reason=kept[record.session_id])
            for record in chain(due, old)
            if record.session_id in kept
        ),
    )


def retain(store: Store, plan: RetentionPlan, *, thorough: bool = True) -> Retained:
    """Do what a plan says; a session that was used, held or leased since the plan was made stays.

    Args:
        store: The store.
        plan: What `retention` gave.
        thorough: Whether the storage is written anew after erasures, where that is what it takes: once, at the end.
    """
    trashed = []
    for record in _still(store, plan.to_trash):
        store.update_session(record.session_id, trashed_at=now())
        trashed.append(str(record.session_id))
    going = list(_still(store, plan.to_erase))
    receipts = [erase(store, session=record.session_id, thorough=thorough and record is going[-1]) for record in going]
    return Retained(trashed=tuple(trashed), receipts=tuple(receipts), kept=plan.kept)


def _trashed_before(record: SessionRecord, time: float) -> bool:
    return record.trashed_at is not None and max(record.trashed_at, record.updated_at) < time


def _still(store: Store, records: tuple[SessionRecord, ...]) -> Iterator[SessionRecord]:
    """Give those of some sessions that are as they were when the plan was made; memories last, for they stay where a session of their subject does."""
    gone: set[str] = set()
    for record in sorted(records, key=_is_memory):
        try:
            found = store.session(record.session_id)
        except (Erased, UnknownSession):
            continue  # somebody else was faster
        unchanged = (found.updated_at, found.trashed_at) == (record.updated_at, record.trashed_at)
        used = found.trashed_at is None and _remembered(store, found, gone)
        if unchanged and not used and _reason(store, found) is None:
            gone.add(found.session_id)
            yield found


_USED = "memory in use: its subject has sessions that stay"


def _is_memory(record: SessionRecord) -> bool:
    return bool(record.metadata.get(MEMORY))


def _remembered(store: Store, record: SessionRecord, leaving: AbstractSet[str]) -> bool:
    """Tell whether a session is the memory of somebody who has one that stays; one that all share is of whoever has any."""
    if not _is_memory(record):
        return False
    others = store.sessions(subject=record.subject or None)
    return any(not _is_memory(each) and each.session_id not in leaving for each in others)


def _reason(store: Store, record: SessionRecord) -> str | None:
    """Give why a session stays, or None."""
    held = record.metadata.get(HOLD)
    if held is not None:
        return f"held: {held}"
    holder = _holder(store, lease_name(record.session_id))
    return None if holder is None else f"leased by {holder}"


class _LookedError(Exception):
    """Ends a look at a lease without a change."""


def _holder(store: Store, name: str) -> str | None:
    """Give who has a lease now, or None."""
    found: list[str] = []

    def look(lease: Lease, clock: float) -> Lease:
        if lease.holder and lease.until > clock:
            found.append(lease.holder)
        raise _LookedError

    if isinstance(store, Leasing):
        with suppress(_LookedError):
            store.change_lease(name, look)
    return found[0] if found else None
