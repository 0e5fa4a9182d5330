"""A server's turn over PostgreSQL: many conversations in one event loop, beside a loop by hand and the peers, on one database.

A turn is what a request to a server costs: load a conversation of a hundred messages, append the user's, ask a model that takes 50 ms, append the
answer. Nothing is kept between two turns, as any worker of a server may get the next one. The database is as far away as a proxy makes it. A figure is of
all turns of a contestant: how many a second, how long 99 of 100 took beyond the model's time, how late its event loop ran a timer (99 of
100), processor time of this process a turn, and what one turn asks of the server: journeys, and statements.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from bench.measure import Row
from tests import postgres
from tests.journeys import Traffic, counted

MESSAGES = 100
MODEL_SECONDS = 0.05
CONVERSATIONS = 50
TURNS = 3
SWITCH_SECONDS = 0.001
"""As the page about servers says, for every contestant."""

DELAYS = (0.0, 0.002, 0.01)
ANSWER = "There is one lamp left, and it is reserved."

Turn: TypeAlias = Callable[[int, str], Awaitable[object]]
"""Loads a conversation by its number, appends a text, asks the model, appends the answer."""


T = TypeVar("T")


def said_before(*speakers: Callable[[str], T]) -> list[T]:
    """Return what a conversation has already: what the speakers make of texts, in turn."""
    words = "in a sentence of about a hundred characters, as people write them in chats."
    return [speakers[number % len(speakers)](f"Message {number} about lamps, {words}") for number in range(MESSAGES)]


async def model() -> str:
    """Return an answer, after as long as a fast model takes."""
    await asyncio.sleep(MODEL_SECONDS)
    return ANSWER


# --- contestants: each makes conversations, and returns what does a turn ----------------------------------------------------------------


@asynccontextmanager
async def by_hand(url: str, schema: str) -> AsyncIterator[Turn]:
    """Three statements: rows of JSON in one table, by psycopg."""
    from psycopg_pool import AsyncConnectionPool  # noqa: PLC0415

    del schema
    async with AsyncConnectionPool(url, min_size=16, max_size=16, kwargs={"autocommit": True}) as pool:
        async with pool.connection() as connection:
            await connection.execute("CREATE TABLE by_hand (talk int, seq int, body text, PRIMARY KEY (talk, seq))")
            for talk in range(CONVERSATIONS):
                values = [(talk, seq, json.dumps({"content": said})) for seq, said in enumerate(said_before(str))]
                await connection.cursor().executemany("INSERT INTO by_hand VALUES (%s, %s, %s)", values)

        async def turn(talk: int, said: str) -> None:
            add = "INSERT INTO by_hand VALUES (%s, %s, %s)"
            async with pool.connection() as connection:
                rows = await connection.execute("SELECT body FROM by_hand WHERE talk = %s ORDER BY seq", (talk,))
                known = [json.loads(body) for (body,) in await rows.fetchall()]
                await connection.execute(add, (talk, len(known), json.dumps({"content": said})))
            answer = await model()
            async with pool.connection() as connection:
                await connection.execute(add, (talk, len(known) + 1, json.dumps({"content": answer})))

        yield turn


def _speakers() -> tuple[Callable[[str], Any], ...]:
    from palaver import AssistantMessage, UserMessage  # noqa: PLC0415

    return lambda said: UserMessage(content=said), lambda said: AssistantMessage(content=said)


@asynccontextmanager
async def palaver_dialog(url: str, schema: str) -> AsyncIterator[Turn]:
    """A dialog of palaver, opened by its session's name."""
    from palaver import AssistantMessage, Session, UserMessage, open_store  # noqa: PLC0415

    store = open_store(f"{url}&schema={schema}&prepared=yes")
    for talk in range(CONVERSATIONS):
        dialog = Session.create(store, f"talk {talk}").root
        dialog.append(said_before(*_speakers()))

    async def turn(talk: int, said: str) -> None:
        dialog = await (await Session.aopen(store, f"talk {talk}")).aroot()
        await dialog.aappend(UserMessage(content=said))
        await dialog.arequest("openai-chat", "gpt-4o")
        await dialog.aappend(AssistantMessage(content=await model()))

    try:
        yield turn
    finally:
        store.close()


@asynccontextmanager
async def palaver_agent(url: str, schema: str) -> AsyncIterator[Turn]:
    """An agent of palaver, one a request."""
    from palaver import Agent, open_store  # noqa: PLC0415
    from palaver.providers import ScriptedProvider  # noqa: PLC0415

    store = open_store(f"{url}&schema={schema}&prepared=yes")

    async def answered(_: object) -> str:
        return await model()

    def made() -> Agent[Any]:
        return Agent("till", "You keep the till.", "gpt-4o", ScriptedProvider(answered), store=store)

    for talk in range(CONVERSATIONS):
        dialog = made().open("main", session_name=f"talk {talk}").current_dialog
        dialog.append(said_before(*_speakers()))

    async def turn(talk: int, said: str) -> None:
        agent = made()
        await agent.aopen("main", session_name=f"talk {talk}", resume=True)
        await agent.arespond(said)

    try:
        yield turn
    finally:
        store.close()


@asynccontextmanager
async def langgraph(url: str, schema: str) -> AsyncIterator[Turn]:
    """A graph of one node, with AsyncPostgresSaver."""
    from langchain_core.messages import AIMessage, HumanMessage  # noqa: PLC0415
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver  # noqa: PLC0415
    from langgraph.graph import START, MessagesState, StateGraph  # noqa: PLC0415
    from psycopg.rows import dict_row  # noqa: PLC0415
    from psycopg_pool import AsyncConnectionPool  # noqa: PLC0415

    del schema
    kwargs = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    async with AsyncConnectionPool(url, min_size=16, max_size=16, kwargs=kwargs) as pool:
        saver = AsyncPostgresSaver(pool)
        await saver.setup()

        async def node(_: MessagesState) -> dict[str, Any]:
            return {"messages": [AIMessage(await model())]}

        graph = StateGraph(MessagesState).add_node("model", node).add_edge(START, "model").compile(checkpointer=saver)
        for talk in range(CONVERSATIONS):
            await graph.aupdate_state(_thread(talk), {"messages": said_before(HumanMessage, AIMessage)})

        async def turn(talk: int, said: str) -> None:
            await graph.ainvoke({"messages": [HumanMessage(said)]}, _thread(talk))

        yield turn


def _thread(talk: int) -> Any:  # noqa: ANN401 - a RunnableConfig
    return {"configurable": {"thread_id": f"talk {talk}"}}


@asynccontextmanager
async def openai_agents(url: str, schema: str) -> AsyncIterator[Turn]:
    """A run of openai-agents with its SQLAlchemySession."""
    from agents import Agent, ModelResponse, Runner, Usage, set_tracing_disabled  # noqa: PLC0415
    from agents.extensions.memory import SQLAlchemySession  # noqa: PLC0415
    from agents.models.interface import Model  # noqa: PLC0415
    from openai.types.responses import ResponseOutputMessage, ResponseOutputText  # noqa: PLC0415
    from sqlalchemy.ext.asyncio import create_async_engine  # type: ignore[import-not-found]  # noqa: PLC0415

    del schema
    set_tracing_disabled(disabled=True)

    class Slow(Model):  # type: ignore[misc]
        async def get_response(self, *_args: object, **_options: object) -> ModelResponse:
            said = ResponseOutputText(type="output_text", text=await model(), annotations=[])
            message = ResponseOutputMessage(
                id="m", type="message", role="assistant", status="completed", content=[said]
            )
            return ModelResponse(output=[message], usage=Usage(), response_id=None)

        def stream_response(self, *_args: object, **_options: object) -> AsyncIterator[Any]:
            raise NotImplementedError

    engine = create_async_engine(url.replace("postgresql://", "postgresql+psycopg://"), pool_size=16, max_overflow=0)
    till = Agent(name="till", instructions="You keep the till.", model=Slow())
    for talk in range(CONVERSATIONS):
        session = SQLAlchemySession(f"talk {talk}", engine=engine, create_tables=talk == 0)
        roles = (lambda said: {"role": "user", "content": said}), (lambda said: {"role": "assistant", "content": said})
        await session.add_items(said_before(*roles))

    async def turn(talk: int, said: str) -> None:
        await Runner.run(till, said, session=SQLAlchemySession(f"talk {talk}", engine=engine))

    yield turn
    await engine.dispose()


CONTESTANTS: dict[str, Callable[[str, str], Any]] = {
    "by hand": by_hand,
    "palaver, dialog": palaver_dialog,
    "palaver, agent": palaver_agent,
    "langgraph": langgraph,
    "openai-agents": openai_agents,
}


# --- measuring --------------------------------------------------------------------------------------------------------------------------


def run(folder: Path, *, quick: bool) -> list[Row]:
    """Let each contestant answer in all conversations at once, several times, at each distance."""
    del folder
    programs = postgres.wheel_programs()
    reason = postgres.why_missing(programs)
    if programs is None or reason is not None or find_spec("psycopg_pool") is None:
        return [Row("turns over PostgreSQL", f"not measured: {reason or 'psycopg_pool is not installed'}")]
    rows = []
    sys.setswitchinterval(SWITCH_SECONDS)
    with (
        postgres.server(programs, on_disk=True, shared_buffers="128MB", max_connections=120) as server,
        counted(server.folder) as (place, traffic),
    ):
        for number, (name, contestant) in enumerate(CONTESTANTS.items()):
            address = f"postgresql://palaver@/postgres?host={place}"
            rows += asyncio.run(_measured(name, contestant(address, f"bench{number}"), traffic, quick=quick))
    return rows


async def _measured(name: str, contestant: Any, traffic: Traffic, *, quick: bool) -> list[Row]:  # noqa: ANN401 - an async context manager
    rows = []
    async with AsyncExitStack() as stack:
        turn: Turn = await stack.enter_async_context(contestant)
        await asyncio.gather(*(turn(talk, "Warm up.") for talk in range(CONVERSATIONS)))
        traffic.clear()
        await turn(0, "How many lamps?")
        asked = f"{traffic.journeys} journeys, {traffic.statements} statements"
        for delay in DELAYS[:1] if quick else DELAYS:
            traffic.delay = delay / 2  # each way
            rows.append(await _together(f"{name}, {delay * 1000:.0f} ms away ({asked})", turn, quick=quick))
        traffic.delay = 0.0
    return rows


async def _together(what: str, turn: Turn, *, quick: bool) -> Row:
    lengths: list[float] = []
    late: list[float] = []

    async def talk(number: int) -> None:
        for _ in range(1 if quick else TURNS):
            start = time.perf_counter()
            await turn(number, "How many lamps are left?")
            lengths.append(time.perf_counter() - start - MODEL_SECONDS)

    async def lag() -> None:
        while True:
            start = time.perf_counter()
            await asyncio.sleep(0.005)
            late.append(time.perf_counter() - start - 0.005)

    gc.collect()
    gc.freeze()  # likewise
    watching = asyncio.ensure_future(lag())
    begun, processor = time.perf_counter(), time.process_time()
    await asyncio.gather(*map(talk, range(CONVERSATIONS)))
    elapsed, worked = time.perf_counter() - begun, time.process_time() - processor
    watching.cancel()
    turns = len(lengths)
    figures = f"{turns / elapsed:.0f} turns/s, p99 {_p99(lengths):.0f} ms, loop lag p99 {_p99(late):.0f} ms"
    return Row(what, figures, f"{worked / turns * 1000:.1f} ms processor a turn")


def _p99(values: list[float]) -> float:
    """Return the value that 99 of 100 do not exceed, in milliseconds."""
    return sorted(values)[min(len(values) - 1, int(len(values) * 0.99))] * 1000
