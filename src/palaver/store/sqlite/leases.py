"""Leases, as rows."""

from __future__ import annotations

import apsw

from palaver.ids import now
from palaver.store.lease import Change, Lease
from palaver.store.sqlite.statements import statements


def change(connection: apsw.Connection, name: str, change: Change) -> Lease:
    """Change a lease, in an open transaction: nobody else writes before the end of that."""
    sql = statements()
    row = connection.execute(sql["lease_get"], (name,)).fetchone()
    found = Lease(name) if row is None else Lease(name, *row)
    made = change(found, now())
    if made != found:
        connection.execute(sql["lease_set"], (name, made.holder, made.token, made.until))
    return made
