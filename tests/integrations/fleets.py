"""A fleet for tests: the real queue and the real database, workers in this process and in others."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import procrastinate
import psycopg

from palaver import Agent, CallContext, Session, tool
from palaver.errors import StoreError
from palaver.integrations.fleet import Fleet
from palaver.messages import Message
from palaver.providers.scripted import ScriptedProvider
from palaver.store.postgres import PostgresStore
from palaver.store.postgres.opening import address
from palaver.wire import Request
from tests.threads import WAIT

TICK = 0.02

_ANY = random.SystemRandom()

Answer = Callable[[Request], object]


def queue_app(url: str) -> procrastinate.App:
    """Return an app whose tables lie in the schema of a store; they are not made."""
    where = address(url)
    options = {"options": f"-csearch_path={where.schema}"}
    return procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=where.conninfo, kwargs=options))


def make_tables(url: str) -> None:
    """Make the tables of the queue beside those of a store."""
    app = queue_app(url)
    with app.open():
        app.schema_manager.apply_schema()


class Yard:
    """A fleet, what its model and its tools do, and a look at its queue."""

    def __init__(self, url: str, answer: Answer, *, store: PostgresStore | None = None, **options: Any) -> None:  # noqa: ANN401 - those of a fleet
        self.url = url
        self.provider = ScriptedProvider(answer)
        self.tools: list[Any] = []
        self.options: dict[str, Any] = {}
        self.store = store or PostgresStore(url)
        self.fleet = Fleet(queue_app(url), self.store, self.agent, schema=address(url).schema, **options)

    def agent(self, _name: str) -> Agent[Any]:
        """Return the agent of a session."""
        return Agent("clerk", "Answer.", "gpt-4o", self.provider, store=self.store, tools=self.tools, **self.options)

    def messages(self, name: str) -> list[Message]:
        """Return what was said in a session."""
        return list(Session.open(self.store, name).root.messages)

    def texts(self, name: str) -> list[str]:
        """Return the texts of a session without the system prompt."""
        return [str(message.content) for message in self.messages(name)][1:]

    def ask(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """Ask the database behind the fleet's back."""
        where = address(self.url)
        options = f"-csearch_path={where.schema}"
        with closing(psycopg.connect(where.conninfo, autocommit=True, options=options)) as connection:
            cursor = connection.execute(sql, values)
            return cursor.fetchall() if cursor.description else []

    def jobs(self) -> list[tuple[str, str]]:
        """Return the jobs, oldest first: the last part of the task's name, and the status."""
        rows = self.ask("SELECT task_name, status FROM procrastinate_jobs ORDER BY id")
        return [(name.removeprefix("palaver."), status) for name, status in rows]

    @asynccontextmanager
    async def worker(self, **options: Any) -> AsyncIterator[None]:  # noqa: ANN401 - those of `work`
        """Let a worker run."""
        working = asyncio.create_task(self.fleet.work(**{"concurrency": 4, "grace": 0.1} | options))
        try:
            yield
            assert not working.done(), working
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)

    async def until(self, so: Callable[[], object]) -> None:
        """Wait until something is so."""
        for _ in range(int(WAIT / TICK)):
            if await asyncio.to_thread(so):
                return
            await asyncio.sleep(TICK)
        raise AssertionError(f"it did not become so: {self.jobs()}")

    async def settled(self) -> None:
        """Wait until no job waits or runs."""
        await self.until(lambda: not {status for _, status in self.jobs()} & {"todo", "doing"})


# --- a worker in another process --------------------------------------------------------------------------------------------------


def calls_tool(request: Request) -> object:
    """Answer as a model that calls `charge` once for each message, and then says that it is done."""
    last = request.body["messages"][-1]
    if last["role"] == "tool":
        return f"Done: {last['content']}"
    return {"tool_calls": [{"name": "charge", "arguments": {"what": last["content"]}}]}


def charging(folder: Path, *, stuck: bool) -> Any:  # noqa: ANN401 - a tool
    """Return a tool whose effect must not happen twice; `stuck` holds it in the middle until a file says otherwise."""

    @tool
    def charge(what: str, context: CallContext) -> str:
        """Charge something, and write down with which fence when that is done."""
        with (folder / "charged").open("a") as file:
            file.write(f"{what}\n")
        while stuck and not (folder / "go").exists():
            time.sleep(TICK)
        assert context.fence is not None
        (folder / what).write_text(str(context.fence.seq))
        return f"{what} is charged"

    return charge


def run_worker(url: str, folder: str) -> None:
    """Work in this process until it is killed; its tool gets stuck."""
    yard = Yard(url, calls_tool, stale=1.5)
    yard.tools = [charging(Path(folder), stuck=True)]
    asyncio.run(yard.fleet.work(concurrency=2))


def start_worker(url: str, folder: Path) -> subprocess.Popen[bytes]:
    """Start a worker in another process."""
    words = f"from tests.integrations.fleets import run_worker; run_worker({url!r}, {str(folder)!r})"
    return subprocess.Popen([sys.executable, "-c", words], cwd=Path(__file__).parents[2], stderr=subprocess.DEVNULL)


# --- workers that are killed all the time -----------------------------------------------------------------------------------------


def charges_everything(request: Request) -> object:
    """Answer as a model that calls `charge` once for each message, and says that it is done when all have results."""
    messages = request.body["messages"]
    called = {
        json.loads(call["function"]["arguments"])["what"]
        for message in messages
        for call in message.get("tool_calls") or ()
    }
    due = [message["content"] for message in messages if message["role"] == "user" and message["content"] not in called]
    return {"tool_calls": [{"name": "charge", "arguments": {"what": what}} for what in due]} if due else "Done"


def charging_slowly(folder: Path) -> Any:  # noqa: ANN401 - a tool
    """Return a tool whose effect, a line in a file, is the middle of some milliseconds in which its process may be killed."""

    @tool
    async def charge(what: str) -> str:
        """Charge something."""
        await asyncio.sleep(_ANY.random() * 0.1)
        line = os.open(folder / "charged", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(line, f"{what}\n".encode())
        os.close(line)
        await asyncio.sleep(_ANY.random() * 0.1)
        return f"{what} is charged"

    return charge


CHAOS: dict[str, Any] = {"stale": 2.0, "backoff": (0.2,) * 100}
"""Jobs lose their workers more often than anywhere else, and are tried again as often."""


def run_chaotic_worker(url: str, folder: str) -> None:
    """Work in this process until it is killed."""
    logging.disable()  # its database goes away, and it with its jobs
    while True:
        try:
            yard = Yard(url, charges_everything, **CHAOS)
            yard.tools = [charging_slowly(Path(folder))]
            asyncio.run(yard.fleet.work(concurrency=4))
        except StoreError:  # its database is not there yet: what starts workers starts it again
            time.sleep(TICK)
