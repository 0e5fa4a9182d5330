"""Sweeps of damage: a history is cut off, or fails, at every step, and what the store has then is held to what it had acknowledged (law 4).

A sweep counts what it does and what it finds, judges every single cut, and says of those that were wrong where they were.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree
from typing import NamedTuple

from palaver.errors import PalaverError, StoreError
from palaver.store import Durability, SqliteStore, Store, verify_store
from tests.damage.disk import Act, Loss, Note, Notes
from tests.damage.history import History, Step, entries_in, state_of
from tests.damage.sqlite_disk import Disk, Failure, close_on, put_back, sqlite_on

_FILE = "store.db"
_SHOWN = 10


@dataclass
class Tally:
    """What a sweep did, and what it found.

    Attributes:
        kills: How often the history was cut off, or failed.
        acknowledged: Entries that were acknowledged before, over all of them.
        found: Entries that were there after, over all of them.
        in_flight: How often the step that was under way was there, as a whole.
        lost: How often something acknowledged was missing.
        invented: How often there was something that nobody had written so, or more than the one step under way.
        faults: The first of what was wrong, in words.
    """

    kills: int = 0
    acknowledged: int = 0
    found: int = 0
    in_flight: int = 0
    lost: int = 0
    invented: int = 0
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.kills:,} kills, {self.acknowledged:,} entries acknowledged before, {self.found:,} found after "
            f"({self.in_flight:,} times the step under way was there, whole), {self.lost} lost, {self.invented} invented"
        )

    def add(self, other: Tally) -> None:
        """Add another sweep's counts."""
        for name in ("kills", "acknowledged", "found", "in_flight", "lost", "invented"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.faults = [*self.faults, *other.faults][:_SHOWN]

    def wrong(self, what: str) -> None:
        """Note something wrong."""
        self.faults = [*self.faults, what][:_SHOWN]


# --- judging ------------------------------------------------------------------------------------------------------------------


def judge(  # noqa: PLR0913 - what one cut is
    tally: Tally, known: History, store: Store, acknowledged: int, *, where: str = "", flushed: bool = True, on: int = 1
) -> int:
    """Hold what a store has after a kill to what was acknowledged before, write it on, and return how many steps were found.

    What is there is the state after the last acknowledged step, or after the one under way; it verifies, and the next steps can be made.

    Args:
        tally: Where it is counted.
        known: The history that was cut off.
        store: What was opened after it.
        acknowledged: How many steps had been acknowledged.
        where: Where it was cut off, for people.
        flushed: False where the newest steps may be missing, as `Durability.NORMAL` says of a power cut.
        on: How many of the steps that are left are made then.
    """
    tally.kills += 1
    tally.acknowledged += known.counts[acknowledged]
    tally.found += entries_in(store)
    at = _steps_in(known, state_of(store), acknowledged)
    if at is None or at > acknowledged + 1:
        tally.invented += 1
        tally.wrong(f"{where}: {acknowledged} steps were acknowledged, found is {at}")
        return acknowledged if at is None else at
    if at < acknowledged and flushed:
        tally.lost += 1
        tally.wrong(f"{where}: {acknowledged} steps were acknowledged, {at} found")
        return at
    tally.in_flight += at > acknowledged
    for fault in (*map(str, verify_store(store)), *_stuck(known, store, at, on)):
        tally.invented += 1
        tally.wrong(f"{where}: {fault}")
    return at


def _steps_in(known: History, state: str, acknowledged: int) -> int | None:
    """Return how many steps a state is the result of; a later step may take an earlier one back: the nearest counts."""
    steps = [number for number, one in enumerate(known.states) if one == state]
    return min(steps, key=lambda number: (abs(number - acknowledged), -number), default=None)


def _stuck(known: History, store: Store, at: int, on: int) -> Iterator[str]:
    """Make the steps that come next, and say if one does not do what it did."""
    for number, step in enumerate(known.steps[at : at + on], at + 1):
        step(store)
        if state_of(store) != known.states[number]:
            yield f"step {number} after it came to something else"
            return


# --- power cuts of SQLite -----------------------------------------------------------------------------------------------------


class Recorded(NamedTuple):
    """A history that was played into a store on a disk that notes everything.

    Attributes:
        known: The history.
        notes: What was done to the files.
        marks: How much of that had been done when the store was open, and when each step was acknowledged.
    """

    known: History
    notes: Notes
    marks: Sequence[int]

    def acknowledged(self, at: int) -> int:
        """Return how many steps were acknowledged when so much had been done."""
        return max(0, bisect_right(self.marks, at) - 1)


def recorded_on_disk(
    known: History, folder: Path, durability: Durability = Durability.FULL, *, handles: int = 1, reopened: int = 0
) -> Recorded:
    """Play a history into a SQLite store on a disk that notes what is done; some handles write in turn, opened anew after so many steps."""
    marks: list[int] = []
    with sqlite_on(Disk()) as disk:
        stores = [SqliteStore(folder / _FILE, durability) for _ in range(handles)]
        marks.append(len(disk.notes))
        for number, step in enumerate(known.steps, 1):
            step(stores[number % handles])
            marks.append(len(disk.notes))
            if reopened and number % reopened == 0:
                for store in stores:
                    store.close()
                stores = [SqliteStore(folder / _FILE, durability) for _ in range(handles)]
        for store in stores:
            store.close()
    return Recorded(known, disk.notes, marks)


def reopened_on_disk(left: Mapping[str, bytes], folder: Path) -> Notes:
    """Open what a cut left, on a disk that notes what is done, and close it; return the notes, which begin with the files."""
    put_back(left, folder)
    with sqlite_on(Disk()) as disk:
        for name, content in left.items():
            disk.notes.acts += [Note(Act.MADE, name), Note(Act.WROTE, name, 0, content), Note(Act.FLUSHED, name)]
        with SqliteStore(folder / _FILE) as store:
            list(store.sessions())
    return disk.notes


def power_cuts(  # noqa: PLR0913 - what one cut is
    recorded: Recorded,
    folder: Path,
    losses: Iterable[Loss] = (Loss.ALL, Loss.NONE, Loss.TORN),
    *,
    every: int = 1,
    seeds: Iterable[int] = (0,),
    flushed: bool = True,
    on: int = 1,
) -> Tally:
    """Cut the power at every point of a recorded history, open what is on the disk then, and judge it; equal files are judged once."""
    tally, seen = Tally(), set[tuple[int, int]]()
    for at in list(recorded.notes.cuts())[::every]:
        acknowledged = recorded.acknowledged(at)
        for loss in losses:
            for seed in seeds if loss is Loss.ANY else (0,):
                left = recorded.notes.left(at, loss, seed)
                content = (acknowledged, hash(frozenset(left.items())))
                if content in seen:
                    continue
                seen.add(content)
                where = f"cut after act {at}, {loss.value} of what was not flushed lost, seed {seed}"
                judged_files(tally, recorded.known, left, folder / "cut", acknowledged, where, flushed=flushed, on=on)
    return tally


def judged_files(  # noqa: PLR0913 - what one cut is
    tally: Tally,
    known: History,
    left: Mapping[str, bytes],
    folder: Path,
    acknowledged: int,
    where: str,
    *,
    flushed: bool = True,
    on: int = 1,
) -> None:
    """Open what a cut left, and judge it; a store that cannot be opened has lost everything."""
    put_back(left, folder)
    try:
        with SqliteStore(folder / _FILE) as store:
            judge(tally, known, store, acknowledged, where=where, flushed=flushed, on=on)
    except PalaverError as error:
        tally.kills += 1
        tally.lost += 1
        tally.wrong(f"{where}: {type(error).__name__}: {error}")
    finally:
        rmtree(folder)


# --- a disk that fails ----------------------------------------------------------------------------------------------------------


def failing(known: History, folder: Path, failure: Failure, first: int, length: int = 1) -> tuple[Tally, int]:
    """Play a history while the disk fails, then cut the power, open what is left, and judge it; return also how many acts failed.

    A step that the disk makes fail raises a `StoreError` and changes nothing; made again, it is there.

    Args:
        known: The history.
        folder: An empty folder.
        failure: How the disk fails.
        first: Which act of that kind is the first to fail, counted from 1.
        length: How many fail, one after the other.
    """
    tally, disk = Tally(), Disk()
    with sqlite_on(disk):
        disk.fail(failure, first, first + length - 1)
        store = _opened_at_last(folder / _FILE, length)
        for number, step in enumerate(known.steps):
            _made_at_last(tally, known, store, number, step, length)
        left = disk.notes.left(len(disk.notes), Loss.ALL)
        close_on(store)
    judged_files(tally, known, left, folder / "after", len(known.steps), f"{failure.value} from act {first}")
    return tally, disk.failed


def _opened_at_last(path: Path, length: int) -> SqliteStore:
    for _ in range(length):
        with suppress(StoreError):
            return SqliteStore(path)
    return SqliteStore(path)


def _made_at_last(tally: Tally, known: History, store: Store, number: int, step: Step, length: int) -> None:
    """Make a step that may fail a number of times, and hold each failure to having changed nothing."""
    for _ in range(length):
        try:
            step(store)
        except StoreError:
            if not _unchanged(store, known.states[number]):
                tally.invented += 1
                tally.wrong(f"step {number}: it raised, and changed something")
        else:
            return
    step(store)


def _unchanged(store: Store, state: str) -> bool:
    """Return whether a store says what it said; one whose disk cannot be read either says nothing."""
    try:
        return state_of(store) == state
    except StoreError:
        return True


def unreadable(known: History, folder: Path, first: int) -> tuple[Tally, int]:
    """Play a history, and read it again while one reading of the disk fails: it says so, or gives all there is, never less."""
    tally, disk = Tally(), Disk()
    with SqliteStore(folder / _FILE, Durability.NORMAL) as store:
        for step in known.steps:
            step(store)
    with sqlite_on(disk):
        disk.fail(Failure.READ, first)
        for _ in range(2):
            with suppress(StoreError), SqliteStore(folder / _FILE) as again:
                judge(tally, known, again, len(known.steps), where=f"read {first}")
    return tally, disk.failed
