"""SIGKILL at every durable step, every write of the file, and any instant, of processes that write one of everything."""

import os
import signal
from collections.abc import Iterator
from contextlib import closing, nullcontext, suppress
from multiprocessing import get_context
from pathlib import Path
from random import Random
from shutil import rmtree
from threading import Event

import pytest

from palaver.errors import StoreBusy, StoreError
from palaver.ids import DialogId
from palaver.store import Store, open_store
from palaver.testing.store_laws import begin
from palaver.testing.store_laws.backend import forked, words
from tests.damage.history import History
from tests.damage.sqlite_disk import Disk, sqlite_on
from tests.damage.sweeps import Judge, Tally
from tests.postgres import Server
from tests.postgres_wheel import wheel_server
from tests.store.postgres_backend import connected

FORK = get_context("fork")


def die() -> None:
    """End this process as nobody can prevent."""
    os.kill(os.getpid(), signal.SIGKILL)


def play(known: History, url: str, told: Path, start: int = 0, steps: int = 0, acts: int = 0) -> bool:
    """Play a history in a process that dies, and return whether it did; each step that is durable is a byte in a file.

    Args:
        known: The history.
        url: The address of the store.
        told: The file of acknowledgements: what the kernel has taken survives SIGKILL.
        start: How many steps are made already.
        steps: It dies after so many steps more, before the last is acknowledged; 0 to continue to the end.
        acts: It dies after so many writes and flushes of its SQLite file; 0 for never.
    """

    def work() -> None:
        disk = Disk()
        disk.watch = lambda: die() if acts and len(disk.notes) >= acts else None
        failing = sqlite_on(disk) if acts else nullcontext()
        with failing, told.open("ab", buffering=0) as file, closing(open_store(url)) as store:
            for number, step in enumerate(known.steps[start:], start + 1):
                step(store)
                if steps and number == start + steps:
                    die()
                file.write(b"!")

    status = forked(work)
    assert status in {0, signal.SIGKILL}
    return status != 0


def write_for_ever(url: str, told: Path, place: DialogId) -> None:
    """Append numbered entries until somebody kills this process, or its server."""
    with closing(open_store(url)) as store, told.open("ab", buffering=0) as file, suppress(StoreError):
        while True:
            with suppress(StoreBusy):  # another writer was faster each time: nothing was written
                last = store.last(place)
                store.append(place, [words(b"%d " % (last.seq + 1) * 300)], last.turn_head)
                file.write(b"!")


def acknowledged(told: Path) -> int:
    """Return how many steps, or entries, were acknowledged."""
    return told.stat().st_size if told.exists() else 0


def settled(url: str) -> None:
    """Wait until the server has ended what its dead clients had begun."""
    if "://" not in url:
        return
    with connected(url) as connection:
        for _ in range(1000):
            left = connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'palaver' AND state <> 'idle'"
            ).fetchone()
            if left == (0,):
                break
            Event().wait(0.005)
    connection.close()


def judged(judge: Judge, url: str, steps: int, where: str) -> None:
    """Judge what a process left that died when so many steps were acknowledged."""
    settled(url)
    with closing(open_store(url)) as store:
        judge.store(store, steps, where)


@pytest.mark.parametrize("stride", [13, pytest.param(1, marks=[pytest.mark.soak, pytest.mark.timeout(3600)])])
def test_law_4_kill_after_a_step(known: History, url: str, tmp_path: Path, stride: int) -> None:
    """Killed when a step is durable and before it is noted anywhere: it is there; the next process continues, to the end."""
    judge, made = Judge(known, on=0), 0
    while made < len(known.steps):
        steps = min(stride, len(known.steps) - made)
        assert play(known, url, tmp_path / "told", start=made, steps=steps)
        made += steps
        judged(judge, url, made, f"killed after step {made}")
    judge.tally.sound("killed after a step")


@pytest.mark.parametrize("stride", [71, pytest.param(1, marks=[pytest.mark.soak, pytest.mark.timeout(3600)])])
def test_law_4_kill_at_a_write_of_the_file(known: History, quick_path: Path, stride: int) -> None:
    """Killed after any write or flush of the file, opening it included."""
    judge, acts, died = Judge(known, on=0), 1, True
    while died:
        folder = quick_path / str(acts)
        folder.mkdir()
        told, url = folder / "told", str(folder / "store.db")
        died = play(known, url, told, acts=acts)
        judged(judge, url, acknowledged(told), f"killed after act {acts}")
        rmtree(folder)
        acts += stride
    judge.tally.sound("killed at a write of the file")


@pytest.mark.parametrize("rounds", [1, pytest.param(200, marks=[pytest.mark.soak, pytest.mark.timeout(3600)])])
def test_law_4_kill_at_any_instant(url: str, tmp_path: Path, rounds: int) -> None:
    """Killed at any instant, several at once: every acknowledged entry is there, and at most the one under way of each."""
    draw, tally, writing = Random(rounds), Tally(), 2  # noqa: S311 - instants, no secrets
    with closing(open_store(url)) as store:
        for number in range(rounds):
            dialogs = [begin(store).dialog for _ in range(writing)]
            folder = tmp_path / f"round-{number}"
            folder.mkdir()
            writers = [FORK.Process(target=write_for_ever, args=(url, folder / one, one)) for one in dialogs]
            for writer in writers:
                writer.start()
            while not all(acknowledged(folder / dialog) for dialog in dialogs):
                assert all(writer.is_alive() for writer in writers)
                Event().wait(0.01)
            Event().wait(draw.random() * 0.3)
            for writer in writers:
                writer.kill()
                writer.join()
            settled(url)
            for dialog in dialogs:
                _count(tally, store, dialog, acknowledged(folder / dialog), f"kill {number}")
    tally.sound(f"{writing} processes killed at once")


def _count(tally: Tally, store: Store, dialog: DialogId, known: int, where: str) -> None:
    """Hold a dialog of numbered entries to the number that was acknowledged."""
    there = store.last(dialog).seq + 1
    tally.kills += 1
    numbered = all(set(body.split()) == {b"%d" % seq} for seq, body in store.bodies(dialog))
    if there < known:
        tally.lost.append(f"{where}: {known} was acknowledged, {there} found")
    if there > known + 1 or store.verify(dialog) != () or not numbered:
        tally.invented.append(f"{where}: {known} was acknowledged, {there} found")


@pytest.fixture(scope="module")
def mortal() -> Iterator[Server]:
    """Return a server of these tests' own, which they may kill."""
    with wheel_server() as running:
        yield running


@pytest.mark.parametrize("rounds", [1, pytest.param(40, marks=[pytest.mark.soak, pytest.mark.timeout(3600)])])
def test_law_4_kill_of_the_postmaster(mortal: Server, tmp_path: Path, rounds: int) -> None:
    """SIGKILL of the server while an entry is written: after recovery what was acknowledged is there, and the client continues."""
    url, tally = mortal.url(), Tally()
    for number in range(rounds):
        told = tmp_path / f"told-{number}"
        with closing(open_store(url)) as store:
            dialog = begin(store).dialog
        writer = FORK.Process(target=write_for_ever, args=(url, told, dialog))
        writer.start()
        while acknowledged(told) < 5:
            Event().wait(0.01)
        mortal.kill()
        writer.join()  # its store raises, and it ends
        mortal.start()
        with closing(open_store(url)) as store:
            _count(tally, store, dialog, acknowledged(told), f"postmaster {number}")
    tally.sound("postmaster killed")
