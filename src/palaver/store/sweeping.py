"""Payloads that nothing names: found, and removed when somebody says so, never one that may be being written.

A payload is put before the entry that names it, so that no entry ever names what is not there. A writer that dies in between leaves a payload
that nobody names: no reader sees it, and nothing is wrong but the room it takes. A writer that is alive has put it a moment ago. So
only what nobody has put for some time is removed, at least for an hour, and only after it was proven, in the transaction that removes it and with
every other writer kept out, that still nothing names it and nobody has put it again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from palaver.errors import InvalidInput
from palaver.ids import BlobId
from palaver.store.erasing import Erasing, Stray
from palaver.store.protocol import Store

__all__ = ["DAY", "LEAST_AGE", "SweepPlan", "Swept", "stray_payloads", "sweep", "sweepable"]

DAY = 86_400.0
LEAST_AGE = 3_600.0
"""The least age of what is removed, in seconds: longer than any writer of ours takes from putting a payload to naming it."""

_AT_A_TIME = 50_000
"""Payloads that are removed in one transaction: for each, all that names payloads is read again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPlan:
    """What a sweep would remove. Nothing was written.

    Attributes:
        older_than: Payloads that nobody has put for so many seconds are due.
        strays: Those that nothing names and that are due.
        younger: Those that nothing names and that are not: they may be being written.
    """

    older_than: float
    strays: tuple[Stray, ...]
    younger: tuple[Stray, ...] = ()

    @property
    def size(self) -> int:
        """The length of those that are due, in bytes."""
        return sum(one.size for one in self.strays)


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """What a sweep did.

    Attributes:
        removed: The payloads that are gone.
        kept: Those of the plan that stayed, because something names them now, or somebody has put them again.
        pending: What is still to be done until no byte of them is in the storage, in words.
    """

    removed: tuple[Stray, ...]
    kept: tuple[BlobId, ...] = ()
    pending: tuple[str, ...] = field(default=())


def stray_payloads(store: Store) -> Iterator[Stray]:
    """Give the payloads that nothing names, of any age; none for a store that cannot tell. Reads every body that names any payload."""
    return store.strays() if isinstance(store, Erasing) else iter(())


def sweepable(store: Store, *, older_than: float = DAY) -> SweepPlan:
    """Look at what a sweep would remove; nothing is written.

    Args:
        store: The store.
        older_than: How long ago it must have been put last, in seconds by the store's clock; at least `LEAST_AGE`.

    Raises:
        InvalidInput: The age is too small, or the store erases nothing.
    """
    _require_age(older_than)
    found = list(_erasing(store).strays())
    return SweepPlan(
        older_than=older_than,
        strays=tuple(one for one in found if one.age >= older_than),
        younger=tuple(one for one in found if not one.age >= older_than),
    )


def sweep(store: Store, plan: SweepPlan, *, thorough: bool = True) -> Swept:
    """Do what a plan says; what something names by now, or what somebody has put again, stays.

    Args:
        store: The store.
        plan: What `sweepable` gave.
        thorough: Whether the storage is written anew behind it, where that is what gives the room back.

    Raises:
        InvalidInput: The plan is about payloads that may be being written, or the store erases nothing.
    """
    _require_age(plan.older_than)
    erasing = _erasing(store)
    wanted = {one.blob_id: one for one in plan.strays}
    removed: list[Stray] = []
    waiting = iter(wanted)
    while batch := list(islice(waiting, _AT_A_TIME)):
        with erasing.erasing() as eraser:
            loose = eraser.unnamed(batch, plan.older_than)
            eraser.remove_blobs(loose)
        removed += [wanted[one] for one in batch if one in loose]
    gone = {one.blob_id for one in removed}
    pending = erasing.scrub(thorough=thorough) if removed else ()
    return Swept(removed=tuple(removed), kept=tuple(one for one in wanted if one not in gone), pending=pending)


def _require_age(older_than: float) -> None:
    if not older_than >= LEAST_AGE:
        raise InvalidInput(
            "A payload that was put within the last hour may be being written: it stays.",
            hint=f"The age is at least {LEAST_AGE:.0f} seconds, 1h.",
        )


def _erasing(store: Store) -> Erasing:
    if not isinstance(store, Erasing):
        raise InvalidInput("This store is of a kind that removes nothing.")
    return store
