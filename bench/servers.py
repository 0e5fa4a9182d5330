"""A server's turn over PostgreSQL: many conversations in one event loop, beside a loop by hand and the peers, on one database.

A turn is what a request to a server costs: load a conversation of a hundred messages, append the user's, ask a model that takes 50 ms, append the
answer. Nothing is kept between two turns, as any worker of a server may get the next one, but where a contestant's name says so. The database is as far
away as a proxy in another process makes it. A figure is of all turns of a contestant: how many a second, how long 99 of 100 took beyond the
model's time, how late its event loop ran a timer (99 of 100), processor time of this process a turn, and what one turn asks of the server: journeys, and
statements. Then the same in several processes at once, each with conversations of its own.
"""

from __future__ import annotations

import asyncio
import gc
import json
import multiprocessing
import socket
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

from bench.measure import Row, postgres_programs
from tests import postgres
from tests.journeys import counted

MESSAGES = 100
MODEL_SECONDS = 0.05
CONVERSATIONS = 200
PROCESSES, CONVERSATIONS_OF_EACH = 8, 20
LONG_CONVERSATIONS, LONG_MESSAGES = 3, 5000
WORKERS, CLIENTS, HTTP_DELAY = 2, 40, 0.002
TURNS = 2
SWITCH_SECONDS, COLLECT_AFTER = 0.001, (50_000, 20, 20)
"""As the page about servers says, for every contestant."""

DELAYS = (0.0, 0.002, 0.01)
ANSWER = "There is one lamp left, and it is reserved."


class Talks(NamedTuple):
    """The conversations that a contestant makes: their numbers, and how many messages each has."""

    numbers: range
    messages: int = MESSAGES


Turn: TypeAlias = Callable[[int, str], Awaitable[object]]
"""Loads a conversation by its number, appends a text, asks the model, appends the answer."""


T = TypeVar("T")


def said_before(messages: int, *speakers: Callable[[str], T]) -> list[T]:
    """Return what a conversation has already: what the speakers make of texts, in turn."""
    words = "in a sentence of about a hundred characters, as people write them in chats."
    return [speakers[number % len(speakers)](f"Message {number} about lamps, {words}") for number in range(messages)]


async def model() -> str:
    """Return an answer, after as long as a fast model takes."""
    await asyncio.sleep(MODEL_SECONDS)
    return ANSWER


# --- contestants: each makes conversations, and returns what does a turn ----------------------------------------------------------------


@asynccontextmanager
async def by_hand(url: str, schema: str, talks: Talks) -> AsyncIterator[Turn]:
    """Three statements: rows of JSON in one table, by psycopg."""
    from psycopg_pool import AsyncConnectionPool  # noqa: PLC0415

    del schema
    async with AsyncConnectionPool(url, min_size=16, max_size=16, kwargs={"autocommit": True}) as pool:
        async with pool.connection() as connection:
            await connection.execute(
                "CREATE TABLE IF NOT EXISTS by_hand (talk int, seq int, body text, PRIMARY KEY (talk, seq))"
            )
            for talk in talks.numbers:
                values = [
                    (talk, seq, json.dumps({"content": said}))
                    for seq, said in enumerate(said_before(talks.messages, str))
                ]
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


async def _answer(dialog: Any, said: str) -> None:  # noqa: ANN401 - a Dialog: palaver is imported where it is measured
    from palaver import AssistantMessage, UserMessage  # noqa: PLC0415

    await dialog.aappend(UserMessage(content=said))
    await dialog.arequest("openai-chat", "gpt-4o")
    await dialog.aappend(AssistantMessage(content=await model()))


@asynccontextmanager
async def _dialogs(url: str, schema: str, talks: Talks) -> AsyncIterator[Callable[[int], Awaitable[Any]]]:
    """Make conversations, and yield what opens the dialog of one by its session's name."""
    from palaver import Session, open_store  # noqa: PLC0415

    store = open_store(f"{url}&schema={schema}&prepared=yes")
    for talk in talks.numbers:
        Session.create(store, f"talk {talk}").root.append(said_before(talks.messages, *_speakers()))

    async def opened(talk: int) -> Any:  # noqa: ANN401 - as above
        return await (await Session.aopen(store, f"talk {talk}")).aroot()

    try:
        yield opened
    finally:
        store.close()


@asynccontextmanager
async def palaver_dialog(url: str, schema: str, talks: Talks) -> AsyncIterator[Turn]:
    """A dialog of palaver, opened anew."""
    async with _dialogs(url, schema, talks) as opened:

        async def turn(talk: int, said: str) -> None:
            await _answer(await opened(talk), said)

        yield turn


@asynccontextmanager
async def palaver_kept(url: str, schema: str, talks: Talks) -> AsyncIterator[Turn]:
    """The same, with dialogs that the process keeps; another worker may have written since."""
    kept: dict[int, Any] = {}
    async with _dialogs(url, schema, talks) as opened:

        async def turn(talk: int, said: str) -> None:
            dialog = kept.get(talk)
            if dialog is None:
                dialog = kept[talk] = await opened(talk)
            else:
                await dialog.areload()
            await _answer(dialog, said)

        yield turn


@asynccontextmanager
async def _clerks(url: str, schema: str, talks: Talks) -> AsyncIterator[Callable[[], Any]]:
    """Make conversations, and yield what returns an agent that answers."""
    from palaver import Agent, open_store  # noqa: PLC0415
    from palaver.providers import ScriptedProvider  # noqa: PLC0415

    store = open_store(f"{url}&schema={schema}&prepared=yes")

    async def answered(_: object) -> str:
        return await model()

    def made() -> Agent[Any]:
        return Agent("till", "You keep the till.", "gpt-4o", ScriptedProvider(answered), store=store)

    for talk in talks.numbers:
        dialog = made().open("main", session_name=f"talk {talk}").current_dialog
        dialog.append(said_before(talks.messages, *_speakers()))
    try:
        yield made
    finally:
        store.close()


@asynccontextmanager
async def palaver_agent(url: str, schema: str, talks: Talks) -> AsyncIterator[Turn]:
    """An agent of palaver, one a request."""
    async with _clerks(url, schema, talks) as made:

        async def turn(talk: int, said: str) -> None:
            agent = await made().aopen("main", session_name=f"talk {talk}", resume=True)
            await agent.arespond(said)

        yield turn


@asynccontextmanager
async def palaver_agents_kept(url: str, schema: str, talks: Talks) -> AsyncIterator[Turn]:
    """The same, with agents that the process keeps; another worker may have answered since."""
    kept: dict[int, Any] = {}
    async with _clerks(url, schema, talks) as made:

        async def turn(talk: int, said: str) -> None:
            if talk not in kept:
                kept[talk] = await made().aopen("main", session_name=f"talk {talk}", resume=True)
            await kept[talk].arespond(said)

        yield turn


@asynccontextmanager
async def langgraph(url: str, schema: str, talks: Talks) -> AsyncIterator[Turn]:
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
        for talk in talks.numbers:
            await graph.aupdate_state(_thread(talk), {"messages": said_before(talks.messages, HumanMessage, AIMessage)})

        async def turn(talk: int, said: str) -> None:
            await graph.ainvoke({"messages": [HumanMessage(said)]}, _thread(talk))

        yield turn


def _thread(talk: int) -> Any:  # noqa: ANN401 - a RunnableConfig
    return {"configurable": {"thread_id": f"talk {talk}"}}


@asynccontextmanager
async def openai_agents(url: str, schema: str, talks: Talks) -> AsyncIterator[Turn]:
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
    for talk in talks.numbers:
        session = SQLAlchemySession(f"talk {talk}", engine=engine, create_tables=talk == talks.numbers[0])
        roles = (lambda said: {"role": "user", "content": said}), (lambda said: {"role": "assistant", "content": said})
        await session.add_items(said_before(talks.messages, *roles))

    async def turn(talk: int, said: str) -> None:
        await Runner.run(till, said, session=SQLAlchemySession(f"talk {talk}", engine=engine))

    yield turn
    await engine.dispose()


@asynccontextmanager
async def pydantic_ai(url: str, schema: str, talks: Talks) -> AsyncIterator[Turn]:
    """A run of pydantic-ai, its messages in rows of JSON as its documentation keeps them (https://ai.pydantic.dev/examples/chat-app/)."""
    from psycopg_pool import AsyncConnectionPool  # noqa: PLC0415
    from pydantic_ai import Agent, ModelMessagesTypeAdapter  # noqa: PLC0415
    from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart  # noqa: PLC0415
    from pydantic_ai.models.function import AgentInfo, FunctionModel  # noqa: PLC0415

    del schema

    async def answered(_messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=[TextPart(await model())])

    till = Agent(FunctionModel(answered), instructions="You keep the till.")
    speakers: tuple[Callable[[str], ModelMessage], ...] = (
        lambda said: ModelRequest(parts=[UserPromptPart(said)]),
        lambda said: ModelResponse(parts=[TextPart(said)]),
    )
    add = "INSERT INTO runs (talk, body) VALUES (%s, %s)"
    async with AsyncConnectionPool(url, min_size=16, max_size=16, kwargs={"autocommit": True}) as pool:
        async with pool.connection() as connection:
            await connection.execute("CREATE TABLE IF NOT EXISTS runs (seq bigserial, talk int, body text)")
            await connection.execute("CREATE INDEX IF NOT EXISTS runs_by_talk ON runs (talk, seq)")
            before = said_before(talks.messages, *speakers)
            runs = [
                ModelMessagesTypeAdapter.dump_json(before[at : at + 2]).decode() for at in range(0, talks.messages, 2)
            ]
            await connection.cursor().executemany(add, [(talk, run) for talk in talks.numbers for run in runs])

        async def turn(talk: int, said: str) -> None:
            async with pool.connection() as connection:
                rows = await connection.execute("SELECT body FROM runs WHERE talk = %s ORDER BY seq", (talk,))
                runs = await rows.fetchall()
            history = [message for (body,) in runs for message in ModelMessagesTypeAdapter.validate_json(body)]
            result = await till.run(said, message_history=history)
            async with pool.connection() as connection:
                await connection.execute(add, (talk, result.new_messages_json().decode()))

        yield turn


CONTESTANTS: dict[str, Callable[[str, str, Talks], Any]] = {
    "by hand": by_hand,
    "palaver, dialog": palaver_dialog,
    "palaver, dialogs kept": palaver_kept,
    "palaver, agent": palaver_agent,
    "palaver, agents kept": palaver_agents_kept,
    "langgraph": langgraph,
    "openai-agents": openai_agents,
    "pydantic-ai": pydantic_ai,
}


# --- measuring --------------------------------------------------------------------------------------------------------------------------


def _proxy(folder: Path, door: Connection) -> None:
    """Count in a process of its own, so that it takes no time of the contestants' interpreter; what arrives is the next delay."""
    with counted(folder) as (place, traffic):
        door.send(place)
        while True:
            traffic.delay = door.recv()
            door.send((traffic.journeys, traffic.statements))
            traffic.clear()


@contextmanager
def _proxied(folder: Path) -> Iterator[tuple[Path, Callable[[float], tuple[int, int]]]]:
    """Yield the folder of a socket that is away from the server, and what sets how far, and returns journeys and statements since the last call."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_proxy, args=(folder, there), daemon=True)
    process.start()

    def away(delay: float) -> tuple[int, int]:
        here.send(delay / 2)  # each way
        asked: tuple[int, int] = here.recv()
        return asked

    try:
        yield here.recv(), away
    finally:
        process.kill()
        process.join()


def run(folder: Path, *, quick: bool) -> list[Row]:
    """Let each contestant answer in all conversations at once, several times, at each distance; then in several processes."""
    del folder
    programs = postgres_programs("turns over PostgreSQL", "psycopg_pool")
    if isinstance(programs, list):
        return programs
    rows = []
    _settle()
    with (
        postgres.server(programs, on_disk=True, shared_buffers="128MB", max_connections=300) as server,
        _proxied(server.folder) as (place, away),
    ):
        address, near = (f"postgresql://palaver@/postgres?host={folder}" for folder in (place, server.folder))
        for number, name in enumerate(CONTESTANTS):
            rows += asyncio.run(_measured(name, address, f"bench{number}", away, quick=quick))
        for number, name in enumerate(() if quick else CONTESTANTS):
            rows.append(_in_processes(name, near, f"bench{number}"))
            rows.append(_over_http(name, address, f"bench{number}", away))
            rows.append(asyncio.run(_long(name, near, f"bench{number}")))
    return rows


async def _measured(name: str, address: str, schema: str, away: Any, *, quick: bool) -> list[Row]:  # noqa: ANN401 - a callable
    rows = []
    async with CONTESTANTS[name](address, schema, Talks(range(CONVERSATIONS))) as turn:
        await asyncio.gather(*(turn(talk, "Warm up.") for talk in range(CONVERSATIONS)))
        away(0.0)
        await turn(0, "How many lamps?")
        asked = "{} journeys, {} statements".format(*away(0.0))
        for delay in DELAYS[:1] if quick else DELAYS:
            away(delay)
            rows.append(await _together(f"{name}, {delay * 1000:.0f} ms away ({asked})", turn, quick=quick))
        away(0.0)
    return rows


async def _long(name: str, address: str, schema: str) -> Row:
    """Answer one after the other in long conversations."""
    first = CONVERSATIONS + PROCESSES * CONVERSATIONS_OF_EACH
    talks = Talks(range(first, first + LONG_CONVERSATIONS), LONG_MESSAGES)
    worked = []
    async with CONTESTANTS[name](address, schema, talks) as turn:
        for _ in range(TURNS + 1):
            gc.collect()
            gc.freeze()
            for talk in talks.numbers:
                processor, begun = time.process_time(), time.perf_counter()
                await turn(talk, "How many lamps are left?")
                worked.append((time.process_time() - processor, time.perf_counter() - begun - MODEL_SECONDS))
    processor, elapsed = (statistics.median(kind) * 1000 for kind in zip(*worked[LONG_CONVERSATIONS:], strict=True))
    what = f"{name}, {LONG_MESSAGES} messages, one turn after the other"
    return Row(what, f"{elapsed:.0f} ms a turn beyond the model's", f"{processor:.0f} ms processor a turn")


def _over_http(name: str, address: str, schema: str, away: Any) -> Row:  # noqa: ANN401 - a callable
    """Ask workers of a web server on one port, each client in a conversation of its own."""
    first = CONVERSATIONS + PROCESSES * CONVERSATIONS_OF_EACH + LONG_CONVERSATIONS
    talks = Talks(range(first, first + CLIENTS))
    spawn = multiprocessing.get_context("spawn")
    ready = spawn.SimpleQueue()
    away(HTTP_DELAY)
    with socket.create_server(("127.0.0.1", 0), backlog=CLIENTS) as door:
        workers = []
        for worker in range(WORKERS):  # the first one makes the conversations
            some = talks if not worker else Talks(range(0))
            workers.append(spawn.Process(target=_web_worker, args=(name, address, schema, some, door, ready)))
            workers[-1].start()
            ready.get()
        lengths, elapsed = asyncio.run(_clients(f"http://127.0.0.1:{door.getsockname()[1]}", talks))
        for process in workers:
            process.terminate()
            process.join()
    away(0.0)
    what = f"{name}, over HTTP, {WORKERS} workers, {CLIENTS} clients, {HTTP_DELAY * 1000:.0f} ms away"
    return Row(what, f"{len(lengths) / elapsed:.0f} turns/s, p99 {_p99(lengths):.0f} ms", "")


def _web_worker(name: str, address: str, schema: str, talks: Talks, door: socket.socket, ready: Any) -> None:  # noqa: ANN401 - what processes share
    _settle()
    asyncio.run(_served(CONTESTANTS[name](address, schema, talks), door, ready))


async def _served(contestant: Any, door: socket.socket, ready: Any) -> None:  # noqa: ANN401 - an async context manager, a queue
    import uvicorn  # noqa: PLC0415
    from starlette.applications import Starlette  # noqa: PLC0415
    from starlette.requests import Request  # noqa: PLC0415
    from starlette.responses import Response  # noqa: PLC0415
    from starlette.routing import Route  # noqa: PLC0415

    async with contestant as turn:

        async def say(request: Request) -> Response:
            await turn(request.path_params["talk"], (await request.json())["text"])
            return Response()

        app = Starlette(routes=[Route("/talks/{talk:int}", say, methods=["POST"])])
        ready.put(None)
        gc.collect()
        gc.freeze()
        await uvicorn.Server(uvicorn.Config(app, log_level="critical")).serve(sockets=[door])


async def _clients(address: str, talks: Talks) -> tuple[list[float], float]:
    import httpx  # noqa: PLC0415

    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(httpx.AsyncClient(timeout=60)) for _ in talks.numbers]
        of_talk = dict(zip(talks.numbers, clients, strict=True))

        async def turn(talk: int, text: str) -> None:
            (await of_talk[talk].post(f"{address}/talks/{talk}", json={"text": text})).raise_for_status()

        lengths: list[float] = []
        await asyncio.gather(*(turn(talk, "Warm up.") for talk in talks.numbers))
        begun = time.perf_counter()
        await asyncio.gather(*(_talk(turn, talk, TURNS, lengths) for talk in talks.numbers))
        return lengths, time.perf_counter() - begun


class _Crowd(NamedTuple):
    """What the processes of a contestant share."""

    name: str
    address: str
    schema: str
    alone: Any
    ready: Any
    said: Any


def _in_processes(name: str, address: str, schema: str) -> Row:
    spawn = multiprocessing.get_context("spawn")
    crowd = _Crowd(name, address, schema, spawn.Lock(), spawn.Barrier(PROCESSES), spawn.SimpleQueue())
    processes = [spawn.Process(target=_worker, args=(crowd, number)) for number in range(PROCESSES)]
    for process in processes:
        process.start()
    parts: list[tuple[float, float, list[float]]] = [crowd.said.get() for _ in processes]
    for process in processes:
        process.join()
    lengths = [length for _, _, some in parts for length in some]
    elapsed = max(ended for _, ended, _ in parts) - min(begun for begun, _, _ in parts)
    figures = f"{len(lengths) / elapsed:.0f} turns/s, p99 {_p99(lengths):.0f} ms"
    return Row(f"{name}, {PROCESSES} processes of {CONVERSATIONS_OF_EACH} conversations", figures, "")


def _worker(crowd: _Crowd, number: int) -> None:
    _settle()
    asyncio.run(_answered(crowd, number))


async def _answered(crowd: _Crowd, number: int) -> None:
    """Answer in conversations of its own, at the same time as the other processes."""
    first = CONVERSATIONS + number * CONVERSATIONS_OF_EACH
    talks = Talks(range(first, first + CONVERSATIONS_OF_EACH))
    async with AsyncExitStack() as stack:
        with crowd.alone:  # whoever makes tables is alone
            contestant = CONTESTANTS[crowd.name](crowd.address, crowd.schema, talks)
            turn: Turn = await stack.enter_async_context(contestant)
            await asyncio.gather(*(turn(talk, "Warm up.") for talk in talks.numbers))
        gc.collect()
        gc.freeze()
        lengths: list[float] = []
        crowd.ready.wait()
        begun = time.time()
        await asyncio.gather(*(_talk(turn, talk, TURNS, lengths) for talk in talks.numbers))
        crowd.said.put((begun, time.time(), lengths))
        crowd.ready.wait()  # who ends earlier takes no time from the others


def _settle() -> None:
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.set_threshold(*COLLECT_AFTER)


async def _talk(turn: Turn, talk: int, turns: int, lengths: list[float]) -> None:
    for _ in range(turns):
        start = time.perf_counter()
        await turn(talk, "How many lamps are left?")
        lengths.append(time.perf_counter() - start - MODEL_SECONDS)


async def _together(what: str, turn: Turn, *, quick: bool) -> Row:
    lengths: list[float] = []
    late: list[float] = []

    async def lag() -> None:
        while True:
            start = time.perf_counter()
            await asyncio.sleep(0.005)
            late.append(time.perf_counter() - start - 0.005)

    gc.collect()
    gc.freeze()  # likewise
    watching = asyncio.ensure_future(lag())
    begun, processor = time.perf_counter(), time.process_time()
    await asyncio.gather(*(_talk(turn, talk, 1 if quick else TURNS, lengths) for talk in range(CONVERSATIONS)))
    elapsed, worked = time.perf_counter() - begun, time.process_time() - processor
    watching.cancel()
    turns = len(lengths)
    figures = f"{turns / elapsed:.0f} turns/s, p99 {_p99(lengths):.0f} ms, loop lag p99 {_p99(late):.0f} ms"
    return Row(what, figures, f"{worked / turns * 1000:.1f} ms processor a turn")


def _p99(values: list[float]) -> float:
    """Return the value that 99 of 100 do not exceed, in milliseconds."""
    return sorted(values)[min(len(values) - 1, int(len(values) * 0.99))] * 1000
