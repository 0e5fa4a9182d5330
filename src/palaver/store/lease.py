"""Leases: one process at a time does something, and another takes over when it dies.

Nothing that palaver writes needs a lease: sequence numbers decide between writers. A lease is for work that should not be done twice at once:
answering a user, calling a tool that charges. It ends by itself. The next holder gets a larger *token*; `renew` inside a transaction
refuses the writes of a holder that slept through its end (M. Kleppmann, "How to do distributed locking", 2016)::

    lease = acquire(store, "answers:4711", holder="worker 3", seconds=30)
    ...
    with store.transaction():
        renew(store, lease, seconds=30)
        store.append(dialog_id, drafts, turn_head)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf
from typing import Protocol, TypeAlias, runtime_checkable

from palaver.errors import Conflict, InvalidInput


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease, as it was written last.

    Attributes:
        name: What it is for.
        holder: Its owner: a host and process, a worker's name; empty after its release.
        token: Larger than every earlier one of this name; 0 if it never had a holder.
        until: When it ends, by the store's clock, in seconds since 1970-01-01 UTC.
    """

    name: str
    holder: str = ""
    token: int = 0
    until: float = 0.0


Change: TypeAlias = Callable[[Lease, float], Lease]
"""From a lease and the time by the store's clock to the new lease; it raises to leave everything as it was."""


@runtime_checkable
class Leasing(Protocol):
    """A store that keeps leases: all of palaver's do."""

    def lease(self, name: str) -> Lease:
        """Return a lease as it was written last; one that was never acquired has no holder."""
        ...

    def change_lease(self, name: str, change: Change) -> Lease:
        """Read a lease, change it, write it and return it, in one step. Inside a transaction nobody else changes it before the end."""
        ...


def acquire(store: Leasing, name: str, *, holder: str, seconds: float) -> Lease:
    """Acquire a lease that is free or has expired.

    Args:
        store: The store.
        name: What it is for.
        holder: The new owner; not empty.
        seconds: For how long, unless it is renewed.

    Raises:
        Conflict: It has a holder, the same one included: a holder renews its lease.
        InvalidInput: The holder is empty, or the time is not a positive number.
    """
    if not holder or not 0 < seconds < inf:
        raise InvalidInput("A lease needs a holder and lasts a positive number of seconds.")

    def change(found: Lease, now: float) -> Lease:
        if found.holder and found.until > now:
            raise _held(found)
        return Lease(name, holder, found.token + 1, now + seconds)

    return store.change_lease(name, change)


def renew(store: Leasing, lease: Lease, *, seconds: float) -> Lease:
    """Extend a lease by some seconds from now; at the beginning of a transaction, this protects the writes of the block.

    An expired lease can be renewed until somebody else acquires it.

    Raises:
        Conflict: Another holder acquired it, or it was released.
    """

    def change(found: Lease, now: float) -> Lease:
        if (found.holder, found.token) != (lease.holder, lease.token):
            raise _held(found)
        return replace(found, until=now + seconds)

    return store.change_lease(lease.name, change)


def release(store: Leasing, lease: Lease) -> None:
    """Release a lease before its end; another holder's lease stays."""

    def change(found: Lease, _now: float) -> Lease:
        return replace(found, holder="", until=0.0) if found.token == lease.token else found

    store.change_lease(lease.name, change)


def _held(lease: Lease) -> Conflict:
    who = f"{lease.holder!r} holds it" if lease.holder else "nobody holds it any more"
    return Conflict(
        lease.name,
        why=f"The lease {lease.name!r} is not ours: {who}, with token {lease.token}.",
        hint="Wait for its end and acquire it again.",
    )
