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
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from palaver.agent import Agent, Decision, ProviderInvoker, decide
from palaver.agent.attention import Attention, attention
from palaver.errors import (
    AgentFailure,
    Conflict,
    InvalidInput,
    MissingExtra,
    NotFound,
    PalaverError,
    StoreBusy,
    StoreError,
)
from palaver.ids import SessionId, now
from palaver.integrations.keyed import in_thread
from palaver.log.entries import Cancelled, Inbox
from palaver.messages import UserMessage
from palaver.session import Dialog, Session
from palaver.store import SessionRecord
from palaver.store.connect import find_session

try:
    import procrastinate
    from procrastinate.exceptions import AppNotOpen, ConnectorException, TaskAlreadyRegistered
    from procrastinate.job_context import AbortReason, JobContext
    from procrastinate.jobs import Job

    from palaver.integrations.fleet_queue import PLACE, SessionQueue
    from palaver.integrations.fleet_sessions import SWEEP_SECONDS, FleetSessions, QueuedRow
    from palaver.store.postgres import PostgresStore
except ModuleNotFoundError as error:
    if error.name and error.name.startswith("palaver"):
        raise
    raise MissingExtra("A fleet", "fleet", package="procrastinate") from error

T = TypeVar("T")

_LOG = logging.getLogger(__name__)

_BEATS = 3
"""How often a worker reports, and looks for stalled jobs, in the time after which it is taken for dead."""

_POLL_SECONDS = 0.2
"""How often a worker looks for jobs of which no announcement came: one that waited for the end of another of its session, or one that was announced
while procrastinate looked and found nothing. It costs half a percent of a core."""

_AGAIN_SECONDS = 1.0
"""How long a worker waits before it begins again after the database went away."""

_SLOT_SECONDS = 1.0
"""How long a session waits before it looks again whether its slots have room."""

_SWEPT_SECONDS = 3600.0
"""How far back a worker looks for sessions that were forgotten."""


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
        slots: How many sessions run at once, by what they share.
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
        slots: Mapping[str, int] | None = None,
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
            slots: How many sessions run at once, on all machines together: `tenant` of each tenant, `tenant:NAME` of one, `provider` with each
                provider, `provider:NAME` with one.
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
        for slot, most in (slots or {}).items():
            if slot.partition(":")[0] not in {"tenant", "provider"} or most < 1:
                hint = "Pass tenant, tenant:NAME, provider or provider:NAME, and how many sessions run at once."
                raise InvalidInput(f"slots has {slot!r}: {most!r}.", hint=hint)
        self.app = app
        self.store = store
        self.queue = queue
        self.schema = schema
        self.slots = dict(slots or {})
        self.backoff = tuple(backoff)
        self.stale = stale
        self._agent_for = agent_for
        self._jobs = SessionQueue(store, queue, schema)
        self._sessions = FleetSessions(store, self._jobs, self._agent_of)
        try:
            app.task(name=self._jobs.rest_task, queue=queue, pass_context=True)(self._rest)
            app.task(name=self._jobs.later_task, queue=queue, pass_context=True)(self._later)
        except TaskAlreadyRegistered as error:
            raise InvalidInput(
                f"The app has a fleet of the queue {queue!r}.", hint="Name another queue, or use that fleet."
            ) from error

    # --- what people and programs ask ---------------------------------------------------------------------------------------------

    async def say(self, session: str, text: str) -> SessionId:
        """Write a user's message to the inbox of a session, and wake it, in one transaction. Return the session's id.

        Args:
            session: The session's id or name. If it does not exist, its agent begins it.
            text: The message.

        Raises:
            StoreError: The store failed, or the tables of the queue are missing or of another version; nothing was written.
        """

        def write(dialog: Dialog) -> None:
            (message,) = dialog.opened.stamped(UserMessage(content=text))
            dialog.opened.annotate(Inbox(message=message))
            self._jobs.wake(dialog.session_id)

        return await self._written(session, write, create=True)

    async def decide(self, session: str, call_id: str, decision: Decision) -> None:
        """Record a decision about a call that waits, and wake the session, in one transaction.

        Raises:
            NotFound: There is no such session, or no such call is open.
            StoreError: As for `say`.
        """

        def write(dialog: Dialog) -> None:
            decide(dialog, call_id, decision)
            self._jobs.wake(dialog.session_id)

        await self._written(session, write)

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
        await self._done(lambda: self._jobs.wake_later(find_session(self.store, session)[0].session_id, at=when))

    async def cancel(self, session: str) -> None:
        """Interrupt a session's turn, wherever it runs. Nothing continues until something new is said or decided; what was said is answered then.

        Raises:
            NotFound: There is no such session.
            StoreError: As for `say`.
        """

        def write(dialog: Dialog) -> None:
            dialog.opened.annotate(Cancelled())
            self._jobs.abort(dialog.session_id)

        await self._written(session, write)

    async def sweep(self, since: float = 0.0) -> int:
        """Wake the sessions of the fleet's agents that have something to do and no job, and return how many there were.

        Only what is written past the fleet needs this, such as `agent.receive`. A worker does it every ten minutes for the last hour.

        Args:
            since: The time after which sessions were last active, in seconds since 1970-01-01 UTC.
        """
        return await self._done(partial(self._sessions.sweep, since))

    async def jobs(self, limit: int = 1000) -> tuple[QueuedRow, ...]:
        """Return the sessions that have a job, that failed, or that wait for a person, the oldest first.

        Args:
            limit: How many sessions are looked at for calls that wait for a person, the last active ones.
        """
        return await self._done(partial(self._sessions.listed, self.stale, limit))

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
            StoreError: The tables of the queue are missing or of another version, now or after a migration; or no server answers when it begins.
        """
        await self._done(partial(self._jobs.require, anew=True))
        async with self._opened():
            tending = asyncio.create_task(self._tend())
            try:
                while True:
                    await self._worked(concurrency, grace)
                    await asyncio.sleep(_AGAIN_SECONDS)
                    await self._surely(partial(self._jobs.require, anew=True))
            finally:
                tending.cancel()
                await asyncio.gather(tending, return_exceptions=True)

    async def _worked(self, concurrency: int, grace: float) -> None:
        """Work until the worker ends by itself: its database went away, or others removed it because it did not report."""
        try:
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
        except ConnectorException as error:
            _LOG.warning("The worker begins again: %s", error.__cause__ or error)

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[None]:
        """Open the app unless it is open, and see that its database is the store's."""
        connector = self.app.connector
        if not isinstance(connector, procrastinate.PsycopgConnector):
            raise InvalidInput(f"The app's connector is {connector!r}.", hint="Pass a PsycopgConnector.")
        try:
            _, opens = connector.pool, False
        except AppNotOpen:
            opens = True
        try:
            if await self._reached(connector, opens=opens) != await self._done(self._jobs.place):
                raise InvalidInput(
                    f"The app has its queue in another place than {self.store.place}, schema {self.schema} of the queue.",
                    hint="Both need one database. Pass schema= if the connector's search_path names one.",
                )
            yield
        finally:
            if opens:
                await self.app.close_async()

    async def _reached(self, connector: procrastinate.PsycopgConnector, *, opens: bool) -> tuple[Any, ...]:
        """Return where the app has its tables."""
        try:
            if opens:
                await self.app.open_async()
            return tuple((await connector.execute_query_one_async(PLACE)).values())
        except ConnectorException as error:
            raise StoreError(
                f"The database of the queue does not answer: {error.__cause__ or error}.",
                reason="unavailable",
                hint="Try again when it is back.",
            ) from error

    async def _tend(self) -> None:
        """End the jobs of dead workers again and again, and now and then look for forgotten sessions. Every worker does so."""
        swept = 0.0
        while True:
            try:
                await self._done(partial(self._jobs.reap, self.stale, len(self.backoff)))
                if now() - swept > SWEEP_SECONDS:
                    swept = now()
                    await self.sweep(swept - _SWEPT_SECONDS)
            except PalaverError as error:
                _LOG.warning("The queue could not be tended: %s", error)
            await asyncio.sleep(self.stale / _BEATS)

    # --- jobs ---------------------------------------------------------------------------------------------------------------------

    async def _later(self, context: JobContext, session: str) -> None:
        """Wake a session: a job that waits for its time must not have the session's lock, which would keep others from running."""
        await self._surely(partial(self._jobs.wake, SessionId(session), context.job.attempts))

    async def _rest(self, context: JobContext, session: str) -> None:
        """Bring a session to rest. One that was erased meanwhile is at rest."""
        session_id, tried = SessionId(session), context.job.attempts
        try:
            await self._brought_to_rest(session_id, context.job)
        except asyncio.CancelledError:
            if context.abort_reason() is AbortReason.SHUTDOWN:  # another worker continues
                await self._surely(partial(self._jobs.wake, session_id, tried))
            raise
        except PalaverError as error:
            if await self._surely(partial(self._sessions.record, session_id)) is None:
                return
            wait = _passes(error)
            if wait is None or tried >= len(self.backoff):
                raise
            _LOG.warning("Session %s is tried again: %s", session, error)
            after = max(self.backoff[tried], wait)
            await self._surely(partial(self._jobs.wake_later, session_id, attempts=tried + 1, after=after))

    async def _surely(self, work: Callable[[], T]) -> T:
        """Do something with the store, and wait for one that does not answer: a job that ended before its successor waits would be lost.

        If this worker dies meanwhile, its job has not ended, and another worker's loop finds it.
        """
        while True:
            try:
                return await self._done(work)
            except PalaverError as error:
                if _passes(error) is None:
                    raise
                _LOG.warning("The queue waits for its database: %s", error)
                await asyncio.sleep(_AGAIN_SECONDS)

    async def _brought_to_rest(self, session_id: SessionId, job: Job) -> None:
        agent = await self._done(partial(self._taken, session_id, job))
        if agent is None:
            return
        traced = getattr(agent.options.tracer, "job", None)  # of a `Telemetry`, whose package may be missing
        with traced(self.queue, job.id, session_id) if traced else nullcontext():
            while (await agent.arespond(return_session=True, take_over=True)).state != "waiting":
                if not await self._done(partial(_is_needed, agent)):
                    return

    def _taken(self, session_id: SessionId, job: Job) -> Agent[Any] | None:
        """Return the agent of a session; None if it has nothing to do, if the session is gone, or if its slots have no room, when it waits for them."""
        record = self._sessions.record(session_id)
        if record is None:
            return None
        agent = self._agent_of(record)
        if not _is_needed(agent):
            return None
        slots = dict(self._slots(record, agent))
        if slots and not self._jobs.take(job.id, slots):
            self._jobs.wake_later(session_id, attempts=job.attempts, after=_SLOT_SECONDS)
            return None
        return agent

    def _slots(self, record: SessionRecord, agent: Agent[Any]) -> Iterator[tuple[str, int]]:
        """Yield the slots that a session needs, each with its size."""
        provider = agent.llm_invoker.provider.name if isinstance(agent.llm_invoker, ProviderInvoker) else ""
        for kind, name in (("tenant", record.tenant), ("provider", provider)):
            most = self.slots.get(f"{kind}:{name}", self.slots.get(kind))
            if name and most is not None:
                yield f"{kind}:{name}", most

    # --- the store and the queue, in a worker thread --------------------------------------------------------------------------------

    async def _done(self, work: Callable[[], T]) -> T:
        """Do something with the store, and return what it returns."""

        def checked() -> T:
            self._jobs.require()
            return work()

        return await in_thread(self.store, checked)

    async def _written(self, session: str, write: Callable[[Dialog], None], *, create: bool = False) -> SessionId:
        """Write something in one transaction to the dialog of a session, and return the session's id. What is read before is not part of it."""

        def whole() -> SessionId:
            try:
                dialog = self._agent_of(find_session(self.store, session)[0]).current_dialog
            except NotFound:
                if not create:
                    raise
                dialog = None
            with self.store.transaction():
                dialog = dialog or self._own(session).open(session, session_name=session, resume=True).current_dialog
                write(dialog)
            return dialog.session_id

        return await self._done(whole)

    def _agent_of(self, record: SessionRecord) -> Agent[Any]:
        agent = self._own(record.name)
        return agent.resume(Session(agent.store, record.session_id, agent.runtime, active=record.updated_at))

    def _own(self, name: str) -> Agent[Any]:
        agent = self._agent_for(name)
        if getattr(agent.store, "inner", agent.store) is not self.store:
            hint = "Pass the fleet's store to the agent: both write in one transaction."
            raise InvalidInput(f"agent_for({name!r}) returned an agent of another store.", hint=hint)
        return agent


def _is_needed(agent: Agent[Any]) -> bool:
    """Return whether an agent has something to do in its dialog, its approver included."""
    dialog = agent.current_dialog
    needs = attention(dialog.store, dialog.dialog_id, dialog.opened.recent)
    return needs is not Attention.NONE and (needs is not Attention.PERSON or agent.options.approve is not None)


def _passes(error: PalaverError) -> float | None:
    """Return after how many seconds at least a failure may pass, or None if it will not by itself."""
    cause = error.error if isinstance(error, AgentFailure) else error
    if getattr(cause, "retryable", False):
        return float(getattr(cause, "retry_after", None) or 0.0)
    passing = isinstance(cause, Conflict | StoreBusy) or getattr(cause, "reason", "") == "unavailable"
    return 0.0 if passing else None
