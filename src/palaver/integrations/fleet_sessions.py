"""The sessions of a fleet: which of them are in its queue, wait for a person, or were forgotten."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypedDict

from palaver.agent import Agent
from palaver.agent.attention import Attention, attention
from palaver.errors import Erased, NotFound, PalaverError
from palaver.ids import SessionId, now
from palaver.integrations.fleet_queue import SessionQueue
from palaver.store import SessionRecord, Store

_LOG = logging.getLogger(__name__)

SWEEP_SECONDS = 600.0
"""How often a worker looks for sessions that were forgotten, and how long an open turn without a job has for its next step."""

_PAGE = 256


class QueuedRow(TypedDict):
    """A session in the queue, or one that waits for a person.

    Attributes:
        session: Its id.
        name: Its name.
        state: `waiting`, `later` (a timer, or after a failure), `running`, `stalled` (its worker does not report), `failed` or `person`.
        since: Since when, in seconds since 1970-01-01 UTC; for `later`, until when.
        attempts: How often it failed before.
    """

    session: SessionId
    name: str
    state: str
    since: float
    attempts: int


class FleetSessions:
    """The sessions of a store whose agents run in a fleet."""

    def __init__(self, store: Store, jobs: SessionQueue, agent_of: Callable[[SessionRecord], Agent[Any]]) -> None:
        self._store = store
        self._jobs = jobs
        self._agent_of = agent_of

    def record(self, session_id: SessionId) -> SessionRecord | None:
        """Return the record of a session, or None if it was erased or is in the trash."""
        try:
            record = self._store.session(session_id)
        except (NotFound, Erased):
            return None
        return record if record.trashed_at is None else None

    def sweep(self, since: float) -> int:
        """Wake the sessions that have something to do and no job, of those last active since a time, and return how many there were."""
        woken, after = 0, None
        while page := tuple(self._store.sessions(limit=_PAGE, after=after)):
            after = page[-1]
            recent = [record for record in page if record.updated_at >= since]
            queued = self._jobs.queued([record.session_id for record in recent])
            for record in recent:
                if record.session_id not in queued and self._forgotten(record):
                    self._jobs.wake(record.session_id)
                    woken += 1
            if after.updated_at < since:
                break
        return woken

    def listed(self, stale: float, limit: int) -> tuple[QueuedRow, ...]:
        """Return the sessions that have a job, that failed, or, of the last active ones, that wait for a person; the oldest first.

        Args:
            stale: After how many seconds without a report a worker is dead.
            limit: How many sessions are looked at for calls that wait.
        """
        rows = []
        for session_id, state, attempts, since in self._jobs.listed(stale):
            record = self.record(session_id)
            # a job that failed stays in its table; whether its session was answered since, the log knows
            if record is not None and (state != "failed" or self._needs(record) is Attention.STOPPED):
                rows.append(
                    QueuedRow(session=record.session_id, name=record.name, state=state, since=since, attempts=attempts)
                )
        queued = {row["session"] for row in rows}
        for record in self._store.sessions(limit=limit):
            last = None if record.root is None else self._store.last(record.root)
            waits = last is not None and last.open_calls and last.open_turn < 0 and record.session_id not in queued
            if waits and self._needs(record) is Attention.PERSON:
                since = record.updated_at
                rows.append(
                    QueuedRow(session=record.session_id, name=record.name, state="person", since=since, attempts=0)
                )
        return tuple(sorted(rows, key=lambda row: row["since"]))

    def _needs(self, record: SessionRecord) -> Attention:
        """Return what the dialog needs that an agent of the fleet would answer in; nothing, if it is another's."""
        try:
            agent = self._agent_of(record)
        except PalaverError as error:  # no session of the fleet
            _LOG.debug("Session %s is left alone: %s", record.session_id, error)
            return Attention.NONE
        dialog = agent.current_dialog
        return attention(dialog.store, dialog.dialog_id) if dialog.owner == agent.name else Attention.NONE

    def _forgotten(self, record: SessionRecord) -> bool:
        """Return whether a dialog of the fleet's agents needs work. Most end with the end of a turn, and nothing more is read of them."""
        nodes = [node for node in self._store.nodes(record.session_id) if node.relation != "subagent"]
        lasts = [self._store.last(node.dialog_id) for node in nodes]
        if all(last.kind == "turn_ended" for last in lasts):
            return False
        # a turn that is open without a job may be another program's, which has some time for its next step
        if any(last.open_turn >= 0 and now() - last.at < SWEEP_SECONDS for last in lasts):
            return False
        return self._needs(record) is Attention.WORK
