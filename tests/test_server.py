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


@tool
def look() -> str:
    """Look into the book."""
    return "1"


class Clerks:
    """Makes agents whose models follow one script."""

    def __init__(self, *answers: object) -> None:
        self.provider = ScriptedProvider(answers)

    def __call__(self, store: Store) -> Agent[Any]:
        """Return an agent."""
        return Agent("clerk", "Answer.", "gpt-4o", self.provider, store=store, tools=[refund, look])


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


def events_of(body: str) -> list[tuple[str, str, dict[str, str]]]:
    """Return the id, kind and data of each event of a stream."""
    fields = [dict(line.split(": ", 1) for line in event.splitlines()) for event in body.split("\n\n") if event]
    return [(event.get("id", ""), event["event"], json.loads(event["data"])) for event in fields]


def test_events_stream(address: str) -> None:
    """The pieces of an answer arrive as events, and then the whole answer."""

    async def work() -> None:
        async with client(address, Clerks("One lamp is left.")) as http:
            *pieces, last = events_of((await http.post("/talks/ann/events", json={"text": "How many?"})).text)
            assert "".join(data["text"] for _, _, data in pieces) == "One lamp is left."
            assert len(pieces) > 1
            assert last == ("", "answer", {"text": "One lamp is left."})

    asyncio.run(work())


def test_a_client_that_reloads_misses_nothing(address: str) -> None:
    """A client that left returns to the running turn: it gets what follows its last event, or all; later and elsewhere, the answer."""

    async def work() -> None:
        asked, go = asyncio.Event(), asyncio.Event()

        async def slow(_: object) -> str:
            asked.set()
            await go.wait()
            return "One lamp is left."

        call = {"text": "I look into the book.", "tool_calls": [{"name": "look", "arguments": {}}]}
        clerks, place, said = Clerks(call, slow), "/talks/ann/events", {"text": "How many?"}
        async with served(address, clerks) as http, client(address, Clerks()) as other:
            async with http.stream("POST", place, json=said) as response:
                line = await anext(response.aiter_lines())
            await asked.wait()  # the client has left, the turn goes on
            seen = line.removeprefix("id: ")
            assert events_of((await other.get(place)).text) == [("", "unanswered", {})]
            assert (await http.post(place, json=said)).status_code == BUSY
            resumed = {"Last-Event-ID": seen}
            async with (
                http.stream("GET", place) as again,
                http.stream("GET", place, headers=resumed) as by_header,
                http.stream("GET", place, params={"after": seen}) as by_query,
                http.stream("POST", place, headers=resumed, json=said) as repeated,
                http.stream("GET", place, params={"after": "another-1"}) as stranger,
            ):
                async with http.stream("GET", place) as response:
                    await anext(response.aiter_lines())  # and leaves again
                go.set()
                whole, *rests, strange = [
                    events_of((await response.aread()).decode())
                    for response in (again, by_header, by_query, repeated, stranger)
                ]
            assert "".join(data["text"] for _, _, data in whole[:-1]) == "I look into the book.One lamp is left."
            assert whole[0][0] == seen
            assert rests == [whole[1:]] * 3
            assert strange == whole
            for worker in (http, other):
                assert events_of((await worker.get(place, headers=resumed)).text) == whole[-1:]
            assert (await other.get("/talks/nobody/events")).status_code == MISSING
        assert [message["role"] for message in clerks.provider.requests[-1].body["messages"]].count("user") == 1

    asyncio.run(work())


def test_a_server_that_ends_interrupts_its_turns(address: str) -> None:
    """A turn whose client left is interrupted when the server ends; the next request sends the model both messages."""

    async def work() -> None:
        asked = asyncio.Event()

        async def endless(_: object) -> None:
            asked.set()
            await asyncio.Event().wait()

        async with served(address, Clerks(endless)) as http:
            first = asyncio.ensure_future(http.post("/talks/ann/events", json={"text": "How many?"}))
            await asked.wait()
            first.cancel()
        clerks = Clerks("One.")
        async with client(address, clerks) as http:
            assert events_of((await http.get("/talks/ann/events")).text) == [("", "unanswered", {})]
            answered = await http.post("/talks/ann", json={"text": "Sure?"})
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
