"""Leases: one holder at a time, a larger token for each, taken over after an end, over every store."""

from threading import Event
from typing import cast

import pytest

from palaver.errors import Conflict, InvalidInput
from palaver.store.lease import Lease, Leasing, acquire, release, renew
from palaver.testing.store_laws import Backend, Begun

LONG, SHORT = 600.0, 0.02


@pytest.fixture
def leasing(begun: Begun) -> Leasing:
    """Return a store as one that keeps leases."""
    return cast("Leasing", begun.store)


def taken_over(leasing: Leasing) -> Lease:
    """Take a lease as soon as its time has ended."""
    for _ in range(400):
        try:
            return acquire(leasing, "n", holder="successor", seconds=LONG)
        except Conflict:
            Event().wait(SHORT)
    raise AssertionError("the lease never ended")


def test_one_holder_at_a_time(leasing: Leasing) -> None:
    """Who has a lease has it alone, whoever asks, until it is released; other names are other leases; each has a holder and an end."""
    mine = acquire(leasing, "n", holder="a", seconds=LONG)
    for holder in ("b", "a"):
        with pytest.raises(Conflict, match=f"'a' holds it, with token {mine.token}"):
            acquire(leasing, "n", holder=holder, seconds=LONG)
    assert acquire(leasing, "n \x00'", holder="b", seconds=LONG).token == 1
    for _ in range(2):
        release(leasing, mine)
    with pytest.raises(Conflict, match="nobody holds it"):
        renew(leasing, mine, seconds=LONG)
    assert acquire(leasing, "n", holder="b", seconds=LONG).token == mine.token + 1
    for holder, seconds in (("", 1.0), ("a", 0), ("a", -1), ("a", float("nan")), ("a", float("inf"))):
        with pytest.raises(InvalidInput):
            acquire(leasing, "other", holder=holder, seconds=seconds)


def test_ended_lease_is_taken_over_and_fences(leasing: Leasing, begun: Begun) -> None:
    """D19: after its end anybody may take it, with a larger token; its earlier holder writes, renews and releases nothing any more."""
    old = acquire(leasing, "n", holder="sleeper", seconds=SHORT)
    assert renew(leasing, old, seconds=SHORT).token == old.token
    new = taken_over(leasing)

    def write(lease: Lease, body: bytes) -> None:
        with begun.store.transaction():
            renew(leasing, lease, seconds=LONG)
            begun.say(body)

    write(new, b"new")
    with pytest.raises(Conflict, match="successor"):
        write(old, b"old")
    release(leasing, old)
    renew(leasing, new, seconds=LONG)
    assert (new.token, begun.said()) == (old.token + 1, [b"new"])


def test_lease_is_undone_with_its_transaction(begun: Begun, leasing: Leasing, backend: Backend) -> None:
    """A lease taken inside a transaction that is undone is nobody's; one that was committed is known to another handle."""

    def fail() -> None:
        with begun.store.transaction():
            acquire(leasing, "n", holder="a", seconds=LONG)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert acquire(leasing, "n", holder="b", seconds=LONG).token == 1
    other = backend.open()
    with pytest.raises(Conflict):
        acquire(cast("Leasing", other), "n", holder="c", seconds=LONG)
    if other is not begun.store:
        other.close()
