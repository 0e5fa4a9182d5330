"""Kill sweeps: SIGKILL at every durable step, every write of the file, and any instant, of processes that write one of everything; both stores."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from itertools import count, pairwise
from pathlib import Path
from random import Random
from threading import Event

import pytest

from palaver.ids import DialogId
from palaver.store import Store, open_store
from palaver.testing.children import Children, Death, Life, children
from palaver.testing.damage import History, Tally, history, judge
from palaver.testing.store_laws import begin
from palaver.testing.workload import history_of_everything
from tests import postgres
from tests.postgres_wheel import wheel_server
from tests.store.postgres_backend import connected


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> History:
    """Give a history with one of everything that writes."""
    return history(history_of_everything(tmp_path_factory.mktemp("foreign")))


@pytest.fixture(scope="module")
def nursery(told: History, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Children]:
    """Give a process that forks children which play it."""
    with children(told.tape, tmp_path_factory.mktemp("tape")) as forking:
        yield forking


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], str]:
    """Give what gives the addresses of empty stores of each kind that outlives its writer."""
    if request.param == "sqlite":
        numbers = count()
        return lambda: str(tmp_path / f"store-{next(numbers)}.db")
    server: postgres.Server = request.getfixturevalue("postgres_server")
    return server.url


@pytest.fixture
def url(place: Callable[[], str]) -> str:
    """Give one of them."""
    return place()


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


def looked_at(tally: Tally, told: History, url: str, death: Death, where: str) -> int:
    """Judge what a dead child left, and give how many steps there are."""
    settled(url)
    with closing(open_store(url)) as store:
        return judge(tally, told, store, death.acknowledged, where=where, on=0)


def sound(tally: Tally, what: str) -> None:
    """Assert that nothing was lost and nothing invented, and say what was done."""
    sys.stdout.write(f"{what}: {tally}\n")
    assert (tally.lost, tally.invented) == (0, 0), "\n".join(tally.faults)
    assert tally.kills


def chain(nursery: Children, told: History, url: str, life: Callable[[int, int], Life]) -> Tally:
    """Kill one child after the other on the same store, each going on where the one before was killed, until the history is told.

    `life` gives the next child's, from the number of steps that are made and how often in a row none was added.
    """
    tally, made, idle = Tally(), 0, 0
    while made < len(told.tape):
        death = nursery.live(life(made, idle))
        found = looked_at(tally, told, url, death, f"child {tally.kills} from step {made}")
        idle = 0 if found > made else idle + 1
        assert found >= made
        made = found
        if not death.killed:
            break
    assert made == len(told.tape)
    return tally


@pytest.mark.parametrize("stride", [12, pytest.param(1, marks=pytest.mark.soak)])
def test_law_4_killed_behind_a_durable_step(nursery: Children, told: History, url: str, stride: int) -> None:
    """Law 4: killed behind each step, before anybody was told of it: it is there, whole, and the next process goes on."""
    tally = chain(nursery, told, url, lambda made, idle: Life(url=url, start=made, steps=stride + idle))
    sound(tally, f"killed behind every {stride}. step")
    # A step that only scrubs the storage leaves no trace: its child dies twice where another such step follows.
    unseen = sum(before == after for before, after in pairwise(told.states))
    assert tally.in_flight >= tally.kills - 1 - 2 * unseen


@pytest.mark.parametrize("stride", [17, pytest.param(1, marks=pytest.mark.soak)])
def test_law_4_killed_behind_a_write_of_the_file(nursery: Children, told: History, tmp_path: Path, stride: int) -> None:
    """Law 4: killed behind each write and flush of the file, those of opening, recovering and closing it included."""
    url = str(tmp_path / "store.db")
    open_store(url).close()
    tally = chain(
        nursery, told, url, lambda made, idle: Life(url=url, start=made, acts=1 + made % stride + idle * stride)
    )
    sound(tally, f"killed behind every {stride}. write or flush")


def _seconds(draw: Random, longest: float) -> float:
    """Draw an instant; short ones are as likely as long ones of another order of magnitude."""
    return float(longest ** draw.uniform(1.0, 3.0))


@pytest.mark.parametrize("stories", [1, pytest.param(10, marks=[pytest.mark.soak, pytest.mark.timeout(3600)])])
def test_law_4_killed_at_any_instant(nursery: Children, told: History, place: Callable[[], str], stories: int) -> None:
    """Law 4: killed from outside at instants drawn at random; the next process goes on where that one was."""
    draw, tally = Random(stories), Tally()  # noqa: S311 - no secret
    for _ in range(stories):
        url, made = place(), 0
        open_store(url).close()
        while made < len(told.tape):
            nursery.begin(Life(url=url, start=made))
            if draw.random() < 0.8:  # else it may die before it has opened the store
                nursery.told(1)
            Event().wait(_seconds(draw, 0.06 if stories == 1 else 0.02))
            nursery.kill()
            made = looked_at(tally, told, url, nursery.end(), f"kill {tally.kills} from step {made}")
    sound(tally, "killed at random instants")


@pytest.mark.parametrize(
    ("writing", "kills"), [(2, 3), pytest.param(6, 100, marks=[pytest.mark.soak, pytest.mark.timeout(3600)])]
)
def test_law_4_killed_at_any_instant_under_load(
    told: History, url: str, tmp_path: Path, writing: int, kills: int
) -> None:
    """Law 4: several processes write at once, each into a dialog of its own, and all are killed at an instant, again and again."""
    draw, tally = Random(kills), Tally()  # noqa: S311 - no secret
    with closing(open_store(url)) as store, ExitStack() as stack:
        begun = begin(store)
        dialogs = [begun.dialog, *(begun.fork() for _ in range(writing - 1))]
        writers = [stack.enter_context(children(told.tape, tmp_path)) for _ in dialogs]
        for number in range(kills):
            before = [store.last(dialog).seq for dialog in dialogs]
            for writer, dialog, seq in zip(writers, dialogs, before, strict=True):
                writer.begin(Life(url=url, dialog=dialog, start=seq))
            for writer in writers:
                writer.told(1)
            Event().wait(_seconds(draw, 0.4))
            for writer in writers:
                writer.kill()
            deaths = [writer.end() for writer in writers]
            settled(url)
            for dialog, death in zip(dialogs, deaths, strict=True):
                count_entries(tally, store, dialog, death.acknowledged, f"kill {number}")
    sound(tally, f"{writing} processes killed at once")


def count_entries(tally: Tally, store: Store, dialog: DialogId, acknowledged: int, where: str) -> None:
    """Hold a dialog of numbered entries to the last number that its writer was told."""
    last = store.last(dialog).seq
    tally.kills += 1
    tally.acknowledged += acknowledged + 1
    tally.found += last + 1
    tally.in_flight += last == acknowledged + 1
    tally.lost += last < acknowledged
    tally.invented += last > acknowledged + 1 or store.verify(dialog) != ()
    for seq, body in store.bodies(dialog):
        if set(body.split()) != {b"%d" % seq}:
            tally.invented += 1
            tally.wrong(f"{where}: entry {seq} is not what was written")
    if last not in {acknowledged, acknowledged + 1}:
        tally.wrong(f"{where}: {acknowledged} was acknowledged, {last} found")


# --- the server dies --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stride", [20, pytest.param(1, marks=[pytest.mark.soak, pytest.mark.timeout(3600)])])
def test_law_4_the_postmaster_is_killed_at_a_step(
    nursery: Children, told: History, mortal: postgres.Server, stride: int
) -> None:
    """Law 4: SIGKILL of the postmaster while a step is made, and of its client; after recovery what was acknowledged is there."""
    url, tally, made = mortal.url(), Tally(), 0
    open_store(url).close()
    while made < len(told.tape):
        nursery.begin(Life(url=url, start=made))
        nursery.told(min(stride, len(told.tape) - made))
        mortal.kill()
        nursery.kill()
        death = nursery.end()  # killed, or told that the server is away
        mortal.start()
        made = looked_at(tally, told, url, death, f"postmaster killed behind step {death.acknowledged}")
    sound(tally, "postmaster killed")


@pytest.fixture(scope="module")
def mortal() -> Iterator[postgres.Server]:
    """Give a server of these tests' own, which they may kill."""
    with wheel_server() as running:
        yield running


# --- the sweep itself -----------------------------------------------------------------------------------------------------------


def test_the_sweep_finds_what_is_lost_and_what_is_invented(told: History, nursery: Children, tmp_path: Path) -> None:
    """The sweep has teeth: a store that has fewer steps than were acknowledged has lost some, one that has more has invented some."""
    url, tally = str(tmp_path / "store.db"), Tally()
    death = nursery.live(Life(url=url, steps=10))
    assert (death.killed, death.acknowledged) == (True, 9)
    with closing(open_store(url)) as store:
        judge(tally, told, store, 11)
        judge(tally, told, store, 8)
        assert (tally.kills, tally.lost, tally.invented) == (2, 1, 1)
        begin(store)
        judge(tally, told, store, 10)
    assert (tally.lost, tally.invented) == (1, 2)
    assert len(tally.faults) == 3


def test_a_child_that_fails_is_no_kill(nursery: Children, tmp_path: Path) -> None:
    """A child that ends with an error of its own is an error of the sweep, which would otherwise count it as a death."""
    with pytest.raises(AssertionError, match="the child failed"):
        nursery.live(Life(url=str(tmp_path / "store.db"), start=5))  # it begins behind what it builds upon
