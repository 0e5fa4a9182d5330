"""Fleets: agents on procrastinate over PostgreSQL, both real."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from palaver import MemoryStore, Session, erase, tool
from palaver.agent import Decision
from palaver.agent.telemetry import Telemetry
from palaver.errors import InvalidInput, NotFound, ProviderError, StoreBusy, StoreError
from palaver.ids import SessionId, now
from palaver.store.postgres import PostgresStore
from palaver.store.postgres.opening import address
from palaver.wire import Request
from tests import postgres
from tests.journeys import counted
from tests.postgres_wheel import wheel_server
from tests.threads import WAIT

procrastinate = pytest.importorskip("procrastinate", reason="procrastinate is not installed: ./run setup")

from opentelemetry.sdk.trace import TracerProvider  # noqa: E402 - only in the environment that has procrastinate
from opentelemetry.sdk.trace.export import SimpleSpanProcessor  # noqa: E402 - the same
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter  # noqa: E402 - the same
from opentelemetry.trace import SpanKind, StatusCode  # noqa: E402 - the same

from palaver.integrations.fleet import Fleet  # noqa: E402 - only where procrastinate is
from tests.integrations.fleets import (  # noqa: E402 - the same
    Answer,
    Yard,
    calls_tool,
    charging,
    make_tables,
    queue_app,
    start_worker,
)

NewYard = Callable[..., Yard]


@pytest.fixture
def yard(postgres_server: postgres.Server) -> Iterator[NewYard]:
    """Return a function that makes a fleet whose model answers with a function."""
    with ExitStack() as stack:

        def make(answer: Answer, **options: Any) -> Yard:  # noqa: ANN401 - those of a fleet
            url = postgres_server.url()
            made = Yard(url, answer, **options)
            stack.callback(made.store.close)
            make_tables(url)
            return made

        yield make


def reap(till: Yard) -> int:
    """End the jobs of dead workers now."""
    return till.fleet._jobs.reap(till.fleet.stale, len(till.fleet.backoff))


def echo(request: Request) -> object:
    """Answer with what was said last."""
    return f"You said: {request.body['messages'][-1]['content']}"


class HangsOnce:
    """A model that does not answer its first request, and then with what was said last."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def __call__(self, request: Request) -> object:
        """Answer, or wait."""
        if not self.asked.is_set():
            self.asked.set()
            await asyncio.Event().wait()
        return echo(request)


def test_said_is_answered(yard: NewYard) -> None:
    """What is said to a session, which begins with it, is answered by a worker; its job is gone then, and another message finds the same session."""
    till = yard(echo)

    async def work() -> None:
        first = await till.fleet.say("till 1", "one")
        assert till.jobs() == [("sessions", "todo")]
        async with till.worker():
            await till.settled()
            assert await till.fleet.say("till 1", "two") == first == await till.fleet.say(first, "three")
            await till.settled()

    asyncio.run(work())
    said = till.texts("till 1")
    assert said[:2] == ["one", "You said: one"]
    assert {"two", "three"} < set(said)
    assert said[-1] == "You said: three"
    assert till.jobs() == []


def test_turn_of_a_fleet_takes_few_journeys(postgres_server: postgres.Server) -> None:
    """Saying something takes 6 journeys and a commit; the worker's turn takes 8 and 3, as many as the agent that opens its session by itself."""
    url = postgres_server.url()
    with counted(postgres_server.folder) as (folder, traffic):
        till = Yard(url, echo, store=PostgresStore(url.replace(str(postgres_server.folder), str(folder))), stale=600)
        make_tables(url)

        def within(journeys: int, statements: int, commits: int) -> None:
            assert traffic.journeys <= journeys, traffic
            assert traffic.statements <= statements, traffic
            assert traffic.commits <= commits, traffic

        async def work() -> None:
            async with till.worker():
                for text in ("one", "two"):
                    await till.fleet.say("till 1", text)
                    await till.settled()
                traffic.clear()
                await till.fleet.say("till 1", "three")
                await till.settled()
                within(14, 46, 4)
            traffic.clear()
            await till.fleet.say("till 1", "four")
            within(6, 16, 1)

        asyncio.run(work())
        till.store.close()


def test_said_during_a_run_needs_one_job_more(yard: NewYard) -> None:
    """What is said while a session's job runs is answered, and however much it is, one job waits."""
    asked, go = asyncio.Event(), asyncio.Event()

    async def answer(request: Request) -> object:
        asked.set()
        await go.wait()
        return echo(request)

    till = yard(answer)

    async def work() -> None:
        async with till.worker():
            await till.fleet.say("till 1", "one")
            await asked.wait()
            await till.fleet.say("till 1", "two")
            await till.fleet.say("till 1", "three")
            assert till.jobs() == [("sessions", "doing"), ("sessions", "todo")]
            go.set()
            await till.settled()

    asyncio.run(work())
    said = till.texts("till 1")
    assert [text for text in said if not text.startswith("You")] == ["one", "two", "three"]
    assert said[-1] == "You said: three"


def test_job_is_not_fetched_before_what_woke_it_is_written(yard: NewYard) -> None:
    """A job that waits already is not fetched while a transaction adds a message for it: a worker would not see the message."""
    till = yard(echo)
    session = asyncio.run(till.fleet.say("till 1", "one"))
    ((worker,),) = till.ask("SELECT worker_id FROM procrastinate_register_worker_v1()")

    def fetched() -> object:
        ((job,),) = till.ask("SELECT id FROM procrastinate_fetch_job_v2(ARRAY['sessions'], %s)", worker)
        return job

    with till.store.transaction():
        till.fleet._jobs.wake(session)
        assert fetched() is None
    assert fetched() is not None


def test_killed_worker_leaves_an_unknown_call(yard: NewYard, tmp_path: Path) -> None:
    """A worker killed in a tool: another takes the session up, the tool does not run again, and the model reads that its effect is unknown."""
    till = yard(calls_tool, stale=1.5)
    till.tools = [charging(tmp_path, stuck=False)]
    charged = tmp_path / "charged"

    async def work() -> None:
        await till.fleet.say("till 1", "lamp")
        process = start_worker(till.url, tmp_path)
        await till.until(charged.exists)
        process.send_signal(signal.SIGKILL)
        process.wait()
        await till.fleet.say("till 1", "chair")
        async with till.worker():
            await till.settled()

    asyncio.run(work())
    assert sorted(charged.read_text().split()) == ["chair", "lamp"]
    results = [message for message in till.messages("till 1") if message.role == "tool"]
    assert ["unknown" in str(message.content) for message in results] == [True, False]
    assert till.texts("till 1")[-1].startswith("Done: chair is charged")


def test_stopped_worker_does_nothing_twice(yard: NewYard, tmp_path: Path) -> None:
    """A worker stopped in a tool for longer than `stale`: another takes the session up; what the first one does when it goes on is refused.

    An effect outside can refuse it, too: the fence that its tool reads is smaller.
    """
    till = yard(calls_tool, stale=1.5)
    till.tools = [charging(tmp_path, stuck=False)]
    charged = tmp_path / "charged"

    async def work() -> None:
        await till.fleet.say("till 1", "lamp")
        process = start_worker(till.url, tmp_path)
        await till.until(charged.exists)
        process.send_signal(signal.SIGSTOP)
        async with till.worker():
            await till.until(lambda: till.texts("till 1")[-1].startswith("Done"))
            (tmp_path / "go").touch()
            process.send_signal(signal.SIGCONT)
            await till.fleet.say("till 1", "chair")
            await till.until(lambda: till.texts("till 1")[-1].startswith("Done: chair"))
            await till.until(lambda: (tmp_path / "lamp").is_file() and (tmp_path / "lamp").read_text())
        process.send_signal(signal.SIGKILL)
        process.wait()

    asyncio.run(work())
    assert sorted(charged.read_text().split()) == ["chair", "lamp"]
    assert int((tmp_path / "lamp").read_text()) < int((tmp_path / "chair").read_text())
    assert "unknown" in next(text for text in till.texts("till 1") if text.startswith("Done"))


def test_decision_wakes_its_session(yard: NewYard) -> None:
    """A turn that waits for a person needs no job; the decision, from any process, wakes the session."""

    @tool(needs_approval=True)
    def charge(what: str) -> str:
        """Charge something."""
        return f"{what} is charged"

    till = yard(calls_tool)
    till.tools = [charge]

    async def work() -> None:
        async with till.worker():
            await till.fleet.say("till 1", "lamp")
            await till.settled()
            (call,) = till.agent("").resume("till 1").waiting
            with pytest.raises(NotFound, match="open call"):
                await till.fleet.decide("till 1", "another", Decision(decision="approve"))
            assert till.jobs() == []
            await till.fleet.decide("till 1", call.id, Decision(decision="approve", by="ann"))
            await till.settled()

    asyncio.run(work())
    assert till.texts("till 1")[-1] == "Done: lamp is charged"


def test_session_wakes_at_its_time(yard: NewYard) -> None:
    """At its time a session is looked at again: an approver that had left a call to others may decide then."""
    late: list[bool] = []

    @tool(needs_approval=True)
    def charge(what: str) -> str:
        """Charge something."""
        return f"{what} is charged"

    till = yard(calls_tool)
    till.tools, till.options = [charge], {"approve": lambda _call: False if late else None}

    async def work() -> None:
        async with till.worker():
            session = await till.fleet.say("till 1", "lamp")
            await till.settled()
            late.append(True)
            ((moment,),) = till.ask("SELECT now()")
            with pytest.raises(InvalidInput, match="time zone"):
                await till.fleet.wake_at("till 1", moment.replace(tzinfo=None))
            await till.fleet.wake_at("till 1", moment + timedelta(hours=1))
            await till.fleet.wake_at(session, moment)
            await till.until(lambda: till.jobs() == [("sessions.later", "todo")])

    asyncio.run(work())
    assert till.texts("till 1")[-1].startswith("Done")


def test_failure_that_may_pass_is_tried_again(yard: NewYard) -> None:
    """After an overload of the provider a session is tried again as often as `backoff` has waits; then, and after any other failure, the job has failed."""
    errors = [ProviderError("overloaded", kind="down"), ProviderError("overloaded", kind="down")]
    waits = (0.05, 0.1)

    def answer(request: Request) -> object:
        said = request.body["messages"][-1]["content"]
        if said == "never":
            raise ProviderError("overloaded", kind="down")
        if said == "refused":
            raise ProviderError("no", kind="refused")
        if errors:
            raise errors.pop()
        return echo(request)

    till = yard(answer, backoff=waits)
    till.options = {"max_llm_recall": 0}

    async def work() -> None:
        async with till.worker():
            await till.fleet.say("till 1", "one")
            await till.settled()
            asked = len(till.provider.requests)
            assert till.texts("till 1")[-1] == "You said: one"
            await till.fleet.say("till 2", "never")
            await till.settled()
            assert len(till.provider.requests) - asked == len(waits) + 1
            await till.fleet.say("till 3", "refused")
            await till.settled()
            assert len(till.provider.requests) - asked == len(waits) + 2

    asyncio.run(work())
    assert till.jobs() == [("sessions", "failed")] * 2


def test_job_waits_for_its_database(caplog: pytest.LogCaptureFixture) -> None:
    """A job whose database goes away in its turn does not end before its successor waits there: the message is answered when the database is back.

    Without the database nothing is said, and no worker begins.
    """
    killed: list[Request] = []
    with wheel_server() as server:
        url = server.url()

        def answer(request: Request) -> object:
            if not killed:
                killed.append(request)
                server.kill()
            return echo(request)

        till = Yard(url, answer, store=PostgresStore(url, wait=1), stale=600)
        make_tables(url)

        async def work() -> None:
            async with till.worker():
                await till.fleet.say("till 1", "one")
                await till.until(lambda: "The queue waits for its database" in caplog.text)
                server.start()
                await till.until(lambda: till.texts("till 1")[-1:] == ["You said: one"])
                await till.settled()

        asyncio.run(work())
        assert "failed" not in {status for _, status in till.jobs()}
        server.kill()
        for asked in (till.fleet.say("till 1", "two"), till.fleet.work()):
            with pytest.raises(StoreError, match=r"does not answer.*(?i:try again when it is back)"):
                asyncio.run(asked)
        till.store.close()


def test_slots_bound_what_runs_at_once(yard: NewYard) -> None:
    """Of the sessions of a tenant, or of all that ask a provider, no more than its slots run at once, on all workers together; all are answered."""
    running: Counter[str] = Counter()
    most: Counter[str] = Counter()

    async def answer(request: Request) -> object:
        tenant = request.body["messages"][-1]["content"]
        for name in (tenant, "all"):
            running[name] += 1
            most[name] = max(most[name], running[name])
        await asyncio.sleep(0.1)
        for name in (tenant, "all"):
            running[name] -= 1
        return "Done"

    till = yard(answer, slots={"tenant": 2, "tenant:small": 1, "provider:scripted": 3})

    async def work() -> None:
        for number in range(9):
            tenant = ("small", "large", "others")[number % 3]
            session = await till.fleet.say(f"till {number}", tenant)
            till.ask("UPDATE sessions SET tenant = %s WHERE session_id = %s", tenant, session)
        async with till.worker(concurrency=9):
            await till.settled()

    asyncio.run(work())
    assert [till.texts(f"till {number}")[-1] for number in range(9)] == ["Done"] * 9
    assert all(most[name] <= room for name, room in {"small": 1, "large": 2, "others": 2, "all": 3}.items()), most
    with pytest.raises(InvalidInput, match="slots has 'weather': 1"):
        Fleet(queue_app(till.url), till.store, till.agent, slots={"weather": 1})


@pytest.mark.parametrize("pruned", [False, True])
def test_stalled_job_ends_and_its_successor_works(yard: NewYard, *, pruned: bool) -> None:
    """A job whose worker stopped reporting, or was removed from the table of workers, ends; one successor waits, though there was one before."""
    till = yard(echo, stale=5)
    asyncio.run(till.fleet.say("till 1", "one"))
    asyncio.run(till.fleet.say("till 2", "two"))
    ((worker,),) = till.ask("SELECT worker_id FROM procrastinate_register_worker_v1()")
    for _ in range(2):
        till.ask("SELECT procrastinate_fetch_job_v2(ARRAY['sessions'], %s)", worker)
    asyncio.run(till.fleet.say("till 1", "three"))
    assert reap(till) == 0
    till.ask("UPDATE procrastinate_workers SET last_heartbeat = now() - interval '1 minute'")
    if pruned:
        till.ask("SELECT procrastinate_prune_stalled_workers_v1(30)")
    assert reap(till) == 2
    assert sorted(till.jobs()) == sorted([("sessions", "aborted")] * 2 + [("sessions", "todo")] * 2)
    assert reap(till) == 0

    async def work() -> None:
        async with till.worker():
            await till.settled()

    asyncio.run(work())
    assert till.texts("till 1")[-1] == "You said: three"
    assert till.texts("till 2")[-1] == "You said: two"


def test_job_that_kills_its_workers_has_failed(yard: NewYard) -> None:
    """A session whose job ended as many workers as `backoff` allows attempts is not given to another one."""
    till = yard(echo, backoff=(1, 1))
    asyncio.run(till.fleet.say("till 1", "one"))
    for _ in range(3):
        ((worker,),) = till.ask("SELECT worker_id FROM procrastinate_register_worker_v1()")
        till.ask("SELECT procrastinate_fetch_job_v2(ARRAY['sessions'], %s)", worker)
        till.ask("DELETE FROM procrastinate_workers")
        assert reap(till) == 1
    assert [status for _, status in till.jobs()] == ["aborted", "aborted", "failed"]


def test_erased_session_needs_nothing(yard: NewYard) -> None:
    """The job of a session that was erased or moved to the trash while it waited ends without a word; so does one whose session is erased in its turn."""

    async def answer(request: Request) -> object:
        await asyncio.to_thread(lambda: erase(till.store, session=Session.open(till.store, "till 3").session_id))
        return echo(request)

    till = yard(answer)

    async def work() -> None:
        session = await till.fleet.say("till 1", "one")
        other = await till.fleet.say("till 2", "two")
        await asyncio.to_thread(partial(till.store.update_session, other, trashed_at=now()))
        await asyncio.to_thread(partial(erase, till.store, session=session))
        async with till.worker():
            await till.settled()
            assert till.provider.requests == []
            await till.fleet.say("till 3", "three")
            await till.settled()

    asyncio.run(work())
    assert till.jobs() == []
    assert len(till.provider.requests) == 1


def test_cancelled_turn_goes_on_when_asked(yard: NewYard) -> None:
    """A turn that is cancelled while a model answers, in whatever process, stops; neither its job nor a sweep continues it, but the next message does."""
    answer = HangsOnce()
    till = yard(answer)

    async def work() -> None:
        async with till.worker():
            await till.fleet.say("till 1", "one")
            await answer.asked.wait()
            await till.fleet.say("till 1", "two")
            await till.fleet.cancel("till 1")
            await till.settled()
            assert await till.fleet.sweep() == 0
            assert len(till.provider.requests) == 1
            await till.fleet.say("till 1", "three")
            await till.settled()

    asyncio.run(work())
    assert till.texts("till 1") == ["one", "two", "three", "You said: three"]


def test_worker_that_ends_leaves_its_session_to_others(yard: NewYard) -> None:
    """A worker that is stopped interrupts its turns, and another worker continues them at once."""
    answer = HangsOnce()
    till = yard(answer)

    async def work() -> None:
        async with till.worker():
            await till.fleet.say("till 1", "one")
            await answer.asked.wait()
        async with till.worker():
            await till.settled()

    asyncio.run(work())
    assert till.texts("till 1") == ["one", "You said: one"]


def test_turn_is_inside_the_span_of_its_job(yard: NewYard) -> None:
    """With `Telemetry`, each job is a span with its queue, number and session, and the turns of the job are inside; one that fails says with what."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))

    def answer(request: Request) -> object:
        said = request.body["messages"][-1]["content"]
        return echo(request) if said == "fine" else 1 / 0

    till = yard(answer)
    till.options = {"tracer": Telemetry(provider), "max_llm_recall": 0}

    async def work() -> SessionId:
        async with till.worker():
            session = await till.fleet.say("till 1", "fine")
            await till.settled()
            await till.fleet.say("till 2", "not")
            await till.settled()
        return session

    session = asyncio.run(work())
    names = ["chat gpt-4o", "invoke_agent clerk", "process sessions"]
    spans = exporter.get_finished_spans()
    assert [span.name for span in spans] == names * 2
    (_, turn, job), (_, _, failed) = spans[:3], spans[3:]
    assert turn.parent == job.context
    assert job.parent is None
    assert job.kind is SpanKind.CONSUMER
    assert job.attributes is not None
    assert job.attributes["messaging.destination.name"] == "sessions"
    assert job.attributes["gen_ai.conversation.id"] == session
    assert (job.status.status_code, failed.status.description) == (StatusCode.UNSET, "AgentFailure")


def test_sweep_finds_what_was_said_past_the_fleet(yard: NewYard) -> None:
    """A message that another program wrote without a job is found, once; sessions of other agents, and those at rest, are left alone."""
    till = yard(echo)

    async def work() -> None:
        async with till.worker():
            await till.fleet.say("till 1", "one")
            await till.settled()
        await till.agent("").resume("till 1").areceive("two")
        other = await Session.acreate(till.store, "elsewhere", owner="another")
        await (await other.aroot()).aappend({"role": "user", "content": "never mind"})
        assert [await till.fleet.sweep(), await till.fleet.sweep()] == [1, 0]
        async with till.worker():
            await till.settled()

    asyncio.run(work())
    assert till.texts("till 1")[-1] == "You said: two"


def test_tables_of_the_queue_in_another_schema_are_named(postgres_server: postgres.Server) -> None:
    """Where the queue's tables lie elsewhere, as in the schema of the role's name, the refusal says where."""
    url = postgres_server.url()
    till = Yard(url, echo)
    make_tables(url)
    elsewhere = Fleet(queue_app(url), till.store, lambda _: till.agent(""), schema="nowhere")
    with pytest.raises(StoreError, match=rf"no tables in schema nowhere.*has them: .*{address(url).schema}"):
        asyncio.run(elsewhere.say("till 1", "one"))
    till.store.close()


def test_queue_without_its_tables_is_refused(postgres_server: postgres.Server) -> None:
    """Missing tables, and those of another version, are named with what to do, and nothing is written."""
    url = postgres_server.url()
    till = Yard(url, echo)
    with pytest.raises(StoreError, match=r"has no tables in schema .* schema --apply"):
        asyncio.run(till.fleet.say("till 1", "one"))
    make_tables(url)
    till.ask("ALTER FUNCTION procrastinate_fetch_job_v2 RENAME TO procrastinate_fetch_job_v1")
    with pytest.raises(
        StoreError, match=r"another version: .* needs procrastinate_fetch_job_v2\. Apply its migrations"
    ):
        asyncio.run(till.fleet.work())
    till.ask("ALTER FUNCTION procrastinate_fetch_job_v1 RENAME TO procrastinate_fetch_job_v2")
    assert Session.list(till.store) == ()
    asyncio.run(till.fleet.say("till 1", "one"))
    till.store.close()


def test_queue_that_changes_ends_its_workers(yard: NewYard) -> None:
    """A worker whose tables are migrated away while it runs ends with what to do; what is said then is refused, and not written."""
    till = yard(echo)

    async def work() -> None:
        await till.fleet.say("till 1", "one")
        working = asyncio.create_task(till.fleet.work())
        await till.settled()
        till.ask("ALTER FUNCTION procrastinate_fetch_job_v2 RENAME TO procrastinate_fetch_job_v1")
        with pytest.raises(StoreError, match=r"another version: .* needs procrastinate_fetch_job_v2\. Apply"):
            await working
        till.ask("DROP TABLE procrastinate_jobs CASCADE")
        for _ in range(2):
            with pytest.raises(StoreError, match=r"another version|refused .*procrastinate_jobs.*migrations"):
                await till.fleet.say("till 1", "two")

    asyncio.run(work())
    assert till.texts("till 1") == ["one", "You said: one"]


def test_empty_pool_is_waited_for(postgres_server: postgres.Server, caplog: pytest.LogCaptureFixture) -> None:
    """While others use all connections of the store, saying something is refused with what to do, and a job waits; then it is answered."""
    url = postgres_server.url()
    till = Yard(url, echo, store=PostgresStore(url, connections=1, wait=0.1))
    make_tables(url)
    begun, over = threading.Event(), threading.Event()

    def occupied() -> None:
        with till.store.transaction():
            begun.set()
            over.wait(WAIT)

    async def work() -> None:
        session = await till.fleet.say("till 1", "one")
        async with till.worker():
            await till.settled()
            other = asyncio.create_task(asyncio.to_thread(occupied))
            await till.until(begun.is_set)
            with pytest.raises(StoreBusy, match=r"all 1 connections are in use.*Try again"):
                await till.fleet.say("till 1", "two")
            till.ask(
                "INSERT INTO procrastinate_jobs (queue_name, task_name, lock, args) "
                "VALUES ('sessions', 'palaver.sessions', %s, jsonb_build_object('session', %s::text))",
                session,
                session,
            )
            await till.until(lambda: "The queue waits for its database" in caplog.text)
            over.set()
            await other
            await till.fleet.say("till 1", "three")
            await till.settled()

    asyncio.run(work())
    assert till.texts("till 1")[-2:] == ["three", "You said: three"]
    till.store.close()


def test_queue_in_another_place_is_refused(postgres_server: postgres.Server) -> None:
    """The jobs lie in the store's database: a worker whose app looks elsewhere does not begin; a fleet has a store in PostgreSQL and its own queue."""
    here, there = postgres_server.url(), postgres_server.url()
    with PostgresStore(here) as store, PostgresStore(there):
        for url in (here, there):
            make_tables(url)
        app = queue_app(there)
        fleet = Fleet(app, store, lambda _: Yard(there, echo).agent(""), schema=address(here).schema)
        with pytest.raises(InvalidInput, match="Both need one database"):
            asyncio.run(fleet.work())
        with pytest.raises(InvalidInput, match="agent of another store"):
            asyncio.run(fleet.say("till 1", "one"))
        with pytest.raises(InvalidInput, match="has a fleet of the queue 'sessions'"):
            Fleet(app, store, lambda _: Yard(there, echo).agent(""))
        with pytest.raises(InvalidInput, match="PostgresStore"):
            Fleet(procrastinate.App(connector=app.connector), MemoryStore(), lambda _: Yard(there, echo).agent(""))  # type: ignore[arg-type]


def test_queue_shows_what_waits_and_why(yard: NewYard, tmp_path: Path) -> None:
    """`jobs`, and `palaver queue` with it, shows the sessions that wait, run, are stalled or failed, wait for a time or a person, and no others."""

    @tool(needs_approval=True)
    def charge(what: str) -> str:
        """Charge something."""
        return f"{what} is charged"

    def answer(request: Request) -> object:
        said = request.body["messages"][-1]["content"]
        if said == "refused":
            raise ProviderError("no", kind="refused")
        if said == "slow":
            raise ProviderError("overloaded", kind="down")
        return "Fine" if said == "fine" else calls_tool(request)

    till = yard(answer, backoff=(600,))
    till.tools, till.options = [charge], {"max_llm_recall": 0}

    async def work() -> None:
        async with till.worker():
            for said in ("fine", "refused", "slow", "lamp"):
                await till.fleet.say(said, said)
            await till.until(lambda: sorted(till.jobs()) == [("sessions", "failed"), ("sessions.later", "todo")])
        for name in ("stalled", "running"):
            till.ask("DELETE FROM procrastinate_workers")
            await till.fleet.say(name, name)
            ((worker,),) = till.ask("SELECT worker_id FROM procrastinate_register_worker_v1()")
            till.ask("SELECT procrastinate_fetch_job_v2(ARRAY['sessions'], %s)", worker)
        await till.fleet.say("waiting", "waiting")

    asyncio.run(work())
    states = {
        "refused": "failed",
        "slow": "later",
        "lamp": "person",
        "running": "running",
        "stalled": "stalled",
        "waiting": "waiting",
    }
    rows = asyncio.run(till.fleet.jobs())
    assert {row["name"]: row["state"] for row in rows} == states
    assert [row["since"] for row in rows] == sorted(row["since"] for row in rows)
    assert {row["name"]: row["attempts"] for row in rows if row["attempts"]} == {"refused": 1, "slow": 1}
    asyncio.run(till.fleet.say("refused", "fine"))
    assert {row["name"]: row["state"] for row in asyncio.run(till.fleet.jobs())} == states | {"refused": "waiting"}

    (tmp_path / "shop.py").write_text(f"""
from tests.integrations.fleets import Yard, calls_tool
fleet = Yard({till.url!r}, calls_tool).fleet
""")
    ran = in_child("queue", "shop:fleet", "--json", folder=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert {row["name"]: row["state"] for row in map(json.loads, ran.stdout.splitlines())} == states | {
        "refused": "waiting"
    }
    ran = in_child("queue", "shop:nothing", folder=tmp_path)
    assert (ran.returncode, "There is no fleet at 'shop:nothing'" in ran.stderr) == (3, True)
    (tmp_path / "broken.py").write_text("1 / 0")
    ran = in_child("work", "broken:fleet", folder=tmp_path)
    assert (ran.returncode, "ZeroDivisionError" in ran.stderr, "Traceback" in ran.stderr) == (3, True, False)


def test_worker_of_the_command_line_ends_with_a_signal(yard: NewYard, tmp_path: Path) -> None:
    """`palaver work` answers, and SIGTERM ends it in order: its row leaves the table of workers."""
    till = yard(echo)
    (tmp_path / "shop.py").write_text(f"""
from tests.integrations.fleets import Yard
from tests.integrations.test_fleet import echo
fleet = Yard({till.url!r}, echo).fleet
""")

    words = [sys.executable, "-m", "palaver", "work", "shop:fleet", "--grace", "1"]
    asyncio.run(till.fleet.say("till 1", "one"))
    with subprocess.Popen(words, cwd=tmp_path, env=child_environment(), stdout=subprocess.PIPE) as process:
        asyncio.run(till.until(lambda: till.texts("till 1")[-1:] == ["You said: one"]))
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate()
    assert b"Working on the queue sessions" in said
    assert till.ask("SELECT count(*) FROM procrastinate_workers") == [(0,)]


def child_environment() -> dict[str, str]:
    """Return the environment of a child that finds the tests."""
    return dict(os.environ) | {"PYTHONPATH": str(Path(__file__).parents[2])}


def in_child(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run palaver in a folder."""
    command = [sys.executable, "-m", "palaver", *words]
    return subprocess.run(command, cwd=folder, env=child_environment(), capture_output=True, text=True, check=False)
