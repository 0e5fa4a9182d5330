"""Sweeps of damage: a history is cut off, or fails, at every step, and what the store has then is held to what it had acknowledged (law 4).

A sweep counts what it does and what it finds, so that a table can be shown; it judges every single cut, and says of those that were wrong
where they were.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree
from typing import NamedTuple

from palaver.errors import PalaverError, StoreError
from palaver.session.reading.extent import extent_of
from palaver.store import Durability, SqliteStore, Store
from palaver.testing.disk import Act, Loss, Note, Notes
from palaver.testing.sqlite_disk import Disk, Failure, close_on, put_back, sqlite_on
from palaver.testing.tape import Step, Tape, entries_in, play, session_ids, state_of, states

__all__ = [
    "History",
    "Recorded",
    "Tally",
    "failing",
    "history",
    "judge",
    "judged_files",
    "power_cuts",
    "recorded_on_disk",
    "reopened_on_disk",
    "unreadable",
]

_FILE = "store.db"


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
        """Say it in a line."""
        return (
            f"{self.kills:,} kills, {self.acknowledged:,} entries acknowledged before, {self.found:,} found after "
            f"({self.in_flight:,} times the step under way was there, whole), {self.lost} lost, {self.invented} invented"
        )

    def add(self, other: Tally) -> None:
        """Take another sweep's counts in."""
        for name in ("kills", "acknowledged", "found", "in_flight", "lost", "invented"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for what in other.faults:
            self.wrong(what)

    def wrong(self, what: str) -> None:
        """Note something wrong."""
        if len(self.faults) < _SHOWN:
            self.faults.append(what)


_SHOWN = 10


class History(NamedTuple):
    """A tape, and what a store holds after each number of its steps.

    Attributes:
        tape: The steps.
        states: The fingerprint after each number of steps, from none to all.
        counts: How many entries there are then.
    """

    tape: Tape
    states: Sequence[str]
    counts: Sequence[int]


def history(tape: Tape) -> History:
    """Give a tape with its states."""
    return History(tape, *states(tape))


# --- judging ------------------------------------------------------------------------------------------------------------------


def judge(  # noqa: PLR0913 - all but the first four by keyword
    tally: Tally, told: History, store: Store, acknowledged: int, *, where: str = "", flushed: bool = True, on: int = 1
) -> int:
    """Hold what a store has after a kill to what was acknowledged before, and write it on.

    What is there is the state after the last step that was acknowledged, or after the one that was under way. Every entry gives its digest,
    every dialog has its ancestors, and the steps that are still to come can be made.

    Args:
        tally: Where it is counted.
        told: The history that was cut off.
        store: What was opened after it.
        acknowledged: How many steps had been acknowledged.
        where: Where it was cut off, for people.
        flushed: False where the newest steps may be missing, as `Durability.NORMAL` says of a power cut; what is there is a state all the same.
        on: How many of the steps that are left are made then.

    Returns:
        How many steps were found; as many as were acknowledged where it is none of the states.
    """
    tally.kills += 1
    tally.acknowledged += told.counts[acknowledged]
    state = state_of(store)
    tally.found += entries_in(store)
    at = _steps_in(told, state, acknowledged)
    if at is None or at > acknowledged + 1:
        tally.invented += 1
        tally.wrong(
            f"{where}: {acknowledged} steps were acknowledged, found is {'none of the states' if at is None else at}"
        )
        return acknowledged if at is None else at
    if at < acknowledged and flushed:
        tally.lost += 1
        tally.wrong(f"{where}: {acknowledged} steps were acknowledged, {at} found")
        return at
    tally.in_flight += at > acknowledged
    for fault in (*_unsound(store), *_stuck(told, store, at, on)):
        tally.invented += 1
        tally.wrong(f"{where}: {fault}")
    return at


def _steps_in(told: History, state: str, acknowledged: int) -> int | None:
    """Give how many steps a state is the result of; None when it is none's. A later step may take an earlier one back: the nearest counts."""
    steps = [number for number, known in enumerate(told.states) if known == state]
    return min(steps, key=lambda number: (abs(number - acknowledged), -number), default=None)


def _unsound(store: Store) -> Iterator[str]:
    """Give the sessions that cannot be reached or read as a whole."""
    for session_id in session_ids(store):
        extent = extent_of(store, session_id, verify=True)
        if extent.unreachable:
            yield f"session {session_id}: {extent.total} entries, {extent.unreachable} unreachable"


def _stuck(told: History, store: Store, at: int, on: int) -> Iterator[str]:
    """Make the steps that come next, and say if one does not do what it did."""
    for step, state in zip(told.tape[at : at + on], told.states[at + 1 :], strict=False):
        play(step, store)
        if state_of(store) != state:
            yield f"the step {step[0].method} after it came to something else"
            return


# --- power cuts of SQLite -----------------------------------------------------------------------------------------------------


class Recorded(NamedTuple):
    """A history that was played into a store on a disk that notes everything.

    Attributes:
        told: The history.
        notes: What was done to the files.
        marks: How much of that had been done when the store was open, and when each step was acknowledged.
    """

    told: History
    notes: Notes
    marks: Sequence[int]

    def acknowledged(self, at: int) -> int:
        """Give how many steps were acknowledged when so much had been done."""
        return max(0, bisect_right(self.marks, at) - 1)


def recorded_on_disk(
    told: History, folder: Path, durability: Durability = Durability.FULL, *, handles: int = 1, carried: int = 0
) -> Recorded:
    """Play a history into a SQLite store, on a disk that notes what is done.

    Args:
        told: The history.
        folder: An empty folder.
        durability: The store's.
        handles: How many handles write in turn.
        carried: After so many steps the handles are closed and opened again, which carries the log over into the file; 0 for never.
    """
    marks: list[int] = []
    with sqlite_on(Disk()) as disk:
        stores = [SqliteStore(folder / _FILE, durability) for _ in range(handles)]
        marks.append(len(disk.notes))
        for number, step in enumerate(told.tape, 1):
            play(step, stores[number % handles])
            marks.append(len(disk.notes))
            if carried and number % carried == 0:
                for store in stores:
                    store.close()
                stores = [SqliteStore(folder / _FILE, durability) for _ in range(handles)]
        for store in stores:
            store.close()
    return Recorded(told, disk.notes, marks)


def reopened_on_disk(left: Mapping[str, bytes], folder: Path) -> Notes:
    """Open what a cut left, on a disk that notes what is done, write nothing, and close it; gives the notes, which begin with the files.

    Args:
        left: The files.
        folder: A folder that is not there yet.
    """
    put_back(left, folder)
    with sqlite_on(Disk()) as disk:
        for name, content in left.items():
            disk.notes.acts += [Note(Act.MADE, name), Note(Act.WROTE, name, 0, content), Note(Act.FLUSHED, name)]
        SqliteStore(folder / _FILE).close()
    return disk.notes


def power_cuts(  # noqa: PLR0913 - all but the first three by keyword
    recorded: Recorded,
    folder: Path,
    losses: Iterable[Loss] = (Loss.ALL, Loss.NONE, Loss.TORN),
    *,
    every: int = 1,
    seeds: Iterable[int] = (0,),
    flushed: bool = True,
    on: int = 1,
) -> Tally:
    """Cut the power at every point of a recorded history, open what is on the disk then, and judge it.

    Files that were judged already for the same number of acknowledged steps are not judged again.

    Args:
        recorded: The history and its notes.
        folder: Where the files are put, in folders of their own that are taken away again.
        losses: What becomes of what was not flushed.
        every: Cut at every so many points only.
        seeds: What `Loss.ANY` is drawn from, once for each.
        flushed: As for `judge`.
        on: As for `judge`.
    """
    tally, seen = Tally(), set[tuple[int, int]]()
    for at in list(recorded.notes.cuts())[::every]:
        acknowledged = recorded.acknowledged(at)
        for loss in losses:
            for seed in seeds if loss is Loss.ANY else (0,):
                left = recorded.notes.left(at, loss, seed)
                known = (acknowledged, hash(frozenset(left.items())))
                if known in seen:
                    continue
                seen.add(known)
                where = f"cut behind act {at}, {loss.value} of what was not flushed lost, seed {seed}"
                judged_files(
                    tally, recorded.told, left, folder / "cut", acknowledged, where=where, flushed=flushed, on=on
                )
    return tally


def judged_files(  # noqa: PLR0913 - all but the first five by keyword
    tally: Tally,
    told: History,
    left: Mapping[str, bytes],
    folder: Path,
    acknowledged: int,
    *,
    where: str,
    flushed: bool = True,
    on: int = 1,
) -> None:
    """Open what a cut left, and judge it; a store that cannot be opened has lost everything."""
    put_back(left, folder)
    try:
        with SqliteStore(folder / _FILE) as store:
            judge(tally, told, store, acknowledged, where=where, flushed=flushed, on=on)
    except PalaverError as error:
        tally.kills += 1
        tally.lost += 1
        tally.wrong(f"{where}: {type(error).__name__}: {error}")
    finally:
        rmtree(folder)


# --- a disk that fails ----------------------------------------------------------------------------------------------------------


def failing(told: History, folder: Path, failure: Failure, first: int, length: int = 1) -> tuple[Tally, int]:
    """Play a history while the disk fails, then cut the power, open what is left, and judge it.

    A step that the disk makes fail raises a `StoreError` and changes nothing; made again, it is there.

    Args:
        told: The history.
        folder: An empty folder.
        failure: How the disk fails.
        first: Which act of that kind is the first to fail, counted from 1.
        length: How many fail, one after the other.

    Returns:
        What was found, and how many acts failed: none when there are fewer acts than `first`.
    """
    tally, disk = Tally(), Disk()
    with sqlite_on(disk):
        disk.fail(failure, first, first + length - 1)
        store = _opened_at_last(folder / _FILE, length)
        for number, step in enumerate(told.tape):
            _made_at_last(tally, told, store, number, step, length)
        left = disk.notes.left(len(disk.notes), Loss.ALL)
        close_on(store)
    where = f"{failure.value} from act {first}"
    judged_files(tally, told, left, folder / "after", len(told.tape), where=where)
    with SqliteStore(folder / _FILE) as again:
        judge(tally, told, again, len(told.tape), where=f"{where}, closed")
    tally.kills -= 1  # both looked at the same failure
    return tally, disk.failed


def _opened_at_last(path: Path, length: int) -> SqliteStore:
    """Open a store on a disk that fails a number of times."""
    for _ in range(length):
        try:
            return SqliteStore(path)
        except StoreError:
            continue
    return SqliteStore(path)


def _made_at_last(tally: Tally, told: History, store: Store, number: int, step: Step, length: int) -> None:
    """Make a step that may fail a number of times, and hold each failure to having changed nothing."""
    for _ in range(length):
        try:
            play(step, store)
        except StoreError:
            if not _unchanged(store, told.states[number]):
                tally.invented += 1
                tally.wrong(f"step {number}, {step[0].method}: it raised, and changed something")
        else:
            return
    play(step, store)


def _unchanged(store: Store, state: str) -> bool:
    """Tell whether a store says what it said; one whose disk cannot be read either says nothing."""
    try:
        return state_of(store) == state
    except StoreError:
        return True


def unreadable(told: History, folder: Path, first: int, length: int = 1) -> tuple[Tally, int]:
    """Play a history, and open and read it again while the disk cannot be read: it says so, or gives all there is, never less.

    Args:
        told: The history.
        folder: An empty folder.
        first: Which reading of the disk is the first to fail, counted from 1.
        length: How many fail.

    Returns:
        What was found, and how many readings failed: none when there are fewer than `first`.
    """
    tally, disk = Tally(), Disk()
    with SqliteStore(folder / _FILE, Durability.NORMAL) as store:
        for step in told.tape:
            play(step, store)
    with sqlite_on(disk):
        disk.fail(Failure.READ, first, first + length - 1)
        for _ in range(length + 1):
            try:
                with SqliteStore(folder / _FILE) as again:
                    judge(tally, told, again, len(told.tape), where=f"read {first}")
            except StoreError:
                continue
    return tally, disk.failed
