"""The server: answers of functions as JSON, as lines and as bytes, and errors at any moment of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import pytest
from starlette.testclient import TestClient
from starlette.types import Message

from palaver import SqliteStore
from palaver.errors import Ambiguous, Erased
from palaver.explorer.api import Answer, Endpoint, Explored, Raw, number
from palaver.explorer.server import application
from tests.explorer.running import stocked


def echo(_source: Explored, name: str, in_: str = "", limit: str = "") -> Answer:
    """Return what was asked."""
    return {"name": name, "in": in_, "limit": number(limit, "limit", 50)}


def rows(_source: Explored, end: str) -> Iterator[Any]:
    """Count to two, and end as told."""
    failures: dict[str, Exception] = {"erased": Erased("entry", "x:1", 0.0, "r1"), "defect": ValueError("secret")}
    if end == "at once":
        raise Ambiguous("x", ["xa", "xb"])
    yield from ([1], [2])
    if end in failures:
        raise failures[end]


def picture(_source: Explored) -> Answer:
    """Return bytes."""
    return Raw(b"\x89PNG", "image/png")


@pytest.fixture
def source(tmp_path: Path) -> Explored:
    """Return a small store."""
    stocked(tmp_path / "store.db")
    store = SqliteStore(tmp_path / "store.db", read_only=True)
    return Explored(store=store, url=str(store.path), name="store.db")


def test_answers_are_sent_as_what_they_are(source: Explored, capsys: pytest.CaptureFixture[str]) -> None:
    """Words of path and query reach the function by name; an error has its status, after the first line it is the last one."""
    routes = (Endpoint("/e/{name}", echo), Endpoint("/rows", rows), Endpoint("/p", picture))
    page = TestClient(application(source, routes), raise_server_exceptions=False)
    assert page.get("/e/a%20b?in=c").json() == {"name": "a b", "in": "c", "limit": 50}
    wrong = ("/e/a?limit=-1", "/e/a?limit=1&limit=2", "/e/a?name=b", "/e/a?x=", "/rows", "/e/a?limit=99999999999999999")
    assert [page.get(path).status_code for path in wrong] == [400] * len(wrong)
    assert (page.get("/p").content, page.get("/p").headers["Content-Type"]) == (b"\x89PNG", "image/png")
    said = [json.loads(line) for line in page.get("/rows?end=well").iter_lines()]
    assert said == [[1], [2]]
    answer = page.get("/rows?end=at once")
    assert (answer.status_code, answer.json()["error"]["candidates"]) == (409, ["xa", "xb"])
    for end, kind in (("erased", "Erased"), ("defect", "Defect")):
        *said, last = [json.loads(line) for line in page.get(f"/rows?end={end}").iter_lines()]
        assert (said, last["error"]["kind"], "secret" in str(last)) == ([[1], [2]], kind, False)
    assert "secret" in capsys.readouterr().err
    assert (page.head("/rows?end=defect").status_code, capsys.readouterr().err) == (200, "")


def test_a_stream_ends_with_its_reader(source: Explored) -> None:
    """What nobody reads any more is not read from the store."""
    counted: list[int] = []

    def endless(_source: Explored) -> Iterator[int]:
        for value in count():
            counted.append(value)
            yield value

    async def main() -> None:
        gone, seen = anyio.Event(), 0

        async def receive() -> Message:
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(_: Message) -> None:
            nonlocal seen
            seen += 1
            if seen == 5:
                gone.set()

        scope = {"type": "http", "method": "GET", "path": "/n", "query_string": b"", "headers": []}
        await application(source, [Endpoint("/n", endless)])(scope, receive, send)
        assert 4 <= len(counted) < 100

    anyio.run(main)
