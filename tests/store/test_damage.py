"""A disk that fails under SQLite: torn and lost writes at every point, a full disk, errors of reading, writing and flushing."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from palaver.store import Durability, SqliteStore
from palaver.testing.damage import (
    History,
    Recorded,
    Tally,
    failing,
    history,
    judged_files,
    power_cuts,
    recorded_on_disk,
    reopened_on_disk,
    unreadable,
)
from palaver.testing.disk import SECTOR, Act, Loss, Note, Notes
from palaver.testing.sqlite_disk import Failure
from palaver.testing.workload import history_of_everything


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> History:
    """Give a history with one of everything that writes."""
    return history(history_of_everything(tmp_path_factory.mktemp("foreign")))


@pytest.fixture(scope="module")
def recorded(told: History, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """Give the same, played into a file that is closed and opened again now and then."""
    return recorded_on_disk(told, tmp_path_factory.mktemp("recorded"), carried=20)


def sound(tally: Tally, what: str) -> None:
    """Assert that nothing was lost and nothing invented, and say what was done."""
    sys.stdout.write(f"{what}: {tally}\n")
    assert (tally.lost, tally.invented) == (0, 0), "\n".join(tally.faults)
    assert tally.kills


# --- power cuts -----------------------------------------------------------------------------------------------------------------


def test_law_4_a_power_cut_at_any_write_or_flush_loses_nothing(recorded: Recorded, tmp_path: Path) -> None:
    """Law 4: behind every write and flush, with all, none or half of the last of what was not flushed: what was acknowledged is there."""
    sound(power_cuts(recorded, tmp_path, every=17), "power cuts at every seventeenth write or flush")


def test_law_4_a_power_cut_may_keep_any_sectors(recorded: Recorded, tmp_path: Path) -> None:
    """Law 4: of what was not flushed any sectors may be there, in any order, and garbage in others."""
    sound(power_cuts(recorded, tmp_path, [Loss.ANY], every=23), "power cuts that leave any sectors")


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("handles", "carried"), [(1, 0), (1, 20), (2, 0), (3, 7)])
def test_law_4_power_cuts_everywhere(told: History, tmp_path: Path, handles: int, carried: int) -> None:
    """Law 4: every point, every kind of loss, eight draws each; several handles; and the whole rest of the history is written after."""
    recorded = recorded_on_disk(told, tmp_path, handles=handles, carried=carried)
    sound(power_cuts(recorded, tmp_path, list(Loss), seeds=range(8)), f"{handles} handles, closed each {carried} steps")
    sound(power_cuts(recorded, tmp_path, every=5, on=len(told.tape)), "and written to the end")


@pytest.mark.parametrize("loss", [Loss.ALL, Loss.ANY])
def test_normal_durability_loses_the_newest_and_nothing_else(told: History, tmp_path: Path, loss: Loss) -> None:
    """`normal` is flushed at checkpoints: after a power cut there is some earlier state, whole, and never more than was written."""
    recorded = recorded_on_disk(told, tmp_path, Durability.NORMAL, carried=20)
    tally = power_cuts(recorded, tmp_path, [loss], every=29, flushed=False)
    sound(tally, "power cuts with the durability `normal`")


def test_the_sweep_finds_what_is_lost(told: History, tmp_path: Path) -> None:
    """The sweep has teeth: where flushing is left out, as with `normal`, it finds that acknowledged entries are lost."""
    recorded = recorded_on_disk(told, tmp_path, Durability.NORMAL)
    tally = power_cuts(recorded, tmp_path, [Loss.ALL], every=40)
    assert tally.lost > 0
    assert len(tally.faults) == min(tally.lost + tally.invented, 10)


def test_the_sweep_finds_what_is_invented(recorded: Recorded, tmp_path: Path) -> None:
    """The sweep has teeth: a cut that is said to have been earlier than it was shows steps that nobody could know of."""
    late = recorded._replace(marks=[mark + 60 for mark in recorded.marks])
    assert power_cuts(late, tmp_path, [Loss.NONE], every=40).invented > 0


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_law_4_a_power_cut_in_the_recovery_from_a_power_cut(told: History, tmp_path: Path) -> None:
    """Law 4: what a cut left is opened on a disk whose power is cut again, at every point, and a third store is judged."""
    recorded = recorded_on_disk(told, tmp_path)
    tally = Tally()
    for at in list(recorded.notes.cuts())[::9]:
        for loss in (Loss.ALL, Loss.TORN, Loss.ANY):
            _cut_again(tally, recorded, at, loss, tmp_path / f"{at}-{loss.value}")
    sound(tally, "power cuts in recoveries")


def _cut_again(tally: Tally, recorded: Recorded, at: int, loss: Loss, folder: Path) -> None:
    """Open what a cut left on a disk that is cut again, at every point of that."""
    acknowledged = recorded.acknowledged(at)
    left = recorded.notes.left(at, loss)
    again = reopened_on_disk(left, folder)
    for second in again.cuts(3 * len(left)):  # the first three acts of each file only say that it is there
        for more in (Loss.ALL, Loss.TORN):
            judged_files(
                tally, recorded.told, again.left(second, more), folder / "second", acknowledged, where=f"{at}, {second}"
            )


# --- a disk that fails ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("failure", [Failure.WRITE, Failure.SHORT, Failure.FULL, Failure.FLUSH])
@pytest.mark.parametrize("first", [1, 30, 90, 150, 233])
def test_a_disk_that_fails_once_is_told_and_changes_nothing(
    told: History, tmp_path: Path, failure: Failure, first: int
) -> None:
    """A failed write or flush is a StoreError, nothing has changed, the same step works next, and a power cut behind it all loses nothing."""
    tally, failed = failing(told, tmp_path, failure, first if failure is not Failure.FLUSH else first // 4 + 1)
    assert failed == 1
    sound(tally, failure.value)


@pytest.mark.parametrize("failure", [Failure.WRITE, Failure.SHORT, Failure.FULL, Failure.FLUSH])
def test_a_disk_that_fails_for_a_while_is_told(told: History, tmp_path: Path, failure: Failure) -> None:
    """Several failures in a row, as of a disk that is full until somebody makes room: the same."""
    tally, failed = failing(told, tmp_path, failure, 40, length=6)
    assert failed == 6
    sound(tally, failure.value)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("failure", [Failure.WRITE, Failure.SHORT, Failure.FULL, Failure.FLUSH])
@pytest.mark.parametrize("length", [1, 5])
def test_a_disk_that_fails_at_any_act(told: History, tmp_path: Path, failure: Failure, length: int) -> None:
    """Every write and every flush fails once, or five in a row."""
    whole, first = Tally(), 0
    while True:
        first += 1
        folder = tmp_path / str(first)
        folder.mkdir()
        tally, failed = failing(told, folder, failure, first, length)
        if not failed:
            break
        whole.add(tally)
    sound(whole, f"{failure.value}, {length} in a row")


@pytest.mark.parametrize("first", [1, 2, 4, 9, 17])
def test_a_disk_that_cannot_be_read_is_told(told: History, tmp_path: Path, first: int) -> None:
    """A failed read is a StoreError; what is read all the same is everything, never less without a word."""
    tally, failed = unreadable(told, tmp_path, first)
    assert failed == 1
    sound(tally, "reads that fail")


@pytest.mark.skipif(sys.platform != "linux", reason="which folder a descriptor stands for is asked of /proc")
def test_folders_that_were_made_survive_a_power_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store in new folders is reached after a power cut: the names of all of them are flushed (that of the file SQLite flushes itself)."""
    flushed: list[Path] = []
    flush = os.fsync

    def noted(descriptor: int) -> None:
        flushed.append(Path(f"/proc/self/fd/{descriptor}").readlink())
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    SqliteStore(tmp_path / "a" / "b" / "c" / "store.db").close()
    assert flushed == [tmp_path, tmp_path / "a", tmp_path / "a" / "b"]


# --- the disk itself ----------------------------------------------------------------------------------------------------------------


def _notes(*acts: Note) -> Notes:
    notes = Notes()
    notes.acts.extend(acts)
    return notes


def test_what_was_flushed_is_there_and_the_rest_is_lost_as_asked() -> None:
    """A cut keeps what was flushed, and of the rest all, nothing, or half of the last write."""
    notes = _notes(
        Note(Act.MADE, "f"),
        Note(Act.WROTE, "f", 0, b"abcd"),
        Note(Act.FLUSHED, "f"),
        Note(Act.WROTE, "f", 2, b"XY"),
        Note(Act.WROTE, "f", 6, b"zz"),
    )
    assert [notes.left(5, loss)["f"] for loss in (Loss.ALL, Loss.NONE, Loss.TORN)] == [
        b"abcd",
        b"abXY\0\0zz",
        b"abXY\0\0z",
    ]
    assert notes.left(3, Loss.ALL) == notes.left(3, Loss.NONE) == {"f": b"abcd"}
    assert notes.left(2, Loss.ALL) == {}


def test_any_loss_keeps_bytes_beside_those_that_were_written() -> None:
    """Sectors may be kept, lost or spoilt, each in one piece; what was not written stays as it was. The same seed gives the same files."""
    before = bytes(range(256)) * 12
    notes = _notes(Note(Act.WROTE, "f", 0, before), Note(Act.FLUSHED, "f"), Note(Act.WROTE, "f", 700, b"\xee" * 1500))
    notes.acts.insert(0, Note(Act.MADE, "f"))
    found = {notes.left(4, Loss.ANY, seed)["f"] for seed in range(60)}
    assert len(found) > 20
    assert found == {notes.left(4, Loss.ANY, seed)["f"] for seed in range(60)}
    for content in found:
        assert (content[:700], content[2200:]) == (before[:700], before[2200:])
        for start in range(SECTOR, 2560, SECTOR):
            piece = slice(max(start, 700), min(start + SECTOR, 2200))
            whole = content[piece] in (before[piece], b"\xee" * (piece.stop - piece.start))
            assert whole or len(set(content[piece])) > 2


def test_a_flush_that_failed_is_never_made_up_for() -> None:
    """What was to be flushed is gone from the disk, and the next flush, which succeeds, does not bring it."""
    notes = _notes(
        Note(Act.MADE, "f"),
        Note(Act.WROTE, "f", 0, b"lost"),
        Note(Act.LOST, "f"),
        Note(Act.WROTE, "f", 4, b"kept"),
        Note(Act.FLUSHED, "f"),
    )
    assert notes.left(5, Loss.NONE) == {"f": b"\0\0\0\0kept"}


def test_a_deleted_file_is_gone_and_a_cut_one_is_short() -> None:
    """Deleting and cutting are acts like writing."""
    notes = _notes(Note(Act.MADE, "f"), Note(Act.WROTE, "f", 0, b"abcd"), Note(Act.CUT, "f", 2), Note(Act.DELETED, "f"))
    assert notes.left(3, Loss.NONE) == {"f": b"ab"}
    assert notes.left(4, Loss.NONE) == {}
