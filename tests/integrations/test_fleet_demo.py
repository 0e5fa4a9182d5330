"""The fleet of demo/: what is said over HTTP is answered by workers."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from palaver import Session
from palaver.providers.scripted import ScriptedProvider
from palaver.wire import Request
from tests import postgres
from tests.postgres_wheel import wheel_server
from tests.threads import WAIT

pytest.importorskip("procrastinate", reason="procrastinate is not installed: ./run setup")

from demo import fleet as demo

DAY = 86_400

SHOP = """
import os, time

machine = time.time
time.time = lambda: machine() + float(os.environ["CLOCK"])  # as the clock of another machine

from tests.integrations.test_fleet_demo import demo, model
from palaver.providers.scripted import ScriptedProvider

fleet = demo.make_fleet(os.environ["PALAVER_STORE"], ("gpt-4o", ScriptedProvider(model)))
"""


def model(request: Request) -> object:
    """Answer as a model that gives money back."""
    if request.body["messages"][-1]["role"] == "tool":
        return "You have it back."
    return {"tool_calls": [{"name": "refund", "arguments": {"amount": 3}}]}


@contextmanager
def workers(folder: Path, address: str, *clocks: float) -> Iterator[None]:
    """Run a worker for each clock, so many seconds ahead of this machine's."""
    known = dict(os.environ) | {"PYTHONPATH": str(Path(__file__).parents[2]), "PALAVER_STORE": address}
    words = [sys.executable, "-m", "palaver", "work", "shop:fleet", "--grace", "1"]
    started = [subprocess.Popen(words, cwd=folder, env=known | {"CLOCK": str(clock)}) for clock in clocks]
    try:
        yield
        assert [worker.poll() for worker in started] == [None] * len(started)
    finally:
        for worker in started:
            worker.terminate()
        for worker in started:
            worker.wait(WAIT)


def test_what_is_said_over_http_is_answered(postgres_server: postgres.Server) -> None:
    """A request only keeps what was said; a worker answers; a call waits for its decision, which another request makes."""
    provider = ScriptedProvider([{"tool_calls": [{"name": "refund", "arguments": {"amount": 3}}]}, "You have it back."])
    fleet = demo.make_fleet(postgres_server.url("public_demo"), ("gpt-4o", provider))
    demo.make_queue(fleet)
    transport = httpx.ASGITransport(demo.make_app(fleet))

    async def work() -> None:
        async with httpx.AsyncClient(transport=transport, base_url="http://till") as http:

            async def until(so: Any) -> dict[str, Any]:  # noqa: ANN401 - a condition
                while not so(talk := (await http.get("/talks/ann")).json()):  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
                return dict(talk)

            assert (await http.get("/talks/ann")).status_code == 404
            assert (await http.post("/talks/ann", json={"text": "Refund me"})).status_code == 202
            working = asyncio.create_task(fleet.work(concurrency=2))
            (call,) = (await until(lambda talk: talk["waiting"]))["waiting"]
            assert (await http.post(f"/talks/ann/calls/{call}/approve?by=bob")).status_code == 202
            talk = await until(lambda talk: talk["messages"][-1]["role"] == "assistant")
            assert [message["text"] for message in talk["messages"]][-2:] == ["3 given back", "You have it back."]
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)

    asyncio.run(work())
    fleet.store.close()


def test_an_approval_waits_a_day(tmp_path: Path) -> None:
    """Three workers, whose clocks are a minute apart, answer several conversations; one of the day after finishes what a person has approved.

    Between the two nothing runs and nothing waits in the queue. Each call ran once, and the times of a conversation do not run backwards.
    """
    (tmp_path / "shop.py").write_text(SHOP)
    names = [f"till-{number}" for number in range(6)]
    with wheel_server() as server:
        fleet = demo.make_fleet(server.url(), ("gpt-4o", ScriptedProvider(model)))
        demo.make_queue(fleet)

        async def work() -> None:
            transport = httpx.ASGITransport(demo.make_app(fleet))
            async with httpx.AsyncClient(transport=transport, base_url="http://till", timeout=WAIT) as http:

                async def until(name: str, so: Any) -> dict[str, Any]:  # noqa: ANN401 - a condition
                    while not so(talk := (await http.get(f"/talks/{name}")).json()):  # noqa: ASYNC110
                        await asyncio.sleep(0.1)
                    return dict(talk)

                with workers(tmp_path, fleet.store.url, -60, 0, 60):
                    await asyncio.gather(*(http.post(f"/talks/{name}", json={"text": "Refund"}) for name in names))
                    talks = [await until(name, lambda talk: talk["waiting"]) for name in names]
                    while {row["state"] for row in await fleet.jobs()} != {"person"}:  # noqa: ASYNC110
                        await asyncio.sleep(0.1)
                for name, talk in zip(names, talks, strict=True):
                    (call,) = talk["waiting"]
                    assert (await http.post(f"/talks/{name}/calls/{call}/approve?by=bob")).status_code == 202
                with workers(tmp_path, fleet.store.url, DAY):
                    for name in names:
                        await until(name, lambda talk: talk["messages"][-1]["role"] == "assistant")

        asyncio.run(work())
        for name in names:
            dialog = Session.open(fleet.store, name).root
            said = [str(message.content) for message in dialog.messages]
            assert said[1:] == ["Refund", said[2], "3 given back", "You have it back."]
            headers = fleet.store.headers(dialog.dialog_id)
            times = [header.at for header in headers if header.kind != "approval"]  # that has the time of the server
            assert times == sorted(times)
            assert times[-1] - times[0] > DAY / 2
        fleet.store.close()
