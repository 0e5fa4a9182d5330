"""Leases: one holder at a time, a larger token for each, taken over after an end, over every store."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palaver.errors import Conflict, InvalidInput, StoreError
from palaver.store import MemoryStore, Store
from palaver.store.lease import Lease, Leasing, acquire, guard, release, renew
from palaver.testing.store_laws import Backend, Begun

LONG, SHORT = 600.0, 0.02


@pytest.fixture
def leasing(store: Store) -> Leasing:
    """Return a store as one that keeps leases."""
    assert isinstance(store, Leasing)
    return store


def taken_over(leasing: Leasing) -> Lease:
    """Take a lease as soon as its time has ended."""
    for _ in range(400):
        try:
            return acquire(leasing, "n", holder="successor", seconds=LONG)
        except Conflict:
            Event().wait(SHORT)
    raise AssertionError("the lease never ended")


def test_one_holder_at_a_time(leasing: Leasing) -> None:
    """Who has a lease has it alone, whoever asks, until it is released; other names are other leases."""
    mine = acquire(leasing, "n", holder="a", seconds=LONG)
    for holder in ("b", "a"):
        with pytest.raises(Conflict, match=f"'a' holds it, with token {mine.token}"):
            acquire(leasing, "n", holder=holder, seconds=LONG)
    assert acquire(leasing, "n \x00'", holder="b", seconds=LONG).token == 1
    for _ in range(2):
        release(leasing, mine)
    for use in (lambda: guard(leasing, mine), lambda: renew(leasing, mine, seconds=LONG)):
        with pytest.raises(Conflict, match="nobody holds it"):
            use()
    assert acquire(leasing, "n", holder="b", seconds=LONG).token == mine.token + 1


def test_d19_ended_lease_is_taken_over_and_fences(leasing: Leasing, begun: Begun) -> None:
    """After its end anybody may take it, with a larger token; its earlier holder writes, renews and releases nothing any more."""
    old = acquire(leasing, "n", holder="sleeper", seconds=SHORT)
    assert renew(leasing, old, seconds=SHORT).token == old.token
    new = taken_over(leasing)

    def write(lease: Lease, body: bytes) -> None:
        with begun.store.transaction():
            guard(leasing, lease)
            begun.say(body)

    write(new, b"new")
    for use in (lambda: write(old, b"old"), lambda: renew(leasing, old, seconds=LONG)):
        with pytest.raises(Conflict, match="successor"):
            use()
    release(leasing, old)
    guard(leasing, new)
    assert (new.token, begun.said()) == (old.token + 1, [b"new"])


def test_lease_is_undone_with_its_transaction(begun: Begun) -> None:
    """A lease taken inside a transaction that is undone is nobody's."""
    leasing = cast("Leasing", begun.store)

    def fail() -> None:
        with begun.store.transaction():
            acquire(leasing, "n", holder="a", seconds=LONG)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert acquire(leasing, "n", holder="b", seconds=LONG).token == 1
    begun.say(b"a writer needs no lease")


def test_one_of_many_gets_it(backend: Backend, store: Store) -> None:
    """Threads on handles of their own ask for the same lease: one has it."""

    def ask(number: int) -> bool:
        handle = store if number == 0 else backend.open()
        try:
            return bool(acquire(cast("Leasing", handle), "n", holder=str(number), seconds=LONG))
        except Conflict:
            return False
        finally:
            if handle is not store:
                handle.close()

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(ask, range(4))) == 1


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_d19_dead_holder_is_followed(store: Store, at_once: Callable[..., list[str]]) -> None:
    """A process that dies with a lease keeps it until its end and no longer."""
    assert at_once("die_with_a_lease", url=store.url, seconds=0.3) == ["1"]
    assert taken_over(cast("Leasing", store)).token == 2


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf")])
def test_lease_without_an_end_is_refused(seconds: float) -> None:
    """A lease ends, and not before it began; somebody holds it; and a closed store keeps none."""
    store = MemoryStore()
    for holder, wanted in (("a", seconds), ("", 1.0)):
        with pytest.raises(InvalidInput):
            acquire(store, "n", holder=holder, seconds=wanted)
    store.close()
    with pytest.raises(StoreError):
        acquire(store, "n", holder="a", seconds=1.0)


_STEPS = st.lists(st.tuples(st.sampled_from(["acquire", "renew", "release", "guard", "end"]), st.integers(0, 2)))


@settings(suppress_health_check=[HealthCheck.differing_executors])
@given(steps=_STEPS)
def test_tokens_only_grow(steps: list[tuple[str, int]]) -> None:
    """Whatever holders do, in any order: each acquisition has a larger token, and only the newest one's holder goes on."""
    store = MemoryStore()
    held: dict[int, Lease] = {}
    newest, free = Lease("n"), True
    for step, who in steps:
        lease = held.get(who, Lease("n"))
        ours = bool(newest.holder) and lease.token == newest.token
        if step == "end":
            store.change_lease("n", lambda found, _now: Lease(found.name, found.holder, found.token, 0.0))
            free = True
        elif step == "release":
            release(store, lease)
            newest, free = (Lease("n", "", newest.token), True) if ours else (newest, free)
        elif step == "acquire" and free:
            newest, free = acquire(store, "n", holder=str(who), seconds=LONG), False
            assert newest.token > max([0, *(one.token for one in held.values())])
            held[who] = newest
        elif step == "renew" and ours:
            held[who], free = renew(store, lease, seconds=LONG), False
        elif ours and step == "guard":
            guard(store, lease)
        elif lease.token or step == "acquire":
            with pytest.raises(Conflict):
                acquire(store, "n", holder=str(who), seconds=LONG) if step == "acquire" else guard(store, lease)
