"""Leases: one holder at a time, a larger token for each, taken over after an end, over every store."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palaver.errors import InvalidInput, LeaseHeld, StoreClosed
from palaver.ids import new_session_id
from palaver.store import MemoryStore
from palaver.store.lease import Lease, Leasing, acquire, guard, release, renew
from palaver.testing.store_laws import Backend
from palaver.testing.store_laws.backend import Begun, begin, words
from tests import postgres
from tests.store.backends import MemoryBackend, SqliteBackend
from tests.store.postgres_backend import PostgresBackend

LONG, SHORT = 600.0, 0.02
TRIES = 400


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Backend:
    """Give a place for a store of each kind."""
    if request.param == "memory":
        return MemoryBackend()
    if request.param == "sqlite":
        return SqliteBackend(tmp_path / "store.db")
    server: postgres.Server = request.getfixturevalue("postgres_server")
    return PostgresBackend(server)


@pytest.fixture
def begun(backend: Backend) -> Iterator[Begun]:
    """Give a store with one dialog."""
    store = backend.open()
    yield begin(store)
    store.close()


@pytest.fixture
def leasing(begun: Begun) -> Leasing:
    """Give the same store as one that keeps leases."""
    return _leasing(begun)


def _leasing(begun: Begun) -> Leasing:
    assert isinstance(begun.store, Leasing)
    return begun.store


def _taken_over(leasing: Leasing, name: str, holder: str) -> Lease:
    """Take a lease as soon as its time has ended."""
    waited = Event()
    for _ in range(TRIES):
        try:
            return acquire(leasing, name, holder=holder, seconds=LONG)
        except LeaseHeld:
            waited.wait(SHORT)
    raise AssertionError("the lease never ended")


def test_one_holder_at_a_time(leasing: Leasing) -> None:
    """Who has a lease has it alone, whoever asks, until he gives it back; other names are other leases."""
    mine = acquire(leasing, "n", holder="a", seconds=LONG)
    for holder in ("b", "a"):
        with pytest.raises(LeaseHeld) as held:
            acquire(leasing, "n", holder=holder, seconds=LONG)
        assert (held.value.name, held.value.holder, held.value.token) == ("n", "a", mine.token)
    assert acquire(leasing, "n \x00'", holder="b", seconds=LONG).token == 1
    release(leasing, mine)
    assert acquire(leasing, "n", holder="b", seconds=LONG).token == mine.token + 1


def test_a_lease_that_ended_is_taken_over_with_a_larger_token(leasing: Leasing) -> None:
    """After its time anybody may take it; the earlier holder can neither renew it nor go on, nor take it back by giving it up."""
    old = acquire(leasing, "n", holder="sleeper", seconds=SHORT)
    new = _taken_over(leasing, "n", "successor")
    assert new.token == old.token + 1
    for use in (lambda: guard(leasing, old), lambda: renew(leasing, old, seconds=LONG)):
        with pytest.raises(LeaseHeld) as held:
            use()
        assert held.value.holder == "successor"
    release(leasing, old)
    guard(leasing, new)
    assert renew(leasing, new, seconds=LONG).token == new.token


def test_a_lease_may_be_renewed_late_if_nobody_came(leasing: Leasing) -> None:
    """The end of a lease takes nothing away by itself: only a successor does."""
    mine = acquire(leasing, "n", holder="a", seconds=1e-6)
    again = renew(leasing, mine, seconds=LONG)
    assert again.until > mine.until
    with pytest.raises(LeaseHeld):
        acquire(leasing, "n", holder="b", seconds=LONG)


def test_a_lease_that_was_given_back_is_nobodys(leasing: Leasing) -> None:
    """Its last holder cannot go on with it either."""
    mine = acquire(leasing, "n", holder="a", seconds=LONG)
    release(leasing, mine)
    release(leasing, mine)
    for use in (lambda: guard(leasing, mine), lambda: renew(leasing, mine, seconds=LONG)):
        with pytest.raises(LeaseHeld):
            use()


def test_the_writes_of_a_guarded_block_are_undone_after_a_take_over(begun: Begun) -> None:
    """A holder that slept through its end is told before anything of its block is written."""
    leasing = _leasing(begun)
    old = acquire(leasing, "n", holder="sleeper", seconds=SHORT)
    new = _taken_over(leasing, "n", "successor")

    def write(lease: Lease, body: bytes) -> None:
        with begun.store.together():
            guard(leasing, lease)
            begun.say(body)

    write(new, b"new")
    with pytest.raises(LeaseHeld):
        write(old, b"old")
    assert [body for _seq, body in begun.store.bodies(begun.dialog)] == [b"new"]


def test_a_block_that_is_undone_takes_no_lease(begun: Begun) -> None:
    """A lease taken inside a block is undone with it."""

    def fail() -> None:
        with begun.store.together():
            acquire(_leasing(begun), "n", holder="a", seconds=LONG)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert acquire(_leasing(begun), "n", holder="b", seconds=LONG).token == 1


def test_of_many_that_ask_at_once_one_gets_it(backend: Backend, begun: Begun) -> None:
    """Threads on handles of their own ask for the same lease: one has it, all others are told who."""
    stores = [Begun(backend.open(), begun.session, begun.dialog) for _ in range(4)]

    def ask(number: int) -> str:
        try:
            return acquire(_leasing(stores[number]), "n", holder=f"h{number}", seconds=LONG).holder
        except LeaseHeld as held:
            return held.holder

    with ThreadPoolExecutor(4) as threads:
        assert len(set(threads.map(ask, range(4)))) == 1
    for one in stores:
        one.store.close()


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf")])
def test_a_time_that_is_none_is_refused(leasing: Leasing, seconds: float) -> None:
    """A lease ends, and not before it began; and somebody holds it."""
    with pytest.raises(InvalidInput):
        acquire(leasing, "n", holder="a", seconds=seconds)
    with pytest.raises(InvalidInput):
        acquire(leasing, "n", holder="", seconds=1)


def test_a_closed_store_says_so(begun: Begun) -> None:
    """As every other method does."""
    begun.store.close()
    with pytest.raises(StoreClosed):
        acquire(_leasing(begun), "n", holder="a", seconds=1)


_HOLDER = """
import sys
from palaver.store import open_store
from palaver.store.lease import acquire
print(acquire(open_store(sys.argv[1]), "n", holder="child", seconds=float(sys.argv[2])).token, flush=True)
sys.stdin.read()
"""


def test_a_killed_holder_is_followed_by_another(backend: Backend, begun: Begun) -> None:
    """A process that dies with a lease (SIGKILL) keeps it until its time has ended and no longer."""
    if isinstance(backend, MemoryBackend):
        pytest.skip("memory is of one process")
    command = [sys.executable, "-c", _HOLDER, begun.store.url, "0.3"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "1\n"
        child.send_signal(signal.SIGKILL)
    assert _taken_over(_leasing(begun), "n", "successor").token == 2


_STEPS = st.lists(st.tuples(st.sampled_from(["acquire", "renew", "release", "guard", "end"]), st.integers(0, 2)))


@settings(suppress_health_check=[HealthCheck.differing_executors])
@given(steps=_STEPS)
def test_tokens_only_grow_and_one_holds(steps: list[tuple[str, int]]) -> None:  # noqa: C901 - a branch for each step
    """Whatever holders do, in any order: each acquisition has a larger token, and only the newest one's holder may go on."""
    store, name = MemoryStore(), new_session_id()
    held: dict[int, Lease] = {}
    newest, ended = Lease(name), False
    for step, who in steps:
        if step == "acquire":
            free = not newest.holder or ended
            if free:
                newest, ended = acquire(store, name, holder=str(who), seconds=LONG), False
                assert newest.token > max([0, *(lease.token for lease in held.values())])
                held[who] = newest
            else:
                with pytest.raises(LeaseHeld):
                    acquire(store, name, holder=str(who), seconds=LONG)
        elif step == "end":
            store.change_lease(name, lambda found, _now: Lease(found.name, found.holder, found.token, 0.0))
            ended = True
        elif who in held:
            ours = newest.holder == str(who) and newest.token == held[who].token
            if step == "release":
                release(store, held[who])
                newest = Lease(name, "", newest.token) if ours else newest
            elif ours:
                guard(store, held[who])
                if step == "renew":
                    held[who], ended = renew(store, held[who], seconds=LONG), False
            else:
                with pytest.raises(LeaseHeld):
                    guard(store, held[who])


def test_words_need_no_lease(begun: Begun) -> None:
    """Appending asks nobody: a lease that another holds hinders no writer."""
    acquire(_leasing(begun), "n", holder="other", seconds=LONG)
    assert begun.store.append(begun.dialog, [words()], -1)[0].seq == 0
