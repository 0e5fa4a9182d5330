"""The server of demo/: conversations over HTTP that survive requests, clients, workers and the server."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from demo.server import make_app
from palaver import Agent, Session, open_store, tool
from palaver.errors import ProviderError
from palaver.providers.scripted import ScriptedProvider
from palaver.store import Store
from tests import postgres

BUSY, WAITS, WRONG, MISSING, FAILED = 409, 202, 400, 404, 502


@tool(needs_approval=True)
def refund(amount: int) -> str:
    """Give money back."""
    return f"{amount} given back"


class Clerks:
    """Makes agents whose models follow one script."""

    def __init__(self, *answers: object) -> None:
        self.provider = ScriptedProvider(answers)

    def __call__(self, store: Store) -> Agent[Any]:
        """Return an agent."""
        return Agent("clerk", "Answer.", "gpt-4o", self.provider, store=store, tools=[refund])


@asynccontextmanager
async def client(address: str, clerks: Clerks) -> AsyncIterator[httpx.AsyncClient]:
    """Start the application, and return a client of it."""
    app = make_app(address, clerks)
    transport = httpx.ASGITransport(app)
    async with app.router.lifespan_context(app), httpx.AsyncClient(transport=transport, base_url="http://till") as made:
        yield made


@asynccontextmanager
async def served(address: str, clerks: Clerks) -> AsyncIterator[httpx.AsyncClient]:
    """Serve the application on a port of this machine, and return a client, which can leave."""
    server = uvicorn.Server(uvicorn.Config(make_app(address, clerks), port=0, log_config=None))
    running = asyncio.ensure_future(server.serve())
    while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
        await asyncio.sleep(0)
    port = server.servers[0].sockets[0].getsockname()[1]
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as made:
        yield made
    server.should_exit = True
    await running


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store of each kind."""
    if request.param == "sqlite":
        return str(tmp_path / "talks.db")
    server: postgres.Server = request.getfixturevalue("postgres_server")
    return server.url()


def test_a_conversation_survives_its_requests_and_the_server(address: str) -> None:
    """A server that was started again goes on where the last one ended."""

    async def work() -> None:
        async with client(address, Clerks("One lamp.", "Two lamps.")) as http:
            assert (await http.post("/talks/ann", json={"text": "How many?"})).json() == {
                "text": "One lamp.",
                "messages": 3,
            }
            assert (await http.post("/talks/ann", json={"text": "And now?"})).json()["messages"] == 5
        async with client(address, Clerks("Still two.")) as http:
            assert (await http.post("/talks/ann", json={"text": "And today?"})).json() == {
                "text": "Still two.",
                "messages": 7,
            }

    asyncio.run(work())
    with closing(open_store(address)) as store:
        assert len(Session.list(store, name="ann")) == 1


def test_workers_take_turns_in_one_conversation(address: str) -> None:
    """Two workers answer in turn, each with the agent that it kept, and both send the model all that was said."""

    async def work() -> None:
        clerks = [Clerks(*(f"{worker} {number}" for number in range(3))) for worker in "ab"]
        async with client(address, clerks[0]) as first, client(address, clerks[1]) as second:
            for turn in range(6):
                http = (first, second)[turn % 2]
                told = (await http.post("/talks/ann", json={"text": f"turn {turn}"})).json()
                assert told == {"text": f"{'ab'[turn % 2]} {turn // 2}", "messages": 2 * turn + 3}
                assert len(clerks[turn % 2].provider.requests[-1].body["messages"]) == 2 * turn + 2

    asyncio.run(work())


def test_a_second_request_is_told_to_wait(address: str) -> None:
    """Of two requests to one conversation at once, one is answered and the other gets 409, and its text is stored nowhere."""

    async def work() -> None:
        asked, go = asyncio.Event(), asyncio.Event()

        async def slow(_: object) -> str:
            asked.set()
            await go.wait()
            return "First."

        async with client(address, Clerks("Hello.", slow, "Again.")) as http:
            await http.post("/talks/ann", json={"text": "Hello"})
            first = asyncio.ensure_future(http.post("/talks/ann", json={"text": "first"}))
            await asked.wait()
            second = await http.post("/talks/ann", json={"text": "second"})
            go.set()
            assert (second.status_code, second.headers["retry-after"]) == (BUSY, "1")
            assert (await first).json()["text"] == "First."
            assert (await http.post("/talks/ann", json={"text": "second"})).json() == {"text": "Again.", "messages": 7}

    asyncio.run(work())


def test_events_stream(address: str) -> None:
    """The pieces of an answer arrive as events."""

    async def work() -> None:
        async with (
            client(address, Clerks("One lamp is left.")) as http,
            http.stream("POST", "/talks/ann/events", json={"text": "How many?"}) as response,
        ):
            told = [json.loads(line[6:])["text"] async for line in response.aiter_lines() if line]
            assert "".join(told) == "One lamp is left."
            assert len(told) > 1

    asyncio.run(work())


def test_a_client_that_leaves_loses_nothing(address: str) -> None:
    """A client that leaves while the model works interrupts its turn; the next request sends the model both messages."""

    async def work() -> None:
        asked, left = asyncio.Event(), asyncio.Event()

        async def endless(_: object) -> None:
            asked.set()
            try:
                await asyncio.Event().wait()
            finally:
                left.set()

        clerks = Clerks(endless, "One.")
        async with served(address, clerks) as http:
            first = asyncio.ensure_future(http.post("/talks/ann/events", json={"text": "How many?"}))
            await asked.wait()
            first.cancel()
            await left.wait()
            while (answered := await http.post("/talks/ann", json={"text": "Sure?"})).status_code == BUSY:
                pass
            assert answered.json() == {"text": "One.", "messages": 4}
            sent = clerks.provider.requests[-1].body["messages"]
            assert [message["content"] for message in sent] == ["Answer.", "How many?", "Sure?"]

    asyncio.run(work())


def test_what_cannot_be_answered_has_a_status(address: str) -> None:
    """A wrong request is the client's fault, and one that the provider fails is nobody's."""

    async def work() -> None:
        async with client(address, Clerks(ProviderError("No credit.", kind="auth"), "One.")) as http:
            assert (await http.post("/talks/ann", json={"text": ""})).status_code == WRONG
            assert (await http.post("/talks/ann", json={"text": "How many?"})).status_code == FAILED
            assert (await http.post("/talks/ann", json={"text": ""})).json()["text"] == "One."

    asyncio.run(work())


def test_an_approval_answers_with_its_status(address: str) -> None:
    """A call that waits for a person is 202; a message meanwhile is kept, and the decision of another process lets it go on."""

    async def work() -> None:
        call = {"tool_calls": [{"name": "refund", "arguments": {"amount": 5}}]}
        clerks = Clerks(call, "Done.")
        async with client(address, clerks) as http:
            assert (await http.post("/talks/ann", json={"text": "Refund 5."})).status_code == WAITS
            assert (await http.post("/talks/ann", json={"text": "Are you there?"})).status_code == WAITS
        async with client(address, clerks) as http:  # of another process, tomorrow
            (waiting,) = (await http.get("/waiting")).json()
            assert (waiting["talk"], waiting["tool"], waiting["arguments"]) == ("ann", "refund", {"amount": 5})
            place = f"/talks/ann/calls/{waiting['call']}"
            assert (await http.post("/talks/ann/calls/other", json={"decision": "deny"})).status_code == MISSING
            assert (await http.post(place, json={"decision": "edit"})).status_code == WRONG
            said = {"decision": "edit", "arguments": {"amount": 4}}
            assert (await http.post(place, json=said, headers={"x-user": "ann"})).is_success
            assert (await http.get("/waiting")).json() == []
            answered = await http.post("/talks/ann", json={"text": "Well?"})
            assert answered.json()["text"] == "Done."

    asyncio.run(work())
