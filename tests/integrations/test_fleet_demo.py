"""The fleet of demo/: what is said over HTTP is answered by workers."""

import asyncio
from typing import Any

import httpx
import pytest

from palaver.providers.scripted import ScriptedProvider
from tests import postgres

pytest.importorskip("procrastinate", reason="procrastinate is not installed: ./run setup")

from demo import fleet as demo


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
