"""Being told that a dialog has grown, by LISTEN and NOTIFY, on a connection of its own.

A commit with a notification takes a lock of the whole server until it is flushed, so writers that all notified would write one after the
other (PostgreSQL's source, `PreCommit_Notify` in async.c). So an append notifies only when a row of `followers` says that somebody is here;
a follower keeps that row fresh while it waits. The channel has the name of the schema, the message is the dialog's number.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import monotonic, sleep

import psycopg
from psycopg import sql

from palaver.errors import PalaverError
from palaver.ids import DialogId
from palaver.store.following import Wait
from palaver.store.postgres.connections import Connection, Connections, ask
from palaver.store.postgres.entries import end
from palaver.store.postgres.opening import Opener
from palaver.store.postgres.transactions import reading

PRESENT_SECONDS = 30.0
"""How long a follower counts as present after it last said so."""


class _Watch:
    """One follower's connection; made again when it died, and left out while there is no server."""

    def __init__(self, opener: Opener, dialog_no: int) -> None:
        self._opener = opener
        self._dialog_no = dialog_no
        self._connection: Connection | None = None
        self._present_until = 0.0

    def wait(self, seconds: float) -> None:
        """Return at the next notification, or after so many seconds."""
        deadline = monotonic() + seconds
        connection = self.present()
        if connection is None:
            sleep(seconds)
            return
        try:
            while (left := deadline - monotonic()) > 0:
                if any(
                    told.payload == str(self._dialog_no) for told in connection.notifies(timeout=left, stop_after=1)
                ):
                    return
        except psycopg.Error:
            self.close()

    def present(self) -> Connection | None:
        """Give the connection that listens, and say that we are here if that was long ago; None while there is no server."""
        try:
            if self._connection is None:
                self._connection = self._opener.connect(False)  # noqa: FBT003 - not patient: the caller asks again
                channel = sql.Identifier(self._opener.where.schema)
                self._connection.execute(sql.SQL("LISTEN {}").format(channel), prepare=False)
                self._present_until = 0.0
            if monotonic() > self._present_until - PRESENT_SECONDS / 2:
                ask(self._connection, "follower_put", (self._dialog_no, PRESENT_SECONDS))
                self._present_until = monotonic() + PRESENT_SECONDS
        except (psycopg.Error, PalaverError):
            self.close()
        return self._connection

    def close(self) -> None:
        """Give the connection up."""
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.close()
            self._connection = None


@contextmanager
def watch(pool: Connections, opener: Opener, dialog_id: DialogId) -> Iterator[Wait]:
    """Give what waits for the next entry of a dialog; a store that may not be written is asked now and then instead."""
    with reading(pool) as connection:
        dialog_no, _length = end(connection, dialog_id)
    if not pool.writable:
        yield lambda seconds: sleep(min(seconds, _POLL_SECONDS))
        return
    one = _Watch(opener, dialog_no)
    try:
        one.present()
        yield one.wait
    finally:
        one.close()


_POLL_SECONDS = 0.1
