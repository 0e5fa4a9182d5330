"""Retention: remove sessions that were unused for long, on request only, with a preview, and through the trash.

Only entries of the log count as use; times of files do not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from palaver import erasure
from palaver.errors import Erased, InvalidInput, NotFound
from palaver.ids import now
from palaver.store.protocol import SessionRecord, Store

HOLD = "palaver.hold"
"""The key in a session's metadata that exempts it from retention; its value is the reason."""

MEMORY = "palaver_memory"
"""The key in a session's metadata that marks it as memory, which stays as long as a session of its subject."""

_AGE = re.compile(r"(?P<number>[0-9]{1,6}(?:\.[0-9]{1,6})?)(?P<unit>[smhdwy])")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800, "y": 31_536_000}


def age_of(text: str) -> float:
    """Return an age such as `90d` in seconds. The units are s, m, h, d, w, and y of 365 days.

    Raises:
        InvalidInput: The text is not an age.
    """
    age = _AGE.fullmatch(text.strip())
    if age is None:
        raise InvalidInput(f"{text!r} is not an age.", hint="Write a number and one of s, m, h, d, w, y: 90d.")
    return float(age["number"]) * _SECONDS[age["unit"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """An old session that stays.

    Attributes:
        record: The session.
        reason: The reason: its hold, or its subject has sessions that stay.
    """

    record: SessionRecord
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionPlan:
    """The effects of retention. Nothing was written.

    Attributes:
        before: Sessions that were last active before this are due, in seconds since 1970-01-01 UTC.
        to_trash: Sessions that would move to the trash.
        to_erase: Sessions that would be erased, because they were in the trash long enough or the trash is not used.
        kept: Sessions that are due but stay.
    """

    before: float
    to_trash: tuple[SessionRecord, ...]
    to_erase: tuple[SessionRecord, ...]
    kept: tuple[Kept, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Retained:
    """The result of retention.

    Attributes:
        trashed: The ids of the sessions that moved to the trash.
        receipts: The receipts of the erased sessions.
    """

    trashed: tuple[str, ...]
    receipts: tuple[erasure.Receipt, ...]


def retention(
    store: Store,
    *,
    older_than: float,
    subject: str | None = None,
    empty_trash: float | None = None,
    trash: bool = True,
    at: float | None = None,
) -> RetentionPlan:
    """Return the effects of retention. Nothing is written.

    Args:
        store: The store.
        older_than: The minimum age of a session's last activity, in seconds.
        subject: Only sessions of exactly this subject.
        empty_trash: Erase sessions that were in the trash longer than this, in seconds; None erases none.
        trash: False erases at once, without the trash.
        at: The current time, in seconds since 1970-01-01 UTC. Default: now.

    Raises:
        InvalidInput: An age is negative.
    """
    if older_than < 0 or (empty_trash or 0) < 0:
        raise InvalidInput("older_than or empty_trash is negative.", hint="Pass seconds, at least 0.")
    moment = now() if at is None else at
    before = moment - older_than
    due = [record for record in store.sessions(subject=subject) if record.updated_at < before]
    if empty_trash is not None:
        lain = moment - empty_trash
        old = store.sessions(subject=subject, trashed=True)
        due += [record for record in old if max(record.trashed_at or moment, record.updated_at) < lain]
    kept = _kept(store, due)
    staying = {stays.record.session_id for stays in kept}
    going = [record for record in due if record.session_id not in staying]
    to_trash = tuple(record for record in going if trash and record.trashed_at is None)
    to_erase = tuple(record for record in going if record not in to_trash)
    return RetentionPlan(before=before, to_trash=to_trash, to_erase=to_erase, kept=tuple(kept))


def retain(store: Store, plan: RetentionPlan, *, thorough: bool = True) -> Retained:
    """Carry out a plan. A session that was used or held after the plan was made stays.

    Args:
        store: The store.
        plan: The plan from `retention`.
        thorough: Whether to rewrite the storage once, at the end, if bytes would stay otherwise.
    """
    trashed = []
    for record in _unchanged(store, plan.to_trash):
        store.update_session(record.session_id, trashed_at=now())
        trashed.append(str(record.session_id))
    going = _unchanged(store, plan.to_erase)
    receipts = [
        erasure.erase(store, session=record.session_id, thorough=thorough and record is going[-1]) for record in going
    ]
    return Retained(trashed=tuple(trashed), receipts=tuple(receipts))


def _unchanged(store: Store, records: Sequence[SessionRecord]) -> list[SessionRecord]:
    """Return the records of a plan that are unchanged and still have no reason to stay."""
    same = []
    for record in records:
        try:
            current = store.session(record.session_id)
        except (Erased, NotFound):
            continue
        if (current.updated_at, current.trashed_at) == (record.updated_at, record.trashed_at):
            same.append(current)
    staying = {stays.record.session_id for stays in _kept(store, same)}
    return [record for record in same if record.session_id not in staying]


def _kept(store: Store, due: Sequence[SessionRecord]) -> list[Kept]:
    """Return the sessions that stay, and why. Memory is read without being written, so it stays as long as a session of its subject."""
    leaving = {record.session_id for record in due if HOLD not in record.metadata}  # a held session needs its memory
    kept = []
    for record in due:
        if HOLD in record.metadata:
            kept.append(Kept(record=record, reason=f"held: {record.metadata[HOLD]}"))
        elif record.metadata.get(MEMORY):
            others = store.sessions(subject=record.subject or None)
            if any(not other.metadata.get(MEMORY) and other.session_id not in leaving for other in others):
                kept.append(Kept(record=record, reason="memory of a subject whose sessions stay"))
    return kept
