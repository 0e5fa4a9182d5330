"""Leases, as rows."""

from __future__ import annotations

from palaver.store.lease import Change, Lease
from palaver.store.postgres.connections import Connection, ask
from palaver.store.postgres.texts import given, held


def change(connection: Connection, name: str, change: Change) -> Lease:
    """Change a lease, in an open transaction: its row stays locked until the end of that."""
    row = ask(connection, "lease_get", (held(name),)).fetchone()
    holder, token, until, clock = row or ("", 0, 0.0, 0.0)
    found = Lease(name, given(holder), token, until)
    made = change(found, clock)
    if made != found:
        ask(connection, "lease_set", (held(made.holder), made.token, made.until, held(name)))
    return made
