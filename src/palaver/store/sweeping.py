"""Payloads that nothing names: found, and removed when somebody says so, never one that may be being written.

A payload is put before the entry that names it, so that no entry ever names what is not there. A writer that dies in between leaves a payload
that nobody names: no reader sees it, and nothing is wrong but the room it takes. A writer that is alive has put it a moment ago. So
only what nobody has put for some time is removed, at least for an hour, and only after it was proven, in the transaction that removes it and with
every other writer kept out, that still nothing names it and nobody has put it again.

The proof has two halves. First the whole store is read while others write; then, with the writers kept out, what was written since that began,
and when each payload was put last. Both together have read all that there is, and nobody waits for the first one. Only a little is removed
at a time, and others get their turn in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from time import sleep

from palaver.errors import InvalidInput, StoreBusy
from palaver.ids import BlobId
from palaver.store.erasing import Erasing, Mark, Stray
from palaver.store.protocol import Store

__all__ = ["DAY", "LEAST_AGE", "SweepPlan", "Swept", "stray_payloads", "sweep", "sweepable"]

DAY = 86_400.0
LEAST_AGE = 3_600.0
"""The least age of what is removed, in seconds: longer than any writer of ours takes from putting a payload to naming it."""

_AT_A_TIME = 50_000
"""Payloads that are looked for in one reading of the store."""
_MOST_REMOVED = 2_000
"""Payloads that one transaction removes."""
_BYTES_REMOVED = 32 << 20
"""How much one transaction removes, in bytes: what is deleted is overwritten."""
_PAUSE_SECONDS = 0.12
"""How long others may begin before more is removed: a process that waits for SQLite's lock looks every 0.1 seconds
(sqliteDefaultBusyCallback in https://sqlite.org/src/file/src/main.c)."""


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
        kept: Those of the plan that stayed, because something names them now, or somebody has put them again. What another sweep has taken
            is in neither.
        left: Those of the plan that stayed because others kept the store for themselves: another sweep takes them up.
        pending: What is still to be done, in words.
    """

    removed: tuple[Stray, ...]
    kept: tuple[BlobId, ...] = ()
    left: tuple[BlobId, ...] = ()
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

    It can be killed anywhere and done again, and several may sweep at once. Others wait for a single removal at most.

    Args:
        store: The store.
        plan: What `sweepable` gave.
        thorough: Whether the storage is written anew behind it, where that is what gives the room back.

    Raises:
        InvalidInput: The plan is about payloads that may be being written, or the store erases nothing.
        StoreBusy: Others kept the store for themselves before anything was removed.
    """
    _require_age(plan.older_than)
    erasing = _erasing(store)
    strays = tuple({one.blob_id: one for one in plan.strays}.values())
    removed: list[Stray] = []
    left: tuple[Stray, ...] = ()
    done = 0
    try:
        for part, loose in _removals(erasing, strays, plan.older_than):
            done += len(part)
            removed += [one for one in part if one.blob_id in loose]
    except StoreBusy:
        if not removed:
            raise
        left = strays[done:]
    gone = {one.blob_id for one in removed}
    kept = tuple(one.blob_id for one in strays[:done] if one.blob_id not in gone and store.has_blob(one.blob_id))
    pending = erasing.scrub(thorough=thorough, payloads=True) if removed else ()
    if left:
        pending = (*pending, f"others write: {len(left):,} payloads are left for another sweep")
    return Swept(removed=tuple(removed), kept=kept, left=tuple(one.blob_id for one in left), pending=pending)


def _removals(
    store: Erasing, strays: Sequence[Stray], older_than: float
) -> Iterator[tuple[Sequence[Stray], frozenset[BlobId]]]:
    """Remove payloads part by part; give each part when it is done, and which of it are gone."""
    for start in range(0, len(strays), _AT_A_TIME):
        batch = strays[start : start + _AT_A_TIME]
        looked = store.unnamed([one.blob_id for one in batch], older_than)
        for number, part in enumerate(_parts(batch)):
            found = [one.blob_id for one in part if one.blob_id in looked.blob_ids]
            if number and found:
                sleep(_PAUSE_SECONDS)
            yield part, _removed(store, found, older_than, looked.mark)


def _removed(store: Erasing, found: Sequence[BlobId], older_than: float, mark: Mark) -> frozenset[BlobId]:
    """Remove those that still nothing names, and give them; the only step for which others wait."""
    if not found:
        return frozenset()
    with store.erasing() as eraser:
        loose = eraser.unnamed(found, older_than, mark)
        eraser.remove_blobs(loose)
    return loose


def _parts(strays: Sequence[Stray]) -> Iterator[Sequence[Stray]]:
    """Cut into what one transaction removes."""
    start = size = 0
    for number, one in enumerate(strays):
        size += one.size
        if number > start and (size > _BYTES_REMOVED or number - start >= _MOST_REMOVED):
            yield strays[start:number]
            start, size = number, one.size
    if start < len(strays):
        yield strays[start:]


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
