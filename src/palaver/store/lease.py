"""Leases: one process at a time does something, and another takes over when it dies.

Nothing that palaver writes needs one: numbers and comparisons decide between writers (ADR 0003). A lease is for work that should not be done
twice at once: answering a user, indexing, calling a tool that charges. It ends by itself; whoever comes later takes it over and gets a larger
*token*. Hand the token to what the work is done on, and let that refuse a smaller one than it has seen: a holder that slept through its end
is stopped there (M. Kleppmann, "How to do distributed locking", 2016). For writes into the store itself `guard` does that::

    lease = acquire(store, "answers:4711", holder="worker 3", seconds=30)
    ...
    with store.together():
        guard(store, lease)
        store.append(dialog_id, drafts, turn_head)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import isfinite
from typing import Protocol, TypeAlias, runtime_checkable

from palaver.errors import InvalidInput, LeaseHeld


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease, as it was written last.

    Attributes:
        name: What it is for.
        holder: Who has it: a host and process, a worker's name; empty when it was given back.
        token: Larger than every earlier one of this name; 0 when nobody ever had it.
        until: When it ends, by the store's clock, in seconds since 1970-01-01 UTC.
    """

    name: str
    holder: str = ""
    token: int = 0
    until: float = 0.0


Change: TypeAlias = Callable[[Lease, float], Lease]
"""From a lease and the time by the store's clock to what the lease becomes; it raises to leave everything as it was."""


@runtime_checkable
class Leasing(Protocol):
    """A store that keeps leases: all of palaver's do."""

    def change_lease(self, name: str, change: Change) -> Lease:
        """Read a lease, change it, write it and give it, in one step that no other process can get into.

        Inside `together` nobody else can change the lease before the block ends. The clock is the store's: that of the server, or of the
        one machine.
        """
        ...


def acquire(store: Leasing, name: str, *, holder: str, seconds: float) -> Lease:
    """Take a lease that nobody has, or whose time has ended.

    Args:
        store: The store.
        name: What it is for.
        holder: Who takes it, for the words of errors; not empty.
        seconds: For how long, unless it is renewed.

    Raises:
        LeaseHeld: Someone has it; also the same holder, who renews what he has.
        InvalidInput: The holder is empty, or the time is none.
    """
    _check(seconds)
    if not holder:
        raise InvalidInput("A lease has a holder: say who takes it.")

    def change(found: Lease, now: float) -> Lease:
        if found.holder and found.until > now:
            raise _held(found)
        return Lease(name, holder, found.token + 1, now + seconds)

    return store.change_lease(name, change)


def renew(store: Leasing, lease: Lease, *, seconds: float) -> Lease:
    """Keep a lease for so many seconds from now. One that has ended may be renewed as long as nobody has taken it over.

    Raises:
        LeaseHeld: It was taken over, or given back.
        InvalidInput: The time is none.
    """
    _check(seconds)
    return store.change_lease(lease.name, lambda found, now: replace(_ours(found, lease), until=now + seconds))


def release(store: Leasing, lease: Lease) -> None:
    """Give a lease back, so that nobody waits for its end; one that was taken over is left alone."""

    def change(found: Lease, _now: float) -> Lease:
        return replace(found, holder="", until=0.0) if found.token == lease.token else found

    store.change_lease(lease.name, change)


def guard(store: Leasing, lease: Lease) -> None:
    """Refuse to go on with a lease that was taken over. At the beginning of `together` it makes the writes of the block safe from that.

    Raises:
        LeaseHeld: It was taken over, or given back.
    """
    store.change_lease(lease.name, lambda found, _now: _ours(found, lease))


def _ours(found: Lease, lease: Lease) -> Lease:
    if (found.holder, found.token) != (lease.holder, lease.token):
        raise _held(found)
    return found


def _held(found: Lease) -> LeaseHeld:
    return LeaseHeld(found.name, found.holder, found.token, found.until)


def _check(seconds: float) -> None:
    if not (isfinite(seconds) and seconds > 0):
        raise InvalidInput(f"A lease lasts for some seconds: {seconds!r} is no such time.")
