"""SIGKILL at every durable step, every write of the file, and any instant, of processes that write one of everything."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from threading import Event, Thread

import pytest

from palaver.ids import DialogId
from palaver.store import Store, open_store
from palaver.testing.store_laws import begin
from tests.damage.history import History
from tests.damage.sweeps import Judge, Tally
from tests.forking import forking
from tests.postgres import Server
from tests.postgres_wheel import wheel_server
from tests.store.postgres_backend import connected

Deed = Callable[..., int]
_KILLED = -signal.SIGKILL


@pytest.fixture(scope="module")
def deed() -> Iterator[Deed]:
    """Return what has a process play it."""
    with forking("tests.damage.playing") as made:
        yield made


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


def judged(judge: Judge, url: str, told: Path, where: str) -> int:
    """Judge what a dead process left, and return how many steps there are; what was under way counts as acknowledged from now on."""
    settled(url)
    with closing(open_store(url)) as store:
        found = judge.store(store, acknowledged(told), where)
    told.write_bytes(b"!" * found)
    return found


@pytest.mark.parametrize("stride", [13, pytest.param(1, marks=[pytest.mark.soak, pytest.mark.timeout(3600)])])
def test_law_4_kill_after_a_step(known: History, deed: Deed, url: str, tmp_path: Path, stride: int) -> None:
    """Killed when a step is durable and before it is acknowledged; the next process continues, to the end."""
    judge, told, made = Judge(known, on=0), tmp_path / "told", 0
    while made < len(known.steps):
        steps = min(stride, len(known.steps) - made)
        assert deed("play", url=url, told=str(told), start=made, steps=steps) == _KILLED
        made = judged(judge, url, told, f"killed after step {made + steps}")
    judge.tally.sound("killed after a step")


@pytest.mark.parametrize("stride", [71, pytest.param(1, marks=[pytest.mark.soak, pytest.mark.timeout(3600)])])
def test_law_4_kill_at_a_write_of_the_file(known: History, deed: Deed, tmp_path: Path, stride: int) -> None:
    """Killed after any write or flush of the file, opening it included."""
    judge, acts, code = Judge(known, on=0), 1, _KILLED
    while code == _KILLED:
        folder = tmp_path / str(acts)
        folder.mkdir()
        told, url = folder / "told", str(folder / "store.db")
        code = deed("play", url=url, told=str(told), acts=acts)
        judged(judge, url, told, f"killed after act {acts}")
        acts += stride
    judge.tally.sound("killed at a write of the file")


@pytest.mark.parametrize("rounds", [1, pytest.param(200, marks=[pytest.mark.soak, pytest.mark.timeout(3600)])])
def test_law_4_kill_at_any_instant(url: str, tmp_path: Path, rounds: int) -> None:
    """Killed at any instant, several at once: every acknowledged entry is there, and at most the one under way of each."""
    draw, tally, writing = Random(rounds), Tally(), 2  # noqa: S311 - instants, no secrets
    with closing(open_store(url)) as store:
        dialogs = [begin(store).dialog for _ in range(writing)]
        for number in range(rounds):
            before = [store.last(dialog).seq + 1 for dialog in dialogs]
            folder = tmp_path / f"round-{number}"
            folder.mkdir()
            threads = [writing_for_ever(url, folder / dialog, dialog) for dialog in dialogs]
            while not all(acknowledged(folder / dialog) for dialog in dialogs):
                Event().wait(0.01)
            Event().wait(draw.random() * 0.3)
            for dialog, thread in zip(dialogs, threads, strict=True):
                os.kill(int((folder / f"{dialog}.pid").read_text()), signal.SIGKILL)
                thread.join()
            settled(url)
            for dialog, start in zip(dialogs, before, strict=True):
                _count(tally, store, dialog, start + acknowledged(folder / dialog), f"kill {number}")
    tally.sound(f"{writing} processes killed at once")


def writing_for_ever(url: str, told: Path, dialog: DialogId) -> Thread:
    """Have a process write, until somebody kills it or its server."""

    def work() -> None:
        with forking("tests.damage.playing") as deed:
            deed("write_for_ever", url=url, told=str(told), dialog=dialog)

    thread = Thread(target=work)
    thread.start()
    return thread


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
    with closing(open_store(url)) as store:
        dialog = begin(store).dialog
    for number in range(rounds):
        told = tmp_path / f"told-{number}"
        with closing(open_store(url)) as store:
            before = store.last(dialog).seq + 1

        thread = writing_for_ever(url, told, dialog)
        while acknowledged(told) < 5:
            Event().wait(0.01)
        mortal.kill()
        thread.join()  # its store raises, and it ends
        mortal.start()
        with closing(open_store(url)) as store:
            _count(tally, store, dialog, before + acknowledged(told), f"postmaster {number}")
    tally.sound("postmaster killed")
