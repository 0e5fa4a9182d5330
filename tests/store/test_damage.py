"""A disk that fails under SQLite: torn and lost writes at every point, a full disk, errors of reading, writing and flushing."""

import sys
from pathlib import Path

import pytest

from palaver.store import Durability, SqliteStore, verify_store
from tests.damage.disk import SECTOR, Act, Loss, Note, Notes
from tests.damage.history import History, history
from tests.damage.sqlite_disk import Failure
from tests.damage.sweeps import (
    Recorded,
    Tally,
    failing,
    judged_files,
    power_cuts,
    recorded_on_disk,
    reopened_on_disk,
    unreadable,
)

FAILURES = [Failure.WRITE, Failure.SHORT, Failure.FULL, Failure.FLUSH]


@pytest.fixture(scope="module")
def known() -> History:
    """Return a history with one of everything that writes."""
    return history()


@pytest.fixture(scope="module")
def recorded(known: History, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """Return the same, played into a file that is closed and opened again now and then."""
    return recorded_on_disk(known, tmp_path_factory.mktemp("recorded"), reopened=20)


def sound(tally: Tally, what: str) -> None:
    """Assert that nothing was lost and nothing invented, and say what was done."""
    sys.stdout.write(f"{what}: {tally}\n")
    assert (tally.lost, tally.invented) == (0, 0), "\n".join(tally.faults)
    assert tally.kills


# --- power cuts -----------------------------------------------------------------------------------------------------------------


def test_law_4_power_cut_loses_nothing_acknowledged(recorded: Recorded, tmp_path: Path) -> None:
    """After writes and flushes, with all, none or half of the last of what was not flushed: what was acknowledged is there."""
    sound(power_cuts(recorded, tmp_path, every=37), "power cuts at every 37th write or flush")


def test_law_4_power_cut_may_keep_any_sectors(recorded: Recorded, tmp_path: Path) -> None:
    """Of what was not flushed any sectors may be there, in any order, and garbage in others."""
    sound(power_cuts(recorded, tmp_path, [Loss.ANY], every=41), "power cuts that leave any sectors")


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("handles", "reopened"), [(1, 0), (1, 20), (2, 0), (3, 7)])
def test_law_4_power_cuts_everywhere(known: History, tmp_path: Path, handles: int, reopened: int) -> None:
    """Every point, every kind of loss, eight draws each; several handles; and the whole rest of the history is written after."""
    recorded = recorded_on_disk(known, tmp_path, handles=handles, reopened=reopened)
    sound(
        power_cuts(recorded, tmp_path, list(Loss), seeds=range(8)), f"{handles} handles, opened each {reopened} steps"
    )
    sound(power_cuts(recorded, tmp_path, every=5, on=len(known.steps)), "and written to the end")


def test_normal_durability_loses_only_the_newest(known: History, tmp_path: Path) -> None:
    """`normal` is flushed at checkpoints: after a power cut there is some earlier state, whole, and never more than was written."""
    recorded = recorded_on_disk(known, tmp_path, Durability.NORMAL, reopened=20)
    tally = power_cuts(recorded, tmp_path, [Loss.ALL, Loss.ANY], every=61, flushed=False)
    sound(tally, "power cuts with the durability `normal`")


def test_sweep_finds_what_is_lost_and_invented(known: History, recorded: Recorded, tmp_path: Path) -> None:
    """The sweep has teeth: without flushes it finds losses, and with false marks it finds steps that nobody could know of."""
    unflushed = recorded_on_disk(known, tmp_path, Durability.NORMAL)
    assert power_cuts(unflushed, tmp_path, [Loss.ALL], every=40).lost > 0
    late = recorded._replace(marks=[mark + 60 for mark in recorded.marks])
    assert power_cuts(late, tmp_path, [Loss.NONE], every=40).invented > 0


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_law_4_power_cut_during_recovery(known: History, tmp_path: Path) -> None:
    """What a cut left is opened on a disk whose power is cut again, at every point, and a third store is judged."""
    recorded = recorded_on_disk(known, tmp_path)
    tally = Tally()
    for at in list(recorded.notes.cuts())[::9]:
        for loss in (Loss.ALL, Loss.TORN, Loss.ANY):
            left = recorded.notes.left(at, loss)
            again = reopened_on_disk(left, tmp_path / f"{at}-{loss.value}")
            for second in again.cuts(3 * len(left)):  # the first three acts of each file only say that it is there
                files = again.left(second, Loss.TORN)
                judged_files(tally, known, files, tmp_path / "second", recorded.acknowledged(at), f"{at}, {second}")
    sound(tally, "power cuts in recoveries")


# --- a disk that fails ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("failure", FAILURES)
def test_failing_disk_changes_nothing(known: History, tmp_path: Path, failure: Failure) -> None:
    """A failed write or flush is a StoreError, nothing has changed, the same step works next, and a power cut after it all loses nothing."""
    for first, length in ((1, 1), (60, 1), (40, 6)):
        folder = tmp_path / str(first)
        folder.mkdir()
        act = first if failure is not Failure.FLUSH else first // 4 + 1
        tally, failed = failing(known, folder, failure, act, length)
        assert failed == length
        sound(tally, failure.value)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("length", [1, 5])
def test_disk_fails_at_any_act(known: History, tmp_path: Path, failure: Failure, length: int) -> None:
    """Every write and every flush fails once, or five in a row."""
    whole, first, failed = Tally(), 0, 1
    while failed:
        first += 1
        folder = tmp_path / str(first)
        folder.mkdir()
        tally, failed = failing(known, folder, failure, first, length)
        whole.add(tally)
    sound(whole, f"{failure.value}, {length} in a row")


def test_unreadable_disk_raises(known: History, tmp_path: Path) -> None:
    """A failed read is a StoreError; what is read all the same is everything, never less without a word."""
    for first in (1, 2, 9):
        folder = tmp_path / str(first)
        folder.mkdir()
        tally, failed = unreadable(known, folder, first)
        assert failed == 1
        sound(tally, "reads that fail")


# --- damaged files ----------------------------------------------------------------------------------------------------------------


def test_d20_file_cut_anywhere_raises_or_says_so(known: History, tmp_path: Path) -> None:
    """A file that was cut short, or in which a byte was flipped, gives an error or verifies with a fault; never less without a word."""
    whole = tmp_path / "whole.db"
    with SqliteStore(whole) as store:
        for step in known.steps:
            step(store)
        entries = sum(
            store.last(node.dialog_id).seq + 1 for one in store.sessions() for node in store.nodes(one.session_id)
        )
    content = whole.read_bytes()
    for at in range(4096, len(content), len(content) // 12):
        for damaged in (content[:at], content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :]):
            path = tmp_path / "damaged.db"
            path.write_bytes(damaged)
            assert _says_so(path, entries), at
            path.unlink()


def _says_so(path: Path, entries: int) -> bool:
    from palaver.errors import PalaverError  # noqa: PLC0415

    try:
        with SqliteStore(path) as store:
            run = verify_store(store)
            return bool(list(run)) or run.entries >= entries
    except PalaverError:
        return True


# --- the disk itself ----------------------------------------------------------------------------------------------------------------


def _notes(*acts: Note) -> Notes:
    notes = Notes()
    notes.acts.extend(acts)
    return notes


def test_disk_keeps_what_was_flushed() -> None:
    """A cut keeps what was flushed, and of the rest all, nothing, or half of the last write; a flush that failed is never made up for."""
    notes = _notes(
        Note(Act.MADE, "f"),
        Note(Act.WROTE, "f", 0, b"abcd"),
        Note(Act.FLUSHED, "f"),
        Note(Act.WROTE, "f", 2, b"XY"),
        Note(Act.WROTE, "f", 6, b"zz"),
    )
    kept = [notes.left(5, loss)["f"] for loss in (Loss.ALL, Loss.NONE, Loss.TORN)]
    assert kept == [b"abcd", b"abXY\0\0zz", b"abXY\0\0z"]
    assert notes.left(2, Loss.ALL) == {}
    acts = [
        Note(Act.WROTE, "f", 0, b"lost"),
        Note(Act.LOST, "f"),
        Note(Act.WROTE, "f", 4, b"kept"),
        Note(Act.FLUSHED, "f"),
    ]
    assert _notes(Note(Act.MADE, "f"), *acts).left(5, Loss.NONE) == {"f": b"\0\0\0\0kept"}


def test_disk_spoils_sectors_in_one_piece() -> None:
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
