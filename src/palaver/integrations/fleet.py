"""Agents on many machines: a queue of the sessions that have something to do, in the database of their store.

    fleet = Fleet(procrastinate.App(connector=PsycopgConnector(conninfo=...)), store, agent_for)
    await fleet.say("till 4711", "How many lamps?")  # in any process
    await fleet.work(concurrency=16)  # in every worker

The queue is procrastinate's (https://procrastinate.readthedocs.io). A job says which session is to be brought to rest, and nothing else: the log
is the state. A session has at most one job that runs (`lock`) and one that waits (`queueing_lock`), so a wake-up during a run is neither lost nor
doubled. Should two workers have a session all the same, because one was taken for dead, the log decides: a step of one of them is refused.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import datetime
from functools import partial
from typing import Any, TypedDict, TypeVar

from palaver.agent import Agent, Decision, decide
from palaver.agent.approvals import annotate
from palaver.agent.attention import CANCELLED, Attention, attention
from palaver.errors import (
    AgentFailure,
    Conflict,
    Erased,
    InvalidInput,
    MissingExtra,
    NotFound,
    PalaverError,
    StoreError,
)
from palaver.ids import SessionId, now
from palaver.integrations.keyed import in_thread
from palaver.log.entries import Custom, Inbox
from palaver.messages import UserMessage
from palaver.session import Session
from palaver.store import SessionRecord

try:
    import procrastinate
    from procrastinate.exceptions import AppNotOpen, ConnectorException, TaskAlreadyRegistered
    from procrastinate.job_context import AbortReason, JobContext
    from procrastinate.sql import queries

    from palaver.store.postgres import PostgresStore
except ModuleNotFoundError as error:
    if error.name and error.name.startswith("palaver"):
        raise
    raise MissingExtra("A fleet", "fleet", package="procrastinate") from error

T = TypeVar("T")

_LOG = logging.getLogger(__name__)

_BEATS = 3
"""How often a worker reports, and looks for stalled jobs, in the time after which it is taken for dead."""

_POLL_SECONDS = 1.0
"""How often a worker looks for jobs that nobody announced: a job that waited for the end of another of its session."""

_AGAIN_SECONDS = 1.0
"""How long a worker waits before it begins again after the database went away."""

_SWEEP_SECONDS = 600.0
_SWEPT_SECONDS = 3600.0
"""How often a worker looks for sessions that were forgotten, and how far back."""

_PAGE = 256

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

_HERE = """
SELECT current_database() AS base, extract(epoch FROM pg_postmaster_start_time())::text AS server,
  to_regclass('procrastinate_jobs')::oid::bigint AS jobs"""

_LACKING = """
SELECT name FROM unnest(%(names)s::text[]) AS name
WHERE NOT EXISTS (SELECT FROM pg_proc WHERE proname = name AND pronamespace = to_regnamespace(%(path)s))
  AND NOT EXISTS (SELECT FROM pg_type WHERE typname = name AND typnamespace = to_regnamespace(%(path)s))"""

_NEEDED = sorted(set(re.findall(r"procrastinate_\w+_v\d+\b", "\n".join(queries.values()))))
"""The functions and types that the installed procrastinate calls."""


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


# --- the fleet ----------------------------------------------------------------------------------------------------------------


class Fleet:
    """Sessions whose agents run in workers, on any number of machines.

    Whoever says something to a session, decides about a call or cancels does so through the fleet: its log and its job are written in one
    transaction. In a fleet agents answer in its jobs alone: a turn that another program began is taken over.

    Attributes:
        app: The app of procrastinate.
        store: The store.
        queue: The queue of the jobs.
        schema: The schema of procrastinate's tables.
        backoff: How many seconds to wait before each further attempt after a failure that may pass.
        stale: After how many seconds without a report a worker is taken for dead.
    """

    def __init__(  # noqa: PLR0913 - all but the first three by keyword
        self,
        app: procrastinate.App,
        store: PostgresStore,
        agent_for: Callable[[str], Agent[Any]],
        *,
        queue: str = "sessions",
        schema: str = "public",
        backoff: Sequence[float] = (1, 5, 30, 300),
        stale: float = 30,
    ) -> None:
        """Add the fleet's tasks to an app of procrastinate.

        Args:
            app: The app. Its connector is a `PsycopgConnector` for the database of the store.
            store: The store.
            agent_for: Returns an agent over this store for the session of a name.
            queue: The queue of the jobs.
            schema: The schema of procrastinate's tables.
            backoff: How many seconds to wait before each further attempt after a failure that may pass: of the provider, of the store.
            stale: After how many seconds without a report a worker is taken for dead.

        Raises:
            InvalidInput: The store is not in PostgreSQL, the app has a fleet of this queue, or a number is not positive.
        """
        kept: object = store
        if not isinstance(kept, PostgresStore):
            hint = 'Open one with PostgresStore("postgresql://...").'
            raise InvalidInput(f"A fleet has its store in PostgreSQL, and this is {kept!r}.", hint=hint)
        if not stale > 0 or not all(wait > 0 for wait in backoff):
            raise InvalidInput(f"stale is {stale!r}, backoff {backoff!r}.", hint="Pass seconds larger than 0.")
        self.app = app
        self.store = store
        self.queue = queue
        self.schema = schema
        self.backoff = tuple(backoff)
        self.stale = stale
        self._agent_for = agent_for
        self._path = '"{}"'.format(schema.replace('"', '""'))
        self._checked = False
        self._rest_task, self._later_task = f"palaver.{queue}", f"palaver.{queue}.later"
        try:
            app.task(name=self._rest_task, queue=queue, pass_context=True)(self._rest)
            app.task(name=self._later_task, queue=queue, pass_context=True)(self._later)
        except TaskAlreadyRegistered as error:
            raise InvalidInput(
                f"The app has a fleet of the queue {queue!r}.", hint="Name another queue, or use that fleet."
            ) from error

    # --- what people and programs ask ---------------------------------------------------------------------------------------------

    async def say(self, session: str, text: str) -> SessionId:
        """Write a user's message to the inbox of a session, and wake it, in one transaction. Return the session's id.

        Args:
            session: The session's id or name. One that does not exist is begun by its agent.
            text: The message.

        Raises:
            StoreError: The store failed, or the tables of the queue are missing or of another version; nothing was written.
        """

        def write() -> SessionId:
            dialog = self._agent(session, create=True).current_dialog
            (message,) = dialog.opened.stamped(UserMessage(content=text))
            annotate(dialog.store, dialog.dialog_id, Inbox(message=message))
            return self._wake(dialog.session_id)

        return await self._written(write)

    async def decide(self, session: str, call_id: str, decision: Decision) -> None:
        """Record a decision about a call that waits, and wake the session, in one transaction.

        Raises:
            NotFound: There is no such session, or no such call is open.
            StoreError: As for `say`.
        """

        def write() -> None:
            dialog = self._agent(session).current_dialog
            decide(dialog, call_id, decision)
            self._wake(dialog.session_id)

        await self._written(write)

    async def wake_at(self, session: str, when: datetime) -> None:
        """Have a session looked at later: what waits then is done, a turn that failed is continued, and an agent's `approve` is asked again.

        Args:
            session: The session's id or name.
            when: The time, with its time zone.

        Raises:
            InvalidInput: The time has no time zone.
            NotFound: There is no such session.
            StoreError: As for `say`.
        """
        if when.tzinfo is None:
            raise InvalidInput(f"{when!r} has no time zone.", hint="Pass datetime.now(UTC) + timedelta(...).")
        await self._written(lambda: self._put_later(Session.open(self.store, session).session_id, at=when))

    async def cancel(self, session: str) -> None:
        """Interrupt a session's turn, wherever it runs. Nothing continues until something new is said or decided; what was said is answered then.

        Raises:
            NotFound: There is no such session.
            StoreError: As for `say`.
        """

        def write() -> None:
            dialog = self._agent(session).current_dialog
            annotate(dialog.store, dialog.dialog_id, Custom(custom_type=CANCELLED, data={}))
            self._ask(_ABORT, session=dialog.session_id)

        await self._written(write)

    async def sweep(self, since: float = 0.0) -> int:
        """Wake the sessions of the fleet's agents that have something to do and no job, and return how many there were.

        Only what is written past the fleet needs this, such as `agent.receive`. A worker does it every ten minutes for the last hour.

        Args:
            since: The time after which sessions were last active, in seconds since 1970-01-01 UTC.
        """
        return await self._done(partial(self._sweep, since))

    async def jobs(self, limit: int = 1000) -> tuple[QueuedRow, ...]:
        """Return the sessions that have a job, that failed, or that wait for a person, the oldest first.

        Args:
            limit: How many sessions are looked at for calls that wait for a person, the last active ones.
        """
        return await self._done(partial(self._jobs, limit))

    # --- workers ------------------------------------------------------------------------------------------------------------------

    async def work(self, concurrency: int = 16, *, grace: float = 10.0) -> None:
        """Bring sessions to rest until cancelled; look for jobs of workers that died, too.

        A worker that loses its database waits for it. Cancelled, it ends its turns within `grace` seconds or interrupts them, and other workers
        continue them.

        Args:
            concurrency: How many sessions at once.
            grace: How many seconds running turns have to end.

        Raises:
            InvalidInput: The app's connector is not a `PsycopgConnector`, or it is one of another database than the store's.
            StoreError: The tables of the queue are missing or of another version, or no server answers.
        """
        await self._done(lambda: None)
        async with self._opened():
            tending = asyncio.create_task(self._tend())
            try:
                while True:
                    with suppress(ConnectorException):
                        await self.app.run_worker_async(
                            queues=[self.queue],
                            concurrency=concurrency,
                            fetch_job_polling_interval=_POLL_SECONDS,
                            shutdown_graceful_timeout=grace,
                            delete_jobs="successful",
                            install_signal_handlers=False,
                            update_heartbeat_interval=self.stale / _BEATS,
                            stalled_worker_timeout=self.stale,
                        )
                    # it ended by itself: its database went away, or it was taken for dead and removed
                    await asyncio.sleep(_AGAIN_SECONDS)
            finally:
                tending.cancel()
                await asyncio.gather(tending, return_exceptions=True)

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[None]:
        """Open the app unless it is open, and see that its database is the store's."""
        connector = self.app.connector
        if not isinstance(connector, procrastinate.PsycopgConnector):
            raise InvalidInput(f"The app's connector is {connector!r}.", hint="Pass a PsycopgConnector.")
        opens = False
        try:
            _ = connector.pool
        except AppNotOpen:
            opens = True
            await self.app.open_async()
        try:
            there = await connector.execute_query_one_async(_HERE)
            ((*here,),) = await self._done(partial(self._ask, _HERE))
            if list(there.values()) != here:
                raise InvalidInput(
                    f"The app has its queue in another place than {self.store.place}, schema {self.schema} of the queue.",
                    hint="Both need one database. Pass schema= if the connector's search_path names one.",
                )
            yield
        finally:
            if opens:
                await self.app.close_async()

    async def _tend(self) -> None:
        """End the jobs of dead workers again and again, and now and then look for forgotten sessions. Every worker does so."""
        swept = 0.0
        while True:
            try:
                await self._done(self._reap)
                if now() - swept > _SWEEP_SECONDS:
                    swept = now()
                    await self.sweep(swept - _SWEPT_SECONDS)
            except PalaverError as error:
                _LOG.warning("The queue could not be tended: %s", error)
            await asyncio.sleep(self.stale / _BEATS)

    # --- jobs ---------------------------------------------------------------------------------------------------------------------

    async def _later(self, context: JobContext, session: str) -> None:
        """Wake a session: a job that waits for its time must not have the session's lock, which would keep others from running."""
        await self._done(partial(self._wake, SessionId(session), context.job.attempts))

    async def _rest(self, context: JobContext, session: str) -> None:
        """Bring a session to rest. One that was erased meanwhile is at rest."""
        session_id, tried = SessionId(session), context.job.attempts
        try:
            await self._brought_to_rest(session_id)
        except asyncio.CancelledError:
            if context.abort_reason() is AbortReason.SHUTDOWN:  # another worker continues
                await self._done(partial(self._wake, session_id, tried))
            raise
        except PalaverError as error:
            if await self._done(partial(self._record, session_id)) is None:
                return
            wait = _passes(error)
            if wait is None or tried >= len(self.backoff):
                raise
            _LOG.warning("Session %s is tried again: %s", session, error)
            after = max(self.backoff[tried], wait)
            await self._done(partial(self._put_later, session_id, attempts=tried + 1, after=after))

    async def _brought_to_rest(self, session_id: SessionId) -> None:
        if await self._done(partial(self._record, session_id)) is None:
            return
        agent = await self._done(partial(self._agent, session_id))
        store, dialog_id = agent.current_dialog.store, agent.current_dialog.dialog_id
        while True:
            needs = await self._done(partial(attention, store, dialog_id))
            if needs is Attention.NONE or (needs is Attention.PERSON and agent.options.approve is None):
                return
            trace = await agent.arespond(return_session=True, take_over=True)
            if trace.state == "waiting":
                return

    # --- the store and the queue, in a worker thread --------------------------------------------------------------------------------

    async def _done(self, work: Callable[[], T]) -> T:
        """Do something with the store, and return what it returns."""

        def checked() -> T:
            self._require_queue()
            return work()

        return await in_thread(self.store, checked)

    async def _written(self, write: Callable[[], T]) -> T:
        """Write something in one transaction."""

        def whole() -> T:
            with self.store.transaction():
                return write()

        return await self._done(whole)

    def _agent(self, reference: str, *, create: bool = False) -> Agent[Any]:
        """Return the agent of a session, with its dialog active."""
        try:
            session = Session.open(self.store, reference)
        except NotFound:
            if not create:
                raise
            agent = self._own(reference)
            return agent.open(reference, session_name=reference, resume=True)
        return self._own(session.name).resume(session.session_id)

    def _own(self, name: str) -> Agent[Any]:
        agent = self._agent_for(name)
        if getattr(agent.store, "inner", agent.store) is not self.store:
            hint = "Pass the fleet's store to the agent: both write in one transaction."
            raise InvalidInput(f"agent_for({name!r}) returned an agent of another store.", hint=hint)
        return agent

    def _record(self, session_id: SessionId) -> SessionRecord | None:
        """Return the record of a session, or None for one that was erased or lies in the trash."""
        try:
            record = self.store.session(session_id)
        except (NotFound, Erased):
            return None
        return record if record.trashed_at is None else None

    @contextmanager
    def _queued(self) -> Iterator[Any]:
        """Lend the connection of the store's transaction, with the tables of the queue in its search path until the end of the transaction."""
        with self.store.connection() as connection:
            connection.execute("SELECT set_config('search_path', %s, true)", (self._path,))
            yield connection

    def _ask(self, sql: str, **values: object) -> list[tuple[Any, ...]]:
        with self._queued() as connection:
            rows: list[tuple[Any, ...]] = connection.execute(sql, values).fetchall()
            return rows

    def _wake(self, session_id: SessionId, attempts: int = 0) -> SessionId:
        """Put the job of a session into the queue, unless one waits."""
        self._put(session_id, self._rest_task, lock=session_id, queueing_lock=session_id, attempts=attempts)
        return session_id

    def _put_later(
        self, session_id: SessionId, *, at: datetime | None = None, after: float = 0.0, attempts: int = 0
    ) -> None:
        """Put a job into the queue that will wake a session: at a time, or after a failure; of the latter one waits."""
        waiting = None if at else f"{session_id} again"
        self._put(session_id, self._later_task, queueing_lock=waiting, attempts=attempts, at=at, after=after)

    def _put(self, session_id: SessionId, task: str, **values: object) -> None:
        default = {"lock": None, "at": None, "after": None}
        self._ask(_PUT, **default | values, queue=self.queue, task=task, session=session_id)

    def _reap(self) -> int:
        """End the jobs of dead workers, put their successors into the queue, and return how many ended."""
        tasks = [self._rest_task, self._later_task]
        values = {"queue": self.queue, "task": self._rest_task, "tasks": tasks, "most": len(self.backoff)}
        ((ended, _),) = self._ask(_REAP, **values, stale=self.stale)
        return int(ended)

    def _sweep(self, since: float) -> int:
        woken, after = 0, None
        while page := tuple(self.store.sessions(limit=_PAGE, after=after)):
            after = page[-1]
            recent = [record for record in page if record.updated_at >= since]
            queued = {name for (name,) in self._ask(_QUEUED, sessions=[record.session_id for record in recent])}
            for record in recent:
                if record.session_id not in queued and self._forgotten(record):
                    self._wake(record.session_id)
                    woken += 1
            if after.updated_at < since:
                break
        return woken

    def _jobs(self, limit: int) -> tuple[QueuedRow, ...]:
        listed = self._ask(_LISTED, tasks=[self._rest_task, self._later_task], stale=self.stale)
        rows = []
        for session_id, state, attempts, since in listed:
            record = self._record(session_id)
            # a job that failed stays in its table; whether its session was answered since, the log knows
            if record is not None and (state != "failed" or self._needs(record) is Attention.STOPPED):
                rows.append(
                    QueuedRow(session=record.session_id, name=record.name, state=state, since=since, attempts=attempts)
                )
        queued = {row["session"] for row in rows}
        for record in self.store.sessions(limit=limit):
            last = None if record.root is None else self.store.last(record.root)
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
            agent = self._agent(record.session_id)
        except PalaverError as error:  # no session of the fleet
            _LOG.debug("Session %s is left alone: %s", record.session_id, error)
            return Attention.NONE
        dialog = agent.current_dialog
        return attention(dialog.store, dialog.dialog_id) if dialog.owner == agent.name else Attention.NONE

    def _forgotten(self, record: SessionRecord) -> bool:
        """Return whether a dialog of the fleet's agents needs work. Most end with the end of a turn, and nothing more is read of them."""
        nodes = [node for node in self.store.nodes(record.session_id) if node.relation != "subagent"]
        lasts = [self.store.last(node.dialog_id) for node in nodes]
        if all(last.kind == "turn_ended" for last in lasts):
            return False
        # a turn that is open without a job may be another program's, which has some time for its next step
        if any(last.open_turn >= 0 and now() - last.at < _SWEEP_SECONDS for last in lasts):
            return False
        return self._needs(record) is Attention.WORK

    def _require_queue(self) -> None:
        """Raise unless the tables of the queue are those of the installed procrastinate.

        Raises:
            StoreError: They are missing, or of another version.
        """
        if self._checked:
            return
        lacking = [name for (name,) in self._ask(_LACKING, names=_NEEDED, path=self._path)]
        if lacking:
            place, version = f"schema {self.schema} of {self.store.place}", procrastinate.__version__
            if len(lacking) == len(_NEEDED):
                hint = "Make them: `procrastinate --app=MODULE.app schema --apply`; or name the schema that has them."
                raise StoreError(f"The queue has no tables in {place}.", reason="unsupported", hint=hint)
            hint = "Apply its migrations (procrastinate.readthedocs.io, howto/production/migrations), or install the version of the tables."
            raise StoreError(
                f"The tables of the queue in {place} are of another version: procrastinate {version} needs {', '.join(lacking)}.",
                reason="unsupported",
                hint=hint,
            )
        self._checked = True


def _passes(error: PalaverError) -> float | None:
    """Return after how many seconds at least a failure may pass, or None if it will not by itself."""
    cause = error.error if isinstance(error, AgentFailure) else error
    if getattr(cause, "retryable", False):
        return float(getattr(cause, "retry_after", None) or 0.0)
    passing = isinstance(cause, Conflict) or (isinstance(cause, StoreError) and cause.reason in {"", "unavailable"})
    return 0.0 if passing else None
