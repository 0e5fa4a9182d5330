"""A disk that fails under SQLite: torn and lost writes at every point, a full disk, errors of reading, writing and flushing."""

from itertools import count
from pathlib import Path

import pytest

from palaver.errors import PalaverError
from palaver.store import Durability, SqliteStore, verify_store
from tests.damage.disk import Loss
from tests.damage.history import History
from tests.damage.sqlite_disk import Failure
from tests.damage.sweeps import Judge, Recorded, failing, power_cuts, recorded_on_disk, recovered_on_disk, unreadable

FAILURES = [Failure.WRITE, Failure.SHORT, Failure.FULL, Failure.FLUSH]


@pytest.fixture
def recorded(known: History, quick_path: Path) -> Recorded:
    """Return a history with one of everything that writes, played into a file that is closed and opened again now and then."""
    (folder := quick_path / "recorded").mkdir()
    return recorded_on_disk(known, folder, reopened=20)


# --- power cuts -----------------------------------------------------------------------------------------------------------------


def test_law_4_power_cut_loses_nothing_acknowledged(known: History, recorded: Recorded, quick_path: Path) -> None:
    """With all, none, half of the last, or any sectors of what was not flushed: what was acknowledged is there."""
    power_cuts(Judge(known), recorded, quick_path, every=37).sound("power cuts at every 37th write or flush")
    power_cuts(Judge(known), recorded, quick_path, [Loss.ANY], every=41).sound("power cuts that leave any sectors")


@pytest.mark.parametrize("every", [197, pytest.param(9, marks=[pytest.mark.soak, pytest.mark.timeout(3600)])])
def test_law_4_power_cut_in_a_recovery(known: History, recorded: Recorded, quick_path: Path, every: int) -> None:
    """The power is cut again while the log or journal that the first cut left is recovered."""
    judge = Judge(known)
    for at in list(recorded.notes.cuts())[::every]:
        for loss in (Loss.ALL, Loss.TORN, Loss.ANY):
            left = recorded.notes.left(at, loss)
            again = recovered_on_disk(left, recorded.acknowledged(at), quick_path / "first")
            files = 3 * len(left)  # so many acts only say that the files are there
            power_cuts(judge, again, quick_path, (Loss.ALL, Loss.TORN), first=files, every=max(1, every // 13))
    judge.tally.sound("power cuts in recoveries")


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("handles", "reopened"), [(1, 0), (1, 20), (2, 0), (3, 7)])
def test_law_4_power_cuts_everywhere(known: History, quick_path: Path, handles: int, reopened: int) -> None:
    """Every point, every kind of loss, eight draws each; several handles; and the whole rest of the history is written after."""
    recorded = recorded_on_disk(known, quick_path, handles=handles, reopened=reopened)
    what = f"{handles} handles, opened each {reopened} steps"
    power_cuts(Judge(known), recorded, quick_path, list(Loss), seeds=range(8)).sound(what)
    power_cuts(Judge(known, on=len(known.steps)), recorded, quick_path, every=5).sound("and written to the end")


def test_normal_durability_loses_only_the_newest(known: History, quick_path: Path) -> None:
    """`normal` is flushed at checkpoints: after a power cut there is some earlier state, whole, and never more than was written."""
    recorded = recorded_on_disk(known, quick_path, Durability.NORMAL, reopened=20)
    tally = power_cuts(Judge(known, flushed=False), recorded, quick_path, [Loss.ALL, Loss.ANY], every=61)
    tally.sound("power cuts with the durability `normal`")


def test_sweep_finds_what_is_lost_and_invented(known: History, recorded: Recorded, quick_path: Path) -> None:
    """The sweep has teeth: without flushes it finds losses, and with false marks it finds steps that nobody could know of."""
    unflushed = recorded_on_disk(known, quick_path, Durability.NORMAL)
    assert power_cuts(Judge(known), unflushed, quick_path, [Loss.ALL], every=40).lost
    late = recorded._replace(marks=[mark + 60 for mark in recorded.marks])
    assert power_cuts(Judge(known), late, quick_path, [Loss.NONE], every=40).invented


# --- a disk that fails ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("failure", FAILURES)
def test_failing_disk_changes_nothing(known: History, quick_path: Path, failure: Failure) -> None:
    """A failed write or flush is a StoreError, nothing has changed, the same step works next, and a power cut after it all loses nothing."""
    judge = Judge(known)
    for first, length in ((1, 1), (60, 1), (40, 6)):
        act = first if failure is not Failure.FLUSH else first // 4 + 1
        assert failing(judge, quick_path / "disk", failure, act, length) == length
    judge.tally.sound(failure.value)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("length", [1, 5])
def test_disk_fails_at_any_act(known: History, quick_path: Path, failure: Failure, length: int) -> None:
    """Every write and every flush fails once, or five in a row."""
    judge, acts = Judge(known), count(1)
    while failing(judge, quick_path / "disk", failure, next(acts), length):
        pass
    judge.tally.sound(f"{failure.value}, {length} in a row")


def test_unreadable_disk_raises(known: History, quick_path: Path) -> None:
    """A failed read is a StoreError; what is read all the same is everything, never less without a word."""
    judge = Judge(known)
    assert [unreadable(judge, quick_path / "disk", first) for first in (1, 2, 9)] == [1, 1, 1]
    judge.tally.sound("reads that fail")


# --- damaged files ----------------------------------------------------------------------------------------------------------------


def test_file_cut_anywhere_raises_or_says_so(known: History, quick_path: Path) -> None:
    """D20: a file that was cut short, or in which a byte or a page changed, gives an error or verifies with a fault; never less without a word."""
    path = quick_path / "damaged.db"
    with SqliteStore(path) as store:
        for step in known.steps:
            step(store)
        run = verify_store(store)
        entries = (list(run), run.entries)[1]
    content = path.read_bytes()
    for at in (20, *range(4096, len(content), 4096)):
        for damaged in (
            content[:at],
            content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :],
            content[:at] + b"\xa5" * 4096 + content[at + 4096 :],
        ):
            path.write_bytes(damaged)
            try:
                with SqliteStore(path) as store:
                    run = verify_store(store)
                    assert list(run) or run.entries >= entries, at
            except PalaverError:
                pass  # it says so
            path.unlink()
