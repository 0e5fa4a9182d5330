"""Sweeps of damage: a history is cut off, or fails, at every step, and what the store has then is held to what it had acknowledged (law 4).

A sweep counts what it does and what it finds, judges every single cut, and says of those that were wrong where they were.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import NamedTuple, TypeVar

from palaver.errors import PalaverError, StoreError
from palaver.store import Durability, SqliteStore, Store, verify_store
from tests.damage.disk import Act, Loss, Note, Notes
from tests.damage.history import History, state_of
from tests.damage.sqlite_disk import Disk, Failure, close_on, put_back, sqlite_on
from tests.laws import checked

T = TypeVar("T")
_FILE = "store.db"


@dataclass
class Tally:
    """What a sweep did, and what it found.

    Attributes:
        kills: How often the history was cut off, or failed.
        lost: Where something acknowledged was missing.
        invented: Where there was something that nobody had written so, or more than the one step under way.
    """

    kills: int = 0
    lost: list[str] = field(default_factory=list)
    invented: list[str] = field(default_factory=list)

    def sound(self, what: str) -> None:
        """Assert that nothing was lost and nothing invented, and say what was done."""
        sys.stdout.write(f"{what}: {self.kills:,} kills, {len(self.lost)} lost, {len(self.invented)} invented\n")
        checked(self.kills)
        assert (self.lost[:10], self.invented[:10]) == ([], [])
        assert self.kills


# --- judging ------------------------------------------------------------------------------------------------------------------


@dataclass
class Judge:
    """Holds what a store has after a kill to what was acknowledged before.

    Attributes:
        known: The history that was cut off.
        flushed: False where the newest steps may be missing, as `Durability.NORMAL` says of a power cut.
        on: How many of the steps that are left are made then.
        tally: Where it is counted.
        seen: What power cuts left that was judged already: equal files with as many acknowledged steps.
    """

    known: History
    flushed: bool = True
    on: int = 1
    tally: Tally = field(default_factory=Tally)
    seen: set[tuple[int, int]] = field(default_factory=set)

    def store(self, store: Store, acknowledged: int, where: str) -> int:
        """Judge a store, write it on, and return how many steps were found.

        What is there is the state after the last acknowledged step, or after the one under way; it verifies, and the next steps can be made.
        """
        self.tally.kills += 1
        where = f"{where}: {acknowledged} steps were acknowledged"
        at = self._steps_in(state_of(store), acknowledged)
        if at is None or at > acknowledged + 1:
            self.tally.invented.append(f"{where}, found is {at}")
            return acknowledged if at is None else at
        if at < acknowledged and self.flushed:
            self.tally.lost.append(f"{where}, {at} found")
            return at
        self.tally.invented += [f"{where}: {fault}" for fault in verify_store(store)]
        for number, step in enumerate(self.known.steps[at : at + self.on], at + 1):
            step(store)
            if state_of(store) != self.known.states[number]:
                self.tally.invented.append(f"{where}: step {number} after it came to something else")
        return at

    def _steps_in(self, state: str, acknowledged: int) -> int | None:
        """Return how many steps a state is the result of; a later step may take an earlier one back: the nearest counts."""
        steps = [number for number, one in enumerate(self.known.states) if one == state]
        return min(steps, key=lambda number: (abs(number - acknowledged), -number), default=None)

    def files(self, left: Mapping[str, bytes], folder: Path, acknowledged: int, where: str) -> None:
        """Open what a cut left, and judge it; a store that cannot be opened has lost everything."""
        put_back(left, folder)
        try:
            with SqliteStore(folder / _FILE) as store:
                self.store(store, acknowledged, where)
        except PalaverError as error:
            self.tally.kills += 1
            self.tally.lost.append(f"{where}: {type(error).__name__}: {error}")
        finally:
            rmtree(folder)


# --- power cuts of SQLite -----------------------------------------------------------------------------------------------------


class Recorded(NamedTuple):
    """A history that was played into a store on a disk that notes everything.

    Attributes:
        notes: What was done to the files.
        marks: How much of that had been done when the store was open, and when each step was acknowledged.
    """

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
    return Recorded(disk.notes, marks)


def recovered_on_disk(left: Mapping[str, bytes], acknowledged: int, folder: Path) -> Recorded:
    """Open what a cut left on a disk that notes everything, and close it; the notes begin with the files as they were."""
    put_back(left, folder)
    with sqlite_on(Disk()) as disk:
        for name, content in left.items():
            disk.notes.acts += [Note(Act.MADE, name), Note(Act.WROTE, name, 0, content), Note(Act.FLUSHED, name)]
        SqliteStore(folder / _FILE).close()
    rmtree(folder)
    return Recorded(disk.notes, [0] * (acknowledged + 1))


def power_cuts(  # noqa: PLR0913 - all but the first three by keyword
    judge: Judge,
    recorded: Recorded,
    folder: Path,
    losses: Iterable[Loss] = (Loss.ALL, Loss.NONE, Loss.TORN),
    *,
    first: int = 0,
    every: int = 1,
    seeds: Iterable[int] = (0,),
) -> Tally:
    """Cut the power at every point of a recorded history, open what is on the disk then, and judge it; equal files are judged once."""
    for at in list(recorded.notes.cuts(first))[::every]:
        acknowledged = recorded.acknowledged(at)
        for loss in losses:
            for seed in seeds if loss is Loss.ANY else (0,):
                left = recorded.notes.left(at, loss, seed)
                content = (acknowledged, hash(frozenset(left.items())))
                if content not in judge.seen:
                    judge.seen.add(content)
                    where = f"cut after act {at}, {loss.value} of what was not flushed lost, seed {seed}"
                    judge.files(left, folder / "cut", acknowledged, where)
    return judge.tally


# --- a disk that fails ----------------------------------------------------------------------------------------------------------


def failing(judge: Judge, folder: Path, failure: Failure, first: int, length: int = 1) -> int:
    """Play a history while the disk fails, then cut the power, open what is left, and judge it; return how many acts failed.

    A step that the disk makes fail raises a `StoreError` and changes nothing; made again, it is there.

    Args:
        judge: The judge, who knows the history.
        folder: A folder that is made, and removed.
        failure: How the disk fails.
        first: Which act of that kind is the first to fail, counted from 1.
        length: How many fail, one after the other.
    """
    disk, known = Disk(), judge.known
    folder.mkdir()
    with sqlite_on(disk):
        disk.fail(failure, first, first + length - 1)
        store = _made_at_last(lambda: SqliteStore(folder / _FILE), length)
        for number, step in enumerate(known.steps):

            def changed(number: int = number) -> None:
                with suppress(StoreError):  # one whose disk cannot be read either says nothing
                    if state_of(store) != known.states[number]:
                        judge.tally.invented.append(f"step {number}: it raised, and changed something")

            _made_at_last(partial(step, store), length, changed)
        left = disk.notes.left(len(disk.notes), Loss.ALL)
        close_on(store)
    judge.files(left, folder / "after", len(known.steps), f"{failure.value} from act {first}")
    rmtree(folder)
    return disk.failed


def _made_at_last(make: Callable[[], T], length: int, failed: Callable[[], None] = lambda: None) -> T:
    """Do what may fail a number of times, and look at each failure."""
    for _ in range(length):
        try:
            return make()
        except StoreError:
            failed()
    return make()


def unreadable(judge: Judge, folder: Path, first: int) -> int:
    """Play a history, and read it again while one reading of the disk fails: it says so, or gives all there is, never less."""
    disk = Disk()
    folder.mkdir()
    with SqliteStore(folder / _FILE, Durability.NORMAL) as store:
        for step in judge.known.steps:
            step(store)
    with sqlite_on(disk):
        disk.fail(Failure.READ, first)
        for _ in range(2):
            with suppress(StoreError), SqliteStore(folder / _FILE) as again:
                judge.store(again, len(judge.known.steps), f"read {first}")
    rmtree(folder)
    return disk.failed
