"""A web server whose conversations survive it: `uvicorn demo.server:app --workers 4 --timeout-graceful-shutdown 30`.

Every worker has one store. What an agent knows is in the store, so any worker answers the next request; a worker keeps the agents of the conversations
that were active last, and these only read what other workers wrote. The environment says which store (`PALAVER_STORE`, a path or an address)
and which model (`PALAVER_MODEL`).
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import secrets
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel

from palaver import Agent, AssistantMessage, Decision, Message, Session, decide, open_store
from palaver.agent import waiting_calls
from palaver.errors import (
    AgentFailure,
    Busy,
    Conflict,
    DecisionNeeded,
    InvalidInput,
    NotFound,
    PalaverError,
    StoreError,
)
from palaver.providers import TextDelta
from palaver.store import Store


class Said(BaseModel):
    """What a user says."""

    text: str


def clerk(store: Store) -> Agent[Any]:
    """Return the agent that answers."""
    return Agent("clerk", "You answer briefly.", os.environ["PALAVER_MODEL"], store=store)


router = APIRouter()


KEPT = 100
"""The most agents that a worker keeps. One of a conversation of 100 messages takes about 400 kB."""


@asynccontextmanager
async def lent(request: Request, name: str) -> AsyncIterator[Agent[Any]]:
    """Lend a request the agent of a conversation, which begins with its first request.

    A second request at the same time has an agent of its own, and gets `Busy`. After an error the next request reads the conversation anew.
    """
    state = request.app.state
    kept: dict[str, Agent[Any]] = state.kept
    agent = kept.pop(name, None)
    if agent is None:
        agent = await state.agent_for(state.store).aopen("main", session_name=name, resume=True)
    yield agent
    kept[name] = agent
    while len(kept) > KEPT:
        del kept[next(iter(kept))]


@router.post("/talks/{name}")
async def say(name: str, said: Said, request: Request) -> dict[str, Any]:
    """Answer."""
    async with lent(request, name) as agent:
        answer = await agent.arespond(said.text)
        return {"text": answer.content, "messages": agent.current_dialog.opened.count}


def sent(event: str, **data: str) -> str:
    """Return a server-sent event."""
    return f"event: {event}\ndata: {json.dumps(data)}\n\n"


def answered(message: Message | None) -> str:
    """Return the event that ends a stream: the answer, or that there is none yet and when to look again."""
    if isinstance(message, AssistantMessage) and not message.tool_calls():
        return sent("answer", text=message.text_content())
    return "retry: 1000\n" + sent("unanswered")


class Turn:
    """A turn that runs in this worker, whoever reads it: each client reads the one list of its events at its own pace."""

    def __init__(self, request: Request, name: str, text: str) -> None:
        self.id, self.events, self.ended, self.more = secrets.token_hex(4), list[str](), False, asyncio.Event()
        request.app.state.running[name] = self
        self.task = asyncio.create_task(self._run(request, name, text))

    def _add(self, event: str) -> None:
        self.events.append(event)
        self.more.set()
        self.more = asyncio.Event()

    async def _run(self, request: Request, name: str, text: str) -> None:
        last = answered(None)  # of a turn that the server's end interrupts
        try:
            async with lent(request, name) as agent, agent.stream(text) as events:
                async for event in events:
                    if isinstance(event, TextDelta):
                        self._add(f"id: {self.id}-{len(self.events) + 1}\n" + sent("text", text=event.text))
                last = answered(agent.current_dialog.tail)
        except PalaverError as error:  # the status was sent before
            last = sent("error", error=str(error))
        finally:
            del request.app.state.running[name]
            self.ended = True
            self._add(last)

    async def read(self, after: str = "") -> AsyncIterator[str]:
        """Yield the events after one of this turn, or all, and then what follows."""
        turn, _, count = after.partition("-")
        index = min(int(count), len(self.events)) if turn == self.id and count.isdecimal() else 0
        while index < len(self.events) or not self.ended:
            if index == len(self.events):
                await self.more.wait()
            yield self.events[index]
            index += 1


@router.post("/talks/{name}/events")
async def tell(name: str, said: Said, request: Request, after: str = "") -> StreamingResponse:
    """Answer piece by piece, as server-sent events. The turn goes on without its client, who may come back."""
    if after or "last-event-id" in request.headers:  # a client that repeats its request says nothing twice
        return await follow(name, request, after)
    if name in request.app.state.running:
        raise Busy(name, why=f"{name} is being answered.")
    return StreamingResponse(Turn(request, name, said.text).read(), media_type="text/event-stream")


@router.get("/talks/{name}/events")
async def follow(name: str, request: Request, after: str = "") -> StreamingResponse:
    """Send what follows an event of the running turn; where none runs, the stored answer."""
    if turn := request.app.state.running.get(name):
        events = turn.read(request.headers.get("last-event-id", after))
    else:
        session = await Session.aopen(request.app.state.store, name)
        events = iter([answered(await asyncio.to_thread(lambda: session.newest.tail))])
    return StreamingResponse(events, media_type="text/event-stream")


@router.get("/waiting")
def waiting(request: Request) -> list[dict[str, Any]]:
    """List the calls that wait for a person, in all conversations."""
    return [
        {
            "talk": call.session.name,
            "call": call.call.id,
            "tool": call.call.name,
            "arguments": call.call.args,
            "until": call.deadline,
        }
        for call in waiting_calls(request.app.state.store)
    ]


class Decided(BaseModel):
    """What somebody decided; who it was comes from the server's own login, not from the request."""

    decision: Literal["approve", "deny", "edit"]
    reason: str = ""
    arguments: dict[str, Any] | None = None
    always: bool = False


@router.post("/talks/{name}/calls/{call}")
def decide_call(name: str, call: str, said: Decided, request: Request) -> dict[str, str]:
    """Record a decision about a call that waits, today or tomorrow. The next request, with an empty text, continues the turn."""
    dialog = Session.open(request.app.state.store, name).newest
    return {"decided": str(decide(dialog, call, Decision(**dict(said), by=request.headers.get("x-user", ""))))}


_STATUS = (
    (Conflict, 409),  # also `Busy`
    (DecisionNeeded, 202),
    (NotFound, 404),
    (InvalidInput, 400),
    (AgentFailure, 502),
    (StoreError, 503),
)
_AGAIN = {409, 503}


async def refused(_request: Request, error: Exception) -> JSONResponse:
    """Say what went wrong, and with the status whether to ask again."""
    status = next((code for kind, code in _STATUS if isinstance(error, kind)), 500)
    return JSONResponse({"error": str(error)}, status, {"Retry-After": "1"} if status in _AGAIN else None)


def make_app(address: str, agent_for: Callable[[Store], Agent[Any]] = clerk) -> FastAPI:
    """Return the application of a store.

    Args:
        address: The store's path or address.
        agent_for: Returns an agent with this store.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.store, app.state.agent_for, app.state.kept = open_store(address), agent_for, {}
        app.state.running = {}  # the `Turn` of each conversation that streams
        gc.collect()
        gc.freeze()  # modules stay: the collector need not look through them again and again
        gc.set_threshold(
            50_000, 20, 20
        )  # nor after every 700 objects: a conversation has thousands, and few are in cycles
        sys.setswitchinterval(0.001)  # worker threads compute requests: the event loop gets its turn between
        yield
        turns = [turn.task for turn in app.state.running.values()]
        for task in turns:
            task.cancel()  # interrupts: the next request continues
        await asyncio.gather(*turns, return_exceptions=True)
        app.state.store.close()

    app = FastAPI(lifespan=lifespan, exception_handlers={PalaverError: refused})
    app.include_router(router)
    return app


def __getattr__(name: str) -> FastAPI:
    """Return `app` when uvicorn asks for it: a module that is only imported opens nothing."""
    if name != "app":
        raise AttributeError(name)
    return make_app(os.environ["PALAVER_STORE"])
