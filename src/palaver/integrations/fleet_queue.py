"""The queue of a fleet: what is asked of procrastinate's tables, in the transactions of the store."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NamedTuple

import procrastinate
from procrastinate.sql import queries

from palaver.errors import MissingFile, PalaverError, StoreError
from palaver.ids import SessionId
from palaver.store.postgres import PostgresStore

# --- what is asked of the queue -----------------------------------------------------------------------------------------------

# The row that waits is locked until the end of the transaction, and a worker skips it until then: so it reads the log with what the transaction
# wrote. The trigger announces new rows only. `attempts` counts what failed before, and a new reason to run begins to count anew.
_MERGED = """
ON CONFLICT (queueing_lock) WHERE status = 'todo' DO UPDATE SET
  attempts = least(procrastinate_jobs.attempts, excluded.attempts), scheduled_at = least(procrastinate_jobs.scheduled_at, excluded.scheduled_at)
RETURNING id, queue_name"""
_INSERT = "INSERT INTO procrastinate_jobs (queue_name, task_name, lock, queueing_lock, args, attempts, scheduled_at)"
_ANNOUNCE = (
    "pg_notify('procrastinate_queue_v1#' || queue_name, json_build_object('type', 'job_inserted', 'job_id', id)::text)"
)

_PUT = f"""
WITH put AS ({_INSERT}
  VALUES (%(queue)s, %(task)s, %(lock)s, %(queueing_lock)s, jsonb_build_object('session', %(session)s::text), %(attempts)s,
    coalesce(%(at)s::timestamptz, now() + %(after)s::double precision * interval '1 second'))
  {_MERGED})
SELECT {_ANNOUNCE} FROM put"""  # noqa: S608 - of our own words

# A worker that was removed from its table leaves jobs without a worker, and one that stopped reporting jobs with it. The stalled job ends, for its
# successor may wait already; a job that killed as many workers as there are attempts has failed.
_REAP = f"""
WITH stalled AS (
  SELECT job.id FROM procrastinate_jobs AS job LEFT JOIN procrastinate_workers AS worker ON worker.id = job.worker_id
  WHERE job.status = 'doing' AND job.task_name = ANY(%(tasks)s)
    AND (worker.id IS NULL OR worker.last_heartbeat < now() - %(stale)s * interval '1 second')
  FOR UPDATE OF job SKIP LOCKED
), ended AS (
  UPDATE procrastinate_jobs AS job SET abort_requested = false, attempts = attempts + 1, status = (
    CASE WHEN abort_requested THEN 'cancelled' WHEN attempts < %(most)s THEN 'aborted' ELSE 'failed' END
  )::procrastinate_job_status
  FROM stalled WHERE job.id = stalled.id
  RETURNING job.status, job.args->>'session' AS session, job.attempts
), put AS ({_INSERT}
  SELECT %(queue)s, %(task)s, session, session, jsonb_build_object('session', session), min(attempts), NULL
  FROM ended WHERE status = 'aborted' GROUP BY session
  {_MERGED}), announced AS (SELECT {_ANNOUNCE} FROM put)
SELECT (SELECT count(*) FROM ended), (SELECT count(*) FROM announced)"""  # noqa: S608 - of our own words

_ABORT = """
UPDATE procrastinate_jobs SET abort_requested = true
WHERE lock = %(session)s AND status = 'doing' AND NOT abort_requested RETURNING id"""

# A job that runs has its slots in its arguments, so they are free when it ends, however it does. Those who look wait for one another.
_TAKE = """
UPDATE procrastinate_jobs SET args = jsonb_set(args, '{slots}', coalesce(args->'slots', '[]') || to_jsonb(%(slot)s::text))
WHERE id = %(job)s AND status = 'doing' AND %(most)s > (
  SELECT count(*) FROM procrastinate_jobs WHERE status = 'doing' AND queue_name = %(queue)s AND args->'slots' ? %(slot)s)
RETURNING id"""

_QUEUED = """
SELECT lock FROM procrastinate_jobs WHERE lock = ANY(%(sessions)s) AND status = 'doing'
UNION SELECT queueing_lock FROM procrastinate_jobs WHERE queueing_lock = ANY(%(sessions)s) AND status = 'todo'"""

# The newest job of each session that has not ended well; a worker of none is gone.
_LISTED = """
SELECT DISTINCT ON (session) session, CASE
    WHEN status = 'doing' AND (worker.id IS NULL OR worker.last_heartbeat < now() - %(stale)s * interval '1 second') THEN 'stalled'
    WHEN status = 'doing' THEN 'running' WHEN status = 'failed' THEN 'failed'
    WHEN scheduled_at > now() THEN 'later' ELSE 'waiting' END,
  attempts, coalesce(extract(epoch FROM coalesce(scheduled_at, (
    SELECT max(at) FROM procrastinate_events WHERE job_id = job.id)))::double precision, 0)
FROM (SELECT *, args->>'session' AS session FROM procrastinate_jobs
  WHERE task_name = ANY(%(tasks)s) AND status IN ('todo', 'doing', 'failed')) AS job
LEFT JOIN procrastinate_workers AS worker ON worker.id = job.worker_id
ORDER BY session, status = 'doing' DESC, scheduled_at IS NULL DESC, job.id DESC"""

PLACE = """
SELECT current_database() AS base, extract(epoch FROM pg_postmaster_start_time())::text AS server,
  to_regclass('procrastinate_jobs')::oid::bigint AS jobs"""

_LACKING = """
SELECT name FROM unnest(%(names)s::text[]) AS name
WHERE NOT EXISTS (SELECT FROM pg_proc WHERE proname = name AND pronamespace = to_regnamespace(%(path)s))
  AND NOT EXISTS (SELECT FROM pg_type WHERE typname = name AND typnamespace = to_regnamespace(%(path)s))"""

_ELSEWHERE = (
    "SELECT DISTINCT pronamespace::regnamespace::text FROM pg_proc WHERE proname = ANY(%(names)s::text[]) ORDER BY 1"
)

_MIGRATE = "Apply its migrations (procrastinate.readthedocs.io, howto/production/migrations), or install the version of the tables."
_NEEDED = sorted(set(re.findall(r"procrastinate_\w+_v\d+\b", "\n".join(queries.values()))))
"""The functions and types that the installed procrastinate calls."""


class Listed(NamedTuple):
    """A job that waits, runs or failed.

    Attributes:
        session: Its session.
        state: `waiting`, `later`, `running`, `stalled` or `failed`.
        attempts: How often it failed before.
        since: Since when, in seconds since 1970-01-01 UTC; for `later`, until when.
    """

    session: SessionId
    state: str
    attempts: int
    since: float


class SessionQueue:
    """The jobs of one queue. Each method is a transaction, or a part of the transaction of the store that this thread has open.

    Attributes:
        rest_task: The name of the task that brings a session to rest.
        later_task: The name of the task that wakes a session at its time.
    """

    def __init__(self, store: PostgresStore, name: str, schema: str) -> None:
        self.rest_task, self.later_task = f"palaver.{name}", f"palaver.{name}.later"
        self._store = store
        self._name = name
        self._place = f"schema {schema} of {store.place}"
        self._path = '"{}"'.format(schema.replace('"', '""'))
        self._checked = False

    def wake(self, session_id: SessionId, attempts: int = 0) -> None:
        """Put the job of a session into the queue, unless one waits.

        Args:
            session_id: The session.
            attempts: How often it failed before.
        """
        self._put(session_id, self.rest_task, lock=session_id, queueing_lock=session_id, attempts=attempts)

    def wake_later(
        self, session_id: SessionId, *, at: datetime | None = None, after: float = 0.0, attempts: int = 0
    ) -> None:
        """Put a job into the queue that will wake a session: at a time, or some seconds after a failure; of the latter one waits."""
        waiting = None if at else f"{session_id} again"
        self._put(session_id, self.later_task, queueing_lock=waiting, attempts=attempts, at=at, after=after)

    def _put(self, session_id: SessionId, task: str, **values: object) -> None:
        default = {"lock": None, "at": None, "after": None}
        self._do(_PUT, **default | values, queue=self._name, task=task, session=session_id)

    def abort(self, session_id: SessionId) -> None:
        """Have the worker that runs the job of a session interrupt it."""
        self._do(_ABORT, session=session_id)

    def reap(self, stale: float, most: int) -> int:
        """End the jobs of dead workers, put their successors into the queue, and return how many ended.

        Args:
            stale: After how many seconds without a report a worker is dead.
            most: How many attempts a job has after its first one.
        """
        values = {"queue": self._name, "task": self.rest_task, "tasks": [self.rest_task, self.later_task]}
        ((ended, _),) = self._ask(_REAP, **values, stale=stale, most=most)
        return int(ended)

    def queued(self, sessions: Sequence[SessionId]) -> frozenset[str]:
        """Return those of some sessions that have a job."""
        return frozenset(name for (name,) in self._ask(_QUEUED, sessions=list(sessions)))

    def listed(self, stale: float) -> list[Listed]:
        """Return of each session the job that says most."""
        rows = self._ask(_LISTED, tasks=[self.rest_task, self.later_task], stale=stale)
        return [Listed(*row) for row in rows]

    def take(self, job: int | None, slots: Mapping[str, int]) -> bool:
        """Give a running job a place in each of some slots, until it ends, and return whether there was room in all of them.

        Args:
            job: The job.
            slots: By name, how many running jobs have room.
        """
        with self._lent() as connection:
            for slot in sorted(slots):
                connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"{self._name} {slot}",))
                values = {"queue": self._name, "job": job, "slot": slot, "most": slots[slot]}
                if connection.execute(_TAKE, values).fetchone() is None:
                    return False
        return True

    def place(self) -> tuple[Any, ...]:
        """Return where the tables are, as `PLACE` returns it to another connection."""
        (row,) = self._ask(PLACE)
        return row

    @contextmanager
    def _lent(self) -> Iterator[Any]:
        """Lend the connection of the store's transaction, with the tables in its search path until the end of the transaction.

        Raises:
            StoreError: The store failed, or the tables are not those that were seen before.
        """
        try:
            with self._store.connection() as connection:
                connection.execute("SELECT set_config('search_path', %s, true)", (self._path,))
                yield connection
        except Exception as error:
            if isinstance(error, PalaverError) and not isinstance(error, MissingFile):
                raise
            why = " ".join(
                str(error.__cause__ or error).split()
            )  # the server's refusal: no table, no column, no function
            raise StoreError(
                f"The queue in {self._place} refused a statement: {why}.", reason="unsupported", hint=_MIGRATE
            ) from error

    def _do(self, statement: str, **values: object) -> None:
        """Execute a statement whose rows say nothing: its journey is the transaction's."""
        with self._lent() as connection:
            connection.execute(statement, values)

    def _ask(self, statement: str, **values: object) -> list[tuple[Any, ...]]:
        with self._lent() as connection:
            rows: list[tuple[Any, ...]] = connection.execute(statement, values).fetchall()
            return rows

    def require(self, *, anew: bool = False) -> None:
        """Raise unless the tables are those of the installed procrastinate.

        Args:
            anew: Whether they are looked at again.

        Raises:
            StoreError: They are missing, or of another version.
        """
        if self._checked and not anew:
            return
        self._checked = False
        lacking = [name for (name,) in self._ask(_LACKING, names=_NEEDED, path=self._path)]
        if len(lacking) == len(_NEEDED):
            others = ", ".join(name for (name,) in self._ask(_ELSEWHERE, names=_NEEDED))
            named = f": {others}" if others else ""
            hint = (
                f"Make them: `procrastinate --app=MODULE.app schema --apply`; or name the schema that has them{named}."
            )
            raise StoreError(f"The queue has no tables in {self._place}.", reason="unsupported", hint=hint)
        if lacking:
            needs = f"procrastinate {procrastinate.__version__} needs {', '.join(lacking)}"
            raise StoreError(
                f"The tables of the queue in {self._place} are of another version: {needs}.",
                reason="unsupported",
                hint=_MIGRATE,
            )
        self._checked = True
