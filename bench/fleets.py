"""A fleet's turn over PostgreSQL: what the queue adds to an agent that answers by itself, and what it costs to look for a job among many.

A turn begins when a message is said and ends when its answer is in the log; the model takes 50 ms. By itself, an agent opens its session and answers in
the same call. In a fleet the message is written with its job, a worker in this process is woken, opens the session and answers. Wake-up is the time
from the end of `say` until the worker asks for the agent. A job is fetched by procrastinate's own function, of its tables as they are and with the index
that the documentation of fleets names.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from bench.measure import Row, postgres_programs
from palaver import Agent
from palaver.agent import TurnFinished
from palaver.providers.scripted import ScriptedProvider
from palaver.store.postgres import PostgresStore
from tests import postgres

MODEL_SECONDS = 0.05
TURNS = 60
WARM = 3
"""Turns before the first one that counts: they load what is loaded once."""

WAITING = 100_000
FETCHES = 50


def run(folder: Path, *, quick: bool) -> list[Row]:
    """Measure turns both ways, one after the other, and then fetching."""
    del folder
    programs = postgres_programs("a fleet over PostgreSQL", "procrastinate")
    if isinstance(programs, list):
        return programs
    with (
        postgres.server(programs, on_disk=True, shared_buffers="128MB") as server,
        PostgresStore(f"postgresql://palaver@/postgres?host={server.folder}&schema=bench") as store,
    ):
        rows = asyncio.run(_turns(store, 10 if quick else TURNS))
        return [*rows, *_fetching(store, WAITING // 10 if quick else WAITING)]


async def _turns(store: PostgresStore, turns: int) -> list[Row]:
    import procrastinate  # noqa: PLC0415 - an extra

    from palaver.integrations.fleet import Fleet  # noqa: PLC0415 - the same

    asked: list[float] = []
    done = asyncio.Event()

    async def model(_request: object) -> str:
        await asyncio.sleep(MODEL_SECONDS)
        return "There is one lamp left."

    def listen(event: object) -> None:
        if isinstance(event, TurnFinished):
            done.set()

    def clerk(_name: str) -> Agent[Any]:
        asked.append(time.perf_counter())
        return Agent("clerk", "Answer.", "gpt-4o", ScriptedProvider(model), store=store, stream_handler=listen)

    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=store.conninfo))
    with app.open():
        app.schema_manager.apply_schema()
    fleet = Fleet(app, store, clerk)
    woken: list[float] = []

    async def alone() -> None:
        agent = await clerk("").aopen("main", session_name="alone", resume=True)
        await agent.arespond("How many lamps are left?")

    async def queued() -> None:
        await fleet.say("queued", "How many lamps are left?")
        said = time.perf_counter()
        await done.wait()
        woken.append(max(0.0, asked[-1] - said))

    working = asyncio.create_task(fleet.work(concurrency=4))
    timed = [(*await _timed(alone, done), *await _timed(queued, done)) for _ in range(turns + WARM)][WARM:]
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    limit, busy, ours, busier = (statistics.median(one) * 1000 for one in zip(*timed, strict=True))
    wakes = sorted(woken[WARM:])
    return [
        Row(
            "a turn in a fleet, beside the agent by itself",
            f"{ours:.1f} ms",
            f"{limit:.1f} ms",
            f"{ours / limit:.2f}",
            "1.15, or 15 ms more",
        ),
        Row(
            "processor time of both, client and worker",
            f"{busier:.1f} ms",
            f"{busy:.1f} ms",
            f"{busier / busy:.2f}",
        ),
        Row("wake-up, 95 of 100", f"{wakes[int(len(wakes) * 0.95)] * 1000:.1f} ms", aim="50 ms"),
    ]


async def _timed(way: Callable[[], Awaitable[None]], done: asyncio.Event) -> tuple[float, float]:
    """Return how long a turn takes, and the processor's time until its job has ended, too: then the next one begins."""
    done.clear()
    begun, busy = time.perf_counter(), time.process_time()
    await way()
    seconds = time.perf_counter() - begun
    await asyncio.sleep(0.05)
    return seconds, time.process_time() - busy


def _fetching(store: PostgresStore, waiting: int) -> list[Row]:
    import psycopg  # noqa: PLC0415 - an extra

    with psycopg.connect(store.conninfo, autocommit=True) as connection:

        def fetch() -> float:
            begun = time.perf_counter()
            connection.execute("SELECT id FROM procrastinate_fetch_job_v2(ARRAY['sessions'], %s)", worker)
            return time.perf_counter() - begun

        connection.execute(
            "INSERT INTO procrastinate_jobs (queue_name, task_name, lock, queueing_lock)"
            " SELECT 'sessions', 'palaver.sessions', n::text, n::text FROM generate_series(1, %s) AS n",
            (waiting,),
        )
        connection.execute("VACUUM ANALYZE procrastinate_jobs")
        worker = connection.execute("SELECT worker_id FROM procrastinate_register_worker_v1()").fetchone()
        plain = statistics.median(fetch() for _ in range(FETCHES)) * 1000
        connection.execute("CREATE INDEX ON procrastinate_jobs (lock) WHERE status IN ('todo', 'doing')")
        connection.execute("VACUUM ANALYZE procrastinate_jobs")
        indexed = statistics.median(fetch() for _ in range(FETCHES)) * 1000
    what = f"fetching one of {waiting:,} jobs, beside tables without the index"
    return [Row(what, f"{indexed:.2f} ms", f"{plain:.2f} ms", f"{indexed / plain:.2f}", "3 ms")]
